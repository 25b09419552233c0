/* Multivariate t distributions as components of proposals. The place of a component is
 * mode->centre, its shape the precision of the mode and the Cholesky factor of this. */
#pragma once

#include "base/rng.h"
#include "core/mode.h"

/* Degrees of freedom around a mode: nearly normal. */
#define LE_PEAK_FREEDOM 20.0

/* A t distribution in d dimensions: what does not depend on the point. */
typedef struct le_component_t {
  double nu, exponent, constant;
} le_component_t;

/* The distribution around a mode. A share of it has heavy tails, unless their degrees of freedom,
 * heavy.nu, are 0. */
typedef struct le_component_peak {
  le_component_t normal, heavy;
  double log_normal_share, log_heavy_share;
} le_component_peak;

le_component_t le_component_t_of(size_t d, double nu);
le_component_peak le_component_peak_of(size_t d, double tails);
/* Log density at squared Mahalanobis distance q. `half_log_det` is half the log determinant of the
 * precision. */
double le_component_log_t(const le_component_t *t, double half_log_det, double q);
double le_component_log_normal(size_t d, double half_log_det, double q);
/* `heavy`, if not NULL, is the share that the heavy tails have of the density here. */
double le_component_log_peak(const le_component_peak *peak, double half_log_det, double q,
                             double *heavy);
/* The degrees of freedom of a draw. */
double le_component_peak_freedom(const le_component_peak *peak, const gsl_rng *rng);
/* The component of a draw, of which there are so many: draws are stratified over the components.
 * Draw k comes from the component whose cumulated share contains (k + 1/2) / draws. */
size_t le_component_stratum(const double *share, size_t parts, size_t draw, size_t draws);
/* A draw from a spherical t distribution; normal for infinite nu. */
void le_component_spherical(size_t d, double nu, const gsl_rng *rng, double *z);
/* A draw; normal for infinite nu. */
void le_component_draw(const le_mode *mode, double nu, const gsl_rng *rng, double *theta);
/* Sets precision and factor from the lower triangle of a covariance, which is overwritten;
 * LE_NOT_POSITIVE leaves them undefined. `work` holds d x d numbers. */
le_status le_component_shape(le_mode *mode, double *covariance, double *work);
