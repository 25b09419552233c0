/* Code shared by the models, so that their files contain mathematics only: readers of settings, the
 * tiles that vectorised kernels work on, and adding the result of a block.
 *
 * Rows are transposed once per call into tiles of TILE rows, one column after another; the last
 * tile is filled with zeros. A vector is then a few rows of one column, which are independent of
 * each other. A sum over rows is kept as at most LANES partial sums until the particle is
 * finished. */
#pragma once

#include "base/arrays.h"
#include "logevidence.h"

#include <math.h>

#define HALF_LOG_2PI 0.91893853320467274178
#define MOST_COVARIATES 100000

/* ---- settings: each function returns 0 and writes a message if the setting is invalid ---- */

/* A required whole number from `least` to `most`. */
int le_read_count(const le_args *args, const char *name, size_t least, size_t most, size_t *count,
                  char *message);
/* One number, which is then used n times, or n numbers, all finite and above `above`; and number j
 * of these. */
int le_read_numbers(const le_args *args, const char *name, double fallback, double above, size_t n,
                    double *number, char *message);
int le_read_number(const le_args *args, const char *name, double fallback, double above, size_t n,
                   size_t j, double *number, char *message);
/* Whether n numbers are all whole numbers from 0 to k - 1. */
int le_all_codes(const double *x, size_t n, size_t k);

/* ---- tiles ---- */

enum { TILE = 64, LANES = 8 };

static inline size_t tiles_of(size_t n) { return (n + TILE - 1) / TILE; }

static inline size_t rows_in_tile(size_t n, size_t t)
{
  return n - t * TILE < TILE ? n - t * TILE : TILE;
}

/* The number of tiles of `each` doubles that fit into `most`; at least one. Shares of classes or
 * components are kept for as many tiles at once as fit in the L1 cache. */
enum { SHARES_MOST = 4096 };

static inline size_t tiles_together(size_t most, size_t each, size_t n)
{
  const size_t fit = most / TILE / each, all = tiles_of(n);
  return fit < 1 || all < 1 ? 1 : fit < all ? fit : all;
}

/* If `together` tiles are processed at a time: the end of the group that begins at tile t, and its
 * number of rows. */
static inline size_t last_tile(size_t n, size_t together, size_t t)
{
  const size_t all = tiles_of(n);
  return t + together < all ? t + together : all;
}

static inline size_t rows_between(size_t n, size_t together, size_t t)
{
  const size_t end = last_tile(n, together, t) * TILE;
  return (end < n ? end : n) - t * TILE;
}

/* All tiles of the first `columns` numbers of each row, one after another. */
static inline void fill_tiles(le_simd simd, const le_rows *rows, size_t columns, double *tiles)
{
  for (size_t t = 0; t < tiles_of(rows->n); t++)
    le_arrays(simd)->columns(rows_in_tile(rows->n, t), rows->width, columns,
                             rows->values + t * TILE * rows->width, tiles + t * columns * TILE,
                             TILE);
}

static inline double sum_lanes(const double *lanes)
{
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* Gradients without values are in single precision, unless exponents are sums of terms so large
 * (root of the sum of squares) that digits after the fourth would be lost. */
#define SINGLE_MOST 128.0

/* The number of doubles that hold n floats. */
static inline size_t room_for_floats(size_t n) { return n / 2 + 1; }

/* ---- results ---- */

static inline void add_value(double sum, double *value)
{
  *value += sum < INFINITY ? sum : -INFINITY; /* NaN is treated as impossible */
}

static inline void add_finite(double x, double *sum) { *sum += isfinite(x) ? x : 0; }
