/* The families: one line for each, the table at the end of its file. */
#ifndef LE_MODELS_GLM_FAMILIES_H
#define LE_MODELS_GLM_FAMILIES_H

#include "models/glm/family.h"

extern const glm_family le_glm_poisson, le_glm_binomial, le_glm_probit, le_glm_gaussian,
  le_glm_gaussian_known, le_glm_negative_binomial, le_glm_gamma, le_glm_student,
  le_glm_student_fixed, le_glm_weibull;

#endif
