/* How far moves carry particles, in the direction of least movement. */
#include "core/renewal.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { POWER_STEPS = 8, FEW = 8 };
/* Bounds of a measurement: independent draws give more than 1 half of the time. */
static const double fresh = 0.99, stuck = 0.01;

void le_renewal_alloc(le_renewal *renewal, size_t d, size_t most, const int *held,
                      le_arena *arena)
{
  renewal->d = d;
  renewal->held = held;
  renewal->before = le_arena_doubles(arena, most * d);
  renewal->whole = le_arena_doubles(arena, most * d);
  renewal->moved = le_arena_doubles(arena, most * d);
  renewal->mean = le_arena_doubles(arena, d);
  renewal->variance = le_arena_doubles(arena, d);
  renewal->square = le_arena_doubles(arena, d);
  renewal->component = le_arena_doubles(arena, d);
  renewal->next = le_arena_doubles(arena, d);
  renewal->kept = le_arena_indices(arena, most);
}

void le_renewal_start(le_renewal *renewal, size_t m, const double *theta)
{
  memcpy(renewal->before, theta, m * renewal->d * sizeof(double));
}

/* The minimum over the coordinates and their first principal component, for n points in `whole`
 * that moved by `moved`. Scales both by the standard deviations of the coordinates. */
static double slowest(le_renewal *s, size_t n)
{
  const size_t d = s->d;
  double least = INFINITY;
  memset(s->mean, 0, d * sizeof(double));
  memset(s->variance, 0, d * sizeof(double));
  memset(s->square, 0, d * sizeof(double));
  for (size_t i = 0; i < n; i++) le_add_scaled(d, 1 / (double)n, s->whole + i * d, s->mean);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) {
      const double away = s->whole[i * d + j] - s->mean[j], by = s->moved[i * d + j];
      s->variance[j] += away * away / ((double)n - 1);
      s->square[j] += by * by / (double)n;
    }
  for (size_t j = 0; j < d; j++) {
    if (s->held && s->held[j]) s->variance[j] = 0;
    if (s->variance[j] > 0) least = fmin(least, s->square[j] / (2 * s->variance[j]));
    s->next[j] = s->variance[j] > 0 ? 1 / sqrt(s->variance[j]) : 0;
  }
  if (d < 2 || !isfinite(least)) return isfinite(least) ? least : 0;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) {
      s->whole[i * d + j] = (s->whole[i * d + j] - s->mean[j]) * s->next[j];
      s->moved[i * d + j] *= s->next[j];
    }
  for (size_t j = 0; j < d; j++) s->component[j] = (j % 2 ? -1 : 1) / sqrt((double)d + (double)j);
  for (int step = 0; step < POWER_STEPS; step++) {
    memset(s->next, 0, d * sizeof(double));
    for (size_t i = 0; i < n; i++)
      le_add_scaled(d, le_dot(s->component, s->whole + i * d, d), s->whole + i * d, s->next);
    const double length = sqrt(le_dot(s->next, s->next, d));
    if (!(length > 0) || !isfinite(length)) return least;
    for (size_t j = 0; j < d; j++) s->component[j] = s->next[j] / length;
  }
  double variance = 0, square = 0;
  for (size_t i = 0; i < n; i++) {
    variance += pow(le_dot(s->component, s->whole + i * d, d), 2) / ((double)n - 1);
    square += pow(le_dot(s->component, s->moved + i * d, d), 2) / (double)n;
  }
  return variance > 0 ? fmin(least, square / (2 * variance)) : least;
}

double le_renewal_measure(le_renewal *s, size_t m, const double *theta, const double *weight,
                          const le_metric *metric)
{
  const size_t d = s->d;
  size_t n = 0, left = 0, counted = d;
  for (size_t j = 0; s->held && j < d; j++) counted -= (size_t)s->held[j];
  for (size_t i = 0; i < m; i++) {
    if (!(weight[i] > 0)) continue;
    left += memcmp(theta + i * d, s->before + i * d, d * sizeof(double)) != 0;
    s->kept[n++] = i;
  }
  if (n < FEW || counted == 0) return NAN;
  for (size_t k = 0; k < n; k++)
    for (size_t j = 0; j < d; j++) {
      s->whole[k * d + j] = theta[s->kept[k] * d + j];
      s->moved[k * d + j] = s->whole[k * d + j] - s->before[s->kept[k] * d + j];
    }
  double least = slowest(s, n), directions = (double)(counted + (counted > 1));
  if (d > 1 && metric->kind == LE_METRIC_DENSE) {
    for (size_t k = 0; k < n; k++) {
      const size_t i = s->kept[k];
      le_metric_whiten(metric, theta + i * d, s->whole + k * d);
      le_metric_whiten(metric, s->before + i * d, s->moved + k * d);
      for (size_t j = 0; j < d; j++)
        s->moved[k * d + j] = s->whole[k * d + j] - s->moved[k * d + j];
    }
    least = fmin(least, slowest(s, n));
    directions *= 2;
  }
  least *= 1 + sqrt(4 * log(fmax(directions, 2)) / (double)n);
  return fmin(least, (double)left / (double)n);
}

double le_renewal_within(double first, double second)
{
  if (!(first > 0)) return second;
  const double left = fmin(fmax(second / first - 1, 0), 1);
  return fmax(second, 1 - left * left);
}

double le_renewal_moves(double moves, double reached, double goal)
{
  return moves * log1p(-goal) / log1p(-fmin(fmax(reached, stuck), fresh));
}

void le_renewal_archive(le_renewal *renewal, size_t m, le_archive *archive)
{
  LE_ARCHIVE_WHOLE(archive, renewal);
  le_archive_doubles(archive, renewal->before, m * renewal->d);
}
