/* Sweeps of both kinds of vectors, and densities. */
#include "models/low_rank/parts.h"

#include "base/linalg.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <string.h>

static size_t scratch_size(const void *self, size_t n)
{
  const low_rank *model = self;
  return model->k * (3 * model->k + 3) + n * model->gaussian.width;
}

static double log_normals(const double *x, size_t n, double variance)
{
  return -(double)n * (HALF_LOG_2PI + 0.5 * log(variance)) - 0.5 * sum_squares(x, n) / variance;
}

void le_low_rank_factorise(size_t k, size_t n, const double *a, size_t across, size_t along,
                           double variance, double weight, double *factor)
{
  for (size_t p = 0; p < k; p++)
    for (size_t q = 0; q <= p; q++) {
      double sum = 0;
      for (size_t i = 0; i < n; i++) sum += a[p * across + i * along] * a[q * across + i * along];
      factor[p * k + q] = factor[q * k + p] = weight * sum + (p == q) / variance;
    }
  le_cholesky(factor, k); /* positive definite by construction */
}

void le_low_rank_regress(size_t k, size_t n, const double *a, size_t across, size_t along,
                         const double *y, size_t stride, double weight, const double *factor,
                         double *b, double *mean)
{
  for (size_t p = 0; p < k; p++) {
    b[p] = 0;
    for (size_t i = 0; i < n; i++) b[p] += weight * a[p * across + i * along] * y[i * stride];
    mean[p] = b[p];
  }
  le_cholesky_solve(factor, k, mean);
}

/* Draws x = mean + L'^-1 z, or sets it to `to` and returns the log density of that. */
static double draw(size_t k, const double *factor, const double *mean, const double *to,
                   const gsl_rng *rng, double *x, size_t stride, double *z)
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

static double sweep_rows(const low_rank *model, size_t from, size_t seen, const le_rows *rows,
                         double lambda, const double *to, const gsl_rng *rng, double *state,
                         double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double weight = lambda / state[NOISE], *v = columns_of(state);
  double *factor = scratch, *b = scratch + k * k, *mean = b + k, *u = rows_of(model, state),
         sum = 0;
  const double *wanted = to ? to + (u - state) : NULL;
  le_low_rank_factorise(k, d, v, d, 1, state[ROWS], weight, factor);
  for (size_t i = from; i < seen; i++) {
    le_low_rank_regress(k, d, v, d, 1, rows->values + i * d, 1, weight, factor, b, mean);
    sum += draw(k, factor, mean, wanted ? wanted + i * k : NULL, rng, u + i * k, 1, b);
  }
  return sum;
}

static double sweep_columns(const low_rank *model, size_t seen, const le_rows *rows, double lambda,
                            const double *to, const gsl_rng *rng, double *state, double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double weight = lambda / state[NOISE], *u = rows_of(model, state);
  double *factor = scratch, *b = scratch + k * k, *mean = b + k, sum = 0;
  le_low_rank_factorise(k, seen, u, 1, k, state[COLUMNS], weight, factor);
  for (size_t j = 0; j < d; j++) {
    le_low_rank_regress(k, seen, u, 1, k, rows->values + j, d, weight, factor, b, mean);
    sum += draw(k, factor, mean, to ? to + FACTORS + j : NULL, rng, columns_of(state) + j, d, b);
  }
  return sum;
}

static double residual_squares(const low_rank *model, size_t from, size_t seen, const le_rows *rows,
                               const double *state)
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

/* Scales U up and V down together with their standard deviations: the likelihood does not change,
 * and the priors change only by the densities of the variances. */
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

/* Draws the variance of V, and the relative scale of U and V. */
static void sweep_scales(const low_rank *model, size_t seen, const gsl_rng *rng, double *state,
                         int backwards, int balances)
{
  const size_t cells = model->k * model->gaussian.width;
  if (balances && backwards) balance(model, seen, rng, state);
  state[COLUMNS] = le_draw_variance(&model->gaussian, rng, (double)cells,
                                    sum_squares(columns_of(state), cells));
  if (balances && !backwards) balance(model, seen, rng, state);
}

