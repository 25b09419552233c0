/* The annealed distribution that a kernel must leave invariant:
 *
 *     f(theta) = prior(theta) * prod_{k < seen} p(y_k | theta)
 *                * [ prod_{seen <= k < seen + chunk} p(y_k | theta) ]^lambda
 *
 * A kernel uses nothing else: densities, and gradients by the rule of the run. All evaluations are
 * counted. */
#pragma once

#include "core/sums.h"

/* log f, exact; -Inf if the model returns NaN. Of any number of points, the others of at most
 * target->m. */
le_status le_target_density(le_target *target, size_t m, const double *theta, double *value);
/* The same for callers that only need values above level[m]: for other particles the result may be
 * -Inf, which costs less. */
le_status le_target_density_above(le_target *target, size_t m, const double *theta,
                                  const double *level, double *value);
/* Whether a point with this log-likelihood satisfies the constraint `floor`. */
int le_target_above_floor(const le_target *target, double log_lik);
/* The same with gradients, without regard to `floor`; `value` or `grad` may be NULL. */
le_status le_target_density_grad(le_target *target, size_t m, const double *theta, double *value,
                                 double *grad);
/* le_target_gradient: the gradient of log f by the rule of the run, exact or from a mini-batch.
 * le_target_draw: draws n new mini-batches; exact gradients need none. le_target_ahead: for how
 * many moves of m particles mini-batches may be drawn at once. Where particles have mini-batches of
 * their own, each is drawn with the estimate, by the particle's generator: `rng` has those of these
 * particles, or is NULL for a batch that all share. */
size_t le_target_ahead(const le_target *target, size_t m);
le_status le_target_draw(le_target *target, size_t n);
le_status le_target_gradient(le_target *target, size_t draw, size_t m, const double *theta,
                             gsl_rng *const *rng, double *grad);
/* Whether gradients are estimates from mini-batches. */
int le_target_estimated(const le_target *target);
/* Changes when the density of the rows seen is replaced by another one, as when rows leave the
 * memory: values computed before then belong to another density. */
size_t le_target_revision(const le_target *target);
/* Of a target that was read: that its rows exist. */
void le_target_require(const le_target *target, le_archive *archive);
/* How many rows a gradient visits per particle. */
size_t le_target_rows(const le_target *target);

static inline const le_metric *le_target_metric(const le_target *target, size_t particle)
{
  return target->metric[particle >= target->split];
}

/* Whether theta is outside the fundamental domain of the reference labelling. */
int le_target_outside(const le_target *target, const double *theta);

/* The number of observations that divides a rate per observation; at least one. */
static inline double le_target_count(const le_target *target, int tempered)
{
  const double n = tempered ? le_target_size(target) : (double)(target->seen + target->chunk);
  return n > 1 ? n : 1;
}

/* Whether exact() can compute the evidence: settings without a closed form have none for zero rows
 * either. */
int le_target_has_exact(const le_model_ops *ops, const void *model);
