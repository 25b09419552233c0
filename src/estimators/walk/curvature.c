/* The precision matrix of the posterior from second derivatives at the anchor. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"

#include <string.h>

/* Weight of the observed information in the metric of a model that also has the information of
 * the completed data, which is never indefinite. */
static const double OBSERVED = 0.7;

void le_walk_observed_precision(const walk *w, double *precision)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  memset(precision, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, g->anchor, precision);
  for (size_t k = 0; k < d * d; k++)
    precision[k] = -precision[k] - g->hess[k] - w->target.lambda * g->chunk_hess[k];
}

/* For models with several modes the observed information is blended with the information of the
 * completed data. If the blend is still indefinite, the completed data's is used alone. */
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
