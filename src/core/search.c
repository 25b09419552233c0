/* The search for posterior modes from starts that do not depend on particles. */
#include "core/search.h"

#include "core/optima.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

enum { MORE = 10, STARTS_LEAST = 48, STARTS_FEW_ROWS = 192 };
/* The cost of a climb grows as d^2 (rows + d). In high dimension there are as many starts as cost
 * STARTS_WORK, at least STARTS_LEAST and at most STARTS_FEW_ROWS. With five components on 32 rows
 * of four columns (44 parameters), 48 climbs missed the main mode in 15 of 100 runs. */
static const double STARTS_WORK = 3e7;
/* Draws from the prior among which starts are chosen if the model has none of its own; fewer if
 * to compare all pairs takes longer than about a tenth of a second. */
enum { CANDIDATES = 4000, FEW_STARTS = 16 };
static const double PAIRS_MOST = 1e8;
/* How near to its top a climb of the likelihood alone ends. */
static const double LIKELIHOOD_TOP = 0.1;
/* Climbs to make before agreement may end the search: more if climbs are cheap. */
static const double CLIMBS_LEAST = 16, CLIMBS_WORK = 600, CLIMBS_ENOUGH = 64;

static double usual_starts(size_t d)
{
  return fmin(75000 / ((double)d * (double)d), LE_SEARCH_STARTS_MOST);
}

size_t le_search_starts(size_t d)
{
  return (size_t)fmax(usual_starts(d), STARTS_FEW_ROWS);
}

/* How many of the starts to use: fewer where climbs are expensive. */
static size_t affordable_starts(const le_search *search, const le_target *target)
{
  const size_t d = search->d;
  if (search->every || !target->ops->start) return search->starts;
  const double rows = (double)target->seen * le_row_work(target->context),
               climb = (double)d * (double)d * (rows + (double)d),
               few = fmin(fmax(STARTS_WORK / climb, STARTS_LEAST), STARTS_FEW_ROWS);
  return (size_t)fmin((double)search->starts, fmax(usual_starts(d), few));
}

void le_search_alloc(le_search *search, const le_target *target, size_t starts, size_t rows,
                     le_arena *arena)
{
  const size_t d = target->d;
  memset(search, 0, sizeof *search);
  search->d = d;
  search->starts = starts < LE_SEARCH_STARTS_MOST ? starts : LE_SEARCH_STARTS_MOST;
  search->rows = rows;
  if (starts <= FEW_STARTS) search->candidates = 200;
  else if (target->ops->start) search->candidates = starts > 250 ? 2 * search->starts : 500;
  else search->candidates = (size_t)fmin(CANDIDATES, sqrt(PAIRS_MOST / (double)d));
  if (search->candidates < search->starts) search->candidates = search->starts;
  search->few.width = target->ops->width(target->model);
  search->candidate = le_arena_scratch(arena, search->candidates * d, sizeof(double));
  search->value = le_arena_scratch(arena, search->candidates, sizeof(double));
  search->order = le_arena_scratch(arena, search->candidates, sizeof(size_t));
  search->rest = le_arena_scratch(arena, search->candidates, sizeof(size_t));
  search->start = le_arena_doubles(arena, search->starts * d);
  if (target->ops->start)
    search->scratch = le_arena_doubles(arena, target->ops->start_scratch(target->model, rows));
}

void le_search_free(le_search *search)
{
  le_store_free(&search->few);
}

void le_search_start(le_search *search)
{
  search->scattered = search->done = search->wider = 0;
  search->found = search->few.n = 0;
  search->unseen = 0;
}

/* A random sample of the rows: one from each of `wanted` segments of equal length. Of rows that are
 * elsewhere there may be fewer. */
static le_status take_few(le_search *search, const le_target *target, size_t wanted,
                          const gsl_rng *take)
{
  search->few.n = 0;
  const le_rows all = le_store_rows(target->store, 0, target->seen);
  if (wanted > all.n) wanted = all.n;
  const double stretch = (double)all.n / (double)wanted;
  for (size_t k = 0; k < wanted; k++) {
    const size_t row = (size_t)fmin(stretch * ((double)k + gsl_rng_uniform(take)),
                                    (double)(all.n - 1));
    const le_rows one = {1, all.width, all.values + row * all.width};
    LE_TRY(le_store_append(&search->few, &one, NULL));
  }
  return LE_OK;
}

