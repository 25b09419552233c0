/* The kernels that all families share, for base/variants.h: linear predictors, and covariates times
 * the second derivatives of the rows. */
#include "models/combine_body.h"

/* eta of one tile for `columns` particles. The offset is a covariate of weight one. */
V_KERNEL void V(predictors)(size_t n, size_t columns, size_t terms, const double *weight,
                            const double *x, double *eta)
{
  V(combine)(n, columns, terms, weight, x, eta);
}

DEFINE_RESIDUALS(1, V_GROUP)
DEFINE_RESIDUALS(2, V_GROUP)
DEFINE_RESIDUALS(3, V_GROUP)
DEFINE_RESIDUALS(4, V_GROUP)

/* y - eta of all tiles, which are `step` apart, for up to COLUMNS_TOGETHER particles; adds their
 * squares to `squares`, LANES partial sums for each particle. */
V_KERNEL void V(residuals)(size_t n, size_t columns, size_t terms, const double *weight,
                           const double *x, const double *y, size_t step, double *residual,
                           double *squares)
{
  static const le_residuals table[] = {V(residuals_1), V(residuals_2), V(residuals_3),
                                       V(residuals_4)};
  for (size_t t = 0; t < tiles_of(n); t++)
    table[columns - 1](rows_in_tile(n, t), terms, weight, x + t * step, y + t * step,
                       residual + t * COLUMNS_TOGETHER * TILE, squares);
}

/* Adds to sums[j * others + k] the products of covariate j of x, times the weights of a tile, with
 * covariate k of z; if z is x, at least those for k <= j. `weighted` is room for p columns. */
V_KERNEL void V(products)(size_t n, size_t p, const double *weight, const double *x, size_t others,
                          const double *z, double *weighted, double *sums)
{
  for (size_t at = 0; at < n; at += V_LANES) {
    const vec w = v_load(weight + at);
    for (size_t j = 0; j < p; j++)
      v_store(weighted + j * TILE + at, w * v_load(x + j * TILE + at));
  }
  for (size_t j = 0; j < p; j += COLUMNS_TOGETHER) {
    const size_t columns = p - j < COLUMNS_TOGETHER ? p - j : COLUMNS_TOGETHER;
    V(le_cross)(n, columns, weighted + j * TILE, p * TILE, z == x ? j + columns : others, z, 0,
                sums + j * others, others);
  }
}
