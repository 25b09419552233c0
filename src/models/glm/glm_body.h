/* The kernels that all families share, for base/variants.h: linear predictors, and covariates times
 * the second derivatives of the rows. */
#include "models/combine_body.h"

/* eta of one tile for `columns` particles. The offset is a covariate of weight one. */
V_KERNEL void V(predictors)(size_t n, size_t columns, size_t terms, const double *weight,
                            const double *x, double *eta)
{
  V(combine)(n, columns, terms, weight, x, eta);
}

/* Adds to sums[j * p + k], k <= j, the products of covariates j and k with the weights of a tile.
 * `weighted` is room for p columns. */
V_KERNEL void V(squares)(size_t n, size_t p, const double *weight, const double *x,
                         double *weighted, double *sums)
{
  for (size_t at = 0; at < n; at += V_LANES) {
    const vec w = v_load(weight + at);
    for (size_t j = 0; j < p; j++)
      v_store(weighted + j * TILE + at, w * v_load(x + j * TILE + at));
  }
  for (size_t j = 0; j < p; j += COLUMNS_TOGETHER) {
    const size_t columns = p - j < COLUMNS_TOGETHER ? p - j : COLUMNS_TOGETHER;
    V(le_cross)(n, columns, weighted + j * TILE, p * TILE, j + columns, x, 0, sums + j * p, p);
  }
}

/* Adds to sums[j * others + k] the products of covariate j of x, times the weights of a tile, with
 * covariate k of z. */
V_KERNEL void V(products)(size_t n, size_t p, const double *weight, const double *x, size_t others,
                          const double *z, double *weighted, double *sums)
{
  for (size_t at = 0; at < n; at += V_LANES) {
    const vec w = v_load(weight + at);
    for (size_t j = 0; j < p; j++)
      v_store(weighted + j * TILE + at, w * v_load(x + j * TILE + at));
  }
  V(le_cross)(n, p, weighted, p * TILE, others, z, 0, sums, others);
}

/* Adds to sums[q * p + j] column q (of COLUMNS_TOGETHER in each tile) times covariate j. */
V_KERNEL void V(slopes)(size_t n, size_t columns, const double *column, size_t p, const double *x,
                        size_t x_step, double *sums)
{
  V(le_cross)(n, columns, column, COLUMNS_TOGETHER * TILE, p, x, x_step, sums, p);
}
