/* Linear regression with group-level effects of one factor (models/mixed/sums.h). A row is a group:
 * its number of rows, then R without its zeros, row by row. theta is w, the logarithm of sigma if
 * it is unknown, then the numbers of the covariance of the effects. */
#include "models/mixed/sums.h"

#include "models/mixed/members.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct sums {
  le_priors priors;
  mixed_covariance covariance;
  sums_shape shape;
  size_t covariates, width;
  size_t *column; /* of M, for each covariate */
  size_t scales;  /* the first number of theta after w */
  int known;
  double sigma;
  le_simd simd;
} sums;

#define VECTOR_BODY "models/mixed/sums_body.h"
#include "base/variants.h"

typedef void (*sums_kernel)(const sums_shape *shape, const le_rows *rows, size_t n, int slopes,
                            const double *point, double *to, double *each);
#define GROUPS(variant) groups_##variant
static const sums_kernel kernels[] = TABLES(GROUPS);

/* ---- settings ---- */

static void destroy(void *self)
{
  sums *model = self;
  if (!model) return;
  free(model->column);
  free(model->priors.user);
  free(model->priors.mean);
  free(model->priors.of);
  free(model);
}

static int read_columns(const le_args *args, sums *model, char *message)
{
  const size_t p = model->covariates;
  for (size_t j = 0; j < p; j++) {
    double at;
    if (!le_read_number(args, "column", 0, -1, p, j, &at, message)) return 0;
    if (at != floor(at) || at >= (double)model->shape.columns) {
      snprintf(message, LE_MESSAGE_SIZE, "`column` must be whole numbers below %zu, not %g.",
               model->shape.columns, at);
      return 0;
    }
    model->column[j] = (size_t)at;
  }
  return 1;
}

static le_status read(const le_args *args, sums *model, char *message)
{
  sums_shape *s = &model->shape;
  size_t factors, end, p;
  if (!le_read_count(args, "covariates", 0, SUMS_COLUMNS_MOST, &p, message) ||
      !le_read_count(args, "columns", 1, SUMS_COLUMNS_MOST, &s->columns, message))
    return LE_BAD_ARGUMENT;
  model->covariates = model->scales = p;
  model->known = le_args_find(args, "sigma") != NULL;
  if (model->known && !le_read_numbers(args, "sigma", 1, 0, 1, &model->sigma, message))
    return LE_BAD_ARGUMENT;
  if (!le_mixed_read(args, p + (size_t)!model->known, 1, &factors, &model->covariance, &end,
                     &model->priors.d, message))
    return LE_BAD_ARGUMENT;
  s->q = model->covariance.q;
  if (s->q < 1 || s->q > s->columns) {
    snprintf(message, LE_MESSAGE_SIZE, "There must be from 1 to %zu effects, not %zu.", s->columns,
             s->q);
    return LE_BAD_ARGUMENT;
  }
  s->rate = s->columns;
  s->constant = s->rate + 1;
  s->root = s->constant + 1;
  s->numbers = s->root + s->q * s->q;
  model->width = 1 + (s->columns + 1) * (s->columns + 2) / 2;
  model->simd = le_simd_for(args);
  model->column = calloc(p + 1, sizeof *model->column);
  if (!model->column) return LE_NO_MEMORY;
  if (!read_columns(args, model, message)) return LE_BAD_ARGUMENT;
  const size_t positive[][2] = {{p, end}};
  return le_mixed_read_priors(args, 1, positive, &model->priors, message);
}

CREATE(sums, read, destroy)

static size_t width(const void *self) { return ((const sums *)self)->width; }

/* ---- parameters ---- */

/* Given the scales and correlations the posterior of w has one mode. */
static size_t scales(const void *self)
{
  const sums *model = self;
  return le_priors_tails(self) > 0 ? model->priors.d : model->priors.d - model->scales;
}

static void to_user(const void *self, const double *theta, double *user)
{
  le_priors_to_user(self, theta, user);
  le_mixed_correlations(&((const sums *)self)->covariance, theta, user);
}

/* ---- likelihood ---- */

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  (void)particles;
  const sums *model = self;
  const size_t points = 2 * model->priors.d + 1; /* of differences */
  return LE_ALIGN_MORE + (2 * model->shape.numbers + rows) * TILE + points * points;
}

