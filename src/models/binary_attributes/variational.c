/* Mean-field variational Bayes for binary attributes. */
#include "models/binary_attributes/parts.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <string.h>

static size_t q_scratch(const void *self, size_t n)
{
  const le_grouped *model = self;
  const size_t k = model->k, relabelling = le_relabelling_scratch(n, k),
               most = k * k + 3 * k + model->gaussian.width;
  return relabelling > most ? relabelling : most;
}

/* E[log p], E[log(1 - p)] of attribute a. */
static void expect_log_probability(const le_grouped_q *f, size_t a, double out[2])
{
  out[0] = log(f->model->probability[a]);
  out[1] = log1p(-f->model->probability[a]);
  if (f->infer) le_expect_log_proportions(2, f->alpha + 2 * a, out);
}

/* E[A A'], summed over columns. */
static void feature_moments(const le_grouped_q *f, double *out)
{
  for (size_t a = 0; a < f->k; a++)
    for (size_t b = 0; b <= a; b++)
      out[a * f->k + b] = out[b * f->k + a] = le_dot(f->mean + a * f->d, f->mean + b * f->d, f->d) +
                                              (double)f->d * f->covariance[a * f->k + b];
}

/* Updates the attributes of a row one after another, given the others. */
static void update_bits(const le_grouped_q *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->variances.expect[NOISE].precision;
  double *moment = scratch, *pull = scratch + k * k, *log_odds = pull + k, log_p[2];
  feature_moments(f, moment);
  for (size_t a = 0; a < k; a++) {
    expect_log_probability(f, a, log_p);
    log_odds[a] = log_p[0] - log_p[1] - 0.5 * weight * moment[a * k + a];
  }
  for (size_t i = 0; i < f->n; i++) {
    double *on = f->share + i * k;
    for (size_t a = 0; a < k; a++) pull[a] = le_dot(f->mean + a * d, rows->values + i * d, d);
    for (size_t a = 0; a < k; a++) {
      const double others = le_dot(moment + a * k, on, k) - moment[a * k + a] * on[a];
      on[a] = 1 / (1 + exp(-log_odds[a] - weight * (pull[a] - others)));
    }
  }
}

static le_status update_features(const le_grouped_q *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->variances.expect[NOISE].precision;
  double *factor = scratch, *work = scratch + k * k;
  memset(factor, 0, k * k * sizeof(double));
  memset(f->mean, 0, k * d * sizeof(double));
  for (size_t i = 0; i < f->n; i++) {
    const double *on = f->share + i * k;
    for (size_t a = 0; a < k; a++) {
      for (size_t b = 0; b < k; b++) factor[a * k + b] += weight * on[a] * (a == b ? 1 : on[b]);
      for (size_t j = 0; j < d; j++) f->mean[a * d + j] += weight * on[a] * rows->values[i * d + j];
    }
  }
  for (size_t a = 0; a < k; a++) factor[a * k + a] += f->variances.expect[SPREAD].precision;
  const le_status status = le_cholesky(factor, k);
  if (status != LE_OK) return status;
  le_inverse(factor, k, f->covariance);
  le_solve_columns(factor, k, d, f->mean, work);
  return LE_OK;
}

/* E |Y - Z A|^2: the squared distance of the means, plus the contributions of the variances of A
 * and Z. */
static double q_residuals(const le_grouped_q *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  double *moment = scratch, *residual = scratch + k * k, *work = residual + d, sum = 0;
  feature_moments(f, moment);
  for (size_t i = 0; i < f->n; i++) {
    const double *on = f->share + i * k;
    memcpy(residual, rows->values + i * d, d * sizeof(double));
    for (size_t a = 0; a < k; a++)
      for (size_t j = 0; j < d; j++) residual[j] -= on[a] * f->mean[a * d + j];
    sum += le_dot(residual, residual, d) +
           (double)d * le_quadratic_form(f->covariance, k, on, work);
    for (size_t a = 0; a < k; a++) sum += on[a] * (1 - on[a]) * moment[a * k + a];
  }
  return sum;
}

static double q_feature_squares(const le_grouped_q *f)
{
  double sum = le_dot(f->mean, f->mean, f->k * f->d);
  for (size_t a = 0; a < f->k; a++) sum += (double)f->d * f->covariance[a * (f->k + 1)];
  return sum;
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const le_grouped_q f = le_grouped_divide(self, rows->n, q);
  switch (factor) {
  case Q_LATENTS: update_bits(&f, rows, scratch); break;
  case Q_PARAMETERS: return update_features(&f, rows, scratch);
  case Q_SPREAD: le_q_update_variance(&f.variances, SPREAD, q_feature_squares(&f)); break;
  case Q_NOISE: le_q_update_variance(&f.variances, NOISE, q_residuals(&f, rows, scratch)); break;
  case Q_PROBABILITIES:
    for (size_t a = 0; a < 2 * f.k; a++) f.alpha[a] = 1;
    for (size_t i = 0; i < f.n * f.k; i++) {
      f.alpha[2 * (i % f.k)] += f.share[i];
      f.alpha[2 * (i % f.k) + 1] += 1 - f.share[i];
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
  memset(q, 0, le_grouped_q_size(self, rows->n) * sizeof(double));
  const le_grouped_q f = le_grouped_divide(self, rows->n, q);
  for (size_t i = 0; i < f.n * f.k; i++)
    f.share[i] = hint ? hint[PROBABILITIES + f.k + i]
                      : gsl_rng_uniform(rng) <
                          (f.infer ? 0.5 : f.model->probability[i % f.k]);
  le_q_start_variances(&f.variances, hint);
  return le_q_update_from(&le_binary_attributes_variational, Q_PARAMETERS, self, rows, q, scratch);
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const le_grouped_q f = le_grouped_divide(self, rows->n, q);
  const le_q_variances *v = &f.variances;
  double bound = -v->count[NOISE] * (HALF_LOG_2PI + 0.5 * v->expect[NOISE].log) -
                 0.5 * v->expect[NOISE].precision * q_residuals(&f, rows, scratch);
  for (size_t a = 0; a < f.k; a++) {
    double log_p[2];
    expect_log_probability(&f, a, log_p);
    for (size_t i = 0; i < f.n; i++) {
      const double on[2] = {f.share[i * f.k + a], 1 - f.share[i * f.k + a]};
      bound += on[0] * log_p[0] + on[1] * log_p[1] + le_entropy(2, on);
    }
  }
  bound += le_normal_gain(v->count[SPREAD], q_feature_squares(&f),
                          (double)f.d * le_half_log_det(f.covariance, f.k, scratch),
                          v->expect[SPREAD]);
  for (size_t a = 0; a < f.k && f.infer; a++)
    bound += le_proportions_gain(2, 1, f.alpha + 2 * a);
  le_q_add_variance_gains(v, &bound);
  return bound;
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const le_grouped_q f = le_grouped_divide(self, n, q);
  double *probability = point + PROBABILITIES;
  (void)scratch;
  le_q_draw_variances(&f.variances, rng, point);
  for (size_t a = 0; a < f.k; a++)
    probability[a] = f.infer ? gsl_ran_beta(rng, f.alpha[2 * a], f.alpha[2 * a + 1])
                                           : f.model->probability[a];
  for (size_t i = 0; i < n * f.k; i++)
    latents_of(f.model, point)[i] = gsl_rng_uniform(rng) < f.share[i];
}

const le_variational_ops le_binary_attributes_variational = {
  .size = le_grouped_q_size,
  .scratch = q_scratch,
  .factors = le_grouped_q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = le_grouped_q_symmetry,
};
