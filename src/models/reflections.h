/* Least squares by orthogonal reflections: a triangular factor to which blocks of rows are added.
 * Products of covariates are never formed, because their condition number is the square of that of
 * the covariates, and collinear covariates would lose all digits. */
#pragma once

#include "logevidence.h"

typedef struct le_reflections {
  size_t p;       /* covariates */
  double *factor; /* p rows of p + 1 numbers: the upper triangle, then the response */
  double squares; /* sum of squares of the response that no coefficients explain */
  double total;   /* sum of squares of the response */
  double lost;    /* Kahan's correction of both sums */
  double lost_total;
  double *columns; /* (p + 1) * LE_REFLECTED, filled by the caller, replaced by le_reflect */
} le_reflections;

enum { LE_REFLECTED = 512 };

/* A factor of zeros. LE_NO_MEMORY leaves nothing to free. */
le_status le_reflections_alloc(le_reflections *reflections, size_t p);
void le_reflections_free(le_reflections *reflections);
/* Adds a block of n <= LE_REFLECTED rows, which are in `columns`: covariates, then the response,
 * each of length n. */
void le_reflect(le_reflections *reflections, size_t n);
