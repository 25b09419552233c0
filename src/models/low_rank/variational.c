/* Mean-field variational Bayes for low_rank.
 *
 * q: means of U (N x K), the covariance common to its rows (K x K), means of V (K x D), the
 * covariance common to its columns, and with `infer` the three variances, in the order of the
 * state. */
#include "models/low_rank/parts.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <string.h>

enum { Q_ROWS, Q_COLUMNS, Q_VARIANCES, Q_FACTORS = Q_VARIANCES + 3 };

typedef struct factors {
  size_t n, k, d;
  double *u, *u_covariance, *v, *v_covariance, *variance;
  le_expected_variance expect[3];
} factors;

static factors divide(const low_rank *model, size_t n, const double *q)
{
  const le_gaussian_prior *g = &model->gaussian;
  const double sd[3] = {model->row_sd, g->prior_sd, g->noise_sd};
  factors f = {.n = n, .k = model->k, .d = g->width, .u = (double *)(size_t)q};
  f.u_covariance = f.u + n * f.k;
  f.v = f.u_covariance + f.k * f.k;
  f.v_covariance = f.v + f.k * f.d;
  f.variance = f.v_covariance + f.k * f.k;
  for (size_t v = 0; v < 3; v++) f.expect[v] = le_q_variance(g, sd[v], f.variance + 2 * v);
  return f;
}

static size_t q_size(const void *self, size_t n)
{
  const low_rank *model = self;
  return model->k * (n + model->gaussian.width + 2 * model->k) + 6;
}

static size_t q_scratch(const void *self, size_t n)
{
  const low_rank *model = self;
  (void)n;
  return model->k * (2 * model->k + 2);
}

static size_t q_factors(const void *self)
{
  return ((const low_rank *)self)->gaussian.infer ? Q_FACTORS : Q_VARIANCES;
}

/* out = sum E[a a'] over n vectors with means `a`, stored as for le_low_rank_factorise(), and one
 * common covariance. */
static void second_moments(size_t k, size_t n, const double *a, size_t across, size_t along,
                           const double *covariance, double *out)
{
  for (size_t p = 0; p < k; p++)
    for (size_t q = 0; q <= p; q++) {
      double sum = (double)n * covariance[p * k + q];
      for (size_t i = 0; i < n; i++) sum += a[p * across + i * along] * a[q * across + i * along];
      out[p * k + q] = out[q * k + p] = sum;
    }
}

static double trace_of_product(size_t k, const double *a, const double *b)
{
  return le_dot(a, b, k * k);
}

/* covariance = (prior I + weight moments)^-1; `moments` becomes its Cholesky factor. */
static le_status update_covariance(size_t k, double prior, double weight, double *moments,
                                   double *covariance)
{
  for (size_t p = 0; p < k * k; p++)
    moments[p] = weight * moments[p] + (p % (k + 1) == 0 ? prior : 0);
  const le_status status = le_cholesky(moments, k);
  if (status != LE_OK) return status;
  memset(covariance, 0, k * k * sizeof(double));
  for (size_t p = 0; p < k; p++) {
    covariance[p * k + p] = 1;
    le_cholesky_solve(moments, k, covariance + p * k);
  }
  return LE_OK;
}

static le_status update_rows(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->expect[NOISE].precision;
  double *b = scratch + k * k;
  second_moments(k, d, f->v, d, 1, f->v_covariance, scratch);
  const le_status status = update_covariance(k, f->expect[ROWS].precision, weight, scratch,
                                             f->u_covariance);
  if (status != LE_OK) return status;
  for (size_t i = 0; i < f->n; i++)
    le_low_rank_regress(k, d, f->v, d, 1, rows->values + i * d, 1, weight, scratch, b,
                        f->u + i * k);
  return LE_OK;
}

static le_status update_columns(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  const double weight = f->expect[NOISE].precision;
  double *b = scratch + k * k, *mean = b + k;
  second_moments(k, f->n, f->u, 1, k, f->u_covariance, scratch);
  const le_status status = update_covariance(k, f->expect[COLUMNS].precision, weight, scratch,
                                             f->v_covariance);
  if (status != LE_OK) return status;
  for (size_t j = 0; j < d; j++) {
    le_low_rank_regress(k, f->n, f->u, 1, k, rows->values + j, d, weight, scratch, b, mean);
    for (size_t p = 0; p < k; p++) f->v[p * d + j] = mean[p];
  }
  return LE_OK;
}

static double q_squares(const factors *f, int columns)
{
  const double *x = columns ? f->v : f->u,
               *covariance = columns ? f->v_covariance : f->u_covariance;
  const size_t n = columns ? f->d : f->n;
  double trace = 0;
  for (size_t p = 0; p < f->k; p++) trace += covariance[p * (f->k + 1)];
  return sum_squares(x, n * f->k) + (double)n * trace;
}

