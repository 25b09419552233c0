/* What is done to whole arrays of numbers, by the best instructions there are: exp, log, rows as columns. */
#ifndef LE_BASE_ARRAYS_H
#define LE_BASE_ARRAYS_H

#include "base/simd.h"

/* Scratch begins at a cache line, so that no vector crosses one: callers ask for LE_ALIGN_MORE doubles more. */
enum { LE_ALIGN_MORE = 8 };
double *le_aligned(double *scratch);

/* Rows of `width` numbers as columns: number j of row r goes to out[j * stride + r], for the first `columns` of them, and
 * zeros where r is n or more.  `stride` is a multiple of 8. */
void le_vector_columns(le_simd variant, size_t n, size_t width, size_t columns, const double *rows,
                       double *out, size_t stride);
/* `picked` rows, n of them, of the `rows` that there are, one after the other; writes up to LE_ALIGN_MORE numbers more. */
void le_vector_gather(size_t n, size_t width, size_t rows, const double *values,
                      const size_t *picked, double *out);
/* exp(scale x + shift) and log(x) of n numbers; `out` may be `x`. */
void le_vector_exp(le_simd variant, size_t n, double scale, double shift, const double *x,
                   double *out);
void le_vector_log(le_simd variant, size_t n, const double *x, double *out);
/* Times a loop of nothing but multiply-adds in registers: 8 * 2^20 * rounds of them, lanes counted one by one; returns
 * something that depends on all of them.  What a kernel's speed is compared with. */
double le_vector_peak(le_simd variant, size_t rounds);

#endif
