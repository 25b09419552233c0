/* Clusters of points: separate parts of a population, such as the modes of a posterior. */
#pragma once

#include "base/arena.h"

typedef struct le_clusters {
  size_t count;
  size_t d; /* set once */
  size_t *label;                    /* the cluster of each point */
  double *variance;                 /* derived: variances of each cluster, count x d */
  double *mean, *number, *distance; /* scratch */
  size_t *nearest, *size;           /* scratch */
} le_clusters;

/* For at most `most` points. */
void le_clusters_alloc(le_clusters *clusters, size_t most, size_t d, le_arena *arena);
/* Puts all points into one cluster. */
void le_clusters_join(le_clusters *clusters, size_t n);
/* Clusters are the connected components of the graph that joins each of n points z (n x d, on a
 * scale on which distances are meaningful) with its nearest neighbours. With very many points only
 * the first thousand are used, so the order of the points must be random. Components too small to
 * be distinguished from chance are not clusters of their own. */
void le_clusters_find(le_clusters *clusters, size_t n, const double *z);
/* Computes the variances. */
void le_clusters_spread(le_clusters *clusters, size_t n, const double *theta);
/* Subtracts the cluster means from the points [from, to) and rescales so that the variance is kept.
 * Returns the number of residuals; points that are alone in their cluster have none. */
size_t le_clusters_residuals(le_clusters *clusters, size_t from, size_t to, const double *theta,
                             double *residual);
