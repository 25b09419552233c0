/* Densities, derivatives and draws of the priors of a regression. */
#include "models/glm/priors.h"

#include "models/shared.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdio.h>

/* ---- settings ---- */

static double constant_of(const le_prior *prior)
{
  const double nu = prior->shape, scale = prior->scale;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
    return -log(scale) - HALF_LOG_2PI;
  case LE_PRIOR_HALF_NORMAL:
    return M_LN2 - log(scale) - HALF_LOG_2PI;
  case LE_PRIOR_STUDENT:
  case LE_PRIOR_HALF_STUDENT:
    return gsl_sf_lngamma(0.5 * nu + 0.5) - gsl_sf_lngamma(0.5 * nu) -
           0.5 * (log(nu) + log(M_PI)) - log(scale) +
           (prior->kind == LE_PRIOR_HALF_STUDENT ? M_LN2 : 0);
  case LE_PRIOR_INVERSE_GAMMA:
    return prior->shape * log(scale) - gsl_sf_lngamma(prior->shape);
  default:
    return -log(scale);
  }
}

static int is_real(le_prior_kind kind)
{
  return kind == LE_PRIOR_NORMAL || kind == LE_PRIOR_STUDENT;
}

static int kind_fits(double kind, int real)
{
  return kind >= 0 && kind < LE_PRIOR_KINDS && kind == floor(kind) &&
         is_real((le_prior_kind)kind) == real;
}

int le_priors_read(const le_args *args, size_t n, const unsigned char *real, le_prior *prior,
                   double *numbers, char *message)
{
  if (!le_read_numbers(args, "prior_kind", 0, -INFINITY, n, numbers, message)) return 0;
  for (size_t j = 0; j < n; j++) {
    if (!kind_fits(numbers[j], real[j])) {
      snprintf(message, LE_MESSAGE_SIZE, "`prior_kind` of parameter %zu must be that of a %s.",
               j + 1, real[j] ? "real number" : "positive number");
      return 0;
    }
    prior[j].kind = (le_prior_kind)numbers[j];
  }
  if (!le_read_numbers(args, "prior_location", 0, -INFINITY, n, numbers, message)) return 0;
  for (size_t j = 0; j < n; j++) prior[j].location = numbers[j];
  if (!le_read_numbers(args, "prior_scale", 1, 0, n, numbers, message)) return 0;
  for (size_t j = 0; j < n; j++) prior[j].scale = numbers[j];
  if (!le_read_numbers(args, "prior_shape", 1, 0, n, numbers, message)) return 0;
  for (size_t j = 0; j < n; j++) {
    prior[j].shape = numbers[j];
    prior[j].constant = constant_of(&prior[j]);
  }
  return 1;
}

/* ---- densities ---- */

/* The point at which the density of a location and scale family is evaluated. */
static double standardised(const le_prior *prior, double theta)
{
  return is_real(prior->kind) ? (theta - prior->location) / prior->scale
                              : exp(theta) / prior->scale;
}

double le_prior_log(const le_prior *prior, double theta)
{
  const double z = standardised(prior, theta), nu = prior->shape, c = prior->constant;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
    return c - 0.5 * z * z;
  case LE_PRIOR_HALF_NORMAL:
    return c - 0.5 * z * z + theta;
  case LE_PRIOR_STUDENT:
    return c - 0.5 * (nu + 1) * log1p(z * z / nu);
  case LE_PRIOR_HALF_STUDENT:
    return c - 0.5 * (nu + 1) * log1p(z * z / nu) + theta;
  case LE_PRIOR_INVERSE_GAMMA:
    return c - prior->shape * theta - 1 / z;
  default:
    return c - z + theta;
  }
}

static double prior_slope(const le_prior *prior, double theta)
{
  const double z = standardised(prior, theta), nu = prior->shape, s = prior->scale;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
    return -z / s;
  case LE_PRIOR_HALF_NORMAL:
    return 1 - z * z;
  case LE_PRIOR_STUDENT:
    return -(nu + 1) * z / (nu + z * z) / s;
  case LE_PRIOR_HALF_STUDENT:
    return 1 - (nu + 1) / (1 + nu / z / z); /* this form does not overflow */
  case LE_PRIOR_INVERSE_GAMMA:
    return 1 / z - prior->shape;
  default:
    return 1 - z;
  }
}

static double prior_curvature(const le_prior *prior, double theta)
{
  const double z = standardised(prior, theta), nu = prior->shape, s = prior->scale;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
    return -1 / s / s;
  case LE_PRIOR_HALF_NORMAL:
    return -2 * z * z;
  case LE_PRIOR_STUDENT:
    return -(nu + 1) * (nu - z * z) / (nu + z * z) / (nu + z * z) / s / s;
  case LE_PRIOR_HALF_STUDENT:
    return -2 * (nu + 1) / (z * z / nu + 2 + nu / z / z);
  case LE_PRIOR_INVERSE_GAMMA:
    return -1 / z;
  default:
    return -z;
  }
}

/* ---- draws ---- */

/* Draws so near to zero that their logarithm is not finite become the smallest positive number. */
static double log_of_positive(double x) { return log(fmax(x, 2.2250738585072014e-308)); }

static double prior_draw(const le_prior *prior, const gsl_rng *rng)
{
  const double s = prior->scale;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
    return prior->location + gsl_ran_gaussian_ziggurat(rng, s);
  case LE_PRIOR_STUDENT:
    return prior->location + s * gsl_ran_tdist(rng, prior->shape);
  case LE_PRIOR_HALF_NORMAL:
    return log_of_positive(fabs(gsl_ran_gaussian_ziggurat(rng, s)));
  case LE_PRIOR_HALF_STUDENT:
    return log_of_positive(fabs(s * gsl_ran_tdist(rng, prior->shape)));
  case LE_PRIOR_INVERSE_GAMMA:
    return log(s) - log_of_positive(gsl_ran_gamma(rng, prior->shape, 1));
  default:
    return log_of_positive(gsl_ran_exponential(rng, s));
  }
}

/* ---- of all parameters ---- */

void le_priors_log(const le_prior *prior, size_t d, size_t m, const double *theta, double *value)
{
  for (size_t i = 0; i < m; i++) {
    double sum = 0;
    for (size_t j = 0; j < d; j++) sum += le_prior_log(&prior[j], theta[i * d + j]);
    value[i] = isnan(sum) ? -INFINITY : sum;
  }
}

void le_priors_grad(const le_prior *prior, size_t d, size_t m, const double *theta, double *grad)
{
  for (size_t a = 0; a < m * d; a++) grad[a] = prior_slope(&prior[a % d], theta[a]);
}

void le_priors_hess(const le_prior *prior, size_t d, const double *theta, double *hess)
{
  for (size_t j = 0; j < d; j++) hess[j * d + j] += prior_curvature(&prior[j], theta[j]);
}

void le_priors_draw(const le_prior *prior, size_t d, const gsl_rng *rng, double *theta)
{
  for (size_t j = 0; j < d; j++) theta[j] = prior_draw(&prior[j], rng);
}

double le_priors_tails(const le_prior *prior, size_t d)
{
  double least = 0;
  for (size_t j = 0; j < d; j++)
    if (prior[j].kind == LE_PRIOR_STUDENT && (least == 0 || prior[j].shape < least))
      least = prior[j].shape;
  return least;
}
