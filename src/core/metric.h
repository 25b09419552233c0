/* The scale on which kernels move: a precision matrix P = L L' for which the target has about unit
 * covariance.
 *
 * With theta = a + L^-T z the target has unit scale in z: a velocity v in z moves theta by L^-T v,
 * and a gradient g in theta is L^-1 g in z. */
#pragma once

#include "base/arena.h"
#include "base/archive.h"

typedef enum le_metric_kind {
  LE_METRIC_IDENTITY,
  LE_METRIC_DIAGONAL,
  LE_METRIC_DENSE
} le_metric_kind;

typedef struct le_metric {
  size_t d; /* set once */
  le_metric_kind kind;
  const int *held; /* set once; NULL, or 1 for coordinates that no move changes */
  /* L, lower triangular; `factor`, `inverse` and `across` are for the dense kind only */
  double *factor;
  double *inverse; /* derived: L^-1, lower */
  double *across;  /* derived: transpose of L^-1, so that products run along its rows */
  double *scale;   /* 1 / sqrt(P_jj) for the diagonal kind, otherwise 1 */
  double *work;    /* scratch; 3 d x d + 2 d */
} le_metric;

/* Where `held` (NULL for none) is 1, L is that of the unit matrix for other coordinates, and
 * displacements and kicks are zero. */
void le_metric_alloc(le_metric *metric, size_t d, le_metric_kind kind, const int *held,
                     le_arena *arena);
/* From a precision matrix, which is not changed; on LE_NOT_POSITIVE the metric is unchanged. */
le_status le_metric_set_precision(le_metric *metric, const double *precision);
/* From weighted particles: their covariance, shrunk towards its diagonal by d / (d + effective
 * sample size) and, for coordinates that hardly vary, towards `prior_variance` (d numbers). If
 * prior_variance is NULL and there are more than 3 d particles, nothing is shrunk. */
le_status le_metric_set_particles(le_metric *metric, size_t m, const double *theta,
                                  const double *weight, const double *prior_variance);
void le_metric_drift(const le_metric *metric, const double *velocity, double *displacement);
/* The coordinates L' theta, in which the target has about unit covariance. */
void le_metric_whiten(const le_metric *metric, const double *theta, double *z);
void le_metric_kick(const le_metric *metric, const double *gradient, double *kick);
void le_metric_archive(le_metric *metric, le_archive *archive);
/* Writes a metric as le_metric_size() numbers and reads it; on LE_NOT_POSITIVE the metric is
 * unchanged. */
size_t le_metric_size(const le_metric *metric);
void le_metric_write(const le_metric *metric, double *values);
le_status le_metric_read(le_metric *metric, const double *values);
