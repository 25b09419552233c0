#include "models/normal_prior.h"

#include "models/shared.h"

#include <gsl/gsl_randist.h>
#include <math.h>

static double mean_of(const le_normal_prior *prior, size_t j)
{
  return prior->mean ? prior->mean[j] : 0;
}

le_normal_prior le_normal_prior_of(size_t p, size_t copies, const double *mean, const double *sd)
{
  le_normal_prior prior = {p, p * copies, mean, sd, 0};
  for (size_t j = 0; j < p; j++) prior.constant -= (double)copies * (log(sd[j]) + HALF_LOG_2PI);
  return prior;
}

void le_normal_prior_log(const le_normal_prior *prior, size_t m, const double *theta, double *value)
{
  for (size_t i = 0; i < m; i++) {
    double squares = 0;
    for (size_t a = 0; a < prior->d; a += prior->p, theta += prior->p)
      for (size_t j = 0; j < prior->p; j++) {
        const double z = (theta[j] - mean_of(prior, j)) / prior->sd[j];
        squares += z * z;
      }
    const double density = prior->constant - 0.5 * squares;
    value[i] = isnan(density) ? -INFINITY : density;
  }
}

/* Gradients are needed at every step of a trajectory, so divisions are made once per call and not
 * once per particle. */
void le_normal_prior_grad(const le_normal_prior *prior, size_t m, const double *theta, double *grad)
{
  enum { TOGETHER = 64 };
  double mean[TOGETHER], precision[TOGETHER];
  for (size_t from = 0; from < prior->p; from += TOGETHER) {
    const size_t n = prior->p - from < TOGETHER ? prior->p - from : TOGETHER;
    for (size_t j = 0; j < n; j++) {
      mean[j] = mean_of(prior, from + j);
      precision[j] = 1 / prior->sd[from + j] / prior->sd[from + j];
    }
    for (size_t i = from; i < m * prior->d; i += prior->p)
      for (size_t j = 0; j < n; j++) grad[i + j] = (mean[j] - theta[i + j]) * precision[j];
  }
}

void le_normal_prior_hess(const le_normal_prior *prior, double *hess)
{
  for (size_t a = 0; a < prior->d; a++) {
    const double sd = prior->sd[a % prior->p];
    hess[a * prior->d + a] -= 1 / sd / sd;
  }
}

void le_normal_prior_draw(const le_normal_prior *prior, const gsl_rng *rng, double *theta)
{
  for (size_t a = 0; a < prior->d; a++)
    theta[a] =
      mean_of(prior, a % prior->p) + gsl_ran_gaussian_ziggurat(rng, prior->sd[a % prior->p]);
}
