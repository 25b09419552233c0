/* Successes in trials: y ~ Binomial(trials, Phi(eta)), Phi the normal distribution function. */
#include "models/glm/family.h"

#include "models/glm/draws.h"

#include <gsl/gsl_cdf.h>

#define FAMILY_FURTHER 0
#define FAMILY_RESPONSE trials
#define FAMILY_BODY "models/glm/probit_body.h"
#include "models/glm/family_kernels.h"

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)further;
  return glm_draw_successes(rng, gsl_cdf_ugaussian_P(eta), extra ? *extra : 1);
}

static glm_guess guess(double y, double extra)
{
  const double p = (y + 0.5) / (extra + 1), eta = gsl_cdf_ugaussian_Pinv(p),
               density = gsl_ran_ugaussian_pdf(eta);
  return (glm_guess){eta, (extra + 1) * density * density / (p * (1 - p))};
}

const glm_family le_glm_probit = {
  .name = "probit", .extra = 1, .kernels = kernels, .draw = draw, .guess = guess};
