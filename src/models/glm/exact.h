/* Exact evidences of linear regressions: with normal priors, and with that of Zellner and Siow. */
#pragma once

#include "models/glm/instance.h"
#include "models/reflections.h"

/* log_evidence is NaN for other families and priors. */
le_status le_glm_exact(const void *self, const le_rows *rows, double *log_evidence);
le_status le_glm_exact_draws(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                             double *theta);

/* Whether there is a closed form, up to an integral over sigma. */
int le_glm_closed(const glm *model);
/* The log evidence of n rows given their reflections (if sigma is known with it as ridge),
 * infinite if coefficients fit them exactly, and a draw from the posterior. The integral over sigma
 * is by le_quadrature_quick(). */
le_status le_glm_exact_fit(const glm *model, size_t n, const le_reflections *fit, double *value);
le_status le_glm_exact_point(const glm *model, size_t n, const le_reflections *fit,
                             const gsl_rng *rng, double *theta);
/* Rows on the scale on which priors are standard normal: columns of n numbers each. */
void le_glm_standardise(const glm *model, size_t n, const double *rows, double *columns);

/* Reflections of all rows, on the scale on which the priors of coefficients are standard normal.
 * The triangle begins with `ridge` in its diagonal. */
le_status le_glm_reflect(const glm *model, const le_rows *rows, double ridge, le_reflections *fit);
/* Whether the part of the response that no coefficients explain is rounding error. */
int le_fits_exactly(const le_reflections *fit);

/* Blocks of rows, for change points (blocks.c). */
extern const le_partition_ops le_glm_blocks;

/* What these models do not share with the others (zellner_siow.c). */
le_status le_zellner_siow_create(const le_args *args, void **self, char *message);
void le_zellner_siow_log_prior(const void *self, size_t m, const double *theta, double *value);
void le_zellner_siow_draw_prior(const void *self, const gsl_rng *rng, double *theta);
le_status le_zellner_siow_exact(const void *self, const le_rows *rows, double *log_evidence);
le_status le_zellner_siow_draws(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                                double *theta);