double le_low_rank_log_lik_columns(const void *self, size_t seen, const le_rows *rows,
                                   double lambda, const double *state, double *scratch)
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
         0.5 * weight * sum_squares(rows->values, seen * rows->width) +
         0.5 * weight * weight * sum -
         (double)seen * (le_cholesky_half_log_det(factor, k) + 0.5 * (double)k * log(state[ROWS]));
}

void le_low_rank_prepare_columns(const low_rank *model, size_t seen, const le_rows *rows,
                                 double *state, double *scratch)
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

/* Draws the variance of U and of the noise if they are unknown, then the latents of all rows. */
static double sweep_rows_and_noise(const low_rank *model, size_t seen, const le_rows *rows,
                                   double lambda, int backwards, const double *to,
                                   const gsl_rng *rng, double *state, double *scratch)
{
  const le_view view = {
    le_low_rank_log_lik_columns, model, &model->gaussian, seen, rows, lambda, 0, 0, state, scratch};
  if (model->gaussian.infer) {
    le_low_rank_prepare_columns(model, seen, rows, state, scratch);
    le_slice_variance(&view, rng, backwards ? ROWS : NOISE);
    le_slice_variance(&view, rng, backwards ? NOISE : ROWS);
  }
  return sweep_rows(model, 0, seen, rows, lambda, to, rng, state, scratch);
}

static double sweep(const void *self, size_t seen, const le_rows *rows, double lambda,
                    int backwards, const double *to, const gsl_rng *rng, double *state,
                    double *scratch)
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

void le_low_rank_start(const void *self, const gsl_rng *rng, double *state)
{
  const low_rank *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const double sd[3] = {model->row_sd, g->prior_sd, g->noise_sd};
  for (size_t v = 0; v < 3; v++) state[v] = le_start_variance(g, sd[v], rng);
  for (size_t c = 0; c < model->k * g->width; c++)
    columns_of(state)[c] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[COLUMNS]));
}

static void extend_blind(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                         double *state, double *scratch)
{
  const low_rank *model = self;
  (void)rows;
  (void)scratch;
  for (size_t p = 0; p < model->k; p++)
    rows_of(model, state)[seen * model->k + p] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[ROWS]));
}

static double last_given_latent(const void *self, size_t seen, const le_rows *rows, double *state,
                                double *scratch)
{
  const low_rank *model = self;
  (void)scratch;
  return -(double)model->gaussian.width * (HALF_LOG_2PI + 0.5 * log(state[NOISE])) -
         0.5 * residual_squares(model, seen - 1, seen, rows, state) / state[NOISE];
}

/* The density of a row given V only: its covariance is noise I + V' V rows, computed by the small K
 * x K matrix. */
static double last_given_rest(const void *self, size_t seen, const le_rows *rows, double *state,
                              double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *y = rows->values + (seen - 1) * d, *v = columns_of(state);
  double *factor = scratch, *b = scratch + k * k, *mean = b + k;
  le_low_rank_factorise(k, d, v, d, 1, state[ROWS], 1 / state[NOISE], factor);
  le_low_rank_regress(k, d, v, d, 1, y, 1, 1 / state[NOISE], factor, b, mean);
  return log_normals(y, d, state[NOISE]) + 0.5 * le_dot(b, mean, k) -
         le_cholesky_half_log_det(factor, k) - 0.5 * (double)k * log(state[ROWS]);
}

static double extend(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                     double *state, double *scratch)
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
  for (size_t v = 0; v < 3 && model->gaussian.infer; v++)
    sum += le_log_variance_prior(&model->gaussian, state[v]);
  return sum;
}

static double log_lik(const void *self, size_t seen, const le_rows *rows, double lambda,
                      const double *state, double *scratch)
{
  const low_rank *model = self;
  (void)scratch;
  return -lambda *
         ((double)(seen * model->gaussian.width) * (HALF_LOG_2PI + 0.5 * log(state[NOISE])) +
          0.5 * residual_squares(model, 0, seen, rows, state) / state[NOISE]);
}

