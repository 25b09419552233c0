/* Multivariate t distributions as components of proposals. The place of a component is
 * mode->centre, its shape the precision of the mode and the Cholesky factor of this. */
#ifndef LE_CORE_COMPONENT_H
#define LE_CORE_COMPONENT_H

#include "base/rng.h"
#include "core/mode.h"

/* Degrees of freedom around a mode: nearly normal. */
#define LE_PEAK_FREEDOM 20.0

/* Log density at squared Mahalanobis distance q, for nu degrees of freedom. `half_log_det` is half
 * the log determinant of the precision. */
double le_component_log_t(size_t d, double nu, double half_log_det, double q);
double le_component_log_normal(size_t d, double half_log_det, double q);
/* The log density around a mode. A share of it has `tails` degrees of freedom, unless these are 0:
 * `heavy`, if not NULL, is the share that these tails have of the density here. And the degrees of
 * freedom of a draw. */
double le_component_log_peak(size_t d, double tails, double half_log_det, double q, double *heavy);
double le_component_peak_freedom(double tails, const gsl_rng *rng);
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

#endif
