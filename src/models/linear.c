/* Linear regression with known noise: y ~ N(x'w, sigma^2), w_j ~ N(prior_mean_j, prior_sd_j^2) independently.
 * A row is x_1 .. x_p, y; an intercept is a covariate that is always one.  The parameters are w itself, so the
 * user's scale is the unconstrained one.  The evidence has a closed form, computed here through an orthogonal
 * factorisation (see `exact`). */
#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_randist.h>
#include "models/shared.h"

typedef struct linear {
  size_t covariates;
  double sigma;
  double row_constant;   /* -log sigma - log(2 pi) / 2 */
  double prior_constant; /* the same of the prior, all covariates together */
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
  model->prior_mean = model->storage;
  model->prior_sd = model->storage + p;
  if (!le_read_numbers(args, "sigma", 1, 0, 1, &model->sigma, message) ||
      !le_read_numbers(args, "prior_mean", 0, -INFINITY, p, model->prior_mean, message) ||
      !le_read_numbers(args, "prior_sd", 1, 0, p, model->prior_sd, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  model->row_constant = -log(model->sigma) - HALF_LOG_2PI;
  model->prior_constant = 0;
  for (size_t j = 0; j < p; j++) model->prior_constant -= log(model->prior_sd[j]) + HALF_LOG_2PI;
  *self = model;
  return LE_OK;
}

static void destroy(void *self) { free(self); }

static size_t dim(const void *self) { return ((const linear *)self)->covariates; }

static size_t width(const void *self) { return ((const linear *)self)->covariates + 1; }

/* ---- prior ---- */

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const linear *model = self;
  size_t p = model->covariates;
  for (size_t i = 0; i < m; i++) {
    double squares = 0;
    for (size_t j = 0; j < p; j++) {
      double z = (theta[i * p + j] - model->prior_mean[j]) / model->prior_sd[j];
      squares += z * z;
    }
    double density = model->prior_constant - 0.5 * squares;
    value[i] = isnan(density) ? -INFINITY : density;
  }
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const linear *model = self;
  size_t p = model->covariates;
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < p; j++)
      grad[i * p + j] = (model->prior_mean[j] - theta[i * p + j]) / model->prior_sd[j] / model->prior_sd[j];
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  const linear *model = self;
  (void)theta;
  for (size_t j = 0; j < model->covariates; j++)
    hess[j * model->covariates + j] -= 1 / model->prior_sd[j] / model->prior_sd[j];
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const linear *model = self;
  for (size_t j = 0; j < model->covariates; j++)
    theta[j] = model->prior_mean[j] + gsl_ran_gaussian_ziggurat(rng, model->prior_sd[j]);
}

/* ---- likelihood ---- */

/* Tiles of all columns, the response last; zeros fill up the last tile. */
static void transpose(size_t p, const le_rows *rows, double *tiles)
{
  size_t columns = p + 1, count = tiles_of(rows->n);
  for (size_t t = 0; t < count; t++) {
    double *tile = tiles + t * columns * TILE;
    size_t first = t * TILE, here = rows_in_tile(rows->n, t);
    for (size_t r = 0; r < here; r++)
      for (size_t j = 0; j < columns; j++) tile[j * TILE + r] = rows->values[(first + r) * columns + j];
    for (size_t r = here; r < TILE; r++)
      for (size_t j = 0; j < columns; j++) tile[j * TILE + r] = 0;
  }
}

/* residual = y - x'w.  The zero rows that fill the last tile have none. */
static void tile_residuals(size_t p, const double *w, const double *tile, double *restrict residual)
{
  const double *restrict y = tile + p * TILE;
  combine(residual, p, w, tile);
  for (size_t r = 0; r < TILE; r++) residual[r] = y[r] - residual[r];
}

/* The tiles, the residuals of one tile, and partial sums of the gradient. */
static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  size_t p = ((const linear *)self)->covariates;
  (void)particles;
  return tiles_of(rows) * (p + 1) * TILE + TILE + p * LANES;
}

static double log_density(const linear *model, size_t n, double squares)
{
  return (double)n * model->row_constant - 0.5 * squares / model->sigma / model->sigma;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                         double *scratch)
{
  const linear *model = self;
  size_t p = model->covariates, count = tiles_of(rows->n);
  double *residual = scratch + count * (p + 1) * TILE;
  transpose(p, rows, scratch);
  for (size_t i = 0; i < m; i++) {
    double squares[LANES] = {0};
    for (size_t t = 0; t < count; t++) {
      tile_residuals(p, theta + i * p, scratch + t * (p + 1) * TILE, residual);
      le_fold_products(squares, residual, residual);
    }
    add_value(log_density(model, rows->n, sum_lanes(squares)), &value[i]);
  }
  return LE_OK;
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                              double *grad, double *scratch)
{
  const linear *model = self;
  size_t p = model->covariates, count = tiles_of(rows->n);
  double *residual = scratch + count * (p + 1) * TILE, *lanes = residual + TILE;
  transpose(p, rows, scratch);
  for (size_t i = 0; i < m; i++) {
    double squares[LANES] = {0};
    memset(lanes, 0, p * LANES * sizeof *lanes);
    for (size_t t = 0; t < count; t++) {
      const double *tile = scratch + t * (p + 1) * TILE;
      tile_residuals(p, theta + i * p, tile, residual);
      le_fold_products(squares, residual, residual);
      for (size_t j = 0; j < p; j++) le_fold_products(lanes + j * LANES, residual, tile + j * TILE);
    }
    add_value(log_density(model, rows->n, sum_lanes(squares)), &value[i]);
    for (size_t j = 0; j < p; j++)
      add_finite(sum_lanes(lanes + j * LANES) / model->sigma / model->sigma, &grad[i * p + j]);
  }
  return LE_OK;
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows, double *grad, double *hess,
                              double *scratch)
{
  const linear *model = self;
  size_t p = model->covariates, count = tiles_of(rows->n);
  double precision = 1 / model->sigma / model->sigma;
  double *residual = scratch + count * (p + 1) * TILE;
  transpose(p, rows, scratch);
  for (size_t t = 0; t < count; t++) {
    const double *tile = scratch + t * (p + 1) * TILE;
    tile_residuals(p, theta, tile, residual);
    for (size_t j = 0; j < p; j++) {
      grad[j] += precision * dot_tile(residual, tile + j * TILE);
      for (size_t k = 0; k <= j; k++) {
        double entry = precision * dot_tile(tile + j * TILE, tile + k * TILE);
        hess[j * p + k] -= entry;
        if (k != j) hess[k * p + j] -= entry;
      }
    }
  }
  for (size_t j = 0; j < p; j++)
    if (!isfinite(grad[j])) return LE_NOT_FINITE;
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                              double *scratch)
{
  const linear *model = self;
  size_t p = model->covariates, n = rows->n;
  double *residual = scratch + tiles_of(n) * (p + 1) * TILE;
  transpose(p, rows, scratch);
  for (size_t i = 0; i < m; i++)
    for (size_t first = 0; first < n; first += TILE) {
      tile_residuals(p, theta + i * p, scratch + first * (p + 1), residual);
      for (size_t r = first; r < n && r < first + TILE; r++) {
        double z = residual[r - first] / model->sigma;
        double density = model->row_constant - 0.5 * z * z;
        value[i * n + r] = isnan(density) ? -INFINITY : density;
      }
    }
  return LE_OK;
}

