/* The evidence of a mixture for all numbers of components from one run over partitions of the
 * rows, relative to the number whose evidence is known (the anchor; one component at least).
 *
 * Several independent chains, half of which begin with few blocks and half with many, first find
 * the levels at which all numbers of blocks are visited equally often. Then the levels stay, and
 * batches of sweeps are added until the standard error is small enough or the work is spent. Small
 * numbers of components are also known from importance sampling given the partitions (dual.c), and
 * are further anchors. From some of the partitions parameters are drawn, which are draws from the
 * posterior. */
#include "base/logsum.h"
#include "core/resample.h"
#include "estimators/partitions/parts.h"

#include <limits.h>

/* Levels are chosen in the first part of the work, and corrected until the second. They are known
 * well enough when they change by less than STEP_LEAST. */
static const double ADAPT_MOST = 0.4, CORRECT_MOST = 0.6, STEP_LEAST = 0.02;
/* So much must the log density of partitions grow with a block more to be taken as a sign of a
 * further cluster; if it grows less, their number may make up for it. */
static const double CLUSTER_GAIN = 5;
/* Importance sampling is done after this part of the work, or when the anchor makes the error
 * small; and at the end of the work again, for numbers of components that it was of no use for. */
static const double DUAL_FROM = 0.2;
/* A run may end before its work is spent if there were so many trips over all numbers of blocks. */
static const double TRIPS_LEAST = 25;
/* With a standard error above FAIR it goes on for WORK_FAIR times the work; above ROUGH for
 * WORK_ROUGH times, if it can be expected to have TRIPS_NEEDED trips and a standard error below
 * USELESS by then. */
static const double FAIR = 0.06, WORK_FAIR = 1.3, ROUGH = 0.1, WORK_ROUGH = 3, TRIPS_NEEDED = 10,
                    USELESS = 0.5;

typedef enum partitions_phase { WAITING, ADAPTING, RUNNING, DRAWING, FINISHED } partitions_phase;

/* Sweeps between two changes of the levels, and least number of changes with one step. Short chains
 * for the first levels. Sweeps in a batch at first; batches between two checks, of which there are
 * at least LADDER_BATCHES / 2. */
enum { ADAPT_EACH = 5, ADAPT_LEAST = 5, GUESSES = 4, GUESS_SWEEPS = 5, LENGTH_MOST = 8,
       CHECK_EACH = 8 };

typedef struct partitions {
  le_machine machine;
  partition_space space;
  partition_ladder ladder;
  partition_chain *chain;
  size_t draws, draws_from, adapted, length, drawn, restored, sampled;
  double budget, anchor_se, target, step;
  double *visits, *point, *centre;
  double *share, *trips, *work, *weight; /* scratch */
  partition_rung *rung;   /* [number of components][base] */
  partition_known *known; /* [number of components] */
  partition_dual dual;
  partition_chain spare;  /* scratch: for kept partitions */
  size_t *chosen;         /* scratch */
} partitions;

static const le_setting settings[] = {
  LE_COUNT_INTO(partitions, space.most, "components", 1, 1), /* the largest number */
  LE_COUNT_INTO(partitions, ladder.first, "anchor", 1, 1), /* the number whose evidence is known */
  /* the smallest number for which parameters are drawn */
  LE_COUNT_INTO(partitions, draws_from, "draws_from", 1, 1),
  LE_COUNT_INTO(partitions, ladder.chains, "chains", 8, 2),
  /* proposals to split or merge after each sweep */
  LE_COUNT_INTO(partitions, space.splits, "splits", 10, 0),
  /* largest number of densities of a row in a block */
  LE_REAL_INTO(partitions, budget, "work", 4e7, 0, HUGE_VAL),
  LE_REAL_INTO(partitions, anchor_se, "anchor_se", 0, 0, HUGE_VAL), /* its standard error */
  LE_REAL_INTO(partitions, target, "target", 0.03, 0, HUGE_VAL),
  LE_COUNT_INTO(partitions, draws, "draws", 1000, 1),
  /* the largest number of components for importance sampling given partitions */
  LE_COUNT_INTO(partitions, dual.most, "dual", DUAL_MOST, 0),
  {0}};

