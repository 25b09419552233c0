/* Which points belong together: parts of a population that lie apart, such as a posterior's modes. */
#ifndef LE_CORE_CLUSTERS_H
#define LE_CORE_CLUSTERS_H

#include "base/arena.h"

typedef struct le_clusters {
  size_t d, most; /* points at most */
  size_t count;
  size_t *label;     /* most: the cluster of each point */
  double *variance;  /* count x d: of each coordinate in each cluster */
  double *mean, *number, *distance; /* work */
  size_t *nearest, *size;
} le_clusters;

void le_clusters_alloc(le_clusters *clusters, size_t most, size_t d, le_arena *arena);
/* One cluster of all. */
void le_clusters_join(le_clusters *clusters, size_t n);
/* Connected parts of the graph that joins each of n points z (n x d, on a scale that makes distances sensible) with its
 * nearest neighbours; of very many, the first thousand are looked at, so their order must mean nothing.  Fewer points than
 * hang together by chance are no cluster of their own. */
void le_clusters_find(le_clusters *clusters, size_t n, const double *z);
/* Fills in the variances. */
void le_clusters_spread(le_clusters *clusters, size_t n, const double *theta);
/* The points [from, to) less their clusters' means, in `residual`, scaled so that the variance is kept; returns how many,
 * those that are alone left out. */
size_t le_clusters_residuals(le_clusters *clusters, size_t from, size_t to, const double *theta,
                             double *residual);

#endif
