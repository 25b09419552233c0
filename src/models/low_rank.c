/* A matrix of low rank and noise: y_ij ~ N(u_i' v_j, noise_sd^2), u_ik ~ N(0, row_sd^2), v_kj ~ N(0, column_sd^2).  Nothing is
 * integrated out: sweeps draw all of U given V, then all of V given U.  A row's latent is u_i.  Unknown variances of U and noise
 * are moved with U integrated out, just before it is drawn.
 *
 * State: variances of U, V and the noise, V (K x D), U (N x K).  Settings: rank, row_sd, and those of latent_shared.h, whose
 * prior_sd is column_sd. */
#include "base/linalg.h"
#include "models/latent_shared.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS, COLUMNS, NOISE, FACTORS };

typedef struct low_rank {
  le_gaussian_prior gaussian;
  double row_sd;
  size_t k;
} low_rank;

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  low_rank *model = calloc(1, sizeof *model);
  if (!model) return LE_NO_MEMORY;
  if (!le_read_count(args, "rank", 1, 10000, &model->k, message) ||
      !le_gaussian_prior_read(args, &model->gaussian, message) ||
      !le_read_numbers(args, "row_sd", 1, 0, 1, &model->row_sd, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  *self = model;
  return LE_OK;
}

static size_t width(const void *self) { return ((const low_rank *)self)->gaussian.width; }

static size_t size(const void *self, size_t n)
{
  const low_rank *model = self;
  return FACTORS + model->k * (model->gaussian.width + n);
}

static size_t scratch_size(const void *self, size_t n)
{
  const low_rank *model = self;
  return model->k * (3 * model->k + 3) + n * model->gaussian.width;
}

static double *columns_of(double *state) { return state + FACTORS; }
static double *rows_of(const low_rank *model, double *state) { return state + FACTORS + model->k * model->gaussian.width; }

static double sum_squares(const double *x, size_t n) { return le_dot(x, x, n); }

static double log_normals(const double *x, size_t n, double variance)
{
  return -(double)n * (HALF_LOG_2PI + 0.5 * log(variance)) - 0.5 * sum_squares(x, n) / variance;
}

/* One of the two kinds of vectors given the other: x has precision P = I / variance + weight * A A', A the k x n regressors
 * that lie `across` apart along k and `along` apart along n; its factor comes first in scratch. */
static void factorise(size_t k, size_t n, const double *a, size_t across, size_t along, double variance, double weight,
                      double *factor)
{
  for (size_t p = 0; p < k; p++)
    for (size_t q = 0; q <= p; q++) {
      double sum = 0;
      for (size_t i = 0; i < n; i++) sum += a[p * across + i * along] * a[q * across + i * along];
      factor[p * k + q] = factor[q * k + p] = weight * sum + (p == q) / variance;
    }
  le_cholesky(factor, k); /* positive definite by construction */
}

/* b = weight * A y, and the mean P^-1 b in `mean`. */
static void regress(size_t k, size_t n, const double *a, size_t across, size_t along, const double *y, size_t stride,
                    double weight, const double *factor, double *b, double *mean)
{
  for (size_t p = 0; p < k; p++) {
    b[p] = 0;
    for (size_t i = 0; i < n; i++) b[p] += weight * a[p * across + i * along] * y[i * stride];
    mean[p] = b[p];
  }
  le_cholesky_solve(factor, k, mean);
}

/* x = mean + L'^-1 z, or what it is forced to be; returns the log density of the latter. */
static double draw(size_t k, const double *factor, const double *mean, const double *to, const gsl_rng *rng, double *x,
                   size_t stride, double *z)
{
  if (to) {
    for (size_t p = 0; p < k; p++) z[p] = (x[p * stride] = to[p * stride]) - mean[p];
    double square = 0;
    for (size_t q = 0; q < k; q++) {
      double sum = 0;
      for (size_t p = q; p < k; p++) sum += factor[p * k + q] * z[p];
      square += sum * sum;
    }
    return le_cholesky_half_log_det(factor, k) - (double)k * HALF_LOG_2PI - 0.5 * square;
  }
  for (size_t p = 0; p < k; p++) z[p] = gsl_ran_gaussian_ziggurat(rng, 1);
  for (size_t p = k; p-- > 0;) {
    for (size_t q = p + 1; q < k; q++) z[p] -= factor[q * k + p] * z[q];
    z[p] /= factor[p * k + p];
  }
  for (size_t p = 0; p < k; p++) x[p * stride] = mean[p] + z[p];
  return 0;
}

static double sweep_rows(const low_rank *model, size_t from, size_t seen, const le_rows *rows, double lambda,
                         const double *to, const gsl_rng *rng, double *state, double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double weight = lambda / state[NOISE], *v = columns_of(state);
  double *factor = scratch, *b = scratch + k * k, *mean = b + k, *u = rows_of(model, state), sum = 0;
  const double *wanted = to ? to + (u - state) : NULL;
  factorise(k, d, v, d, 1, state[ROWS], weight, factor);
  for (size_t i = from; i < seen; i++) {
    regress(k, d, v, d, 1, rows->values + i * d, 1, weight, factor, b, mean);
    sum += draw(k, factor, mean, wanted ? wanted + i * k : NULL, rng, u + i * k, 1, b);
  }
  return sum;
}

static double sweep_columns(const low_rank *model, size_t seen, const le_rows *rows, double lambda, const double *to,
                            const gsl_rng *rng, double *state, double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double weight = lambda / state[NOISE], *u = rows_of(model, state);
  double *factor = scratch, *b = scratch + k * k, *mean = b + k, sum = 0;
  factorise(k, seen, u, 1, k, state[COLUMNS], weight, factor);
  for (size_t j = 0; j < d; j++) {
    regress(k, seen, u, 1, k, rows->values + j, d, weight, factor, b, mean);
    sum += draw(k, factor, mean, to ? to + FACTORS + j : NULL, rng, columns_of(state) + j, d, b);
  }
  return sum;
}

static double residual_squares(const low_rank *model, size_t from, size_t seen, const le_rows *rows, const double *state)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double *v = state + FACTORS, *u = v + k * d;
  double square = 0;
  for (size_t i = from; i < seen; i++)
    for (size_t j = 0; j < d; j++) {
      double residual = rows->values[i * d + j];
      for (size_t p = 0; p < k; p++) residual -= u[i * k + p] * v[p * d + j];
      square += residual * residual;
    }
  return square;
}

