/* Mean-field variational Bayes for clustering. The variances of a centre are the same for all
 * columns. */
#include "models/grouped.h"

#include <string.h>

static size_t q_scratch(const void *self, size_t n)
{
  const size_t k = ((const le_grouped *)self)->k, relabelling = le_relabelling_scratch(n, k),
               most = n > k ? n : k;
  return relabelling > most ? relabelling : most;
}

static void expect_log_proportions(const le_grouped_q *f, double *out)
{
  for (size_t c = 0; c < f->k; c++) out[c] = log(f->model->probability[c]);
  if (f->infer) le_expect_log_proportions(f->k, f->alpha, out);
}

/* The expected squared distance of a row to a centre. */
static double q_distance(const le_grouped_q *f, const double *y, size_t c)
{
  const double *mean = f->mean + c * f->d;
  double sum = (double)f->d * f->covariance[c];
  for (size_t j = 0; j < f->d; j++) sum += (y[j] - mean[j]) * (y[j] - mean[j]);
  return sum;
}

static double q_residuals(const le_grouped_q *f, const le_rows *rows)
{
  double sum = 0;
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < f->k; c++)
      if (f->share[i * f->k + c] > 0)
        sum += f->share[i * f->k + c] * q_distance(f, row_of(rows, i), c);
  return sum;
}

static double q_centre_squares(const le_grouped_q *f)
{
  double sum = 0;
  for (size_t c = 0; c < f->k; c++) sum += (double)f->d * f->covariance[c];
  for (size_t c = 0; c < f->k * f->d; c++) sum += f->mean[c] * f->mean[c];
  return sum;
}

static void update_labels(const le_grouped_q *f, const le_rows *rows, double *log_proportion)
{
  const double precision = f->variances.expect[NOISE].precision;
  expect_log_proportions(f, log_proportion);
  for (size_t i = 0; i < f->n; i++) {
    double *share = f->share + i * f->k;
    for (size_t c = 0; c < f->k; c++)
      share[c] = log_proportion[c] - 0.5 * precision * q_distance(f, row_of(rows, i), c);
    le_to_shares(f->k, share);
  }
}

static void update_centres(const le_grouped_q *f, const le_rows *rows)
{
  const size_t k = f->k, d = f->d;
  const double prior = f->variances.expect[SPREAD].precision,
               weight = f->variances.expect[NOISE].precision;
  double *variance = f->covariance;
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
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const le_grouped_q f = le_grouped_divide(self, rows->n, q);
  switch (factor) {
  case Q_LATENTS: update_labels(&f, rows, scratch); break;
  case Q_PARAMETERS: update_centres(&f, rows); break;
  case Q_SPREAD: le_q_update_variance(&f.variances, SPREAD, q_centre_squares(&f)); break;
  case Q_NOISE: le_q_update_variance(&f.variances, NOISE, q_residuals(&f, rows)); break;
  case Q_PROBABILITIES:
    for (size_t c = 0; c < f.k; c++) f.alpha[c] = 1;
    for (size_t i = 0; i < f.n * f.k; i++) f.alpha[i % f.k] += f.share[i];
    break;
  default: break;
  }
  return LE_OK;
}

/* Starts from labels, random or given. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  memset(q, 0, le_grouped_q_size(self, rows->n) * sizeof(double));
  const le_grouped_q f = le_grouped_divide(self, rows->n, q);
  if (hint) le_label_shares(f.n, f.k, hint + PROBABILITIES + f.k, f.share);
  else le_start_shares(rows, f.k, NULL, rng, f.share, scratch);
  le_q_start_variances(&f.variances, hint);
  return le_q_update_from(&le_clustering_variational, Q_PARAMETERS, self, rows, q, scratch);
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const le_grouped_q f = le_grouped_divide(self, rows->n, q);
  const le_q_variances *v = &f.variances;
  double half_log_det = 0, labels = le_entropy(f.n * f.k, f.share);
  expect_log_proportions(&f, scratch);
  for (size_t i = 0; i < f.n * f.k; i++) labels += f.share[i] * scratch[i % f.k];
  for (size_t c = 0; c < f.k; c++) half_log_det += 0.5 * (double)f.d * log(f.covariance[c]);
  double bound = labels - v->count[NOISE] * (HALF_LOG_2PI + 0.5 * v->expect[NOISE].log) -
                 0.5 * v->expect[NOISE].precision * q_residuals(&f, rows) +
                 le_normal_gain(v->count[SPREAD], q_centre_squares(&f), half_log_det,
                                v->expect[SPREAD]);
  le_q_add_variance_gains(v, &bound);
  return bound + (f.infer ? le_proportions_gain(f.k, 1, f.alpha) : 0);
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const le_grouped_q f = le_grouped_divide(self, n, q);
  (void)scratch;
  le_q_draw_variances(&f.variances, rng, point);
  if (f.infer) le_draw_proportions(f.k, f.alpha, rng, point + PROBABILITIES);
  else memcpy(point + PROBABILITIES, f.model->probability, f.k * sizeof(double));
  for (size_t i = 0; i < n; i++)
    latents_of(f.model, point)[i] = (double)le_draw_index(f.k, f.share + i * f.k, 1, rng);
}

const le_variational_ops le_clustering_variational = {
  .size = le_grouped_q_size,
  .scratch = q_scratch,
  .factors = le_grouped_q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = le_grouped_q_symmetry,
};
