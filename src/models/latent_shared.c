/* The Gaussian settings of models with latent variables, and functions that these models share. */
#include "models/latent_shared.h"

#include "base/linalg.h"

#include <string.h>

int le_gaussian_prior_read(const le_args *args, size_t variances, le_gaussian_prior *prior,
                           char *message)
{
  double *sd = prior->sd + variances;
  if (!le_read_count(args, "width", 1, 1000000, &prior->width, message)) return 0;
  prior->infer = le_args_number(args, "infer", 0) != 0;
  prior->variances = variances;
  return le_read_numbers(args, "prior_sd", 1, 0, 1, sd - 2, message) &&
         le_read_numbers(args, "noise_sd", 1, 0, 1, sd - 1, message) &&
         le_read_numbers(args, "shape", 1, 0, 1, &prior->prior.shape, message) &&
         le_read_numbers(args, "scale", 1, 0, 1, &prior->prior.scale, message);
}

size_t le_gaussian_width(const void *self) { return ((const le_gaussian_prior *)self)->width; }

void le_start_variances(const le_gaussian_prior *prior, const gsl_rng *rng, double *state)
{
  for (size_t v = 0; v < prior->variances; v++)
    state[v] = prior->infer ? le_draw_variance(prior, rng, 0, 0) : prior->sd[v] * prior->sd[v];
}

double le_draw_variance(const le_gaussian_prior *prior, const gsl_rng *rng, double n,
                        double squares)
{
  double q[2];
  le_update_variance(prior->prior, n, squares, q);
  return le_draw_inverse_gamma(q, rng);
}

void le_add_variance_priors(const le_gaussian_prior *prior, const double *state, double *sum)
{
  const le_inverse_gamma p = prior->prior;
  for (size_t v = 0; v < prior->variances && prior->infer; v++)
    *sum += p.shape * log(p.scale) - lgamma(p.shape) - (p.shape + 1) * log(state[v]) -
            p.scale / state[v];
}

void le_slice(const gsl_rng *rng, double *x, double (*log_density)(void *context), void *context)
{
  const double here = *x, level = log_density(context) + log(gsl_rng_uniform_pos(rng)), width = 1;
  double end[2] = {here - width * gsl_rng_uniform(rng), 0};
  end[1] = end[0] + width;
  for (int side = 0; side < 2; side++)
    for (*x = end[side]; log_density(context) > level; *x = end[side])
      end[side] += side ? width : -width;
  for (;;) {
    *x = end[0] + (end[1] - end[0]) * gsl_rng_uniform(rng);
    if (end[1] - end[0] < 1e-12 || log_density(context) > level) return;
    end[*x > here] = *x;
  }
}

/* A variance is moved on the log scale, which is unconstrained. */
typedef struct log_scale {
  const le_gaussian_prior *self;
  double (*log_lik)(const void *self, const le_chain *chain);
  const le_chain *chain;
  double *variance, log_variance;
} log_scale;

static double log_scale_density(void *context)
{
  const log_scale *s = context;
  const le_inverse_gamma p = s->self->prior;
  *s->variance = exp(s->log_variance);
  const double prior = -p.shape * s->log_variance - p.scale / *s->variance,
               value = s->log_lik(s->self, s->chain);
  return prior + (!s->chain->walled ? value : value >= s->chain->floor ? 0 : -INFINITY);
}

void le_slice_variance(const void *self, double (*log_lik)(const void *self, const le_chain *chain),
                       const le_chain *chain, size_t which)
{
  double *variance = &chain->state[which];
  log_scale s = {self, log_lik, chain, variance, log(*variance)};
  le_slice(chain->rng, &s.log_variance, log_scale_density, &s);
  *variance = exp(s.log_variance);
}

le_q_variances le_q_variances_at(const le_gaussian_prior *prior, double *q, const double *count)
{
  le_q_variances v = {.prior = prior, .q = q};
  for (size_t i = 0; i < prior->variances; i++) {
    const double sd = prior->sd[i];
    v.count[i] = count[i];
    v.expect[i] = prior->infer ? le_expect_variance(q + 2 * i)
                               : (le_expected_variance){1 / (sd * sd), 2 * log(sd)};
  }
  return v;
}