/* U longer and V shorter with their variances: the likelihood does not change, and the priors but in the variances. */
typedef struct exchange {
  double log_ratio, scale, rows, columns;
} exchange;

static double exchange_density(void *context)
{
  const exchange *e = context;
  return -e->scale * (exp(-e->log_ratio) / e->rows + exp(e->log_ratio) / e->columns);
}

static void balance(const low_rank *model, size_t seen, const gsl_rng *rng, double *state)
{
  const size_t cells = model->k * model->gaussian.width;
  exchange e = {0, model->gaussian.scale, state[ROWS], state[COLUMNS]};
  le_slice(rng, &e.log_ratio, exchange_density, &e);
  const double ratio = exp(e.log_ratio), root = sqrt(ratio);
  state[ROWS] *= ratio;
  state[COLUMNS] /= ratio;
  for (size_t c = 0; c < cells; c++) columns_of(state)[c] /= root;
  for (size_t c = 0; c < seen * model->k; c++) rows_of(model, state)[c] *= root;
}

/* The variance of V, and which of U and V is the longer. */
static void sweep_scales(const low_rank *model, size_t seen, const gsl_rng *rng, double *state, int backwards, int balances)
{
  const size_t cells = model->k * model->gaussian.width;
  if (balances && backwards) balance(model, seen, rng, state);
  state[COLUMNS] = le_draw_variance(&model->gaussian, rng, (double)cells, sum_squares(columns_of(state), cells));
  if (balances && !backwards) balance(model, seen, rng, state);
}

