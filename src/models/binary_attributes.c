/* Binary attributes: z_ik ~ Bernoulli(p_k), a_kj ~ N(0, prior_sd^2), y_ij ~ N(z_i' a_j, noise_sd^2).  Features A are
 * integrated out of every density: given Z their columns share one covariance, which a row changes by rank one.
 *
 * State: variance of the features, variance of the noise, probabilities (K), Z (N x K).  Settings: attributes,
 * probabilities, and those of latent_shared.h; with `infer` the probabilities are Beta(1, 1). */
#include "base/linalg.h"
#include "models/latent_shared.h"

#include <gsl/gsl_randist.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES, NOISE, PROBABILITIES };
enum { MOST_ENUMERATED = 16 };

typedef struct binary {
  le_gaussian_prior gaussian;
  size_t k;
  double probability[];
} binary;

static le_status create(const le_args *args, void **self, char *message)
{
  size_t k;
  *self = NULL;
  if (!le_read_count(args, "attributes", 1, MOST_ENUMERATED, &k, message)) return LE_BAD_ARGUMENT;
  binary *model = calloc(1, sizeof *model + k * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->k = k;
  if (!le_gaussian_prior_read(args, &model->gaussian, message) ||
      !le_read_numbers(args, "probabilities", 0.5, 0, k, model->probability, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  *self = model;
  return LE_OK;
}

static size_t width(const void *self) { return ((const binary *)self)->gaussian.width; }
static size_t size(const void *self, size_t n) { return PROBABILITIES + ((const binary *)self)->k * (1 + n); }
static double *bits_of(const binary *model, double *state) { return state + PROBABILITIES + model->k; }

/* The posterior of A given the attributes of some rows, and a row that is being looked at. */
typedef struct posterior {
  size_t k, d;
  double lambda, noise, weight; /* weight: 1 / variance of a row's noise */
  double *covariance, *factor, *mean, *square; /* K x K, its inverse's factor, K x D, squared lengths of its rows */
  double *gain, *residual;                     /* K: covariance z; D: y - z' mean */
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

static posterior gather(const binary *model, size_t seen, const le_rows *rows, double lambda, double *state,
                        double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  posterior p = {.k = k, .d = d, .lambda = lambda, .noise = state[NOISE], .weight = lambda / state[NOISE]};
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

/* mean = covariance b, b being where the mean will be; returns tr b' covariance b. */
static double solve(posterior *p)
{
  double sum = 0;
  for (size_t j = 0; j < p->d; j++) {
    for (size_t a = 0; a < p->k; a++) p->gain[a] = p->mean[a * p->d + j];
    memcpy(p->log_weight, p->gain, p->k * sizeof(double)); /* 2^k >= k doubles */
    le_cholesky_solve(p->factor, p->k, p->log_weight);      /* stabler than the covariance, where features are alike */
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

/* Adds the row last looked at (sign 1) or takes it away (-1). */
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
  for (size_t a = 0; a < p->k; a++) p->square[a] = le_dot(p->mean + a * p->d, p->mean + a * p->d, p->d);
}

/* Takes row i away and looks at it from the rest.  Where it alone says what a feature is, the difference would keep no digits:
 * the posterior is then made from the other rows. */
static void take_out(posterior *p, const binary *model, size_t i, size_t seen, const le_rows *rows, double *state,
                     double *scratch)
{
  const double *y = rows->values + i * p->d;
  double *z = bits_of(model, state) + i * p->k, own[MOST_ENUMERATED];
  look_at(p, z, y);
  if (p->weight * p->spread < 1 - 1e-3) {
    update(p, -1);
  } else {
    memcpy(own, z, p->k * sizeof(double));
    memset(z, 0, p->k * sizeof(double)); /* who has nothing says nothing */
    *p = gather(model, seen, rows, p->lambda, state, scratch);
    solve(p);
    memcpy(z, own, p->k * sizeof(double));
  }
  measure(p);
  look_at(p, z, y);
}

/* log density at lambda of a row with such spread and distance. */
static double density(const posterior *p, double spread, double distance)
{
  const double d = (double)p->d, inflation = 1 + p->weight * spread;
  return -p->lambda * d * (HALF_LOG_2PI + 0.5 * log(p->noise)) - 0.5 * d * log(inflation) -
         0.5 * p->weight * distance / inflation;
}

/* What the row's spread and distance would be with attribute a flipped. */
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
  state[FEATURES] = g->infer ? le_draw_variance(g, rng, 0, 0) : g->prior_sd * g->prior_sd;
  state[NOISE] = g->infer ? le_draw_variance(g, rng, 0, 0) : g->noise_sd * g->noise_sd;
  for (size_t a = 0; a < model->k; a++)
    state[PROBABILITIES + a] = g->infer ? gsl_rng_uniform_pos(rng) : model->probability[a];
}

static void extend_blind(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng, double *state,
                         double *scratch)
{
  const binary *model = self;
  (void)rows;
  (void)scratch;
  double *z = bits_of(model, state) + seen * model->k;
  for (size_t a = 0; a < model->k; a++) z[a] = gsl_rng_uniform(rng) < state[PROBABILITIES + a];
}

static double last_given_latent(const void *self, size_t seen, const le_rows *rows, double *state, double *scratch)
{
  const binary *model = self;
  posterior p = gather(model, seen - 1, rows, 1, state, scratch);
  solve(&p);
  look_at(&p, bits_of(model, state) + (seen - 1) * model->k, rows->values + (seen - 1) * p.d);
  return density(&p, p.spread, p.distance);
}

/* The weights of all 2^K attributes that a row may have, each but one flip from the one before (a Gray code): entry c is
 * of the c-th code. */
static posterior enumerate(const binary *model, size_t seen, const le_rows *rows, double *state, double *scratch, double *z)
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

static double extend(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng, double *state,
                     double *scratch)
{
  const binary *model = self;
  double *z = bits_of(model, state) + seen * model->k, log_density;
  posterior p = enumerate(model, seen, rows, state, scratch, z);
  size_t code;
  const double value = le_draw_category(rng, (size_t)1 << model->k, p.log_weight, SIZE_MAX, &code, &log_density);
  const size_t gray = code ^ (code >> 1);
  for (size_t a = 0; a < model->k; a++) z[a] = (double)((gray >> a) & 1);
  return value;
}

static double last_given_rest(const void *self, size_t seen, const le_rows *rows, double *state, double *scratch)
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

static double log_lik(const void *self, size_t seen, const le_rows *rows, double lambda, const double *state,
                      double *scratch)
{
  const binary *model = self;
  posterior p = gather(model, seen, rows, lambda, (double *)(size_t)state, scratch);
  const double d = (double)p.d, k = (double)p.k;
  const double quadratic = solve(&p);
  return -lambda * (double)seen * d * (HALF_LOG_2PI + 0.5 * log(p.noise)) -
         0.5 * p.weight * le_dot(rows->values, rows->values, seen * p.d) -
         d * (0.5 * k * log(state[FEATURES]) + le_cholesky_half_log_det(p.factor, p.k)) + 0.5 * quadratic;
}

/* Probabilities, of which the likelihood knows nothing, and variances. */
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

static double sweep(const void *self, size_t seen, const le_rows *rows, double lambda, int backwards, const double *to,
                    const gsl_rng *rng, double *state, double *scratch)
{
  const binary *model = self;
  const size_t k = model->k;
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, lambda, 0, 0, state, scratch};
  if (model->gaussian.infer && backwards) sweep_settings(model, &view, rng);
  posterior p = gather(model, seen, rows, lambda, state, scratch);
  solve(&p);
  double log_density = 0;
  for (size_t step = 0; step < seen; step++) {
    const size_t i = backwards ? seen - 1 - step : step;
    double *z = bits_of(model, state) + i * k;
    take_out(&p, model, i, seen, rows, state, scratch);
    for (size_t turn = 0; turn < k; turn++) {
      const size_t a = backwards ? k - 1 - turn : turn;
      double spread, distance;
      flipped(&p, z, a, &spread, &distance);
      const double stay = log_bit(state, a, z[a]) + density(&p, p.spread, p.distance),
                   go = log_bit(state, a, 1 - z[a]) + density(&p, spread, distance), odds = go - stay;
      const double *wanted = to ? to + (z - state) : NULL;
      const int moves = wanted ? wanted[a] != z[a] : gsl_rng_uniform(rng) < 1 / (1 + exp(-odds));
      /* log of 1 / (1 + exp(-odds)), or of the rest */
      if (to) log_density -= moves ? log1p(exp(-odds)) : log1p(exp(odds));
      if (moves) flip(&p, z, a, spread, distance);
    }
    update(&p, 1);
  }
  if (model->gaussian.infer && !backwards) sweep_settings(model, &view, rng);
  return log_density;
}

static void sweep_above(const void *self, size_t seen, const le_rows *rows, double floor, double tie, const gsl_rng *rng,
                        double *state, double *scratch)
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
      const double other = value - density(&p, p.spread, p.distance) + density(&p, spread, distance),
                   odds = log_bit(state, a, 1 - z[a]) + le_log_above(other, floor, tie) - log_bit(state, a, z[a]) -
                          le_log_above(value, floor, tie);
      /* not a number where both are impossible */
      if (!(gsl_rng_uniform(rng) < 1 / (1 + exp(-odds)))) continue;
      flip(&p, z, a, spread, distance);
      value = other;
    }
    update(&p, 1);
  }
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, 1, 1, floor, state, scratch};
  if (model->gaussian.infer) sweep_settings(model, &view, rng);
}

