/* Sweeps of both kinds of vectors, and densities. */
#include "models/low_rank/parts.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <string.h>

size_t le_low_rank_size(const void *self, size_t n)
{
  const low_rank *model = self;
  return FACTORS + model->k * (model->gaussian.width + n);
}

static size_t scratch_size(const void *self, size_t n)
{
  const low_rank *model = self;
  return model->k * (3 * model->k + 3) + n * model->gaussian.width;
}

static double log_normals(const double *x, size_t n, double variance)
{
  return -(double)n * (HALF_LOG_2PI + 0.5 * log(variance)) - 0.5 * sum_squares(x, n) / variance;
}

void le_low_rank_moments(vectors a, const double *covariance, double *out)
{
  for (size_t p = 0; p < a.k; p++)
    for (size_t q = 0; q <= p; q++) {
      double sum = covariance ? (double)a.n * covariance[p * a.k + q] : 0;
      for (size_t i = 0; i < a.n; i++)
        sum += a.values[p * a.across + i * a.along] * a.values[q * a.across + i * a.along];
      out[p * a.k + q] = out[q * a.k + p] = sum;
    }
}

le_status le_low_rank_factorise(size_t k, double precision, double weight, double *moments)
{
  for (size_t p = 0; p < k * k; p++)
    moments[p] = weight * moments[p] + (p % (k + 1) == 0 ? precision : 0);
  return le_cholesky(moments, k);
}

void le_low_rank_regress(vectors a, const le_rows *rows, int which, size_t i, double weight,
                         const double *factor, double *b, double *mean)
{
  const size_t stride = which == ROWS ? 1 : rows->width;
  const double *y = rows->values + i * (which == ROWS ? rows->width : 1);
  for (size_t p = 0; p < a.k; p++) {
    b[p] = 0;
    for (size_t j = 0; j < a.n; j++)
      b[p] += weight * a.values[p * a.across + j * a.along] * y[j * stride];
    mean[p] = b[p];
  }
  le_cholesky_solve(factor, a.k, mean);
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
  le_lower_transpose_solve(factor, k, z);
  for (size_t p = 0; p < k; p++) x[p * stride] = mean[p] + z[p];
  return 0;
}

/* Draws the vectors of one kind, from number `from` on, given the others. */
static double sweep_vectors(const low_rank *model, const le_chain *chain, int which, size_t from,
                            const double *to)
{
  const size_t k = model->k, d = model->gaussian.width, n = chain->rows.n;
  double *state = chain->state, *factor = chain->scratch, *b = factor + k * k, *mean = b + k;
  const vectors u = vectors_of(ROWS, k, n, rows_of(model, state)),
                v = vectors_of(COLUMNS, k, d, columns_of(state)), own = which == ROWS ? u : v,
                other = which == ROWS ? v : u;
  const double weight = chain->lambda / state[NOISE];
  double sum = 0;
  le_low_rank_moments(other, NULL, factor);
  le_low_rank_factorise(k, 1 / state[which], weight, factor);
  for (size_t i = from; i < own.n; i++) {
    double *x = own.values + i * own.along;
    le_low_rank_regress(other, &chain->rows, which, i, weight, factor, b, mean);
    sum += draw(k, factor, mean, to ? to + (x - state) : NULL, chain->rng, x, own.across, b);
  }
  return sum;
}

double le_low_rank_residual_squares(size_t k, const le_rows *rows, size_t from, const double *u,
                                    const double *v, double *out)
{
  const size_t d = rows->width;
  double square = 0;
  for (size_t i = from; i < rows->n; i++)
    for (size_t j = 0; j < d; j++) {
      double residual = rows->values[i * d + j];
      for (size_t p = 0; p < k; p++) residual -= u[i * k + p] * v[p * d + j];
      square += residual * residual;
      if (out) out[i * d + j] = residual;
    }
  return square;
}

