/* A sample of bounded size from a stream of weighted points: Chao's (1982) reservoir, with the
 * method of Cohen et al. (2009) for points too heavy to be left out. A point is kept with a
 * probability proportional to its weight, at most one. A kept point has the weight weight /
 * probability, which makes every weighted sum unbiased. */
#ifndef LE_CORE_VAROPT_H
#define LE_CORE_VAROPT_H

#include "base/arena.h"
#include "base/archive.h"

#include <gsl/gsl_rng.h>

typedef struct le_varopt {
  size_t most, d; /* set once */
  size_t n; /* points at present; 0 makes the sample empty */
  double *theta;      /* (most + 1) x d */
  double *log_weight; /* `most` + 1 adjusted log weights */
  double *sorted;     /* scratch; most + 1 */
} le_varopt;

void le_varopt_alloc(le_varopt *reservoir, size_t most, size_t d, le_arena *arena);
void le_varopt_add(le_varopt *reservoir, const double *theta, double log_weight,
                   const gsl_rng *rng);
void le_varopt_archive(le_varopt *reservoir, le_archive *archive);

#endif
