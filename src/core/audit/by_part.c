/* Draws that are weighed by part of the rows, with the expansion of core/expansion.h around the
 * modes.
 *
 * A draw is weighed so if the remainder of the second-order expansion is below REST_MOST, or if it
 * is so light (log weight below LIGHT, relative to the mean weight by Laplace) that its weight does
 * not matter; otherwise all rows are used. In a trial, COMPARED draws of each component are
 * compared with all rows, and may differ by MISSED_MOST. The number of rows may grow to PART_MOST
 * times `part`. The total work may be BY_PART times that of draws weighed by all rows. */
#include "core/audit/parts.h"

#include <math.h>
#include <string.h>

static const double REST_MOST = 0.3, LIGHT = -12, MISSED_MOST = 0.1, BY_PART = 2;
enum { COMPARED = 16, PART_MOST = 16 };

/* Sets the expansion at the mode of this component (the first mode for the wide one) and returns
 * the log-likelihood there. */
static double expand(le_audit *a, const le_target *target, size_t part)
{
  const size_t d = a->d;
  const le_mode *mode = &a->mode[part < a->modes ? part : 0];
  const le_model_ops *ops = target->ops;
  double prior, *grad = a->lik_sums + 1, *hess = grad + d;
  ops->log_prior(target->model, 1, mode->theta, &prior);
  ops->log_prior_grad(target->model, 1, mode->theta, grad);
  memset(hess, 0, d * d * sizeof(double));
  ops->log_prior_hess(target->model, mode->theta, hess);
  for (size_t j = 0; j < d; j++) grad[j] = mode->grad[j] - grad[j];
  for (size_t k = 0; k < d * d; k++) hess[k] = -mode->precision[k] - hess[k];
  a->expansion->anchor = mode->theta;
  a->expansion->sums = grad;
  return a->lik_sums[0] = mode->log_density - prior;
}

const double *le_audit_sums(le_audit *a, const le_target *target)
{
  expand(a, target, 0);
  return a->lik_sums;
}

/* Log-likelihoods of draws from one component, minus `level`; sets rest = NaN for draws that
 * need all rows. */
static le_status weigh_by_part(le_audit *a, le_target *target, size_t part, size_t n,
                               const double *theta, double *value, double *level)
{
  const double light = a->laplace - le_audit_orbit(target, &a->mode[0]) + LIGHT;
  double *rest = a->expansion->rest;
  *level = expand(a, target, part);
  LE_TRY(le_expansion_values(a->expansion, target, 0, target->seen, a->taken, n, theta, value));
  le_target_prior(target, n, theta, a->prior, NULL);
  for (size_t i = 0; i < n; i++) {
    if (fabs(rest[i]) <= REST_MOST) continue;
    const double most = *level + value[i] + a->prior[i] + fabs(rest[i]);
    if (!(most - le_audit_log_proposal(a, target, theta + i * a->d, a->work) < light))
      rest[i] = NAN;
  }
  return LE_OK;
}

le_status le_audit_densities_by_part(le_audit *a, le_target *target, size_t part, size_t n,
                                     const double *theta, double *value)
{
  const size_t d = a->d;
  const double *rest = a->expansion->rest;
  double level;
  LE_SCRATCH(points, target->stack, n * d);
  size_t all = 0;
  LE_TRY(weigh_by_part(a, target, part, n, theta, value, &level));
  for (size_t i = 0; i < n; i++) {
    value[i] += level + a->prior[i];
    if (isnan(rest[i])) memcpy(points + all++ * d, theta + i * d, d * sizeof(double));
  }
  if (all == 0) return LE_OK;
  LE_TRY(le_target_density(target, all, points, a->prior));
  for (size_t i = n; i-- > 0;)
    if (isnan(rest[i])) value[i] = a->prior[--all];
  return LE_OK;
}

/* Tests whether `taken` rows, or 4, 16, ... times as many, can weigh draws from this component:
 * some draws are compared with all rows, and more give the share of draws that need all rows,
 * which is added to `all`. */
static le_status try_part(le_audit *a, le_target *target, size_t part, const gsl_rng *rng,
                          int *possible, double *all)
{
  const size_t trial = a->batch < a->room ? a->batch : a->room,
               all_rows = le_store_sample(target->store, target->seen);
  le_expansion *expansion = a->expansion;
  for (size_t i = 0; i < trial; i++) {
    const double nu = le_audit_freedom(a, part, rng);
    le_audit_draw_from(a, target, part, nu, rng, a->theta + i * a->d);
  }
  *possible = 0;
  for (; a->taken <= PART_MOST * a->part && 4 * a->taken <= all_rows; a->taken *= 4) {
    double level, missed, farthest;
    size_t need_all = 0;
    LE_TRY(weigh_by_part(a, target, part, trial, a->theta, a->value, &level));
    for (size_t i = 0; i < trial; i++) {
      need_all += isnan(expansion->rest[i]);
      if (i >= COMPARED || !(fabs(expansion->rest[i]) <= REST_MOST))
        expansion->distance[i] = -INFINITY;
    }
    LE_TRY(le_expansion_missed(expansion, target, 0, target->seen, trial, a->theta, a->value,
                               &level, &missed, &farthest));
    if (missed > MISSED_MOST) continue;
    *all += a->share[part] * (double)need_all / (double)trial;
    *possible = 1;
    return LE_OK;
  }
  return LE_OK;
}

/* If part of the rows can weigh the draws, there are as many as cost a moderate amount of work;
 * otherwise as few as all rows can weigh. */
le_status le_audit_plan(le_audit *a, le_target *target, const gsl_rng *rng)
{
  const double n = (double)le_store_sample(target->store, target->seen), lot = (double)a->lot,
               least = (double)a->least;
  /* an update with few rows must not weigh every draw by the whole sample of the stream */
  const int cheap = le_rows_of(target)->readable && lot * n <= a->work_least;
  int possible = a->part > 0 && a->modes > 0 && !cheap && target->chunk == 0 && a->room >= COMPARED;
  double all = 0;
  if (a->least > 0) a->draws = (size_t)fmin(lot, fmax(least, ceil(a->work_least / n)));
  a->taken = a->part;
  for (size_t k = 0; k < a->parts && possible; k++)
    LE_TRY(try_part(a, target, k, rng, &possible, &all));
  a->by_part = possible && all < 0.5;
  if (a->by_part)
    a->draws = (size_t)fmin(
      lot, fmax(least, BY_PART * a->work_least / ((double)a->taken + all * n)));
  a->planned = 1;
  a->lot = a->draws;
  return LE_OK;
}
