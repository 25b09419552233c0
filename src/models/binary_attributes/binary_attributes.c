/* Binary attributes: z_ik ~ Bernoulli(p_k), a_kj ~ N(0, prior_sd^2), y_ij ~ N(z_i' a_j,
 * noise_sd^2). The features A are integrated out of every density: given Z, the columns of A share
 * one posterior covariance, and one row changes it by a matrix of rank one.
 *
 * The state is that of models/grouped.h. Settings: attributes, probabilities, and those of
 * latent_shared.h; with `infer` the probabilities have Beta(1, 1) priors. */
#include "models/binary_attributes/parts.h"

#include "base/linalg.h"

#include <stdlib.h>
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

static le_status create(const le_args *args, void **self, char *message)
{
  return le_grouped_create(&le_binary_attributes_kind, args, self, message);
}

static size_t scratch_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  (void)n;
  return 2 * k * k + k * d + 2 * k + d + ((size_t)1 << k);
}

static posterior gather(const le_grouped *model, const le_chain *chain)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double *state = chain->state, *z = latents_of(model, chain->state);
  posterior p = {.k = k,
                 .d = d,
                 .lambda = chain->lambda,
                 .noise = state[NOISE],
                 .weight = chain->lambda / state[NOISE]};
  p.covariance = chain->scratch;
  p.factor = p.covariance + k * k;
  p.mean = p.factor + k * k;
  p.square = p.mean + k * d;
  p.gain = p.square + k;
  p.residual = p.gain + k;
  p.log_weight = p.residual + d;
  memset(p.factor, 0, (k * k + k * d) * sizeof(double));
  for (size_t i = 0; i < chain->rows.n; i++)
    le_add_moments(k, d, z + i * k, row_of(&chain->rows, i), p.weight, p.factor, p.mean);
  for (size_t a = 0; a < k; a++) p.factor[a * k + a] += 1 / state[SPREAD];
  le_cholesky(p.factor, k); /* positive definite by construction */
  le_inverse(p.factor, k, p.covariance);
  return p;
}

/* mean = covariance b, where b is passed in `mean`; returns tr b' covariance b. Solving is more
 * stable than multiplying by the covariance if features are nearly equal. */
