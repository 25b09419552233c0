#include "models/latent_shared.h"

#include <gsl/gsl_randist.h>
#include <stdint.h>
#include <stdio.h>

int le_gaussian_prior_read(const le_args *args, le_gaussian_prior *prior, char *message)
{
  if (!le_read_count(args, "width", 1, 1000000, &prior->width, message)) return 0;
  prior->infer = le_args_number(args, "infer", 0) != 0;
  return le_read_numbers(args, "prior_sd", 1, 0, 1, &prior->prior_sd, message) &&
         le_read_numbers(args, "noise_sd", 1, 0, 1, &prior->noise_sd, message) &&
         le_read_numbers(args, "shape", 1, 0, 1, &prior->shape, message) &&
         le_read_numbers(args, "scale", 1, 0, 1, &prior->scale, message);
}

double le_draw_variance(const le_gaussian_prior *prior, const gsl_rng *rng, double n, double squares)
{
  return (prior->scale + 0.5 * squares) / gsl_ran_gamma(rng, prior->shape + 0.5 * n, 1);
}

double le_log_variance_prior(const le_gaussian_prior *prior, double variance)
{
  return prior->shape * log(prior->scale) - lgamma(prior->shape) - (prior->shape + 1) * log(variance) -
         prior->scale / variance;
}

le_inverse_gamma le_variance_prior(const le_gaussian_prior *prior)
{
  return (le_inverse_gamma){prior->shape, prior->scale};
}

le_expected_variance le_q_variance(const le_gaussian_prior *prior, double sd, const double *q)
{
  return prior->infer ? le_expect_variance(q) : le_known_variance(sd);
}

double le_draw_category(const gsl_rng *rng, size_t n, double *log_weight, size_t forced, size_t *index,
                        double *log_density)
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

double le_log_exchanges(size_t k, const double *value)
{
  double sum = 0;
  for (size_t c = 0; c < k; c++) {
    size_t alike = 0;
    for (size_t b = 0; b <= c; b++) alike += value[b] == value[c];
    sum += log((double)alike);
  }
  return sum;
}
