/* Log-likelihoods from an expansion around an anchor and a subsample of rows. The sampled rows are
 * gathered, so they may lie anywhere. */
#include "core/expansion.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "base/rng.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

enum { PROBES = LE_EXPANSION_PROBES };

static size_t rows_room(const le_expansion *e, const le_target *target)
{
  return e->room * target->ops->width(target->model) + LE_ALIGN_MORE;
}

void le_expansion_alloc(le_expansion *e, const le_target *target, le_arena *arena)
{
  const size_t d = target->d;
  memset(e, 0, sizeof *e);
  e->part = le_arena_doubles(arena, d * d + d);
  e->distance = le_arena_doubles(arena, target->m);
  e->rest = le_arena_doubles(arena, target->m);
  e->room = target->block;
  e->sum = le_arena_scratch(arena, LE_TARGET_PARTS * (target->m + 1), sizeof(double));
  e->uniform = le_arena_scratch(arena, LE_TARGET_PARTS * e->room, sizeof(double));
  e->rows = le_arena_scratch(arena, (size_t)target->context->threads * rows_room(e, target),
                             sizeof(double));
  e->picked = le_arena_scratch(arena, (size_t)target->context->threads * e->room, sizeof(size_t));
}

int le_expansion_possible(const le_target *target)
{
  return target->ops->log_lik_hess != NULL;
}

static int is_quadratic(const le_target *target)
{
  return (target->ops->traits & LE_MODEL_QUADRATIC) != 0;
}

/* The sampled rows in lots for idle threads to take. Each lot has its own sums, and these are added
 * in a fixed order. */
typedef struct lots {
  const le_expansion *e;
  /* rows; size of the subsample; rows sampled before this call; points */
  size_t from, to, part, first, m;
  const double *theta;
} lots;

static size_t lot_size(const lots *all, size_t k)
{
  const size_t taken = all->first + k * all->e->room,
               rest = taken < all->part ? all->part - taken : 0;
  return rest < all->e->room ? rest : all->e->room;
}

/* The k-th row of the subsample is drawn from the k-th of `part` segments of equal length. */
static le_rows take(const lots *all, const le_target *target, size_t k, size_t worker)
{
  const le_expansion *e = all->e;
  const le_store *store = target->store;
  const size_t many = lot_size(all, k), before = all->first + k * e->room;
  /* the rows in memory that are there for rows [from, to) */
  const le_rows from = le_store_rows(store, all->from, all->to);
  const double stride = (double)from.n / (double)all->part, *uniform = e->uniform + k * e->room;
  double *rows = e->rows + worker * rows_room(e, target);
  size_t *picked = e->picked + worker * e->room;
  for (size_t r = 0; r < many; r++) {
    const size_t row = (size_t)(((double)(before + r) + uniform[r]) * stride);
    picked[r] = row < from.n ? row : from.n - 1;
    le_prefetch(from.values + picked[r] * store->width, store->width * sizeof(double));
  }
  return le_rows_gather(&from, many, picked, rows);
}

static le_status lot_sums(void *self, const le_target *target, size_t k, size_t worker)
{
  const lots *all = self;
  const le_expansion *e = all->e;
  const size_t d = target->d, m = all->m;
  const le_rows rows = take(all, target, k, worker);
  double *sum = e->sum + k * (m + 1), *grad = target->part + k * (d * d + d),
         *scratch = le_target_scratch(target, worker);
  memset(sum, 0, (m + 1) * sizeof(double));
  memset(grad, 0, (d * d + d) * sizeof(double));
  LE_TRY(target->ops->log_lik(target->model, m, all->theta, &rows, sum, scratch));
  LE_TRY(target->ops->log_lik(target->model, 1, e->anchor, &rows, sum + m, scratch));
  return le_target_add_curvature(target, &rows, e->anchor, grad, grad + d, scratch);
}

/* Sums over the subsample: l_k(theta) - l_k(a) in rest[m], and the derivatives at the anchor. */
static le_status part_sums(le_expansion *e, le_target *target, size_t from, size_t to, size_t part,
                           size_t m, const double *theta)
{
  const size_t d = target->d;
  lots all = {e, from, to, part, 0, m, theta};
  memset(e->rest, 0, m * sizeof(double));
  memset(e->part, 0, (d * d + d) * sizeof(double));
  for (; all.first < part; all.first += LE_TARGET_PARTS * e->room) {
    const size_t rest = part - all.first, most = LE_TARGET_PARTS * e->room,
                 rows = rest < most ? rest : most;
    const size_t many = (rows + e->room - 1) / e->room;
    if (all.first > 0 && le_interrupted(target->context)) return LE_INTERRUPTED;
    le_uniforms(target->rng, rows, e->uniform);
    LE_TRY(le_target_tasks(target, many, le_target_threads(target, m, rows * d), lot_sums, &all));
    target->likelihoods += (double)(m + 1) * (double)rows;
    target->gradients += (double)rows;
    for (size_t k = 0; k < many; k++) {
      const double *sum = e->sum + k * (m + 1);
      for (size_t i = 0; i < m; i++) e->rest[i] += sum[i] - sum[m];
      le_add_scaled(d * d + d, 1, target->part + k * (d * d + d), e->part);
    }
  }
  return LE_OK;
}

le_status le_expansion_values(le_expansion *e, le_target *target, size_t from, size_t to,
                              size_t part, size_t m, const double *theta, double *value)
{
  const size_t d = target->d;
  if (is_quadratic(target)) part = 0;
  const double scale = part ? (double)(to - from) / (double)part : 0;
  if (part) LE_TRY(part_sums(e, target, from, to, part, m, theta));
  LE_SCRATCH(shifts, target->stack, 2 * m * d);
  double *products = shifts + m * d;
#ifdef _OPENMP
#pragma omp parallel for num_threads(le_target_threads(target, m, 2 * d * d)) schedule(static)
#endif
  for (size_t i = 0; i < m; i++) {
    double *shift = shifts + i * d, *product = products + i * d;
    for (size_t j = 0; j < d; j++) shift[j] = theta[i * d + j] - e->anchor[j];
    const double quadratic = le_quadratic_form(e->sums + d, d, shift, product);
    e->rest[i] = part ? scale * (e->rest[i] - le_dot(e->part, shift, d) -
                                 0.5 * le_quadratic_form(e->part + d, d, shift, product))
                      : 0;
    e->distance[i] = isnan(quadratic) ? INFINITY : fabs(quadratic);
    value[i] = le_dot(e->sums, shift, d) + 0.5 * quadratic + e->rest[i];
  }
  return LE_OK;
}

le_status le_expansion_missed(le_expansion *e, le_target *target, size_t from, size_t to, size_t m,
                              const double *theta, double *value, double *at_anchor, double *missed,
                              double *farthest)
{
  const size_t d = target->d;
  size_t probe[PROBES], probes = 0;
  double exact[PROBES + 1];
  LE_SCRATCH(point, target->stack, (PROBES + 1) * d);
  *missed = 0;
  *farthest = is_quadratic(target) ? INFINITY : 0;
  memcpy(point, e->anchor, d * sizeof(double));
  while (!is_quadratic(target) && probes < PROBES && probes + 1 < target->m) {
    const size_t best = gsl_stats_max_index(e->distance, 1, m);
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
