/* Numbers: normal around eta, with a precision that is the sum of two parameters. */
#include "models/glm/family.h"

#include <gsl/gsl_randist.h>

#define FAMILY_FURTHER 2
#define FAMILY_RESPONSE plain
#define FAMILY_BODY "models/glm/toy_body.h"
#include "models/glm/family_kernels.h"

static void point(const double *further, int curves, glm_point *point)
{
  const double precision = further[0] + further[1], a = further[0] / precision,
               b = further[1] / precision;
  point->setting[0] = precision;
  point->setting[1] = further[0];
  point->setting[2] = further[1];
  point->row[SUM_VALUE] = 0.5 * log(precision) - HALF_LOG_2PI;
  point->row[SUM_A] = 0.5 * a;
  point->row[SUM_B] = 0.5 * b;
  if (!curves) return;
  point->row[SUM_AA] = 0.5 * a * (1 - a);
  point->row[SUM_AB] = -0.5 * a * b;
  point->row[SUM_BB] = 0.5 * b * (1 - b);
}

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)extra;
  return eta + gsl_ran_gaussian_ziggurat(rng, 1 / sqrt(further[0] + further[1]));
}

static glm_guess guess(double y, double extra)
{
  (void)extra;
  return (glm_guess){y, 1};
}

static void guess_further(double variance, double *further)
{
  further[0] = further[1] = 0.5 / variance;
}

const glm_family le_glm_toy = {.name = "toy",
                               .further = 2,
                               .kernels = kernels,
                               .point = point,
                               .draw = draw,
                               .guess = guess,
                               .guess_further = guess_further};
