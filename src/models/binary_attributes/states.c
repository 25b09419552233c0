/* Sweeps of the attributes, and densities with the features integrated out. */
#include "models/binary_attributes/parts.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <stdint.h>
#include <string.h>

/* The posterior of A given the attributes of some rows, and quantities for one more row. */
typedef struct posterior {
  size_t k, d;
  double lambda, noise, weight; /* weight: 1 / variance of the noise of a row at lambda */
  /* covariance K x K; Cholesky factor of its inverse; mean K x D; squared lengths of the rows of
   * the mean */
  double *covariance, *factor, *mean, *square;
  double *gain, *residual; /* K: covariance z; D: y - z' mean */
  double *log_weight;
  double spread, distance; /* z' covariance z, squared length of the residual */
} posterior;

static size_t scratch_size(const void *self, size_t n)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  (void)n;
  return 2 * k * k + k * d + 2 * k + d + ((size_t)1 << k);
}

static posterior gather(const binary *model, size_t seen, const le_rows *rows, double lambda,
                        double *state, double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  posterior p = {.k = k,
                 .d = d,
                 .lambda = lambda,
                 .noise = state[NOISE],
                 .weight = lambda / state[NOISE]};
  p.covariance = scratch;
  p.factor = scratch + k * k;
  p.mean = p.factor + k * k;
  p.square = p.mean + k * d;
  p.gain = p.square + k;
  p.residual = p.gain + k;
  p.log_weight = p.residual + d;
  const double *z = bits_of(model, state);
  memset(p.factor, 0, k * k * sizeof(double));
  memset(p.mean, 0, k * d * sizeof(double));
  for (size_t i = 0; i < seen; i++)
    for (size_t a = 0; a < k; a++) {
      if (z[i * k + a] == 0) continue;
      for (size_t b = 0; b < k; b++) p.factor[a * k + b] += p.weight * z[i * k + b];
      for (size_t j = 0; j < d; j++) p.mean[a * d + j] += p.weight * rows->values[i * d + j];
    }
  for (size_t a = 0; a < k; a++) p.factor[a * k + a] += 1 / state[FEATURES];
  le_cholesky(p.factor, k); /* positive definite by construction */
  for (size_t a = 0; a < k; a++) {
    double *column = p.covariance + a * k;
    memset(column, 0, k * sizeof(double));
    column[a] = 1;
    le_cholesky_solve(p.factor, k, column);
  }
  return p;
}

/* mean = covariance b, where b is passed in `mean`; returns tr b' covariance b. */
static double solve(posterior *p)
{
  double sum = 0;
  for (size_t j = 0; j < p->d; j++) {
    for (size_t a = 0; a < p->k; a++) p->gain[a] = p->mean[a * p->d + j];
    memcpy(p->log_weight, p->gain, p->k * sizeof(double)); /* 2^k >= k doubles */
    /* solving is more stable than multiplying by the covariance if features are nearly equal */
    le_cholesky_solve(p->factor, p->k, p->log_weight);
    for (size_t a = 0; a < p->k; a++) {
      sum += p->gain[a] * p->log_weight[a];
      p->mean[a * p->d + j] = p->log_weight[a];
    }
  }
  return sum;
}

static void look_at(posterior *p, const double *z, const double *y)
{
  memset(p->gain, 0, p->k * sizeof(double));
  memcpy(p->residual, y, p->d * sizeof(double));
  p->spread = p->distance = 0;
  for (size_t a = 0; a < p->k; a++) {
    if (z[a] == 0) continue;
    for (size_t b = 0; b < p->k; b++) p->gain[b] += p->covariance[a * p->k + b];
    for (size_t j = 0; j < p->d; j++) p->residual[j] -= p->mean[a * p->d + j];
  }
  for (size_t a = 0; a < p->k; a++) p->spread += z[a] * p->gain[a];
  for (size_t j = 0; j < p->d; j++) p->distance += p->residual[j] * p->residual[j];
}

