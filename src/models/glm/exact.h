/* The exact evidence of a linear regression with normal priors. */
#ifndef LE_MODELS_GLM_EXACT_H
#define LE_MODELS_GLM_EXACT_H

#include "models/glm/instance.h"
#include "models/reflections.h"

/* log_evidence is NaN for other families and priors. */
le_status le_glm_exact(const void *self, const le_rows *rows, double *log_evidence);
le_status le_glm_exact_draws(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                             double *theta);

/* Reflections of all rows, on the scale on which the priors of coefficients are standard normal.
 * The triangle begins with `ridge` in its diagonal. */
le_status le_glm_reflect(const glm *model, const le_rows *rows, double ridge, le_reflections *fit);
/* Whether the part of the response that no coefficients explain is rounding error. */
int le_fits_exactly(const le_reflections *fit);

#endif
