/* Starting points of a regression for finding posterior modes. */
#ifndef LE_MODELS_GLM_START_H
#define LE_MODELS_GLM_START_H

#include "models/glm/instance.h"

size_t le_glm_start_scratch(const void *self, size_t rows);
void le_glm_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch);

#endif
