/* Maximum likelihood by EM for binary attributes, summing over all 2^K attribute vectors of each
 * row. */
#include "models/binary_attributes/parts.h"

#include "base/linalg.h"

#include <string.h>

static size_t m_scratch(const void *self, size_t n)
{
  const le_grouped *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  (void)n;
  return ((size_t)1 << k) + d + k + k * k + k * d;
}

/* The weights of all attribute vectors of a row, in the order of a Gray code; returns the log of
 * their sum. */
static double m_weigh(const le_grouped *model, const double *y, const double *q, double *weight,
                      double *residual, double *total)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double *probability = q + M_PROBABILITIES, *feature = probability + k;
  double prior = -(double)d * (HALF_LOG_2PI + 0.5 * log(q[M_NOISE]));
  for (size_t a = 0; a < k; a++) prior += log1p(-probability[a]);
  memcpy(residual, y, d * sizeof(double));
  for (size_t c = 0; c < (size_t)1 << k; c++) {
    if (c > 0) {
      const size_t a = gray_change(c);
      const double sign = ((c ^ (c >> 1)) >> a) & 1 ? 1 : -1;
      prior += sign * (log(probability[a]) - log1p(-probability[a]));
      for (size_t j = 0; j < d; j++) residual[j] -= sign * feature[a * d + j];
    }
    weight[c] = prior - 0.5 * le_dot(residual, residual, d) / q[M_NOISE];
  }
  return le_to_weights((size_t)1 << k, weight, total);
}

static double m_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const le_grouped *model = self;
  double sum = 0, total;
  for (size_t i = 0; i < rows->n; i++)
    sum += m_weigh(model, row_of(rows, i), q, scratch, scratch + ((size_t)1 << model->k), &total);
  return sum;
}

/* Sums over the rows: of attributes, of their products, and of their products with the rows. */
typedef struct sums {
  double *on, *moments, *cross;
} sums;

static sums no_rows(const le_grouped *model, double *scratch)
{
  const size_t k = model->k;
  memset(scratch, 0, (k + k * k + k * model->gaussian.width) * sizeof(double));
  return (sums){scratch, scratch + k, scratch + k + k * k};
}

static le_status m_maximise(const le_grouped *model, const le_rows *rows, const sums *s, double *q)
{
  const size_t k = model->k;
  const int infer = model->gaussian.infer;
  const double n = (double)rows->n;
  double *probability = q + M_PROBABILITIES, work[2 * MOST_ENUMERATED];
  /* if no row has an attribute, or two attributes always occur together, their features are not
   * identified: a small ridge selects the smallest ones */
  for (size_t a = 0; a < k; a++) s->moments[a * k + a] += 1e-8 * n;
  LE_TRY(le_maximise_regression(k, rows, s->moments, s->cross, probability + k,
                                infer ? &q[M_NOISE] : NULL, work));
  /* keep away from 0 and 1, which EM never leaves */
  for (size_t a = 0; a < k && infer; a++)
    probability[a] = fmin(fmax(s->on[a] / n, 1e-6), 1 - 1e-6);
  return LE_OK;
}

static le_status m_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const le_grouped *model = self;
  const size_t k = model->k, d = model->gaussian.width, codes = (size_t)1 << k;
  double *weight = scratch, *residual = weight + codes;
  const sums s = no_rows(model, residual + d);
  (void)factor;
  for (size_t i = 0; i < rows->n; i++) {
    const double *y = row_of(rows, i);
    double total, own[MOST_ENUMERATED] = {0}, has[MOST_ENUMERATED];
    m_weigh(model, y, q, weight, residual, &total);
    for (size_t c = 0; c < codes; c++) {
      const double share = weight[c] / total;
      if (share < 1e-12) continue;
      gray_bits(k, c, has);
      for (size_t a = 0; a < k; a++) own[a] += share * has[a];
      le_add_moments(k, d, has, NULL, share, s.moments, NULL);
    }
    for (size_t a = 0; a < k; a++) {
      s.on[a] += own[a];
      for (size_t j = 0; j < d; j++) s.cross[a * d + j] += own[a] * y[j];
    }
  }
  return m_maximise(model, rows, &s, q);
}

static le_status m_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const le_grouped *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const sums s = no_rows(model, scratch);
  double has[MOST_ENUMERATED];
  q[M_NOISE] = hint ? hint[NOISE] : model->gaussian.sd[NOISE] * model->gaussian.sd[NOISE];
  memcpy(q + M_PROBABILITIES, hint ? hint + PROBABILITIES : model->probability, k * sizeof(double));
  for (size_t i = 0; i < rows->n; i++) {
    for (size_t a = 0; a < k; a++) {
      has[a] = hint ? hint[PROBABILITIES + k + i * k + a]
                    : gsl_rng_uniform(rng) < q[M_PROBABILITIES + a];
      s.on[a] += has[a];
    }
    le_add_moments(k, d, has, row_of(rows, i), 1, s.moments, s.cross);
  }
  return m_maximise(model, rows, &s, q);
}

const le_variational_ops le_binary_attributes_maximum = {
  .size = le_grouped_m_size,
  .scratch = m_scratch,
  .start = m_start,
  .update = m_update,
  .bound = m_bound,
};
