/* Maximum likelihood by EM for clustering. */
#include "models/grouped.h"

#include <string.h>

static size_t m_scratch(const void *self, size_t n)
{
  return n * (((const le_grouped *)self)->k + 2);
}

/* Probabilities of the cluster of each row, and the log-likelihood. */
static double m_expect(const void *self, const le_rows *rows, const double *q, double *share)
{
  const le_grouped *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *centre = q + M_PROBABILITIES + k;
  double sum = 0;
  for (size_t i = 0; i < rows->n; i++) {
    const double *y = rows->values + i * d;
    double *own = share + i * k;
    for (size_t c = 0; c < k; c++) {
      double square = 0;
      for (size_t j = 0; j < d; j++)
        square += (y[j] - centre[c * d + j]) * (y[j] - centre[c * d + j]);
      own[c] = log(q[M_PROBABILITIES + c]) - 0.5 * square / q[M_NOISE] -
               (double)d * (HALF_LOG_2PI + 0.5 * log(q[M_NOISE]));
    }
    sum += le_to_shares(k, own);
  }
  return sum;
}

static void m_maximise(const le_grouped *model, const le_rows *rows, const double *share, double *q)
{
  const size_t k = model->k, d = model->gaussian.width, n = rows->n;
  double *centre = q + M_PROBABILITIES + k, squares = 0;
  memset(centre, 0, k * d * sizeof(double));
  for (size_t c = 0; c < k; c++) {
    double count = 0;
    for (size_t i = 0; i < n; i++) {
      count += share[i * k + c];
      for (size_t j = 0; j < d; j++)
        centre[c * d + j] += share[i * k + c] * rows->values[i * d + j];
    }
    for (size_t j = 0; j < d && count > 0; j++) centre[c * d + j] /= count;
    if (model->gaussian.infer) q[M_PROBABILITIES + c] = count / (double)n;
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j < d; j++)
        squares += share[i * k + c] * pow(rows->values[i * d + j] - centre[c * d + j], 2);
  }
  if (model->gaussian.infer) q[M_NOISE] = squares / (double)(n * d);
}

static le_status m_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const le_grouped *model = self;
  q[M_NOISE] = model->gaussian.sd[NOISE] * model->gaussian.sd[NOISE];
  memcpy(q + M_PROBABILITIES, model->probability, model->k * sizeof(double));
  if (hint) le_label_shares(rows->n, model->k, hint + PROBABILITIES + model->k, scratch);
  else le_start_shares(rows, model->k, NULL, rng, scratch, scratch + rows->n * model->k);
  m_maximise(model, rows, scratch, q);
  return LE_OK;
}

static le_status m_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  (void)factor;
  m_expect(self, rows, q, scratch);
  m_maximise(self, rows, scratch, q);
  return LE_OK;
}

const le_variational_ops le_clustering_maximum = {
  .size = le_grouped_m_size,
  .scratch = m_scratch,
  .start = m_start,
  .update = m_update,
  .bound = m_expect,
};
