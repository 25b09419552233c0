/* Counts: y ~ Poisson(exp(eta)). */
#include "models/glm/family.h"

#include "models/glm/draws.h"

#define FAMILY_FURTHER 0
#define FAMILY_RESPONSE counts
#define FAMILY_BODY "models/glm/poisson_body.h"
#include "models/glm/family_kernels.h"

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)further;
  (void)extra;
  return glm_draw_count(rng, exp(eta));
}

/* Half a count more, so that zero has a logarithm; the variance of log y is one over the mean. */
static glm_guess guess(double y, double extra)
{
  (void)extra;
  return (glm_guess){log(y + 0.5), y + 0.5};
}

const glm_family le_glm_poisson = {
  .name = "poisson", .kernels = kernels, .draw = draw, .guess = guess};