/* ---- simulation and the exact answer ---- */

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n, double *rows)
{
  const linear *model = self;
  size_t p = model->covariates;
  for (size_t r = 0; r < n; r++) {
    double *row = rows + r * (p + 1), mean = 0;
    for (size_t j = 0; j < p; j++) mean += theta[j] * row[j];
    row[p] = mean + gsl_ran_gaussian_ziggurat(rng, model->sigma);
  }
}

static double dot(size_t n, const double *a, const double *b)
{
  double lanes[LANES] = {0};
  size_t r = 0;
  for (; r + LANES <= n; r += LANES)
    for (size_t l = 0; l < LANES; l++) lanes[l] += a[r + l] * b[r + l];
  for (size_t l = 0; r < n; r++, l++) lanes[l] += a[r] * b[r];
  return sum_lanes(lanes);
}

/* A block of rows on the scale where the prior of the weights and the noise are standard normal:
 * columns x_j prior_sd_j / sigma, then (y - x'prior_mean) / sigma, each `n` long. */
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

/* Brings the rows of a block into the triangular factor by one Householder reflection per covariate, which
 * involves row j of the factor and the whole block.  factor[j * (p + 1) + k] is row j, its last entry the
 * response.  What is left of the response column cannot be explained by any weights. */
static void absorb(size_t p, double *factor, size_t n, double *columns)
{
  for (size_t j = 0; j < p; j++) {
    double *row = factor + j * (p + 1), *pivot = columns + j * n;
    double length = sqrt(dot(n, pivot, pivot));
    if (length == 0) continue; /* the block adds nothing to this direction */
    double norm = hypot(row[j], length);
    double diagonal = row[j] > 0 ? -norm : norm, head = row[j] - diagonal;
    for (size_t k = j + 1; k <= p; k++) {
      double *column = columns + k * n;
      double along = -(head * row[k] + dot(n, pivot, column)) / diagonal; /* times head */
      row[k] -= along;
      double step = along / head;
      for (size_t r = 0; r < n; r++) column[r] -= step * pivot[r];
    }
    row[j] = diagonal;
  }
}

/* With A = X diag(prior_sd) / sigma and b the centred response over sigma, b ~ N(0, I + A A'), so that
 *   log Z = -n log sigma - n/2 log 2 pi - 1/2 log |I + A'A| - 1/2 min_w (|b - A w|^2 + |w|^2).
 * The factor R of the stacked matrix [I; A] is the Cholesky factor of I + A'A, but A'A is never formed: its
 * condition number would be the square of A's, and collinear covariates would cost all digits.  The minimum is
 * the part of b that the reflections leave over, a sum of squares without cancellation. */
static le_status exact(const void *self, const le_rows *rows, double *log_evidence)
{
  enum { BLOCK = 512 };
  const linear *model = self;
  size_t p = model->covariates;
  double *factor = calloc(p * (p + 1), sizeof *factor);
  double *columns = malloc((p + 1) * BLOCK * sizeof *columns);
  if (!factor || !columns) {
    free(factor);
    free(columns);
    return LE_NO_MEMORY;
  }
  for (size_t j = 0; j < p; j++) factor[j * (p + 1) + j] = 1;

  double squares = 0, lost = 0; /* Kahan's sum: a stream of many blocks keeps its last digits */
  for (size_t first = 0; first < rows->n; first += BLOCK) {
    size_t n = rows->n - first < BLOCK ? rows->n - first : BLOCK;
    standardise(model, n, rows->values + first * (p + 1), columns);
    absorb(p, factor, n, columns);
    double term = dot(n, columns + p * n, columns + p * n) - lost, next = squares + term;
    lost = (next - squares) - term;
    squares = next;
  }
  double log_diagonal = 0;
  for (size_t j = 0; j < p; j++) log_diagonal += log(fabs(factor[j * (p + 1) + j]));
  *log_evidence = (double)rows->n * model->row_constant - log_diagonal - 0.5 * squares;
  free(factor);
  free(columns);
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
