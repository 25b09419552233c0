/* The kernels that regressions share, see le_products in models/products.h. */
#include "models/combine_body.h"
#include "models/products_body.h"

DEFINE_RESIDUALS(1, V_GROUP)
DEFINE_RESIDUALS(2, V_GROUP)
DEFINE_RESIDUALS(3, V_GROUP)
DEFINE_RESIDUALS(4, V_GROUP)

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

V_KERNEL void V(weighted)(size_t n, size_t p, const double *weight, const double *x, size_t others,
                          const double *z, int lower, double *weighted, double *sums)
{
  for (size_t at = 0; at < n; at += V_LANES) {
    const vec w = v_load(weight + at);
    for (size_t j = 0; j < p; j++)
      v_store(weighted + j * TILE + at, w * v_load(x + j * TILE + at));
  }
  for (size_t j = 0; j < p; j += COLUMNS_TOGETHER) {
    const size_t columns = p - j < COLUMNS_TOGETHER ? p - j : COLUMNS_TOGETHER;
    V(le_cross)(n, columns, weighted + j * TILE, p * TILE, lower ? j + columns : others, z, 0,
                sums + j * others, others);
  }
}
