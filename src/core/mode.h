/* The nearest peak of an annealed density, by Newton's method with a safeguard.  Derivatives are the model's, and
 * differences where it has none. */
#ifndef LE_CORE_MODE_H
#define LE_CORE_MODE_H

#include "core/target.h"

typedef struct le_mode {
  double *theta;     /* d: the start, then the peak */
  double *grad;      /* d: of the density there, nearly nothing */
  double *precision; /* d x d: minus the second derivatives there */
  double *factor;    /* d x d: its Cholesky factor */
  double *scale;     /* d: about how wide the density is, for differences; anything positive is a start */
  double log_density;
  int converged;
  int iterations;
  size_t start; /* for the caller: which of his starts this came from */
} le_mode;

void le_mode_alloc(le_mode *mode, size_t d, le_arena *arena);
/* Climbs from mode->theta.  Converged when the Newton decrement is under 1e-6; `work` holds le_mode_work(d) doubles.
 * A peak whose curvature is not negative definite leaves converged = 0. */
le_status le_mode_climb(le_mode *mode, le_target *target, double *work);
size_t le_mode_work(size_t d);

#endif