enum {
  RUNG = sizeof(partition_rung) / sizeof(double),
  KNOWN = sizeof(partition_known) / sizeof(double)
};

/* Of components, from the anchor on. */
static size_t numbers_known(const partitions *p) { return p->space.most - p->ladder.first + 1; }

static size_t numbers_drawn(const partitions *p) { return p->space.most - p->draws_from + 1; }

static size_t dim_most(const partitions *p)
{
  return p->space.ops->dim(p->space.self, p->space.most);
}

static le_status allocate(void *self)
{
  partitions *p = self;
  le_arena *arena = &p->machine.arena;
  const size_t chains = p->ladder.chains;
  p->space.rows = le_machine_rows(&p->machine);
  const size_t t = p->space.most + 1;
  le_partition_space_make(&p->space, arena);
  p->ladder.occupied = le_arena_doubles(arena, LADDER_BATCHES * chains * t);
  p->chain = le_arena_bytes(arena, chains, sizeof *p->chain);
  p->share = le_arena_doubles(arena, t);
  p->visits = le_arena_doubles(arena, t);
  p->trips = le_arena_doubles(arena, t);
  p->work = le_arena_doubles(arena, 2 * LADDER_BATCHES * chains + t);
  p->weight = le_arena_doubles(arena, chains * KEPT);
  p->chosen = le_arena_indices(arena, p->draws + DUAL_KEPT);
  p->rung = le_arena_bytes(arena, numbers_known(p) * numbers_known(p), sizeof *p->rung);
  p->known = le_arena_bytes(arena, numbers_known(p), sizeof *p->known);
  p->centre = le_arena_doubles(arena, numbers_drawn(p) * dim_most(p));
  p->point = le_arena_doubles(arena, numbers_drawn(p) * dim_most(p) * p->draws);
  if (arena->failed) return LE_NO_MEMORY;
  for (size_t c = 0; c < chains; c++) {
    p->chain[c].rng = p->machine.streams.rng[c + 1];
    le_partition_chain_alloc(&p->chain[c], &p->space, arena);
  }
  le_partition_chain_alloc(&p->spare, &p->space, arena);
  le_dual_alloc(&p->dual, &p->space, arena);
  for (size_t k = 0; k < numbers_known(p) && !arena->failed; k++)
    p->known[k] = (partition_known){NAN, INFINITY, 0, NAN};
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

/* Levels to begin with. Above the anchor: minus the log density of typical partitions with this
 * number of blocks, from short chains in which it does not change. */
static void set_levels(partitions *p)
{
  const size_t first = p->ladder.first, last = p->space.most;
  double *level = p->space.level, *guess = p->share;
  for (size_t t = first; t <= last; t++) {
    le_ladder_levels(&p->ladder);
    for (size_t k = 0; k <= last; k++)
      if (k > t || (k < t && t > first)) level[k] = -INFINITY;
    guess[t] = -INFINITY;
    for (size_t c = 0; c < GUESSES; c++) {
      partition_chain *chain = &p->chain[c % p->ladder.chains];
      double sum = 0;
      le_partition_start(chain, t);
      for (size_t s = 0; s < 2 * GUESS_SWEEPS; s++) {
        le_partition_sweep(chain);
        if (s >= GUESS_SWEEPS)
          sum += (level[chain->t] - level[t] + le_partition_density(chain)) / GUESS_SWEEPS;
      }
      guess[t] = fmax(guess[t], sum);
    }
  }
  le_ladder_levels(&p->ladder);
  double most = guess[first];
  for (size_t t = first + 1; t <= last; t++) {
    level[t] = level[t - 1] - fmax(0, guess[t] - most - CLUSTER_GAIN);
    most = fmax(most, guess[t]);
  }
}

static le_status begin(void *self)
{
  partitions *p = self;
  if (p->machine.store.n < 1)
    return le_fail(&p->machine.context->error, LE_BAD_ARGUMENT,
                   "partitions() needs at least one row.");
  LE_TRY(allocate(p));
  const size_t first = p->ladder.first, last = p->space.most;
  const double sweep = (double)p->space.rows.n * (double)last * (double)p->ladder.chains;
  const double length = p->budget / (4 * LADDER_BATCHES * sweep);
  p->length = length < 1 ? 1 : length > LENGTH_MOST ? LENGTH_MOST : (size_t)length;
  p->step = (double)numbers_known(p);
  set_levels(p);
  for (size_t c = 0; c < p->ladder.chains; c++)
    le_partition_start(&p->chain[c], c % 2 ? last : first);
  p->machine.phase = last > first ? ADAPTING : RUNNING;
  return LE_OK;
}

/* ---- chains side by side ---- */

/* Each chain has its own memory and random numbers. */
static void move_chains(partitions *p, size_t sweeps, int keeps)
{
  const int chains = (int)p->ladder.chains;
#ifdef _OPENMP
  const int threads = p->machine.context->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1)
#endif
  for (int c = 0; c < chains; c++) le_partition_move(&p->chain[c], sweeps, keeps);
}

