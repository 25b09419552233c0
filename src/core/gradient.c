/* Mini-batch gradients with and without control variates. The expected number of times a row is in
 * a batch is proportional to its exponent in the annealed distribution (1 for rows seen, lambda in
 * the chunk). If the rows are in random order a batch is a block of consecutive rows, and nothing
 * is copied; otherwise a batch is drawn with replacement. */
#include "core/gradient.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "base/rng.h"
#include "core/past.h"

#include <math.h>
#include <string.h>

static size_t room(const le_gradient *gradient, const le_target *target)
{
  return gradient->batch * target->ops->width(target->model) + LE_ALIGN_MORE;
}

/* Memory for sums at one point: the gradient, and behind it the second derivatives. */
static double *take_sums(le_arena *arena, size_t d, double **hess)
{
  double *grad = le_arena_doubles(arena, d + d * d);
  *hess = grad ? grad + d : NULL;
  return grad;
}

void le_gradient_alloc(le_gradient *gradient, le_gradient_rule rule, size_t batch, int own,
                       const le_target *target, le_arena *arena)
{
  const size_t d = target->d;
  memset(gradient, 0, sizeof *gradient);
  gradient->rule = rule;
  gradient->batch = batch;
  gradient->own = own && rule != LE_GRADIENT_FULL;
  gradient->second_order = target->ops->log_lik_hess != NULL;
  gradient->size = gradient->second_order ? d + d * d : d;
  const size_t totals = rule == LE_GRADIENT_CONTROL ? LE_DRAWS_MOST + 1 : 0;
  gradient->anchor = le_arena_doubles(arena, d);
  gradient->grad = take_sums(arena, d, &gradient->hess);
  gradient->chunk_grad = take_sums(arena, d, &gradient->chunk_hess);
  gradient->total = le_arena_doubles(arena, totals * gradient->size);
  gradient->rows = le_arena_scratch(arena, LE_DRAWS_MOST * room(gradient, target), sizeof(double));
  const size_t threads = gradient->own ? (size_t)target->context->threads : 1,
               owners = gradient->own ? threads : 0;
  gradient->own_total = le_arena_doubles(arena, owners * 2 * (d + d * d));
  gradient->own_rows = le_arena_scratch(arena, owners * room(gradient, target), sizeof(double));
  gradient->picked = le_arena_indices(arena, threads * batch);
  gradient->uniform = le_arena_doubles(arena, threads * batch);
}

int le_gradient_active(const le_gradient *gradient, const le_target *target)
{
  if (gradient->rule == LE_GRADIENT_FULL) return 0;
  if (gradient->rule == LE_GRADIENT_BATCH) return target->seen > 0;
  return gradient->anchored;
}

/* Gradient and, if the model has them, second derivatives at the anchor over rows [from, to). */
static le_status anchor_sums(const le_gradient *gradient, le_target *target, size_t from, size_t to,
                             double *grad, double *hess)
{
  if (gradient->second_order)
    return le_target_log_lik_hess(target, from, to, gradient->anchor, grad, hess);
  return le_target_log_lik_grad(target, from, to, 1, gradient->anchor, NULL, grad);
}

le_status le_gradient_set_anchor(le_gradient *gradient, le_target *target, const double *anchor)
{
  memcpy(gradient->anchor, anchor, target->d * sizeof(double));
  gradient->anchored = 1;
  gradient->anchored_rows = target->seen;
  return anchor_sums(gradient, target, 0, target->seen, gradient->grad, gradient->hess);
}

le_status le_gradient_open_chunk(le_gradient *gradient, le_target *target)
{
  gradient->checked = -1;
  gradient->part = 0;
  return anchor_sums(gradient, target, target->seen, target->seen + target->chunk,
                     gradient->chunk_grad, gradient->chunk_hess);
}

void le_gradient_close_chunk(le_gradient *gradient)
{
  le_add_scaled(gradient->size, 1, gradient->chunk_grad, gradient->grad);
}

/* `batch` consecutive rows of [from, to), cyclically. Rows are copied only if the block passes the
 * end. */
static le_rows stretch(const le_gradient *gradient, const le_store *store, size_t from, size_t to,
                       size_t place, double *rows)
{
  const size_t width = store->width, straight = to - place;
  if (straight >= gradient->batch)
    return (le_rows){gradient->batch, width, store->values + place * width};
  memcpy(rows, store->values + place * width, straight * width * sizeof(double));
  memcpy(rows + straight * width, store->values + from * width,
         (gradient->batch - straight) * width * sizeof(double));
  return (le_rows){gradient->batch, width, rows};
}

