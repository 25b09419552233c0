/* Selects the variant of the array operations for the processor. */
#include "base/arrays.h"

#include <stdint.h>

#define VECTOR_BODY "base/arrays_body.h"
#include "base/variants.h"

double *le_aligned(double *scratch)
{
  return (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
}

typedef struct functions {
  void (*exp_each)(size_t n, double scale, double shift, const double *x, double *out);
  void (*log_each)(size_t n, const double *x, double *out);
  void (*columns)(size_t n, size_t width, size_t columns, const double *rows, double *out,
                  size_t stride);
  void (*gather)(size_t n, size_t width, size_t rows, const double *values, const size_t *picked,
                 double *out);
  double (*multiply_add)(size_t rounds);
} functions;

#define FUNCTIONS(variant)                                                                         \
  {                                                                                                \
    exp_each_##variant, log_each_##variant, columns_##variant, gather_##variant,                   \
      multiply_add_##variant                                                                       \
  }
static const functions table[] = TABLES(FUNCTIONS);

void le_vector_exp(le_simd variant, size_t n, double scale, double shift, const double *x,
                   double *out)
{
  table[variant].exp_each(n, scale, shift, x, out);
}

void le_vector_log(le_simd variant, size_t n, const double *x, double *out)
{
  table[variant].log_each(n, x, out);
}

void le_vector_columns(le_simd variant, size_t n, size_t width, size_t columns, const double *rows,
                       double *out, size_t stride)
{
  table[variant].columns(n, width, columns, rows, out, stride);
}

void le_vector_gather(size_t n, size_t width, size_t rows, const double *values,
                      const size_t *picked, double *out)
{
  table[le_simd_level()].gather(n, width, rows, values, picked, out);
}

double le_vector_peak(le_simd variant, size_t rounds)
{
  return table[variant].multiply_add(rounds);
}
