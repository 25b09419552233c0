/* Products of weights with covariates, row by row, for any number of columns of weights. Included
 * by a VECTOR_BODY. */
#include "models/products.h"

typedef void (*V(le_combine))(size_t n, size_t p, const real *weight, const real *x, real *out);

DEFINE_COMBINE(1, V_GROUP)
DEFINE_COMBINE(2, V_GROUP)
DEFINE_COMBINE(3, V_GROUP)
DEFINE_COMBINE(4, V_GROUP)

V_INLINE void V(combine)(size_t n, size_t columns, size_t p, const real *weight, const real *x,
                         real *out)
{
  static const V(le_combine) table[] = {V(combine_1), V(combine_2), V(combine_3), V(combine_4)};
  for (size_t k = 0, together; k < columns; k += together) {
    together = columns - k < COLUMNS_TOGETHER ? columns - k : COLUMNS_TOGETHER;
    table[together - 1](n, p, weight + k * p, x, out + k * TILE);
  }
}
