/* The annealed distribution that a kernel must leave invariant:
 *
 *     f(theta) = prior(theta) * prod_{k < seen} p(y_k | theta)
 *                * [ prod_{seen <= k < seen + chunk} p(y_k | theta) ]^lambda
 *
 * A kernel uses nothing else: densities, and gradients by the rule of the run. All evaluations are
 * counted. */
#ifndef LE_CORE_TARGET_H
#define LE_CORE_TARGET_H

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
 * many moves of m particles mini-batches may be drawn at once. */
size_t le_target_ahead(const le_target *target, size_t m);
le_status le_target_draw(le_target *target, size_t n);
le_status le_target_gradient(le_target *target, size_t draw, size_t m, const double *theta,
                             double *grad);
/* Changes when the density of the rows seen is replaced by another one, as when rows leave the
 * memory: values computed before then belong to another density. */
size_t le_target_revision(const le_target *target);
/* Of a target that was read: that its rows exist. */
void le_target_require(const le_target *target, le_archive *archive);
/* How many rows a gradient visits per particle. */
size_t le_target_rows(const le_target *target);

/* A job for particles [first, first + m), independent of all other particles; it gets its own part
 * of the target's memory. */
typedef le_status (*le_target_job)(void *self, le_target *target, size_t first, size_t m);
/* Splits m particles among threads by each thread's measured speed. `rows` is the number of rows
 * that the job visits per particle. There is only one share if the work is too small for threads,
 * or so large that the user could not interrupt it; in the second case threads divide the sums over
 * rows. */
le_status le_target_share(le_target *target, size_t m, double rows, le_target_job job, void *self);

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

#endif
