/* Rows are gathered, so they may lie in any order. */
#include "core/expansion.h"

#include "base/linalg.h"
#include "base/rng.h"
#include "base/simd.h"

#include <math.h>
#include <string.h>

enum { PROBES = LE_EXPANSION_PROBES };

void le_expansion_alloc(le_expansion *e, const le_target *target, le_arena *arena)
{
  const size_t d = target->d;
  memset(e, 0, sizeof *e);
  e->part_grad = le_arena_doubles(arena, d);
  e->part_hess = le_arena_doubles(arena, d * d);
  e->some_grad = le_arena_doubles(arena, d);
  e->some_hess = le_arena_doubles(arena, d * d);
  e->shift = le_arena_doubles(arena, target->m * d);
  e->distance = le_arena_doubles(arena, target->m);
  e->rest = le_arena_doubles(arena, target->m);
  e->room = target->block;
  e->rows = le_arena_doubles(arena, e->room * target->ops->width(target->model) + LE_ALIGN_MORE);
  e->uniform = le_arena_doubles(arena, e->room);
  e->picked = le_arena_indices(arena, e->room);
}

int le_expansion_possible(const le_target *target)
{
  return target->ops->log_lik_hess != NULL;
}

static int is_quadratic(const le_target *target)
{
  return (target->ops->traits & LE_MODEL_QUADRATIC) != 0;
}

/* Some rows of [from, to), the k-th of `part` from the k-th of as many stretches. */
static le_rows take(const le_expansion *e, const le_target *target, size_t from, size_t to, size_t part, size_t k, size_t many)
{
  const le_store *store = target->store;
  const double stride = (double)(to - from) / (double)part;
  le_uniforms(target->rng, many, e->uniform);
  for (size_t r = 0; r < many; r++) {
    const size_t row = from + (size_t)(((double)(k + r) + e->uniform[r]) * stride);
    e->picked[r] = row < to ? row : to - 1;
    le_prefetch(store->values + e->picked[r] * store->width, store->width * sizeof(double));
  }
  le_vector_gather(many, store->width, store->n, store->values, e->picked, e->rows);
  return (le_rows){many, store->width, e->rows};
}

/* Sums over part of the rows: rest[m] of l_k(theta) - l_k(a), and at the anchor of the derivatives. */
static le_status part_sums(le_expansion *e, le_target *target, size_t from, size_t to, size_t part, size_t m, const double *theta)
{
  const size_t d = target->d;
  double *sum = target->work, at_anchor = 0;
  memset(e->rest, 0, m * sizeof(double));
  memset(e->part_grad, 0, d * sizeof(double));
  memset(e->part_hess, 0, d * d * sizeof(double));
  for (size_t done = 0, many; done < part; done += many) {
    many = part - done < e->room ? part - done : e->room;
    const le_rows rows = take(e, target, from, to, part, done, many);
    LE_TRY(le_target_sums(target, &rows, 1, e->anchor, sum, NULL));
    at_anchor += *sum;
    LE_TRY(le_target_sums(target, &rows, m, theta, sum, NULL));
    le_add_scaled(m, 1, sum, e->rest);
    LE_TRY(le_target_curvature(target, &rows, e->anchor, e->some_grad, e->some_hess));
    le_add_scaled(d, 1, e->some_grad, e->part_grad);
    le_add_scaled(d * d, 1, e->some_hess, e->part_hess);
  }
  for (size_t i = 0; i < m; i++) e->rest[i] -= at_anchor;
  return LE_OK;
}

le_status le_expansion_values(le_expansion *e, le_target *target, size_t from, size_t to, size_t part, size_t m, const double *theta,
                              double *value)
{
  const size_t d = target->d;
  if (is_quadratic(target)) part = 0;
  const double scale = part ? (double)(to - from) / (double)part : 0;
  if (part) LE_TRY(part_sums(e, target, from, to, part, m, theta));
#ifdef _OPENMP
#pragma omp parallel for num_threads(le_target_threads(target, m, 2 * d * d)) schedule(static)
#endif
  for (size_t i = 0; i < m; i++) {
    double *shift = e->shift + i * d, *product = target->grad + i * d;
    for (size_t j = 0; j < d; j++) shift[j] = theta[i * d + j] - e->anchor[j];
    const double quadratic = le_quadratic_form(e->hess, d, shift, product);
    e->rest[i] = part ? scale * (e->rest[i] - le_dot(e->part_grad, shift, d) - 0.5 * le_quadratic_form(e->part_hess, d, shift, product)) : 0;
    e->distance[i] = isnan(quadratic) ? INFINITY : fabs(quadratic);
    value[i] = le_dot(e->grad, shift, d) + 0.5 * quadratic + e->rest[i];
  }
  return LE_OK;
}

le_status le_expansion_missed(le_expansion *e, le_target *target, size_t from, size_t to, size_t m, const double *theta, double *value,
                              double *at_anchor, double *missed, double *farthest)
{
  const size_t d = target->d;
  size_t probe[PROBES], probes = 0;
  double exact[PROBES + 1], *point = target->packed;
  *missed = 0;
  *farthest = is_quadratic(target) ? INFINITY : 0;
  memcpy(point, e->anchor, d * sizeof(double));
  while (!is_quadratic(target) && probes < PROBES && probes + 1 < target->m) {
    size_t best = 0;
    for (size_t i = 1; i < m; i++)
      if (e->distance[i] > e->distance[best]) best = i;
    if (e->distance[best] == -INFINITY) break;
    if (probes == 0) *farthest = e->distance[best];
    e->distance[best] = -INFINITY;
    probe[probes++] = best;
    memcpy(point + probes * d, theta + best * d, d * sizeof(double));
  }
  LE_TRY(le_target_log_lik(target, from, to, probes + 1, point, exact));
  *at_anchor = exact[0];
  for (size_t p = 0; p < probes; p++) {
    const double off = fabs(exact[0] + value[probe[p]] - exact[p + 1]);
    *missed = off <= *missed ? *missed : off;
    value[probe[p]] = exact[p + 1] - exact[0];
  }
  return LE_OK;
}
