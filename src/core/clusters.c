/* Clusters as connected components of a nearest-neighbour graph, by union-find. */
#include "core/clusters.h"

#include <math.h>
#include <string.h>

/* With more points than this, a sample of them forms the clusters, and every other point joins the
 * cluster of its nearest neighbour in the sample. */
enum { LOOKED_AT_MOST = 1000, NEIGHBOURS_MOST = 16 };

void le_clusters_alloc(le_clusters *c, size_t most, size_t d, le_arena *arena)
{
  c->d = d;
  c->label = le_arena_indices(arena, most);
  c->variance = le_arena_doubles(arena, most * d);
  c->mean = le_arena_doubles(arena, most * d);
  c->number = le_arena_doubles(arena, most);
  c->size = le_arena_indices(arena, most);
  c->nearest = le_arena_indices(arena, NEIGHBOURS_MOST);
  c->distance = le_arena_doubles(arena, NEIGHBOURS_MOST);
  c->count = 1;
}

void le_clusters_join(le_clusters *c, size_t n)
{
  c->count = 1;
  memset(c->label, 0, n * sizeof *c->label);
}

static double apart(const double *a, const double *b, size_t d)
{
  double square = 0;
  for (size_t j = 0; j < d; j++) square += (a[j] - b[j]) * (a[j] - b[j]);
  return square;
}

/* The root of a point's tree; the path is halved on the way. */
static size_t root(size_t *parent, size_t i)
{
  while (parent[i] != i) {
    parent[i] = parent[parent[i]];
    i = parent[i];
  }
  return i;
}

/* The `wanted` points nearest to z among the first n, except point `self`; nearest first. */
static size_t nearest(le_clusters *c, size_t n, const double *all, const double *z, size_t self,
                      size_t wanted)
{
  size_t found = 0;
  for (size_t i = 0; i < n; i++) {
    if (i == self) continue;
    const double square = apart(all + i * c->d, z, c->d);
    if (found == wanted && !(square < c->distance[found - 1])) continue;
    size_t at = found < wanted ? found++ : found - 1;
    for (; at > 0 && square < c->distance[at - 1]; at--) {
      c->distance[at] = c->distance[at - 1];
      c->nearest[at] = c->nearest[at - 1];
    }
    c->distance[at] = square;
    c->nearest[at] = i;
  }
  return found;
}

void le_clusters_find(le_clusters *c, size_t n, const double *z)
{
  const size_t looked = n < LOOKED_AT_MOST ? n : LOOKED_AT_MOST, d = c->d;
  /* a nearest-neighbour graph of random points is connected if neighbours are a multiple of log
   * n */
  const size_t k = (size_t)ceil(1.5 * log((double)looked));
  le_clusters_join(c, n);
  if (looked < 4 * k) return;
  size_t *parent = c->label;
  for (size_t i = 0; i < looked; i++) parent[i] = i;
  for (size_t i = 0; i < looked; i++) {
    const size_t found = nearest(c, looked, z, z + i * d, i, k);
    for (size_t f = 0; f < found; f++) parent[root(parent, i)] = root(parent, c->nearest[f]);
  }
  /* find the roots first, then number them in order */
  for (size_t i = 0; i < looked; i++) c->size[i] = root(parent, i);
  c->count = 0;
  for (size_t i = 0; i < looked; i++)
    if (c->size[i] == i) c->number[i] = (double)c->count++;
  if (c->count == 1) {
    le_clusters_join(c, n);
    return;
  }
  for (size_t i = 0; i < looked; i++) c->label[i] = (size_t)c->number[c->size[i]];
  for (size_t i = looked; i < n; i++) {
    nearest(c, looked, z, z + i * d, n, 1);
    c->label[i] = c->label[c->nearest[0]];
  }
}

/* Sizes and means over [from, to). */
static void means(le_clusters *c, size_t from, size_t to, const double *theta)
{
  const size_t d = c->d;
  memset(c->size, 0, c->count * sizeof *c->size);
  memset(c->mean, 0, c->count * d * sizeof(double));
  for (size_t i = from; i < to; i++) c->size[c->label[i]]++;
  for (size_t i = from; i < to; i++)
    for (size_t j = 0; j < d; j++)
      c->mean[c->label[i] * d + j] += theta[i * d + j] / (double)c->size[c->label[i]];
}

void le_clusters_spread(le_clusters *c, size_t n, const double *theta)
{
  const size_t d = c->d;
  means(c, 0, n, theta);
  memset(c->variance, 0, c->count * d * sizeof(double));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) {
      const size_t at = c->label[i] * d + j;
      c->variance[at] += pow(theta[i * d + j] - c->mean[at], 2) / (double)c->size[c->label[i]];
    }
}

size_t le_clusters_residuals(le_clusters *c, size_t from, size_t to, const double *theta,
                             double *residual)
{
  const size_t d = c->d;
  size_t n = 0;
  means(c, from, to, theta);
  for (size_t i = from; i < to; i++) {
    const double size = (double)c->size[c->label[i]];
    if (size < 2) continue;
    for (size_t j = 0; j < d; j++)
      residual[n * d + j] = (theta[i * d + j] - c->mean[c->label[i] * d + j]) *
                            sqrt(size / (size - 1));
    n++;
  }
  return n;
}
