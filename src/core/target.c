/* The annealed density, and its gradient by the run's rule. */
#include "core/target.h"

#include "base/linalg.h"
#include "core/gradient.h"
#include "core/past.h"

#include <math.h>
#include <string.h>

int le_target_outside(const le_target *target, const double *theta)
{
  if (!target->labels || !target->ops->relabel) return 0;
  memcpy(target->relabelled, theta, target->d * sizeof(double));
  return target->ops->relabel(target->model, target->labels, target->relabelled);
}

int le_target_above_floor(const le_target *target, double log_lik)
{
  if (!target->floor) return 1;
  if (log_lik != target->floor->value) return log_lik > target->floor->value;
  return gsl_rng_uniform(target->rng) > target->floor->tie;
}

/* Adds the terms of the rows seen, or those of the chunk. `value` or `grad` may be NULL. */
static le_status add_rows(le_target *target, int chunk, size_t m, const double *theta,
                          double *value, double *grad)
{
  const size_t from = chunk ? target->seen : 0, to = target->seen + (chunk ? target->chunk : 0);
  const double weight = chunk ? target->lambda : 1;
  double *sum = value ? target->work : NULL, *sum_grad = grad ? target->grad : NULL;
  if (to == from || weight == 0) return LE_OK;
  LE_TRY(le_target_log_lik_grad(target, from, to, m, theta, sum, sum_grad));
  for (size_t i = 0; i < m && value; i++) value[i] += weight * sum[i];
  if (grad) le_add_scaled(m * target->d, weight, sum_grad, grad);
  return LE_OK;
}

/* The density of the prior and the rows seen, and its gradient. */
static le_status begin_density(le_target *target, size_t m, const double *theta, double *value,
                               double *grad)
{
  le_target_prior(target, m, theta, value, grad);
  if (value) LE_TRY(le_target_check(target, "log_prior", m, theta, value));
  return add_rows(target, 0, m, theta, value, grad);
}

/* Within the constraint the density is that of the prior and the rows seen. The likelihood of the
 * chunk is expensive, so it is computed only for points whose density is above their level without
 * it. */
static le_status walled_density(le_target *target, size_t m, const double *theta,
                                const double *level, double *value)
{
  const size_t d = target->d, to = target->seen + target->chunk;
  double *sum = target->work;
  size_t chosen = 0;
  LE_TRY(begin_density(target, m, theta, value, NULL));
  for (size_t i = 0; i < m; i++) {
    if (isnan(value[i]) || (level && !(value[i] > level[i]))) value[i] = -INFINITY;
    if (value[i] == -INFINITY) continue;
    memcpy(target->packed + chosen * d, theta + i * d, d * sizeof(double));
    target->chosen[chosen++] = i;
  }
  if (chosen == 0) return LE_OK;
  LE_TRY(le_target_log_lik(target, target->seen, to, chosen, target->packed, sum));
  for (size_t c = 0; c < chosen; c++) {
    /* without levels these are existing points, whose labels on a plateau have been drawn before */
    const int inside = level ? le_target_above_floor(target, sum[c])
                             : sum[c] >= target->floor->value;
    if (!inside) value[target->chosen[c]] = -INFINITY;
  }
  return LE_OK;
}

/* Converts log f to log [q^(1 - lambda) f^lambda] if there is a proposal q; NaN becomes -Inf, and
 * in climbs Inf does, too. */
static void between(const le_target *target, size_t m, const double *theta, double *value)
{
  const int lenient = target->context->lenient;
  for (size_t i = 0; i < m; i++) {
    if (isnan(value[i]) || (lenient && value[i] == INFINITY)) value[i] = -INFINITY;
    if (!target->proposal || value[i] == -INFINITY) continue;
    const double proposed = target->proposal->log_density(target->proposal->self, target,
                                                          theta + i * target->d,
                                                          target->relabelled);
    value[i] = target->lambda * value[i] + (1 - target->lambda) * proposed;
  }
}

le_status le_target_density_grad(le_target *target, size_t m, const double *theta, double *value,
                                 double *grad)
{
  LE_TRY(begin_density(target, m, theta, value, grad));
  LE_TRY(add_rows(target, 1, m, theta, value, grad));
  if (value) between(target, m, theta, value);
  return LE_OK;
}

le_status le_target_density_above(le_target *target, size_t m, const double *theta,
                                  const double *level, double *value)
{
  return target->floor ? walled_density(target, m, theta, level, value)
                       : le_target_density_grad(target, m, theta, value, NULL);
}

le_status le_target_density(le_target *target, size_t m, const double *theta, double *value)
{
  for (size_t from = 0; from < m; from += target->m) {
    const size_t some = m - from < target->m ? m - from : target->m;
    LE_TRY(le_target_density_above(target, some, theta + from * target->d, NULL, value + from));
  }
  return LE_OK;
}

int le_target_estimated(const le_target *target)
{
  return target->gradient && le_gradient_active(target->gradient, target);
}

le_status le_target_draw(le_target *target, size_t n)
{
  if (!le_target_estimated(target)) return LE_OK;
  return le_gradient_draw(target->gradient, target, target->gradient->own ? 0 : n);
}

le_status le_target_gradient(le_target *target, size_t draw, size_t m, const double *theta,
                             gsl_rng *const *rng, double *grad)
{
  if (le_target_estimated(target))
    return le_gradient_estimate(target->gradient, draw, target, m, theta,
                                target->gradient->own ? rng : NULL, grad);
  return le_target_density_grad(target, m, theta, NULL, grad);
}

size_t le_target_revision(const le_target *target)
{
  return target->past ? target->past->revision : 0;
}

size_t le_target_rows(const le_target *target)
{
  return le_target_estimated(target) ? le_gradient_rows(target->gradient, target)
                              : target->seen + target->chunk;
}

size_t le_target_ahead(const le_target *target, size_t m)
{
  if (!le_target_estimated(target) || target->gradient->own) return 1;
  const double moves = LE_TARGET_SHARED_MOST / ((double)m * (double)(le_target_rows(target) + 1));
  return moves < 1 ? 1 : moves < LE_DRAWS_MOST ? (size_t)moves : LE_DRAWS_MOST;
}

int le_target_has_exact(const le_model_ops *ops, const void *model)
{
  const le_rows none = {0, ops->width(model), NULL};
  double value = NAN;
  if (!ops->exact) return 0;
  return ops->exact(model, &none, &value) != LE_OK || !isnan(value);
}

void le_target_require(const le_target *target, le_archive *archive)
{
  const le_store *store = target->store;
  const size_t first = le_store_represented(store);
  const int known = store->asked || (target->past && target->past->most && first <= target->seen);
  le_archive_require(archive, target->seen <= store->n && target->chunk <= store->n - target->seen);
  le_archive_require(archive, target->lambda >= 0 && target->lambda <= 1);
  le_archive_require(archive, !first || known);
}
