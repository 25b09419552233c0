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
  double rise; /* by how much more than that it is at the very top, by the last step */
  int converged;
  int iterations;
  size_t start; /* for the caller: which start this came from, and how many climbs ended here */
  size_t hits;
} le_mode;

void le_mode_alloc(le_mode *mode, size_t d, le_arena *arena);
/* Climbs from mode->theta.  Converged when the top is nearer than `enough`, a squared distance in standard deviations (the Newton
 * decrement).  A peak whose curvature is not negative definite leaves converged = 0, and so does one whose mass by Laplace's approximation is
 * under `least` were it twice as far up as expected: it is given up.  `work` holds le_mode_work(d) doubles. */
le_status le_mode_climb(le_mode *mode, le_target *target, double enough, double least,
                        double *work);
/* As near as sums of very many rows tell. */
#define LE_MODE_TOP 1e-6
/* The logarithm of that mass. */
double le_mode_mass(const le_mode *mode, size_t d);
size_t le_mode_work(size_t d);

#endif
