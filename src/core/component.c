/* Densities and draws of multivariate t distributions. */
#include "core/component.h"

#include "base/linalg.h"
#include "base/logsum.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <string.h>

static const double log_pi = 1.1447298858494001741, log_two_pi = 1.8378770664093454836;
/* The share of draws with heavy tails. */
static const double tails_share = 0.3;

double le_component_log_normal(size_t d, double half_log_det, double q)
{
  return half_log_det - 0.5 * ((double)d * log_two_pi + q);
}

le_component_t le_component_t_of(size_t d, double nu)
{
  const double exponent = 0.5 * (nu + (double)d);
  return (le_component_t){.nu = nu, .exponent = exponent,
                          .constant = gsl_sf_lngamma(exponent) - gsl_sf_lngamma(0.5 * nu) -
                                      0.5 * (double)d * (log(nu) + log_pi)};
}

le_component_peak le_component_peak_of(size_t d, double tails)
{
  le_component_peak peak = {.normal = le_component_t_of(d, LE_PEAK_FREEDOM)};
  if (tails == 0) return peak;
  peak.heavy = le_component_t_of(d, tails);
  peak.log_normal_share = log(1 - tails_share);
  peak.log_heavy_share = log(tails_share);
  return peak;
}

double le_component_log_t(const le_component_t *t, double half_log_det, double q)
{
  return t->constant + half_log_det - t->exponent * log1p(q / t->nu);
}

double le_component_log_peak(const le_component_peak *peak, double half_log_det, double q,
                             double *heavy)
{
  const double normal = le_component_log_t(&peak->normal, half_log_det, q);
  if (peak->heavy.nu == 0) return normal;
  const double both[2] = {peak->log_normal_share + normal,
                          peak->log_heavy_share +
                            le_component_log_t(&peak->heavy, half_log_det, q)},
               value = le_logsumexp(both, 2);
  if (heavy) *heavy = exp(both[1] - value);
  return value;
}

double le_component_peak_freedom(const le_component_peak *peak, const gsl_rng *rng)
{
  const double heavy = peak->heavy.nu;
  return heavy > 0 && gsl_rng_uniform(rng) < tails_share ? heavy : LE_PEAK_FREEDOM;
}

size_t le_component_stratum(const double *share, size_t parts, size_t draw, size_t draws)
{
  const double point = ((double)draw + 0.5) / (double)draws;
  double sum = 0;
  for (size_t k = 0; k + 1 < parts; k++)
    if ((sum += share[k]) > point) return k;
  return parts - 1;
}

void le_component_spherical(size_t d, double nu, const gsl_rng *rng, double *z)
{
  for (size_t j = 0; j < d; j++) z[j] = gsl_ran_gaussian_ziggurat(rng, 1);
  const double stretch = isfinite(nu) ? sqrt(nu / gsl_ran_chisq(rng, nu)) : 1;
  for (size_t j = 0; j < d; j++) z[j] *= stretch;
}

/* centre + L^-T z */
void le_component_draw(const le_mode *mode, double nu, const gsl_rng *rng, double *theta)
{
  const size_t d = mode->free;
  le_component_spherical(d, nu, rng, theta);
  le_lower_transpose_solve(mode->factor, d, theta);
  for (size_t j = 0; j < d; j++) theta[j] += mode->centre[j];
}

le_status le_component_shape(le_mode *mode, double *covariance, double *work)
{
  const size_t d = mode->free, size = d * d * sizeof(double);
  LE_TRY(le_invert(covariance, d, work));
  memcpy(mode->precision, covariance, size);
  memcpy(mode->factor, covariance, size);
  return le_cholesky(mode->factor, d);
}
