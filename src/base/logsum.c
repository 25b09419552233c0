/* Sums of exponentials: the largest term is subtracted first, so that nothing overflows. */
#include "base/arrays.h"
#include "base/logsum.h"

#include <math.h>

static double largest(const double *x, size_t n)
{
  double top = -INFINITY;
  for (size_t i = 0; i < n; i++)
    if (x[i] > top) top = x[i];
  return top;
}

double le_logsumexp(const double *x, size_t n)
{
  const double top = largest(x, n);
  if (!isfinite(top)) return top;
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += exp(x[i] - top);
  return top + log(sum);
}

double le_logmeanexp(const double *x, size_t n)
{
  return le_logsumexp(x, n) - log((double)n);
}

double le_normalise(const double *x, size_t n, double *weight)
{
  const double total = le_logsumexp(x, n);
  for (size_t i = 0; i < n; i++) weight[i] = isfinite(total) ? exp(x[i] - total) : 0;
  return total;
}

double le_effective_size(const double *x, size_t n, double scale, const double *weight,
                         double least)
{
  enum { TOGETHER = 64 };
  double top = -INFINITY, value[TOGETHER], sum = 0, square = 0;
  for (size_t i = 0; i < n; i++)
    if (x[i] > top && (!weight || weight[i] >= least)) top = x[i];
  if (!isfinite(top)) return 0;
  for (size_t first = 0; first < n; first += TOGETHER) {
    const size_t here = n - first < TOGETHER ? n - first : TOGETHER;
    for (size_t i = 0; i < here; i++) value[i] = fmin(x[first + i] - top, 0);
    le_arrays(le_simd_level())->exp(here, scale, 0, value, value);
    for (size_t i = 0; i < here; i++) {
      if (x[first + i] == -INFINITY || (weight && weight[first + i] < least)) continue;
      sum += value[i];
      square += value[i] * value[i];
    }
  }
  return sum * sum / square;
}

double le_logharmonic(const double *x, size_t chains, size_t rounds, double *se)
{
  double top = -INFINITY, mean = 0, square = 0;
  for (size_t k = 0; k < chains * rounds; k++)
    if (-x[k] > top) top = -x[k];
  /* values of one chain are correlated, so the standard error uses means of chains */
  for (size_t i = 0; i < chains; i++) {
    double chain = 0;
    for (size_t r = 0; r < rounds; r++) chain += exp(-x[r * chains + i] - top) / (double)rounds;
    mean += chain / (double)chains;
    square += chain * chain / (double)chains;
  }
  *se = chains > 1 ? sqrt(fmax(square - mean * mean, 0) / ((double)chains - 1)) / mean : NAN;
  return -(top + log(mean));
}
