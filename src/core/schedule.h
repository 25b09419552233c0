/* Choice of the next annealing exponent lambda. */
#pragma once

#include "base/status.h"

/* A particle has lost its weight if it is below this share of the mean weight. */
#define LE_WEIGHT_LOST 1e-3

/* The largest increment in (0, 1 - lambda] for which the effective sample size of the weights
 * exp(increment * log_lik) is at least `target`. Particles of zero likelihood have weight zero; if
 * the others are too few for the target, it is reduced in proportion. Particles that have lost
 * their `weight` (unless this is NULL) do not count, and reduce the target in proportion: they may
 * be far from all others, and would hold the steps near zero.
 * LE_ALL_IMPOSSIBLE if no particle is left; LE_STALLED if the increment is too small to change
 * lambda. */
le_status le_schedule_adaptive(const double *log_lik, const double *weight, size_t n,
                               double target, double lambda, double *increment);