static void simulate(const void *self, size_t n, const double *state, const gsl_rng *rng, double *rows, double *scratch)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *z = state + PROBABILITIES + k;
  for (size_t c = 0; c < k * d; c++) scratch[c] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[FEATURES]));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) {
      double value = gsl_ran_gaussian_ziggurat(rng, sqrt(state[NOISE]));
      for (size_t a = 0; a < k; a++) value += z[i * k + a] * scratch[a * d + j];
      rows[i * d + j] = value;
    }
}

static double log_symmetry(const void *self)
{
  const binary *model = self;
  return model->gaussian.infer ? lgamma((double)model->k + 1) : le_log_exchanges(model->k, model->probability);
}

static int possible(const void *self, size_t seen, const double *state)
{
  const binary *model = self;
  for (size_t a = 0; a < model->k; a++)
    if (!(state[PROBABILITIES + a] >= 0 && state[PROBABILITIES + a] <= 1)) return 0;
  return le_all_positive(state, PROBABILITIES) && le_all_codes(state + PROBABILITIES + model->k, seen * model->k, 2);
}

/* ---- mean-field variational Bayes ----
 * q: probabilities of the attributes (N x K), means of the features (K x D), the covariance that their columns share (K x K), and
 * with `infer` both variances and a Beta for each probability (K x 2). */