/* Draws from [0, seen), and if `whole` also from the chunk with weight lambda per row. A block of
 * consecutive rows lies in one or the other. All gathered rows are prefetched before the first is
 * copied; otherwise waiting for memory would cost more than the model's work on them. */
static le_rows draw_batch(const le_gradient *gradient, const le_target *target, int whole,
                          const gsl_rng *rng, double *rows)
{
  const size_t thread = gradient->own ? target->thread : 0;
  double *uniform = gradient->uniform + thread * gradient->batch;
  size_t *picked = gradient->picked + thread * gradient->batch;
  const le_store *store = target->store;
  const le_rows held = le_store_all(store);
  const double in_chunk = whole ? target->lambda * (double)target->chunk : 0;
  const double seen = (double)target->seen, all = seen + in_chunk;
  /* in memory the rows seen, or the sample of them, are [0, past), the chunk is [past, end) */
  const size_t past = le_store_sample(store, target->seen),
               end = past + (in_chunk > 0 ? target->chunk : 0);
  /* no rows seen yet, and the chunk has weight zero */
  if (end == 0) return (le_rows){0, store->width, rows};
  const double share = past ? (double)past / seen : 1;
  const int one = end <= store->mixed && past >= gradient->batch &&
                  (end == past || target->chunk >= gradient->batch);
  const size_t draws = one ? 1 : gradient->batch;
  le_uniforms(rng, draws, uniform);
  for (size_t b = 0; b < draws; b++) {
    const double place = uniform[b] * all;
    size_t k = in_chunk > 0 && place >= seen
                 ? past + (size_t)((place - seen) / target->lambda)
                 : (size_t)(place * share);
    if (k >= end) k = end - 1;
    if (!one) le_prefetch(store->values + k * store->width, store->width * sizeof(double));
    picked[b] = k;
  }
  const size_t first = picked[0];
  if (one) return first < past ? stretch(gradient, store, 0, past, first, rows)
                               : stretch(gradient, store, past, end, first, rows);
  return le_rows_gather(&held, gradient->batch, picked, rows);
}

static int has_remainder(const le_gradient *gradient, const le_target *target)
{
  return !(gradient->second_order && (target->ops->traits & LE_MODEL_QUADRATIC));
}

size_t le_gradient_rows(const le_gradient *gradient, const le_target *target)
{
  if (gradient->rule == LE_GRADIENT_BATCH) return gradient->batch + target->chunk;
  return has_remainder(gradient, target) ? gradient->batch : 0;
}

/* The terms of the formula that are the same for every particle: `from` + scale * `sums`. */
static void set_terms(const le_gradient *gradient, const double *from, double scale,
                      const double *sums, double *total)
{
  memcpy(total, from, gradient->size * sizeof(double));
  le_add_scaled(gradient->size, scale, sums, total);
}

/* The terms of one batch: those without a batch minus its sums at the anchor. */
static void take_off(const le_gradient *gradient, const le_target *target, const double *sums,
                     double *total)
{
  set_terms(gradient, gradient->total + LE_DRAWS_MOST * gradient->size,
            -le_target_size(target) / (double)gradient->batch, sums, total);
}

_Static_assert((int)LE_DRAWS_MOST <= (int)LE_TARGET_PARTS,
               "batches' sums are kept where those of parts are");

static le_status batch_sums(void *self, const le_target *target, size_t draw, size_t worker)
{
  const le_gradient *gradient = self;
  const size_t d = target->d;
  double *grad = target->part + draw * (d * d + d);
  memset(grad, 0, (d * d + d) * sizeof(double));
  LE_TRY(le_target_add_curvature(target, &gradient->drawn[draw], gradient->anchor, grad, grad + d,
                                 le_target_scratch(target, worker)));
  take_off(gradient, target, grad, gradient->total + draw * gradient->size);
  return LE_OK;
}

le_status le_gradient_draw(le_gradient *gradient, le_target *target, size_t n)
{
  const int controlled = gradient->rule == LE_GRADIENT_CONTROL,
            remainder = has_remainder(gradient, target);
  if (controlled)
    set_terms(gradient, gradient->grad, target->lambda, gradient->chunk_grad,
              gradient->total + LE_DRAWS_MOST * gradient->size);
  if (n == 0 || (controlled && !remainder)) return LE_OK;
  for (size_t k = 0; k < n; k++)
    gradient->drawn[k] = draw_batch(gradient, target, controlled, target->rng,
                                    gradient->rows + k * room(gradient, target));
  if (!controlled) return LE_OK;

  if (gradient->second_order) {
    const int threads = le_target_threads(target, n * gradient->batch, gradient->size);
    LE_TRY(le_target_tasks(target, n, threads, batch_sums, gradient));
    target->gradients += (double)(n * gradient->batch);
  }
  for (size_t k = 0; k < n && !gradient->second_order; k++) {
    LE_TRY(le_target_sums(target, &gradient->drawn[k], 1, gradient->anchor, NULL, target->grad));
    take_off(gradient, target, target->grad, gradient->total + k * gradient->size);
  }
  return LE_OK;
}

