/* The next annealing exponent. The effective sample size falls as the increment grows, so the root
 * is bracketed by (0, 1 - lambda]. */
#include "core/schedule.h"

#include "base/logsum.h"

#include <math.h>

static const double NEAR = 2, EXACT = 1e-10;

le_status le_schedule_adaptive(const double *log_lik, const double *weight, size_t n,
                               double target, double lambda, double *increment)
{
  const double rest = 1 - lambda;
  double least = 0;
  size_t count = 0, possible = 0;
  for (size_t i = 0; weight && i < n; i++) least += LE_WEIGHT_LOST * weight[i] / (double)n;
  for (size_t i = 0; i < n; i++) {
    if (weight && weight[i] < least) continue;
    count++;
    possible += log_lik[i] > -INFINITY;
  }
  if (possible == 0) return LE_ALL_IMPOSSIBLE;
  target *= (double)count / (double)n;
  /* reduce a target that particles of positive likelihood are too few to reach */
  if (target >= (double)possible) target *= (double)possible / (double)count;
  if (le_effective_size(log_lik, n, rest, weight, least) >= target) {
    *increment = rest;
    return LE_OK;
  }
  /* The search is on the log scale, because the first increments can be many orders of magnitude
   * below one. Bisection until the root is near, then false position; the value at the end that
   * stays is halved (Illinois method). Secants aim above the target by the tolerance. */
  double low = log(1e-300), high = log(rest), over = NAN, under = NAN;
  for (int i = 0, side = 0; i < 200 && high - low > EXACT; i++) {
    double middle = low < -60 && i < 1 ? -60 : 0.5 * (low + high);
    if (high - low < NEAR && over > 0 && under < 0)
      middle = low + (high - low) * over / (over - under);
    const double size = le_effective_size(log_lik, n, exp(middle), weight, least),
                 beyond = size / target - (1 + EXACT);
    if (beyond >= 0) {
      if (side > 0) under /= 2;
      low = middle;
      over = beyond;
      side = 1;
    } else {
      if (side < 0) over /= 2;
      high = middle;
      under = beyond;
      side = -1;
    }
    if (fabs(beyond) < EXACT) low = high = middle;
  }
  *increment = exp(low);
  return lambda + *increment > lambda ? LE_OK : LE_STALLED;
}