/* log p(rows | V) at lambda but for a constant, from V V' and V Y' Y V', which lie in scratch behind a factor's room. */
static double log_lik_columns(const void *self, size_t seen, const le_rows *rows, double lambda, const double *state,
                              double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k;
  const double weight = lambda / state[NOISE], *square = scratch + k * k, *cross = square + k * k;
  double *factor = scratch, *column = scratch + 3 * k * k, sum = 0;
  for (size_t c = 0; c < k * k; c++) factor[c] = weight * square[c];
  for (size_t p = 0; p < k; p++) factor[p * k + p] += 1 / state[ROWS];
  le_cholesky(factor, k); /* positive definite by construction */
  for (size_t p = 0; p < k; p++) {
    memcpy(column, cross + p * k, k * sizeof(double));
    le_cholesky_solve(factor, k, column);
    sum += column[p];
  }
  return -lambda * 0.5 * (double)(seen * rows->width) * log(state[NOISE]) -
         0.5 * weight * sum_squares(rows->values, seen * rows->width) + 0.5 * weight * weight * sum -
         (double)seen * (le_cholesky_half_log_det(factor, k) + 0.5 * (double)k * log(state[ROWS]));
}

static void prepare_columns(const low_rank *model, size_t seen, const le_rows *rows, double *state, double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  double *square = scratch + k * k, *cross = square + k * k, *image = cross + k * k;
  const double *v = columns_of(state);
  memset(cross, 0, k * k * sizeof(double));
  for (size_t p = 0; p < k; p++)
    for (size_t q = 0; q < k; q++) square[p * k + q] = le_dot(v + p * d, v + q * d, d);
  for (size_t i = 0; i < seen; i++) {
    for (size_t p = 0; p < k; p++) image[p] = le_dot(v + p * d, rows->values + i * d, d);
    for (size_t p = 0; p < k; p++)
      for (size_t q = 0; q < k; q++) cross[p * k + q] += image[p] * image[q];
  }
}

/* All rows' latents, the variances that go with them before. */
static double sweep_rows_and_noise(const low_rank *model, size_t seen, const le_rows *rows, double lambda, int backwards,
                                   const double *to, const gsl_rng *rng, double *state, double *scratch)
{
  const le_view view = {log_lik_columns, model, &model->gaussian, seen, rows, lambda, 0, 0, state, scratch};
  if (model->gaussian.infer) {
    prepare_columns(model, seen, rows, state, scratch);
    le_slice_variance(&view, rng, backwards ? ROWS : NOISE);
    le_slice_variance(&view, rng, backwards ? NOISE : ROWS);
  }
  return sweep_rows(model, 0, seen, rows, lambda, to, rng, state, scratch);
}

static double sweep(const void *self, size_t seen, const le_rows *rows, double lambda, int backwards, const double *to,
                    const gsl_rng *rng, double *state, double *scratch)
{
  const low_rank *model = self;
  const int infer = model->gaussian.infer;
  double sum = 0;
  if (infer && backwards) sweep_scales(model, seen, rng, state, 1, !to);
  if (backwards) sum += sweep_columns(model, seen, rows, lambda, to, rng, state, scratch);
  sum += sweep_rows_and_noise(model, seen, rows, lambda, backwards, to, rng, state, scratch);
  if (!backwards) sum += sweep_columns(model, seen, rows, lambda, to, rng, state, scratch);
  if (infer && !backwards) sweep_scales(model, seen, rng, state, 0, !to);
  return to ? sum : 0;
}

static void start(const void *self, const gsl_rng *rng, double *state)
{
  const low_rank *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const double sd[3] = {model->row_sd, g->prior_sd, g->noise_sd};
  for (size_t v = 0; v < 3; v++) state[v] = g->infer ? le_draw_variance(g, rng, 0, 0) : sd[v] * sd[v];
  for (size_t c = 0; c < model->k * g->width; c++)
    columns_of(state)[c] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[COLUMNS]));
}

