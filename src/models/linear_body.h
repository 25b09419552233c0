/* The kernels of linear regression, for base/variants.h: residuals of up to four particles at once,
 * and their products with the covariates. */
#include "models/products.h"

#if V_REGISTERS == 32
DEFINE_RESIDUALS(1, 4) DEFINE_RESIDUALS(2, 4) DEFINE_RESIDUALS(3, 4) DEFINE_RESIDUALS(4, 4)
#else
DEFINE_RESIDUALS(1, 2) DEFINE_RESIDUALS(2, 2) DEFINE_RESIDUALS(3, 2) DEFINE_RESIDUALS(4, 2)
#endif

/* Residuals of `particles` particles, and the sums of their squares. */
V_KERNEL void V(residuals)(const workspace *w, size_t p, size_t particles, const double *theta,
                           double *squares)
{
  static const le_residuals table[] = {V(residuals_1), V(residuals_2), V(residuals_3),
                                       V(residuals_4)};
  double lanes[COLUMNS_TOGETHER * LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const double *x = w->x + t * (p + 1) * TILE;
    table[particles - 1](rows_in_tile(w->n, t), p, theta, x, x + p * TILE,
                         w->residual + t * COLUMNS_TOGETHER * TILE, lanes);
  }
  for (size_t i = 0; i < particles; i++) squares[i] = v_sum(v_load(lanes + i * LANES));
}

/* Adds to sums[i * p + j] the residuals of particle i times covariate j. */
V_KERNEL void V(slopes)(const workspace *w, size_t p, size_t particles, double *sums)
{
  V(le_cross)(w->n, particles, w->residual, COLUMNS_TOGETHER * TILE, p, w->x, (p + 1) * TILE, sums,
              p);
}

/* Adds to sums[j * p + k] covariate j times covariate k, at least for k <= j. */
V_KERNEL void V(squares)(const workspace *w, size_t p, double *sums)
{
  const size_t step = (p + 1) * TILE;
  for (size_t j = 0; j < p; j += COLUMNS_TOGETHER) {
    const size_t columns = p - j < COLUMNS_TOGETHER ? p - j : COLUMNS_TOGETHER;
    V(le_cross)(w->n, columns, w->x + j * TILE, step, j + columns, w->x, step, sums + j * p, p);
  }
}
