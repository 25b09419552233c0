/* A normal mean with known sd and a standard normal prior, as compiled_model() wants it:
 *
 *   PKG_CPPFLAGS="-I<include folder of logevidence>" R CMD SHLIB normal_mean.c
 *   dyn.load("normal_mean.so")
 *   compiled_model("normal_mean_table", "mean", sigma = 2, PACKAGE = "normal_mean")
 *
 * logevidence.h says what every function gets and must do. Nothing of GSL is linked: with
 * HAVE_INLINE, uniform numbers come from its header. */
#define HAVE_INLINE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <logevidence.h>

typedef struct normal_mean {
  double sigma;
} normal_mean;

static const char *const settings[] = {"sigma", NULL};

static const double half_log_2pi = 0.918938533204672741780;

static le_status create(const le_args *args, void **self, char *message)
{
  const double sigma = le_args_number(args, "sigma", 1);
  *self = NULL;
  if (!(sigma > 0)) {
    snprintf(message, LE_MESSAGE_SIZE, "`sigma` must be a positive number, not %g.", sigma);
    return LE_BAD_ARGUMENT;
  }
  normal_mean *model = malloc(sizeof *model);
  if (!model) return LE_NO_MEMORY;
  model->sigma = sigma;
  *self = model;
  return LE_OK;
}

static void destroy(void *self) { free(self); }

static size_t one(const void *self)
{
  (void)self;
  return 1;
}

static double log_normal(double z) { return -0.5 * z * z - half_log_2pi; }

/* The m particles of a call lie one behind another in theta, here with one coordinate each. */
static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  (void)self;
  for (size_t i = 0; i < m; i++) value[i] = log_normal(theta[i]);
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  (void)self;
  for (size_t i = 0; i < m; i++) grad[i] = -theta[i];
}

static double draw_normal(const gsl_rng *rng)
{
  const double radius = sqrt(-2 * log(1 - gsl_rng_uniform(rng)));
  return radius * cos(6.28318530717958648 * gsl_rng_uniform(rng));
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  (void)self;
  theta[0] = draw_normal(rng);
}

/* For simulate() and bdmc(). */
static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  const normal_mean *model = self;
  for (size_t r = 0; r < n; r++) rows[r] = theta[0] + model->sigma * draw_normal(rng);
}

/* Likelihoods add to what is there. */
static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  const normal_mean *model = self;
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++)
      value[i] += log_normal((rows->values[r] - theta[i]) / model->sigma) - log(model->sigma);
  return LE_OK;
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const normal_mean *model = self;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++)
      grad[i] += (rows->values[r] - theta[i]) / model->sigma / model->sigma;
  return log_lik(self, m, theta, rows, value, scratch);
}

/* But the value of each row by itself is written. */
static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const normal_mean *model = self;
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++)
      value[i * rows->n + r] =
          log_normal((rows->values[r] - theta[i]) / model->sigma) - log(model->sigma);
  return LE_OK;
}

static const le_model_ops ops = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "normal_mean",
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
  .simulate = simulate,
  .settings = settings,
};

const le_model_ops *normal_mean_table(void);
const le_model_ops *normal_mean_table(void) { return &ops; }