/* The numbers of n particles, side by side; the last one fills the rest of the tile. */
static void fill(const sums *model, size_t n, const double *theta, double *point)
{
  const sums_shape *s = &model->shape;
  double root[MIXED_EFFECTS_MOST * MIXED_EFFECTS_MOST];
  memset(point, 0, s->columns * TILE * sizeof *point);
  for (size_t i = 0; i < n; i++) {
    const double *own = theta + i * model->priors.d;
    const double log_sigma = model->known ? log(model->sigma) : own[model->scales];
    for (size_t j = 0; j < model->covariates; j++)
      point[model->column[j] * TILE + i] = -own[j];
    point[s->rate * TILE + i] = exp(-log_sigma);
    point[s->constant * TILE + i] = log_sigma + HALF_LOG_2PI;
    le_mixed_root(&model->covariance, own, root);
    for (size_t k = 0; k < s->q * s->q; k++) point[(s->root + k) * TILE + i] = root[k];
  }
  for (size_t k = 0; k < s->numbers; k++)
    for (size_t i = n; i < TILE; i++) point[k * TILE + i] = point[k * TILE + n - 1];
}

static void add_slopes(const sums *model, size_t i, const double *theta, const double *to,
                       double *grad)
{
  const sums_shape *s = &model->shape;
  double root[MIXED_EFFECTS_MOST * MIXED_EFFECTS_MOST], slope[sizeof root / sizeof *root];
  for (size_t j = 0; j < model->covariates; j++)
    add_finite(to[model->column[j] * TILE + i], &grad[j]);
  if (!model->known) add_finite(to[s->rate * TILE + i], &grad[model->scales]);
  le_mixed_root(&model->covariance, theta, root);
  memset(slope, 0, sizeof slope);
  for (size_t k = 0; k < s->q * s->q; k++) add_finite(to[(s->root + k) * TILE + i], &slope[k]);
  le_mixed_chain(&model->covariance, theta, root, slope, grad);
}

static le_status evaluate(const sums *model, size_t m, const double *theta, const le_rows *rows,
                          double *value, double *grad, double *each, double *scratch)
{
  const sums_shape *s = &model->shape;
  const size_t d = model->priors.d;
  double *point = le_aligned(scratch), *to = point + s->numbers * TILE,
         *values = each ? to + s->numbers * TILE : NULL;
  for (size_t i = 0; i < m; i += TILE, theta += TILE * d) {
    const size_t n = m - i < TILE ? m - i : TILE;
    fill(model, n, theta, point);
    memset(to, 0, s->numbers * TILE * sizeof *to);
    kernels[model->simd](s, rows, n, grad != NULL, point, to, values);
    for (size_t k = 0; k < n; k++) {
      if (each)
        for (size_t r = 0; r < rows->n; r++) {
          const double x = values[r * TILE + k];
          each[(i + k) * rows->n + r] = x < INFINITY ? x : -INFINITY;
        }
      if (value) add_value(to[s->constant * TILE + k], &value[i + k]);
      if (grad) add_slopes(model, k, theta + k * d, to, grad + (i + k) * d);
    }
  }
  return LE_OK;
}

LIKELIHOODS(evaluate)

/* ---- effects ---- */

/* R times the numbers of `e`, one for each column but y, whose number is 1. */
static void residuals(const sums *model, const double *row, const double *e, double *out)
{
  const size_t c = model->shape.columns;
  const double *line = row + 1;
  for (size_t i = 0; i <= c; i++, line += c + 2 - i) {
    out[i] = line[c - i];
    for (size_t j = i; j < c; j++) out[i] += line[j - i] * e[j];
  }
}

static size_t effects_size(const void *self) { return ((const sums *)self)->shape.q; }

/* [1 B / sigma] = T U of a group, as in sums_body.h. */
static void orthogonalise(const sums *model, const double *row, const double *root, double rate,
                          double *t, double *u)
{
  const size_t c = model->shape.columns, q = model->shape.q;
  const double *line = row + 1;
  for (size_t i = 0; i < q; i++, line += c + 2 - i) {
    double *own = u + 2 * i * q;
    for (size_t j = 0; j < q; j++) {
      own[j] = (double)(i == j);
      own[q + j] = 0;
      for (size_t l = i > j ? i : j; l < q; l++)
        own[q + j] += rate * line[l - i] * root[l * q + j];
    }
    for (size_t j = 0; j < i; j++) {
      t[i * q + j] = le_dot(u + 2 * j * q, own, 2 * q);
      le_add_scaled(2 * q, -t[i * q + j], u + 2 * j * q, own);
    }
    t[i * q + i] = sqrt(le_dot(own, own, 2 * q));
    for (size_t l = 0; l < 2 * q; l++) own[l] /= t[i * q + i];
  }
}

/* T^-1 x */
static void solve(size_t q, const double *t, double *x)
{
  for (size_t i = 0; i < q; i++) x[i] = (x[i] - le_dot(t + i * q, x, i)) / t[i * q + i];
}