static void extend_blind(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng, double *state,
                         double *scratch)
{
  const low_rank *model = self;
  (void)rows;
  (void)scratch;
  for (size_t p = 0; p < model->k; p++)
    rows_of(model, state)[seen * model->k + p] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[ROWS]));
}

static double last_given_latent(const void *self, size_t seen, const le_rows *rows, double *state, double *scratch)
{
  const low_rank *model = self;
  (void)scratch;
  return -(double)model->gaussian.width * (HALF_LOG_2PI + 0.5 * log(state[NOISE])) -
         0.5 * residual_squares(model, seen - 1, seen, rows, state) / state[NOISE];
}

/* A row given V alone: covariance noise I + V' V rows, by its small dual. */
static double last_given_rest(const void *self, size_t seen, const le_rows *rows, double *state, double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *y = rows->values + (seen - 1) * d, *v = columns_of(state);
  double *factor = scratch, *b = scratch + k * k, *mean = b + k;
  factorise(k, d, v, d, 1, state[ROWS], 1 / state[NOISE], factor);
  regress(k, d, v, d, 1, y, 1, 1 / state[NOISE], factor, b, mean);
  return log_normals(y, d, state[NOISE]) + 0.5 * le_dot(b, mean, k) - le_cholesky_half_log_det(factor, k) -
         0.5 * (double)k * log(state[ROWS]);
}

static double extend(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng, double *state,
                     double *scratch)
{
  const double value = last_given_rest(self, seen + 1, rows, state, scratch);
  sweep_rows(self, seen, seen + 1, rows, 1, NULL, rng, state, scratch);
  return value;
}

static double log_prior(const void *self, size_t seen, const double *state)
{
  const low_rank *model = self;
  const size_t cells = model->k * model->gaussian.width;
  double sum = log_normals(state + FACTORS, cells, state[COLUMNS]) +
               log_normals(state + FACTORS + cells, seen * model->k, state[ROWS]);
  for (size_t v = 0; v < 3 && model->gaussian.infer; v++) sum += le_log_variance_prior(&model->gaussian, state[v]);
  return sum;
}

static double log_lik(const void *self, size_t seen, const le_rows *rows, double lambda, const double *state,
                      double *scratch)
{
  const low_rank *model = self;
  (void)scratch;
  return -lambda * ((double)(seen * model->gaussian.width) * (HALF_LOG_2PI + 0.5 * log(state[NOISE])) +
                    0.5 * residual_squares(model, 0, seen, rows, state) / state[NOISE]);
}

/* A standard normal number between two. */
static double draw_between(const gsl_rng *rng, double low, double high)
{
  if (low > 0) return -draw_between(rng, -high, -low);
  const double from = gsl_cdf_ugaussian_P(low), to = gsl_cdf_ugaussian_P(high);
  const double p = from + (to - from) * gsl_rng_uniform_pos(rng);
  /* so far out that the tail is gone: next to its edge */
  const double x = p > 0 ? p < 1 ? gsl_cdf_ugaussian_Pinv(p) : high : high;
  return fmin(fmax(x, low), high);
}

/* Moves a number of normal prior along which the sum of squared residuals is square - 2 step slope + step^2 curve, where it
 * must stay under `most`; returns the step. */
static double move_within(const gsl_rng *rng, double *x, double sd, double *square, double slope, double curve, double most)
{
  const double root = slope * slope + curve * (most - *square);
  double low = -INFINITY, high = INFINITY;
  if (curve > 0) {
    if (!(root > 0)) return 0;
    low = (slope - sqrt(root)) / curve;
    high = (slope + sqrt(root)) / curve;
  }
  const double old = *x, step = (*x = sd * draw_between(rng, (old + low) / sd, (old + high) / sd)) - old;
  *square += step * (step * curve - 2 * slope);
  return step;
}

