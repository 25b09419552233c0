/* Sums and a sample in place of rows that leave the memory. */
#include "core/reservoir.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "base/logsum.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { GROUPS = LE_PAST_GROUPS };
static const size_t NOBODY = SIZE_MAX;

void le_past_alloc(le_past *past, const le_target *target, size_t keep, le_arena *arena)
{
  const size_t d = target->d, width = target->ops->width(target->model);
  memset(past, 0, sizeof *past);
  past->d = d;
  past->keep = keep;
  if (!keep) return;
  past->order = target->ops->log_lik_hess ? 2 : target->ops->log_lik_grad ? 1 : 0;
  const size_t square = past->order == 2 ? d * d : 0;
  past->anchor = le_arena_doubles(arena, d);
  past->value = le_arena_doubles(arena, GROUPS);
  past->grad = le_arena_doubles(arena, GROUPS * d);
  past->hess = le_arena_doubles(arena, GROUPS * square);
  past->sample_grad = le_arena_doubles(arena, d);
  past->sample_hess = le_arena_doubles(arena, square);
  past->slope = le_arena_doubles(arena, d);
  past->curve = le_arena_doubles(arena, square);
  past->work = le_arena_doubles(arena, 2 * (square + d) + 4 * d);
  past->last = le_arena_indices(arena, keep);
  past->places = le_arena_indices(arena, keep);
  past->rows = le_arena_doubles(arena, keep * width + LE_ALIGN_MORE);
  past->uniform = le_arena_doubles(arena, keep);
}

int le_past_due(const le_past *past, const le_target *target)
{
  return past->keep && target->seen > past->keep;
}

/* ---- sums at one point over rows in memory ---- */

/* Overwrites the sums. */
static le_status sums_at(const le_past *past, le_target *target, const le_rows *rows,
                         const double *theta, le_point_sums *sums)
{
  LE_TRY(le_target_sums(target, rows, 1, theta, &sums->value, NULL));
  if (past->order == 2) return le_target_curvature(target, rows, theta, sums->grad, sums->hess);
  return le_target_sums(target, rows, 1, theta, NULL, sums->grad);
}

static void add_sums(const le_past *past, double times, const le_point_sums *sums, double *value,
                     double *grad, double *hess)
{
  *value += times * sums->value;
  le_add_scaled(past->d, times, sums->grad, grad);
  if (past->order == 2) le_add_scaled(past->d * past->d, times, sums->hess, hess);
}

static le_point_sums scratch_sums(const le_past *past, size_t which)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  double *at = past->work + which * (square + d);
  return (le_point_sums){0, at, at + d};
}

static le_status set_sample_sums(le_past *past, le_target *target)
{
  const le_rows rows = le_store_rows(target->store, 0, target->seen);
  le_point_sums sums = {0, past->sample_grad, past->sample_hess};
  LE_TRY(sums_at(past, target, &rows, past->anchor, &sums));
  past->sample_value = sums.value;
  le_past_set_polynomial(past, target->store);
  return LE_OK;
}

/* ---- adding rows ---- */

le_status le_past_begin(le_past *past, le_target *target, le_store *store, const double *anchor,
                        const le_point_sums *known, const gsl_rng *rng)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  const le_rows rows = le_store_rows(store, 0, target->seen);
  memcpy(past->anchor, anchor, d * sizeof(double));
  past->anchored_rows = target->seen;
  le_point_sums sums = scratch_sums(past, 0);
  if (past->order == 0)
    return le_fail(&target->context->error, LE_UNSUPPORTED,
                   "A model without gradients needs all rows in memory: use a `keep` that is as "
                   "large as the number of rows.");
  if (known) sums = *known;
  else LE_TRY(sums_at(past, target, &rows, anchor, &sums));
  for (size_t g = 0; g < GROUPS; g++) {
    past->value[g] = 0;
    memset(past->grad + g * d, 0, d * sizeof(double));
    memset(past->hess + g * square, 0, square * sizeof(double));
    add_sums(past, 1, &sums, &past->value[g], past->grad + g * d, past->hess + g * square);
  }
  const size_t mixed = store->mixed < target->seen ? store->mixed : target->seen;
  if (mixed < target->seen) LE_TRY(le_store_shuffle(store, mixed, target->seen, rng));
  LE_TRY(le_store_forget(store, past->keep, target->seen));
  return set_sample_sums(past, target);
}

