/* Operations on whole arrays with the processor's vector instructions: exp, log, transposing
 * rows. */
#pragma once

#include "base/simd.h"

/* Scratch is aligned to a cache line so that no vector crosses one: callers ask for LE_ALIGN_MORE
 * extra doubles. */
enum { LE_ALIGN_MORE = 8 };
double *le_aligned(double *scratch);

typedef struct le_array_functions {
  /* exp(scale x + shift) and log(x) of n numbers; `out` may be `x` */
  void (*exp)(size_t n, double scale, double shift, const double *x, double *out);
  void (*log)(size_t n, const double *x, double *out);
  /* Transposes rows of `width` numbers: number j of row r goes to out[j * stride + r], for the
   * first `columns` of them, with zeros for r >= n. `stride` is a multiple of 8. */
  void (*columns)(size_t n, size_t width, size_t columns, const double *rows, double *out,
                  size_t stride);
  /* Copies the n rows with indices `picked`, out of `rows` rows, one after another; writes up to
   * LE_ALIGN_MORE numbers beyond the end. */
  void (*gather)(size_t n, size_t width, size_t rows, const double *values, const size_t *picked,
                 double *out);
} le_array_functions;

const le_array_functions *le_arrays(le_simd variant);
