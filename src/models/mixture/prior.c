/* The prior of a mixture, and the conversion of log-ratios to weights.
 *
 * The Jacobian turns the Dirichlet exponents concentration - 1 into concentration, for all K
 * weights, and the log of the inverse gamma density of sigma^2 into -shape u - rate exp(-u). */
#include "models/mixture/parts.h"

#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>

double le_mixture_relative_weights(const mixture *model, const double *theta, double *out,
                                   double *sum)
{
  const size_t last = model->components - 1;
  double top = 0;
  for (size_t k = 0; k < last; k++) top = theta[k] > top ? theta[k] : top;
  le_arrays(model->simd)->exp(last, 1, -top, theta, out);
  out[last] = top > 0 ? exp(-top) : 1;
  *sum = 0;
  for (size_t k = 0; k <= last; k++) *sum += out[k];
  return top;
}

void le_mixture_weights(const mixture *model, const double *theta, double *out)
{
  double sum;
  (void)le_mixture_relative_weights(model, theta, out, &sum);
  for (size_t k = 0; k < model->components; k++) out[k] /= sum;
}

void le_mixture_log_weights(const mixture *model, const double *theta, double *out)
{
  const size_t last = model->components - 1;
  double sum;
  const double top = le_mixture_relative_weights(model, theta, out, &sum), base = top + log(sum);
  for (size_t k = 0; k < last; k++) out[k] = theta[k] - base;
  out[last] = -base;
}

/* exp(-u) of the first min(n, TOGETHER) numbers; returns how many. */
static size_t negative_exp(const mixture *model, size_t n, const double *u, double *out)
{
  const size_t here = n < TOGETHER ? n : TOGETHER;
  le_arrays(model->simd)->exp(here, -1, 0, u, out);
  return here;
}

void le_mixture_log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const mixture *model = self;
  size_t components = model->components, n = components * model->dimensions, d = dim(self);
  double weight[MOST_COMPONENTS], precision[TOGETHER];
  for (size_t i = 0; i < m; i++, theta += d) {
    const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
    double density = model->weight_constant;
    le_mixture_log_weights(model, theta, weight);
    for (size_t k = 0; k < components; k++) density += model->concentration * weight[k];
    for (size_t from = 0; from < n; from += TOGETHER) {
      const size_t here = negative_exp(model, n - from, u + from, precision);
      for (size_t a = from; a < from + here; a++)
        density += model->scale_constant - HALF_LOG_2PI - 0.5 * t[a] * t[a] - model->shape * u[a] -
                   model->rate[a] * precision[a - from];
    }
    value[i] = density < INFINITY ? density : -INFINITY; /* NaN is treated as impossible */
  }
}

/* rate exp(-u), limited so that it is finite at any point. */
static double limited(double precision) { return fmin(precision, 1e300); }

void le_mixture_log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const mixture *model = self;
  size_t components = model->components, n = components * model->dimensions, d = dim(self);
  double weight[MOST_COMPONENTS], precision[TOGETHER];
  for (size_t i = 0; i < m; i++, theta += d, grad += d) {
    const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
    le_mixture_weights(model, theta, weight);
    for (size_t k = 0; k + 1 < components; k++)
      grad[k] = model->concentration * (1 - (double)components * weight[k]);
    for (size_t from = 0; from < n; from += TOGETHER) {
      const size_t here = negative_exp(model, n - from, u + from, precision);
      for (size_t a = from; a < from + here; a++) {
        grad[offsets_at(model) + a] = -t[a];
        grad[scales_at(model) + a] = limited(model->rate[a] * precision[a - from]) - model->shape;
      }
    }
  }
}

void le_mixture_add_weight_curvature(const mixture *model, const double *theta, double count,
                                     double *hess)
{
  size_t last = model->components - 1, d = dim(model);
  double weight[MOST_COMPONENTS];
  le_mixture_weights(model, theta, weight);
  for (size_t k = 0; k < last; k++)
    for (size_t l = 0; l < last; l++)
      hess[k * d + l] += count * (k == l ? weight[k] * (weight[k] - 1) : weight[k] * weight[l]);
}

void le_mixture_log_prior_hess(const void *self, const double *theta, double *hess)
{
  const mixture *model = self;
  size_t n = model->components * model->dimensions, d = dim(self);
  le_mixture_add_weight_curvature(model, theta, (double)model->components * model->concentration,
                                  hess);
  for (size_t a = offsets_at(model); a < offsets_at(model) + n; a++) hess[a * d + a] -= 1;
  for (size_t a = scales_at(model); a < scales_at(model) + n; a++)
    hess[a * d + a] -= limited(model->rate[a - scales_at(model)] * exp(-theta[a]));
}

void le_mixture_draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const mixture *model = self;
  size_t last = model->components - 1, n = model->components * model->dimensions;
  if (last > 0) {
    for (size_t k = 0; k < last; k++) theta[k] = le_draw_log_gamma(rng, model->concentration);
    double reference = le_draw_log_gamma(rng, model->concentration);
    for (size_t k = 0; k < last; k++) theta[k] -= reference;
  }
  for (size_t a = 0; a < n; a++) {
    theta[offsets_at(model) + a] = gsl_ran_gaussian_ziggurat(rng, 1);
    theta[scales_at(model) + a] = log(model->rate[a]) - le_draw_log_gamma(rng, model->shape);
  }
}