/* Adds the last row looked at to the posterior (sign 1) or removes it (-1). */
static void update(posterior *p, double sign)
{
  const double scale = p->weight / (1 + sign * p->weight * p->spread);
  for (size_t a = 0; a < p->k; a++) {
    const double pull = sign * scale * p->gain[a];
    for (size_t b = 0; b < p->k; b++) p->covariance[a * p->k + b] -= pull * p->gain[b];
    for (size_t j = 0; j < p->d; j++) p->mean[a * p->d + j] += pull * p->residual[j];
  }
}

static void measure(posterior *p)
{
  for (size_t a = 0; a < p->k; a++)
    p->square[a] = le_dot(p->mean + a * p->d, p->mean + a * p->d, p->d);
}

/* Removes row i from the posterior and computes the quantities for it. If this row alone determines
 * a feature, subtraction would lose all digits, so the posterior is computed again from the other
 * rows. */
static void take_out(posterior *p, const binary *model, size_t i, size_t seen, const le_rows *rows,
                     double *state, double *scratch)
{
  const double *y = rows->values + i * p->d;
  double *z = bits_of(model, state) + i * p->k, own[MOST_ENUMERATED];
  look_at(p, z, y);
  if (p->weight * p->spread < 1 - 1e-3) {
    update(p, -1);
  } else {
    memcpy(own, z, p->k * sizeof(double));
    /* a row without attributes does not affect the posterior of the features */
    memset(z, 0, p->k * sizeof(double));
    *p = gather(model, seen, rows, p->lambda, state, scratch);
    solve(p);
    memcpy(z, own, p->k * sizeof(double));
  }
  measure(p);
  look_at(p, z, y);
}

/* The part of a row's log density at lambda that depends on its attributes. */
static double fit(const posterior *p, double spread, double distance)
{
  const double inflation = 1 + p->weight * spread;
  return -0.5 * ((double)p->d * log(inflation) + p->weight * distance / inflation);
}

/* log density at lambda of a row with this spread and distance. */
static double density(const posterior *p, double spread, double distance)
{
  return fit(p, spread, distance) -
         p->lambda * (double)p->d * (HALF_LOG_2PI + 0.5 * log(p->noise));
}

/* The spread and distance of the row if attribute a were flipped. */
static void flipped(const posterior *p, const double *z, size_t a, double *spread, double *distance)
{
  const double sign = z[a] == 0 ? 1 : -1;
  *spread = p->spread + 2 * sign * p->gain[a] + p->covariance[a * p->k + a];
  *distance = p->distance - 2 * sign * le_dot(p->residual, p->mean + a * p->d, p->d) + p->square[a];
}

static void flip(posterior *p, double *z, size_t a, double spread, double distance)
{
  const double sign = z[a] == 0 ? 1 : -1;
  for (size_t b = 0; b < p->k; b++) p->gain[b] += sign * p->covariance[a * p->k + b];
  for (size_t j = 0; j < p->d; j++) p->residual[j] -= sign * p->mean[a * p->d + j];
  p->spread = spread;
  p->distance = distance;
  z[a] = 1 - z[a];
}

static double log_bit(const double *state, size_t a, double bit)
{
  return bit != 0 ? log(state[PROBABILITIES + a]) : log1p(-state[PROBABILITIES + a]);
}

static void start(const void *self, const gsl_rng *rng, double *state)
{
  const binary *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  state[FEATURES] = le_start_variance(g, g->prior_sd, rng);
  state[NOISE] = le_start_variance(g, g->noise_sd, rng);
  for (size_t a = 0; a < model->k; a++)
    state[PROBABILITIES + a] = g->infer ? gsl_rng_uniform_pos(rng) : model->probability[a];
}

static void extend_blind(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                         double *state, double *scratch)
{
  const binary *model = self;
  (void)rows;
  (void)scratch;
  double *z = bits_of(model, state) + seen * model->k;
  for (size_t a = 0; a < model->k; a++) z[a] = gsl_rng_uniform(rng) < state[PROBABILITIES + a];
}

static double last_given_latent(const void *self, size_t seen, const le_rows *rows, double *state,
                                double *scratch)
{
  const binary *model = self;
  posterior p = gather(model, seen - 1, rows, 1, state, scratch);
  solve(&p);
  look_at(&p, bits_of(model, state) + (seen - 1) * model->k, rows->values + (seen - 1) * p.d);
  return density(&p, p.spread, p.distance);
}

