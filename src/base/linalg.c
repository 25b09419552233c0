/* Cholesky by GSL; products by hand, since half of a triangular matrix is known to be zero. */
#include "base/linalg.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>

#define VECTOR_BODY "base/linalg_body.h"
#include "base/variants.h"

le_status le_cholesky(double *a, size_t d)
{
  for (size_t i = 0; i < d * d; i++)
    if (!isfinite(a[i])) return LE_NOT_POSITIVE;
  gsl_matrix_view view = gsl_matrix_view_array(a, d, d);
  if (gsl_linalg_cholesky_decomp1(&view.matrix) != GSL_SUCCESS) return LE_NOT_POSITIVE;
  for (size_t i = 0; i < d; i++) {
    if (!(a[i * d + i] > 0) || !isfinite(a[i * d + i])) return LE_NOT_POSITIVE;
    for (size_t j = i + 1; j < d; j++) a[i * d + j] = 0;
  }
  return LE_OK;
}

double le_cholesky_half_log_det(const double *factor, size_t d)
{
  double sum = 0;
  for (size_t i = 0; i < d; i++) sum += log(factor[i * d + i]);
  return sum;
}

void le_lower_inverse(const double *factor, size_t d, double *inverse)
{
  for (size_t j = 0; j < d; j++) {
    for (size_t i = 0; i < j; i++) inverse[i * d + j] = 0;
    inverse[j * d + j] = 1 / factor[j * d + j];
    for (size_t i = j + 1; i < d; i++) {
      double sum = 0;
      for (size_t k = j; k < i; k++) sum += factor[i * d + k] * inverse[k * d + j];
      inverse[i * d + j] = -sum / factor[i * d + i];
    }
  }
}

void le_cholesky_solve(const double *factor, size_t d, double *x)
{
  for (size_t i = 0; i < d; i++) {
    double sum = x[i];
    for (size_t k = 0; k < i; k++) sum -= factor[i * d + k] * x[k];
    x[i] = sum / factor[i * d + i];
  }
  for (size_t i = d; i-- > 0;) {
    double sum = x[i];
    for (size_t k = i + 1; k < d; k++) sum -= factor[k * d + i] * x[k];
    x[i] = sum / factor[i * d + i];
  }
}

typedef struct functions {
  double (*dot)(const double *x, const double *y, size_t d);
  void (*matvec)(const double *a, size_t d, const double *x, double *y);
  void (*lower_transpose_matvec)(const double *lower, size_t d, const double *x, double *y);
  void (*upper_transpose_matvec)(const double *upper, size_t d, const double *x, double *y);
} functions;

#define FUNCTIONS(variant)                                                                             \
  {                                                                                                    \
    dot_##variant, matvec_##variant, lower_transpose_matvec_##variant, upper_transpose_matvec_##variant \
  }
static const functions table[] = TABLES(FUNCTIONS);

double le_dot(const double *x, const double *y, size_t d) { return table[le_simd_level()].dot(x, y, d); }

void le_matvec(const double *a, size_t d, const double *x, double *y)
{
  table[le_simd_level()].matvec(a, d, x, y);
}

void le_lower_matvec(const double *lower, size_t d, const double *x, double *y)
{
  for (size_t i = 0; i < d; i++) y[i] = le_dot(lower + i * d, x, i + 1);
}

void le_lower_transpose_matvec(const double *lower, size_t d, const double *x, double *y)
{
  table[le_simd_level()].lower_transpose_matvec(lower, d, x, y);
}

double le_quadratic_form(const double *a, size_t d, const double *x, double *work)
{
  le_matvec(a, d, x, work);
  return le_dot(x, work, d);
}

void le_upper_transpose_matvec(const double *upper, size_t d, const double *x, double *y)
{
  table[le_simd_level()].upper_transpose_matvec(upper, d, x, y);
}