/* One number of U or V at a time: a wall in the likelihood is an interval for each, in which the prior is normal. */
static void sweep_above(const void *self, size_t seen, const le_rows *rows, double floor, double tie, const gsl_rng *rng,
                        double *state, double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  double *v = columns_of(state), *u = rows_of(model, state), *residual = scratch, square = 0;
  (void)tie;
  for (size_t i = 0; i < seen; i++)
    for (size_t j = 0; j < d; j++) {
      double *r = residual + i * d + j;
      *r = rows->values[i * d + j];
      for (size_t p = 0; p < k; p++) *r -= u[i * k + p] * v[p * d + j];
      square += *r * *r;
    }
  const double cells = (double)(seen * d);
  const double most = -2 * state[NOISE] * (floor + cells * (HALF_LOG_2PI + 0.5 * log(state[NOISE])));
  for (size_t i = 0; i < seen; i++)
    for (size_t p = 0; p < k; p++) {
      double *r = residual + i * d;
      const double step = move_within(rng, &u[i * k + p], sqrt(state[ROWS]), &square, le_dot(r, v + p * d, d),
                                      le_dot(v + p * d, v + p * d, d), most);
      for (size_t j = 0; j < d; j++) r[j] -= step * v[p * d + j];
    }
  for (size_t p = 0; p < k; p++)
    for (size_t j = 0; j < d; j++) {
      double slope = 0, curve = 0;
      for (size_t i = 0; i < seen; i++) {
        slope += residual[i * d + j] * u[i * k + p];
        curve += u[i * k + p] * u[i * k + p];
      }
      const double step = move_within(rng, &v[p * d + j], sqrt(state[COLUMNS]), &square, slope, curve, most);
      for (size_t i = 0; i < seen; i++) residual[i * d + j] -= step * u[i * k + p];
    }
  if (!model->gaussian.infer) return;
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, 1, 1, floor, state, scratch};
  state[ROWS] = le_draw_variance(&model->gaussian, rng, (double)(seen * k), sum_squares(u, seen * k));
  sweep_scales(model, seen, rng, state, 0, 1);
  le_slice_variance(&view, rng, NOISE);
}

static void simulate(const void *self, size_t n, const double *state, const gsl_rng *rng, double *rows, double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *v = state + FACTORS, *u = v + k * d;
  (void)scratch;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) {
      double value = gsl_ran_gaussian_ziggurat(rng, sqrt(state[NOISE]));
      for (size_t p = 0; p < k; p++) value += u[i * k + p] * v[p * d + j];
      rows[i * d + j] = value;
    }
}

/* ---- mean-field variational Bayes ----
 * q: means of U (N x K), the covariance that its rows share (K x K), means of V (K x D), the covariance that its columns share,
 * and with `infer` the three variances, as the state has them. */

enum { Q_ROWS, Q_COLUMNS, Q_VARIANCES, Q_FACTORS = Q_VARIANCES + 3 };

typedef struct factors {
  size_t n, k, d;
  double *u, *u_covariance, *v, *v_covariance, *variance;
  le_expected_variance expect[3];
} factors;

static factors divide(const low_rank *model, size_t n, const double *q)
{
  const le_gaussian_prior *g = &model->gaussian;
  const double sd[3] = {model->row_sd, g->prior_sd, g->noise_sd};
  factors f = {.n = n, .k = model->k, .d = g->width, .u = (double *)(size_t)q};
  f.u_covariance = f.u + n * f.k;
  f.v = f.u_covariance + f.k * f.k;
  f.v_covariance = f.v + f.k * f.d;
  f.variance = f.v_covariance + f.k * f.k;
  for (size_t v = 0; v < 3; v++) f.expect[v] = le_q_variance(g, sd[v], f.variance + 2 * v);
  return f;
}

static size_t q_size(const void *self, size_t n)
{
  const low_rank *model = self;
  return model->k * (n + model->gaussian.width + 2 * model->k) + 6;
}

static size_t q_scratch(const void *self, size_t n)
{
  const low_rank *model = self;
  (void)n;
  return model->k * (2 * model->k + 2);
}

static size_t q_factors(const void *self) { return ((const low_rank *)self)->gaussian.infer ? Q_FACTORS : Q_VARIANCES; }