static double solve(posterior *p)
{
  return le_solve_columns(p->factor, p->k, p->d, p->mean, p->log_weight);
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
static void take_out(posterior *p, const le_grouped *model, const le_chain *chain, size_t i)
{
  const double *y = row_of(&chain->rows, i);
  double *z = latents_of(model, chain->state) + i * p->k, own[MOST_ENUMERATED];
  look_at(p, z, y);
  if (p->weight * p->spread < 1 - 1e-3) {
    update(p, -1);
  } else {
    memcpy(own, z, p->k * sizeof(double));
    /* a row without attributes does not affect the posterior of the features */
    memset(z, 0, p->k * sizeof(double));
    *p = gather(model, chain);
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

static void extend_blind(const void *self, const le_chain *chain)
{
  const le_grouped *model = self;
  double *z = latents_of(model, chain->state) + (chain->rows.n - 1) * model->k;
  for (size_t a = 0; a < model->k; a++)
    z[a] = gsl_rng_uniform(chain->rng) < chain->state[PROBABILITIES + a];
}

static double last_given_latent(const void *self, const le_chain *chain)
{
  const le_grouped *model = self;
  const le_chain rest = le_without_last(chain);
  posterior p = gather(model, &rest);
  solve(&p);
  look_at(&p, latents_of(model, chain->state) + rest.rows.n * p.k, row_of(&rest.rows, rest.rows.n));
  return density(&p, p.spread, p.distance);
}

/* Weighs all 2^K attribute vectors of the last row. Each differs from the one before by one flip
 * (Gray code). */
static double extend(const void *self, const le_chain *chain)
{
  const le_grouped *model = self;
  const le_chain rest = le_without_last(chain);
  const size_t k = model->k, codes = (size_t)1 << k;
  const double *state = chain->state;
  double z[MOST_ENUMERATED] = {0}, prior = 0, total;
  posterior p = gather(model, &rest);
  solve(&p);
  measure(&p);
  look_at(&p, z, row_of(&rest.rows, rest.rows.n));
  for (size_t a = 0; a < k; a++) prior += log_bit(state, a, 0);
  for (size_t c = 0; c < codes; c++) {
    if (c > 0) {
      const size_t a = gray_change(c);
      double spread, distance;
      prior += (z[a] == 0 ? 1 : -1) * (log_bit(state, a, 1) - log_bit(state, a, 0));
      flipped(&p, z, a, &spread, &distance);
      flip(&p, z, a, spread, distance);
    }
    p.log_weight[c] = prior + density(&p, p.spread, p.distance);
  }
  const double value = le_to_weights(codes, p.log_weight, &total);
  if (chain->rng)
    gray_bits(k, le_draw_index(codes, p.log_weight, total, chain->rng),
              latents_of(model, chain->state) + rest.rows.n * k);
  return value;
}

static double log_lik(const void *self, const le_chain *chain)
{
  posterior p = gather(self, chain);
  const size_t n = chain->rows.n;
  const double d = (double)p.d, k = (double)p.k, quadratic = solve(&p);
  return -p.lambda * (double)n * d * (HALF_LOG_2PI + 0.5 * log(p.noise)) -
         0.5 * p.weight * le_dot(chain->rows.values, chain->rows.values, n * p.d) -
         d * (0.5 * k * log(chain->state[SPREAD]) + le_cholesky_half_log_det(p.factor, p.k)) +
         0.5 * quadratic;
}

/* The log odds that attribute a of a row is flipped, which changes `value`, its log density without
 * the prior, to `other`; under a constraint these are log-likelihoods of all rows. */
static double log_odds(const le_chain *chain, size_t a, double z, double value, double other,
                       double logit)
{
  if (!chain->walled) return other - value + (z == 0 ? logit : -logit);
  return log_bit(chain->state, a, 1 - z) + le_log_above(chain, other) -
         log_bit(chain->state, a, z) - le_log_above(chain, value);
}

/* Sweeps the attributes of a row, which was taken out. Adds the log density of the transition to
 * `wanted`, if that is given. */
static void sweep_row(posterior *p, const le_chain *chain, int backwards, const double *wanted,
                      const double *logit, double *value, double *z, double *log_density)
{
  if (!chain->walled) *value = fit(p, p->spread, p->distance);
  for (size_t turn = 0; turn < p->k; turn++) {
    const size_t a = backwards ? p->k - 1 - turn : turn;
    double spread, distance;
    flipped(p, z, a, &spread, &distance);
    const double other = chain->walled ? *value - density(p, p->spread, p->distance) +
                                           density(p, spread, distance)
                                       : fit(p, spread, distance),
                 odds = log_odds(chain, a, z[a], *value, other, logit[a]);
    /* NaN, thus no move, if both values are impossible */
    const int moves = wanted ? wanted[a] != z[a]
                             : gsl_rng_uniform(chain->rng) < 1 / (1 + exp(-odds));
    /* log of 1 / (1 + exp(-odds)), or of its complement */
    if (wanted) *log_density -= moves ? log1p(exp(-odds)) : log1p(exp(odds));
    if (!moves) continue;
    flip(p, z, a, spread, distance);
    *value = other;
  }
}

static double sweep(const void *self, const le_chain *chain, int backwards, const double *to)
{
  const le_grouped *model = self;
  const size_t k = model->k, n = chain->rows.n;
  const int infer = model->gaussian.infer;
  if (infer && backwards) le_grouped_sweep_settings(model, log_lik, chain);
  double log_density = 0, logit[MOST_ENUMERATED],
         value = chain->walled ? log_lik(self, chain) : 0;
  posterior p = gather(model, chain);
  solve(&p);
  for (size_t a = 0; a < k; a++)
    logit[a] = log_bit(chain->state, a, 1) - log_bit(chain->state, a, 0);
  for (size_t step = 0; step < n; step++) {
    const size_t i = backwards ? n - 1 - step : step;
    double *z = latents_of(model, chain->state) + i * k;
    take_out(&p, model, chain, i);
    sweep_row(&p, chain, backwards, to ? to + (z - chain->state) : NULL, logit, &value, z,
              &log_density);
    update(&p, 1);
  }
  if (infer && !backwards) le_grouped_sweep_settings(model, log_lik, chain);
  return log_density;
}

static const le_latent_ops states = {
  .size = le_grouped_size,
  .scratch = scratch_size,
  .start = le_grouped_start,
  .extend_blind = extend_blind,
  .extend = extend,
  .last_given_latent = last_given_latent,
  .log_prior = le_grouped_log_prior,
  .log_lik = log_lik,
  .sweep = sweep,
  .simulate = le_grouped_simulate,
  .log_symmetry = le_grouped_symmetry,
  .possible = le_grouped_possible,
  .parts = le_grouped_parts,
  .kind = le_grouped_part_kind,
  .renumber = le_grouped_renumber,
  .likeness = le_grouped_likeness,
};

const le_model_ops le_binary_attributes_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "binary_attributes",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = le_gaussian_width,
  .latent = &states,
  .variational = &le_grouped_variational,
  .maximum = &le_binary_attributes_maximum,
};