/* The terms at the anchor of the formula, and the batch's gradient if it is not NULL, of one
 * particle; adds to g. */
static void add_terms(const le_gradient *gradient, le_target *target, const double *total,
                      const double *theta, const double *batch, double *shift, double *g)
{
  const size_t d = target->d;
  if (gradient->second_order) {
    for (size_t j = 0; j < d; j++) shift[j] = theta[j] - gradient->anchor[j];
    le_add_symmetric_matvec(total + d, d, shift, g);
  }
  le_add_scaled(d, 1, total, g);
  if (batch) le_add_scaled(d, le_target_size(target) / (double)gradient->batch, batch, g);
}

/* Mini-batches of particles' own. */
typedef struct own_batches {
  const le_gradient *gradient;
  gsl_rng *const *rng;
  const double *theta;
  double *grad;
} own_batches;

/* Adds what the batches of particles [first, first + m) give to their gradients. */
static le_status own_part(void *self, le_target *target, size_t first, size_t m)
{
  const own_batches *own = self;
  const le_gradient *gradient = own->gradient;
  const size_t d = target->d, all = d + d * d;
  const int controlled = gradient->rule == LE_GRADIENT_CONTROL;
  double *rows = gradient->own_rows + target->thread * room(gradient, target),
         *total = gradient->own_total + target->thread * 2 * all, *sums = total + all;
  double done = 0;
  for (size_t i = first; i < first + m; i++) {
    const double *theta = own->theta + i * d;
    double *g = own->grad + i * d;
    const le_rows batch = draw_batch(gradient, target, controlled, own->rng[i], rows);
    if (controlled && gradient->second_order) {
      memset(sums, 0, all * sizeof(double));
      LE_TRY(le_target_add_curvature(target, &batch, gradient->anchor, sums, sums + d,
                                     target->scratch));
      target->gradients += (double)batch.n;
    } else if (controlled) {
      LE_TRY(le_target_sums(target, &batch, 1, gradient->anchor, NULL, sums));
    }
    if (controlled) take_off(gradient, target, sums, total);
    LE_TRY(le_target_sums(target, &batch, 1, theta, NULL, target->grad));
    if (controlled) add_terms(gradient, target, total, theta, target->grad, target->packed, g);
    else le_add_scaled(d, (double)target->seen / (double)gradient->batch, target->grad, g);
    if (le_work_interrupted(target->context, &done, (double)batch.n)) return LE_INTERRUPTED;
  }
  return LE_OK;
}

static le_status add_own(const le_gradient *gradient, le_target *target, size_t m,
                         const double *theta, gsl_rng *const *rng, double *grad)
{
  const size_t d = target->d;
  const double rows = (double)gradient->batch;
  const size_t most = 1 + (size_t)(LE_TARGET_SHARED_MOST / 2 / rows);
  double *few = target->few;
  le_status status = LE_OK;
  /* the rows of one particle are few: threads share the particles */
  target->few = NULL;
  for (size_t from = 0; from < m && status == LE_OK; from += most) {
    own_batches own = {gradient, rng + from, theta + from * d, grad + from * d};
    status = le_target_share(target, m - from < most ? m - from : most, rows, own_part, &own);
  }
  target->few = few;
  return status;
}

static le_status plain_estimate(const le_gradient *gradient, size_t draw, le_target *target,
                                size_t m, const double *theta, gsl_rng *const *rng, double *grad)
{
  const size_t d = target->d;
  le_target_prior(target, m, theta, NULL, grad);
  if (target->chunk > 0 && target->lambda > 0) {
    LE_TRY(le_target_log_lik_grad(target, target->seen, target->seen + target->chunk, m, theta,
                                  NULL, target->grad));
    le_add_scaled(m * d, target->lambda, target->grad, grad);
  }
  if (rng) {
    LE_TRY(add_own(gradient, target, m, theta, rng, grad));
  } else {
    const double scale = (double)target->seen / (double)gradient->batch;
    LE_TRY(le_target_sums(target, &gradient->drawn[draw], m, theta, NULL, target->grad));
    le_add_scaled(m * d, scale, target->grad, grad);
  }
  if (!le_rows_of(target)->everywhere)
    le_past_add_slope(target->past, m, theta, grad, target->relabelled);
  return LE_OK;
}