/* If starts are made from the rows, every fourth is still a draw from the prior. */
enum { FROM_PRIOR = 4 };

static int is_from_rows(const le_target *target, size_t start)
{
  return target->ops->start && start % FROM_PRIOR != FROM_PRIOR - 1;
}

/* If the model has gradients but no starts of its own, every fourth start first climbs the
 * likelihood alone, because the prior may dominate a mode that is far away. */
static le_status climb_likelihood(le_search *search, le_audit *audit, le_target *target, size_t k)
{
  const size_t d = search->d;
  le_mode *trial = &audit->trial;
  if (target->ops->start || !target->ops->log_lik_grad || k % FROM_PRIOR != FROM_PRIOR - 1)
    return LE_OK;
  double *start = search->start + k * d;
  memcpy(trial->theta, start, d * sizeof(double));
  memcpy(trial->scale, audit->scale, d * sizeof(double));
  target->flat = 1;
  LE_SCRATCH(work, target->stack, le_mode_work(d));
  const le_status status = le_mode_climb(trial, target, LIKELIHOOD_TOP, -INFINITY, work);
  target->flat = 0;
  LE_TRY(status);
  for (size_t j = 0; j < d; j++)
    if (!isfinite(trial->theta[j])) return LE_OK;
  memcpy(start, trial->theta, d * sizeof(double));
  return LE_OK;
}

/* Sets `order` to the order of n points by their density, the best first, and `value` to minus
 * their log densities. */
static le_status sort_by_density(le_search *search, le_target *target, size_t n,
                                 const double *theta)
{
  LE_TRY(le_target_density(target, n, theta, search->value));
  for (size_t k = 0; k < n; k++) search->value[k] = -search->value[k];
  gsl_sort_index(search->order, search->value, 1, n);
  return LE_OK;
}

/* Climbs stop when they agree, so those from the best starts come first: a mode with a small basin
 * is reached if any of the starts is in it. Of starts whose log densities differ by less than SAME,
 * which are probably near the same mode, only one comes first. Every second start keeps its place
 * in random order. */
static const double SAME = 0.5;

static le_status put_best_first(le_search *search, le_target *target)
{
  const size_t d = search->d, n = search->found;
  double *copy = search->candidate, *value = search->value, last = -INFINITY;
  size_t next = 0, best = 0;
  LE_TRY(sort_by_density(search, target, n, search->start));
  memcpy(copy, search->start, n * d * sizeof(double));
  for (size_t taken = 0; taken < n; taken++) { /* those that have their place are set to NaN */
    while (best < n && (isnan(value[search->order[best]]) ||
                        value[search->order[best]] - last < SAME)) best++;
    while (next < n && isnan(value[next])) next++;
    const int in_order = taken % 2 || best == n;
    const size_t k = in_order ? next : search->order[best];
    if (!in_order) last = value[k];
    value[k] = NAN;
    memcpy(search->start + taken * d, copy + k * d, d * sizeof(double));
  }
  return LE_OK;
}

/* The standard deviation of coordinate j among the candidates, from quartiles: the prior may have
 * heavy tails. */
static double spread(le_search *search, size_t j)
{
  const size_t n = search->candidates, d = search->d;
  for (size_t i = 0; i < n; i++) search->value[i] = search->candidate[i * d + j];
  double least, most;
  gsl_stats_minmax(&least, &most, search->value, 1, n);
  const double middle = (gsl_stats_select(search->value, 1, n, 3 * n / 4) -
                         gsl_stats_select(search->value, 1, n, n / 4)) / 1.349,
               whole = most - least;
  return middle > 0 && isfinite(middle) ? middle : whole > 0 && isfinite(whole) ? whole : 1;
}

/* A start of the model's own, from as many rows as the scratch memory is for. */
static void start_from_rows(const le_search *search, le_target *target, const gsl_rng *rng,
                            double *theta)
{
  const size_t n = target->seen < search->rows ? target->seen : search->rows;
  const le_rows rows = le_store_rows(target->store, 0, n);
  target->ops->start(target->model, &rows, rng, theta, search->scratch);
  target->likelihoods += (double)rows.n;
}

/* Of the starts from the prior, half are the most probable of the draws, and half are the first
 * draws, because the most probable ones may all be in the widest mode. If the model has no starts
 * of its own, draws that are more probable than their neighbours come first. */