/* out = sum E[a a'] over n vectors of means `a`, which lie as factorise() has them, and one covariance. */
static void second_moments(size_t k, size_t n, const double *a, size_t across, size_t along, const double *covariance,
                           double *out)
{
  for (size_t p = 0; p < k; p++)
    for (size_t q = 0; q <= p; q++) {
      double sum = (double)n * covariance[p * k + q];
      for (size_t i = 0; i < n; i++) sum += a[p * across + i * along] * a[q * across + i * along];
      out[p * k + q] = out[q * k + p] = sum;
    }
}

static double trace_of_product(size_t k, const double *a, const double *b) { return le_dot(a, b, k * k); }

/* covariance = (prior I + weight moments)^-1; `moments` becomes a factor. */
static le_status update_covariance(size_t k, double prior, double weight, double *moments, double *covariance)
{
  for (size_t p = 0; p < k * k; p++) moments[p] = weight * moments[p] + (p % (k + 1) == 0 ? prior : 0);
  const le_status status = le_cholesky(moments, k);
  if (status != LE_OK) return status;
  memset(covariance, 0, k * k * sizeof(double));
  for (size_t p = 0; p < k; p++) {
    covariance[p * k + p] = 1;
    le_cholesky_solve(moments, k, covariance + p * k);
  }
  return LE_OK;
}

static le_status update_rows(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->expect[NOISE].precision;
  double *b = scratch + k * k;
  second_moments(k, d, f->v, d, 1, f->v_covariance, scratch);
  const le_status status = update_covariance(k, f->expect[ROWS].precision, weight, scratch, f->u_covariance);
  if (status != LE_OK) return status;
  for (size_t i = 0; i < f->n; i++)
    regress(k, d, f->v, d, 1, rows->values + i * d, 1, weight, scratch, b, f->u + i * k);
  return LE_OK;
}

static le_status update_columns(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->expect[NOISE].precision;
  double *b = scratch + k * k, *mean = b + k;
  second_moments(k, f->n, f->u, 1, k, f->u_covariance, scratch);
  const le_status status = update_covariance(k, f->expect[COLUMNS].precision, weight, scratch, f->v_covariance);
  if (status != LE_OK) return status;
  for (size_t j = 0; j < d; j++) {
    regress(k, f->n, f->u, 1, k, rows->values + j, d, weight, scratch, b, mean);
    for (size_t p = 0; p < k; p++) f->v[p * d + j] = mean[p];
  }
  return LE_OK;
}

static double q_squares(const factors *f, int columns)
{
  const double *x = columns ? f->v : f->u, *covariance = columns ? f->v_covariance : f->u_covariance;
  const size_t n = columns ? f->d : f->n;
  double trace = 0;
  for (size_t p = 0; p < f->k; p++) trace += covariance[p * (f->k + 1)];
  return sum_squares(x, n * f->k) + (double)n * trace;
}

/* E |Y - U V|^2: where means are, and what both spread around them. */
static double q_residuals(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  double sum = 0, *zero = scratch + k * k;
  for (size_t i = 0; i < f->n; i++)
    for (size_t j = 0; j < d; j++) {
      double residual = rows->values[i * d + j];
      for (size_t p = 0; p < k; p++) residual -= f->u[i * k + p] * f->v[p * d + j];
      sum += residual * residual;
    }
  second_moments(k, d, f->v, d, 1, f->v_covariance, scratch);
  sum += (double)f->n * trace_of_product(k, f->u_covariance, scratch);
  memset(zero, 0, k * k * sizeof(double));
  second_moments(k, f->n, f->u, 1, k, zero, scratch);
  return sum + (double)d * trace_of_product(k, f->v_covariance, scratch);
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q, double *scratch)
{
  const low_rank *model = self;
  const factors f = divide(model, rows->n, q);
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  if (factor == Q_ROWS) return update_rows(&f, rows, scratch);
  if (factor == Q_COLUMNS) return update_columns(&f, rows, scratch);
  const size_t which = factor - Q_VARIANCES;
  const double count[3] = {(double)(f.n * f.k), (double)(f.k * f.d), (double)(f.n * f.d)};
  le_update_variance(prior, count[which], which == NOISE ? q_residuals(&f, rows, scratch) : q_squares(&f, which == COLUMNS),
                     f.variance + 2 * which);
  return LE_OK;
}

