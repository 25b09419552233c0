/* Numbers: y ~ N(eta, a^2), a unknown or known. */
#include "models/glm/family.h"

#include <gsl/gsl_randist.h>

#define FAMILY_FURTHER 1
#define FAMILY_RESPONSE plain
#define FAMILY_BODY "models/glm/gaussian_body.h"
#include "models/glm/family_kernels.h"

static void point(const double *further, int curves, glm_point *point)
{
  (void)curves;
  point->setting[0] = 1 / further[0];
  point->row[SUM_VALUE] = -log(further[0]) - HALF_LOG_2PI;
  point->row[SUM_A] = -1;
}

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)extra;
  return eta + gsl_ran_gaussian_ziggurat(rng, further[0]);
}

static glm_guess guess(double y, double extra)
{
  (void)extra;
  return (glm_guess){y, 1};
}

static void guess_further(double variance, double *further) { further[0] = sqrt(variance); }

const glm_family le_glm_gaussian = {.name = "gaussian",
                                    .further = 1,
                                    .squares = 1,
                                    .kernels = kernels,
                                    .point = point,
                                    .draw = draw,
                                    .guess = guess,
                                    .guess_further = guess_further};

const glm_family le_glm_gaussian_known = {
  .name = "gaussian_known", .known = "sigma", .squares = 1, .kernels = kernels, .point = point,
  .draw = draw, .guess = guess};