static double residual_squares(const low_rank *model, const le_chain *chain, size_t from,
                               double *out)
{
  return le_low_rank_residual_squares(model->k, &chain->rows, from, rows_of(model, chain->state),
                                      columns_of(chain->state), out);
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

static void balance(const low_rank *model, const le_chain *chain)
{
  const size_t cells = model->k * model->gaussian.width, latents = model->k * chain->rows.n;
  double *state = chain->state;
  exchange e = {0, model->gaussian.prior.scale, state[ROWS], state[COLUMNS]};
  le_slice(chain->rng, &e.log_ratio, exchange_density, &e);
  const double ratio = exp(e.log_ratio), root = sqrt(ratio);
  state[ROWS] *= ratio;
  state[COLUMNS] /= ratio;
  for (size_t c = 0; c < cells; c++) columns_of(state)[c] /= root;
  for (size_t c = 0; c < latents; c++) rows_of(model, state)[c] *= root;
}

/* Draws the variance of V, and the relative scale of U and V. */
static void sweep_scales(const low_rank *model, const le_chain *chain, int backwards, int balances)
{
  const size_t cells = model->k * model->gaussian.width;
  if (balances && backwards) balance(model, chain);
  chain->state[COLUMNS] = le_draw_variance(&model->gaussian, chain->rng, (double)cells,
                                           sum_squares(columns_of(chain->state), cells));
  if (balances && !backwards) balance(model, chain);
}

double le_low_rank_log_lik_columns(const void *self, const le_chain *chain)
{
  const low_rank *model = self;
  const size_t k = model->k, n = chain->rows.n, cells = n * chain->rows.width;
  double *factor = chain->scratch, *square = factor + k * k, *cross = square + k * k,
         *column = cross + k * k, sum = 0;
  const double *state = chain->state, weight = chain->lambda / state[NOISE];
  memcpy(factor, square, k * k * sizeof(double));
  le_low_rank_factorise(k, 1 / state[ROWS], weight, factor);
  for (size_t p = 0; p < k; p++) {
    memcpy(column, cross + p * k, k * sizeof(double));
    le_cholesky_solve(factor, k, column);
    sum += column[p];
  }
  return -chain->lambda * 0.5 * (double)cells * log(state[NOISE]) -
         0.5 * weight * sum_squares(chain->rows.values, cells) + 0.5 * weight * weight * sum -
         (double)n * (le_cholesky_half_log_det(factor, k) + 0.5 * (double)k * log(state[ROWS]));
}

void le_low_rank_prepare_columns(const low_rank *model, const le_chain *chain)
{
  const size_t k = model->k, d = model->gaussian.width;
  double *square = chain->scratch + k * k, *cross = square + k * k, *image = cross + k * k;
  const double *v = columns_of(chain->state);
  memset(cross, 0, k * k * sizeof(double));
  for (size_t p = 0; p < k; p++)
    for (size_t q = 0; q < k; q++) square[p * k + q] = le_dot(v + p * d, v + q * d, d);
  for (size_t i = 0; i < chain->rows.n; i++) {
    for (size_t p = 0; p < k; p++) image[p] = le_dot(v + p * d, row_of(&chain->rows, i), d);
    for (size_t p = 0; p < k; p++)
      for (size_t q = 0; q < k; q++) cross[p * k + q] += image[p] * image[q];
  }
}

/* Draws the variance of U and of the noise if they are unknown, then the latents of all rows. */
static double sweep_rows_and_noise(const low_rank *model, const le_chain *chain, int backwards,
                                   const double *to)
{
  if (model->gaussian.infer) {
    le_low_rank_prepare_columns(model, chain);
    le_slice_variance(model, le_low_rank_log_lik_columns, chain, backwards ? ROWS : NOISE);
    le_slice_variance(model, le_low_rank_log_lik_columns, chain, backwards ? NOISE : ROWS);
  }
  return sweep_vectors(model, chain, ROWS, 0, to);
}

void le_low_rank_start(const void *self, const gsl_rng *rng, double *state)
{
  const low_rank *model = self;
  le_start_variances(&model->gaussian, rng, state);
  for (size_t c = 0; c < model->k * model->gaussian.width; c++)
    columns_of(state)[c] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[COLUMNS]));
}

