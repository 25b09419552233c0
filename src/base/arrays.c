/* Selects the variant of the array operations for the processor. */
#include "base/arrays.h"

#include <stdint.h>

#define VECTOR_BODY "base/arrays_body.h"
#include "base/variants.h"

double *le_aligned(double *scratch)
{
  return (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
}

#define FUNCTIONS(variant)                                                                         \
  {                                                                                                \
    exp_each_##variant, log_each_##variant, columns_##variant, gather_##variant                    \
  }

const le_array_functions *le_arrays(le_simd variant)
{
  static const le_array_functions table[] = TABLES(FUNCTIONS);
  return &table[variant];
}
