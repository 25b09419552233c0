/* A mixture of two normal components with one standard deviation, and, by the setting `fault`, what
 * a model in C may do wrong, for test-check-model.R.  theta = (mean 1, mean 2, log sd); means are
 * N(0, 2^2), sd is exponential with rate 1.  A row is (shift, y), where y - shift is what the
 * mixture has. */
#define HAVE_INLINE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <logevidence.h>

static const char *const faults[] = {
    "none",          "gradient sign", "missing Jacobian", "overwrites", "scratch overrun",
    "hidden global", "NaN",           "prior draw",       "symmetry",   "relabel",
    "width",         "block",         "two threads",      "curvature",  "fast gradient",
    "unread column", "particles",     "log determinant",  "way back",   "mode"};
enum fault {
  NONE,
  GRADIENT_SIGN,
  MISSING_JACOBIAN,
  OVERWRITES,
  SCRATCH_OVERRUN,
  HIDDEN_GLOBAL,
  NAN_FAULT,
  PRIOR_DRAW,
  SYMMETRY,
  RELABEL,
  WIDTH,
  BLOCK,
  TWO_THREADS,
  CURVATURE,
  FAST_GRADIENT,
  UNREAD_COLUMN,
  PARTICLES,
  LOG_DETERMINANT,
  WAY_BACK,
  MODE,
  FAULTS
};

typedef struct pair {
  enum fault fault;
} pair;

static const double half_log_2pi = 0.918938533204672741780, prior_sd = 2;

static enum fault fault_of(const void *self) { return ((const pair *)self)->fault; }

static le_status create(const le_args *args, void **self, char *message)
{
  const char *word = le_args_word(args, "fault", "none");
  pair *model = malloc(sizeof *model);
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

static size_t three(const void *self)
{
  (void)self;
  return 3;
}

static size_t two(const void *self)
{
  (void)self;
  return 2;
}

/* The share of the second component for each row. */
static size_t scratch(const void *self, size_t particles, size_t rows)
{
  (void)self;
  (void)particles;
  return rows;
}

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  for (size_t i = 0; i < m; i++) {
    const double *at = theta + 3 * i, a = at[0] / prior_sd, b = at[1] / prior_sd;
    value[i] = -0.5 * (a * a + b * b) - 2 * (half_log_2pi + log(prior_sd)) - exp(at[2]) +
               (fault_of(self) == MISSING_JACOBIAN ? 0 : at[2]);
  }
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  for (size_t i = 0; i < m; i++) {
    const double *at = theta + 3 * i;
    grad[3 * i] = -at[0] / prior_sd / prior_sd;
    grad[3 * i + 1] = -at[1] / prior_sd / prior_sd;
    grad[3 * i + 2] = -exp(at[2]) + (fault_of(self) == MISSING_JACOBIAN ? 0 : 1);
  }
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  hess[0] -= 1 / prior_sd / prior_sd;
  hess[4] -= (fault_of(self) == CURVATURE ? 2 : 1) / prior_sd / prior_sd;
  hess[8] -= exp(theta[2]);
}

static double normal(const gsl_rng *rng)
{
  const double radius = sqrt(-2 * log(1 - gsl_rng_uniform(rng)));
  return radius * cos(6.28318530717958648 * gsl_rng_uniform(rng));
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  theta[0] = prior_sd * normal(rng);
  theta[1] = prior_sd * normal(rng);
  theta[2] = log(-log(1 - gsl_rng_uniform(rng)));
  if (fault_of(self) == PRIOR_DRAW) theta[1] *= 1.3;
}

/* Log density of one row; the share of the second component goes to `share`. */
static double density(const void *self, const double *theta, const double *row, double *share)
{
  const double sd = exp(theta[2]), y = row[1] - (fault_of(self) == UNREAD_COLUMN ? 0 : row[0]);
  const double a = (y - theta[0]) / sd, b = (y - theta[1]) / sd, la = -0.5 * a * a,
               lb = -0.5 * b * b;
  const double top = la > lb ? la : lb, sum = exp(la - top) + exp(lb - top);
  *share = exp(lb - top) / sum;
  const double value = top + log(sum) - log(2.0) - half_log_2pi - theta[2];
  return fault_of(self) == NAN_FAULT && theta[0] > 3 ? sqrt(-1 - value * value) : value;
}

static double kept;        /* HIDDEN_GLOBAL: what the last call left behind */
static double place[1024]; /* TWO_THREADS: work space that all threads share */

static double sum_of(const void *self, const double *theta, const le_rows *rows, double *share)
{
  const size_t width = fault_of(self) == WIDTH ? rows->width + 1 : rows->width;
  double sum = 0;
  for (size_t r = 0; r < rows->n; r++) {
    const double term = density(self, theta, rows->values + r * width, &share[r]);
    if (fault_of(self) == TWO_THREADS)
      place[r % 1024] = term;
    else
      sum += term;
  }
  for (size_t r = 0; fault_of(self) == TWO_THREADS && r < rows->n; r++) sum += place[r % 1024];
  if (fault_of(self) == SCRATCH_OVERRUN) share[rows->n] = sum;
  if (fault_of(self) == BLOCK && rows->n > 1) sum += 0.01 * (double)rows->n;
  if (fault_of(self) == HIDDEN_GLOBAL) {
    sum += kept;
    kept = 1e-3 * theta[0];
  }
  return sum;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *share)
{
  for (size_t i = 0; i < m; i++) {
    const double sum = sum_of(self, theta + 3 * i, rows, share);
    value[i] = (fault_of(self) == OVERWRITES ? 0 : value[i]) + sum +
               (fault_of(self) == PARTICLES ? 1e-3 * (theta[0] - theta[3 * i]) : 0);
  }
  return LE_OK;
}

