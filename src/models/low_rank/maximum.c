/* Maximum likelihood by EM for low_rank. The parameters are a state of no rows; an unknown variance
 * of U is fixed at 1, because V can have any length. */
#include "models/low_rank/parts.h"

#include <string.h>

static size_t m_size(const void *self, size_t n)
{
  (void)n;
  return le_low_rank_size(self, 0);
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
  const le_chain chain = {
    .rows = *rows, .lambda = 1, .state = (double *)(size_t)q, .scratch = scratch};
  le_low_rank_prepare_columns(self, &chain);
  return le_low_rank_log_lik_columns(self, &chain) -
         (double)(rows->n * rows->width) * HALF_LOG_2PI;
}

static le_status m_update(const void *self, const le_rows *rows, size_t index, double *q,
                          double *scratch)
{
  const low_rank *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const vectors v = vectors_of(COLUMNS, k, d, columns_of(q));
  const double weight = 1 / q[NOISE];
  double *factor = scratch, *b = scratch + k * k, *mean = b + k, *moments = mean + k,
         *covariance = moments + k * k, *cross = covariance + k * k;
  (void)index;
  le_low_rank_moments(v, NULL, factor);
  le_low_rank_factorise(k, 1 / q[ROWS], weight, factor);
  le_inverse(factor, k, covariance);
  memset(cross, 0, k * d * sizeof(double));
  for (size_t p = 0; p < k * k; p++) moments[p] = (double)rows->n * covariance[p];
  for (size_t i = 0; i < rows->n; i++) {
    le_low_rank_regress(v, rows, ROWS, i, weight, factor, b, mean);
    le_add_moments(k, d, mean, row_of(rows, i), 1, moments, cross);
  }
  return le_maximise_regression(k, rows, moments, cross, v.values,
                                model->gaussian.infer ? &q[NOISE] : NULL, b);
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
