#include "core/optima.h"

#include <math.h>
#include <string.h>

enum { NEIGHBOURS = 8 };

static double distance(size_t d, const double *a, const double *b, const double *scale)
{
  double sum = 0;
  for (size_t j = 0; j < d; j++) {
    const double shift = (a[j] - b[j]) / scale[j];
    sum += shift * shift;
  }
  return sum;
}

/* Whether the point at `place` in the order has NEIGHBOURS points nearer than any better one. */
static int is_optimum(size_t n, size_t d, const double *theta, const double *scale,
                      const size_t *order, size_t place)
{
  const double *point = theta + order[place] * d;
  double better = INFINITY;
  for (size_t k = 0; k < place; k++)
    better = fmin(better, distance(d, point, theta + order[k] * d, scale));
  size_t nearer = 0;
  for (size_t k = place + 1; k < n && nearer < NEIGHBOURS; k++)
    nearer += distance(d, point, theta + order[k] * d, scale) < better;
  return nearer >= NEIGHBOURS;
}

size_t le_optima(size_t n, size_t d, const double *theta, const double *scale, size_t *order,
                 size_t *rest)
{
  size_t found = 0, others = 0;
  for (size_t k = 0; k < n; k++) rest[k] = (size_t)is_optimum(n, d, theta, scale, order, k);
  /* the others overwrite entries of `rest` that have been read */
  for (size_t k = 0; k < n; k++) {
    const size_t point = order[k];
    if (rest[k]) order[found++] = point;
    else rest[others++] = point;
  }
  memcpy(order + found, rest, others * sizeof *rest);
  return found;
}