enum { Q_BITS, Q_FEATURES, Q_SPREAD, Q_NOISE, Q_PROBABILITIES, Q_FACTORS };

typedef struct factors {
  size_t n, k, d;
  double *on, *mean, *covariance, *spread, *noise, *beta;
  le_expected_variance expect_spread, expect_noise;
} factors;

static factors divide(const binary *model, size_t n, const double *q)
{
  const le_gaussian_prior *g = &model->gaussian;
  factors f = {.n = n, .k = model->k, .d = g->width, .on = (double *)(size_t)q};
  f.mean = f.on + n * f.k;
  f.covariance = f.mean + f.k * f.d;
  f.spread = f.covariance + f.k * f.k;
  f.noise = f.spread + 2;
  f.beta = f.noise + 2;
  f.expect_spread = le_q_variance(g, g->prior_sd, f.spread);
  f.expect_noise = le_q_variance(g, g->noise_sd, f.noise);
  return f;
}

static size_t q_size(const void *self, size_t n)
{
  const binary *model = self;
  return model->k * (n + model->gaussian.width + model->k + 2) + 4;
}

static size_t q_scratch(const void *self, size_t n)
{
  const binary *model = self;
  const size_t k = model->k, relabelling = le_relabelling_scratch(n, k), most = k * k + 3 * k + model->gaussian.width;
  return relabelling > most ? relabelling : most;
}

