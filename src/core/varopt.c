/* The reservoir of Cohen et al. (2009): heavy points in a heap, light ones with one weight. */
#include "core/varopt.h"

#include <math.h>
#include <string.h>

void le_varopt_alloc(le_varopt *reservoir, size_t most, size_t d, le_arena *arena)
{
  reservoir->most = most;
  reservoir->d = d;
  reservoir->theta = le_arena_doubles(arena, (most + 1) * d);
  reservoir->log_weight = le_arena_doubles(arena, most + 1);
  le_varopt_empty(reservoir);
}

void le_varopt_empty(le_varopt *reservoir)
{
  reservoir->n = reservoir->heavy = 0;
  reservoir->log_light = -INFINITY;
}

static void copy(le_varopt *r, size_t from, size_t to)
{
  r->log_weight[to] = r->log_weight[from];
  memmove(r->theta + to * r->d, r->theta + from * r->d, r->d * sizeof(double));
}

static void swap(le_varopt *r, size_t a, size_t b)
{
  if (a == b) return;
  double *one = r->theta + a * r->d, *other = r->theta + b * r->d;
  const double log_weight = r->log_weight[a];
  r->log_weight[a] = r->log_weight[b];
  r->log_weight[b] = log_weight;
  for (size_t j = 0; j < r->d; j++) {
    const double number = one[j];
    one[j] = other[j];
    other[j] = number;
  }
}

/* The point behind the heap becomes a part of it. */
static void push(le_varopt *r)
{
  for (size_t i = r->heavy++; i > 0 && r->log_weight[i] < r->log_weight[(i - 1) / 2];
       i = (i - 1) / 2)
    swap(r, i, (i - 1) / 2);
}

/* The lightest point of the heap becomes the one behind it. */
static void pop(le_varopt *r)
{
  const size_t n = --r->heavy;
  swap(r, 0, n);
  for (size_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && r->log_weight[child + 1] < r->log_weight[child]) child++;
    if (!(r->log_weight[child] < r->log_weight[i])) break;
    swap(r, i, child);
  }
}

static double log_sum(double a, double b)
{
  const double most = fmax(a, b), least = fmin(a, b);
  return most == -INFINITY ? most : most + log1p(exp(least - most));
}

/* The point that is dropped, of those behind the heap: `moved` with weights of their own, then
 * `light`. A point of weight w <= t is dropped with probability 1 - w / t; these add up to one. */
static size_t point_to_drop(const le_varopt *r, size_t moved, size_t light, double log_t,
                            const gsl_rng *rng)
{
  double left = gsl_rng_uniform(rng);
  size_t lightest = r->heavy;
  for (size_t i = r->heavy; i < r->heavy + moved; i++) {
    if ((left += expm1(r->log_weight[i] - log_t)) < 0) return i;
    if (r->log_weight[i] < r->log_weight[lightest]) lightest = i;
  }
  /* without light points only a rounding error leads here */
  return light > 0 ? r->heavy + moved + gsl_rng_uniform_int(rng, light) : lightest;
}

void le_varopt_add(le_varopt *reservoir, const double *theta, double log_weight, const gsl_rng *rng)
{
  le_varopt *r = reservoir;
  if (!(log_weight > -INFINITY)) return;
  const size_t last = r->n;
  memcpy(r->theta + last * r->d, theta, r->d * sizeof(double));
  r->log_weight[last] = log_weight;
  if (last < r->most) {
    r->heavy = ++r->n;
    return;
  }
  if (r->log_light == -INFINITY) /* the first point too many */
    for (r->heavy = 0; r->heavy < last;) push(r);
  /* The new point is behind the heap, and is a part of it if it is heavy. Then points leave the
   * heap until each that stays is heavier than the weight that the others will have. */
  const size_t light = last - r->heavy;
  size_t moved = 0;
  double log_total = light > 0 ? r->log_light + log((double)light) : -INFINITY;
  swap(r, r->heavy, last);
  if (log_weight > r->log_light) {
    push(r);
  } else {
    moved = 1;
    log_total = log_sum(log_total, log_weight);
  }
  while (r->heavy > 0) {
    const size_t others = light + moved;
    if (others > 1 && log_total < log((double)(others - 1)) + r->log_weight[0]) break;
    log_total = log_sum(log_total, r->log_weight[0]);
    pop(r);
    moved++;
  }
  r->log_light = log_total - log((double)(light + moved - 1));
  copy(r, last, point_to_drop(r, moved, light, r->log_light, rng));
}

void le_varopt_settle(le_varopt *reservoir)
{
  for (size_t i = reservoir->heavy; i < reservoir->n; i++)
    reservoir->log_weight[i] = reservoir->log_light;
}

void le_varopt_archive(le_varopt *reservoir, le_archive *archive)
{
  LE_ARCHIVE_WHOLE(archive, reservoir);
  le_archive_indices(archive, &reservoir->n, 1, reservoir->most + 1);
  le_archive_indices(archive, &reservoir->heavy, 1, reservoir->most + 1);
  le_archive_doubles(archive, &reservoir->log_light, 1);
  le_archive_doubles(archive, reservoir->theta, reservoir->n * reservoir->d);
  le_archive_doubles(archive, reservoir->log_weight, reservoir->n);
  if (archive->status == LE_OK) le_archive_require(archive, reservoir->heavy <= reservoir->n);
}
