/* The exact evidence of a linear regression with unknown noise and normal priors. */
#ifndef LE_MODELS_GLM_EXACT_H
#define LE_MODELS_GLM_EXACT_H

#include "models/reflections.h"

/* log_evidence is NaN for other families and priors. */
le_status le_glm_exact(const void *self, const le_rows *rows, double *log_evidence);
le_status le_glm_exact_draws(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                             double *theta);

/* Whether the part of the response that no coefficients explain is rounding error. */
int le_fits_exactly(const le_reflections *fit);

#endif