static size_t q_factors(const void *self) { return ((const binary *)self)->gaussian.infer ? Q_FACTORS : Q_SPREAD; }

/* E[log p], E[log(1 - p)] of attribute a. */
static void expect_log_probability(const binary *model, const factors *f, size_t a, double out[2])
{
  if (model->gaussian.infer) {
    le_expect_log_proportions(2, f->beta + 2 * a, out);
    return;
  }
  out[0] = log(model->probability[a]);
  out[1] = log1p(-model->probability[a]);
}

/* E[A A'], summed over columns. */
static void feature_moments(const factors *f, double *out)
{
  for (size_t a = 0; a < f->k; a++)
    for (size_t b = 0; b <= a; b++)
      out[a * f->k + b] = out[b * f->k + a] =
        le_dot(f->mean + a * f->d, f->mean + b * f->d, f->d) + (double)f->d * f->covariance[a * f->k + b];
}

/* Each attribute of a row in turn, given the others. */
static void update_bits(const binary *model, const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  double *moment = scratch, *pull = scratch + k * k, *log_odds = pull + k, log_p[2];
  feature_moments(f, moment);
  for (size_t a = 0; a < k; a++) {
    expect_log_probability(model, f, a, log_p);
    log_odds[a] = log_p[0] - log_p[1] - 0.5 * f->expect_noise.precision * moment[a * k + a];
  }
  for (size_t i = 0; i < f->n; i++) {
    double *on = f->on + i * k;
    for (size_t a = 0; a < k; a++) pull[a] = le_dot(f->mean + a * d, rows->values + i * d, d);
    for (size_t a = 0; a < k; a++) {
      const double others = le_dot(moment + a * k, on, k) - moment[a * k + a] * on[a];
      on[a] = 1 / (1 + exp(-log_odds[a] - f->expect_noise.precision * (pull[a] - others)));
    }
  }
}

static le_status update_features(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->expect_noise.precision;
  double *factor = scratch, *column = scratch + k * k;
  memset(factor, 0, k * k * sizeof(double));
  memset(f->mean, 0, k * d * sizeof(double));
  for (size_t i = 0; i < f->n; i++) {
    const double *on = f->on + i * k;
    for (size_t a = 0; a < k; a++) {
      for (size_t b = 0; b < k; b++) factor[a * k + b] += weight * on[a] * (a == b ? 1 : on[b]);
      for (size_t j = 0; j < d; j++) f->mean[a * d + j] += weight * on[a] * rows->values[i * d + j];
    }
  }
  for (size_t a = 0; a < k; a++) factor[a * k + a] += f->expect_spread.precision;
  const le_status status = le_cholesky(factor, k);
  if (status != LE_OK) return status;
  memset(f->covariance, 0, k * k * sizeof(double));
  for (size_t a = 0; a < k; a++) {
    f->covariance[a * k + a] = 1;
    le_cholesky_solve(factor, k, f->covariance + a * k);
  }
  for (size_t j = 0; j < d; j++) {
    for (size_t a = 0; a < k; a++) column[a] = f->mean[a * d + j];
    le_cholesky_solve(factor, k, column);
    for (size_t a = 0; a < k; a++) f->mean[a * d + j] = column[a];
  }
  return LE_OK;
}

