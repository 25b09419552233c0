/* Densities, derivatives and draws of priors. */
#include "models/priors.h"

#include "models/shared.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
  case LE_PRIOR_CORRELATION:
    return (1 - 2 * nu) * M_LN2 - gsl_sf_lnbeta(nu, nu);
  default:
    return -log(scale);
  }
}

int le_prior_is_real(const le_prior *prior)
{
  return prior->kind == LE_PRIOR_NORMAL || prior->kind == LE_PRIOR_STUDENT ||
         prior->kind == LE_PRIOR_CORRELATION;
}

static int read_kind(double kind, int real, le_prior *prior)
{
  if (!le_all_codes(&kind, 1, LE_PRIOR_KINDS)) return 0;
  prior->kind = (le_prior_kind)kind;
  return le_prior_is_real(prior) == real;
}

int le_priors_read(const le_args *args, size_t n, const unsigned char *real, le_prior *prior,
                   char *message)
{
  const char *location = le_args_find(args, "prior_mean") ? "prior_mean" : "prior_location",
             *scale = le_args_find(args, "prior_sd") ? "prior_sd" : "prior_scale";
  for (size_t j = 0; j < n; j++, prior++) {
    double kind;
    if (!le_read_number(args, "prior_kind", 0, -INFINITY, n, j, &kind, message)) return 0;
    if (!read_kind(kind, !real || real[j], prior)) {
      snprintf(message, LE_MESSAGE_SIZE, "`prior_kind` of parameter %zu must be that of a %s.",
               j + 1, !real || real[j] ? "real number" : "positive number");
      return 0;
    }
    if (!le_read_number(args, location, 0, -INFINITY, n, j, &prior->location, message) ||
        !le_read_number(args, scale, 1, 0, n, j, &prior->scale, message) ||
        !le_read_number(args, "prior_shape", 1, 0, n, j, &prior->shape, message))
      return 0;
    prior->precision = 1 / prior->scale / prior->scale;
    prior->constant = constant_of(prior);
  }
  return 1;
}

le_status le_user_read(const le_args *args, size_t d, double **user, char *message)
{
  *user = NULL;
  if (!le_args_find(args, "user_scale")) return LE_OK;
  double *numbers = malloc(3 * d * sizeof *numbers);
  if (!numbers) return LE_NO_MEMORY;
  *user = numbers;
  if (!le_read_numbers(args, "user_scale", 1, 0, d, numbers, message) ||
      !le_read_numbers(args, "user_centre", 0, -INFINITY, d, numbers + d, message) ||
      !le_read_numbers(args, "user_intercept", -1, -2, d, numbers + 2 * d, message))
    return LE_BAD_ARGUMENT;
  for (size_t j = 0; j < d; j++) {
    const double at = numbers[2 * d + j];
    if (at < (double)d && at == floor(at)) continue;
    snprintf(message, LE_MESSAGE_SIZE, "`user_intercept` must be a whole number below %zu, not %g.",
             d, at);
    return LE_BAD_ARGUMENT;
  }
  return LE_OK;
}

le_status le_means_read(const le_args *args, size_t d, double **mean, char *message)
{
  *mean = NULL;
  if (!le_args_find(args, "mean_of")) return LE_OK;
  double *numbers = malloc(2 * d * sizeof *numbers);
  if (!numbers) return LE_NO_MEMORY;
  *mean = numbers;
  if (!le_read_numbers(args, "mean_of", -1, -2, d, numbers, message) ||
      !le_read_numbers(args, "mean_share", 1, 0, d, numbers + d, message))
    return LE_BAD_ARGUMENT;
  for (size_t j = 0; j < d; j++) {
    if (numbers[j] < (double)d && numbers[j] == floor(numbers[j])) continue;
    snprintf(message, LE_MESSAGE_SIZE, "`mean_of` must be a whole number below %zu, not %g.", d,
             numbers[j]);
    return LE_BAD_ARGUMENT;
  }
  return LE_OK;
}

/* ---- densities ---- */

/* The point at which the density of a location and scale family is evaluated. */
static double standardised(const le_prior *prior, double theta)
{
  return le_prior_is_real(prior) ? (theta - prior->location) / prior->scale
                              : exp(theta) / prior->scale;
}

