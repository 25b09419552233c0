/* What mean-field variational Bayes does for clustering alone. The variances of a centre are the
 * same for all columns. */
#include "models/grouped.h"

#include <string.h>

/* The expected squared distance of a row to a centre. */
static double q_distance(const le_grouped_q *f, const double *y, size_t c)
{
  const double *mean = f->mean + c * f->d;
  double sum = (double)f->d * f->covariance[c];
  for (size_t j = 0; j < f->d; j++) sum += (y[j] - mean[j]) * (y[j] - mean[j]);
  return sum;
}

static double residuals(const le_grouped_q *f, const le_rows *rows, double *scratch)
{
  (void)scratch;
  double sum = 0;
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < f->k; c++)
      if (f->share[i * f->k + c] > 0)
        sum += f->share[i * f->k + c] * q_distance(f, row_of(rows, i), c);
  return sum;
}

static void update_labels(const le_grouped_q *f, const le_rows *rows, const double *log_p,
                          double *scratch)
{
  const double precision = f->variances.expect[NOISE].precision;
  (void)scratch;
  for (size_t i = 0; i < f->n; i++) {
    double *share = f->share + i * f->k;
    for (size_t c = 0; c < f->k; c++)
      share[c] = log_p[c] - 0.5 * precision * q_distance(f, row_of(rows, i), c);
    le_to_shares(f->k, share);
  }
}

static le_status update_centres(const le_grouped_q *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double prior = f->variances.expect[SPREAD].precision,
               weight = f->variances.expect[NOISE].precision;
  double *variance = f->covariance;
  (void)scratch;
  memset(f->mean, 0, k * d * sizeof(double));
  memset(variance, 0, k * sizeof(double));
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < k; c++) {
      const double share = f->share[i * k + c];
      variance[c] += share;
      for (size_t j = 0; j < d; j++) f->mean[c * d + j] += share * rows->values[i * d + j];
    }
  for (size_t c = 0; c < k; c++) {
    variance[c] = 1 / (prior + weight * variance[c]);
    for (size_t j = 0; j < d; j++) f->mean[c * d + j] *= weight * variance[c];
  }
  return LE_OK;
}

const le_grouped_kind le_clustering_kind = {
  .count = "components",
  .probabilities = "proportions",
  .most = 10000,
  .exclusive = 1,
  .update_latents = update_labels,
  .update_parameters = update_centres,
  .residuals = residuals,
};
