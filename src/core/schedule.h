/* How far the next annealed distribution is. */
#ifndef LE_CORE_SCHEDULE_H
#define LE_CORE_SCHEDULE_H

#include "base/status.h"

/* lambda_0 = 0 ... lambda_steps = 1, equally spaced or along a sigmoid of steepness delta. */
void le_schedule_linear(size_t steps, double *lambda);
void le_schedule_sigmoidal(size_t steps, double delta, double *lambda);

/* The largest increment in (0, 1 - lambda] that keeps the effective sample size of the increments' own weights
 * exp(increment * log_lik) at `target` or above.  Particles of zero likelihood never count; a
 * target that the others cannot reach falls in proportion.  LE_ALL_IMPOSSIBLE when none is left; LE_STALLED when lambda would not
 * move. */
le_status le_schedule_adaptive(const double *log_lik, size_t n, double target, double lambda,
                               double *increment);

#endif