/* For each row of the chunk a place in the sample, or none: the row number r of all rows goes to
 * place j of [0, r] with equal probability, and stays out if there is no such place. A later row
 * replaces an earlier one. Returns how many places change. */
static size_t choose_places(le_past *past, const le_store *store, size_t seen, size_t chunk,
                            const gsl_rng *rng)
{
  const size_t k = store->kept;
  size_t changed = 0;
  for (size_t j = 0; j < k; j++) past->last[j] = NOBODY;
  for (size_t from = 0; from < chunk; from += past->keep) {
    const size_t some = chunk - from < past->keep ? chunk - from : past->keep;
    le_uniforms(rng, some, past->uniform);
    for (size_t r = 0; r < some; r++) {
      const size_t place = (size_t)(past->uniform[r] * (double)(seen - chunk + from + r + 1));
      if (place >= k) continue;
      if (past->last[place] == NOBODY) past->places[changed++] = place;
      past->last[place] = le_store_place(store, seen - chunk + from + r);
    }
  }
  return changed;
}

/* Puts the chosen rows into the sample, and changes the sums over the sample accordingly. */
static le_status exchange_rows(le_past *past, le_target *target, le_store *store, size_t changed)
{
  const size_t width = store->width;
  const le_rows rows = {changed, width, past->rows};
  le_point_sums sums = scratch_sums(past, 0);
  const int afresh = 2 * changed > store->kept;
  if (changed == 0) return LE_OK;
  if (!afresh) {
    le_vector_gather(changed, width, le_store_held(store), store->values, past->places, past->rows);
    LE_TRY(sums_at(past, target, &rows, past->anchor, &sums));
    add_sums(past, -1, &sums, &past->sample_value, past->sample_grad, past->sample_hess);
  }
  for (size_t c = 0; c < changed; c++) {
    double *to = store->values + past->places[c] * width;
    memcpy(to, store->values + past->last[past->places[c]] * width, width * sizeof(double));
    memcpy(past->rows + c * width, to, width * sizeof(double));
  }
  if (!afresh) {
    LE_TRY(sums_at(past, target, &rows, past->anchor, &sums));
    add_sums(past, 1, &sums, &past->sample_value, past->sample_grad, past->sample_hess);
  }
  return LE_OK;
}

/* Sums at the anchor over a chunk. */
static le_status chunk_sums(const le_past *past, le_target *target, const le_rows *rows,
                            const le_gradient *gradient, le_point_sums *sums)
{
  const int known = gradient && past->order == 2 &&
                    memcmp(gradient->anchor, past->anchor, past->d * sizeof(double)) == 0;
  if (!known) return sums_at(past, target, rows, past->anchor, sums);
  sums->grad = gradient->chunk_grad;
  sums->hess = gradient->chunk_hess;
  return le_target_sums(target, rows, 1, past->anchor, &sums->value, NULL);
}

le_status le_past_add(le_past *past, le_target *target, le_store *store, size_t chunk,
                      const le_gradient *gradient, const gsl_rng *rng)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0, seen = target->seen;
  const le_rows rows = le_store_rows(store, seen - chunk, seen);
  le_point_sums sums = scratch_sums(past, 0);
  LE_TRY(chunk_sums(past, target, &rows, gradient, &sums));
  for (size_t g = 0; g < GROUPS; g++)
    add_sums(past, 1, &sums, &past->value[g], past->grad + g * d, past->hess + g * square);
  const size_t changed = choose_places(past, store, seen, chunk, rng);
  LE_TRY(exchange_rows(past, target, store, changed));
  LE_TRY(le_store_forget(store, store->kept, seen));
  if (2 * changed > store->kept) return set_sample_sums(past, target);
  le_past_set_polynomial(past, target->store);
  return LE_OK;
}

/* ---- another anchor ---- */

