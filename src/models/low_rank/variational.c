/* Mean-field variational Bayes for low_rank.
 *
 * q: means of U (N x K), the covariance common to its rows (K x K), means of V (K x D), the
 * covariance common to its columns, and with `infer` the three variances, in the order of the
 * state. */
#include "models/low_rank/parts.h"

#include <gsl/gsl_randist.h>
#include <string.h>

enum { Q_ROWS, Q_COLUMNS, Q_VARIANCES, Q_FACTORS = Q_VARIANCES + 3 };

typedef struct factors {
  size_t n, k, d;
  vectors mean[2]; /* ROWS and COLUMNS */
  double *covariance[2];
  le_q_variances variances;
} factors;

static factors divide(const low_rank *model, size_t n, const double *q)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double count[] = {(double)(n * k), (double)(k * d), (double)(n * d)};
  double *u = (double *)(size_t)q, *v = u + (n + k) * k;
  return (factors){
    .n = n,
    .k = k,
    .d = d,
    .mean = {vectors_of(ROWS, k, n, u), vectors_of(COLUMNS, k, d, v)},
    .covariance = {u + n * k, v + k * d},
    .variances = le_q_variances_at(&model->gaussian, v + (d + k) * k, count)};
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

static le_status update_vectors(const factors *f, int which, const le_rows *rows, double *scratch)
{
  const size_t k = f->k;
  const vectors own = f->mean[which], other = f->mean[!which];
  const double weight = f->variances.expect[NOISE].precision;
  double *b = scratch + k * k, *mean = b + k;
  le_low_rank_moments(other, f->covariance[!which], scratch);
  LE_TRY(le_low_rank_factorise(k, f->variances.expect[which].precision, weight, scratch));
  le_inverse(scratch, k, f->covariance[which]);
  for (size_t i = 0; i < own.n; i++) {
    le_low_rank_regress(other, rows, which, i, weight, scratch, b, mean);
    for (size_t p = 0; p < k; p++) own.values[p * own.across + i * own.along] = mean[p];
  }
  return LE_OK;
}

static double q_squares(const factors *f, int which)
{
  double trace = 0;
  for (size_t p = 0; p < f->k; p++) trace += f->covariance[which][p * (f->k + 1)];
  return sum_squares(f->mean[which].values, f->mean[which].n * f->k) +
         (double)f->mean[which].n * trace;
}

/* E |Y - U V|^2: the squared distance of the means, plus the contributions of both covariances. */
static double q_residuals(const factors *f, const le_rows *rows, double *scratch)
{
  const size_t cells = f->k * f->k;
  double sum = le_low_rank_residual_squares(f->k, rows, 0, f->mean[ROWS].values,
                                            f->mean[COLUMNS].values, NULL);
  le_low_rank_moments(f->mean[COLUMNS], f->covariance[COLUMNS], scratch);
  sum += (double)f->n * le_dot(f->covariance[ROWS], scratch, cells);
  le_low_rank_moments(f->mean[ROWS], NULL, scratch);
  return sum + (double)f->d * le_dot(f->covariance[COLUMNS], scratch, cells);
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const factors f = divide(self, rows->n, q);
  if (factor < Q_VARIANCES) return update_vectors(&f, (int)factor, rows, scratch);
  const int which = (int)(factor - Q_VARIANCES);
  le_q_update_variance(&f.variances, (size_t)which,
                       which == NOISE ? q_residuals(&f, rows, scratch) : q_squares(&f, which));
  return LE_OK;
}

/* Starts from V, drawn from the prior or given. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const low_rank *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const double sd = g->infer ? sqrt(g->prior.scale / g->prior.shape) : g->sd[COLUMNS];
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  const factors f = divide(model, rows->n, q);
  le_q_start_variances(&f.variances, hint);
  for (size_t c = 0; c < f.k * f.d; c++)
    f.mean[COLUMNS].values[c] = hint ? hint[FACTORS + c] : gsl_ran_gaussian_ziggurat(rng, sd);
  return le_q_update_from(&le_low_rank_variational, 0, self, rows, q, scratch);
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const factors f = divide(self, rows->n, q);
  const le_q_variances *v = &f.variances;
  double bound = -v->count[NOISE] * (HALF_LOG_2PI + 0.5 * v->expect[NOISE].log) -
                 0.5 * v->expect[NOISE].precision * q_residuals(&f, rows, scratch);
  for (int which = ROWS; which <= COLUMNS; which++)
    bound += le_normal_gain(v->count[which], q_squares(&f, which),
                            (double)f.mean[which].n *
                              le_half_log_det(f.covariance[which], f.k, scratch),
                            v->expect[which]);
  le_q_add_variance_gains(v, &bound);
  return bound;
}

/* Draws the vectors of one kind around their means, which have the layout of `out`. */
static void draw_vectors(const factors *f, int which, const gsl_rng *rng, double *out,
                         double *scratch)
{
  const size_t k = f->k;
  const vectors mean = f->mean[which];
  double *z = scratch + k * k, *x = z + k;
  memcpy(scratch, f->covariance[which], k * k * sizeof(double));
  le_cholesky(scratch, k); /* positive definite, because the bound was finite */
  for (size_t i = 0; i < mean.n; i++) {
    for (size_t p = 0; p < k; p++) z[p] = gsl_ran_gaussian_ziggurat(rng, 1);
    le_lower_matvec(scratch, k, z, x);
    for (size_t p = 0; p < k; p++) {
      const size_t at = p * mean.across + i * mean.along;
      out[at] = mean.values[at] + x[p];
    }
  }
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const factors f = divide(self, n, q);
  le_q_draw_variances(&f.variances, rng, point);
  draw_vectors(&f, COLUMNS, rng, columns_of(point), scratch);
  draw_vectors(&f, ROWS, rng, rows_of(self, point), scratch);
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