void le_q_start_variances(const le_q_variances *v, const double *state)
{
  const le_inverse_gamma prior = v->prior->prior;
  for (size_t i = 0; i < v->prior->variances; i++) {
    double *q = v->q + 2 * i;
    q[0] = prior.shape + 0.5 * (state ? v->count[i] : 0);
    q[1] = q[0] * (state ? state[i] : prior.scale / prior.shape);
  }
}

void le_q_update_variance(const le_q_variances *v, size_t which, double squares)
{
  le_update_variance(v->prior->prior, v->count[which], squares, v->q + 2 * which);
}

void le_q_add_variance_gains(const le_q_variances *v, double *bound)
{
  for (size_t i = 0; i < v->prior->variances && v->prior->infer; i++)
    *bound += le_variance_gain(v->prior->prior, v->q + 2 * i);
}

void le_q_draw_variances(const le_q_variances *v, const gsl_rng *rng, double *state)
{
  for (size_t i = 0; i < v->prior->variances; i++)
    state[i] = v->prior->infer ? le_draw_inverse_gamma(v->q + 2 * i, rng)
                               : v->prior->sd[i] * v->prior->sd[i];
}

le_status le_q_update_from(const le_variational_ops *ops, size_t first, const void *self,
                           const le_rows *rows, double *q, double *scratch)
{
  le_status status = LE_OK;
  for (size_t factor = first; factor < ops->factors(self) && status == LE_OK; factor++)
    status = ops->update(self, rows, factor, q, scratch);
  return status;
}

double le_log_above(const le_chain *chain, double log_lik)
{
  if (chain->floor == -INFINITY) return 0;
  int exponent;
  frexp(chain->floor, &exponent);
  const double rounding = ldexp(0.6, exponent - LE_GRID_BITS);
  return log_lik > chain->floor + rounding    ? 0
         : log_lik >= chain->floor - rounding ? log(chain->tie)
                                              : -INFINITY;
}

int le_all_positive(const double *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!(isfinite(x[i]) && x[i] > 0)) return 0;
  return 1;
}

void le_inverse(const double *factor, size_t k, double *inverse)
{
  memset(inverse, 0, k * k * sizeof(double));
  for (size_t a = 0; a < k; a++) {
    inverse[a * k + a] = 1;
    le_cholesky_solve(factor, k, inverse + a * k);
  }
}

double le_solve_columns(const double *factor, size_t k, size_t d, double *b, double *work)
{
  double *column = work + k, sum = 0;
  for (size_t j = 0; j < d; j++) {
    for (size_t a = 0; a < k; a++) column[a] = work[a] = b[a * d + j];
    le_cholesky_solve(factor, k, column);
    for (size_t a = 0; a < k; a++) sum += work[a] * (b[a * d + j] = column[a]);
  }
  return sum;
}

void le_add_moments(size_t k, size_t d, const double *z, const double *y, double weight,
                    double *moments, double *cross)
{
  for (size_t a = 0; a < k; a++) {
    if (z[a] == 0) continue;
    for (size_t b = 0; b < k; b++) moments[a * k + b] += weight * z[a] * z[b];
    for (size_t j = 0; j < d && y; j++) cross[a * d + j] += weight * z[a] * y[j];
  }
}

double le_half_log_det(const double *covariance, size_t k, double *scratch)
{
  memcpy(scratch, covariance, k * k * sizeof(double));
  return le_cholesky(scratch, k) == LE_OK ? le_cholesky_half_log_det(scratch, k) : NAN;
}

le_status le_maximise_regression(size_t k, const le_rows *rows, double *moments,
                                 const double *cross, double *coefficient, double *variance,
                                 double *work)
{
  const size_t d = rows->width, cells = rows->n * d;
  LE_TRY(le_cholesky(moments, k));
  memcpy(coefficient, cross, k * d * sizeof(double));
  const double fitted = le_solve_columns(moments, k, d, coefficient, work);
  if (variance) *variance = (le_dot(rows->values, rows->values, cells) - fitted) / (double)cells;
  return LE_OK;
}
