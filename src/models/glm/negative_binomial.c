/* Counts with mean m = exp(eta) and variance m + m^2 / a; the size a is unknown. */
#include "models/glm/family.h"

#include "models/glm/draws.h"
#include "models/glm/special.h"

#define FAMILY_FURTHER 1
#define FAMILY_RESPONSE counts
#define FAMILY_BODY "models/glm/negative_binomial_body.h"
#include "models/glm/family_kernels.h"

static double eight_inverses(double z)
{
  double sum = 0;
  for (int k = 0; k < 8; k++) sum += 1 / (z + k);
  return sum;
}

static double eight_squares(double z)
{
  double sum = 0;
  for (int k = 0; k < 8; k++) sum += 1 / (z + k) / (z + k);
  return sum;
}

static void point(const double *further, int curves, glm_point *point)
{
  const double a = further[0], far = a + 8;
  const double setting[] = {a,
                            log(a),
                            far,
                            log(far),
                            glm_eight_factors(a),
                            glm_stirling(far),
                            glm_digamma_rest(far),
                            eight_inverses(a),
                            curves && a > 0 ? glm_trigamma_rest(far) + eight_squares(a) : 0};
  memcpy(point->setting, setting, sizeof setting);
}

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)extra;
  return glm_draw_count(rng, gsl_ran_gamma(rng, further[0], exp(eta) / further[0]));
}

/* The variance of log y is about 1 / mean + 1 / size. */
static glm_guess guess(double y, double extra)
{
  (void)extra;
  return (glm_guess){log(y + 0.5), 1 / (1 / (y + 0.5) + 1)};
}

static void guess_further(double variance, double *further)
{
  further[0] = fmin(fmax(1 / variance, 0.1), 100);
}

const glm_family le_glm_negative_binomial = {.name = "negative_binomial",
                                             .further = 1,
                                             .kernels = kernels,
                                             .point = point,
                                             .draw = draw,
                                             .guess = guess,
                                             .guess_further = guess_further};
