/* Resampling. All four schemes pass once along the cumulative weights with increasing points.
 * Multinomial points are made in increasing order from exponential spacings (Devroye 1986, V.3), so
 * no sort is needed. */
#include "core/resample.h"

#include <math.h>
#include <string.h>

/* rounding error of log weights that are as large as the log-likelihood of many rows */
static const double ROUNDING = 1e-6;

int le_resampling_due(double share, double threshold)
{
  return threshold >= 1 || (threshold > 0 && share < threshold * (1 - ROUNDING));
}

/* Offspring `first`..`last`-1 for increasing points in (0, 1); rounding at the end goes to the last
 * particle with positive weight. */
static void walk(size_t n, const double *weight, size_t count, le_resampling scheme,
                 const gsl_rng *rng, size_t *ancestor)
{
  double total = 0;
  size_t heaviest = 0;
  for (size_t i = 0; i < n; i++) {
    total += weight[i];
    if (weight[i] > 0) heaviest = i;
  }
  double cumulated = weight[0], point = 0, tail = 1;
  size_t i = 0;
  const double common = scheme == LE_SYSTEMATIC ? gsl_rng_uniform_pos(rng) : 0;
  for (size_t j = 0; j < count; j++) {
    if (scheme == LE_MULTINOMIAL) {
      /* the next order statistic of uniforms: 1 - prod U^(1 / remaining) */
      tail *= pow(gsl_rng_uniform_pos(rng), 1 / (double)(count - j));
      point = (1 - tail) * total;
    } else {
      const double u = scheme == LE_SYSTEMATIC ? common : gsl_rng_uniform_pos(rng);
      point = ((double)j + u) / (double)count * total;
    }
    while (cumulated <= point && i < heaviest) cumulated += weight[++i];
    ancestor[j] = i;
  }
}

void le_resample(le_resampling scheme, size_t n, const double *weight, size_t m, const gsl_rng *rng,
                 double *work, size_t *ancestor)
{
  if (scheme != LE_RESIDUAL) {
    walk(n, weight, m, scheme, rng, ancestor);
    return;
  }
  /* the whole part of each expected number is certain, the rest is multinomial; numbers of
   * offspring are computed first, so that ancestors come out in order */
  size_t sure = 0;
  double rest = 0;
  for (size_t i = 0; i < n; i++) {
    const double expected = weight[i] * (double)m;
    sure += (size_t)floor(expected);
    work[i] = expected - floor(expected);
    rest += work[i];
  }
  const size_t random = m > sure ? m - sure : 0;
  if (random > 0 && rest > 0) walk(n, work, random, LE_MULTINOMIAL, rng, ancestor + sure);
  size_t j = 0, extra = sure;
  /* merge in place: the random part is at the end, already in order */
  for (size_t i = 0; i < n; i++) {
    for (size_t c = (size_t)floor(weight[i] * (double)m); c > 0 && j < extra; c--)
      ancestor[j++] = i;
    while (extra < sure + random && ancestor[extra] == i) {
      ancestor[j++] = i;
      extra++;
    }
  }
}