double le_prior_log(const le_prior *prior, double theta)
{
  const double z = standardised(prior, theta), nu = prior->shape, c = prior->constant,
               jacobian = le_prior_is_real(prior) ? 0 : theta;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
  case LE_PRIOR_HALF_NORMAL:
    return c - 0.5 * z * z + jacobian;
  case LE_PRIOR_STUDENT:
  case LE_PRIOR_HALF_STUDENT:
    return c - 0.5 * (nu + 1) * log1p(z * z / nu) + jacobian;
  case LE_PRIOR_INVERSE_GAMMA:
    return c - prior->shape * theta - 1 / z;
  case LE_PRIOR_CORRELATION: /* log(1 - tanh(theta)^2), without overflow */
    return c - 2 * nu * (fabs(theta) + log1p(exp(-2 * fabs(theta))) - M_LN2);
  default:
    return c - z + jacobian;
  }
}

/* Slopes are needed at every step of a trajectory, so those of normal priors have no division. */
static double prior_slope(const le_prior *prior, double theta)
{
  if (prior->kind == LE_PRIOR_NORMAL) return (prior->location - theta) * prior->precision;
  const double z = standardised(prior, theta), nu = prior->shape, s = prior->scale;
  switch (prior->kind) {
  case LE_PRIOR_HALF_NORMAL:
    return 1 - z * z;
  case LE_PRIOR_STUDENT:
    return -(nu + 1) * z / (nu + z * z) / s;
  case LE_PRIOR_HALF_STUDENT:
    return 1 - (nu + 1) / (1 + nu / z / z); /* this form does not overflow */
  case LE_PRIOR_INVERSE_GAMMA:
    return 1 / z - prior->shape;
  case LE_PRIOR_CORRELATION:
    return -2 * nu * tanh(theta);
  default:
    return 1 - z;
  }
}

static double prior_curvature(const le_prior *prior, double theta)
{
  const double z = standardised(prior, theta), nu = prior->shape, s = prior->scale;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
    return -prior->precision;
  case LE_PRIOR_HALF_NORMAL:
    return -2 * z * z;
  case LE_PRIOR_STUDENT:
    return -(nu + 1) * (nu - z * z) / (nu + z * z) / (nu + z * z) / s / s;
  case LE_PRIOR_HALF_STUDENT:
    return -2 * (nu + 1) / (z * z / nu + 2 + nu / z / z);
  case LE_PRIOR_INVERSE_GAMMA:
    return -1 / z;
  case LE_PRIOR_CORRELATION:
    return -2 * nu / cosh(theta) / cosh(theta);
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
  double x;
  switch (prior->kind) {
  case LE_PRIOR_NORMAL:
  case LE_PRIOR_HALF_NORMAL:
    x = gsl_ran_gaussian_ziggurat(rng, s);
    break;
  case LE_PRIOR_STUDENT:
  case LE_PRIOR_HALF_STUDENT:
    x = s * gsl_ran_tdist(rng, prior->shape);
    break;
  case LE_PRIOR_INVERSE_GAMMA:
    return log(s) - log_of_positive(gsl_ran_gamma(rng, prior->shape, 1));
  case LE_PRIOR_CORRELATION:
    x = log_of_positive(gsl_ran_gamma(rng, prior->shape, 1));
    return 0.5 * (x - log_of_positive(gsl_ran_gamma(rng, prior->shape, 1)));
  default:
    x = gsl_ran_exponential(rng, s);
  }
  return le_prior_is_real(prior) ? prior->location + x : log_of_positive(fabs(x));
}

/* ---- of all parameters ---- */

size_t le_priors_dim(const void *self) { return ((const le_priors *)self)->d; }

void le_priors_log(const void *self, size_t m, const double *theta, double *value)
{
  const le_priors *p = self;
  for (size_t i = 0; i < m; i++, theta += p->d) {
    double sum = 0;
    for (size_t j = 0; j < p->d; j++) sum += le_prior_log(&p->of[j], theta[j]);
    value[i] = isnan(sum) ? -INFINITY : sum;
  }
}

void le_priors_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const le_priors *p = self;
  for (size_t i = 0; i < m; i++, theta += p->d, grad += p->d)
    for (size_t j = 0; j < p->d; j++) grad[j] = prior_slope(&p->of[j], theta[j]);
}

void le_priors_hess(const void *self, const double *theta, double *hess)
{
  const le_priors *p = self;
  for (size_t j = 0; j < p->d; j++) hess[j * p->d + j] += prior_curvature(&p->of[j], theta[j]);
}

void le_priors_draw(const void *self, const gsl_rng *rng, double *theta)
{
  const le_priors *p = self;
  for (size_t j = 0; j < p->d; j++) theta[j] = prior_draw(&p->of[j], rng);
}

