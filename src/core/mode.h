/* The nearest peak of an annealed density, by Newton's method with a safeguard. */
#ifndef LE_CORE_MODE_H
#define LE_CORE_MODE_H

#include "core/target.h"

typedef struct le_mode {
  double *theta;     /* d: the start, then the peak */
  double *precision; /* d x d: minus the second derivatives there */
  double *factor;    /* d x d: its Cholesky factor */
  double log_density;
  int converged;
  int iterations;
} le_mode;

void le_mode_alloc(le_mode *mode, size_t d, le_arena *arena);
/* Climbs from mode->theta.  Converged when the Newton decrement is under 1e-6; `work` holds 2 d * d + 4 d doubles.
 * A peak whose curvature is not negative definite leaves converged = 0. */
le_status le_mode_climb(le_mode *mode, le_target *target, double *work);

#endif
