/* Positive numbers: gamma distributed with mean exp(eta) and unknown shape a. */
#include "models/glm/family.h"

#include "models/glm/draws.h"
#include "models/glm/special.h"

#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sf_psi.h>

#define FAMILY_FURTHER 1
#define FAMILY_RESPONSE positive
#define FAMILY_BODY "models/glm/gamma_body.h"
#include "models/glm/family_kernels.h"

/* Where a has left the range of doubles the density is zero. */
static void point(const double *further, int curves, glm_point *point)
{
  const double a = further[0];
  point->setting[0] = a;
  if (!(a > 1e-300 && a < 1e100)) {
    point->row[SUM_VALUE] = -INFINITY;
    return;
  }
  if (a >= GLM_FAR) { /* what Stirling's series leaves of terms that grow with a */
    const double first = 0.5 - a * glm_digamma_rest(a);
    point->row[SUM_VALUE] = 0.5 * log(a) - HALF_LOG_2PI - glm_stirling(a);
    point->row[SUM_A] = first;
    if (curves) point->row[SUM_AA] = first - 0.5 - a * a * glm_trigamma_rest(a);
    return;
  }
  const double first = a * (log(a) - gsl_sf_psi(a));
  point->row[SUM_VALUE] = a * log(a) - a - gsl_sf_lngamma(a);
  point->row[SUM_A] = first;
  if (curves) point->row[SUM_AA] = first + a - a * a * gsl_sf_psi_1(a);
}

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)extra;
  return glm_positive(gsl_ran_gamma(rng, further[0], exp(eta) / further[0]));
}

static glm_guess guess(double y, double extra)
{
  (void)extra;
  return (glm_guess){log(y), 1};
}

static void guess_further(double variance, double *further) { further[0] = 1 / variance; }

const glm_family le_glm_gamma = {.name = "gamma",
                                 .further = 1,
                                 .kernels = kernels,
                                 .point = point,
                                 .draw = draw,
                                 .guess = guess,
                                 .guess_further = guess_further};
