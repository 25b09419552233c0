/* Maximum likelihood by EM for low_rank. The parameters are a state of no rows; an unknown variance
 * of U is fixed at 1, because V can have any length. */
#include "models/low_rank/parts.h"

#include "base/linalg.h"

#include <string.h>

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
  le_low_rank_prepare_columns(model, rows->n, rows, (double *)(size_t)q, scratch);
  return le_low_rank_log_lik_columns(self, rows->n, rows, 1, q, scratch) -
         (double)(rows->n * rows->width) * HALF_LOG_2PI;
}

static le_status m_update(const void *self, const le_rows *rows, size_t index, double *q,
                          double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width, n = rows->n;
  const double weight = 1 / q[NOISE];
  double *v = columns_of(q), *factor = scratch, *b = scratch + k * k, *mean = b + k,
         *moments = scratch + k * (3 * k + 3), *covariance = moments + k * k,
         *cross = covariance + k * k;
  (void)index;
  le_low_rank_factorise(k, d, v, d, 1, q[ROWS], weight, factor);
  memset(covariance, 0, k * k * sizeof(double));
  memset(cross, 0, k * d * sizeof(double));
  for (size_t p = 0; p < k; p++) {
    covariance[p * k + p] = 1;
    le_cholesky_solve(factor, k, covariance + p * k);
  }
  for (size_t p = 0; p < k * k; p++) moments[p] = (double)n * covariance[p];
  for (size_t i = 0; i < n; i++) {
    const double *y = rows->values + i * d;
    le_low_rank_regress(k, d, v, d, 1, y, 1, weight, factor, b, mean);
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
  if (model->gaussian.infer)
    q[NOISE] = (sum_squares(rows->values, n * d) - fitted) / (double)(n * d);
  return LE_OK;
}

static le_status m_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const low_rank *model = self;
  (void)rows;
  (void)scratch;
  if (hint) memcpy(q, hint, m_size(self, 0) * sizeof(double));
  else le_low_rank_start(self, rng, q);
  if (model->gaussian.infer) q[ROWS] = 1;
  return LE_OK;
}

const le_variational_ops le_low_rank_maximum = {
  .size = m_size,
  .scratch = m_scratch,
  .start = m_start,
  .update = m_update,
  .bound = m_bound,
};
