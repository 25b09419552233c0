/* What the points of nested sampling say about the evidence (math.md 3, restated).
 *
 * The k-th lowest likelihood leaves the prior volume X_k, log X_k = sum_{j <= k} log t_j, where t_j, the largest of as
 * many uniforms as points were live, has E log t_j = -1 / live_j.  Those means give the estimates, draws of the t_j the
 * uncertainty. */
#ifndef LE_CORE_VOLUMES_H
#define LE_CORE_VOLUMES_H

#include "base/status.h"

#include <gsl/gsl_rng.h>

typedef struct le_volumes {
  double log_evidence; /* trapezoid rule */
  double lower, upper; /* step functions below and above: sum of increments times X_k; of L_k (X_(k-1) - X_k) */
  double published;    /* sum of L_k (X_k - X_(k+1)) without the points that were live at the end */
  double information;  /* of the posterior against the prior, nats */
  double mean, se;     /* of log evidence over simulated volumes */
} le_volumes;

/* log_lik increasing, live[k] points when the k-th died, of which the last `rest` were live at the end.  Fills
 * log_volume[n] and the log posterior weights log_weight[n], which sum to the evidence; `work` holds n doubles. */
void le_volumes_sum(size_t n, const double *log_lik, const double *live, size_t rest,
                    size_t simulations, const gsl_rng *rng, double *log_volume, double *log_weight,
                    double *work, le_volumes *volumes);

#endif
