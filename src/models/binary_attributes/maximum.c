/* Maximum likelihood by EM for binary attributes, summing over all 2^K attribute vectors of each
 * row. The parameters are the variance of the noise, the probabilities (K) and the features. */
#include "models/binary_attributes/parts.h"

#include "base/linalg.h"

#include <string.h>

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

/* The weights of all attribute vectors of a row, in the order of a Gray code; returns the log of
 * their sum. */
static double m_weigh(const binary *model, const double *y, const double *q, double *weight,
                      double *residual)
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
    sum += m_weigh(model, rows->values + i * rows->width, q, scratch,
                   scratch + ((size_t)1 << model->k));
  return sum;
}

static le_status m_maximise(const binary *model, const le_rows *rows, const double *on,
                            double *moments, const double *cross, double *q)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double n = (double)rows->n;
  double *feature = q + M_PROBABILITIES + k, fitted = 0, column[MOST_ENUMERATED];
  /* if no row has an attribute, or two attributes always occur together, their features are not
   * identified: a small ridge selects the smallest ones */
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
  /* keep away from 0 and 1, which EM never leaves */
  for (size_t a = 0; a < k; a++) q[M_PROBABILITIES + a] = fmin(fmax(on[a] / n, 1e-6), 1 - 1e-6);
  return LE_OK;
}

/* Adds a row that has these attributes with this weight. */
static void m_count(size_t k, size_t d, const double *has, const double *y, double weight,
                    double *on, double *moments, double *cross)
{
  for (size_t a = 0; a < k; a++) {
    if (has[a] == 0) continue;
    on[a] += weight;
    for (size_t b = 0; b < k; b++) moments[a * k + b] += weight * has[b];
    for (size_t j = 0; j < d && y; j++) cross[a * d + j] += weight * y[j];
  }
}

static le_status m_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width, codes = (size_t)1 << k;
  double *weight = scratch, *residual = weight + codes, *on = residual + d, *moments = on + k,
         *cross = moments + k * k;
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

static le_status m_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const binary *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  double *on = scratch, *moments = on + k, *cross = moments + k * k, has[MOST_ENUMERATED];
  q[M_NOISE] = hint ? hint[NOISE] : model->gaussian.noise_sd * model->gaussian.noise_sd;
  memcpy(q + M_PROBABILITIES, hint ? hint + PROBABILITIES : model->probability, k * sizeof(double));
  memset(on, 0, (k + k * k + k * d) * sizeof(double));
  for (size_t i = 0; i < rows->n; i++) {
    for (size_t a = 0; a < k; a++)
      has[a] = hint ? hint[PROBABILITIES + k + i * k + a]
                    : gsl_rng_uniform(rng) < q[M_PROBABILITIES + a];
    m_count(k, d, has, rows->values + i * d, 1, on, moments, cross);
  }
  return m_maximise(model, rows, on, moments, cross, q);
}

const le_variational_ops le_binary_attributes_maximum = {
  .size = m_size,
  .scratch = m_scratch,
  .start = m_start,
  .update = m_update,
  .bound = m_bound,
};
