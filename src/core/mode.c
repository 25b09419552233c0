/* Where the curvature is not definite, a multiple of the information matrix (or of the diagonal) is added until it is;
 * steps are halved until the density rises. */
#include "core/mode.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { ITERATIONS_MOST = 60, HALVINGS_MOST = 30 };

void le_mode_alloc(le_mode *mode, size_t d, le_arena *arena)
{
  memset(mode, 0, sizeof *mode);
  mode->theta = le_arena_doubles(arena, d);
  mode->precision = le_arena_doubles(arena, d * d);
  mode->factor = le_arena_doubles(arena, d * d);
}

/* Gradient of log f and minus its second derivatives; `work` holds d * d + d. */
static le_status curvature(le_target *target, const double *theta, double *grad, double *precision, double *work)
{
  const size_t d = target->d;
  double *hess = work, *part = work + d * d;
  memset(precision, 0, d * d * sizeof(double));
  target->ops->log_prior_grad(target->model, 1, theta, grad);
  target->ops->log_prior_hess(target->model, theta, precision);
  for (int chunk = 0; chunk < 2; chunk++) {
    const size_t from = chunk ? target->seen : 0, to = chunk ? target->seen + target->chunk : target->seen;
    const double weight = chunk ? target->lambda : 1;
    if (to == from || weight == 0) continue;
    LE_TRY(le_target_log_lik_hess(target, from, to, theta, part, hess));
    for (size_t j = 0; j < d; j++) grad[j] += weight * part[j];
    for (size_t k = 0; k < d * d; k++) precision[k] += weight * hess[k];
  }
  for (size_t k = 0; k < d * d; k++) precision[k] = -precision[k];
  return LE_OK;
}

/* The factor of precision + ridge * diagonal, the smallest ridge that makes it definite. */
static int factorise(const double *precision, size_t d, double *factor)
{
  double scale = 0;
  for (size_t j = 0; j < d; j++) scale = fmax(scale, fabs(precision[j * d + j]));
  if (!(scale > 0) || !isfinite(scale)) scale = 1;
  double ridge = 0;
  for (int attempt = 0; attempt < 12; attempt++) {
    memcpy(factor, precision, d * d * sizeof(double));
    for (size_t j = 0; j < d; j++)
      factor[j * d + j] += ridge * (fabs(precision[j * d + j]) + 1e-3 * scale);
    if (le_cholesky(factor, d) == LE_OK) return attempt == 0;
    ridge = ridge == 0 ? 1e-3 : 4 * ridge;
  }
  memset(factor, 0, d * d * sizeof(double));
  for (size_t j = 0; j < d; j++) factor[j * d + j] = sqrt(scale);
  return 0;
}

le_status le_mode_climb(le_mode *mode, le_target *target, double *work)
{
  const size_t d = target->d;
  double *grad = work, *step = work + d, *trial = work + 2 * d, *rest = work + 3 * d;
  mode->converged = 0;
  LE_TRY(le_target_density(target, 1, mode->theta, &mode->log_density));
  for (mode->iterations = 0; mode->iterations < ITERATIONS_MOST; mode->iterations++) {
    LE_TRY(curvature(target, mode->theta, grad, mode->precision, rest));
    for (size_t j = 0; j < d; j++)
      if (!isfinite(grad[j])) return LE_OK;
    const int definite = factorise(mode->precision, d, mode->factor);
    memcpy(step, grad, d * sizeof(double));
    le_cholesky_solve(mode->factor, d, step);
    const double decrement = le_dot(step, grad, d);
    if (definite && decrement < 1e-6) {
      mode->converged = 1;
      return LE_OK;
    }
    double length = 1, value = -INFINITY;
    int halvings = 0;
    for (; halvings < HALVINGS_MOST; halvings++, length *= 0.5) {
      for (size_t j = 0; j < d; j++) trial[j] = mode->theta[j] + length * step[j];
      LE_TRY(le_target_density(target, 1, trial, &value));
      if (value >= mode->log_density + 1e-4 * length * decrement) break;
      /* on huge sums the last digits of the density say nothing any more: trust a small full step */
      if (definite && decrement < 1e-3 && value >= mode->log_density - 1e-9 * fabs(mode->log_density)) break;
    }
    if (halvings == HALVINGS_MOST) return LE_OK;
    memcpy(mode->theta, trial, d * sizeof(double));
    mode->log_density = value;
  }
  return LE_OK;
}
