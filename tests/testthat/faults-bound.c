/* A normal mean with a variational bound, and, by the setting `fault`, what may be wrong with it,
 * for test-check-model.R. y is N(theta, 1), theta is N(0, 2^2), q is N(m, v) and kept as (m, v). */
#define HAVE_INLINE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <logevidence.h>

static const char *const faults[] = {"none",        "bound too high", "update",
                                     "start",       "unwritten",      "draw",
                                     "relabelling", "step of EM",     "scratch of q"};
enum fault {
  NONE,
  TOO_HIGH,
  UPDATE,
  START,
  UNWRITTEN,
  DRAW,
  RELABELLING,
  STEP_OF_EM,
  SCRATCH_OF_Q,
  FAULTS
};

typedef struct mean {
  enum fault fault;
} mean;

static const double log_2pi = 1.837877066409345483561, prior_precision = 0.25;

static enum fault fault_of(const void *self) { return ((const mean *)self)->fault; }

static le_status create(const le_args *args, void **self, char *message)
{
  const char *word = le_args_word(args, "fault", "none");
  mean *model = malloc(sizeof *model);
  *self = model;
  if (!model) return LE_NO_MEMORY;
  for (int f = 0; f < FAULTS; f++)
    if (strcmp(word, faults[f]) == 0) {
      model->fault = (enum fault)f;
      return LE_OK;
    }
  snprintf(message, LE_MESSAGE_SIZE, "There is no fault `%s`.", word);
  free(model);
  *self = NULL;
  return LE_BAD_ARGUMENT;
}

static void destroy(void *self) { free(self); }

static size_t one(const void *self)
{
  (void)self;
  return 1;
}

static double log_normal(double x, double precision)
{
  return 0.5 * (log(precision) - log_2pi - precision * x * x);
}

static double normal(const gsl_rng *rng)
{
  const double radius = sqrt(-2 * log(1 - gsl_rng_uniform(rng)));
  return radius * cos(6.28318530717958648 * gsl_rng_uniform(rng));
}

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  (void)self;
  for (size_t i = 0; i < m; i++) value[i] = log_normal(theta[i], prior_precision);
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  (void)self;
  theta[0] = normal(rng) / sqrt(prior_precision);
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  (void)self;
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++) value[i] += log_normal(rows->values[r] - theta[i], 1);
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  (void)self;
  (void)scratch;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++)
      value[i * rows->n + r] = log_normal(rows->values[r] - theta[i], 1);
  return LE_OK;
}

/* ---- the bound */

static size_t two_numbers(const void *self, size_t n)
{
  (void)self;
  (void)n;
  return 2;
}

static size_t one_number(const void *self, size_t n)
{
  (void)self;
  (void)n;
  return 1;
}

static size_t two_factors(const void *self)
{
  (void)self;
  return 2;
}

static double sum_of(const le_rows *rows)
{
  double sum = 0;
  for (size_t r = 0; r < rows->n; r++) sum += rows->values[r];
  return sum;
}

static le_status start(const void *self, const le_rows *rows, const double *hint,
                       const gsl_rng *rng, double *q, double *scratch)
{
  (void)rows;
  (void)scratch;
  q[0] = hint ? hint[0] : normal(rng);
  if (fault_of(self) != UNWRITTEN) q[1] = fault_of(self) == START ? 0 : 1;
  return LE_OK;
}

static le_status update(const void *self, const le_rows *rows, size_t factor, double *q,
                        double *scratch)
{
  const double precision = (double)rows->n + prior_precision, best = sum_of(rows) / precision;
  if (factor == 0) q[0] = fault_of(self) == UPDATE ? q[0] + 3 * (best - q[0]) : best;
  else q[1] = 1 / precision;
  scratch[fault_of(self) == SCRATCH_OF_Q] = 0;
  return LE_OK;
}

static double bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  double sum = log_normal(q[0], prior_precision) - 0.5 * prior_precision * q[1] +
               0.5 * (log_2pi + 1 + log(q[1]));
  (void)scratch;
  for (size_t r = 0; r < rows->n; r++) sum += log_normal(rows->values[r] - q[0], 1) - 0.5 * q[1];
  return sum + (fault_of(self) == TOO_HIGH ? 1 : 0);
}

static void draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                 double *scratch)
{
  (void)n;
  (void)scratch;
  point[0] = fault_of(self) == DRAW ? HUGE_VAL : q[0] + sqrt(q[1]) * normal(rng);
}

static double symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng,
                       double *scratch)
{
  (void)n;
  (void)q;
  (void)rng;
  (void)scratch;
  return fault_of(self) == RELABELLING ? -0.5 : 0;
}

static const le_variational_ops variational = {
    .size = two_numbers,
    .scratch = one_number,
    .factors = two_factors,
    .start = start,
    .update = update,
    .bound = bound,
    .draw = draw,
    .symmetry = symmetry,
};

/* ---- EM, whose one step is the maximum */

static le_status start_em(const void *self, const le_rows *rows, const double *hint,
                          const gsl_rng *rng, double *q, double *scratch)
{
  (void)self;
  (void)rows;
  (void)hint;
  (void)scratch;
  q[0] = normal(rng);
  return LE_OK;
}

static le_status update_em(const void *self, const le_rows *rows, size_t factor, double *q,
                           double *scratch)
{
  const double best = sum_of(rows) / (double)rows->n;
  (void)factor;
  (void)scratch;
  q[0] = fault_of(self) == STEP_OF_EM ? q[0] + 3 * (best - q[0]) : best;
  return LE_OK;
}

static double bound_em(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  double value = 0;
  log_lik(self, 1, q, rows, &value, scratch);
  return value;
}

static const le_variational_ops maximum = {
    .size = one_number,
    .scratch = one_number,
    .start = start_em,
    .update = update_em,
    .bound = bound_em,
};

static const le_model_ops ops = {
    .version = LE_CONTRACT_VERSION,
    .size = sizeof(le_model_ops),
    .name = "faults_bound",
    .create = create,
    .destroy = destroy,
    .dim = one,
    .width = one,
    .log_prior = log_prior,
    .draw_prior = draw_prior,
    .log_lik = log_lik,
    .log_lik_each = log_lik_each,
    .variational = &variational,
    .maximum = &maximum,
};

const le_model_ops *faults_bound_table(void);
const le_model_ops *faults_bound_table(void) { return &ops; }
