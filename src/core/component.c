/* Densities and draws of multivariate t distributions. */
#include "core/component.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

static const double log_pi = 1.1447298858494001741, log_two_pi = 1.8378770664093454836;

double le_component_log_normal(const le_mode *mode, size_t d, double q)
{
  return le_cholesky_half_log_det(mode->factor, d) - 0.5 * ((double)d * log_two_pi + q);
}

double le_component_log_t(const le_mode *mode, size_t d, double nu, double q)
{
  return gsl_sf_lngamma(0.5 * (nu + (double)d)) - gsl_sf_lngamma(0.5 * nu) -
         0.5 * (double)d * (log(nu) + log_pi) + le_cholesky_half_log_det(mode->factor, d) -
         0.5 * (nu + (double)d) * log1p(q / nu);
}

double le_component_distance(const le_mode *mode, size_t d, const double *theta, double *work)
{
  double *shift = work, *product = work + d;
  for (size_t j = 0; j < d; j++) shift[j] = theta[j] - mode->centre[j];
  return le_quadratic_form(mode->precision, d, shift, product);
}

/* centre + L^-T z sqrt(nu / chi2), by back substitution. */
void le_component_draw(const le_mode *mode, size_t d, double nu, const gsl_rng *rng, double *theta)
{
  for (size_t j = 0; j < d; j++) theta[j] = gsl_ran_gaussian_ziggurat(rng, 1);
  const double stretch = isfinite(nu) ? sqrt(nu / gsl_ran_chisq(rng, nu)) : 1;
  for (size_t i = d; i-- > 0;) {
    double sum = theta[i];
    for (size_t k = i + 1; k < d; k++) sum -= mode->factor[k * d + i] * theta[k];
    theta[i] = sum / mode->factor[i * d + i];
  }
  for (size_t j = 0; j < d; j++) theta[j] = mode->centre[j] + stretch * theta[j];
}
