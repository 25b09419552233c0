/* The precision of the posterior by the curvature of the density. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"

#include <string.h>

/* Share of the observed information in a metric, where there is that of the completed data too. */
static const double OBSERVED = 0.7;

/* P at (seen, lambda) from the sums at the anchor. */
void le_walk_observed_precision(const walk *w, double *precision)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  memset(precision, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, g->anchor, precision);
  for (size_t k = 0; k < d * d; k++)
    precision[k] = -precision[k] - g->hess[k] - w->target.lambda * g->chunk_hess[k];
}

/* P at (seen, lambda) from the sums at the anchor; for models with several modes blended with the information of the
 * completed data, which is never indefinite. */
le_status le_walk_anchored_precision(walk *w, double *precision)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  const double lambda = w->target.lambda;
  le_walk_observed_precision(w, precision);
  if (!w->model->information) return LE_OK;
  double *prior = w->work;
  memset(prior, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, g->anchor, prior);
  for (size_t k = 0; k < d * d; k++) {
    const double complete = w->anchor_info[k] + lambda * w->chunk_info[k] - prior[k];
    precision[k] = OBSERVED * precision[k] + (1 - OBSERVED) * complete;
  }
  memcpy(w->work, precision, d * d * sizeof(double));
  if (le_cholesky(w->work, d) == LE_OK) return LE_OK;
  memset(precision, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, g->anchor, precision);
  for (size_t k = 0; k < d * d; k++)
    precision[k] = -precision[k] + w->anchor_info[k] + lambda * w->chunk_info[k];
  return LE_OK;
}
