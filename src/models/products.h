/* The products that likelihoods of regressions consist of, over tiles (models/shared.h): weights
 * with covariates, row by row; and columns with columns, summed over rows. These are macros, which
 * a VECTOR_BODY expands (base/variants.h). Functions made of them are compiled once for all models,
 * in models/products.c, and declared here.
 *
 * Compilers at -O2 do not keep arrays of vectors in registers, so the vectors of a group are named
 * one by one by macros: ALL(Q, R, M) is M(q, r) for all q < Q and r < R. The order of summation for
 * a column does not depend on the other columns of its group. */
#pragma once

#include "models/shared.h"

#define Q_1(M, r) M(0, r)
#define Q_2(M, r) Q_1(M, r) M(1, r)
#define Q_3(M, r) Q_2(M, r) M(2, r)
#define Q_4(M, r) Q_3(M, r) M(3, r)
#define R_1(QS, M) QS(M, 0)
#define R_2(QS, M) R_1(QS, M) QS(M, 1)
#define R_3(QS, M) R_2(QS, M) QS(M, 2)
#define R_4(QS, M) R_3(QS, M) QS(M, 3)
#define ALL(Q, R, M) R_##R(Q_##Q, M)
#define ALONG(R, M) R_##R(Q_1, M) /* M(0, r) for r < R */

/* ---- combinations: s_qr belongs to column q and the r-th vector of rows ---- */
#define START_ZERO(q, r) vec s##q##r = v_set(0);
#define START_FROM(q, r) vec s##q##r = v_load(from + at + r * V_LANES);
#define LOAD_X(q, r) const vec x##r = v_hold(v_load(x + j * TILE + at + r * V_LANES));
#define LOAD_WEIGHT(q, r) const vec w##q = v_set(weight[q * p + j]);
#define PLUS(q, r) s##q##r = v_fma(w##q, x##r, s##q##r);
#define MINUS(q, r) s##q##r = v_fnma(w##q, x##r, s##q##r);
#define KEEP(q, r) v_store(out + q * TILE + at + r * V_LANES, s##q##r);
#define LOAD_SQUARES(q, r) vec square##q = v_load(squares + q * LANES);
#define ADD_SQUARE(q, r) square##q = v_fma(s##q##r, s##q##r, square##q);
#define KEEP_SQUARES(q, r) v_store(squares + q * LANES, square##q);

/* For Q columns at once, with weights at weight + q * p and results at out + q * TILE, in the first
 * n rows of a tile (rounded up to whole vectors). DEFINE_COMBINE: out_q = x'weight_q.
 * DEFINE_RESIDUALS: out_q = from - x'weight_q; the squares are added to squares + q * LANES, one
 * partial sum per lane. */
