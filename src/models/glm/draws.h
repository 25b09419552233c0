/* Random draws and guesses that families share. */
#pragma once

#include <gsl/gsl_randist.h>
#include <math.h>

/* Means and trials beyond this are approximated by a normal distribution, because GSL's draws are
 * unsigned integers. Counts are at most COUNT_MOST, the largest that a model takes (MOST_COUNT in
 * R). */
#define COUNT_EXACT 1e8
#define COUNT_MOST 1e11

static inline double glm_normal_count(const gsl_rng *rng, double mean, double variance, double most)
{
  const double x = floor(mean + sqrt(variance) * gsl_ran_gaussian_ziggurat(rng, 1) + 0.5);
  return fmin(fmax(x, 0), most);
}

/* A count with this mean. */
static inline double glm_draw_count(const gsl_rng *rng, double mean)
{
  if (!(mean > 0)) return 0;
  if (mean < COUNT_EXACT) return (double)gsl_ran_poisson(rng, mean);
  mean = fmin(mean, COUNT_MOST);
  return glm_normal_count(rng, mean, mean, COUNT_MOST);
}

static inline double glm_draw_successes(const gsl_rng *rng, double p, double trials)
{
  if (trials < COUNT_EXACT) return (double)gsl_ran_binomial(rng, p, (unsigned)trials);
  return glm_normal_count(rng, trials * p, trials * p * (1 - p), trials);
}

/* The positive finite number nearest to x. */
static inline double glm_positive(double x) { return fmin(fmax(x, 1e-300), 1e300); }
