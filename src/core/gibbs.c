/* Gibbs steps: the density at all values of a coordinate gives its conditional distribution. */
#include "core/gibbs.h"

#include <math.h>
#include <string.h>

/* The number of the value that a coordinate has: the nearest one. */
static size_t value_of(double at, const double *values, size_t n)
{
  size_t nearest = 0;
  for (size_t v = 1; v < n; v++)
    if (fabs(values[v] - at) < fabs(values[nearest] - at)) nearest = v;
  return nearest;
}

/* A number drawn with probabilities in proportion to exp(level); `now` if none is possible. */
static size_t draw_of(const double *level, size_t n, size_t now, double uniform)
{
  double top = -INFINITY, sum = 0;
  for (size_t v = 0; v < n; v++) top = fmax(top, level[v]);
  if (!isfinite(top)) return now;
  for (size_t v = 0; v < n; v++) sum += exp(level[v] - top);
  double left = uniform * sum;
  size_t last = now;
  for (size_t v = 0; v < n; v++) {
    const double mass = exp(level[v] - top);
    if (!(mass > 0)) continue;
    last = v;
    if ((left -= mass) < 0) break;
  }
  return last;
}

/* Draws coordinate j of points, which has n values. `value` has the log densities at the points,
 * before and after. In round r each point gets the r-th value after its own, so that each call has
 * all points. */
static le_status draw_coordinate(le_target *target, size_t j, size_t n, const double *values,
                                 size_t m, double *theta, const le_streams *streams, double *value)
{
  const size_t d = target->d;
  LE_SCRATCH(point, target->stack, m * (d + 2 + n));
  double *found = point + m * d, *own = found + m, *level = own + m;
  memcpy(point, theta, m * d * sizeof(double));
  for (size_t i = 0; i < m; i++) {
    own[i] = (double)value_of(theta[i * d + j], values, n);
    level[i * n + (size_t)own[i]] = value[i];
  }
  for (size_t r = 1; r < n; r++) {
    for (size_t i = 0; i < m; i++) point[i * d + j] = values[((size_t)own[i] + r) % n];
    LE_TRY(le_target_density(target, m, point, found));
    for (size_t i = 0; i < m; i++) level[i * n + ((size_t)own[i] + r) % n] = found[i];
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
  }
  for (size_t i = 0; i < m; i++) {
    const double uniform = gsl_rng_uniform(streams->rng[i + 1]);
    const size_t drawn = draw_of(level + i * n, n, (size_t)own[i], uniform);
    theta[i * d + j] = values[drawn];
    value[i] = level[i * n + drawn];
  }
  return LE_OK;
}

le_status le_gibbs_sweep(le_target *target, size_t m, double *theta, const le_streams *streams)
{
  const double *values;
  LE_SCRATCH(value, target->stack, m);
  LE_TRY(le_target_density(target, m, theta, value));
  for (size_t j = 0; j < target->d; j++) {
    if (!target->held[j]) continue;
    const size_t n = target->ops->discrete(target->model, j, &values);
    LE_TRY(draw_coordinate(target, j, n, values, m, theta, streams, value));
  }
  return LE_OK;
}
