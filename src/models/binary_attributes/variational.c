/* What mean-field variational Bayes does for binary attributes alone. */
#include "models/binary_attributes/parts.h"

#include "base/linalg.h"

#include <string.h>

/* E[A A'], summed over columns. */
static void feature_moments(const le_grouped_q *f, double *out)
{
  for (size_t a = 0; a < f->k; a++)
    for (size_t b = 0; b <= a; b++)
      out[a * f->k + b] = out[b * f->k + a] = le_dot(f->mean + a * f->d, f->mean + b * f->d, f->d) +
                                              (double)f->d * f->covariance[a * f->k + b];
}

/* Updates the attributes of a row one after another, given the others. */
static void update_bits(const le_grouped_q *f, const le_rows *rows, const double *log_p,
                        double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->variances.expect[NOISE].precision;
  double *moment = scratch, *pull = scratch + k * k, *log_odds = pull + k;
  feature_moments(f, moment);
  for (size_t a = 0; a < k; a++)
    log_odds[a] = log_p[2 * a] - log_p[2 * a + 1] - 0.5 * weight * moment[a * k + a];
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
    le_add_moments(k, d, on, row_of(rows, i), weight, factor, f->mean);
    for (size_t a = 0; a < k; a++) factor[a * (k + 1)] += weight * on[a] * (1 - on[a]);
  }
  for (size_t a = 0; a < k; a++) factor[a * k + a] += f->variances.expect[SPREAD].precision;
  LE_TRY(le_cholesky(factor, k));
  le_inverse(factor, k, f->covariance);
  le_solve_columns(factor, k, d, f->mean, work);
  return LE_OK;
}

/* E |Y - Z A|^2: the squared distance of the means, plus the contributions of the variances of A
 * and Z. */
static double residuals(const le_grouped_q *f, const le_rows *rows, double *scratch)
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

const le_grouped_kind le_binary_attributes_kind = {
  .count = "attributes",
  .probabilities = "probabilities",
  .most = MOST_ENUMERATED,
  .update_latents = update_bits,
  .update_parameters = update_features,
  .residuals = residuals,
};
