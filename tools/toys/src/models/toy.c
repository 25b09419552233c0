/* Waiting times at an unknown rate: y ~ Exponential(exp(theta)), theta ~ N(0, 1). */
#include "models/shared.h"

#include <gsl/gsl_randist.h>
#include <stdlib.h>

/* The model has no settings: an instance is there because the contract wants one. */
typedef struct toy {
  double prior_constant;
} toy;

static le_status create(const le_args *args, void **self, char *message)
{
  (void)args, (void)message;
  toy *model = malloc(sizeof *model);
  *self = model;
  if (!model) return LE_NO_MEMORY;
  model->prior_constant = -HALF_LOG_2PI;
  return LE_OK;
}

static void destroy(void *self) { free(self); }

static size_t one(const void *self)
{
  (void)self;
  return 1;
}

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const toy *model = self;
  for (size_t i = 0; i < m; i++) value[i] = model->prior_constant - 0.5 * theta[i] * theta[i];
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  (void)self;
  for (size_t i = 0; i < m; i++) grad[i] = -theta[i];
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  (void)self;
  theta[0] = gsl_ran_gaussian_ziggurat(rng, 1);
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  (void)self, (void)scratch;
  double sum = 0;
  for (size_t r = 0; r < rows->n; r++) sum += rows->values[r];
  for (size_t i = 0; i < m; i++) {
    const double n = (double)rows->n, waited = exp(theta[i]) * sum;
    add_value(n * theta[i] - waited, &value[i]);
    if (grad) add_finite(n - waited, &grad[i]);
  }
  return LE_OK;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  return log_lik_grad(self, m, theta, rows, value, NULL, scratch);
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  (void)self, (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++)
      value[i * rows->n + r] = theta[i] - exp(theta[i]) * rows->values[r];
  return LE_OK;
}

const le_model_ops le_toy_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "toy",
  .create = create,
  .destroy = destroy,
  .dim = one,
  .width = one,
  .log_prior = log_prior,
  .log_prior_grad = log_prior_grad,
  .draw_prior = draw_prior,
  .log_lik = log_lik,
  .log_lik_grad = log_lik_grad,
  .log_lik_each = log_lik_each,
};
