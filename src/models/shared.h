/* What the models share, so that each of their files holds mathematics alone: the readers of their settings, the
 * tile kernels of those that resemble regressions and mixtures, and the way a block's result is added.  The kernels
 * are what vectorising will replace.
 *
 * Rows are transposed once per call into tiles of TILE rows, a column behind the other, and the last tile is filled
 * up with zeros.  Loops over a tile then have a constant length and no dependence between rows: a sum over rows is
 * kept as LANES partial sums until the particle is done. */
#ifndef LE_MODELS_SHARED_H
#define LE_MODELS_SHARED_H

#include "logevidence.h"

#include <math.h>

#define HALF_LOG_2PI 0.91893853320467274178
#define MOST_COVARIATES 100000

/* ---- settings: each returns 0 and leaves a sentence where the setting is not what it must be ---- */

/* A whole number from `least` to `most`, which must be there. */
int le_read_count(const le_args *args, const char *name, size_t least, size_t most, size_t *count, char *message);
/* One number, which then serves everywhere, or n of them, all finite and above `above`. */
int le_read_numbers(const le_args *args, const char *name, double fallback, double above, size_t n, double *number,
                    char *message);

/* ---- tiles ---- */

enum { TILE = 64, LANES = 8 };

static inline size_t tiles_of(size_t n) { return (n + TILE - 1) / TILE; }

static inline size_t rows_in_tile(size_t n, size_t t) { return n - t * TILE < TILE ? n - t * TILE : TILE; }

/* Tile t of the first `columns` numbers of each row. */
static inline void fill_tile(const le_rows *rows, size_t t, size_t columns, double *restrict tile)
{
  const size_t here = rows_in_tile(rows->n, t);
  const double *values = rows->values + t * TILE * rows->width;
  for (size_t j = 0; j < columns; j++, tile += TILE) {
    for (size_t r = 0; r < here; r++) tile[r] = values[r * rows->width + j];
    for (size_t r = here; r < TILE; r++) tile[r] = 0;
  }
}

/* out = weight' x, row by row. */
static inline void combine(double *restrict out, size_t p, const double *weight, const double *restrict x)
{
  for (size_t r = 0; r < TILE; r++) out[r] = weight[0] * x[r];
  size_t j = 1;
  for (; j + 4 <= p; j += 4) {
    double a = weight[j], b = weight[j + 1], c = weight[j + 2], d = weight[j + 3];
    const double *restrict column = x + j * TILE;
    for (size_t r = 0; r < TILE; r++)
      out[r] += (a * column[r] + b * column[r + TILE]) + (c * column[r + 2 * TILE] + d * column[r + 3 * TILE]);
  }
  for (; j < p; j++) {
    double a = weight[j];
    const double *restrict column = x + j * TILE;
    for (size_t r = 0; r < TILE; r++) out[r] += a * column[r];
  }
}

static inline void raise_to(double *restrict top, const double *restrict x)
{
  for (size_t r = 0; r < TILE; r++) top[r] = x[r] > top[r] ? x[r] : top[r];
}

/* x = exp(x - top) in the first n rows, and `filler` in those that only fill the tile. */
static inline void exponentiate(size_t n, double *restrict x, const double *restrict top, double filler)
{
  for (size_t r = 0; r < TILE; r++) x[r] -= top[r];
  for (size_t r = 0; r < n; r++) x[r] = exp(x[r]);
  for (size_t r = n; r < TILE; r++) x[r] = filler;
}

static inline void add(double *restrict out, const double *restrict x)
{
  for (size_t r = 0; r < TILE; r++) out[r] += x[r];
}

static inline void multiply(double *restrict out, const double *restrict x)
{
  for (size_t r = 0; r < TILE; r++) out[r] *= x[r];
}

static inline void fold(double *restrict lanes, const double *restrict a)
{
  for (size_t l = 0; l < LANES; l++)
    lanes[l] += ((a[l] + a[l + 8]) + (a[l + 16] + a[l + 24])) + ((a[l + 32] + a[l + 40]) + (a[l + 48] + a[l + 56]));
}

/* The one kernel that is not inline: within its callers gcc makes slower code of it. */
void le_fold_products(double *restrict lanes, const double *restrict a, const double *restrict b);

static inline double sum_lanes(const double *lanes)
{
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static inline double dot_tile(const double *a, const double *b)
{
  double lanes[LANES] = {0};
  le_fold_products(lanes, a, b);
  return sum_lanes(lanes);
}

/* The sum of the logs, as the logs of products of eight, which must not overflow: each factor is a normalising sum,
 * at most the number of its terms, and at least one unless it is zero. */
static inline double sum_log(const double *restrict a)
{
  double product[LANES], sum = 0;
  for (size_t l = 0; l < LANES; l++)
    product[l] = ((a[l] * a[l + 8]) * (a[l + 16] * a[l + 24])) * ((a[l + 32] * a[l + 40]) * (a[l + 48] * a[l + 56]));
  for (size_t l = 0; l < LANES; l++) sum += log(product[l]);
  return sum;
}

/* ---- results ---- */

static inline void add_value(double sum, double *value)
{
  *value += sum < INFINITY ? sum : -INFINITY; /* not a number counts as impossible */
}

static inline void add_finite(double x, double *sum) { *sum += isfinite(x) ? x : 0; }

#endif
