/* The evidence of nested sampling from likelihoods and prior volumes. */
#include "core/volumes.h"

#include "base/logsum.h"

#include <math.h>

/* log(exp(a) - exp(b)), a >= b */
static double log_difference(double a, double b)
{
  if (b == -INFINITY) return a;
  return a > b ? a + log(-expm1(b - a)) : -INFINITY;
}

/* Trapezoid weights: a point represents half of the volume on either side; the last point
 * represents all remaining volume. */
static void trapezoid(size_t n, const double *log_lik, const double *log_volume, double *log_weight)
{
  for (size_t k = 0; k < n; k++) {
    const double above = k > 0 ? log_volume[k - 1] : 0,
                 below = k + 1 < n ? log_volume[k + 1] : -INFINITY;
    double width = log_difference(above, below) - M_LN2;
    /* the outer half of the first shell belongs to the first point, the inner half of the last
     * volume to the last */
    if (k == 0) width = log(exp(width) + 0.5 * -expm1(log_volume[0]));
    if (k + 1 == n) width = log_volume[n - 1] + log(1 + 0.5 * expm1(above - log_volume[n - 1]));
    log_weight[k] = log_lik[k] + width;
  }
}

/* The sum over the first `used` points by a step function: the step of a point is the shell above
 * it if `upper`, otherwise the shell below it. The last step is all of the volume there. */
static double step_sum(size_t n, size_t used, int upper, const double *log_lik,
                       const double *log_volume, double *work)
{
  for (size_t k = 0; k < used; k++) {
    const double above = k > 0 ? log_volume[k - 1] : 0,
                 inner = k + 1 == n ? -INFINITY : log_volume[upper ? k : k + 1];
    work[k] = log_lik[k] + log_difference(upper ? above : log_volume[k], inner);
  }
  return le_logsumexp(work, used);
}

static void simulate(size_t n, const double *log_lik, const double *live, size_t simulations,
                     const gsl_rng *rng, double *log_volume, double *work, le_volumes *volumes)
{
  double mean = 0, square = 0;
  for (size_t s = 0; s < simulations; s++) {
    double volume = 0;
    for (size_t k = 0; k < n; k++)
      log_volume[k] = volume += log(gsl_rng_uniform_pos(rng)) / live[k];
    trapezoid(n, log_lik, log_volume, work);
    const double estimate = le_logsumexp(work, n), gap = estimate - mean;
    mean += gap / (double)(s + 1);
    square += gap * (estimate - mean);
  }
  volumes->mean = simulations ? mean : NAN;
  volumes->se = simulations > 1 ? sqrt(square / (double)(simulations - 1)) : NAN;
}

void le_volumes_sum(size_t n, const double *log_lik, const double *live, size_t rest,
                    size_t simulations, const gsl_rng *rng, double *log_volume, double *log_weight,
                    double *work, le_volumes *volumes)
{
  simulate(n, log_lik, live, simulations, rng, log_volume, work, volumes);
  double volume = 0;
  for (size_t k = 0; k < n; k++) log_volume[k] = volume -= 1 / live[k];
  volumes->upper = step_sum(n, n, 1, log_lik, log_volume, work);
  volumes->lower = step_sum(n, n, 0, log_lik, log_volume, work);
  volumes->published = rest < n ? step_sum(n, n - rest, 0, log_lik, log_volume, work)
                                : -INFINITY;
  trapezoid(n, log_lik, log_volume, log_weight);
  volumes->log_evidence = le_logsumexp(log_weight, n);
  volumes->information = 0;
  for (size_t k = 0; k < n; k++)
    if (log_weight[k] > -INFINITY)
      volumes->information += exp(log_weight[k] - volumes->log_evidence) *
                              (log_lik[k] - volumes->log_evidence);
}
