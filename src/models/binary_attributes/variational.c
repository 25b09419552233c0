/* Mean-field variational Bayes for binary attributes.
 *
 * q: probabilities of the attributes (N x K), means of the features (K x D), the covariance common
 * to their columns (K x K), and with `infer` both variances and a Beta for each probability (K x
 * 2). */
#include "models/binary_attributes/parts.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <string.h>

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
  const size_t k = model->k, relabelling = le_relabelling_scratch(n, k),
               most = k * k + 3 * k + model->gaussian.width;
  return relabelling > most ? relabelling : most;
}

static size_t q_factors(const void *self)
{
  return ((const binary *)self)->gaussian.infer ? Q_FACTORS : Q_SPREAD;
}

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
      out[a * f->k + b] = out[b * f->k + a] = le_dot(f->mean + a * f->d, f->mean + b * f->d, f->d) +
                                              (double)f->d * f->covariance[a * f->k + b];
}

/* Updates the attributes of a row one after another, given the others. */
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

/* E |Y - Z A|^2: the squared distance of the means, plus the contributions of the variances of A
 * and Z. */
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
    sum += le_dot(residual, residual, d) +
           (double)d * le_quadratic_form(f->covariance, k, on, work);
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

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const binary *model = self;
  const factors f = divide(model, rows->n, q);
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  switch (factor) {
  case Q_BITS: update_bits(model, &f, rows, scratch); break;
  case Q_FEATURES: return update_features(&f, rows, scratch);
  case Q_SPREAD:
    le_update_variance(prior, (double)(f.k * f.d), q_feature_squares(&f), f.spread);
    break;
  case Q_NOISE:
    le_update_variance(prior, (double)(f.n * f.d), q_residuals(&f, rows, scratch), f.noise);
    break;
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

/* Starts from attributes, random or given. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const binary *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  factors f = divide(model, rows->n, q);
  for (size_t i = 0; i < f.n * f.k; i++)
    f.on[i] = hint ? hint[PROBABILITIES + f.k + i]
                   : gsl_rng_uniform(rng) < (g->infer ? 0.5 : model->probability[i % f.k]);
  le_q_start_variance(g, (double)(f.k * f.d), hint ? &hint[FEATURES] : NULL, f.spread);
  le_q_start_variance(g, (double)(f.n * f.d), hint ? &hint[NOISE] : NULL, f.noise);
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

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const binary *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const factors f = divide(model, n, q);
  (void)scratch;
  point[FEATURES] = le_q_draw_variance(g, g->prior_sd, f.spread, rng);
  point[NOISE] = le_q_draw_variance(g, g->noise_sd, f.noise, rng);
  for (size_t a = 0; a < f.k; a++)
    point[PROBABILITIES + a] = g->infer ? gsl_ran_beta(rng, f.beta[2 * a], f.beta[2 * a + 1])
                                        : model->probability[a];
  for (size_t i = 0; i < n * f.k; i++) bits_of(model, point)[i] = gsl_rng_uniform(rng) < f.on[i];
}

static double q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng,
                         double *scratch)
{
  const binary *model = self;
  return le_relabelling_gain(n, model->k, divide(model, n, q).on, 1,
                             model->gaussian.infer ? NULL : model->probability, rng, scratch);
}

const le_variational_ops le_binary_attributes_variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = q_symmetry,
};
