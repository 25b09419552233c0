/* Gamma functions of single numbers, as models/glm/functions_body.h has them for vectors: a family
 * subtracts the two, and large numbers must cancel to the last digit. */
#pragma once

#include <math.h>

/* From here on the series below have all digits. */
static const double GLM_FAR = 8;

/* The product of z + k, k = 0 .. 7. */
static inline double glm_eight_factors(double z)
{
  const double q = z * (z + 7);
  return q * (q + 6) * ((q + 10) * (q + 12));
}

/* c[0] + c[1] x + ... + c[6] x^6 */
static inline double glm_polynomial(const double *c, double x)
{
  double s = c[6];
  for (int k = 5; k >= 0; k--) s = fma(s, x, c[k]);
  return s;
}

/* log Gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2, for z >= 8. */
static inline double glm_stirling(double z)
{
  static const double c[] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                             1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  return glm_polynomial(c, 1 / z / z) / z;
}

/* digamma(z) - log z + 1 / (2 z), for z >= 8. */
static inline double glm_digamma_rest(double z)
{
  static const double c[] = {-1.0 / 12,  1.0 / 120,       -1.0 / 252, 1.0 / 240,
                             -1.0 / 132, 691.0 / 32760, -1.0 / 12};
  return glm_polynomial(c, 1 / z / z) / z / z;
}

/* trigamma(z) - 1 / z - 1 / (2 z^2), for z >= 8. */
static inline double glm_trigamma_rest(double z)
{
  static const double c[] = {1.0 / 6,  -1.0 / 30,       1.0 / 42, -1.0 / 30,
                             5.0 / 66, -691.0 / 2730, 7.0 / 6};
  return glm_polynomial(c, 1 / z / z) / z / z / z;
}

/* z times digamma(z + 1/2) - digamma(z), and z^2 times the same of trigamma, for large z. */
static inline double glm_digamma_step(double z)
{
  return z * log1p(0.5 / z) + 0.5 / (2 * z + 1) +
         z * (glm_digamma_rest(z + 0.5) - glm_digamma_rest(z));
}
static inline double glm_trigamma_step(double z)
{
  const double share = z / (z + 0.5);
  return -0.5 * share - 0.5 * (z + 0.25) / z * share / (z + 0.5) +
         z * z * (glm_trigamma_rest(z + 0.5) - glm_trigamma_rest(z));
}

/* log Gamma(z + x) - log Gamma(z), for x >= 0; without cancellation for large z. */
static inline double glm_log_gamma_ratio(double z, double x)
{
  const double far = z + 8;
  return x * log(far) + (far + x - 0.5) * log1p(x / far) - x + glm_stirling(far + x) -
         glm_stirling(far) - log(glm_eight_factors(z + x) / glm_eight_factors(z));
}