/* Draws a standard normal number between two bounds. */
static double draw_between(const gsl_rng *rng, double low, double high)
{
  if (low > 0) return -draw_between(rng, -high, -low);
  const double from = gsl_cdf_ugaussian_P(low), to = gsl_cdf_ugaussian_P(high);
  const double p = from + (to - from) * gsl_rng_uniform_pos(rng);
  /* beyond the range of the normal distribution function: take the bound nearer to zero */
  const double x = p > 0 ? p < 1 ? gsl_cdf_ugaussian_Pinv(p) : high : high;
  return fmin(fmax(x, low), high);
}

/* Draws a number with a normal prior under a constraint. Along it the sum of squared residuals is
 * square - 2 step slope + step^2 curve, which must stay below `most`. Returns the step. */
static double move_within(const gsl_rng *rng, double *x, double sd, double *square, double slope,
                          double curve, double most)
{
  const double root = slope * slope + curve * (most - *square);
  double low = -INFINITY, high = INFINITY;
  if (curve > 0) {
    if (!(root > 0)) return 0;
    low = (slope - sqrt(root)) / curve;
    high = (slope + sqrt(root)) / curve;
  }
  const double old = *x,
               step = (*x = sd * draw_between(rng, (old + low) / sd, (old + high) / sd)) - old;
  *square += step * (step * curve - 2 * slope);
  return step;
}

/* Draws one number of U or V at a time: the likelihood constraint restricts each to an interval, in
 * which the prior is normal. */
static void sweep_above(const void *self, size_t seen, const le_rows *rows, double floor,
                        double tie, const gsl_rng *rng, double *state, double *scratch)
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
  const double most = -2 * state[NOISE] *
                      (floor + cells * (HALF_LOG_2PI + 0.5 * log(state[NOISE])));
  for (size_t i = 0; i < seen; i++)
    for (size_t p = 0; p < k; p++) {
      double *r = residual + i * d;
      const double step = move_within(rng, &u[i * k + p], sqrt(state[ROWS]), &square,
                                      le_dot(r, v + p * d, d), le_dot(v + p * d, v + p * d, d),
                                      most);
      for (size_t j = 0; j < d; j++) r[j] -= step * v[p * d + j];
    }
  for (size_t p = 0; p < k; p++)
    for (size_t j = 0; j < d; j++) {
      double slope = 0, curve = 0;
      for (size_t i = 0; i < seen; i++) {
        slope += residual[i * d + j] * u[i * k + p];
        curve += u[i * k + p] * u[i * k + p];
      }
      const double step = move_within(rng, &v[p * d + j], sqrt(state[COLUMNS]), &square, slope,
                                      curve, most);
      for (size_t i = 0; i < seen; i++) residual[i * d + j] -= step * u[i * k + p];
    }
  if (!model->gaussian.infer) return;
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, 1, 1, floor, state, scratch};
  state[ROWS] = le_draw_variance(&model->gaussian, rng, (double)(seen * k),
                                 sum_squares(u, seen * k));
  sweep_scales(model, seen, rng, state, 0, 1);
  le_slice_variance(&view, rng, NOISE);
}

static void simulate(const void *self, size_t n, const double *state, const gsl_rng *rng,
                     double *rows, double *scratch)
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

static int possible(const void *self, size_t seen, const double *state)
{
  const size_t last = size(self, seen);
  for (size_t c = FACTORS; c < last; c++)
    if (!isfinite(state[c])) return 0;
  return le_all_positive(state, FACTORS);
}

/* Changes the signs of the first column of U and the first row of V. */
static void mirror(const void *self, size_t seen, double *state)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  double *v = state + FACTORS, *u = v + k * d;
  for (size_t j = 0; j < d; j++) v[j] = -v[j];
  for (size_t i = 0; i < seen; i++) u[i * k] = -u[i * k];
}

const le_latent_ops le_low_rank_states = {
  .size = size,
  .scratch = scratch_size,
  .start = le_low_rank_start,
  .extend_blind = extend_blind,
  .extend = extend,
  .last_given_latent = last_given_latent,
  .last_given_rest = last_given_rest,
  .log_prior = log_prior,
  .log_lik = log_lik,
  .sweep = sweep,
  .sweep_above = sweep_above,
  .simulate = simulate,
  .mirror = mirror,
  .possible = possible,
};