void le_priors_to_user(const void *self, const double *theta, double *user)
{
  const le_priors *p = self;
  for (size_t j = 0; j < p->d; j++)
    user[j] = le_prior_is_real(&p->of[j]) ? theta[j] : exp(theta[j]);
  if (!p->user) return;
  const double *scale = p->user, *centre = scale + p->d, *intercept = centre + p->d;
  for (size_t j = 0; j < p->d; j++) user[j] /= scale[j];
  for (size_t j = 0; j < p->d; j++)
    if (intercept[j] >= 0) user[(size_t)intercept[j]] -= centre[j] * user[j];
}

double le_priors_tails(const void *self)
{
  const le_priors *p = self;
  double least = INFINITY;
  for (size_t j = 0; j < p->d; j++)
    if (p->of[j].kind == LE_PRIOR_STUDENT) least = fmin(least, p->of[j].shape);
  return least < INFINITY ? least : 0;
}

/* ---- coordinates of scales ---- */

/* theta - peak = bend(s): it is s far to the right, and -BEND s^2 far to the left, so that
 * exp(theta) has a normal tail in s. The coordinate is peak + SLOPE s, with SLOPE = bend'(0). BEND
 * and CORNER were chosen among a dozen pairs by the variance of weights for likelihoods that fall
 * as exp(-x), exp(-x^2 / 2) and exp(-x^4 / 4) with the scale x, and the prior alone. */
#define BEND 0.7
#define CORNER 0.3
#define SLOPE (1 + 0.5 * BEND * CORNER)
enum { BEND_STEPS = 60 };

static double bend(double s, double *slope)
{
  const double r = hypot(s, CORNER), w = s > 0 ? CORNER * CORNER / (r + s) : r - s;
  *slope = 1 + BEND * w * w / (2 * r);
  return s - 0.25 * BEND * (w * w - CORNER * CORNER);
}

/* Newton's iteration increases from the left to the root, because bend() is concave. */
static double unbend(double off, double *slope)
{
  double s = (off < 0 ? -sqrt(-off / BEND) : off) - CORNER;
  for (int k = 0; k < BEND_STEPS; k++) {
    const double step = (off - bend(s, slope)) / *slope;
    s += step;
    if (!(fabs(step) > 1e-13 * (1 + fabs(s)))) break;
  }
  bend(s, slope);
  return s;
}

/* 1 where exp(theta) may be near zero, -1 where it may be very large, because its density then is
 * that of the prior, else 0. */
static int bent(const le_prior *prior)
{
  switch (prior->kind) {
  case LE_PRIOR_HALF_NORMAL:
  case LE_PRIOR_HALF_STUDENT:
  case LE_PRIOR_EXPONENTIAL: return 1;
  case LE_PRIOR_INVERSE_GAMMA: return -1;
  default: return 0;
  }
}

/* How many times as far from the peak coefficient j may be as there. With G groups whose effects
 * have the standard deviation tau, the variance of their mean is v + tau^2 / G. v, from the rows,
 * is taken to be tau^2 / G at the peak. */
static double widened(const le_priors *p, size_t j, const double *peak, const double *theta)
{
  double there = 0, here = 0;
  for (size_t k = 0; p->mean && k < p->d; k++) {
    if (p->mean[k] != (double)j) continue;
    there += p->mean[p->d + k] * exp(2 * peak[k]);
    here += p->mean[p->d + k] * exp(2 * theta[k]);
  }
  return there > 0 ? sqrt((there + here) / (2 * there)) : 1;
}

double le_priors_to_normal(const void *self, const double *peak, const double *theta, double *out)
{
  const le_priors *p = self;
  double sum = 0, slope;
  for (size_t j = 0; j < p->d; j++) {
    const double off = theta[j] - peak[j];
    out[j] = theta[j];
    const int sign = bent(&p->of[j]);
    if (sign) {
      out[j] = peak[j] + sign * SLOPE * unbend(sign * off, &slope);
      sum += log(SLOPE / slope);
    } else if (p->mean) {
      const double times = widened(p, j, peak, theta);
      out[j] = peak[j] + off / times;
      sum -= log(times);
    }
  }
  return sum;
}

int le_priors_from_normal(const void *self, const double *peak, double *point)
{
  const le_priors *p = self;
  double slope;
  for (size_t j = 0; j < p->d; j++) {
    const int sign = bent(&p->of[j]);
    if (sign) point[j] = peak[j] + sign * bend(sign * (point[j] - peak[j]) / SLOPE, &slope);
  }
  for (size_t j = 0; p->mean && j < p->d; j++)
    if (!bent(&p->of[j]))
      point[j] = peak[j] + (point[j] - peak[j]) * widened(p, j, peak, point);
  return 1;
}
