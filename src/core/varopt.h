/* A sample of bounded size from a stream of weighted points: Chao's (1982) reservoir, by the
 * algorithm of Cohen et al. (2009). A point is kept with a probability proportional to its weight,
 * at most one. A kept point has the weight weight / probability, which makes every weighted sum
 * unbiased: points that are certain to be kept have their own weights, and all others have one
 * weight. A point takes a time that grows with the logarithm of the size. */
#pragma once

#include "base/arena.h"
#include "base/archive.h"

#include <gsl/gsl_rng.h>

typedef struct le_varopt {
  size_t most, d; /* set once */
  size_t n, heavy;    /* points at present; once there were more than `most`, the first `heavy` are
                       * a heap, the lightest on top */
  double log_light;   /* log weight of the others; -Inf if there are none */
  double *theta;      /* (most + 1) x d */
  double *log_weight; /* most + 1; of light points only after le_varopt_settle() */
} le_varopt;

void le_varopt_alloc(le_varopt *reservoir, size_t most, size_t d, le_arena *arena);
void le_varopt_empty(le_varopt *reservoir);
void le_varopt_add(le_varopt *reservoir, const double *theta, double log_weight,
                   const gsl_rng *rng);
/* Writes the weights of all points, before they are read. */
void le_varopt_settle(le_varopt *reservoir);
void le_varopt_archive(le_varopt *reservoir, le_archive *archive);
