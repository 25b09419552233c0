/* Chao's reservoir: a weighted sample of bounded size from a stream. */
#include "core/varopt.h"

#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

void le_varopt_alloc(le_varopt *reservoir, size_t most, size_t d, le_arena *arena)
{
  reservoir->most = most;
  reservoir->d = d;
  reservoir->n = 0;
  reservoir->theta = le_arena_doubles(arena, (most + 1) * d);
  reservoir->log_weight = le_arena_doubles(arena, most + 1);
  reservoir->sorted = le_arena_doubles(arena, most + 1);
}

/* The threshold t for which sum_i min(1, w_i / t) = most, for most + 1 weights relative to the
 * largest. */
static double threshold(const le_varopt *reservoir, double top)
{
  const size_t n = reservoir->n;
  double *w = reservoir->sorted, light = 0;
  for (size_t i = 0; i < n; i++) w[i] = exp(reservoir->log_weight[i] - top);
  gsl_sort(w, 1, n);
  /* the k lightest points share most - (n - k) = k - 1 places */
  for (size_t k = 1; k <= n; k++) {
    light += w[k - 1];
    if (k >= 2 && (k == n || light / (double)(k - 1) <= w[k])) return light / (double)(k - 1);
  }
  return w[n - 1];
}

void le_varopt_add(le_varopt *reservoir, const double *theta, double log_weight, const gsl_rng *rng)
{
  const size_t d = reservoir->d;
  if (!(log_weight > -INFINITY)) return;
  memcpy(reservoir->theta + reservoir->n * d, theta, d * sizeof(double));
  reservoir->log_weight[reservoir->n++] = log_weight;
  if (reservoir->n <= reservoir->most) return;
  const double top = gsl_stats_max(reservoir->log_weight, 1, reservoir->n);
  const double t = threshold(reservoir, top), log_t = log(t) + top;
  /* exactly one point is dropped: the i-th with probability 1 - min(1, w_i / t); these sum to one.
   * The lightest one if several weights are negligible beside the largest. */
  double point = gsl_rng_uniform(rng);
  size_t gone = gsl_stats_min_index(reservoir->log_weight, 1, reservoir->n);
  for (size_t i = 0; i < reservoir->n && t > 0; i++) {
    const double w = reservoir->log_weight[i];
    if (w >= log_t) continue;
    gone = i;
    if ((point += expm1(w - log_t)) < 0) break;
  }
  const size_t last = --reservoir->n;
  memmove(reservoir->theta + gone * d, reservoir->theta + last * d, d * sizeof(double));
  reservoir->log_weight[gone] = reservoir->log_weight[last];
  for (size_t i = 0; i < last; i++)
    reservoir->log_weight[i] = fmax(reservoir->log_weight[i], log_t);
}

void le_varopt_archive(le_varopt *reservoir, le_archive *archive)
{
  LE_ARCHIVE_WHOLE(archive, reservoir);
  le_archive_indices(archive, &reservoir->n, 1, reservoir->most + 1);
  le_archive_doubles(archive, reservoir->theta, reservoir->n * reservoir->d);
  le_archive_doubles(archive, reservoir->log_weight, reservoir->n);
}
