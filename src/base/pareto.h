/* A generalised Pareto distribution fitted to the largest importance weights. */
#pragma once

#include <stddef.h>

typedef struct le_pareto {
  double k;
  /* The part of the mean weight, relative to it, that lies in weights above the quantile
   * 1 - 1/n of the fitted distribution: too few draws have met these weights to show how much
   * they contribute. Each counts by its difference from the mean. 0 where there is no fit. */
  double unseen;
} le_pareto;

/* Pareto k of log weights, by the estimator of Zhang & Stephens (2009) on the largest min(n/5, 3
 * sqrt(n)) weights, with the weak prior of Vehtari et al. (2024). Below 0.5 the weights have a
 * finite variance; above 0.7 their mean is unreliable. `work` holds 2n doubles. NaN if there are
 * fewer than five tail weights. */
le_pareto le_pareto_tail(const double *log_weight, size_t n, double *work);
