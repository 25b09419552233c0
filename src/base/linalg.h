/* Dense linear algebra on small row-major symmetric matrices, d x d. */
#pragma once

#include "base/status.h"

/* Replaces a by its lower Cholesky factor L (upper triangle cleared); LE_NOT_POSITIVE leaves `a`
 * undefined. */
le_status le_cholesky(double *a, size_t d);
/* The same, but calls `stop` (if not NULL) from time to time and returns LE_INTERRUPTED if the
 * answer is not 0. */
le_status le_cholesky_watched(double *a, size_t d, int (*stop)(void *payload), void *payload);
/* Sum of the log diagonal entries: half the log determinant of L L'. */
double le_cholesky_half_log_det(const double *factor, size_t d);
/* Inverse of the lower triangular factor: inverse[i][j], j <= i, upper triangle cleared. */
void le_lower_inverse(const double *factor, size_t d, double *inverse);
/* L'L, the inverse of A if L is that of its Cholesky factor */
void le_lower_gram(const double *lower, size_t d, double *gram);
void le_transpose(const double *a, size_t d, double *across);
/* Replaces a positive definite matrix, of which only the lower triangle is read, by its inverse;
 * LE_NOT_POSITIVE leaves it undefined. `work` holds d x d numbers. */
le_status le_invert(double *a, size_t d, double *work);
/* x -> L'^-1 x and (L L')^-1 x */
void le_lower_transpose_solve(const double *lower, size_t d, double *x);
void le_cholesky_solve(const double *factor, size_t d, double *x);
/* y += A x for a symmetric matrix with both triangles filled; y = L x and y = L' x for a lower
 * triangular matrix whose upper triangle is zero. */
void le_add_symmetric_matvec(const double *a, size_t d, const double *x, double *y);
void le_lower_matvec(const double *lower, size_t d, const double *x, double *y);
void le_lower_transpose_matvec(const double *lower, size_t d, const double *x, double *y);
/* The same product L x from U = L', which is faster because it uses many columns at a time. */
void le_upper_transpose_matvec(const double *upper, size_t d, const double *x, double *y);
double le_dot(const double *x, const double *y, size_t d);
/* y += factor x, n numbers */
void le_add_scaled(size_t n, double factor, const double *x, double *y);
/* x' A x */
double le_quadratic_form(const double *a, size_t d, const double *x, double *work);
/* Mean of weighted points, which are `stride` numbers apart, and the lower triangle of their
 * covariance. Returns the effective number of points, 0 if the weights are zero; weights are equal
 * if they are NULL. `work` holds d numbers. */
double le_moments(size_t n, size_t d, size_t stride, const double *x, const double *weight,
                  double *mean, double *covariance, double *work);