static le_status scatter(le_search *search, le_audit *audit, le_target *target, const gsl_rng *rng)
{
  const size_t d = search->d;
  search->found = affordable_starts(search, target);
  for (size_t i = 0; i < search->candidates; i++)
    target->ops->draw_prior(target->model, rng, search->candidate + i * d);
  for (size_t j = 0; j < d; j++) audit->scale[j] = spread(search, j);
  LE_TRY(sort_by_density(search, target, search->candidates, search->candidate));
  if (!target->ops->start)
    le_optima(search->candidates, d, search->candidate, audit->scale, search->order, search->rest);
  for (size_t k = 0, draw = 0; k < search->found; k++)
    if (is_from_rows(target, k)) {
      start_from_rows(search, target, rng, search->start + k * d);
    } else {
      memcpy(search->start + k * d,
             search->candidate + (draw % 2 ? draw / 2 : search->order[draw / 2]) * d,
             d * sizeof(double));
      draw++;
    }
  for (size_t k = 0; k < search->found; k++) LE_TRY(climb_likelihood(search, audit, target, k));
  if (target->ops->start) LE_TRY(put_best_first(search, target));
  search->scattered = 1;
  return LE_OK;
}

/* Among more rows a mode can overtake the heaviest one by a few times the standard error that the
 * difference of their log-likelihoods has among these rows. It follows from groups of the rows. */
enum { GROUPS = 20, TYPICAL_ITERATIONS = 5, AFFORDABLE_LEAST = 32 };
static const double OVERTAKES = 3, BEHIND = 10;

/* `error` holds a number for each mode, `work` (d + 3) times as many. */
static le_status difference_errors(const le_search *search, const le_audit *audit,
                                   le_target *target, double *error, double *work)
{
  const size_t d = search->d, found = audit->found, n = search->few.n;
  double *value = work, *sum = value + found, *square = sum + found, *theta = square + found;
  memset(sum, 0, 2 * found * sizeof(double));
  for (size_t k = 0; k < found; k++)
    memcpy(theta + k * d, audit->mode[k].theta, d * sizeof(double));
  for (size_t g = 0; g < GROUPS; g++) {
    const le_rows rows = le_store_rows(&search->few, g * n / GROUPS, (g + 1) * n / GROUPS);
    for (size_t from = 0; from < found; from += target->m) {
      const size_t some = found - from < target->m ? found - from : target->m;
      LE_TRY(le_target_sums(target, &rows, some, theta + from * d, value + from, NULL));
    }
    for (size_t k = 0; k < found; k++) {
      sum[k] += value[k] - value[0];
      square[k] += pow(value[k] - value[0], 2);
    }
  }
  for (size_t k = 0; k < found; k++)
    error[k] = sqrt(fmax(square[k] - sum[k] * sum[k] / GROUPS, 0) * GROUPS / (GROUPS - 1));
  return LE_OK;
}

/* Modes from which climbs go on among ten times as many rows: those that may still matter there,
 * the heaviest first, as many as are affordable. `left` is the mass of the others, relative to that
 * of all. */
static const double WIDEN_WORK = 1e10;

static le_status choose(le_search *search, const le_audit *audit, le_target *target)
{
  const size_t d = search->d, found = audit->found;
  if (found == 0) return LE_OK;
  double *error = le_resize(NULL, found * (d + 4) * sizeof(double));
  if (!error) return LE_NO_MEMORY;
  const le_status status = difference_errors(search, audit, target, error, error + found);
  const double most = le_mode_mass(&audit->mode[0]),
               each = (double)(MORE * search->few.n) * (double)(d * d) * TYPICAL_ITERATIONS,
               affordable = fmax(WIDEN_WORK / each, AFFORDABLE_LEAST);
  const size_t room = affordable < (double)search->starts ? (size_t)affordable : search->starts;
  double kept_mass = 0, left = 0;
  size_t kept = 0;
  for (size_t k = 0; k < found && status == LE_OK; k++) {
    const double mass = le_mode_mass(&audit->mode[k]) - most;
    if (-mass > BEHIND + OVERTAKES * error[k]) continue;
    if (kept < room) {
      memcpy(search->start + kept++ * d, audit->mode[k].theta, d * sizeof(double));
      kept_mass += exp(mass);
    } else {
      left += exp(mass);
    }
  }
  le_release(error);
  LE_TRY(status);
  search->found = kept;
  search->unseen += left / (left + kept_mass);
  if (!search->wider) search->unseen += le_audit_rarely(audit, LE_FEW_HITS);
  search->wider = 1;
  return LE_OK;
}

