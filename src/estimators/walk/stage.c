/* The present stage of the run, its position on a recorded path, and which optional parts its
 * settings need. */
#include "estimators/walk/parts.h"

enum { AUDIT_CLIMBS = 4 };
enum { AUDIT_CLIMBS_UNKNOWN = 8 };

/* More climbs from particles if the model has no starts of its own: only they can find its
 * modes. */
size_t le_walk_particle_climbs(const walk *w)
{
  return w->settings.search && !w->model->start ? AUDIT_CLIMBS_UNKNOWN : AUDIT_CLIMBS;
}

int le_walk_samples_importance(const walk *w)
{
  return w->settings.audit || w->settings.search;
}

int le_walk_renews(const walk *w)
{
  int any = 0;
  for (size_t s = 0; s < w->settings.stages; s++) any |= w->settings.stage[s].renew != 0;
  return any;
}

void le_walk_enter_stage(walk *w, size_t s)
{
  w->stage = s;
  w->m = w->settings.stage[s].particles;
  w->target.gradient = &w->gradient[s];
  const int halves = w->settings.stage[s].metric == LE_METRIC_FROM_PARTICLES && !follows(w);
  w->target.metric[0] = &w->metric[s][0];
  w->target.metric[1] = &w->metric[s][halves];
  w->target.split = w->m / 2;
}

void le_walk_go_to_point(walk *w, size_t points)
{
  const le_path_point point = le_path_at(&w->path, points > 0 ? points - 1 : 0);
  w->target.seen = points > 0 ? point.seen : 0;
  w->target.chunk = points > 0 ? point.chunk : 0;
  w->target.lambda = points > 0 ? point.lambda : 0;
}