static void add_gradient(const void *self, const double *theta, const le_rows *rows, double *grad,
                         const double *share)
{
  const double sd = exp(theta[2]), sign = fault_of(self) == GRADIENT_SIGN ? -1 : 1;
  const size_t width = fault_of(self) == WIDTH ? rows->width + 1 : rows->width;
  for (size_t r = 0; r < rows->n; r++) {
    const double *row = rows->values + r * width,
                 y = row[1] - (fault_of(self) == UNREAD_COLUMN ? 0 : row[0]);
    const double a = (y - theta[0]) / sd, b = (y - theta[1]) / sd;
    grad[0] += (1 - share[r]) * a / sd;
    grad[1] += sign * share[r] * b / sd;
    grad[2] += (1 - share[r]) * a * a + share[r] * b * b - 1;
  }
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *share)
{
  for (size_t i = 0; i < m; i++) {
    log_lik(self, 1, theta + 3 * i, rows, value + i, share);
    add_gradient(self, theta + 3 * i, rows, grad + 3 * i, share);
  }
  return LE_OK;
}

static le_status log_lik_grad_alone(const void *self, size_t m, const double *theta,
                                    const le_rows *rows, double *grad, double *share)
{
  for (size_t i = 0; i < m; i++) {
    sum_of(self, theta + 3 * i, rows, share);
    const double before = grad[3 * i];
    add_gradient(self, theta + 3 * i, rows, grad + 3 * i, share);
    if (fault_of(self) == FAST_GRADIENT) grad[3 * i] += 0.01 * (grad[3 * i] - before);
  }
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *share)
{
  const size_t width = fault_of(self) == WIDTH ? rows->width + 1 : rows->width;
  for (size_t i = 0; i < m; i++)
    for (size_t r = 0; r < rows->n; r++)
      value[i * rows->n + r] = density(self, theta + 3 * i, rows->values + r * width, &share[r]);
  return LE_OK;
}

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  (void)self;
  for (size_t r = 0; r < n; r++)
    rows[2 * r + 1] = rows[2 * r] + theta[gsl_rng_uniform(rng) < 0.5] + exp(theta[2]) * normal(rng);
}

static double log_symmetry(const void *self) { return log(fault_of(self) == SYMMETRY ? 6.0 : 2.0); }

static int relabel(const void *self, const double *reference, double *theta)
{
  const double as_is = fabs(theta[0] - reference[0]) + fabs(theta[1] - reference[1]);
  const double exchanged = fabs(theta[1] - reference[0]) + fabs(theta[0] - reference[1]);
  if (as_is <= exchanged) return 0;
  const double first = theta[0];
  theta[0] = theta[1];
  theta[1] = fault_of(self) == RELABEL ? first + 0.1 : first;
  return 1;
}

/* log_sd becomes the cube root of the variance, up to a scale; the mode stays where it is. */
static double to_normal(const void *self, const double *peak, const double *theta, double *out)
{
  const double off = theta[2] - peak[2], moved = fault_of(self) == MODE ? 0.1 : 0;
  out[0] = theta[0];
  out[1] = theta[1];
  out[2] = peak[2] + 1.5 * expm1(off / 1.5) + moved;
  return fault_of(self) == LOG_DETERMINANT ? -off / 1.5 : off / 1.5;
}

static int from_normal(const void *self, const double *peak, double *point)
{
  const double moved = fault_of(self) == MODE ? 0.1 : 0, w = (point[2] - peak[2] - moved) / 1.5;
  if (!(w > -1)) return 0;
  point[2] = peak[2] + (fault_of(self) == WAY_BACK ? 1 : 1.5) * log1p(w);
  return 1;
}

static const le_model_ops ops = {
    .version = LE_CONTRACT_VERSION,
    .size = sizeof(le_model_ops),
    .name = "faults",
    .traits = LE_MODEL_MULTIMODAL,
    .create = create,
    .destroy = destroy,
    .dim = three,
    .width = two,
    .scratch = scratch,
    .log_prior = log_prior,
    .log_prior_grad = log_prior_grad,
    .log_prior_hess = log_prior_hess,
    .draw_prior = draw_prior,
    .log_lik = log_lik,
    .log_lik_grad = log_lik_grad,
    .log_lik_grad_alone = log_lik_grad_alone,
    .log_lik_each = log_lik_each,
    .simulate = simulate,
    .log_symmetry = log_symmetry,
    .relabel = relabel,
    .to_normal = to_normal,
    .from_normal = from_normal,
};

const le_model_ops *faults_table(void);
const le_model_ops *faults_table(void) { return &ops; }