/* With U = [. C], v given the rows has the mean C'T^-1 w / sigma. A draw is one of all effects and
 * residuals, x and e, moved by the mean given what it lacks, w / sigma - e - B x / sigma. */
static void effects(const void *self, const double *theta, const le_rows *rows, const gsl_rng *rng,
                    double *out, double *scratch)
{
  const sums *model = self;
  const size_t c = model->shape.columns, q = model->shape.q;
  const double rate = exp(-(model->known ? log(model->sigma) : theta[model->scales]));
  double root[EFFECTS_SQUARED], t[EFFECTS_SQUARED], u[2 * EFFECTS_SQUARED],
    v[MIXED_EFFECTS_MOST], x[MIXED_EFFECTS_MOST] = {0}, *e = le_aligned(scratch), *w = e + c + 1;
  le_mixed_root(&model->covariance, theta, root);
  memset(e, 0, (c + 1) * sizeof *e);
  for (size_t j = 0; j < model->covariates; j++) e[model->column[j]] = -theta[j];
  for (size_t r = 0; r < rows->n; r++, out += q) {
    const double *row = rows->values + r * rows->width;
    residuals(model, row, e, w);
    orthogonalise(model, row, root, rate, t, u);
    for (size_t i = 0; i < q; i++) w[i] *= rate;
    for (size_t i = 0; rng && i < q; i++) {
      x[i] = gsl_ran_gaussian_ziggurat(rng, 1);
      w[i] -= gsl_ran_gaussian_ziggurat(rng, 1);
    }
    solve(q, t, w);
    for (size_t i = 0; i < q; i++) w[i] -= le_dot(u + 2 * i * q + q, x, q);
    for (size_t j = 0; j < q; j++) {
      v[j] = x[j];
      for (size_t i = 0; i < q; i++) v[j] += u[2 * i * q + q + j] * w[i];
    }
    le_lower_matvec(root, q, v, out);
  }
}

/* ---- second derivatives ---- */

/* Those by w, -M'S^-1 M in the coordinates of the factor. `sum`: columns squared. */
static void add_curves(const sums *model, const double *theta, const le_rows *rows, double *hess,
                       double *sum)
{
  const size_t c = model->shape.columns, q = model->shape.q, d = model->priors.d;
  const double rate = exp(-(model->known ? log(model->sigma) : theta[model->scales]));
  double root[EFFECTS_SQUARED], t[EFFECTS_SQUARED], u[2 * EFFECTS_SQUARED];
  double x[SUMS_COLUMNS_MOST], top[MIXED_EFFECTS_MOST * SUMS_COLUMNS_MOST];
  memset(sum, 0, c * c * sizeof *sum);
  le_mixed_root(&model->covariance, theta, root);
  for (size_t r = 0; r < rows->n; r++) {
    const double *row = rows->values + r * rows->width, *line = row + 1;
    orthogonalise(model, row, root, rate, t, u);
    for (size_t i = 0; i < c; i++, line += c + 2 - i) {
      const size_t from = i < q ? 0 : i;
      double *to = i < q ? top + i * c : x;
      for (size_t j = from; j < c; j++) to[j] = j < i ? 0 : rate * line[j - i];
      if (i < q) {
        for (size_t l = 0; l < i; l++) le_add_scaled(c, -t[i * q + l], top + l * c, to);
        for (size_t j = 0; j < c; j++) to[j] /= t[i * q + i];
      }
      for (size_t j = from; j < c; j++)
        for (size_t k = j; k < c; k++) sum[j * c + k] += to[j] * to[k];
    }
  }
  for (size_t j = 0; j < model->covariates; j++)
    for (size_t k = 0; k < model->covariates; k++) {
      const size_t a = model->column[j], b = model->column[k];
      add_finite(-(a < b ? sum[a * c + b] : sum[b * c + a]), &hess[j * d + k]);
    }
}

/* The others are differences of gradients along the logarithms of scales and along correlations,
 * with relative errors of about this size, squared. */