static partition_tally tally_of(const partitions *p)
{
  partition_tally sum = {0};
  for (size_t c = 0; c < p->ladder.chains; c++) {
    sum.proposed += p->chain[c].tally.proposed;
    sum.accepted += p->chain[c].tally.accepted;
    sum.evaluations += p->chain[c].tally.evaluations;
  }
  return sum;
}

/* As a part of what is intended. */
static double work_done(const partitions *p) { return tally_of(p).evaluations / p->budget; }

/* How often chains went from the most blocks to at most t. */
static double trips_to(const partitions *p, size_t t)
{
  double sum = 0;
  for (size_t c = 0; c < p->ladder.chains; c++) sum += p->chain[c].trips[t];
  return sum;
}

/* ---- kept partitions ---- */

/* Chooses n partitions, more of those with more weight; returns the best one. */
static size_t choose(partitions *p, size_t components, size_t n)
{
  const size_t all = p->ladder.chains * KEPT;
  double best_density = -INFINITY;
  size_t best = 0;
  for (size_t s = 0; s < all; s++) {
    const partition_kept *k = &p->chain[s / KEPT].kept;
    const size_t at = s % KEPT;
    p->weight[s] = -INFINITY;
    if (at >= k->n || k->t[at] > components) continue;
    p->weight[s] = le_ladder_weight(&p->ladder, components, k->t[at]);
    const double density = k->density[at] + p->weight[s] + p->space.level[k->t[at]];
    if (!(density > best_density)) continue;
    best_density = density;
    best = s;
  }
  le_normalise(p->weight, all, p->weight);
  le_resample(LE_SYSTEMATIC, all, p->weight, n, p->machine.streams.rng[0], NULL, p->chosen);
  return best;
}

/* Goes to a kept partition, in the spare chain, and points to its blocks; returns their number. */
static size_t restore(partitions *p, size_t kept, const double **block)
{
  partition_chain *chain = &p->spare;
  if (kept != p->restored)
    le_partition_restore(chain, &p->chain[kept / KEPT].kept, kept % KEPT);
  p->restored = kept;
  for (size_t a = 0; a < chain->t; a++) block[a] = le_partition_block(chain, a);
  return chain->t;
}