/* The weights of all 2^K attribute vectors of a row. Each differs from the one before by one flip
 * (Gray code); entry c belongs to the c-th code. */
static posterior enumerate(const binary *model, size_t seen, const le_rows *rows, double *state,
                           double *scratch, double *z)
{
  const size_t k = model->k;
  posterior p = gather(model, seen, rows, 1, state, scratch);
  solve(&p);
  measure(&p);
  memset(z, 0, k * sizeof(double));
  look_at(&p, z, rows->values + seen * p.d);
  double prior = 0;
  for (size_t a = 0; a < k; a++) prior += log_bit(state, a, 0);
  for (size_t c = 0; c < (size_t)1 << k; c++) {
    if (c > 0) {
      size_t a = 0;
      while (!((c >> a) & 1)) a++;
      double spread, distance;
      prior += (z[a] == 0 ? 1 : -1) * (log_bit(state, a, 1) - log_bit(state, a, 0));
      flipped(&p, z, a, &spread, &distance);
      flip(&p, z, a, spread, distance);
    }
    p.log_weight[c] = prior + density(&p, p.spread, p.distance);
  }
  return p;
}

static double extend(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                     double *state, double *scratch)
{
  const binary *model = self;
  double *z = bits_of(model, state) + seen * model->k, log_density;
  posterior p = enumerate(model, seen, rows, state, scratch, z);
  size_t code;
  const double value = le_draw_category(rng, (size_t)1 << model->k, p.log_weight, SIZE_MAX, &code,
                                        &log_density);
  const size_t gray = code ^ (code >> 1);
  for (size_t a = 0; a < model->k; a++) z[a] = (double)((gray >> a) & 1);
  return value;
}

static double last_given_rest(const void *self, size_t seen, const le_rows *rows, double *state,
                              double *scratch)
{
  const binary *model = self;
  double z[MOST_ENUMERATED], log_density;
  posterior p = enumerate(model, seen - 1, rows, state, scratch, z);
  size_t code;
  return le_draw_category(NULL, (size_t)1 << model->k, p.log_weight, 0, &code, &log_density);
}

static double log_prior(const void *self, size_t seen, const double *state)
{
  const binary *model = self;
  const double *z = state + PROBABILITIES + model->k;
  double sum = 0;
  for (size_t i = 0; i < seen; i++)
    for (size_t a = 0; a < model->k; a++) sum += log_bit(state, a, z[i * model->k + a]);
  if (!model->gaussian.infer) return sum;
  return sum + le_log_variance_prior(&model->gaussian, state[FEATURES]) +
         le_log_variance_prior(&model->gaussian, state[NOISE]);
}

static double log_lik(const void *self, size_t seen, const le_rows *rows, double lambda,
                      const double *state, double *scratch)
{
  const binary *model = self;
  posterior p = gather(model, seen, rows, lambda, (double *)(size_t)state, scratch);
  const double d = (double)p.d, k = (double)p.k;
  const double quadratic = solve(&p);
  return -lambda * (double)seen * d * (HALF_LOG_2PI + 0.5 * log(p.noise)) -
         0.5 * p.weight * le_dot(rows->values, rows->values, seen * p.d) -
         d * (0.5 * k * log(state[FEATURES]) + le_cholesky_half_log_det(p.factor, p.k)) +
         0.5 * quadratic;
}

/* Draws the probabilities, on which the likelihood does not depend given Z, and the variances. */
static void sweep_settings(const binary *model, const le_view *view, const gsl_rng *rng)
{
  const double *z = bits_of(model, view->state);
  for (size_t a = 0; a < model->k; a++) {
    double on = 0;
    for (size_t i = 0; i < view->seen; i++) on += z[i * model->k + a];
    view->state[PROBABILITIES + a] = gsl_ran_beta(rng, 1 + on, 1 + (double)view->seen - on);
  }
  le_slice_variance(view, rng, FEATURES);
  le_slice_variance(view, rng, NOISE);
}