static void extend_blind(const void *self, const le_chain *chain)
{
  const low_rank *model = self;
  double *u = rows_of(model, chain->state) + (chain->rows.n - 1) * model->k;
  for (size_t p = 0; p < model->k; p++)
    u[p] = gsl_ran_gaussian_ziggurat(chain->rng, sqrt(chain->state[ROWS]));
}

static double last_given_latent(const void *self, const le_chain *chain)
{
  const low_rank *model = self;
  const double noise = chain->state[NOISE];
  return -(double)model->gaussian.width * (HALF_LOG_2PI + 0.5 * log(noise)) -
         0.5 * residual_squares(model, chain, chain->rows.n - 1, NULL) / noise;
}

/* The density of a row given V only: its covariance is noise I + V' V rows, computed by the small K
 * x K matrix. */
static double extend(const void *self, const le_chain *chain)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width, last = chain->rows.n - 1;
  const vectors v = vectors_of(COLUMNS, k, d, columns_of(chain->state));
  const double *state = chain->state, weight = 1 / state[NOISE];
  double *factor = chain->scratch, *b = factor + k * k, *mean = b + k;
  le_low_rank_moments(v, NULL, factor);
  le_low_rank_factorise(k, 1 / state[ROWS], weight, factor);
  le_low_rank_regress(v, &chain->rows, ROWS, last, weight, factor, b, mean);
  const double value = log_normals(row_of(&chain->rows, last), d, state[NOISE]) +
                       0.5 * le_dot(b, mean, k) - le_cholesky_half_log_det(factor, k) -
                       0.5 * (double)k * log(state[ROWS]);
  if (chain->rng)
    draw(k, factor, mean, NULL, chain->rng, rows_of(model, chain->state) + last * k, 1, b);
  return value;
}

static double log_prior(const void *self, const le_chain *chain)
{
  const low_rank *model = self;
  const size_t cells = model->k * model->gaussian.width, latents = model->k * chain->rows.n;
  double sum = log_normals(columns_of(chain->state), cells, chain->state[COLUMNS]) +
               log_normals(rows_of(model, chain->state), latents, chain->state[ROWS]);
  le_add_variance_priors(&model->gaussian, chain->state, &sum);
  return sum;
}