double le_search_unseen(const le_search *search, const le_audit *audit, size_t few)
{
  const double refused = le_audit_refused(audit);
  return refused + (search->wider ? search->unseen : le_audit_rarely(audit, few));
}

/* A further start, of the same kinds as the others: from the rows, or a prior draw, every second
 * one the most probable of a few. */
enum { BEST_OF = 16 };

static le_status another(void *self, le_target *target, const gsl_rng *rng, double *theta)
{
  le_search *search = self;
  const size_t d = search->d, k = search->drawn++;
  if (is_from_rows(target, k)) {
    start_from_rows(search, target, rng, theta);
    return LE_OK;
  }
  const size_t n = k % 2 && target->m >= BEST_OF ? BEST_OF : 1;
  for (size_t i = 0; i < n; i++)
    target->ops->draw_prior(target->model, rng, search->candidate + i * d);
  if (n > 1) LE_TRY(sort_by_density(search, target, n, search->candidate));
  memcpy(theta, search->candidate + (n > 1 ? search->order[0] : 0) * d, d * sizeof(double));
  return LE_OK;
}

void le_search_attach(le_search *search, le_audit *audit)
{
  audit->another = another;
  audit->source = search;
}

void le_search_climbs(const le_search *search, le_audit *audit, size_t others)
{
  le_audit_start(audit, others + search->found, others ? audit->start : search->start);
  const double least = fmin(fmax(CLIMBS_LEAST, CLIMBS_WORK / (double)search->d), CLIMBS_ENOUGH);
  if (!search->every) audit->climbs_least = others + (size_t)least;
}

/* Works on the sample of rows, as if it were all data. */
static le_status search_few(le_search *search, le_audit *audit, le_target *target,
                            const gsl_rng *rng)
{
  if (!search->scattered) {
    LE_TRY(scatter(search, audit, target, rng));
    le_search_climbs(search, audit, 0);
    return LE_OK;
  }
  return audit->phase == LE_AUDIT_CLIMB ? le_audit_step(audit, target, rng)
                                        : choose(search, audit, target);
}

/* Continues with ten times as many rows. With one mode there is nothing left to choose, and a step
 * of less than tenfold is skipped. */
static le_status widen(le_search *search, le_audit *audit, const le_target *target,
                       const gsl_rng *take)
{
  const size_t all = le_store_sample(target->store, target->seen);
  search->done = search->found <= 1 || search->few.n >= all / MORE / 2;
  if (search->done) return LE_OK;
  LE_TRY(take_few(search, target, MORE * search->few.n, take));
  le_search_climbs(search, audit, 0);
  return LE_OK;
}

le_status le_search_step(le_search *search, le_audit *audit, le_target *target, const gsl_rng *rng,
                         const gsl_rng *take)
{
  const le_store *all = target->store;
  const size_t n = target->seen;
  if (search->done && search->few.n) return widen(search, audit, target, take);
  if (n <= search->rows && le_rows_of(target)->readable) {
    search->done = 1;
    return scatter(search, audit, target, rng);
  }
  if (search->done) le_search_start(search);
  if (!search->scattered) LE_TRY(take_few(search, target, search->rows, take));
  const int climbed = search->scattered && audit->phase != LE_AUDIT_CLIMB;
  target->store = &search->few;
  target->seen = search->few.n;
  const le_status status = search_few(search, audit, target, rng);
  target->store = all;
  target->seen = n;
  return status != LE_OK || !climbed ? status : widen(search, audit, target, take);
}

static const le_field fields[] = {LE_FIELD(le_search, scattered), LE_FIELD(le_search, done),
                                  LE_FIELD(le_search, wider),     LE_FIELD(le_search, unseen),
                                  LE_FIELD(le_search, drawn),
                                  LE_UP_TO(le_search, found, starts)};

void le_search_archive(le_search *search, le_archive *archive)
{
  le_archive_expect(archive, search->starts);
  LE_ARCHIVE_FIELDS(archive, search, fields);
  le_store_archive(&search->few, archive);
  le_archive_doubles(archive, search->start, search->starts * search->d);
  le_archive_require(archive, !le_store_represented(&search->few));
}
