/* Resampling schemes: ancestors of m offspring for n weighted particles. */
#ifndef LE_CORE_RESAMPLE_H
#define LE_CORE_RESAMPLE_H

#include <gsl/gsl_rng.h>
#include <stddef.h>

/* Their words, in this order. */
#define LE_RESAMPLINGS "systematic stratified multinomial residual"
typedef enum le_resampling {
  LE_SYSTEMATIC,
  LE_STRATIFIED,
  LE_MULTINOMIAL,
  LE_RESIDUAL
} le_resampling;

/* `weight` sums to one; offspring j descends from ancestor[j], in increasing order.  `work` holds n doubles. */
void le_resample(le_resampling scheme, size_t n, const double *weight, size_t m, const gsl_rng *rng,
                 double *work, size_t *ancestor);
/* Whether particles whose effective size is this share of them are to be resampled: when it has fallen below the threshold, always at 1 and
 * never at 0. A step that was chosen to keep just the threshold's share has not fallen below it. */
int le_resampling_due(double share, double threshold);
/* The scheme of that name, or -1. */
int le_resampling_named(const char *name);

#endif
