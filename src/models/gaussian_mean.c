/* The mean of a Gaussian with known standard deviation: y ~ N(mu, sigma^2), mu ~ N(prior_mean,
 * prior_sd^2). The only parameter is mu, so the user's scale is the unconstrained one. Everything
 * has a closed form, so estimators are tested on this model first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <gsl/gsl_randist.h>
#include "models/normal_prior.h"
#include "models/shared.h"

typedef struct gaussian_mean {
  double sigma, prior_mean, prior_sd;
  double row_constant; /* -log sigma - log(2 pi) / 2 */
  le_normal_prior prior;
} gaussian_mean;

/* ---- settings ---- */

/* Reads a finite number above `above`; if it is not, returns 0 and writes a message. */
static int read_number(const le_args *args, const char *name, double fallback, double above,
                       double *number, char *message)
{
  const le_arg *arg = le_args_find(args, name);
  *number = fallback;
  if (!arg) return 1;
  if (!arg->values || arg->n != 1) {
    snprintf(message, LE_MESSAGE_SIZE, "`%s` must be a single number.", name);
    return 0;
  }
  *number = arg->values[0];
  if (isfinite(*number) && *number > above) return 1;
  if (above == -INFINITY)
    snprintf(message, LE_MESSAGE_SIZE, "`%s` must be a finite number, not %g.", name, *number);
  else
    snprintf(message, LE_MESSAGE_SIZE, "`%s` must be a finite number above %g, not %g.", name,
             above, *number);
  return 0;
}

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  double sigma, prior_mean, prior_sd;
  if (!read_number(args, "sigma", 1, 0, &sigma, message) ||
      !read_number(args, "prior_mean", 0, -INFINITY, &prior_mean, message) ||
      !read_number(args, "prior_sd", 1, 0, &prior_sd, message))
    return LE_BAD_ARGUMENT;
  gaussian_mean *model = malloc(sizeof *model);
  if (!model) return LE_NO_MEMORY;
  *model = (gaussian_mean){.sigma = sigma,
                           .prior_mean = prior_mean,
                           .prior_sd = prior_sd,
                           .row_constant = -log(sigma) - HALF_LOG_2PI};
  model->prior = le_normal_prior_of(1, 1, &model->prior_mean, &model->prior_sd);
  *self = model;
  return LE_OK;
}

static void destroy(void *self) { free(self); }

static size_t one(const void *self)
{
  (void)self;
  return 1;
}

/* ---- prior ---- */

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  le_normal_prior_log(&((const gaussian_mean *)self)->prior, m, theta, value);
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  le_normal_prior_grad(&((const gaussian_mean *)self)->prior, m, theta, grad);
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  (void)theta;
  le_normal_prior_hess(&((const gaussian_mean *)self)->prior, hess);
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  le_normal_prior_draw(&((const gaussian_mean *)self)->prior, rng, theta);
}

/* ---- likelihood ---- */

/* Sums of y - mu and of its square. Eight partial sums are independent of one another, so the
 * processor can add them in parallel (a compiler may not reorder sums by itself), and they keep the
 * rounding error of long blocks small. */
typedef struct residual_sums {
  double first, second;
} residual_sums;

static residual_sums sum_residuals(size_t n, const double *y, double mu)
{
  double first[LANES] = {0}, second[LANES] = {0};
  size_t r = 0;
  for (; r + LANES <= n; r += LANES)
    for (size_t l = 0; l < LANES; l++) {
      double residual = y[r + l] - mu;
      first[l] += residual;
      second[l] += residual * residual;
    }
  for (size_t l = 0; r < n; r++, l++) {
    double residual = y[r] - mu;
    first[l] += residual;
    second[l] += residual * residual;
  }
  residual_sums sums = {0, 0};
  for (size_t l = 0; l < LANES; l++) {
    sums.first += first[l];
    sums.second += second[l];
  }
  return sums;
}

static double log_density(const gaussian_mean *model, size_t n, double squares)
{
  return (double)n * model->row_constant - 0.5 * squares / model->sigma / model->sigma;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  const gaussian_mean *model = self;
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    add_value(log_density(model, rows->n, sum_residuals(rows->n, rows->values, theta[i]).second),
              &value[i]);
  return LE_OK;
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const gaussian_mean *model = self;
  (void)scratch;
  for (size_t i = 0; i < m; i++) {
    residual_sums sums = sum_residuals(rows->n, rows->values, theta[i]);
    add_value(log_density(model, rows->n, sums.second), &value[i]);
    add_finite(sums.first / model->sigma / model->sigma, &grad[i]);
  }
  return LE_OK;
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const gaussian_mean *model = self;
  (void)scratch;
  double slope = sum_residuals(rows->n, rows->values, theta[0]).first / model->sigma / model->sigma;
  if (!isfinite(slope)) return LE_NOT_FINITE;
  grad[0] += slope;
  hess[0] -= (double)rows->n / model->sigma / model->sigma;
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const gaussian_mean *model = self;
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++) {
      double z = (rows->values[r] - theta[i]) / model->sigma;
      double density = model->row_constant - 0.5 * z * z;
      value[i * rows->n + r] = isnan(density) ? -INFINITY : density;
    }
  return LE_OK;
}

/* ---- simulation and the exact evidence ---- */

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  const gaussian_mean *model = self;
  for (size_t r = 0; r < n; r++) rows[r] = theta[0] + gsl_ran_gaussian_ziggurat(rng, model->sigma);
}

/* The sample mean and the sum of squares about it are independent, so the evidence is the product
 * of two factors: the density of the mean, N(prior_mean, sigma^2 / n + prior_sd^2), and that of the
 * squares. Sums are taken about a first estimate of the mean, so that data far from zero lose no
 * digits. */
static le_status exact(const void *self, const le_rows *rows, double *log_evidence)
{
  const gaussian_mean *model = self;
  double n = (double)rows->n;
  if (rows->n == 0) {
    *log_evidence = 0;
    return LE_OK;
  }
  double guess = rows->values[0] + sum_residuals(rows->n, rows->values, rows->values[0]).first / n;
  residual_sums sums = sum_residuals(rows->n, rows->values, guess);
  double correction = sums.first / n;
  double squares = sums.second - n * correction * correction;
  double ratio = model->prior_sd / model->sigma;
  double offset = (guess - model->prior_mean + correction) / model->sigma;
  *log_evidence = n * model->row_constant - 0.5 * log1p(n * ratio * ratio) -
                  0.5 * squares / model->sigma / model->sigma -
                  0.5 * n * offset * offset / (1 + n * ratio * ratio);
  return isfinite(*log_evidence) ? LE_OK : LE_NOT_FINITE;
}

const le_model_ops le_gaussian_mean_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "gaussian_mean",
  .traits = LE_MODEL_QUADRATIC,
  .create = create,
  .destroy = destroy,
  .dim = one,
  .width = one,
  .log_prior = log_prior,
  .log_prior_grad = log_prior_grad,
  .log_prior_hess = log_prior_hess,
  .draw_prior = draw_prior,
  .log_lik = log_lik,
  .log_lik_grad = log_lik_grad,
  .log_lik_hess = log_lik_hess,
  .log_lik_each = log_lik_each,
  .simulate = simulate,
  .exact = exact,
};
