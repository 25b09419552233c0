/* The estimator of Zhang & Stephens: posterior mean of the Pareto scale from the profile likelihood
 * on a grid; the shape follows from the scale. */
#include "base/pareto.h"

#include "base/sort.h"

#include <math.h>

/* Profiles of so many points of the grid are kept; there are more with over 10^7 weights only. */
enum { PROFILES_KEPT = 128 };

/* Mean of log(1 - b x), which is minus the shape for this b. */
static double mean_log1m(const double *x, size_t n, double b)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += log1p(-b * x[i]);
  return sum / (double)n;
}

/* The profile log-likelihood at this b. */
static double profile_at(const double *x, size_t n, double b)
{
  const double shape = mean_log1m(x, n, b);
  return (double)n * (log(-b / shape) - shape - 1);
}

/* The mean of the weights above the quantile 1 - 1/n, times 1/n, over the mean of all weights. The
 * tail has `tail` weights above the threshold; `sum` is that of all weights. A shape near one or
 * above, where the mean is infinite, is taken for SHAPE_MOST. */
static double unseen_part(double k, double scale, double tail, double threshold, double sum,
                          double n)
{
  static const double SHAPE_MOST = 0.95, SHAPE_LEAST = 1e-6;
  if (k > SHAPE_MOST) k = SHAPE_MOST;
  const double excess = fabs(k) < SHAPE_LEAST ? scale * log(tail)
                                              : scale / k * (pow(tail, k) - 1),
               beyond = threshold + excess + (scale + k * excess) / (1 - k),
               part = (beyond - sum / n) / sum;
  return part > 0 ? part : 0;
}

le_pareto le_pareto_tail(const double *log_weight, size_t n, double *work)
{
  for (size_t i = 0; i < n; i++) work[i] = log_weight[i];
  le_sort(work, n, work + n);
  double tail_size = 3 * sqrt((double)n);
  if (tail_size > (double)n / 5) tail_size = (double)n / 5;
  const size_t tail = (size_t)ceil(tail_size);
  if (tail < 5 || tail >= n) return (le_pareto){NAN, 0};

  const double top = work[n - 1], threshold = exp(work[n - tail - 1] - top);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += exp(work[i] - top);
  double *x = work + n - tail;
  for (size_t i = 0; i < tail; i++) x[i] = exp(x[i] - top) - threshold;
  const double quarter = x[(size_t)floor((double)tail / 4 + 0.5) - 1], largest = x[tail - 1];
  if (!(largest > 0) || !(quarter > 0))
    return (le_pareto){largest > 0 ? INFINITY : -INFINITY, 0};

  enum { PRIOR = 3, GRID = 30 };
  const size_t grid = GRID + (size_t)floor(sqrt((double)tail));
  double best = -INFINITY, total = 0, b_mean = 0, kept[PROFILES_KEPT];
  /* two passes: first the largest profile log-likelihood, then the weighted mean of b */
  for (int pass = 0; pass < 2; pass++)
    for (size_t j = 1; j <= grid; j++) {
      const double b = 1 / largest +
                       (1 - sqrt((double)grid / ((double)j - 0.5))) / (PRIOR * quarter);
      const int known = pass == 1 && j <= PROFILES_KEPT;
      const double profile = known ? kept[j - 1] : profile_at(x, tail, b);
      if (j <= PROFILES_KEPT) kept[j - 1] = profile;
      if (!isfinite(profile)) continue;
      if (pass == 0) {
        if (profile > best) best = profile;
      } else {
        const double weight = exp(profile - best);
        total += weight;
        b_mean += weight * b;
      }
    }
  if (!(total > 0)) return (le_pareto){INFINITY, 0};
  b_mean /= total;
  const double shape = mean_log1m(x, tail, b_mean), m = (double)tail,
               k = (shape * m + 5) / (m + 10); /* prior: ten pseudo-observations at 0.5 */
  return (le_pareto){k, unseen_part(k, -shape / b_mean, m, threshold, sum, (double)n)};
}
