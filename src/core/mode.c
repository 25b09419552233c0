/* Newton's method for posterior modes. Where the curvature is not positive definite, a multiple of
 * the information matrix (or of the diagonal) is added until it is; steps are halved until the
 * density increases. */
#include "core/mode.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { ITERATIONS_MOST = 60, HALVINGS_MOST = 30 };
/* A climb ends where STILL steps in succession would raise the density by less than NOTHING and
 * the curvature is not positive definite: on a level ridge, or at a saddle point. */
enum { STILL = 8 };
static const double NOTHING = 1e-12;
static const double log_two_pi = 1.8378770664093454836;

static size_t mode_size(size_t d) { return 4 * d + 2 * d * d; }

void le_mode_alloc(le_mode *mode, size_t d, le_arena *arena)
{
  double *block = le_arena_doubles(arena, mode_size(d));
  memset(mode, 0, sizeof *mode);
  if (!block) return;
  mode->theta = block;
  mode->grad = block + d;
  mode->scale = block + 2 * d;
  mode->centre = block + 3 * d;
  mode->precision = block + 4 * d;
  mode->factor = block + 4 * d + d * d;
  mode->free = d;
  for (size_t j = 0; j < d; j++) mode->scale[j] = 1;
}

void le_mode_swap(le_mode *a, le_mode *b)
{
  const le_mode kept = *a;
  *a = *b;
  *b = kept;
}

double le_mode_distance(const le_mode *mode, const double *centre, const double *theta,
                        double *work)
{
  const size_t d = mode->free;
  for (size_t j = 0; j < d; j++) work[j] = theta[j] - centre[j];
  return le_quadratic_form(mode->precision, d, work, work + d);
}

static const le_field fields[] = {LE_FIELD(le_mode, log_density), LE_FIELD(le_mode, rise),
                                  LE_FIELD(le_mode, images), LE_FIELD(le_mode, start),
                                  LE_FIELD(le_mode, hits),
                                  LE_WITHIN(le_mode, level, 0, LE_MODE_NARROWED),
                                  LE_UNSAVED(le_mode, converged),
                                  LE_UNSAVED(le_mode, iterations)}; /* of the last climb */

void le_mode_archive(le_mode *mode, le_archive *archive)
{
  LE_ARCHIVE_FIELDS(archive, mode, fields);
  le_archive_doubles(archive, mode->theta, mode_size(mode->free)); /* all of its memory */
}

enum { POINTS_MOST = 64 }; /* of a call for numerical differences */

size_t le_mode_work(size_t d)
{
  return 3 * d + d * d + d + POINTS_MOST * (2 * d + 2) + 16;
}

/* ---- derivatives ---- */

/* Two points for each coordinate or pair of coordinates: theta with a step down, and with a step
 * up, of h standard deviations along j and, if it is another one, k. Many pairs are evaluated at a
 * time. */
static void put_pair(size_t d, const double *theta, const double *scale, double h, size_t j,
                     size_t k, double *point)
{
  for (int side = -1; side <= 1; side += 2, point += d) {
    memcpy(point, theta, d * sizeof(double));
    point[j] += side * h * scale[j];
    if (k != j) point[k] += side * h * scale[k];
  }
}

static size_t pairs_at_once(const le_target *target)
{
  return (target->m < POINTS_MOST ? target->m : POINTS_MOST) / 2;
}

/* Central differences of the gradient: column j of the second derivatives from theta +- h_j.
 * Entries (j, k) and (k, j) are the mean of both. */
static le_status differences_of_gradient(le_target *target, const double *theta,
                                         const double *scale, double *precision, double *work)
{
  const size_t d = target->d, most = pairs_at_once(target);
  const double h = 1e-4;
  double *point = work, *value = point + POINTS_MOST * d, *grad = value + POINTS_MOST;
  memset(precision, 0, d * d * sizeof(double));
  for (size_t from = 0, n; from < d; from += n) {
    n = d - from < most ? d - from : most;
    for (size_t i = 0; i < n; i++)
      put_pair(d, theta, scale, h, from + i, from + i, point + 2 * i * d);
    LE_TRY(le_target_density_grad(target, 2 * n, point, value, grad));
    for (size_t p = 0; p < 2 * n; p++) {
      const size_t j = from + p / 2;
      const int side = p % 2 ? 1 : -1;
      for (size_t k = 0; k < d; k++) {
        const double half = 0.5 * side * grad[p * d + k] / (2 * h * scale[j]);
        precision[k * d + j] -= half;
        precision[j * d + k] -= half;
      }
    }
  }
  return LE_OK;
}

