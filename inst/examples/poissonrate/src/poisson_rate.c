/* Counts y ~ Poisson(exp(x' w)), w_j ~ N(0, prior_sd^2): the table of functions that logevidence
 * calls.  A row is x_1 .. x_p, y.  logevidence.h says what each function gets and must do; nothing
 * here is a variable that outlives a call, as several threads may call at once. */
#define HAVE_INLINE /* uniform numbers come from GSL's header: nothing is linked */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <logevidence.h>
#include <R_ext/Rdynload.h>

typedef struct poisson_rate {
  size_t covariates;
  double prior_sd;
} poisson_rate;

static const double half_log_2pi = 0.918938533204672741780, largest_log_rate = 690;

static le_status create(const le_args *args, void **self, char *message)
{
  const double covariates = le_args_number(args, "covariates", 0),
               prior_sd = le_args_number(args, "prior_sd", 1);
  *self = NULL;
  if (!(covariates >= 1 && prior_sd > 0)) {
    snprintf(message, LE_MESSAGE_SIZE,
             "There must be covariates, and `prior_sd` must be positive, not %g.", prior_sd);
    return LE_BAD_ARGUMENT;
  }
  poisson_rate *model = malloc(sizeof *model);
  if (!model) return LE_NO_MEMORY;
  model->covariates = (size_t)covariates;
  model->prior_sd = prior_sd;
  *self = model;
  return LE_OK;
}

static void destroy(void *self) { free(self); }
static size_t dim(const void *self) { return ((const poisson_rate *)self)->covariates; }
static size_t width(const void *self) { return dim(self) + 1; }

/* ---- prior */

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const poisson_rate *model = self;
  const size_t p = model->covariates;
  for (size_t i = 0; i < m; i++) {
    value[i] = -(double)p * (log(model->prior_sd) + half_log_2pi);
    for (size_t j = 0; j < p; j++) {
      const double z = theta[i * p + j] / model->prior_sd;
      value[i] -= 0.5 * z * z;
    }
  }
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const poisson_rate *model = self;
  for (size_t k = 0; k < m * model->covariates; k++)
    grad[k] = -theta[k] / model->prior_sd / model->prior_sd;
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  const poisson_rate *model = self;
  const size_t p = model->covariates;
  (void)theta;
  for (size_t j = 0; j < p; j++) hess[j * p + j] -= 1 / model->prior_sd / model->prior_sd;
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const poisson_rate *model = self;
  for (size_t j = 0; j < model->covariates; j++) {
    const double radius = sqrt(-2 * log(1 - gsl_rng_uniform(rng)));
    theta[j] = model->prior_sd * radius * cos(6.28318530717958648 * gsl_rng_uniform(rng));
  }
}

/* ---- likelihood */

static double log_rate(const double *theta, const double *row, size_t p)
{
  double sum = 0;
  for (size_t j = 0; j < p; j++) sum += theta[j] * row[j];
  return fmin(sum, largest_log_rate);
}

static double log_density(double count, double eta)
{
  return count * eta - exp(eta) - lgamma(count + 1);
}

/* Likelihoods add to what is there. */
static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  const size_t p = dim(self);
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++) {
      const double *row = rows->values + r * rows->width;
      value[i] += log_density(row[p], log_rate(theta + i * p, row, p));
    }
  return LE_OK;
}

/* But the value of each row by itself is written. */
static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const size_t p = dim(self);
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++) {
      const double *row = rows->values + r * rows->width;
      value[i * rows->n + r] = log_density(row[p], log_rate(theta + i * p, row, p));
    }
  return LE_OK;
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const size_t p = dim(self);
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++) {
      const double *row = rows->values + r * rows->width;
      const double eta = log_rate(theta + i * p, row, p), slope = row[p] - exp(eta);
      value[i] += log_density(row[p], eta);
      for (size_t j = 0; j < p; j++) grad[i * p + j] += slope * row[j];
    }
  return LE_OK;
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const size_t p = dim(self);
  (void)scratch;
  for (size_t r = 0; r < rows->n; r++) {
    const double *row = rows->values + r * rows->width;
    const double rate = exp(log_rate(theta, row, p));
    for (size_t j = 0; j < p; j++) {
      grad[j] += (row[p] - rate) * row[j];
      for (size_t k = 0; k < p; k++) hess[j * p + k] -= rate * row[j] * row[k];
    }
  }
  return LE_OK;
}

/* A count, by waiting times; large rates in parts, whose counts add up. */
static double draw_count(const gsl_rng *rng, double rate)
{
  double count = 0;
  while (rate > 0) {
    const double part = fmin(rate, 100);
    double product = 1 - gsl_rng_uniform(rng);
    for (const double least = exp(-part); product > least; product *= 1 - gsl_rng_uniform(rng))
      count++;
    rate -= part;
  }
  return count;
}

/* For simulate(): rates of more than a million are taken for a million. */
static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  const size_t p = dim(self);
  for (size_t r = 0; r < n; r++) {
    double *row = rows + r * (p + 1);
    row[p] = draw_count(rng, fmin(exp(log_rate(theta, row, p)), 1e6));
  }
}

static const le_model_ops ops = {
    .version = LE_CONTRACT_VERSION,
    .size = sizeof(le_model_ops),
    .name = "poisson_rate",
    .create = create,
    .destroy = destroy,
    .dim = dim,
    .width = width,
    .log_prior = log_prior,
    .log_prior_grad = log_prior_grad,
    .log_prior_hess = log_prior_hess,
    .draw_prior = draw_prior,
    .log_lik = log_lik,
    .log_lik_grad = log_lik_grad,
    .log_lik_hess = log_lik_hess,
    .log_lik_each = log_lik_each,
    .simulate = simulate,
};

const le_model_ops *poisson_rate_table(void);
const le_model_ops *poisson_rate_table(void) { return &ops; }

static const R_CMethodDef routines[] = {
    {"poisson_rate_table", (DL_FUNC)(void (*)(void))poisson_rate_table, 0, NULL},
    {NULL, NULL, 0, NULL}};

void R_init_poissonrate(DllInfo *dll);
void R_init_poissonrate(DllInfo *dll)
{
  R_registerRoutines(dll, routines, NULL, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
}