/* E |Y - U V|^2: the squared distance of the means, plus the contributions of both covariances. */
static double q_residuals(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t k = f->k, d = f->d;
  double sum = 0, *zero = scratch + k * k;
  for (size_t i = 0; i < f->n; i++)
    for (size_t j = 0; j < d; j++) {
      double residual = rows->values[i * d + j];
      for (size_t p = 0; p < k; p++) residual -= f->u[i * k + p] * f->v[p * d + j];
      sum += residual * residual;
    }
  second_moments(k, d, f->v, d, 1, f->v_covariance, scratch);
  sum += (double)f->n * trace_of_product(k, f->u_covariance, scratch);
  memset(zero, 0, k * k * sizeof(double));
  second_moments(k, f->n, f->u, 1, k, zero, scratch);
  return sum + (double)d * trace_of_product(k, f->v_covariance, scratch);
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const low_rank *model = self;
  const factors f = divide(model, rows->n, q);
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  if (factor == Q_ROWS) return update_rows(&f, rows, scratch);
  if (factor == Q_COLUMNS) return update_columns(&f, rows, scratch);
  const size_t which = factor - Q_VARIANCES;
  const double count[3] = {(double)(f.n * f.k), (double)(f.k * f.d), (double)(f.n * f.d)};
  le_update_variance(prior, count[which],
                     which == NOISE ? q_residuals(&f, rows, scratch)
                                    : q_squares(&f, which == COLUMNS),
                     f.variance + 2 * which);
  return LE_OK;
}

/* Starts from V, drawn from the prior or given. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const low_rank *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const size_t k = model->k, d = g->width;
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  factors f = divide(model, rows->n, q);
  const double count[3] = {(double)(f.n * k), (double)(k * d), (double)(f.n * d)};
  for (size_t v = 0; v < 3; v++)
    le_q_start_variance(g, count[v], hint ? &hint[v] : NULL, f.variance + 2 * v);
  const double sd = g->infer ? sqrt(g->scale / g->shape) : g->prior_sd;
  for (size_t c = 0; c < k * d; c++)
    f.v[c] = hint ? hint[FACTORS + c] : gsl_ran_gaussian_ziggurat(rng, sd);
  le_status status = LE_OK;
  for (size_t factor = 0; factor < q_factors(self) && status == LE_OK; factor++)
    status = q_update(self, rows, factor, q, scratch);
  return status;
}

static double half_log_det(const double *covariance, size_t k, double *scratch)
{
  memcpy(scratch, covariance, k * k * sizeof(double));
  return le_cholesky(scratch, k) == LE_OK ? le_cholesky_half_log_det(scratch, k) : NAN;
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const low_rank *model = self;
  const factors f = divide(model, rows->n, q);
  const double n = (double)f.n, k = (double)f.k, d = (double)f.d;
  double bound = -n * d * (HALF_LOG_2PI + 0.5 * f.expect[NOISE].log) -
                 0.5 * f.expect[NOISE].precision * q_residuals(&f, rows, scratch) +
                 le_normal_gain(n * k, q_squares(&f, 0),
                                n * half_log_det(f.u_covariance, f.k, scratch), f.expect[ROWS]) +
                 le_normal_gain(k * d, q_squares(&f, 1),
                                d * half_log_det(f.v_covariance, f.k, scratch), f.expect[COLUMNS]);
  for (size_t v = 0; v < 3 && model->gaussian.infer; v++)
    bound += le_variance_gain(le_variance_prior(&model->gaussian), f.variance + 2 * v);
  return bound;
}

/* Draws n vectors around their means, with one covariance. */
static void draw_vectors(size_t k, size_t n, const double *mean, size_t across, size_t along,
                         const double *covariance, const gsl_rng *rng, double *out, double *scratch)
{
  double *z = scratch + k * k, *x = z + k;
  memcpy(scratch, covariance, k * k * sizeof(double));
  le_cholesky(scratch, k); /* positive definite, because the bound was finite */
  for (size_t i = 0; i < n; i++) {
    for (size_t p = 0; p < k; p++) z[p] = gsl_ran_gaussian_ziggurat(rng, 1);
    le_lower_matvec(scratch, k, z, x);
    for (size_t p = 0; p < k; p++)
      out[p * across + i * along] = mean[p * across + i * along] + x[p];
  }
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const low_rank *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const factors f = divide(model, n, q);
  const double sd[3] = {model->row_sd, g->prior_sd, g->noise_sd};
  for (size_t v = 0; v < 3; v++)
    point[v] = le_q_draw_variance(g, sd[v], f.variance + 2 * v, rng);
  draw_vectors(f.k, f.d, f.v, f.d, 1, f.v_covariance, rng, columns_of(point), scratch);
  draw_vectors(f.k, n, f.u, 1, f.k, f.u_covariance, rng, rows_of(model, point), scratch);
}

const le_variational_ops le_low_rank_variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
};
