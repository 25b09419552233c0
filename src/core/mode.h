/* The nearest mode of an annealed density by a safeguarded Newton method. Derivatives come from the
 * model, or from numerical differences if it has none. */
#pragma once

#include "base/archive.h"
#include "core/target.h"

/* Whether a mode is wider than the prior; or it was, and was made narrower. */
enum { LE_MODE_NARROW, LE_MODE_WIDE, LE_MODE_NARROWED };

typedef struct le_mode {
  double *theta;     /* d: the start, then the mode; in one block with the others, and saved so */
  double *grad;      /* derived; d: gradient of the log density there, close to zero */
  double *precision; /* derived; d x d (free x free): minus the second derivatives there */
  double *factor;    /* derived; the same: its Cholesky factor */
  /* d: rough standard deviations for numerical differences; any positive numbers are valid */
  double *scale;
  double log_density;
  /* log density at the exact top minus log density here, estimated from the last step */
  double rise;
  int converged;
  int iterations;
  size_t free;  /* set once: the first `free` parameters move; all by default */
  size_t start; /* for the caller: index of the start, and the number of climbs that ended here */
  size_t hits;
  int level; /* for the caller: one of the three; a wide mode may be a point of a level ridge */
  double images; /* nats by which its mass is less, because images of it have the rest */
  double *centre; /* derived; d, for the caller: where its component of a proposal lies */
} le_mode;

void le_mode_alloc(le_mode *mode, size_t d, le_arena *arena);
/* Climbs from mode->theta. It has converged if the squared distance to the top in standard
 * deviations (Newton decrement) is below `enough`. Sets converged = 0 if the curvature is not
 * positive definite, or if the mass of the mode in Laplace's approximation would be below `least`
 * even with twice the expected further rise; then the climb stops. Points where the density is NaN
 * or Inf count as impossible. `work` holds le_mode_work(d) doubles. */
le_status le_mode_climb(le_mode *mode, le_target *target, double enough, double least,
                        double *work);
/* The accuracy that sums over very many rows allow. */
#define LE_MODE_TOP 1e-6
/* The log of the mass of the mode in Laplace's approximation. */
double le_mode_mass(const le_mode *mode);
/* Squared Mahalanobis distance of theta from this centre, by the precision of the mode; `work`
 * holds 2 d numbers, of which the first may be theta. */
double le_mode_distance(const le_mode *mode, const double *centre, const double *theta,
                        double *work);
void le_mode_swap(le_mode *a, le_mode *b);
size_t le_mode_work(size_t d);
/* For modes all of whose parameters move. */
void le_mode_archive(le_mode *mode, le_archive *archive);