/* From V on, drawn from the prior or known. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng, double *q,
                         double *scratch)
{
  const low_rank *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const size_t k = model->k, d = g->width;
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  factors f = divide(model, rows->n, q);
  const double count[3] = {(double)(f.n * k), (double)(k * d), (double)(f.n * d)};
  for (size_t v = 0; v < 3; v++)
    le_point_variance(le_variance_prior(g), hint ? count[v] : 0, hint ? hint[v] : g->scale / g->shape, f.variance + 2 * v);
  const double sd = g->infer ? sqrt(g->scale / g->shape) : g->prior_sd;
  for (size_t c = 0; c < k * d; c++) f.v[c] = hint ? hint[FACTORS + c] : gsl_ran_gaussian_ziggurat(rng, sd);
  le_status status = LE_OK;
  for (size_t factor = 0; factor < q_factors(self) && status == LE_OK; factor++)
    status = q_update(self, rows, factor, q, scratch);
  return status;
}

static double half_log_det(const double *covariance, size_t k, double *scratch)
{
  memcpy(scratch, covariance, k * k * sizeof(double));
  return le_cholesky(scratch, k) == LE_OK ? le_cholesky_half_log_det(scratch, k) : NAN;
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const low_rank *model = self;
  const factors f = divide(model, rows->n, q);
  const double n = (double)f.n, k = (double)f.k, d = (double)f.d;
  double bound = -n * d * (HALF_LOG_2PI + 0.5 * f.expect[NOISE].log) -
                 0.5 * f.expect[NOISE].precision * q_residuals(&f, rows, scratch) +
                 le_normal_gain(n * k, q_squares(&f, 0), n * half_log_det(f.u_covariance, f.k, scratch), f.expect[ROWS]) +
                 le_normal_gain(k * d, q_squares(&f, 1), d * half_log_det(f.v_covariance, f.k, scratch), f.expect[COLUMNS]);
  for (size_t v = 0; v < 3 && model->gaussian.infer; v++)
    bound += le_variance_gain(le_variance_prior(&model->gaussian), f.variance + 2 * v);
  return bound;
}

/* n vectors around their means, with one covariance. */
static void draw_vectors(size_t k, size_t n, const double *mean, size_t across, size_t along, const double *covariance,
                         const gsl_rng *rng, double *out, double *scratch)
{
  double *z = scratch + k * k, *x = z + k;
  memcpy(scratch, covariance, k * k * sizeof(double));
  le_cholesky(scratch, k); /* the bound was finite */
  for (size_t i = 0; i < n; i++) {
    for (size_t p = 0; p < k; p++) z[p] = gsl_ran_gaussian_ziggurat(rng, 1);
    le_lower_matvec(scratch, k, z, x);
    for (size_t p = 0; p < k; p++) out[p * across + i * along] = mean[p * across + i * along] + x[p];
  }
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point, double *scratch)
{
  const low_rank *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const factors f = divide(model, n, q);
  const double sd[3] = {model->row_sd, g->prior_sd, g->noise_sd};
  for (size_t v = 0; v < 3; v++)
    point[v] = g->infer ? le_draw_inverse_gamma(f.variance + 2 * v, rng) : sd[v] * sd[v];
  draw_vectors(f.k, f.d, f.v, f.d, 1, f.v_covariance, rng, columns_of(point), scratch);
  draw_vectors(f.k, n, f.u, 1, f.k, f.u_covariance, rng, rows_of(model, point), scratch);
}

static const le_variational_ops variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
};

/* ---- maximum likelihood by EM: a state of no rows, the variance of U being 1 if it is unknown, since V can have any length ---- */

static size_t m_size(const void *self, size_t n)
{
  (void)n;
  return size(self, 0);
}