/* Importance sampling given kept partitions. */
static void know(partitions *p, size_t components)
{
  const double *block[UCHAR_MAX + 1];
  le_dual_begin(&p->dual, components);
  choose(p, components, DUAL_KEPT);
  p->restored = SIZE_MAX; /* none */
  for (size_t j = 0; j < DUAL_KEPT; j++) {
    const size_t t = restore(p, p->chosen[j], block);
    le_dual_add(&p->dual, j, p->chosen[j] / KEPT, t, block, p->machine.streams.rng[0]);
  }
  p->known[components - p->ladder.first] =
    le_dual_estimate(&p->dual, p->machine.context->threads);
}

/* ---- phases ---- */

/* As in Wang and Landau (2001): the step of the levels is halved when all numbers of blocks have
 * had a part of their fair share of the visits since it was halved last. */
static le_status adapt(void *self)
{
  partitions *p = self;
  const size_t t = p->space.most + 1;
  move_chains(p, ADAPT_EACH, 0);
  memset(p->share, 0, t * sizeof(double));
  const double all = (double)(ADAPT_EACH * p->space.rows.n * p->ladder.chains);
  for (size_t c = 0; c < p->ladder.chains; c++)
    for (size_t k = 0; k < t; k++) p->share[k] += p->chain[c].occupied[k] / all;
  le_ladder_adapt(&p->ladder, p->share, p->step);
  for (size_t k = 0; k < t; k++) p->visits[k] += p->share[k];
  if (++p->adapted >= ADAPT_LEAST && le_ladder_is_even(&p->ladder, p->visits)) {
    p->step /= 2;
    p->adapted = 0;
    memset(p->visits, 0, t * sizeof(double));
  }
  if (p->step < STEP_LEAST || work_done(p) > ADAPT_MOST) p->machine.phase = RUNNING;
  return LE_OK;
}

static void set_rungs(partitions *p)
{
  partition_rung *rung = p->rung;
  for (size_t k = p->ladder.first; k <= p->space.most; k++)
    for (size_t base = p->ladder.first; base <= p->space.most; base++)
      *rung++ = le_ladder_rung(&p->ladder, k, base, p->work);
}

/* The standard error of a number, by the best of the anchors. */
static double se_of(const partitions *p, size_t k)
{
  const partition_rung *rung = p->rung + k * numbers_known(p);
  double least = hypot(rung[0].se, p->anchor_se);
  for (size_t base = 0; base <= k; base++)
    least = fmin(least, hypot(rung[base].se, p->known[base].se));
  return isfinite(least) ? least : INFINITY;
}

/* Of all numbers that were asked for. */
static double largest_se(const partitions *p)
{
  double most = 0;
  for (size_t k = 0; k < numbers_known(p); k++)
    if (k + p->ladder.first >= p->draws_from) most = fmax(most, se_of(p, k));
  return most;
}

static int is_precise(const partitions *p, double target)
{
  if (numbers_known(p) > 1 && trips_to(p, p->ladder.first) < TRIPS_LEAST) return 0;
  return largest_se(p) < target;
}

/* From small numbers on, until one is not usable. */
static void know_small(partitions *p)
{
  p->sampled++;
  const size_t first = p->ladder.first > 2 ? p->ladder.first : 2;
  for (size_t k = first; k <= p->dual.most; k++) {
    if (!isfinite(p->known[k - p->ladder.first].se)) know(p, k);
    if (!(p->known[k - p->ladder.first].share > 0) || is_precise(p, p->target)) return;
  }
}

static int is_hopeless(const partitions *p, double work)
{
  if (work < 1 || numbers_known(p) < 2) return 0;
  const double rest = WORK_ROUGH / work;
  return !(largest_se(p) < USELESS * sqrt(rest)) ||
         trips_to(p, p->ladder.first) * rest < TRIPS_NEEDED;
}

/* If numbers of blocks are visited too rarely, the levels change by what the visits say, and the
 * batches so far do not count. */
