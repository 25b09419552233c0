/* The kernels that all families share, for base/variants.h: linear predictors, and covariates times
 * the second derivatives of the rows. */
#include "models/combine_body.h"

/* eta of one tile for `columns` particles. The offset is a covariate of weight one. */
V_KERNEL void V(predictors)(size_t n, size_t columns, size_t terms, const double *weight,
                            const double *x, double *eta)
{
  V(combine)(n, columns, terms, weight, x, eta);
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