#define DEFINE_COMBINE(Q, R)                                                                       \
  V_KERNEL void V(combine_##Q)(size_t n, size_t p, const real *weight, const real *x, real *out)   \
  {                                                                                                \
    for (size_t at = 0; at < n; at += R * V_LANES) {                                               \
      ALL(Q, R, START_ZERO)                                                                        \
      for (size_t j = 0; j < p; j++) { ALONG(R, LOAD_X) ALL(Q, 1, LOAD_WEIGHT) ALL(Q, R, PLUS) }   \
      ALL(Q, R, KEEP)                                                                              \
    }                                                                                              \
  }
#define DEFINE_RESIDUALS(Q, R)                                                                     \
  V_KERNEL void V(residuals_##Q)(size_t n, size_t p, const double *weight, const double *x,        \
                                 const double *from, double *out, double *squares)                 \
  {                                                                                                \
    ALL(Q, 1, LOAD_SQUARES)                                                                        \
    for (size_t at = 0; at < n; at += R * V_LANES) {                                               \
      ALL(Q, R, START_FROM)                                                                        \
      for (size_t j = 0; j < p; j++) { ALONG(R, LOAD_X) ALL(Q, 1, LOAD_WEIGHT) ALL(Q, R, MINUS) }  \
      ALL(Q, R, KEEP) ALL(Q, R, ADD_SQUARE)                                                        \
    }                                                                                              \
    ALL(Q, 1, KEEP_SQUARES)                                                                        \
  }

/* ---- sums of products: s_qj belongs to column q of a and column j of b ---- */
#define LOAD_A(q, j) const vec a##q = v_load(a + q * TILE + at);
#define LOAD_B(q, j) const vec b##j = v_hold(v_load(b + j * TILE + at));
#define ADD_PRODUCT(q, j) s##q##j = v_fma(a##q, b##j, s##q##j);
#define SUM_UP_1(q, r) v_add_sums(out + q * stride, 1, s##q##0, v_set(0), v_set(0), v_set(0));
#define SUM_UP_2(q, r) v_add_sums(out + q * stride, 2, s##q##0, s##q##1, v_set(0), v_set(0));
#define SUM_UP_3(q, r) v_add_sums(out + q * stride, 3, s##q##0, s##q##1, s##q##2, v_set(0));
#define SUM_UP_4(q, r) v_add_sums(out + q * stride, 4, s##q##0, s##q##1, s##q##2, s##q##3);

/* out[q * stride + j] += sum over the rows of a_q b_j, for Q columns of a and J columns of b.
 * a_step and b_step are the distances from one tile to the next. */
#define DEFINE_CROSS(Q, J)                                                                         \
  V_KERNEL void V(cross_##Q##J)(size_t n, const real *a, size_t a_step, const real *b,             \
                                size_t b_step, double *out, size_t stride)                         \
  {                                                                                                \
    ALL(Q, J, START_ZERO)                                                                          \
    for (size_t first = 0; first < n; first += TILE, a += a_step, b += b_step) {                   \
      const size_t here = n - first < TILE ? n - first : TILE;                                     \
      for (size_t at = 0; at < here; at += V_LANES) {                                              \
        ALL(Q, 1, LOAD_A) ALONG(J, LOAD_B) ALL(Q, J, ADD_PRODUCT)                                  \
      }                                                                                            \
    }                                                                                              \
    ALL(Q, 1, SUM_UP_##J)                                                                          \
  }
#define DEFINE_CROSSES(J)                                                                          \
  DEFINE_CROSS(1, J) DEFINE_CROSS(2, J) DEFINE_CROSS(3, J) DEFINE_CROSS(4, J)

typedef void (*le_residuals)(size_t n, size_t p, const double *weight, const double *x,
                             const double *from, double *out, double *squares);
enum { COLUMNS_TOGETHER = 4 };

/* out[q * stride + j] += sum over n rows of column q of a times column j of b, for any number of
 * columns of both. */
#define DECLARE_CROSS(suffix, number)                                                              \
  void le_cross_##suffix(size_t n, size_t columns, const number *a, size_t a_step, size_t others,  \
                         const number *b, size_t b_step, double *out, size_t stride);
DECLARE_CROSS(plain, double)
DECLARE_CROSS(plain_single, float)
#if LE_SIMD_X86
DECLARE_CROSS(avx2, double)
DECLARE_CROSS(avx2_single, float)
DECLARE_CROSS(avx512, double)
DECLARE_CROSS(avx512_single, float)
#endif

/* For the variant that an instance uses. */
typedef struct le_products {
  /* out_q = x'weight_q in n rows of a tile, for any number of columns; weights are p apart. */
  void (*combine)(size_t n, size_t columns, size_t p, const double *weight, const double *x,
                  double *out);
  /* y - x'weight_q of all tiles, which are `step` apart, for up to COLUMNS_TOGETHER columns; adds
   * their squares to `squares`, LANES partial sums for each column. */
  void (*residuals)(size_t n, size_t columns, size_t p, const double *weight, const double *x,
                    const double *y, size_t step, double *residual, double *squares);
  /* Adds to sums[j * others + k] the products of column j of x, times the weights of the n rows of
   * a tile, with column k of z; with `lower` at least those for k <= j. `weighted` is room for p
   * columns. */
  void (*weighted)(size_t n, size_t p, const double *weight, const double *x, size_t others,
                   const double *z, int lower, double *weighted, double *sums);
  void (*cross)(size_t n, size_t columns, const double *a, size_t a_step, size_t others,
                const double *b, size_t b_step, double *out, size_t stride);
} le_products;

const le_products *le_products_for(le_simd simd);

/* ---- derivatives by the coefficients of linear predictors ---- */

/* What they are made of: n rows of a model with d parameters, and room for sums over them. */
typedef struct le_sums {
  const le_products *products;
  size_t n, d;
  double *weighted, *sums; /* a tile of weighted covariates; products of columns */
} le_sums;

/* Columns of all tiles, which are `step` apart (0: they are the same in all tiles). */
typedef struct le_columns {
  const double *x;
  size_t step;
} le_columns;

static inline const double *le_in_tile(le_columns c, size_t t) { return c.x + t * c.step; }

/* The coefficients of a linear predictor: their place in theta and their columns. */
typedef struct le_block {
  size_t first, count;
  le_columns columns;
} le_block;

/* Adds the gradients of up to COLUMNS_TOGETHER particles, whose derivatives by the predictor are
 * one column each, times a factor for each particle (NULL: 1). */
void le_add_slopes(const le_sums *s, size_t particles, le_columns slopes, le_block to,
                   const double *factor, double *grad);
/* Adds to both triangles. Sums that overflow are left out: a climb may pass through points whose
 * density is practically zero, and the run must go on. */
void le_add_entry(double *hess, size_t d, size_t j, size_t k, double x);
/* Adds the second derivatives of two blocks, whose weights of rows are one column. */
void le_add_block(const le_sums *s, le_columns weight, le_block one, le_block two, double *hess);
