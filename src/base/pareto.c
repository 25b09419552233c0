/* The estimator of Zhang & Stephens: posterior mean of the Pareto scale from the profile likelihood
 * on a grid; the shape follows from the scale. */
#include "base/pareto.h"

#include <gsl/gsl_sort_double.h>
#include <math.h>

/* Mean of log(1 - b x), which is minus the shape for this b. */
static double mean_log1m(const double *x, size_t n, double b)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += log1p(-b * x[i]);
  return sum / (double)n;
}

double le_pareto_k(const double *log_weight, size_t n, double *work)
{
  for (size_t i = 0; i < n; i++) work[i] = log_weight[i];
  gsl_sort(work, 1, n);
  double tail_size = 3 * sqrt((double)n);
  if (tail_size > (double)n / 5) tail_size = (double)n / 5;
  const size_t tail = (size_t)ceil(tail_size);
  if (tail < 5 || tail >= n) return NAN;

  const double top = work[n - 1], threshold = exp(work[n - tail - 1] - top);
  double *x = work + n - tail;
  for (size_t i = 0; i < tail; i++) x[i] = exp(x[i] - top) - threshold;
  const double quarter = x[(size_t)floor((double)tail / 4 + 0.5) - 1], largest = x[tail - 1];
  if (!(largest > 0) || !(quarter > 0)) return largest > 0 ? INFINITY : -INFINITY;

  enum { PRIOR = 3, GRID = 30 };
  const size_t grid = GRID + (size_t)floor(sqrt((double)tail));
  double best = -INFINITY, total = 0, mean = 0;
  /* two passes: first the largest profile log-likelihood, then the weighted mean of b */
  for (int pass = 0; pass < 2; pass++)
    for (size_t j = 1; j <= grid; j++) {
      const double b = 1 / largest +
                       (1 - sqrt((double)grid / ((double)j - 0.5))) / (PRIOR * quarter);
      const double shape = mean_log1m(x, tail, b);
      const double profile = (double)tail * (log(-b / shape) - shape - 1);
      if (!isfinite(profile)) continue;
      if (pass == 0) {
        if (profile > best) best = profile;
      } else {
        const double weight = exp(profile - best);
        total += weight;
        mean += weight * b;
      }
    }
  if (!(total > 0)) return INFINITY;
  const double k = mean_log1m(x, tail, mean / total), m = (double)tail;
  return (k * m + 5) / (m + 10); /* prior: ten pseudo-observations at 0.5 */
}
