/* The present stage of the run: its position on a recorded path, the precision of the posterior
 * from second derivatives at its anchor, and which optional parts its settings need. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"

#include <string.h>

enum { AUDIT_CLIMBS = 4 };
enum { AUDIT_CLIMBS_UNKNOWN = 8 };

/* More climbs from particles if the model has no starts of its own: only they can find its
 * modes. */
size_t le_walk_particle_climbs(const walk *w)
{
  return w->settings.search && !w->target.ops->start ? AUDIT_CLIMBS_UNKNOWN : AUDIT_CLIMBS;
}

int le_walk_samples_importance(const walk *w)
{
  return w->settings.audit || w->settings.search;
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

/* Weight of the observed information in the metric of a model that also has the information of
 * the completed data, which is never indefinite. */
static const double OBSERVED = 0.7;

void le_walk_prior_precision(const walk *w, const double *theta, double *precision)
{
  const size_t square = w->d * w->d;
  memset(precision, 0, square * sizeof(double));
  w->target.ops->log_prior_hess(w->target.model, theta, precision);
  for (size_t k = 0; k < square; k++) precision[k] = -precision[k];
}

void le_walk_observed_precision(const walk *w, double *precision)
{
  const le_gradient *g = &w->gradient[w->stage];
  le_walk_prior_precision(w, g->anchor, precision);
  for (size_t k = 0; k < w->d * w->d; k++)
    precision[k] = precision[k] - g->hess[k] - w->target.lambda * g->chunk_hess[k];
}

/* For models with several modes the observed information is blended with the information of the
 * completed data. If the blend is still indefinite, the completed data's is used alone. */
void le_walk_anchored_precision(walk *w, double *precision)
{
  const size_t d = w->d, square = d * d;
  const double *anchor = w->gradient[w->stage].anchor, lambda = w->target.lambda;
  le_walk_observed_precision(w, precision);
  if (!w->target.ops->information) return;
  LE_SCRATCH(work, w->target.stack, square);
  le_walk_prior_precision(w, anchor, work);
  for (size_t k = 0; k < square; k++) {
    const double complete = w->anchor_info[k] + lambda * w->chunk_info[k] + work[k];
    precision[k] = OBSERVED * precision[k] + (1 - OBSERVED) * complete;
  }
  memcpy(work, precision, square * sizeof(double));
  if (le_cholesky(work, d) == LE_OK) return;
  le_walk_prior_precision(w, anchor, precision);
  for (size_t k = 0; k < square; k++)
    precision[k] = precision[k] + w->anchor_info[k] + lambda * w->chunk_info[k];
}
