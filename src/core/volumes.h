/* The evidence from the points of nested sampling.
 *
 * The k-th lowest likelihood leaves the prior volume X_k, log X_k = sum_{j <= k} log t_j. Here t_j
 * is the largest of live_j uniforms, with E log t_j = -1 / live_j. These means give the estimates;
 * draws of the t_j give the uncertainty. */
#pragma once

#include "base/status.h"

#include <gsl/gsl_rng.h>

typedef struct le_volumes {
  double log_evidence; /* trapezoid rule */
  /* step functions below and above: sums of L_k (X_k - X_(k+1)) and of L_k (X_(k-1) - X_k) */
  double lower, upper;
  double published;   /* sum of L_k (X_k - X_(k+1)), without the points that were live at the end */
  double information; /* information gain of the posterior over the prior, in nats */
  double mean, se;    /* of log evidence over simulated volumes */
} le_volumes;

/* log_lik is increasing; live[k] is the number of live points when point k was removed; the last
 * `rest` points were live at the end. Fills log_volume[n] and the log posterior weights
 * log_weight[n], which sum to the evidence; `work` holds n doubles. */
void le_volumes_sum(size_t n, const double *log_lik, const double *live, size_t rest,
                    size_t simulations, const gsl_rng *rng, double *log_volume, double *log_weight,
                    double *work, le_volumes *volumes);
