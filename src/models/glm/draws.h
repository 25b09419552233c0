/* Random draws that families share. */
#ifndef LE_MODELS_GLM_DRAWS_H
#define LE_MODELS_GLM_DRAWS_H

#include <gsl/gsl_randist.h>
#include <math.h>

/* A count with this mean. Means beyond 1e8 are approximated by a normal distribution, because
 * GSL's draws are unsigned integers; counts are at most 1e15, which a double holds exactly. */
static inline double glm_draw_count(const gsl_rng *rng, double mean)
{
  if (!(mean > 0)) return 0;
  if (mean < 1e8) return (double)gsl_ran_poisson(rng, mean);
  mean = fmin(mean, 1e15);
  return fmin(floor(fmax(mean + sqrt(mean) * gsl_ran_gaussian_ziggurat(rng, 1), 0)), 1e15);
}

/* A positive finite number nearest to x. */
static inline double glm_positive(double x) { return fmin(fmax(x, 1e-300), 1e300); }

#endif
