/* The shape of a generalised Pareto distribution fitted to the largest importance weights. */
#ifndef LE_BASE_PARETO_H
#define LE_BASE_PARETO_H

#include <stddef.h>

/* Pareto k of log weights, by the estimator of Zhang & Stephens (2009) on the largest min(n/5, 3
 * sqrt(n)) weights, with the weak prior of Vehtari et al. (2024). Below 0.5 the weights have a
 * finite variance; above 0.7 their mean is unreliable. `work` holds n doubles. NaN if there are
 * fewer than five tail weights. */
double le_pareto_k(const double *log_weight, size_t n, double *work);

#endif
