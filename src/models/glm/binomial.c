/* Successes in trials: y ~ Binomial(trials, 1 / (1 + exp(-eta))). */
#include "models/glm/family.h"

#include "models/glm/draws.h"

#define FAMILY_FURTHER 0
#define FAMILY_RESPONSE trials
#define FAMILY_BODY "models/glm/binomial_body.h"
#include "models/glm/family_kernels.h"

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)further;
  return glm_draw_successes(rng, 1 / (1 + exp(-eta)), extra ? *extra : 1);
}

/* Half a success and half a failure more, as in glm(). */
static glm_guess guess(double y, double extra)
{
  const double p = (y + 0.5) / (extra + 1);
  return (glm_guess){log(p / (1 - p)), (extra + 1) * p * (1 - p)};
}

const glm_family le_glm_binomial = {
  .name = "binomial", .extra = 1, .kernels = kernels, .draw = draw, .guess = guess};