/* First and second central differences of the density; a mixed derivative needs two more points,
 * theta +- (h_j + h_k). */
static le_status differences_of_density(le_target *target, const double *theta, const double *scale,
                                        double *grad, double *precision, double *work)
{
  const size_t d = target->d, most = pairs_at_once(target);
  const double h = 1e-3;
  double centre, *point = work, *value = point + POINTS_MOST * d;
  size_t first[POINTS_MOST], second[POINTS_MOST], n = 0;
  LE_TRY(le_target_density(target, 1, theta, &centre));
  memset(grad, 0, d * sizeof(double));
  memset(precision, 0, d * d * sizeof(double));
  for (size_t j = 0; j < d; j++)
    for (size_t k = 0; k <= j; k++) {
      put_pair(d, theta, scale, h, j, k, point + 2 * n * d);
      first[n] = j;
      second[n++] = k;
      if (n < most && !(j == d - 1 && k == d - 1)) continue;
      LE_TRY(le_target_density(target, 2 * n, point, value));
      for (size_t p = 0; p < 2 * n; p++) {
        const size_t a = first[p / 2], b = second[p / 2];
        precision[a * d + b] -= (value[p] - centre) / (h * h * scale[a] * scale[b]);
        if (a == b) grad[a] += (p % 2 ? 1 : -1) * value[p] / (2 * h * scale[a]);
      }
      n = 0;
    }
  /* here entry (j, k) is f_jj h_j / h_k + 2 f_jk + f_kk h_k / h_j */
  for (size_t j = 0; j < d; j++)
    for (size_t k = 0; k < j; k++) {
      const double own = precision[j * d + j] * scale[j] / scale[k] +
                         precision[k * d + k] * scale[k] / scale[j];
      precision[j * d + k] = precision[k * d + j] = 0.5 * (precision[j * d + k] - own);
    }
  return LE_OK;
}

/* Gradient of log f and minus its second derivatives, by the model's own functions. */
static le_status exact_curvature(le_target *target, const double *theta, double *grad,
                                 double *precision, double *work)
{
  const size_t d = target->d;
  double *hess = work, *part = work + d * d;
  memset(precision, 0, d * d * sizeof(double));
  memset(grad, 0, d * sizeof(double));
  if (!target->flat) {
    target->ops->log_prior_grad(target->model, 1, theta, grad);
    target->ops->log_prior_hess(target->model, theta, precision);
  }
  for (int chunk = 0; chunk < 2; chunk++) {
    const size_t from = chunk ? target->seen : 0, to = target->seen + (chunk ? target->chunk : 0);
    const double weight = chunk ? target->lambda : 1;
    if (to == from || weight == 0) continue;
    LE_TRY(le_target_log_lik_hess(target, from, to, theta, part, hess));
    for (size_t j = 0; j < d; j++) grad[j] += weight * part[j];
    for (size_t k = 0; k < d * d; k++) precision[k] += weight * hess[k];
  }
  for (size_t k = 0; k < d * d; k++) precision[k] = -precision[k];
  return LE_OK;
}

static le_status curvature(le_target *target, const double *theta, const double *scale,
                           double *grad, double *precision, double *work)
{
  const le_model_ops *ops = target->ops;
  if (ops->log_lik_hess && ops->log_prior_hess && ops->log_prior_grad)
    return exact_curvature(target, theta, grad, precision, work);
  if (!ops->log_lik_grad || !ops->log_prior_grad || ops->traits & LE_MODEL_DIFFERENCES)
    return differences_of_density(target, theta, scale, grad, precision, work);
  double value;
  LE_TRY(le_target_density_grad(target, 1, theta, &value, grad));
  return differences_of_gradient(target, theta, scale, precision, work);
}

/* ---- climbing ---- */

/* The Cholesky factor of precision + ridge * diagonal, with the smallest ridge tried that makes it
 * positive definite. */
