/* Choice of the next annealing exponent lambda. */
#ifndef LE_CORE_SCHEDULE_H
#define LE_CORE_SCHEDULE_H

#include "base/status.h"

/* lambda_0 = 0 ... lambda_steps = 1, equally spaced or along a sigmoid of steepness delta. */
void le_schedule_linear(size_t steps, double *lambda);
void le_schedule_sigmoidal(size_t steps, double delta, double *lambda);

/* The largest increment in (0, 1 - lambda] for which the conditional effective sample size
 * (le_conditional_size) of the factors exp(increment * log_lik) is at least `target`. `weight`, the
 * particles' weights so far, may be NULL if all are equal. If the particles of positive likelihood
 * have too little weight for the target, the target is reduced in proportion.
 * LE_ALL_IMPOSSIBLE if no particle has a positive likelihood; LE_STALLED if the increment is too
 * small to change lambda. */
le_status le_schedule_adaptive(const double *log_lik, const double *weight, size_t n,
                               double target, double lambda, double *increment);

#endif
