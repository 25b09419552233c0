/* Own code, because GSL's Cholesky factor takes five times as long for tens of rows, and its
 * products do not use that half of a triangular matrix is zero. */
#include "base/linalg.h"

#include <math.h>
#include <string.h>

/* The entries of a matrix that may differ from zero. */
typedef enum triangle { BOTH, LOWER, UPPER } triangle;

#define VECTOR_BODY "base/linalg_body.h"
#include "base/variants.h"

double le_cholesky_half_log_det(const double *factor, size_t d)
{
  double sum = 0;
  for (size_t i = 0; i < d; i++) sum += log(factor[i * d + i]);
  return sum;
}

void le_transpose(const double *a, size_t d, double *across)
{
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++) across[j * d + i] = a[i * d + j];
}

void le_lower_transpose_solve(const double *lower, size_t d, double *x)
{
  for (size_t i = d; i-- > 0;) {
    const double solved = x[i] / lower[i * d + i];
    for (size_t k = 0; k < i; k++) x[k] -= solved * lower[i * d + k];
    x[i] = solved;
  }
}

void le_cholesky_solve(const double *factor, size_t d, double *x)
{
  for (size_t i = 0; i < d; i++) {
    double sum = x[i];
    for (size_t k = 0; k < i; k++) sum -= factor[i * d + k] * x[k];
    x[i] = sum / factor[i * d + i];
  }
  le_lower_transpose_solve(factor, d, x);
}

typedef struct functions {
  int (*cholesky)(double *a, size_t d, size_t from, size_t to);
  double (*dot)(const double *x, const double *y, size_t d);
  void (*add_scaled)(size_t n, double factor, const double *x, double *y);
  void (*add_matvec)(triangle filled, const double *a, size_t d, size_t n, const double *x,
                     double *y);
} functions;

#define FUNCTIONS(variant)                                                                         \
  {cholesky_##variant, dot_##variant, add_scaled_##variant, add_matvec_##variant}
static const functions table[] = TABLES(FUNCTIONS);

le_status le_cholesky(double *a, size_t d) { return le_cholesky_watched(a, d, NULL, NULL); }

enum { WATCHED_PRODUCTS = 20000000 }; /* between two calls of `stop`, a few milliseconds */

/* Only the lower triangle of `a` is read. */
le_status le_cholesky_watched(double *a, size_t d, int (*stop)(void *payload), void *payload)
{
  for (size_t i = 0; i < d; i++)
    for (size_t j = i + 1; j < d; j++) a[i * d + j] = a[j * d + i];
  int positive = 1;
  for (size_t from = 0, to; positive && from < d; from = to) {
    /* row i takes i (d - i) products */
    size_t products = 0;
    for (to = from; to < d && products < WATCHED_PRODUCTS; to++) products += to * (d - to);
    if (from > 0 && stop && stop(payload)) return LE_INTERRUPTED;
    positive = table[le_simd_level()].cholesky(a, d, from, to);
  }
  for (size_t i = 0; i < d; i++)
    for (size_t j = i + 1; j < d; j++) a[i * d + j] = 0;
  return positive ? LE_OK : LE_NOT_POSITIVE;
}

double le_dot(const double *x, const double *y, size_t d)
{
  return table[le_simd_level()].dot(x, y, d);
}

void le_add_scaled(size_t n, double factor, const double *x, double *y)
{
  table[le_simd_level()].add_scaled(n, factor, x, y);
}

void le_add_symmetric_matvec(const double *a, size_t d, const double *x, double *y)
{
  table[le_simd_level()].add_matvec(BOTH, a, d, d, x, y);
}

void le_lower_matvec(const double *lower, size_t d, const double *x, double *y)
{
  for (size_t i = 0; i < d; i++) y[i] = le_dot(lower + i * d, x, i + 1);
}

void le_lower_transpose_matvec(const double *lower, size_t d, const double *x, double *y)
{
  memset(y, 0, d * sizeof(double));
  table[le_simd_level()].add_matvec(LOWER, lower, d, d, x, y);
}

void le_upper_transpose_matvec(const double *upper, size_t d, const double *x, double *y)
{
  memset(y, 0, d * sizeof(double));
  table[le_simd_level()].add_matvec(UPPER, upper, d, d, x, y);
}

double le_quadratic_form(const double *a, size_t d, const double *x, double *work)
{
  memset(work, 0, d * sizeof(double));
  le_add_symmetric_matvec(a, d, x, work);
  return le_dot(x, work, d);
}

/* Row i of the inverse from the rows above: minus their combination by row i of the factor, over
 * its diagonal entry. */
void le_lower_inverse(const double *factor, size_t d, double *inverse)
{
  memset(inverse, 0, d * d * sizeof(double));
  for (size_t i = 0; i < d; i++) {
    double *row = inverse + i * d;
    table[le_simd_level()].add_matvec(LOWER, inverse, d, i, factor + i * d, row);
    for (size_t j = 0; j < i; j++) row[j] /= -factor[i * d + i];
    row[i] = 1 / factor[i * d + i];
  }
}

void le_lower_gram(const double *lower, size_t d, double *gram)
{
  memset(gram, 0, d * d * sizeof(double));
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++)
      le_add_scaled(j + 1, lower[i * d + j], lower + i * d, gram + j * d);
  for (size_t j = 0; j < d; j++)
    for (size_t k = 0; k < j; k++) gram[k * d + j] = gram[j * d + k];
}

le_status le_invert(double *a, size_t d, double *work)
{
  LE_TRY(le_cholesky(a, d));
  le_lower_inverse(a, d, work);
  le_lower_gram(work, d, a);
  return LE_OK;
}

double le_moments(size_t n, size_t d, size_t stride, const double *x, const double *weight,
                  double *mean, double *covariance, double *work)
{
  double total = 0, squares = 0;
  memset(mean, 0, d * sizeof(double));
  memset(covariance, 0, d * d * sizeof(double));
  for (size_t i = 0; i < n; i++) {
    const double w = weight ? weight[i] : 1;
    total += w;
    squares += w * w;
    le_add_scaled(d, w, x + i * stride, mean);
  }
  if (!(total > 0)) return 0;
  for (size_t j = 0; j < d; j++) mean[j] /= total;
  for (size_t i = 0; i < n; i++) {
    const double share = (weight ? weight[i] : 1) / total;
    if (!(share > 0)) continue;
    for (size_t j = 0; j < d; j++) work[j] = x[i * stride + j] - mean[j];
    for (size_t j = 0; j < d; j++)
      le_add_scaled(j + 1, share * work[j], work, covariance + j * d);
  }
  return total * total / squares;
}
