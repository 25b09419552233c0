/* The annealed distribution that a kernel is asked to leave invariant (math.md 1, restated):
 *
 *     f(theta) = prior(theta) * prod_{k < seen} p(y_k | theta) * [ prod_{seen <= k < seen + chunk} p(y_k | theta) ]^lambda
 *
 * It is all a kernel may see: densities and gradients by the run's gradient rule, every evaluation counted. */
#ifndef LE_CORE_TARGET_H
#define LE_CORE_TARGET_H

#include "core/sums.h"

/* log f, exactly; -Inf where the model gives no number. */
le_status le_target_density(le_target *target, size_t m, const double *theta, double *value);
/* The same for a caller who only wants to know values above level[m]: others may come back as -Inf, and then have cost
 * less. */
le_status le_target_density_above(le_target *target, size_t m, const double *theta,
                                  const double *level, double *value);
/* Is a point of this log-likelihood inside the wall? */
int le_target_above_floor(const le_target *target, double log_lik);
/* `value` may be NULL. */
le_status le_target_density_grad(le_target *target, size_t m, const double *theta, double *value,
                                 double *grad);
/* The gradient of log f by the run's rule, exact or from a mini-batch; new ones of these, of which an exact one needs none; and for how
 * many moves of m particles they may be drawn at once. */
size_t le_target_ahead(const le_target *target, size_t m);
le_status le_target_draw(le_target *target, size_t n);
le_status le_target_gradient(le_target *target, size_t draw, size_t m, const double *theta,
                             double *grad);
/* How many rows that costs a particle. */
size_t le_target_rows(const le_target *target);

/* What is to be done with particles [first, first + m), none of which waits for another; of the target's memory it is given its own. */
typedef le_status (*le_target_job)(void *self, le_target *target, size_t first, size_t m);
/* Threads take shares of m particles, as large as they have been fast; all is one share where `rows`, which the job visits with each, are so
 * few that threads cost more than they save, or so many that the user could not interrupt it: threads then share the sums over rows. */
le_status le_target_share(le_target *target, size_t m, double rows, le_target_job job, void *self);

static inline const le_metric *le_target_metric(const le_target *target, size_t particle)
{
  return target->metric[particle >= target->split];
}

/* Does theta carry other labels than the particles' common ones? */
int le_target_outside(const le_target *target, const double *theta);

/* Observations that a rate per observation is divided by; at least one. */
static inline double le_target_count(const le_target *target, int tempered)
{
  const double n = tempered ? le_target_size(target) : (double)(target->seen + target->chunk);
  return n > 1 ? n : 1;
}

#endif
