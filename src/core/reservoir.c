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
  past->most = past->keep = keep;
  if (!keep) return;
  past->order = target->ops->log_lik_hess ? 2 : target->ops->log_lik_grad ? 1 : 0;
  past->size = 1 + d + (past->order == 2 ? d * d : 0);
  past->anchor = le_arena_doubles(arena, d);
  past->sums = le_arena_doubles(arena, GROUPS * past->size);
  past->change = le_arena_doubles(arena, GROUPS * past->size);
  past->sample = le_arena_doubles(arena, past->size);
  past->polynomial = le_arena_doubles(arena, past->size);
  past->work = le_arena_doubles(arena, 2 * past->size + 2 * d);
  past->last = le_arena_scratch(arena, keep, sizeof(size_t));
  past->places = le_arena_scratch(arena, keep, sizeof(size_t));
  past->rows = le_arena_scratch(arena, keep * width + LE_ALIGN_MORE, sizeof(double));
  past->uniform = le_arena_scratch(arena, keep, sizeof(double));
}

int le_past_due(const le_past *past, const le_target *target)
{
  return past->keep && target->seen > past->keep;
}

/* ---- sums at one point over rows in memory ---- */

static le_status sums_of(const le_past *past, le_target *target, const le_rows *rows,
                         const double *theta, double *sums)
{
  return le_target_expand(target, rows, past->order, theta, sums);
}

static le_status set_sample_sums(le_past *past, le_target *target)
{
  const le_rows rows = le_store_rows(target->store, 0, target->seen);
  LE_TRY(sums_of(past, target, &rows, past->anchor, past->sample));
  le_past_set_polynomial(past, target->store);
  return LE_OK;
}

/* The groups' sums are now those at this anchor. */
static le_status set_anchor(le_past *past, le_target *target, const double *anchor)
{
  memcpy(past->anchor, anchor, past->d * sizeof(double));
  past->anchored_rows = target->seen;
  return set_sample_sums(past, target);
}

static void set_groups(le_past *past, const double *sums)
{
  for (size_t g = 0; g < GROUPS; g++)
    memcpy(past->sums + g * past->size, sums, past->size * sizeof(double));
}

le_status le_past_replace(le_past *past, le_target *target, const double *anchor,
                          const double *sums)
{
  set_groups(past, sums);
  return set_anchor(past, target, anchor);
}

/* ---- would a sample do? ---- */

/* `keep` of the first n rows, drawn at random: each in turn, with the share of those left that are
 * still wanted as its probability. */
static le_rows draw_sample(le_past *past, const le_store *store, size_t n, const gsl_rng *rng)
{
  const le_rows held = le_store_all(store);
  size_t drawn = 0;
  for (size_t from = 0; from < n; from += past->keep) {
    const size_t some = n - from < past->keep ? n - from : past->keep;
    le_uniforms(rng, some, past->uniform);
    for (size_t r = from; r < from + some; r++)
      if ((double)(n - r) * past->uniform[r - from] < (double)(past->keep - drawn))
        past->places[drawn++] = r;
  }
  return le_rows_gather(&held, drawn, past->places, past->rows);
}

/* Of the log-likelihood of these rows: its change from the anchor to each point, beyond second
 * order. */
static le_status beyond_second_order(le_past *past, le_target *target, const le_rows *rows,
                                     size_t m, const double *theta, double *value)
{
  double *sums = past->work, *work = sums + past->size;
  LE_TRY(sums_of(past, target, rows, past->anchor, sums));
  LE_TRY(le_target_sums(target, rows, m, theta, value, NULL));
  for (size_t i = 0; i < m; i++)
    value[i] -= sums[0] + le_past_expected(past, sums, theta + i * past->d, work);
  return LE_OK;
}

le_status le_past_try(le_past *past, le_target *target, const le_store *store, const double *anchor,
                      size_t m, const double *theta, const gsl_rng *rng, double *work,
                      double *error)
{
  double *by_all = work, *by_sample = work + m, mean = 0;
  *error = INFINITY;
  if (past->order == 0) return LE_OK;
  const le_rows all = le_store_rows(store, 0, target->seen),
                sample = draw_sample(past, store, target->seen, rng);
  memcpy(past->anchor, anchor, past->d * sizeof(double));
  LE_TRY(beyond_second_order(past, target, &all, m, theta, by_all));
  LE_TRY(beyond_second_order(past, target, &sample, m, theta, by_sample));
  le_add_scaled(m, -(double)all.n / (double)sample.n, by_sample, by_all);
  for (size_t i = 0; i < m; i++) mean += by_all[i] / (double)m;
  *error = 0;
  for (size_t i = 0; i < m; i++) {
    const double off = fabs(by_all[i] - mean);
    if (!(off <= *error)) *error = off;
  }
  return LE_OK;
}