static le_rows group_rows(const le_store *store, size_t group)
{
  const size_t from = group * store->kept / GROUPS, to = (group + 1) * store->kept / GROUPS;
  return (le_rows){to - from, store->width, store->values + from * store->width};
}

/* Sampling without replacement: the error is zero while the sample has all rows. */
static double spread_factor(const le_store *store)
{
  return sqrt((double)store->gone / (double)(store->kept + store->gone));
}

/* Draws the groups' changes nearer to their mean by this factor. */
static void shrink(double *change, size_t n, double factor)
{
  for (size_t k = 0; k < n; k++) {
    double mean = 0;
    for (size_t g = 0; g < GROUPS; g++) mean += change[g * n + k] / GROUPS;
    for (size_t g = 0; g < GROUPS; g++)
      change[g * n + k] = mean + factor * (change[g * n + k] - mean);
  }
}

/* The sample's estimate for one group of the terms beyond second order: from `here`, the group's
 * sums at the old anchor, and `there`, those at the new one. */
static void remainder_of(const le_past *past, const double *shift, double weight,
                         const le_point_sums *here, const le_point_sums *there, double *value,
                         double *grad, double *hess, double *product)
{
  const size_t d = past->d;
  *value = weight * (there->value - here->value);
  memset(product, 0, d * sizeof(double));
  if (past->order == 2) le_add_symmetric_matvec(here->hess, d, shift, product);
  *value -= weight * (le_dot(here->grad, shift, d) + 0.5 * le_dot(product, shift, d));
  for (size_t j = 0; j < d; j++) grad[j] = weight * (there->grad[j] - here->grad[j] - product[j]);
  if (past->order < 2) return;
  for (size_t k = 0; k < d * d; k++) hess[k] = weight * (there->hess[k] - here->hess[k]);
}

le_status le_past_move(le_past *past, le_target *target, const double *anchor)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  const le_store *store = target->store;
  const double all = (double)(store->kept + store->gone);
  double *shift = past->work + 2 * (square + d), *product = shift + d;
  past->anchored_rows = target->seen;
  double *change = le_resize(NULL, GROUPS * (1 + d + square) * sizeof(double));
  if (!change) return LE_NO_MEMORY;
  double *grads = change + GROUPS, *hesses = grads + GROUPS * d;
  memset(change, 0, GROUPS * (1 + d + square) * sizeof(double));
  for (size_t j = 0; j < d; j++) shift[j] = anchor[j] - past->anchor[j];
  le_point_sums here = scratch_sums(past, 0), there = scratch_sums(past, 1);
  le_status status = LE_OK;
  for (size_t g = 0; g < GROUPS && status == LE_OK; g++) {
    const le_rows rows = group_rows(store, g);
    status = sums_at(past, target, &rows, past->anchor, &here);
    if (status == LE_OK) status = sums_at(past, target, &rows, anchor, &there);
    if (status == LE_OK)
      remainder_of(past, shift, all / (double)rows.n, &here, &there, &change[g], grads + g * d,
                   hesses + g * square, product);
  }
  if (status == LE_OK) {
    const double factor = spread_factor(store);
    shrink(change, 1, factor);
    shrink(grads, d, factor);
    shrink(hesses, square, factor);
    for (size_t g = 0; g < GROUPS; g++) {
      double *grad = past->grad + g * d, *hess = past->hess + g * square;
      memset(product, 0, d * sizeof(double));
      if (past->order == 2) le_add_symmetric_matvec(hess, d, shift, product);
      past->value[g] += le_dot(grad, shift, d) + 0.5 * le_dot(product, shift, d);
      past->value[g] += change[g];
      le_add_scaled(d, 1, product, grad);
      le_add_scaled(d, 1, grads + g * d, grad);
      le_add_scaled(square, 1, hesses + g * square, hess);
    }
    memcpy(past->anchor, anchor, d * sizeof(double));
    status = set_sample_sums(past, target);
  }
  le_release(change);
  return status;
}

