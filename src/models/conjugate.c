/* One unknown rate of counts, or probability of successes, with its conjugate prior. With theta =
 * log rate or logit probability, the log prior and the log-likelihood of rows are both
 *
 *     S theta - E h(theta) + C,   h = exp(theta) or log(1 + exp(theta)),
 *
 * where S is the sum of the counts or successes and E that of exposures or trials; a prior
 * Gamma(a, b) has S = a, E = b, and Beta(a, b) has S = a, E = a + b. So rows add to S, E and C. */
#include "models/glm/draws.h"
#include "models/shared.h"
#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <stdio.h>
#include <stdlib.h>

/* A block of partitions, too. A row is its exposure or trials, then its count or successes. */
typedef struct sums {
  double successes, size, constant;
} sums;

typedef struct conjugate {
  int trials; /* of a probability, not of a rate */
  sums prior;
} conjugate;

/* log of the integral over theta of exp(S theta - E h(theta)). */
static double log_integral(const conjugate *model, double successes, double size)
{
  if (!model->trials) return lgamma(successes) - successes * log(size);
  return lgamma(successes) + lgamma(size - successes) - lgamma(size);
}

static le_status create(const le_args *args, int trials, void **self, char *message)
{
  double a, b;
  *self = NULL;
  if (!le_read_numbers(args, "shape", 1, 0, 1, &a, message) ||
      !le_read_numbers(args, trials ? "other" : "rate", 1, 0, 1, &b, message))
    return LE_BAD_ARGUMENT;
  conjugate *model = malloc(sizeof *model);
  if (!model) return LE_NO_MEMORY;
  *model = (conjugate){.trials = trials, .prior = {a, trials ? a + b : b, 0}};
  model->prior.constant = -log_integral(model, a, model->prior.size);
  *self = model;
  return LE_OK;
}

static le_status create_rate(const le_args *args, void **self, char *message)
{
  return create(args, 0, self, message);
}

static le_status create_probability(const le_args *args, void **self, char *message)
{
  return create(args, 1, self, message);
}

static size_t dim(const void *self)
{
  (void)self;
  return 1;
}

static size_t width(const void *self)
{
  (void)self;
  return 2;
}

/* ---- sums of rows, and what they say of theta ---- */

static void add_row(const conjugate *model, const double *row, sums *s)
{
  const double size = row[0], successes = row[1];
  s->successes += successes;
  s->size += size;
  s->constant += model->trials ? lgamma(size + 1) - lgamma(successes + 1) -
                                   lgamma(size - successes + 1)
                               : (successes > 0 ? successes * log(size) : 0) -
                                   lgamma(successes + 1);
}

static sums sums_of(const conjugate *model, const le_rows *rows)
{
  sums s = {0, 0, 0};
  for (size_t r = 0; r < rows->n; r++) add_row(model, rows->values + 2 * r, &s);
  return s;
}

/* Logarithm of a rate beyond which products with it could overflow. */
static const double LARGEST = 600;

/* Adds the value and the first two derivatives; each may be NULL. */
static void evaluate(const conjugate *model, sums s, double theta, double *value, double *grad,
                     double *hess)
{
  const double log_rate = fmin(theta, LARGEST), rate = exp(log_rate);
  const double share = 1 / (1 + exp(-theta));
  const double slope = model->trials ? share : rate,
               curve = model->trials ? share * (1 - share) : rate;
  const double softplus = log1p(exp(-fabs(theta))), log_success = fmin(theta, 0) - softplus,
               log_failure = fmin(-theta, 0) - softplus;
  if (value)
    *value += s.constant + (model->trials ? s.successes * log_success +
                                              (s.size - s.successes) * log_failure
                                          : s.successes * log_rate - s.size * rate);
  if (grad) *grad += s.successes - s.size * slope;
  if (hess) *hess -= s.size * curve;
}

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const conjugate *model = self;
  for (size_t i = 0; i < m; i++)
    value[i] = 0, evaluate(model, model->prior, theta[i], value + i, NULL, NULL);
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const conjugate *model = self;
  for (size_t i = 0; i < m; i++)
    grad[i] = 0, evaluate(model, model->prior, theta[i], NULL, grad + i, NULL);
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  evaluate(self, ((const conjugate *)self)->prior, *theta, NULL, NULL, hess);
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const sums s = sums_of(self, rows);
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    evaluate(self, s, theta[i], value + i, grad ? grad + i : NULL, NULL);
  return LE_OK;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  return log_lik_grad(self, m, theta, rows, value, NULL, scratch);
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  (void)scratch;
  evaluate(self, sums_of(self, rows), *theta, NULL, grad, hess);
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  (void)scratch;
  for (size_t r = 0; r < rows->n; r++) {
    const le_rows row = {1, 2, rows->values + 2 * r};
    const sums s = sums_of(self, &row);
    for (size_t i = 0; i < m; i++) {
      value[i * rows->n + r] = 0;
      evaluate(self, s, theta[i], value + i * rows->n + r, NULL, NULL);
    }
  }
  return LE_OK;
}

