/* Times, some of them lower limits: Weibull with scale exp(eta) and unknown shape a. */
#include "models/glm/family.h"

#include "models/glm/draws.h"

#define FAMILY_FURTHER 1
#define FAMILY_RESPONSE positive
#define FAMILY_BODY "models/glm/weibull_body.h"
#include "models/glm/family_kernels.h"

static void point(const double *further, int curves, glm_point *point)
{
  (void)curves;
  point->setting[0] = further[0];
  point->setting[1] = log(further[0]);
}

/* The time of the event: nothing is censored. */
static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  if (extra) *extra = 1;
  return glm_positive(exp(eta + log(gsl_ran_exponential(rng, 1)) / further[0]));
}

/* The log of a time has mean eta - 0.58 / a and standard deviation 1.28 / a. */
static glm_guess guess(double y, double extra)
{
  (void)extra;
  return (glm_guess){log(y), 1};
}

static void guess_further(double variance, double *further) { further[0] = 1.28 / sqrt(variance); }

const glm_family le_glm_weibull = {.name = "weibull",
                                   .extra = 1,
                                   .further = 1,
                                   .kernels = kernels,
                                   .point = point,
                                   .draw = draw,
                                   .guess = guess,
                                   .guess_further = guess_further};