/* E |Y - Z A|^2: where means are, what A spreads around them, and what Z does. */
static double q_residuals(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  double *moment = scratch, *residual = scratch + k * k, *work = residual + d, sum = 0;
  feature_moments(f, moment);
  for (size_t i = 0; i < f->n; i++) {
    const double *on = f->on + i * k;
    memcpy(residual, rows->values + i * d, d * sizeof(double));
    for (size_t a = 0; a < k; a++)
      for (size_t j = 0; j < d; j++) residual[j] -= on[a] * f->mean[a * d + j];
    sum += le_dot(residual, residual, d) + (double)d * le_quadratic_form(f->covariance, k, on, work);
    for (size_t a = 0; a < k; a++) sum += on[a] * (1 - on[a]) * moment[a * k + a];
  }
  return sum;
}

static double q_feature_squares(const factors *f)
{
  double sum = le_dot(f->mean, f->mean, f->k * f->d);
  for (size_t a = 0; a < f->k; a++) sum += (double)f->d * f->covariance[a * (f->k + 1)];
  return sum;
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q, double *scratch)
{
  const binary *model = self;
  const factors f = divide(model, rows->n, q);
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  switch (factor) {
  case Q_BITS: update_bits(model, &f, rows, scratch); break;
  case Q_FEATURES: return update_features(&f, rows, scratch);
  case Q_SPREAD: le_update_variance(prior, (double)(f.k * f.d), q_feature_squares(&f), f.spread); break;
  case Q_NOISE: le_update_variance(prior, (double)(f.n * f.d), q_residuals(&f, rows, scratch), f.noise); break;
  case Q_PROBABILITIES:
    for (size_t a = 0; a < 2 * f.k; a++) f.beta[a] = 1;
    for (size_t i = 0; i < f.n * f.k; i++) {
      f.beta[2 * (i % f.k)] += f.on[i];
      f.beta[2 * (i % f.k) + 1] += 1 - f.on[i];
    }
    break;
  default: break;
  }
  return LE_OK;
}

/* From attributes on, at random or known. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng, double *q,
                         double *scratch)
{
  const binary *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const le_inverse_gamma prior = le_variance_prior(g);
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  factors f = divide(model, rows->n, q);
  for (size_t i = 0; i < f.n * f.k; i++)
    f.on[i] = hint ? hint[PROBABILITIES + f.k + i]
                   : gsl_rng_uniform(rng) < (g->infer ? 0.5 : model->probability[i % f.k]);
  le_point_variance(prior, hint ? (double)(f.k * f.d) : 0, hint ? hint[FEATURES] : g->scale / g->shape, f.spread);
  le_point_variance(prior, hint ? (double)(f.n * f.d) : 0, hint ? hint[NOISE] : g->scale / g->shape, f.noise);
  le_status status = LE_OK;
  for (size_t factor = Q_FEATURES; factor < q_factors(self) && status == LE_OK; factor++)
    status = q_update(self, rows, factor, q, scratch);
  return status;
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const binary *model = self;
  const factors f = divide(model, rows->n, q);
  const double cells = (double)(f.n * f.d);
  double bound = -cells * (HALF_LOG_2PI + 0.5 * f.expect_noise.log) -
                 0.5 * f.expect_noise.precision * q_residuals(&f, rows, scratch);
  for (size_t a = 0; a < f.k; a++) {
    double log_p[2];
    expect_log_probability(model, &f, a, log_p);
    for (size_t i = 0; i < f.n; i++) {
      const double on[2] = {f.on[i * f.k + a], 1 - f.on[i * f.k + a]};
      bound += on[0] * log_p[0] + on[1] * log_p[1] + le_entropy(2, on);
    }
  }
  memcpy(scratch, f.covariance, f.k * f.k * sizeof(double));
  if (le_cholesky(scratch, f.k) != LE_OK) return NAN;
  bound += le_normal_gain((double)(f.k * f.d), q_feature_squares(&f),
                          (double)f.d * le_cholesky_half_log_det(scratch, f.k), f.expect_spread);
  if (!model->gaussian.infer) return bound;
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  for (size_t a = 0; a < f.k; a++) bound += le_proportions_gain(2, 1, f.beta + 2 * a);
  return bound + le_variance_gain(prior, f.spread) + le_variance_gain(prior, f.noise);
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point, double *scratch)
{
  const binary *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const factors f = divide(model, n, q);
  (void)scratch;
  point[FEATURES] = g->infer ? le_draw_inverse_gamma(f.spread, rng) : g->prior_sd * g->prior_sd;
  point[NOISE] = g->infer ? le_draw_inverse_gamma(f.noise, rng) : g->noise_sd * g->noise_sd;
  for (size_t a = 0; a < f.k; a++)
    point[PROBABILITIES + a] = g->infer ? gsl_ran_beta(rng, f.beta[2 * a], f.beta[2 * a + 1]) : model->probability[a];
  for (size_t i = 0; i < n * f.k; i++) bits_of(model, point)[i] = gsl_rng_uniform(rng) < f.on[i];
}

static double q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng, double *scratch)
{
  const binary *model = self;
  return le_relabelling_gain(n, model->k, divide(model, n, q).on, 1, model->gaussian.infer ? NULL : model->probability, rng,
                             scratch);
}

static const le_variational_ops variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = q_symmetry,
};

/* ---- maximum likelihood by EM, all 2^K attributes of a row in turn: variance of the noise, probabilities (K), features ---- */

