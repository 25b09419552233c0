/* The instance of a regression, and its starting points for finding posterior modes. */
#ifndef LE_MODELS_GLM_START_H
#define LE_MODELS_GLM_START_H

#include "models/glm/family.h"
#include "models/glm/priors.h"

typedef struct glm {
  const glm_family *family;
  le_simd simd;
  size_t covariates, d, width;
  size_t terms;      /* covariates and the offset */
  int offset, extra; /* whether rows have these columns */
  double known;      /* the value of a further parameter that is not unknown */
  double *user;      /* scale, centre and intercept of each parameter (glm.c), or NULL */
  double ones[TILE]; /* in place of `extra` if rows do not have it */
  le_prior prior[];  /* d */
} glm;

size_t le_glm_start_scratch(const void *self, size_t rows);
void le_glm_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch);

#endif
