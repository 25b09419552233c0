/* Sums over rows of products of columns with columns, for any number of columns: le_cross_plain and
 * so on, see models/products.h. */
#include "models/products.h"

typedef void (*V(cross))(size_t n, const real *a, size_t a_step, const real *b, size_t b_step,
                         double *out, size_t stride);

DEFINE_CROSSES(1) DEFINE_CROSSES(2)
#if V_GROUP == 4
DEFINE_CROSSES(3) DEFINE_CROSSES(4)
#endif

/* The same for any number of columns of both. */
V_TARGET void V(le_cross)(size_t n, size_t columns, const real *a, size_t a_step, size_t others,
                          const real *b, size_t b_step, double *out, size_t stride)
{
  static const V(cross) table[][4] = {
    {V(cross_11), V(cross_21), V(cross_31), V(cross_41)},
    {V(cross_12), V(cross_22), V(cross_32), V(cross_42)},
#if V_GROUP == 4
    {V(cross_13), V(cross_23), V(cross_33), V(cross_43)},
    {V(cross_14), V(cross_24), V(cross_34), V(cross_44)},
#endif
  };
  for (size_t q = 0, Q; q < columns; q += Q) {
    Q = columns - q < COLUMNS_TOGETHER ? columns - q : COLUMNS_TOGETHER;
    for (size_t j = 0, J; j < others; j += J) {
      J = others - j < V_GROUP ? others - j : V_GROUP;
      table[J - 1][Q - 1](n, a + q * TILE, a_step, b + j * TILE, b_step, out + q * stride + j,
                          stride);
    }
  }
}
