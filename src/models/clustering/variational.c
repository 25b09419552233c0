/* Mean-field variational Bayes for clustering.
 *
 * q: shares (N x K), means of the centres (K x D), their variances (K, the same for all columns),
 * and with `infer` both variances and the proportions. */
#include "models/clustering/parts.h"

#include <string.h>

enum { Q_LABELS, Q_CENTRES, Q_SPREAD, Q_NOISE, Q_PROPORTIONS, Q_FACTORS };

typedef struct factors {
  size_t n, k, d;
  double *share, *mean, *variance, *spread, *noise, *alpha;
  le_expected_variance expect_spread, expect_noise;
} factors;

static factors divide(const clustering *model, size_t n, const double *q)
{
  const le_gaussian_prior *g = &model->gaussian;
  factors f = {.n = n, .k = model->k, .d = g->width, .share = (double *)(size_t)q};
  f.mean = f.share + n * f.k;
  f.variance = f.mean + f.k * f.d;
  f.spread = f.variance + f.k;
  f.noise = f.spread + 2;
  f.alpha = f.noise + 2;
  f.expect_spread = le_q_variance(g, g->prior_sd, f.spread);
  f.expect_noise = le_q_variance(g, g->noise_sd, f.noise);
  return f;
}

static size_t q_size(const void *self, size_t n)
{
  const clustering *model = self;
  return model->k * (n + model->gaussian.width + 2) + 4;
}

static size_t q_scratch(const void *self, size_t n)
{
  const size_t k = ((const clustering *)self)->k, relabelling = le_relabelling_scratch(n, k),
               most = n > k ? n : k;
  return relabelling > most ? relabelling : most;
}

static size_t q_factors(const void *self)
{
  return ((const clustering *)self)->gaussian.infer ? Q_FACTORS : Q_SPREAD;
}

static void expect_log_proportions(const clustering *model, const factors *f, double *out)
{
  if (model->gaussian.infer) {
    le_expect_log_proportions(f->k, f->alpha, out);
    return;
  }
  for (size_t c = 0; c < f->k; c++) out[c] = log(model->probability[c]);
}

/* The expected squared distance of a row to a centre. */
static double q_distance(const factors *f, const double *y, size_t c)
{
  const double *mean = f->mean + c * f->d;
  double sum = (double)f->d * f->variance[c];
  for (size_t j = 0; j < f->d; j++) sum += (y[j] - mean[j]) * (y[j] - mean[j]);
  return sum;
}

static double q_residuals(const factors *f, const le_rows *rows)
{
  double sum = 0;
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < f->k; c++)
      if (f->share[i * f->k + c] > 0)
        sum += f->share[i * f->k + c] * q_distance(f, rows->values + i * f->d, c);
  return sum;
}

static double q_centre_squares(const factors *f)
{
  double sum = 0;
  for (size_t c = 0; c < f->k; c++) sum += (double)f->d * f->variance[c];
  for (size_t c = 0; c < f->k * f->d; c++) sum += f->mean[c] * f->mean[c];
  return sum;
}

static void update_labels(const clustering *model, const factors *f, const le_rows *rows,
                          double *log_proportion)
{
  expect_log_proportions(model, f, log_proportion);
  for (size_t i = 0; i < f->n; i++) {
    double *share = f->share + i * f->k;
    for (size_t c = 0; c < f->k; c++)
      share[c] = log_proportion[c] -
                 0.5 * f->expect_noise.precision * q_distance(f, rows->values + i * f->d, c);
    le_to_shares(f->k, share);
  }
}

static void update_centres(const factors *f, const le_rows *rows)
{
  const size_t k = f->k, d = f->d;
  memset(f->mean, 0, k * d * sizeof(double));
  memset(f->variance, 0, k * sizeof(double));
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < k; c++) {
      const double share = f->share[i * k + c];
      f->variance[c] += share;
      for (size_t j = 0; j < d; j++) f->mean[c * d + j] += share * rows->values[i * d + j];
    }
  for (size_t c = 0; c < k; c++) {
    f->variance[c] = 1 / (f->expect_spread.precision + f->expect_noise.precision * f->variance[c]);
    for (size_t j = 0; j < d; j++) f->mean[c * d + j] *= f->expect_noise.precision * f->variance[c];
  }
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const clustering *model = self;
  const factors f = divide(model, rows->n, q);
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  switch (factor) {
  case Q_LABELS: update_labels(model, &f, rows, scratch); break;
  case Q_CENTRES: update_centres(&f, rows); break;
  case Q_SPREAD:
    le_update_variance(prior, (double)(f.k * f.d), q_centre_squares(&f), f.spread);
    break;
  case Q_NOISE:
    le_update_variance(prior, (double)(f.n * f.d), q_residuals(&f, rows), f.noise);
    break;
  case Q_PROPORTIONS:
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
  const clustering *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  factors f = divide(model, rows->n, q);
  if (hint) le_label_shares(f.n, f.k, hint + PROPORTIONS + f.k, f.share);
  else le_start_shares(rows, f.k, NULL, rng, f.share, scratch);
  le_q_start_variance(g, (double)(f.k * f.d), hint ? &hint[CENTRES] : NULL, f.spread);
  le_q_start_variance(g, (double)(f.n * f.d), hint ? &hint[NOISE] : NULL, f.noise);
  for (size_t factor = Q_CENTRES; factor < q_factors(self); factor++)
    q_update(self, rows, factor, q, scratch);
  return LE_OK;
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const clustering *model = self;
  const factors f = divide(model, rows->n, q);
  const double cells = (double)(f.n * f.d), centres = (double)(f.k * f.d);
  double half_log_det = 0, labels = le_entropy(f.n * f.k, f.share);
  expect_log_proportions(model, &f, scratch);
  for (size_t i = 0; i < f.n * f.k; i++) labels += f.share[i] * scratch[i % f.k];
  for (size_t c = 0; c < f.k; c++) half_log_det += 0.5 * (double)f.d * log(f.variance[c]);
  const double bound = labels - cells * (HALF_LOG_2PI + 0.5 * f.expect_noise.log) -
                       0.5 * f.expect_noise.precision * q_residuals(&f, rows) +
                       le_normal_gain(centres, q_centre_squares(&f), half_log_det, f.expect_spread);
  if (!model->gaussian.infer) return bound;
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  return bound + le_variance_gain(prior, f.spread) + le_variance_gain(prior, f.noise) +
         le_proportions_gain(f.k, 1, f.alpha);
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const clustering *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const factors f = divide(model, n, q);
  (void)scratch;
  point[CENTRES] = le_q_draw_variance(g, g->prior_sd, f.spread, rng);
  point[NOISE] = le_q_draw_variance(g, g->noise_sd, f.noise, rng);
  if (g->infer) le_draw_proportions(f.k, f.alpha, rng, point + PROPORTIONS);
  else memcpy(point + PROPORTIONS, model->probability, f.k * sizeof(double));
  for (size_t i = 0; i < n; i++)
    labels_of(model, point)[i] = (double)le_draw_share(f.k, f.share + i * f.k, rng);
}

static double q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng,
                         double *scratch)
{
  const clustering *model = self;
  return le_relabelling_gain(n, model->k, divide(model, n, q).share, 0,
                             model->gaussian.infer ? NULL : model->probability, rng, scratch);
}

const le_variational_ops le_clustering_variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = q_symmetry,
};
