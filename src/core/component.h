/* A multivariate t distribution as a component of a proposal: its place is mode->centre, its shape
 * the precision of the mode and the Cholesky factor of this. */
#ifndef LE_CORE_COMPONENT_H
#define LE_CORE_COMPONENT_H

#include "base/rng.h"
#include "core/mode.h"

/* Log density at squared Mahalanobis distance q, for nu degrees of freedom. */
double le_component_log_t(const le_mode *mode, size_t d, double nu, double q);
double le_component_log_normal(const le_mode *mode, size_t d, double q);
/* Squared Mahalanobis distance of a point; `work` holds 2 d numbers. */
double le_component_distance(const le_mode *mode, size_t d, const double *theta, double *work);
/* A draw; normal for infinite nu. */
void le_component_draw(const le_mode *mode, size_t d, double nu, const gsl_rng *rng,
                       double *theta);

#endif
