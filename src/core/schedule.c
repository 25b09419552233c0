/* The effective size falls as the increment grows, so the root is bracketed by (0, 1 - lambda] and bisected. */
#include "core/schedule.h"

#include "base/logsum.h"

#include <math.h>

void le_schedule_linear(size_t steps, double *lambda)
{
  for (size_t t = 0; t <= steps; t++) lambda[t] = (double)t / (double)steps;
}

void le_schedule_sigmoidal(size_t steps, double delta, double *lambda)
{
  const double low = 1 / (1 + exp(delta)), high = 1 / (1 + exp(-delta));
  for (size_t t = 0; t <= steps; t++) {
    const double s = 1 / (1 + exp(-delta * (2 * (double)t / (double)steps - 1)));
    lambda[t] = (s - low) / (high - low);
  }
  lambda[0] = 0;
  lambda[steps] = 1;
}

le_status le_schedule_adaptive(const double *log_lik, size_t n, double target, double lambda, double *increment)
{
  const double rest = 1 - lambda;
  size_t possible = 0;
  for (size_t i = 0; i < n; i++) possible += log_lik[i] > -INFINITY;
  if (possible == 0) return LE_ALL_IMPOSSIBLE;
  /* a goal that the possible ones cannot reach falls in proportion */
  if (target >= (double)possible) target *= (double)possible / (double)n;
  if (le_effective_size(log_lik, n, rest) >= target) {
    *increment = rest;
    return LE_OK;
  }
  /* bisect in the logarithm: the first increments can be many orders of magnitude below one */
  double low = log(1e-300), high = log(rest);
  for (int i = 0; i < 200 && high - low > 1e-10; i++) {
    const double middle = low < -60 && i < 1 ? -60 : 0.5 * (low + high);
    if (le_effective_size(log_lik, n, exp(middle)) >= target)
      low = middle;
    else
      high = middle;
  }
  *increment = exp(low);
  return lambda + *increment > lambda ? LE_OK : LE_STALLED;
}
