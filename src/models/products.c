/* Products compiled once for all models, and derivatives made of them: see models/products.h. */
#include "models/products.h"

#define VECTOR_BODY "models/regression_body.h"
#define VECTOR_SINGLE_BODY "models/products_body.h"
#include "base/variants.h"

#define PRODUCTS(variant) \
  {combine_##variant, residuals_##variant, weighted_##variant, le_cross_##variant}

const le_products *le_products_for(le_simd simd)
{
  static const le_products table[] = TABLES(PRODUCTS);
  return &table[simd];
}

void le_add_slopes(const le_sums *s, size_t particles, le_columns slopes, le_block to,
                   const double *factor, double *grad)
{
  memset(s->sums, 0, particles * to.count * sizeof(double));
  s->products->cross(s->n, particles, slopes.x, slopes.step, to.count, to.columns.x,
                     to.columns.step, s->sums, to.count);
  for (size_t q = 0; q < particles; q++)
    for (size_t j = 0; j < to.count; j++)
      add_finite(s->sums[q * to.count + j] * (factor ? factor[q] : 1),
                 &grad[q * s->d + to.first + j]);
}

void le_add_entry(double *hess, size_t d, size_t j, size_t k, double x)
{
  add_finite(x, &hess[j * d + k]);
  if (j != k) add_finite(x, &hess[k * d + j]);
}

void le_add_block(const le_sums *s, le_columns weight, le_block one, le_block two, double *hess)
{
  const int lower = one.first == two.first;
  memset(s->sums, 0, one.count * two.count * sizeof(double));
  for (size_t t = 0; t < tiles_of(s->n); t++)
    s->products->weighted(rows_in_tile(s->n, t), one.count, le_in_tile(weight, t),
                          le_in_tile(one.columns, t), two.count, le_in_tile(two.columns, t), lower,
                          s->weighted, s->sums);
  for (size_t j = 0; j < one.count; j++)
    for (size_t k = 0; k < (lower ? j + 1 : two.count); k++)
      le_add_entry(hess, s->d, one.first + j, two.first + k, s->sums[j * two.count + k]);
}