static size_t m_scratch(const void *self, size_t n)
{
  const low_rank *model = self;
  const size_t k = model->k;
  (void)n;
  return k * (3 * k + 3) + 2 * k * k + k * model->gaussian.width;
}

static double m_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const low_rank *model = self;
  prepare_columns(model, rows->n, rows, (double *)(size_t)q, scratch);
  return log_lik_columns(self, rows->n, rows, 1, q, scratch) - (double)(rows->n * rows->width) * HALF_LOG_2PI;
}

static le_status m_update(const void *self, const le_rows *rows, size_t index, double *q, double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width, n = rows->n;
  const double weight = 1 / q[NOISE];
  double *v = columns_of(q), *factor = scratch, *b = scratch + k * k, *mean = b + k, *moments = scratch + k * (3 * k + 3),
         *covariance = moments + k * k, *cross = covariance + k * k;
  (void)index;
  factorise(k, d, v, d, 1, q[ROWS], weight, factor);
  memset(covariance, 0, k * k * sizeof(double));
  memset(cross, 0, k * d * sizeof(double));
  for (size_t p = 0; p < k; p++) {
    covariance[p * k + p] = 1;
    le_cholesky_solve(factor, k, covariance + p * k);
  }
  for (size_t p = 0; p < k * k; p++) moments[p] = (double)n * covariance[p];
  for (size_t i = 0; i < n; i++) {
    const double *y = rows->values + i * d;
    regress(k, d, v, d, 1, y, 1, weight, factor, b, mean);
    for (size_t p = 0; p < k; p++) {
      for (size_t r = 0; r < k; r++) moments[p * k + r] += mean[p] * mean[r];
      for (size_t j = 0; j < d; j++) cross[p * d + j] += mean[p] * y[j];
    }
  }
  const le_status status = le_cholesky(moments, k);
  if (status != LE_OK) return status;
  double fitted = 0;
  for (size_t j = 0; j < d; j++) {
    for (size_t p = 0; p < k; p++) mean[p] = cross[p * d + j];
    le_cholesky_solve(moments, k, mean);
    for (size_t p = 0; p < k; p++) fitted += (v[p * d + j] = mean[p]) * cross[p * d + j];
  }
  if (model->gaussian.infer) q[NOISE] = (sum_squares(rows->values, n * d) - fitted) / (double)(n * d);
  return LE_OK;
}

static le_status m_start(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng, double *q,
                         double *scratch)
{
  const low_rank *model = self;
  (void)rows;
  (void)scratch;
  if (hint) memcpy(q, hint, m_size(self, 0) * sizeof(double));
  else start(self, rng, q);
  if (model->gaussian.infer) q[ROWS] = 1;
  return LE_OK;
}

static const le_variational_ops maximum = {
  .size = m_size,
  .scratch = m_scratch,
  .start = m_start,
  .update = m_update,
  .bound = m_bound,
};

static int possible(const void *self, size_t seen, const double *state)
{
  const size_t last = size(self, seen);
  for (size_t c = FACTORS; c < last; c++)
    if (!isfinite(state[c])) return 0;
  return le_all_positive(state, FACTORS);
}

/* The first column of U and the first row of V change their signs. */
static void mirror(const void *self, size_t seen, double *state)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  double *v = state + FACTORS, *u = v + k * d;
  for (size_t j = 0; j < d; j++) v[j] = -v[j];
  for (size_t i = 0; i < seen; i++) u[i * k] = -u[i * k];
}

static const le_latent_ops latent = {
  .size = size,
  .scratch = scratch_size,
  .start = start,
  .extend_blind = extend_blind,
  .extend = extend,
  .last_given_latent = last_given_latent,
  .last_given_rest = last_given_rest,
  .log_prior = log_prior,
  .log_lik = log_lik,
  .sweep = sweep,
  .sweep_above = sweep_above,
  .simulate = simulate,
  .possible = possible,
  .mirror = mirror,
};

const le_model_ops le_low_rank_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "low_rank",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = width,
  .latent = &latent,
  .variational = &variational,
  .maximum = &maximum,
};