/* ---- draws ---- */

/* From the posterior given these sums. */
static double draw_given(const conjugate *model, sums s, const gsl_rng *rng)
{
  const double a = model->prior.successes + s.successes, e = model->prior.size + s.size;
  const double drawn = le_draw_log_gamma(rng, a);
  return drawn - (model->trials ? le_draw_log_gamma(rng, e - a) : log(e));
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  *theta = draw_given(self, (sums){0, 0, 0}, rng);
}

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  const conjugate *model = self;
  for (double *row = rows; row < rows + 2 * n; row += 2)
    row[1] = model->trials
               ? glm_draw_successes(rng, 1 / (1 + exp(-*theta)), row[0])
               : glm_draw_count(rng, row[0] * exp(*theta));
}

static void to_user(const void *self, const double *theta, double *user)
{
  *user = ((const conjugate *)self)->trials ? 1 / (1 + exp(-*theta)) : exp(*theta);
}

/* ---- blocks of rows ---- */

static size_t block_size(const void *self)
{
  (void)self;
  return sizeof(sums) / sizeof(double);
}

static size_t no_tables(const void *self, size_t n)
{
  (void)self, (void)n;
  return 0;
}

static void prepare(const void *self, const le_rows *rows, double *tables)
{
  (void)self, (void)rows, (void)tables;
}

static void clear(const void *self, const double *tables, double *block)
{
  (void)self, (void)tables;
  *(sums *)block = (sums){0, 0, 0};
}

static void add(const void *self, const double *tables, const double *row, double sign,
                double *block)
{
  sums s = {0, 0, 0}, *own = (sums *)block;
  (void)tables;
  add_row(self, row, &s);
  *own = (sums){own->successes + sign * s.successes, own->size + sign * s.size,
                own->constant + sign * s.constant};
}

static void join(const void *self, const double *tables, const double *other, double *block)
{
  (void)self, (void)tables;
  for (size_t k = 0; k < sizeof(sums) / sizeof(double); k++) block[k] += other[k];
}

static double log_evidence(const void *self, const double *tables, const double *block)
{
  const conjugate *model = self;
  const sums *s = (const sums *)block;
  (void)tables;
  return s->constant + model->prior.constant +
         log_integral(model, model->prior.successes + s->successes, model->prior.size + s->size);
}

static size_t block_dim(const void *self, size_t components)
{
  (void)self;
  return components;
}

static void draw(const void *self, const double *tables, size_t components, size_t t,
                 const double *const *block, const gsl_rng *rng, double *theta, double *scratch)
{
  (void)tables, (void)scratch;
  for (size_t k = 0; k < components; k++)
    theta[k] = draw_given(self, k < t ? *(const sums *)block[k] : (sums){0, 0, 0}, rng);
}

static const le_partition_ops blocks = {
  .size = block_size, .tables = no_tables, .prepare = prepare, .clear = clear, .add = add,
  .join = join, .log_evidence = log_evidence, .dim = block_dim, .draw = draw};

static le_status exact(const void *self, const le_rows *rows, double *value)
{
  const sums s = sums_of(self, rows);
  *value = log_evidence(self, NULL, (const double *)&s);
  return LE_OK;
}

static le_status exact_draws(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                             double *theta)
{
  const sums s = sums_of(self, rows);
  for (size_t i = 0; i < m; i++) theta[i] = draw_given(self, s, rng);
  return LE_OK;
}

#define SHARED                                                                                     \
  .version = LE_CONTRACT_VERSION, .size = sizeof(le_model_ops), .destroy = free, .dim = dim,       \
  .width = width, .log_prior = log_prior, .log_prior_grad = log_prior_grad,                        \
  .log_prior_hess = log_prior_hess, .draw_prior = draw_prior, .log_lik = log_lik,                  \
  .log_lik_grad = log_lik_grad, .log_lik_hess = log_lik_hess, .log_lik_each = log_lik_each,        \
  .simulate = simulate, .exact = exact, .exact_draws = exact_draws, .to_user = to_user,            \
  .partitions = &blocks

const le_model_ops le_poisson_rate_model = {
  SHARED, .name = "poisson_rate", .create = create_rate};
const le_model_ops le_binomial_probability_model = {
  SHARED, .name = "binomial_probability", .create = create_probability};