static double log_lik(const void *self, const le_chain *chain)
{
  const low_rank *model = self;
  const double noise = chain->state[NOISE];
  return -chain->lambda *
         ((double)(chain->rows.n * model->gaussian.width) * (HALF_LOG_2PI + 0.5 * log(noise)) +
          0.5 * residual_squares(model, chain, 0, NULL) / noise);
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
static void sweep_above(const low_rank *model, const le_chain *chain)
{
  const size_t k = model->k, d = model->gaussian.width, n = chain->rows.n;
  double *state = chain->state, *v = columns_of(state), *u = rows_of(model, state),
         *residual = chain->scratch, square = residual_squares(model, chain, 0, residual);
  const double cells = (double)(n * d);
  const double most = -2 * state[NOISE] *
                      (chain->floor + cells * (HALF_LOG_2PI + 0.5 * log(state[NOISE])));
  for (size_t i = 0; i < n; i++)
    for (size_t p = 0; p < k; p++) {
      double *r = residual + i * d;
      const double step = move_within(chain->rng, &u[i * k + p], sqrt(state[ROWS]), &square,
                                      le_dot(r, v + p * d, d), le_dot(v + p * d, v + p * d, d),
                                      most);
      for (size_t j = 0; j < d; j++) r[j] -= step * v[p * d + j];
    }
  for (size_t p = 0; p < k; p++)
    for (size_t j = 0; j < d; j++) {
      double slope = 0, curve = 0;
      for (size_t i = 0; i < n; i++) {
        slope += residual[i * d + j] * u[i * k + p];
        curve += u[i * k + p] * u[i * k + p];
      }
      const double step = move_within(chain->rng, &v[p * d + j], sqrt(state[COLUMNS]), &square,
                                      slope, curve, most);
      for (size_t i = 0; i < n; i++) residual[i * d + j] -= step * u[i * k + p];
    }
  if (!model->gaussian.infer) return;
  state[ROWS] = le_draw_variance(&model->gaussian, chain->rng, (double)(n * k),
                                 sum_squares(u, n * k));
  sweep_scales(model, chain, 0, 1);
  le_slice_variance(model, log_lik, chain, NOISE);
}

static double sweep(const void *self, const le_chain *chain, int backwards, const double *to)
{
  const low_rank *model = self;
  const int infer = model->gaussian.infer;
  double sum = 0;
  if (chain->walled) {
    sweep_above(model, chain);
    return 0;
  }
  if (infer && backwards) sweep_scales(model, chain, 1, !to);
  if (backwards) sum += sweep_vectors(model, chain, COLUMNS, 0, to);
  sum += sweep_rows_and_noise(model, chain, backwards, to);
  if (!backwards) sum += sweep_vectors(model, chain, COLUMNS, 0, to);
  if (infer && !backwards) sweep_scales(model, chain, 0, !to);
  return to ? sum : 0;
}

static void simulate(const void *self, const le_chain *chain, double *rows)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *v = columns_of(chain->state), *u = rows_of(model, chain->state);
  for (size_t i = 0; i < chain->rows.n; i++)
    for (size_t j = 0; j < d; j++) {
      double value = gsl_ran_gaussian_ziggurat(chain->rng, sqrt(chain->state[NOISE]));
      for (size_t p = 0; p < k; p++) value += u[i * k + p] * v[p * d + j];
      rows[i * d + j] = value;
    }
}

static int possible(const void *self, size_t n, const double *state)
{
  const size_t last = le_low_rank_size(self, n);
  for (size_t c = FACTORS; c < last; c++)
    if (!isfinite(state[c])) return 0;
  return le_all_positive(state, FACTORS);
}

static size_t parts(const void *self) { return ((const low_rank *)self)->k; }

static double kind(const void *self, size_t part)
{
  (void)self;
  (void)part;
  return 0;
}

/* Exchanges columns of U and, with them, rows of V. */
static void renumber(const void *self, size_t n, const size_t *image, const double *state,
                     double *out)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *v = columns_of((double *)(size_t)state),
               *u = rows_of(model, (double *)(size_t)state);
  memcpy(out, state, FACTORS * sizeof(double));
  for (size_t c = 0; c < k; c++) {
    const size_t from = image[c] / 2;
    const double sign = image[c] % 2 ? -1 : 1;
    for (size_t j = 0; j < d; j++) columns_of(out)[c * d + j] = sign * v[from * d + j];
    for (size_t i = 0; i < n; i++) rows_of(model, out)[i * k + c] = sign * u[i * k + from];
  }
}

/* The products of columns of U. */
static void likeness(const void *self, size_t n, const double *one, const double *other,
                     double *likeness)
{
  const low_rank *model = self;
  const size_t k = model->k;
  const double *u = rows_of(model, (double *)(size_t)one),
               *w = rows_of(model, (double *)(size_t)other);
  memset(likeness, 0, k * k * sizeof(double));
  for (size_t i = 0; i < n; i++)
    for (size_t c = 0; c < k; c++)
      for (size_t j = 0; j < k; j++) likeness[c * k + j] += u[i * k + c] * w[i * k + j] / one[ROWS];
}

const le_latent_ops le_low_rank_states = {
  .size = le_low_rank_size,
  .scratch = scratch_size,
  .start = le_low_rank_start,
  .extend_blind = extend_blind,
  .extend = extend,
  .last_given_latent = last_given_latent,
  .log_prior = log_prior,
  .log_lik = log_lik,
  .sweep = sweep,
  .simulate = simulate,
  .possible = possible,
  .parts = parts,
  .kind = kind,
  .signs = 1,
  .renumber = renumber,
  .likeness = likeness,
};
