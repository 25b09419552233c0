/* Updates the metric for the kernel's moves: from curvature, from the other half of the
 * particles, or as recorded in a path. */
#include "estimators/walk/parts.h"

#include <string.h>

/* The metric of one half of the particles, from those [from, to) of the other half. */
static void metric_of_other_half(walk *w, le_metric *metric, size_t from, size_t to)
{
  double total = 0;
  for (size_t i = from; i < to; i++) total += w->weight[i];
  if (!(total > 0)) return;
  for (size_t i = from; i < to; i++) w->work[i] = w->weight[i] / total;
  le_metric_set_particles(metric, to - from, w->theta + from * w->d, w->work + from,
                          w->prior_variance);
}

/* The density is the same under all labels, so particles may be relabelled between distributions
 * without bias. */
le_status le_walk_tune_as_recorded(walk *w, const le_path_point *point)
{
  w->target.labels = NULL;
  if (point->labels) le_walk_relabel_to(w, point->labels);
  stage_of(w)->kernel->ops->fix(w->kernel[w->stage], point->step);
  return le_metric_read(&w->metric[w->stage][0], point->metric);
}

le_status le_walk_update_metric(walk *w)
{
  const le_stage *stage = stage_of(w);
  le_metric *metric = w->metric[w->stage];
  const size_t d = w->d;
  if (stage->metric == LE_METRIC_FIXED) return LE_OK;
  if (stage->gradient == LE_GRADIENT_CONTROL && stage->metric == LE_METRIC_FROM_CURVATURE) {
    LE_TRY(le_walk_anchored_precision(w, w->precision));
    le_walk_relabel_to(w, w->gradient[w->stage].anchor);
    le_metric_set_precision(&metric[0], w->precision);
    return LE_OK;
  }
  if (w->target.proposal)
    le_walk_relabel_to(w, w->audit.mode[0].theta); /* the labels of the draws */
  else
    le_walk_relabel_to_heaviest(w);
  if (stage->metric == LE_METRIC_FROM_PARTICLES) {
    metric_of_other_half(w, &metric[0], w->target.split, w->m);
    metric_of_other_half(w, &metric[1], 0, w->target.split);
    return LE_OK;
  }
  le_walk_weighted_mean(w, w->centre);
  memset(w->precision, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, w->centre, w->precision);
  for (size_t k = 0; k < d * d; k++) w->precision[k] = -w->precision[k];
  LE_TRY(le_target_information(&w->target, 0, w->target.seen, 1, w->centre, w->precision));
  LE_TRY(le_target_information(&w->target, w->target.seen, w->target.seen + w->target.chunk,
                               w->target.lambda, w->centre, w->precision));
  le_metric_set_precision(&metric[0], w->precision);
  return LE_OK;
}