static const double SCALE_STEP = 3e-5;

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const sums *model = self;
  const size_t d = model->priors.d, p = model->covariates, some = d - p, m = 2 * some + 1;
  double *point = scratch, *slope = point + m * d, *value = slope + m * d, *room = value + m;
  for (size_t i = 0; i < m; i++) memcpy(point + i * d, theta, d * sizeof *point);
  for (size_t j = 0; j < some; j++) {
    point[2 * j * d + p + j] += SCALE_STEP;
    point[(2 * j + 1) * d + p + j] -= SCALE_STEP;
  }
  memset(slope, 0, m * (d + 1) * sizeof *slope); /* and `value` */
  LE_TRY(log_lik_grad(self, m, point, rows, value, slope, room));
  for (size_t j = 0; j < some; j++) {
    const double *up = slope + 2 * j * d, *down = up + d,
                 width = point[2 * j * d + p + j] - point[(2 * j + 1) * d + p + j];
    for (size_t k = 0; k < d; k++) {
      const double share = k < p ? 1 : 0.5, second = share * (up[k] - down[k]) / width;
      add_finite(second, &hess[(p + j) * d + k]);
      add_finite(second, &hess[k * d + p + j]);
    }
  }
  for (size_t k = 0; k < d; k++) add_finite(slope[2 * some * d + k], &grad[k]);
  add_curves(model, theta, rows, hess, scratch);
  return LE_OK;
}

/* ---- starting points for finding posterior modes ---- */

static size_t start_scratch(const void *self, size_t rows)
{
  const sums *model = self;
  const size_t p = model->covariates, c = model->shape.columns;
  return rows + p * p + p + 2 * (c + 1);
}

/* Least squares of all rows, each group with its own weight. */
static void least_squares(const sums *model, const le_rows *rows, const double *weight,
                          double *theta, double *square)
{
  const size_t p = model->covariates, c = model->shape.columns;
  double *right = square + p * p;
  memset(square, 0, p * p * sizeof *square);
  for (size_t j = 0; j < p; j++) {
    const le_prior *prior = &model->priors.of[j];
    square[j * p + j] = 1e-6 * prior->precision;
    right[j] = square[j * p + j] * prior->location;
  }
  for (size_t r = 0; r < rows->n; r++) {
    const double *line = rows->values + r * rows->width + 1;
    for (size_t i = 0; i <= c; i++, line += c + 2 - i)
      for (size_t j = 0; j < p; j++) {
        if (model->column[j] < i) continue;
        const double x = weight[r] * line[model->column[j] - i];
        right[j] += x * line[c - i];
        for (size_t k = 0; k < p; k++)
          if (model->column[k] >= i) square[j * p + k] += x * line[model->column[k] - i];
      }
  }
  for (size_t j = 0; j < p; j++) square[j * p + j] *= 1 + 1e-10;
  memcpy(theta, right, p * sizeof *theta);
  if (p == 0 || le_cholesky(square, p) != LE_OK) return;
  le_cholesky_solve(square, p, theta);
}

/* Coefficients of least squares with random weights of the groups; the variance of the residuals
 * is shared at random between noise and effects. */
static void start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch)
{
  const sums *model = self;
  const size_t p = model->covariates, c = model->shape.columns, q = model->shape.q;
  double *weight = scratch, *square = weight + rows->n, *e = square + p * p + p, *w = e + c + 1;
  for (size_t r = 0; r < rows->n; r++) weight[r] = gsl_ran_exponential(rng, 1);
  least_squares(model, rows, weight, theta, square);
  memset(e, 0, (c + 1) * sizeof *e);
  for (size_t j = 0; j < p; j++) e[model->column[j]] = -theta[j];
  double n = 0, squares = 0, size[1][MIXED_EFFECTS_MOST] = {{0}};
  for (size_t r = 0; r < rows->n; r++) {
    const double *row = rows->values + r * rows->width, *line = row + 1;
    residuals(model, row, e, w);
    n += row[0];
    squares += le_dot(w, w, c + 1);
    for (size_t i = 0; i < q; i++, line += c + 2 - i)
      for (size_t j = i; j < q; j++) size[0][j] += line[j - i] * line[j - i];
  }
  const double sd = sqrt(fmax(squares, 1e-300) / fmax(n, 1));
  if (!model->known) theta[p] = log(sd) - gsl_ran_exponential(rng, 0.5);
  for (size_t j = 0; j < q; j++) size[0][j] = le_mixed_unit(sd, size[0][j], n);
  le_mixed_start_scales(1, &model->covariance, p + (size_t)!model->known, model->priors.d,
                        (const double (*)[MIXED_EFFECTS_MOST])size, rng, theta);
}

const le_model_ops le_grouped_sums_model = {
  EFFECTS,
  .traits = LE_MODEL_UNITS,
  .name = "grouped_linear_regression",
  .create = create,
  .destroy = destroy,
  .width = width,
  .log_lik_grad = log_lik_grad,
  .log_lik_hess = log_lik_hess,
  .to_user = to_user,
  .start = start,
  .start_scratch = start_scratch,
  .scales = scales,
};