le_status le_past_jump(le_past *past, le_target *target, const double *anchor)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  const le_store *store = target->store;
  const double all = (double)(store->kept + store->gone);
  double change[GROUPS];
  le_point_sums here = scratch_sums(past, 0), there = scratch_sums(past, 1);
  for (size_t g = 0; g < GROUPS; g++) {
    const le_rows rows = group_rows(store, g);
    const double weight = all / (double)rows.n;
    LE_TRY(le_target_sums(target, &rows, 1, past->anchor, &here.value, NULL));
    LE_TRY(sums_at(past, target, &rows, anchor, &there));
    change[g] = weight * (there.value - here.value);
    memset(past->grad + g * d, 0, d * sizeof(double));
    memset(past->hess + g * square, 0, square * sizeof(double));
    le_add_scaled(d, weight, there.grad, past->grad + g * d);
    le_add_scaled(square, weight, there.hess, past->hess + g * square);
  }
  shrink(change, 1, spread_factor(store));
  for (size_t g = 0; g < GROUPS; g++) past->value[g] += change[g];
  memcpy(past->anchor, anchor, d * sizeof(double));
  past->anchored_rows = target->seen;
  return set_sample_sums(past, target);
}

le_status le_past_replace(le_past *past, le_target *target, const double *anchor, double value,
                          const double *grad, const double *hess)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  for (size_t g = 0; g < GROUPS; g++) {
    past->value[g] = value;
    memcpy(past->grad + g * d, grad, d * sizeof(double));
    if (square) memcpy(past->hess + g * square, hess, square * sizeof(double));
  }
  memcpy(past->anchor, anchor, d * sizeof(double));
  past->anchored_rows = target->seen;
  return set_sample_sums(past, target);
}

/* ---- error ---- */

/* Of each group: log-likelihoods of the points by its own sums and rows. */
static le_status group_values(const le_past *past, le_target *target, size_t g, size_t m,
                              const double *theta, double *value)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  const le_store *store = target->store;
  const le_rows rows = group_rows(store, g);
  const double weight = (double)(store->kept + store->gone) / (double)rows.n;
  double *shift = past->work + 2 * (square + d), *product = shift + d;
  le_point_sums here = scratch_sums(past, 0);
  LE_TRY(sums_at(past, target, &rows, past->anchor, &here));
  LE_TRY(le_target_sums(target, &rows, m, theta, value, NULL));
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < d; j++) shift[j] = theta[i * d + j] - past->anchor[j];
    value[i] = weight * (value[i] - here.value);
    if (past->order == 2)
      value[i] -= 0.5 * weight * le_quadratic_form(here.hess, d, shift, product);
    value[i] -= weight * le_dot(here.grad, shift, d);
  }
  return LE_OK;
}

le_status le_past_error(const le_past *past, le_target *target, size_t m, const double *theta,
                        const double *log_weight, double *work, double *se)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  double *of_group = work + m, mean[GROUPS], sum = 0, squares = 0;
  double *shift = past->work + 2 * (square + d), *product = shift + d;
  *se = 0;
  if (!target->store->gone) return LE_OK;
  memset(work, 0, m * sizeof(double));
  for (size_t g = 0; g < GROUPS; g++)
    LE_TRY(group_values(past, target, g, m, theta, of_group + g * m));
  shrink(of_group, m, spread_factor(target->store));
  for (size_t g = 0; g < GROUPS; g++)
    for (size_t i = 0; i < m; i++) {
      for (size_t j = 0; j < d; j++) shift[j] = theta[i * d + j] - past->anchor[j];
      double *value = &of_group[g * m + i];
      *value += past->value[g];
      *value += le_dot(past->grad + g * d, shift, d);
      if (past->order == 2)
        *value += 0.5 * le_quadratic_form(past->hess + g * square, d, shift, product);
      work[i] += *value / GROUPS;
    }
  for (size_t g = 0; g < GROUPS; g++) {
    for (size_t i = 0; i < m; i++) of_group[g * m + i] += log_weight[i] - work[i];
    mean[g] = le_logmeanexp(of_group + g * m, m);
    sum += mean[g] / GROUPS;
  }
  for (size_t g = 0; g < GROUPS; g++) squares += (mean[g] - sum) * (mean[g] - sum);
  *se = sqrt(squares / (GROUPS - 1) / GROUPS);
  return LE_OK;
}
