/* How far moves carry particles, relative to the distance of two independent particles: 1 is an
 * independent draw, 0 is a copy.
 *
 * In a direction u this is the mean of (u'(after - before))^2 over twice the variance of u'theta,
 * which for chains in equilibrium is 1 - their autocorrelation. The result is the minimum over
 * these directions: the coordinates, the coordinates on the kernel's scale, and the first principal
 * component of each.
 *
 * If particles are in several modes, most of the variance is between modes, and moves within a mode
 * look small however many there are. Two measurements detect this: if r(n) = V (1 - e^-kn) with an
 * unknown V, then r(2n) / r(n) = 1 + e^-kn, so the renewal within the modes after 2n moves is 1 -
 * (r(2n) / r(n) - 1)^2. */
#pragma once

#include "core/metric.h"

typedef struct le_renewal {
  size_t d;        /* set once */
  const int *held; /* set once; NULL, or 1 for coordinates that do not count */
  double *before;                                                      /* most x d */
  double *whole, *moved, *mean, *variance, *square, *component, *next; /* scratch */
  size_t *kept;                                                        /* scratch */
} le_renewal;

/* Coordinates with few values (`held`, NULL for none) do not count: where particles are in several
 * modes, such as labellings, some never change, and that they do not is no sign of slow moves. */
void le_renewal_alloc(le_renewal *renewal, size_t d, size_t most, const int *held,
                      le_arena *arena);
/* Stores the particles before their moves. */
void le_renewal_start(le_renewal *renewal, size_t m, const double *theta);
/* Uses only particles of positive weight; NaN if there are too few, or if no coordinate counts. The
 * minimum over many directions is biased downwards by chance, so it is corrected by the expected
 * amount. Particles that have not moved at all count as 0, whatever the others do. */
double le_renewal_measure(le_renewal *renewal, size_t m, const double *theta, const double *weight,
                          const le_metric *metric);
/* The renewal within modes, from two measurements, the second after twice as many moves as the
 * first; for use if the first was too small. */
double le_renewal_within(double first, double second);
/* The number of moves expected to reach `goal` if `moves` reached `reached`. */
double le_renewal_moves(double moves, double reached, double goal);
void le_renewal_archive(le_renewal *renewal, size_t m, le_archive *archive);
