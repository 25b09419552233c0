/* Resampling schemes: choose the ancestors of m offspring among n weighted particles. */
#pragma once

#include <gsl/gsl_rng.h>
#include <stddef.h>

/* The names of the schemes, in the order of the enum. */
#define LE_RESAMPLINGS "systematic stratified multinomial residual"
typedef enum le_resampling {
  LE_SYSTEMATIC,
  LE_STRATIFIED,
  LE_MULTINOMIAL,
  LE_RESIDUAL
} le_resampling;

/* `weight` sums to one; offspring j descends from ancestor[j], in increasing order. `work` holds n
 * doubles. */
void le_resample(le_resampling scheme, size_t n, const double *weight, size_t m, const gsl_rng *rng,
                 double *work, size_t *ancestor);
/* Whether to resample, given the effective sample size as a share of the particles: yes if it is
 * below the threshold; always at threshold 1 and never at 0. A step chosen to keep exactly the
 * threshold's share is not below it. */
int le_resampling_due(double share, double threshold);