static int correct_levels(partitions *p)
{
  if (!le_ladder_correct(&p->ladder, p->share)) return 0;
  p->ladder.batches = 0;
  for (size_t c = 0; c < p->ladder.chains; c++) le_partition_forget(&p->chain[c]);
  return 1;
}

static le_status run(void *self)
{
  partitions *p = self;
  partition_ladder *ladder = &p->ladder;
  const size_t t = p->space.most + 1;
  if (ladder->batches == LADDER_BATCHES) {
    le_ladder_halve(ladder);
    p->length *= 2;
  }
  move_chains(p, p->length, 1);
  double *batch = ladder->occupied + ladder->batches * ladder->chains * t;
  for (size_t c = 0; c < ladder->chains; c++)
    for (size_t k = 0; k < t; k++)
      batch[c * t + k] = p->chain[c].occupied[k] / (double)p->space.rows.n;
  if (++ladder->batches < LADDER_BATCHES / 2 || ladder->batches % CHECK_EACH > 0) return LE_OK;
  set_rungs(p);
  const double work = work_done(p);
  if (work < CORRECT_MOST && correct_levels(p)) return LE_OK;
  if ((!p->sampled && (work > DUAL_FROM || is_precise(p, p->target))) ||
      (p->sampled == 1 && work > 1 && !is_precise(p, FAIR)))
    know_small(p);
  if (is_precise(p, p->target) || (work > 1 && is_precise(p, FAIR)) ||
      (work > WORK_FAIR && is_precise(p, ROUGH)) || work > WORK_ROUGH ||
      is_hopeless(p, work))
    p->machine.phase = DRAWING;
  return LE_OK;
}

/* ---- draws ---- */

static void draw_from(partitions *p, size_t kept, const gsl_rng *rng, double *point)
{
  const partition_space *space = &p->space;
  const double *block[UCHAR_MAX + 1];
  const size_t t = restore(p, kept, block);
  space->ops->draw(space->self, space->tables, p->draws_from + p->drawn, t, block, rng, point,
                   p->work);
}

static le_status draw(void *self)
{
  partitions *p = self;
  const size_t d = dim_most(p), best = choose(p, p->draws_from + p->drawn, p->draws);
  p->restored = SIZE_MAX; /* none */
  draw_from(p, best, NULL, p->centre + p->drawn * d);
  for (size_t k = 0; k < p->draws; k++)
    draw_from(p, p->chosen[k], p->machine.streams.rng[0],
              p->point + (p->drawn * p->draws + k) * d);
  if (++p->drawn == numbers_drawn(p)) p->machine.phase = FINISHED;
  return LE_OK;
}

/* ---- the contract ---- */

static void partitions_progress(const void *self, double *rows, double *share)
{
  const partitions *p = self;
  *rows = (double)p->machine.store.n;
  *share = p->machine.phase >= DRAWING ? 1
           : p->machine.phase == WAITING ? 0 : fmin(1, work_done(p));
}

static le_status partitions_result(void *self, le_result *result)
{
  partitions *p = self;
  const partition_ladder *ladder = &p->ladder;
  const int there = p->machine.phase != WAITING;
  const partition_tally tally = there ? tally_of(p) : (partition_tally){0};
  const le_figure figures[] = {
    {"n", (double)p->machine.store.n}, {"lambda_steps", 0},
    {"likelihoods", tally.evaluations / (double)p->space.most}, {"gradients", 0},
    {"seconds", p->machine.seconds},
    {"sweeps", (double)(p->length * ladder->batches * ladder->chains)},
    {"accepted", tally.proposed > 0 ? tally.accepted / tally.proposed : 0}};
  le_result_figures(result, LE_TABLE(figures));
  if (!there) return LE_OK;
  for (size_t k = 0; k < numbers_known(p); k++) p->trips[k] = trips_to(p, ladder->first + k);
  le_result_array(result, "trips", numbers_known(p), 1, p->trips);
  le_result_array(result, "rungs", RUNG * numbers_known(p), numbers_known(p), &p->rung->log_ratio);
  le_result_array(result, "known", KNOWN, numbers_known(p), &p->known->log_evidence);
  le_result_array(result, "levels", p->space.most, 1, p->space.level + 1);
  le_result_array(result, "occupied", p->space.most + 1, ladder->chains * ladder->batches,
                  ladder->occupied);
  le_result_array(result, "centre", dim_most(p), p->drawn, p->centre);
  le_result_array(result, "draws", dim_most(p), p->drawn * p->draws, p->point);
  return LE_OK;
}