static le_status controlled_estimate(const le_gradient *gradient, size_t draw, le_target *target,
                                     size_t m, const double *theta, gsl_rng *const *rng,
                                     double *grad)
{
  const size_t d = target->d;
  const int remainder = has_remainder(gradient, target);
  if (rng && remainder) {
    le_target_prior(target, m, theta, NULL, grad);
    return add_own(gradient, target, m, theta, rng, grad);
  }
  /* without a batch the terms are the same for all draws */
  const double *total = gradient->total + (remainder ? draw : LE_DRAWS_MOST) * gradient->size;
  if (remainder)
    LE_TRY(le_target_sums(target, &gradient->drawn[draw], m, theta, NULL, target->grad));
  le_target_prior(target, m, theta, NULL, grad);
  for (size_t i = 0; i < m; i++)
    add_terms(gradient, target, total, theta + i * d, remainder ? target->grad + i * d : NULL,
              target->packed + i * d, grad + i * d);
  return LE_OK;
}

le_status le_gradient_estimate(const le_gradient *gradient, size_t draw, le_target *target,
                               size_t m, const double *theta, gsl_rng *const *rng, double *grad)
{
  return gradient->rule == LE_GRADIENT_BATCH
           ? plain_estimate(gradient, draw, target, m, theta, rng, grad)
           : controlled_estimate(gradient, draw, target, m, theta, rng, grad);
}

/* Limits for weighing a chunk by a subsample. MISSED_MOST: the largest error, in log-likelihood,
 * allowed for the particles farthest from the anchor; the error of most particles is a third of
 * that. ANOTHER_GROWTH: after a failed test, the factor by which the rows must grow before another
 * attempt, because for a subsample of the same size the error falls with the square root of the
 * rows seen. CHECKED_FOR: the test is repeated if particles are farther than before by this factor
 * (squared distance). */
static const double MISSED_MOST = 0.1, ANOTHER_GROWTH = 1.5, CHECKED_FOR = 4;
enum { MORE_ROWS = 4 }; /* growth of the subsample after a failed test */

le_status le_gradient_log_lik(le_gradient *gradient, le_expansion *expansion, le_target *target,
                              size_t part, size_t m, const double *theta, double *value)
{
  const size_t from = target->seen, to = from + target->chunk;
  if (part == 0 || 2 * part > target->chunk || m < 4 * LE_EXPANSION_PROBES || !gradient->anchored ||
      !le_expansion_possible(target) || from < gradient->exact_until)
    return le_target_log_lik(target, from, to, m, theta, value);
  expansion->anchor = gradient->anchor;
  expansion->sums = gradient->chunk_grad;
  for (part = gradient->part > part ? gradient->part : part; 2 * part <= target->chunk;
       part *= MORE_ROWS) {
    double far = 0, missed = 0;
    LE_TRY(le_expansion_values(expansion, target, from, to, part, m, theta, value));
    for (size_t i = 0; i < m; i++) far = fmax(far, expansion->distance[i]);
    if (far > CHECKED_FOR * gradient->checked)
      LE_TRY(le_expansion_missed(expansion, target, from, to, m, theta, value,
                                 &gradient->chunk_value, &missed, &gradient->checked));
    if (missed <= MISSED_MOST) {
      gradient->part = part;
      for (size_t i = 0; i < m; i++) value[i] += gradient->chunk_value;
      return LE_OK;
    }
    gradient->checked = -1;
  }
  gradient->exact_until = (size_t)(ANOTHER_GROWTH * (double)from);
  return le_target_log_lik(target, from, to, m, theta, value);
}

void le_gradient_archive(le_gradient *gradient, const le_target *target, le_archive *archive)
{
  static const le_field fields[] = {
    LE_FIELD(le_gradient, anchored),    LE_FIELD(le_gradient, anchored_rows),
    LE_FIELD(le_gradient, part),        LE_FIELD(le_gradient, exact_until),
    LE_FIELD(le_gradient, chunk_value), LE_FIELD(le_gradient, checked),
    LE_UNSAVED(le_gradient, drawn)}; /* within a move */
  const size_t d = target->d;
  LE_ARCHIVE_FIELDS(archive, gradient, fields);
  le_archive_doubles(archive, gradient->anchor, d);
  le_archive_doubles(archive, gradient->grad, gradient->size);
  le_archive_doubles(archive, gradient->chunk_grad, gradient->size);
}