enum { M_NOISE, M_PROBABILITIES };

static size_t m_size(const void *self, size_t n)
{
  const binary *model = self;
  (void)n;
  return M_PROBABILITIES + model->k * (1 + model->gaussian.width);
}

static size_t m_scratch(const void *self, size_t n)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  (void)n;
  return ((size_t)1 << k) + d + k + k * k + k * d;
}

/* The weights of all attributes that a row may have, by the number of a Gray code; the log of their sum. */
static double m_weigh(const binary *model, const double *y, const double *q, double *weight, double *residual)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double *probability = q + M_PROBABILITIES, *feature = probability + k;
  double prior = -(double)d * (HALF_LOG_2PI + 0.5 * log(q[M_NOISE])), log_density;
  for (size_t a = 0; a < k; a++) prior += log1p(-probability[a]);
  memcpy(residual, y, d * sizeof(double));
  for (size_t c = 0; c < (size_t)1 << k; c++) {
    if (c > 0) {
      size_t a = 0;
      while (!((c >> a) & 1)) a++;
      const double sign = ((c ^ (c >> 1)) >> a) & 1 ? 1 : -1;
      prior += sign * (log(probability[a]) - log1p(-probability[a]));
      for (size_t j = 0; j < d; j++) residual[j] -= sign * feature[a * d + j];
    }
    weight[c] = prior - 0.5 * le_dot(residual, residual, d) / q[M_NOISE];
  }
  size_t any;
  return le_draw_category(NULL, (size_t)1 << k, weight, 0, &any, &log_density);
}

static double m_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const binary *model = self;
  double sum = 0;
  for (size_t i = 0; i < rows->n; i++)
    sum += m_weigh(model, rows->values + i * rows->width, q, scratch, scratch + ((size_t)1 << model->k));
  return sum;
}

