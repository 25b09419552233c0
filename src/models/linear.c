/* Linear regression with known noise: y ~ N(x'w, sigma^2), w_j ~ N(prior_mean_j, prior_sd_j^2)
 * independently. A row is x_1 .. x_p, y; an intercept is a covariate equal to one. The parameters
 * are w, so the user's scale is the unconstrained one. The evidence has a closed form, computed by
 * an orthogonal factorisation (see `exact`). */
#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_randist.h>
#include "base/status.h"
#include "models/normal_prior.h"
#include "models/reflections.h"
#include "models/shared.h"

typedef struct linear {
  size_t covariates;
  le_simd simd;
  double sigma;
  double row_constant; /* -log sigma - log(2 pi) / 2 */
  le_normal_prior prior;
  double *prior_mean, *prior_sd;
  double storage[];
} linear;

/* ---- settings ---- */

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  size_t p;
  if (!le_read_count(args, "covariates", 1, MOST_COVARIATES, &p, message)) return LE_BAD_ARGUMENT;
  linear *model = malloc(sizeof *model + 2 * p * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->covariates = p;
  model->simd = le_simd_for(args);
  model->prior_mean = model->storage;
  model->prior_sd = model->storage + p;
  if (!le_read_numbers(args, "sigma", 1, 0, 1, &model->sigma, message) ||
      !le_read_numbers(args, "prior_mean", 0, -INFINITY, p, model->prior_mean, message) ||
      !le_read_numbers(args, "prior_sd", 1, 0, p, model->prior_sd, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  model->row_constant = -log(model->sigma) - HALF_LOG_2PI;
  model->prior = le_normal_prior_of(p, 1, model->prior_mean, model->prior_sd);
  *self = model;
  return LE_OK;
}

static void destroy(void *self) { free(self); }

static size_t dim(const void *self) { return ((const linear *)self)->covariates; }

static size_t width(const void *self) { return ((const linear *)self)->covariates + 1; }

/* ---- prior ---- */

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  le_normal_prior_log(&((const linear *)self)->prior, m, theta, value);
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  le_normal_prior_grad(&((const linear *)self)->prior, m, theta, grad);
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  (void)theta;
  le_normal_prior_hess(&((const linear *)self)->prior, hess);
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  le_normal_prior_draw(&((const linear *)self)->prior, rng, theta);
}

/* ---- likelihood ---- */

typedef struct workspace {
  size_t n;
  /* tiles of all columns, the response last; the last tile is filled with zeros, whose residual is
   * zero */
  double *x;
  double *residual; /* tiles of the residuals of up to COLUMNS_TOGETHER particles */
  double *sums;     /* of residuals times covariates */
} workspace;

#define VECTOR_BODY "models/linear_body.h"
#include "base/variants.h"

typedef struct kernels {
  void (*residuals)(const workspace *w, size_t p, size_t particles, const double *theta,
                    double *squares);
  void (*slopes)(const workspace *w, size_t p, size_t particles, double *sums);
  void (*squares)(const workspace *w, size_t p, double *sums);
} kernels;

#define KERNELS(variant) {residuals_##variant, slopes_##variant, squares_##variant}

static const kernels *kernels_of(const linear *model)
{
  static const kernels table[] = TABLES(KERNELS);
  return &table[model->simd];
}

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const size_t p = ((const linear *)self)->covariates;
  (void)particles;
  return LE_ALIGN_MORE + tiles_of(rows) * (p + 1 + COLUMNS_TOGETHER) * TILE +
         p * (p > COLUMNS_TOGETHER ? p : COLUMNS_TOGETHER);
}

static workspace prepare(const linear *model, const le_rows *rows, double *scratch)
{
  const size_t columns = model->covariates + 1, tiles = tiles_of(rows->n);
  workspace w = {.n = rows->n, .x = le_aligned(scratch)};
  w.residual = w.x + tiles * columns * TILE;
  w.sums = w.residual + tiles * COLUMNS_TOGETHER * TILE;
  fill_tiles(model->simd, rows, columns, w.x);
  return w;
}

static double log_density(const linear *model, size_t n, double squares)
{
  return (double)n * model->row_constant - 0.5 * squares / model->sigma / model->sigma;
}