#define FIELD(member) LE_FIELD(partitions, member)
#define EXPECTED(member) LE_EXPECTED(partitions, member)
static const le_field fields[] = {
  EXPECTED(ladder.first), EXPECTED(space.most), EXPECTED(ladder.chains), EXPECTED(draws),
  EXPECTED(draws_from), FIELD(adapted), FIELD(length), FIELD(drawn), FIELD(sampled),
  LE_WITHIN(partitions, ladder.batches, 0, LADDER_BATCHES), FIELD(step),
  /* within a phase */
  LE_UNSAVED(partitions, restored), LE_UNSAVED(partitions, dual), LE_UNSAVED(partitions, spare)
};
#undef FIELD
#undef EXPECTED

static void partitions_archive(void *self, le_archive *archive)
{
  partitions *p = self;
  partition_ladder *ladder = &p->ladder;
  const size_t t = p->space.most + 1;
  le_archive_doubles(archive, p->visits, t);
  le_archive_doubles(archive, p->space.level, t + 1);
  le_archive_doubles(archive, &p->rung->log_ratio, numbers_known(p) * numbers_known(p) * RUNG);
  le_archive_doubles(archive, &p->known->log_evidence, numbers_known(p) * KNOWN);
  le_archive_doubles(archive, ladder->occupied, LADDER_BATCHES * ladder->chains * t);
  for (size_t c = 0; c < ladder->chains; c++) le_partition_archive(&p->chain[c], archive);
  le_archive_doubles(archive, p->centre, numbers_drawn(p) * dim_most(p));
  le_archive_doubles(archive, p->point, numbers_drawn(p) * dim_most(p) * p->draws);
  le_archive_require(archive, p->length > 0 && p->machine.store.n > 0);
  le_archive_require(archive, p->drawn < numbers_drawn(p) + (p->machine.phase == FINISHED));
}

static const le_phase phases[] = {
  [WAITING] = {"begin", begin, 1},
  [ADAPTING] = {"adapt", adapt, 0},
  [RUNNING] = {"run", run, 0},
  [DRAWING] = {"draw", draw, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status partitions_make(void *self)
{
  partitions *p = self;
  const le_problem *problem = &p->machine.problem;
  if (!problem->ops->partitions || !problem->ops->partitions->log_size)
    return le_fail(&p->machine.context->error, LE_UNSUPPORTED,
                   "partitions() needs a mixture whose parameters can be integrated out, such as "
                   "gaussian_mixture(), not %s().",
                   problem->ops->name);
  p->space.ops = problem->ops->partitions;
  p->space.self = problem->model;
  le_settings_read(&problem->settings, settings, p);
  p->ladder.space = &p->space;
  if (p->space.most >= UCHAR_MAX || p->ladder.first > p->space.most ||
      p->draws_from > p->space.most || p->ladder.chains >= 1024)
    return LE_BAD_ARGUMENT;
  return le_machine_streams(&p->machine, p->ladder.chains + 1);
}

const le_estimator_ops le_partitions_estimator = {
  .name = "partitions",
  .knows = {{settings}, NULL},
  .size = sizeof(partitions),
  .phases = phases,
  .fields = {LE_TABLE(fields)},
  .make = partitions_make,
  .allocate = allocate,
  .progress = partitions_progress,
  .result = partitions_result,
  .archive = partitions_archive,
};