/* ---- adding rows ---- */

le_status le_past_begin(le_past *past, le_target *target, le_store *store, const double *anchor,
                        const double *known, const gsl_rng *rng)
{
  const le_rows rows = le_store_rows(store, 0, target->seen);
  if (past->order == 0)
    return le_fail(&target->context->error, LE_UNSUPPORTED,
                   "A model without gradients needs all rows in memory: use a `keep` that is as "
                   "large as the number of rows.");
  if (!known) LE_TRY(sums_of(past, target, &rows, anchor, past->work));
  set_groups(past, known ? known : past->work);
  const size_t mixed = store->mixed < target->seen ? store->mixed : target->seen;
  if (mixed < target->seen) LE_TRY(le_store_shuffle(store, mixed, target->seen, rng));
  LE_TRY(le_store_forget(store, past->keep, target->seen));
  return set_anchor(past, target, anchor);
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

/* Adds the rows in the first n of `places` to the sums over the sample, or subtracts them. */
static le_status count_rows(le_past *past, le_target *target, const le_store *store, size_t n,
                            double times)
{
  const le_rows held = le_store_all(store);
  const le_rows rows = le_rows_gather(&held, n, past->places, past->rows);
  double *sums = past->work;
  LE_TRY(sums_of(past, target, &rows, past->anchor, sums));
  le_add_scaled(past->size, times, sums, past->sample);
  return LE_OK;
}

/* Puts the chosen rows into the sample, and changes the sums over the sample accordingly. */
static le_status exchange_rows(le_past *past, le_target *target, le_store *store, size_t changed)
{
  const size_t width = store->width;
  const int afresh = 2 * changed > store->kept;
  if (changed == 0) return LE_OK;
  if (!afresh) LE_TRY(count_rows(past, target, store, changed, -1));
  for (size_t c = 0; c < changed; c++)
    memcpy(store->values + past->places[c] * width,
           store->values + past->last[past->places[c]] * width, width * sizeof(double));
  return afresh ? LE_OK : count_rows(past, target, store, changed, 1);
}

/* Sums at the anchor over a chunk. */
static le_status chunk_sums(const le_past *past, le_target *target, const le_rows *rows,
                            const le_gradient *gradient, double *sums)
{
  const int known = gradient && past->order == 2 &&
                    memcmp(gradient->anchor, past->anchor, past->d * sizeof(double)) == 0;
  if (!known) return sums_of(past, target, rows, past->anchor, sums);
  memcpy(sums + 1, gradient->chunk_grad, (past->size - 1) * sizeof(double));
  return le_target_sums(target, rows, 1, past->anchor, sums, NULL);
}

le_status le_past_add(le_past *past, le_target *target, le_store *store, size_t chunk,
                      const le_gradient *gradient, const gsl_rng *rng)
{
  const size_t seen = target->seen;
  const le_rows rows = le_store_rows(store, seen - chunk, seen);
  double *sums = past->work;
  LE_TRY(chunk_sums(past, target, &rows, gradient, sums));
  for (size_t g = 0; g < GROUPS; g++)
    le_add_scaled(past->size, 1, sums, past->sums + g * past->size);
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
  const size_t all = le_store_represented(store);
  return sqrt((double)(all - store->kept) / (double)all);
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

/* The sample's estimate for one group of the change of its sums by terms beyond second order: from
 * `here`, the sums of its rows at the old anchor, and `there`, those at the new one. */
static void remainder_of(const le_past *past, const double *anchor, double weight,
                         const double *here, const double *there, double *change, double *work)
{
  for (size_t k = 0; k < past->size; k++) change[k] = weight * (there[k] - here[k]);
  change[0] -= weight * le_past_expected(past, here, anchor, work);
  le_add_scaled(past->d, -weight, work + past->d, change + 1);
}

le_status le_past_move(le_past *past, le_target *target, const double *anchor)
{
  if (!past->keep || le_rows_of(target)->everywhere) return LE_OK;
  const size_t d = past->d, size = past->size;
  double *here = past->work, *there = here + size, *work = there + size;
  for (size_t g = 0; g < GROUPS; g++) {
    const le_rows rows = group_rows(target->store, g);
    LE_TRY(sums_of(past, target, &rows, past->anchor, here));
    LE_TRY(sums_of(past, target, &rows, anchor, there));
    remainder_of(past, anchor, le_past_weight(target->store, rows.n), here, there,
                 past->change + g * size, work);
  }
  shrink(past->change, size, spread_factor(target->store));
  for (size_t g = 0; g < GROUPS; g++) {
    double *sums = past->sums + g * size;
    sums[0] += le_past_expected(past, sums, anchor, work);
    le_add_scaled(d, 1, work + d, sums + 1);
    le_add_scaled(size, 1, past->change + g * size, sums);
  }
  return set_anchor(past, target, anchor);
}

le_status le_past_jump(le_past *past, le_target *target, const double *anchor)
{
  double change[GROUPS], here, *there = past->work;
  for (size_t g = 0; g < GROUPS; g++) {
    const le_rows rows = group_rows(target->store, g);
    const double weight = le_past_weight(target->store, rows.n);
    double *sums = past->sums + g * past->size;
    LE_TRY(le_target_sums(target, &rows, 1, past->anchor, &here, NULL));
    LE_TRY(sums_of(past, target, &rows, anchor, there));
    change[g] = weight * (there[0] - here);
    for (size_t k = 1; k < past->size; k++) sums[k] = weight * there[k];
  }
  shrink(change, 1, spread_factor(target->store));
  for (size_t g = 0; g < GROUPS; g++) past->sums[g * past->size] += change[g];
  return set_anchor(past, target, anchor);
}

/* ---- letting rows go ---- */

int le_past_is_stale(const le_past *past, const le_target *target)
{
  return le_rows_of(target)->readable || target->seen >= 2 * past->anchored_rows;
}

le_status le_past_let_go(le_past *past, le_target *target, le_store *store, size_t chunk,
                         const le_gradient *anchored, const double *centre, const gsl_rng *rng)
{
  const double *anchor = anchored ? anchored->anchor : centre;
  const int stale = !anchored && le_past_is_stale(past, target);
  if (le_rows_of(target)->readable) return le_past_begin(past, target, store, anchor, NULL, rng);
  LE_TRY(le_past_add(past, target, store, chunk, anchored, rng));
  return stale ? le_past_move(past, target, centre) : LE_OK;
}

/* ---- error ---- */

/* Of each group: log-likelihoods of the points by its own sums and rows. */
static le_status group_values(const le_past *past, le_target *target, size_t g, size_t m,
                              const double *theta, double *value)
{
  const size_t d = past->d;
  const le_rows rows = group_rows(target->store, g);
  const double weight = le_past_weight(target->store, rows.n);
  double *here = past->work, *work = here + past->size;
  LE_TRY(sums_of(past, target, &rows, past->anchor, here));
  LE_TRY(le_target_sums(target, &rows, m, theta, value, NULL));
  for (size_t i = 0; i < m; i++)
    value[i] = weight * (value[i] - here[0] - le_past_expected(past, here, theta + i * d, work));
  return LE_OK;
}

le_status le_past_error(const le_past *past, le_target *target, size_t m, const double *theta,
                        const double *log_weight, double *work, double *se)
{
  const size_t d = past->d;
  double *of_group = work + m, mean[GROUPS], sum = 0, squares = 0;
  *se = 0;
  if (le_rows_of(target)->everywhere) return LE_OK;
  memset(work, 0, m * sizeof(double));
  for (size_t g = 0; g < GROUPS; g++)
    LE_TRY(group_values(past, target, g, m, theta, of_group + g * m));
  shrink(of_group, m, spread_factor(target->store));
  for (size_t g = 0; g < GROUPS; g++)
    for (size_t i = 0; i < m; i++) {
      const double *sums = past->sums + g * past->size;
      double *value = &of_group[g * m + i];
      *value += sums[0] + le_past_expected(past, sums, theta + i * d, past->work);
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

le_status le_past_apart(le_target *target, const double *theta, double *se)
{
  double gap[GROUPS], value[2], sum = 0, squares = 0;
  for (size_t g = 0; g < GROUPS; g++) {
    const le_rows rows = group_rows(target->store, g);
    LE_TRY(le_target_sums(target, &rows, 2, theta, value, NULL));
    gap[g] = le_past_weight(target->store, rows.n) * (value[1] - value[0]);
    sum += gap[g] / GROUPS;
  }
  for (size_t g = 0; g < GROUPS; g++) squares += (gap[g] - sum) * (gap[g] - sum);
  *se = spread_factor(target->store) * sqrt(squares / (GROUPS - 1) / GROUPS);
  return LE_OK;
}