static le_status factorise(const le_context *context, const double *precision, size_t d,
                           double *factor, int *definite)
{
  double scale = 0;
  for (size_t j = 0; j < d; j++) scale = fmax(scale, fabs(precision[j * d + j]));
  if (!(scale > 0) || !isfinite(scale)) scale = 1;
  double ridge = 0;
  for (int attempt = 0; attempt < 12; attempt++) {
    memcpy(factor, precision, d * d * sizeof(double));
    for (size_t j = 0; j < d; j++)
      factor[j * d + j] += ridge * (fabs(precision[j * d + j]) + 1e-3 * scale);
    const le_status status = le_cholesky_watched(factor, d, context->interrupted, context->payload);
    *definite = attempt == 0;
    if (status != LE_NOT_POSITIVE) return status;
    ridge = ridge == 0 ? 1e-3 : 4 * ridge;
  }
  memset(factor, 0, d * d * sizeof(double));
  for (size_t j = 0; j < d; j++) factor[j * d + j] = sqrt(scale);
  *definite = 0;
  return LE_OK;
}

/* Tells a top from an endless rise. A likelihood can be flat in some direction and still have a
 * top; or it can rise for ever, more and more slowly, with steps that do not get shorter. */
static int is_short(const double *step, const double *scale, size_t d)
{
  for (size_t j = 0; j < d; j++)
    if (!(fabs(step[j]) < 1e-3 * scale[j])) return 0;
  return 1;
}

double le_mode_mass(const le_mode *mode)
{
  const size_t d = mode->free;
  return mode->log_density + mode->rise - mode->images + 0.5 * (double)d * log_two_pi -
         le_cholesky_half_log_det(mode->factor, d);
}

static le_status climb(le_mode *mode, le_target *target, double enough, double least, double *work)
{
  const size_t all = target->d, d = mode->free;
  double *grad = mode->grad, *step = work, *trial = work + all, *rest = work + 2 * all;
  mode->converged = 0;
  mode->images = 0;
  int still = 0;
  LE_TRY(le_target_density(target, 1, mode->theta, &mode->log_density));
  memcpy(trial + d, mode->theta + d, (all - d) * sizeof(double));
  for (mode->iterations = 0; mode->iterations < ITERATIONS_MOST; mode->iterations++) {
    LE_TRY(curvature(target, mode->theta, mode->scale, grad, mode->precision, rest));
    for (size_t j = 1; j < d && d < all; j++)
      memmove(mode->precision + j * d, mode->precision + j * all, d * sizeof(double));
    for (size_t j = 0; j < d; j++)
      if (!isfinite(grad[j])) return LE_OK;
    int definite;
    LE_TRY(factorise(target->context, mode->precision, d, mode->factor, &definite));
    definite = definite || target->flat;
    for (size_t j = 0; j < d && !target->flat; j++)
      if (mode->precision[j * d + j] > 0) mode->scale[j] = 1 / sqrt(mode->precision[j * d + j]);
    memcpy(step, grad, d * sizeof(double));
    le_cholesky_solve(mode->factor, d, step);
    const double decrement = le_dot(step, grad, d);
    mode->rise = 0.5 * decrement;
    if (definite && decrement < enough && (!target->flat || is_short(step, mode->scale, d))) {
      mode->converged = mode->log_density > -INFINITY; /* within the support of the prior */
      return LE_OK;
    }
    if (definite && le_mode_mass(mode) + mode->rise < least) return LE_OK;
    still = !definite && decrement < NOTHING ? still + 1 : 0;
    if (still == STILL) return LE_OK;
    double length = 1, value = -INFINITY;
    int halvings = 0;
    for (; halvings < HALVINGS_MOST; halvings++, length *= 0.5) {
      for (size_t j = 0; j < d; j++) trial[j] = mode->theta[j] + length * step[j];
      LE_TRY(le_target_density(target, 1, trial, &value));
      if (value >= mode->log_density + 1e-4 * length * decrement) break;
      /* with very large sums the last digits of the density are rounding errors: accept a small
       * full step */
      if (definite && decrement < 1e-3 &&
          value >= mode->log_density - 1e-9 * fabs(mode->log_density))
        break;
    }
    if (halvings == HALVINGS_MOST) return LE_OK;
    memcpy(mode->theta, trial, d * sizeof(double));
    mode->log_density = value;
  }
  return LE_OK;
}

le_status le_mode_climb(le_mode *mode, le_target *target, double enough, double least, double *work)
{
  le_context *context = target->context;
  const int before = context->lenient;
  context->lenient = 1;
  const le_status status = climb(mode, target, enough, least, work);
  context->lenient = before;
  return status;
}
