/* The Gaussian settings of models with latent variables, and draws that these models share. */
#include "models/latent_shared.h"

#include <gsl/gsl_randist.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int le_gaussian_prior_read(const le_args *args, le_gaussian_prior *prior, char *message)
{
  if (!le_read_count(args, "width", 1, 1000000, &prior->width, message)) return 0;
  prior->infer = le_args_number(args, "infer", 0) != 0;
  return le_read_numbers(args, "prior_sd", 1, 0, 1, &prior->prior_sd, message) &&
         le_read_numbers(args, "noise_sd", 1, 0, 1, &prior->noise_sd, message) &&
         le_read_numbers(args, "shape", 1, 0, 1, &prior->shape, message) &&
         le_read_numbers(args, "scale", 1, 0, 1, &prior->scale, message);
}

size_t le_gaussian_width(const void *self) { return ((const le_gaussian_prior *)self)->width; }

le_status le_grouped_create(const le_group_settings *names, const le_args *args, void **self,
                            char *message)
{
  size_t k;
  *self = NULL;
  if (!le_read_count(args, names->count, 1, names->most, &k, message)) return LE_BAD_ARGUMENT;
  le_grouped *model = calloc(1, sizeof *model + k * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->k = k;
  const double even = names->exclusive ? 1 / (double)k : 0.5;
  if (!le_gaussian_prior_read(args, &model->gaussian, message) ||
      !le_read_numbers(args, names->probabilities, even, 0, k, model->probability, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  *self = model;
  return LE_OK;
}

double le_grouped_symmetry(const void *self)
{
  const le_grouped *model = self;
  return model->gaussian.infer ? lgamma((double)model->k + 1)
                               : le_log_exchanges(model->k, model->probability);
}

double le_start_variance(const le_gaussian_prior *prior, double sd, const gsl_rng *rng)
{
  return prior->infer ? le_draw_variance(prior, rng, 0, 0) : sd * sd;
}

double le_draw_variance(const le_gaussian_prior *prior, const gsl_rng *rng, double n,
                        double squares)
{
  return (prior->scale + 0.5 * squares) / gsl_ran_gamma(rng, prior->shape + 0.5 * n, 1);
}

double le_log_variance_prior(const le_gaussian_prior *prior, double variance)
{
  return prior->shape * log(prior->scale) - lgamma(prior->shape) -
         (prior->shape + 1) * log(variance) - prior->scale / variance;
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
  const le_view *view;
  double *variance, log_variance;
} log_scale;

static double log_scale_density(void *context)
{
  const log_scale *s = context;
  const le_view *v = s->view;
  *s->variance = exp(s->log_variance);
  const double prior = -v->prior->shape * s->log_variance - v->prior->scale / *s->variance,
               value = v->log_lik(v->self, v->seen, v->rows, v->lambda, v->state, v->scratch);
  return prior + (!v->walled ? value : value >= v->floor ? 0 : -INFINITY);
}

void le_slice_variance(const le_view *view, const gsl_rng *rng, size_t which)
{
  log_scale s = {view, &view->state[which], log(view->state[which])};
  le_slice(rng, &s.log_variance, log_scale_density, &s);
  view->state[which] = exp(s.log_variance);
}

double le_log_above(double log_lik, double floor, double tie)
{
  if (floor == -INFINITY) return 0;
  int exponent;
  frexp(floor, &exponent);
  const double rounding = ldexp(0.6, exponent - LE_GRID_BITS);
  return log_lik > floor + rounding ? 0 : log_lik >= floor - rounding ? log(tie) : -INFINITY;
}

int le_all_positive(const double *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!(isfinite(x[i]) && x[i] > 0)) return 0;
  return 1;
}

int le_all_codes(const double *x, size_t n, size_t k)
{
  for (size_t i = 0; i < n; i++)
    if (!(x[i] >= 0 && x[i] < (double)k && x[i] == floor(x[i]))) return 0;
  return 1;
}

le_inverse_gamma le_variance_prior(const le_gaussian_prior *prior)
{
  return (le_inverse_gamma){prior->shape, prior->scale};
}

le_expected_variance le_q_variance(const le_gaussian_prior *prior, double sd, const double *q)
{
  return prior->infer ? le_expect_variance(q) : le_known_variance(sd);
}

void le_q_start_variance(const le_gaussian_prior *prior, double n, const double *value, double *q)
{
  le_point_variance(le_variance_prior(prior), value ? n : 0,
                    value ? *value : prior->scale / prior->shape, q);
}

double le_q_draw_variance(const le_gaussian_prior *prior, double sd, const double *q,
                          const gsl_rng *rng)
{
  return prior->infer ? le_draw_inverse_gamma(q, rng) : sd * sd;
}

double le_draw_category(const gsl_rng *rng, size_t n, double *log_weight, size_t forced,
                        size_t *index, double *log_density)
{
  double top = -INFINITY, sum = 0;
  for (size_t k = 0; k < n; k++)
    if (log_weight[k] > top) top = log_weight[k];
  for (size_t k = 0; k < n; k++) sum += log_weight[k] = exp(log_weight[k] - top);
  if (forced != SIZE_MAX) {
    *index = forced;
  } else {
    double point = sum * gsl_rng_uniform(rng);
    *index = 0;
    while (*index + 1 < n && (point -= log_weight[*index]) >= 0) ++*index;
  }
  *log_density = log(log_weight[*index] / sum);
  return top + log(sum);
}
