/* How far moves carry particles, against the distance of two independent particles: 1 is a fresh draw, 0 a copy.
 *
 * In a direction u this is the mean of (u'(after - before))^2 over twice the variance of u'theta,
 * which for chains in equilibrium is 1 - their autocorrelation. The slowest direction counts: of
 * the coordinates, of the coordinates on the kernel's scale, and of the first principal component
 * of each.
 *
 * Where particles lie in several modes, the variance is mostly between the modes, and moves within
 * one of them are small against it however many there are. Two measurements tell: if r(n) = V (1 -
 * e^-kn) with an unknown V, then
 * r(2n) / r(n) = 1 + e^-kn, and the second measurement is 1 - (r(2n) / r(n) - 1)^2 of the way within the modes. */
#ifndef LE_CORE_RENEWAL_H
#define LE_CORE_RENEWAL_H

#include "core/metric.h"

typedef struct le_renewal {
  size_t d, most;
  double *before; /* most x d */
  double *whole, *moved, *mean, *variance, *square, *component, *next; /* work */
  size_t *kept;
} le_renewal;

void le_renewal_alloc(le_renewal *renewal, size_t d, size_t most, le_arena *arena);
/* The particles before their moves. */
void le_renewal_start(le_renewal *renewal, size_t m, const double *theta);
/* Of particles of a weight above zero. The slowest of many directions looks slower than it is, and is given as much as chance
 * takes from it. Particles that have not moved at all are no fresh draws, whatever the others are. */
double le_renewal_measure(le_renewal *renewal, size_t m, const double *theta, const double *weight,
                          const le_metric *metric);
/* The second of two measurements, at twice as many moves as the first, where the first was too small. */
double le_renewal_within(double first, double second);
/* Moves that lead to `goal`, if `moves` have led to `reached`. */
double le_renewal_moves(double moves, double reached, double goal);
void le_renewal_archive(le_renewal *renewal, size_t m, le_archive *archive);

#endif
