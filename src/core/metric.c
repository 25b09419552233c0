/* Metrics for kernels. Both triangular factors are kept, because with many particles products
 * are cheaper than repeated substitutions. Each kind of metric stores only the factors that it
 * needs. */
#include "core/metric.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

static int is_held(const le_metric *metric, size_t j)
{
  return metric->held && metric->held[j];
}

void le_metric_alloc(le_metric *metric, size_t d, le_metric_kind kind, const int *held,
                     le_arena *arena)
{
  metric->d = d;
  metric->kind = kind;
  metric->held = held;
  metric->scale = le_arena_doubles(arena, d);
  metric->work = le_arena_doubles(arena, 3 * d * d + 2 * d);
  if (kind == LE_METRIC_DENSE) {
    metric->factor = le_arena_doubles(arena, d * d);
    metric->inverse = le_arena_doubles(arena, d * d);
    metric->across = le_arena_doubles(arena, d * d);
  }
  if (arena->failed) return;
  for (size_t j = 0; j < d; j++) metric->scale[j] = !is_held(metric, j);
  if (kind != LE_METRIC_DENSE) return;
  for (size_t j = 0; j < d; j++) {
    metric->factor[j * d + j] = 1;
    metric->inverse[j * d + j] = metric->across[j * d + j] = metric->scale[j];
  }
}

/* Computes the inverse of the factor, and its transpose. */
static void invert(le_metric *metric)
{
  const size_t d = metric->d;
  le_lower_inverse(metric->factor, d, metric->inverse);
  for (size_t j = 0; j < d; j++)
    if (is_held(metric, j)) metric->inverse[j * d + j] = 0;
  le_transpose(metric->inverse, d, metric->across);
}

/* Makes rows and columns of a symmetric matrix those of the unit matrix where nothing moves. */
static void separate_held(const le_metric *metric, double *matrix)
{
  const size_t d = metric->d;
  for (size_t j = 0; j < d; j++) {
    if (!is_held(metric, j)) continue;
    for (size_t k = 0; k < d; k++) matrix[j * d + k] = matrix[k * d + j] = 0;
    matrix[j * d + j] = 1;
  }
}

le_status le_metric_set_precision(le_metric *metric, const double *precision)
{
  const size_t d = metric->d;
  for (size_t j = 0; j < d; j++)
    if (!(precision[j * d + j] > 0)) return LE_NOT_POSITIVE;
  if (metric->kind == LE_METRIC_DENSE) {
    memcpy(metric->work, precision, d * d * sizeof(double));
    separate_held(metric, metric->work);
    LE_TRY(le_cholesky(metric->work, d));
    memcpy(metric->factor, metric->work, d * d * sizeof(double));
    invert(metric);
  } else if (metric->kind == LE_METRIC_DIAGONAL) {
    for (size_t j = 0; j < d; j++)
      if (!is_held(metric, j)) metric->scale[j] = 1 / sqrt(precision[j * d + j]);
  }
  return LE_OK;
}

le_status le_metric_set_particles(le_metric *metric, size_t m, const double *theta,
                                  const double *weight, const double *prior_variance)
{
  const size_t d = metric->d;
  if (metric->kind == LE_METRIC_IDENTITY) return LE_OK;
  double *covariance = metric->work, *work = covariance + d * d, *mean = work + 2 * d * d;
  const double number = le_moments(m, d, d, theta, weight, mean, covariance, work),
               effective = number > 0 ? number : 1;
  const double bessel = effective > 1.5 ? effective / (effective - 1) : 3;
  /* without shrinkage the covariance is equivariant under linear maps, so ill-conditioned
   * posteriors are no problem */
  const int enough = !prior_variance && effective > 3 * (double)d;
  const double shrink = enough ? 0 : (double)d / ((double)d + effective),
               floor_share = 1 / (1 + effective);
  for (size_t j = 0; j < d; j++) {
    double *row = covariance + j * d, own = row[j] * bessel;
    for (size_t k = 0; k < j; k++) row[k] *= bessel * (1 - shrink);
    if (prior_variance)
      own = (1 - 0.01 * floor_share) * own + 1e-4 * floor_share * prior_variance[j];
    row[j] = own + 1e-300;
  }
  separate_held(metric, covariance);
  if (metric->kind == LE_METRIC_DENSE) LE_TRY(le_invert(covariance, d, work));
  else for (size_t j = 0; j < d; j++) covariance[j * d + j] = 1 / covariance[j * d + j];
  memcpy(work, covariance, d * d * sizeof(double));
  return le_metric_set_precision(metric, work);
}

/* For the kinds that are not dense. The scale of the identity is 1. */
static void scale_each(const le_metric *metric, const double *from, double *to)
{
  for (size_t j = 0; j < metric->d; j++) to[j] = metric->scale[j] * from[j];
}

void le_metric_drift(const le_metric *metric, const double *velocity, double *displacement)
{
  if (metric->kind != LE_METRIC_DENSE) scale_each(metric, velocity, displacement);
  else le_lower_transpose_matvec(metric->inverse, metric->d, velocity, displacement);
}

void le_metric_kick(const le_metric *metric, const double *gradient, double *kick)
{
  if (metric->kind != LE_METRIC_DENSE) scale_each(metric, gradient, kick);
  else le_upper_transpose_matvec(metric->across, metric->d, gradient, kick);
}

void le_metric_whiten(const le_metric *metric, const double *theta, double *z)
{
  const size_t d = metric->d;
  if (metric->kind == LE_METRIC_DENSE) le_lower_transpose_matvec(metric->factor, d, theta, z);
  else for (size_t j = 0; j < d; j++) z[j] = theta[j] / (metric->scale[j] + is_held(metric, j));
}

void le_metric_archive(le_metric *metric, le_archive *archive)
{
  LE_ARCHIVE_WHOLE(archive, metric);
  le_archive_expect(archive, (uint64_t)metric->kind);
  le_archive_doubles(archive, metric->scale, metric->d);
  if (metric->kind != LE_METRIC_DENSE) return;
  le_archive_doubles(archive, metric->factor, metric->d * metric->d);
  if (!archive->writing) invert(metric);
}

/* The diagonal kind stores its scale, the dense kind the lower triangle of its factor, the identity
 * nothing. */
size_t le_metric_size(const le_metric *metric)
{
  const size_t d = metric->d;
  return metric->kind == LE_METRIC_DENSE      ? d * (d + 1) / 2
         : metric->kind == LE_METRIC_DIAGONAL ? d
                                              : 0;
}

void le_metric_write(const le_metric *metric, double *values)
{
  const size_t d = metric->d;
  if (metric->kind == LE_METRIC_DIAGONAL) memcpy(values, metric->scale, d * sizeof(double));
  if (metric->kind != LE_METRIC_DENSE) return;
  for (size_t i = 0; i < d; i++, values += i)
    memcpy(values, metric->factor + i * d, (i + 1) * sizeof(double));
}

le_status le_metric_read(le_metric *metric, const double *values)
{
  const size_t d = metric->d;
  const int dense = metric->kind == LE_METRIC_DENSE;
  if (metric->kind == LE_METRIC_IDENTITY) return LE_OK;
  for (size_t i = 0; i < d; i++)
    if (!(values[dense ? i * (i + 3) / 2 : i] > 0) && (dense || !is_held(metric, i)))
      return LE_NOT_POSITIVE;
  if (dense) {
    for (size_t i = 0; i < d; i++, values += i)
      memcpy(metric->factor + i * d, values, (i + 1) * sizeof(double));
    invert(metric);
  } else {
    memcpy(metric->scale, values, d * sizeof(double));
  }
  return LE_OK;
}