/* `grad` may be NULL. */
static le_status evaluate(const linear *model, size_t m, const double *theta, const le_rows *rows,
                          double *value, double *grad, double *scratch)
{
  const kernels *k = kernels_of(model);
  const size_t p = model->covariates;
  const workspace w = prepare(model, rows, scratch);
  /* multiplying by the reciprocal saves more than a tenth of the time */
  const double per_sigma = 1 / model->sigma;
  for (size_t i = 0, together; i < m; i += together) {
    double squares[COLUMNS_TOGETHER];
    together = m - i < COLUMNS_TOGETHER ? m - i : COLUMNS_TOGETHER;
    k->residuals(&w, p, together, theta + i * p, squares);
    for (size_t q = 0; q < together; q++)
      add_value(log_density(model, rows->n, squares[q]), &value[i + q]);
    if (!grad) continue;
    memset(w.sums, 0, together * p * sizeof(double));
    k->slopes(&w, p, together, w.sums);
    for (size_t a = 0; a < together * p; a++)
      add_finite(w.sums[a] * per_sigma * per_sigma, &grad[i * p + a]);
  }
  return LE_OK;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  return evaluate(self, m, theta, rows, value, NULL, scratch);
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  return evaluate(self, m, theta, rows, value, grad, scratch);
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const linear *model = self;
  const size_t p = model->covariates;
  const double precision = 1 / model->sigma / model->sigma;
  const workspace w = prepare(model, rows, scratch);
  double squares;
  kernels_of(model)->residuals(&w, p, 1, theta, &squares);
  memset(w.sums, 0, p * sizeof(double));
  kernels_of(model)->slopes(&w, p, 1, w.sums);
  for (size_t j = 0; j < p; j++) {
    grad[j] += precision * w.sums[j];
    if (!isfinite(grad[j])) return LE_NOT_FINITE;
  }
  memset(w.sums, 0, p * p * sizeof(double));
  kernels_of(model)->squares(&w, p, w.sums);
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k <= j; k++) {
      hess[j * p + k] -= precision * w.sums[j * p + k];
      if (k != j) hess[k * p + j] -= precision * w.sums[j * p + k];
    }
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const linear *model = self;
  const size_t n = rows->n;
  const workspace w = prepare(model, rows, scratch);
  for (size_t i = 0; i < m; i++) {
    double squares;
    kernels_of(model)->residuals(&w, model->covariates, 1, theta + i * model->covariates, &squares);
    for (size_t r = 0; r < n; r++) {
      const double z = w.residual[r / TILE * COLUMNS_TOGETHER * TILE + r % TILE] / model->sigma;
      const double density = model->row_constant - 0.5 * z * z;
      value[i * n + r] = isnan(density) ? -INFINITY : density;
    }
  }
  return LE_OK;
}

/* ---- simulation and the exact evidence ---- */

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  const linear *model = self;
  size_t p = model->covariates;
  for (size_t r = 0; r < n; r++) {
    double *row = rows + r * (p + 1), mean = 0;
    for (size_t j = 0; j < p; j++) mean += theta[j] * row[j];
    row[p] = mean + gsl_ran_gaussian_ziggurat(rng, model->sigma);
  }
}

/* A block of rows on the scale on which prior and noise are standard normal: columns x_j prior_sd_j
 * / sigma, then (y - x'prior_mean) / sigma, each of length `n`. */
static void standardise(const linear *model, size_t n, const double *rows, double *columns)
{
  size_t p = model->covariates;
  for (size_t r = 0; r < n; r++) {
    const double *row = rows + r * (p + 1);
    double response = row[p];
    for (size_t j = 0; j < p; j++) {
      columns[j * n + r] = row[j] * model->prior_sd[j] / model->sigma;
      response -= row[j] * model->prior_mean[j];
    }
    columns[p * n + r] = response / model->sigma;
  }
}

/* With A = X diag(prior_sd) / sigma and b the centred response over sigma, b ~ N(0, I + A A'), so
 * that
 *
 *     log Z = -n log sigma - n/2 log 2 pi - 1/2 log |I + A'A| - 1/2 min_w (|b - A w|^2 + |w|^2).
 *
 * The factor R of the stacked matrix [I; A] is the Cholesky factor of I + A'A, and the minimum is
 * the part of b that remains after the reflections. */
static le_status exact(const void *self, const le_rows *rows, double *log_evidence)
{
  const linear *model = self;
  const size_t p = model->covariates;
  le_reflections fit;
  LE_TRY(le_reflections_alloc(&fit, p));
  for (size_t j = 0; j < p; j++) fit.factor[j * (p + 1) + j] = 1;
  for (size_t first = 0; first < rows->n; first += LE_REFLECTED) {
    const size_t n = rows->n - first < LE_REFLECTED ? rows->n - first : LE_REFLECTED;
    standardise(model, n, rows->values + first * (p + 1), fit.columns);
    le_reflect(&fit, n);
  }
  double log_diagonal = 0;
  for (size_t j = 0; j < p; j++) log_diagonal += log(fabs(fit.factor[j * (p + 1) + j]));
  *log_evidence = (double)rows->n * model->row_constant - log_diagonal - 0.5 * fit.squares;
  le_reflections_free(&fit);
  return isfinite(*log_evidence) ? LE_OK : LE_NOT_FINITE;
}

const le_model_ops le_linear_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "linear_regression",
  .traits = LE_MODEL_QUADRATIC,
  .create = create,
  .destroy = destroy,
  .dim = dim,
  .width = width,
  .scratch = scratch_size,
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