static le_status m_maximise(const binary *model, const le_rows *rows, const double *on, double *moments, const double *cross,
                            double *q)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double n = (double)rows->n;
  double *feature = q + M_PROBABILITIES + k, fitted = 0, column[MOST_ENUMERATED];
  /* an attribute that nobody has, or two that go together, leave their features open: the least of them */
  for (size_t a = 0; a < k; a++) moments[a * k + a] += 1e-8 * n;
  const le_status status = le_cholesky(moments, k);
  if (status != LE_OK) return status;
  for (size_t j = 0; j < d; j++) {
    for (size_t a = 0; a < k; a++) column[a] = cross[a * d + j];
    le_cholesky_solve(moments, k, column);
    for (size_t a = 0; a < k; a++) fitted += (feature[a * d + j] = column[a]) * cross[a * d + j];
  }
  if (!model->gaussian.infer) return LE_OK;
  q[M_NOISE] = (le_dot(rows->values, rows->values, rows->n * d) - fitted) / (n * (double)d);
  /* kept off the edge, from where EM does not come back */
  for (size_t a = 0; a < k; a++) q[M_PROBABILITIES + a] = fmin(fmax(on[a] / n, 1e-6), 1 - 1e-6);
  return LE_OK;
}

/* Adds a row that has these attributes with this weight. */
static void m_count(size_t k, size_t d, const double *has, const double *y, double weight, double *on, double *moments,
                    double *cross)
{
  for (size_t a = 0; a < k; a++) {
    if (has[a] == 0) continue;
    on[a] += weight;
    for (size_t b = 0; b < k; b++) moments[a * k + b] += weight * has[b];
    for (size_t j = 0; j < d && y; j++) cross[a * d + j] += weight * y[j];
  }
}

static le_status m_update(const void *self, const le_rows *rows, size_t factor, double *q, double *scratch)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width, codes = (size_t)1 << k;
  double *weight = scratch, *residual = weight + codes, *on = residual + d, *moments = on + k, *cross = moments + k * k;
  (void)factor;
  memset(on, 0, (k + k * k + k * d) * sizeof(double));
  for (size_t i = 0; i < rows->n; i++) {
    const double *y = rows->values + i * d;
    double total = 0, own[MOST_ENUMERATED] = {0}, has[MOST_ENUMERATED];
    m_weigh(model, y, q, weight, residual);
    for (size_t c = 0; c < codes; c++) total += weight[c];
    for (size_t c = 0; c < codes; c++) {
      const double share = weight[c] / total;
      if (share < 1e-12) continue;
      for (size_t a = 0; a < k; a++) has[a] = (double)(((c ^ (c >> 1)) >> a) & 1);
      m_count(k, d, has, NULL, share, own, moments, cross);
    }
    for (size_t a = 0; a < k; a++) {
      on[a] += own[a];
      for (size_t j = 0; j < d; j++) cross[a * d + j] += own[a] * y[j];
    }
  }
  return m_maximise(model, rows, on, moments, cross, q);
}

static le_status m_start(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng, double *q,
                         double *scratch)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  double *on = scratch, *moments = on + k, *cross = moments + k * k, has[MOST_ENUMERATED];
  q[M_NOISE] = hint ? hint[NOISE] : model->gaussian.noise_sd * model->gaussian.noise_sd;
  memcpy(q + M_PROBABILITIES, hint ? hint + PROBABILITIES : model->probability, k * sizeof(double));
  memset(on, 0, (k + k * k + k * d) * sizeof(double));
  for (size_t i = 0; i < rows->n; i++) {
    for (size_t a = 0; a < k; a++)
      has[a] = hint ? hint[PROBABILITIES + k + i * k + a] : gsl_rng_uniform(rng) < q[M_PROBABILITIES + a];
    m_count(k, d, has, rows->values + i * d, 1, on, moments, cross);
  }
  return m_maximise(model, rows, on, moments, cross, q);
}

static const le_variational_ops maximum = {
  .size = m_size,
  .scratch = m_scratch,
  .start = m_start,
  .update = m_update,
  .bound = m_bound,
};

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
  .log_symmetry = log_symmetry,
  .possible = possible,
};

const le_model_ops le_binary_attributes_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "binary_attributes",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = width,
  .latent = &latent,
  .variational = &variational,
  .maximum = &maximum,
};