static double sweep(const void *self, size_t seen, const le_rows *rows, double lambda,
                    int backwards, const double *to, const gsl_rng *rng, double *state,
                    double *scratch)
{
  const binary *model = self;
  const size_t k = model->k;
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, lambda, 0, 0, state, scratch};
  if (model->gaussian.infer && backwards) sweep_settings(model, &view, rng);
  posterior p = gather(model, seen, rows, lambda, state, scratch);
  solve(&p);
  double log_density = 0, logit[MOST_ENUMERATED];
  for (size_t a = 0; a < k; a++) logit[a] = log_bit(state, a, 1) - log_bit(state, a, 0);
  for (size_t step = 0; step < seen; step++) {
    const size_t i = backwards ? seen - 1 - step : step;
    double *z = bits_of(model, state) + i * k;
    take_out(&p, model, i, seen, rows, state, scratch);
    double here = fit(&p, p.spread, p.distance);
    for (size_t turn = 0; turn < k; turn++) {
      const size_t a = backwards ? k - 1 - turn : turn;
      double spread, distance;
      flipped(&p, z, a, &spread, &distance);
      const double there = fit(&p, spread, distance),
                   odds = there - here + (z[a] == 0 ? logit[a] : -logit[a]);
      const double *wanted = to ? to + (z - state) : NULL;
      const int moves = wanted ? wanted[a] != z[a] : gsl_rng_uniform(rng) < 1 / (1 + exp(-odds));
      /* log of 1 / (1 + exp(-odds)), or of its complement */
      if (to) log_density -= moves ? log1p(exp(-odds)) : log1p(exp(odds));
      if (!moves) continue;
      flip(&p, z, a, spread, distance);
      here = there;
    }
    update(&p, 1);
  }
  if (model->gaussian.infer && !backwards) sweep_settings(model, &view, rng);
  return log_density;
}

static void sweep_above(const void *self, size_t seen, const le_rows *rows, double floor,
                        double tie, const gsl_rng *rng, double *state, double *scratch)
{
  const binary *model = self;
  const size_t k = model->k;
  double value = log_lik(self, seen, rows, 1, state, scratch);
  posterior p = gather(model, seen, rows, 1, state, scratch);
  solve(&p);
  for (size_t i = 0; i < seen; i++) {
    double *z = bits_of(model, state) + i * k;
    take_out(&p, model, i, seen, rows, state, scratch);
    for (size_t a = 0; a < k; a++) {
      double spread, distance;
      flipped(&p, z, a, &spread, &distance);
      const double other = value - density(&p, p.spread, p.distance) +
                           density(&p, spread, distance),
                   odds = log_bit(state, a, 1 - z[a]) + le_log_above(other, floor, tie) -
                          log_bit(state, a, z[a]) - le_log_above(value, floor, tie);
      /* NaN if both values are impossible */
      if (!(gsl_rng_uniform(rng) < 1 / (1 + exp(-odds)))) continue;
      flip(&p, z, a, spread, distance);
      value = other;
    }
    update(&p, 1);
  }
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, 1, 1, floor, state, scratch};
  if (model->gaussian.infer) sweep_settings(model, &view, rng);
}

static void simulate(const void *self, size_t n, const double *state, const gsl_rng *rng,
                     double *rows, double *scratch)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *z = state + PROBABILITIES + k;
  for (size_t c = 0; c < k * d; c++)
    scratch[c] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[FEATURES]));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) {
      double value = gsl_ran_gaussian_ziggurat(rng, sqrt(state[NOISE]));
      for (size_t a = 0; a < k; a++) value += z[i * k + a] * scratch[a * d + j];
      rows[i * d + j] = value;
    }
}

static int possible(const void *self, size_t seen, const double *state)
{
  const binary *model = self;
  for (size_t a = 0; a < model->k; a++)
    if (!(state[PROBABILITIES + a] >= 0 && state[PROBABILITIES + a] <= 1)) return 0;
  return le_all_positive(state, PROBABILITIES) &&
         le_all_codes(state + PROBABILITIES + model->k, seen * model->k, 2);
}

const le_latent_ops le_binary_attributes_states = {
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
  .log_symmetry = le_grouped_symmetry,
  .possible = possible,
};
