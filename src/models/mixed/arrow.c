/* Factors of the curvature of effects (models/mixed/arrow.h). */
#include "models/mixed/arrow.h"

#include "base/linalg.h"

#include <math.h>

enum { EFFECTS_MOST = 64 }; /* of a level */

size_t le_arrow_size(size_t q, size_t levels, size_t rest)
{
  return levels * q * (q + rest) + rest * rest + rest;
}

void le_arrow_place(arrow *h, size_t q, size_t levels, size_t rest, double *room)
{
  *h = (arrow){.q = q, .levels = levels, .split = q * levels, .dim = q * levels + rest,
               .rest = rest};
  h->own = room;
  h->shared = h->own + h->split * q;
  h->others = h->shared + h->split * rest;
  h->used = (size_t *)(h->others + rest * rest); /* no larger than a double */
}

void le_arrow_begin(arrow *h, double diagonal)
{
  memset(h->own, 0, h->split * h->q * sizeof *h->own);
  memset(h->shared, 0, h->split * h->rest * sizeof *h->shared);
  memset(h->others, 0, h->rest * h->rest * sizeof *h->others);
  for (size_t j = 0; j < h->split; j++) h->own[j * h->q + j % h->q] = diagonal;
  for (size_t j = 0; j < h->rest; j++) h->others[j * h->rest + j] = diagonal;
}

void le_arrow_add(arrow *h, size_t j, size_t k, double x)
{
  if (j > k) {
    const size_t other = j;
    j = k;
    k = other;
  }
  if (k < h->split) h->own[k * h->q + j % h->q] += x;
  else if (j < h->split) h->shared[j * h->rest + k - h->split] += x;
  else h->others[(k - h->split) * h->rest + j - h->split] += x;
}

/* Most levels have one effect: without calls, twice as fast. */
static int root_of(double *own, size_t q)
{
  if (q > 1) return le_cholesky(own, q) == LE_OK;
  if (!(*own > 0)) return 0;
  *own = sqrt(*own);
  return 1;
}

static void lower_solve(const double *lower, size_t d, double *x)
{
  if (d == 1) {
    *x /= *lower;
    return;
  }
  for (size_t i = 0; i < d; i++) {
    x[i] -= le_dot(lower + i * d, x, i);
    x[i] /= lower[i * d + i];
  }
}

/* Subtracts what the elimination of a level adds to the others: the outer products of its rows,
 * which are zero but in the columns `used`. */
static void eliminate(arrow *h, const double *shared, size_t many)
{
  const size_t rest = h->rest;
  for (size_t j = 0; j < h->q; j++) {
    const double *x = shared + j * rest;
    for (size_t a = 0; a < many; a++) {
      double *row = h->others + h->used[a] * rest;
      const double factor = -x[h->used[a]];
      if (many == rest) le_add_scaled(a + 1, factor, x, row);
      else
        for (size_t b = 0; b <= a; b++) row[h->used[b]] += factor * x[h->used[b]];
    }
  }
}

/* A product of the diagonal of many factors: one logarithm for as many as a double can hold. */
typedef struct product {
  double value, log;
} product;

static void multiply(product *all, const double *root, size_t q)
{
  enum { EXPONENT_MOST = 400 };
  for (size_t j = 0; j < q; j++) {
    int exponent;
    all->value *= root[j * q + j];
    frexp(all->value, &exponent);
    if (abs(exponent) > EXPONENT_MOST) {
      all->log += log(all->value);
      all->value = 1;
    }
  }
}

int le_arrow_factorise(arrow *h)
{
  const size_t q = h->q, rest = h->rest;
  product det = {1, 0};
  for (size_t l = 0; l < h->levels; l++) {
    double *own = h->own + l * q * q, *shared = h->shared + l * q * rest;
    if (!root_of(own, q)) return 0;
    multiply(&det, own, q);
    size_t many = 0;
    for (size_t k = 0; k < rest; k++) {
      double column[EFFECTS_MOST], any = 0;
      for (size_t j = 0; j < q; j++) any += fabs(column[j] = shared[j * rest + k]);
      if (any == 0) continue;
      lower_solve(own, q, column);
      for (size_t j = 0; j < q; j++) shared[j * rest + k] = column[j];
      h->used[many++] = k;
    }
    eliminate(h, shared, many);
  }
  if (rest > 0) {
    if (le_cholesky(h->others, rest) != LE_OK) return 0;
    multiply(&det, h->others, rest);
  }
  h->half_log_det = det.log + log(det.value);
  return isfinite(h->half_log_det);
}

void le_arrow_gather(const arrow *h, double *x)
{
  double *last = x + h->split;
  for (size_t l = 0; l < h->levels; l++) lower_solve(h->own + l * h->q * h->q, h->q, x + l * h->q);
  if (h->rest == 0) return;
  for (size_t j = 0; j < h->split; j++)
    le_add_scaled(h->rest, -x[j], h->shared + j * h->rest, last);
  lower_solve(h->others, h->rest, last);
}

void le_arrow_spread(const arrow *h, double *x)
{
  double *last = x + h->split;
  if (h->rest > 0) {
    le_lower_transpose_solve(h->others, h->rest, last);
    for (size_t j = 0; j < h->split; j++) x[j] -= le_dot(h->shared + j * h->rest, last, h->rest);
  }
  for (size_t l = 0; l < h->levels; l++)
    le_lower_transpose_solve(h->own + l * h->q * h->q, h->q, x + l * h->q);
}
