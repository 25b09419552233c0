/* The evidence of a mixture for all numbers of components from one run over partitions of the
 * rows, relative to the number whose evidence is known (the anchor; one component at least).
 *
 * Several independent chains, half of which begin with few blocks and half with many, first find
 * the levels at which all numbers of blocks are visited equally often. Then the levels stay, and
 * batches of sweeps are added until the standard error is small enough or the work is spent. From
 * some of the partitions parameters are drawn, which are draws from the posterior. */
#include "estimators/partitions/parts.h"

#include <limits.h>

/* Levels are chosen in the first part of the work, and corrected until the second. They are known
 * well enough when they change by less than STEP_LEAST. */
static const double ADAPT_MOST = 0.4, CORRECT_MOST = 0.6, STEP_LEAST = 0.02;
/* So much must the log density of partitions grow with a block more to be taken as a sign of a
 * further cluster; if it grows less, their number may make up for it. */
static const double CLUSTER_GAIN = 5;
/* A run may end before its work is spent if there were so many trips over all numbers of blocks. */
static const double TRIPS_LEAST = 50;
/* With a standard error above ROUGH it goes on for WORK_ROUGH times the work. */
static const double ROUGH = 0.1, WORK_ROUGH = 3;

typedef enum partitions_phase { WAITING, ADAPTING, RUNNING, DRAWING, FINISHED } partitions_phase;

static const le_setting settings[] = {
  LE_COUNT_SETTING("components", 1, 1),  /* the largest number */
  LE_COUNT_SETTING("anchor", 1, 1),      /* the number whose evidence is known */
  LE_COUNT_SETTING("draws_from", 1, 1),  /* the smallest number for which parameters are drawn */
  LE_COUNT_SETTING("chains", 8, 2),
  LE_COUNT_SETTING("splits", 10, 0),     /* proposals to split or merge after each sweep */
  LE_REAL_SETTING("work", 4e7, 0, HUGE_VAL), /* largest number of densities of a row in a block */
  LE_REAL_SETTING("target", 0.03, 0, HUGE_VAL),
  LE_COUNT_SETTING("draws", 1000, 1),
  {0}};

/* Sweeps between two changes of the levels, and least number of changes with one step. Short chains
 * for the first levels. Sweeps in a batch at first, and partitions that are kept of each chain. */
enum {
  ADAPT_EACH = 5,
  ADAPT_LEAST = 5,
  GUESSES = 4,
  GUESS_SWEEPS = 5,
  LENGTH_MOST = 8,
  KEPT = 256
};

/* Partitions that were kept: labels are places of blocks. */
typedef struct kept {
  size_t n, every, since; /* one of `every` sweeps is kept */
  size_t *t;
  double *density;
  unsigned char *label;   /* [partition][row] */
} kept;

typedef struct partitions {
  le_machine machine;
  const le_model_ops *model;
  le_arena arena;
  partition_space space;
  partition_ladder ladder;
  partition_chain *chain;
  kept *kept;
  size_t splits, draws, draws_from, adapted, length, drawn;
  double budget, target, step;
  double *share, *visits, *trips, *work, *weight, *point, *centre, *rung;
  size_t *chosen;
  double summary[12];
} partitions;

/* Of a pair of numbers of components: log_ratio, se, apart. */
enum { RUNG = 3 };

static void partitions_free(void *self)
{
  partitions *p = self;
  if (!p) return;
  le_machine_free(&p->machine);
  le_arena_free(&p->arena);
  le_release(p);
}

/* Of components, from the anchor on. */
static size_t numbers_known(const partitions *p) { return p->ladder.last - p->ladder.first + 1; }

static size_t numbers_drawn(const partitions *p) { return p->ladder.last - p->draws_from + 1; }

static size_t dim_most(const partitions *p)
{
  return p->space.ops->dim(p->space.self, p->ladder.last);
}

static le_status allocate(partitions *p)
{
  le_arena *arena = &p->arena;
  const size_t chains = p->ladder.chains;
  p->space.rows = le_machine_rows(&p->machine);
  const size_t n = p->space.rows.n, t = p->ladder.last + 1;
  p->ladder.n = n;
  le_partition_space_alloc(&p->space, n, arena);
  le_ladder_alloc(&p->ladder, arena);
  p->chain = le_arena_bytes(arena, chains, sizeof *p->chain);
  p->kept = le_arena_bytes(arena, chains, sizeof *p->kept);
  p->share = le_arena_doubles(arena, t);
  p->visits = le_arena_doubles(arena, t);
  p->trips = le_arena_doubles(arena, t);
  p->work = le_arena_doubles(arena, LADDER_BATCHES * chains + p->ladder.last + 2);
  p->weight = le_arena_doubles(arena, chains * KEPT);
  p->chosen = le_arena_indices(arena, p->draws);
  p->rung = le_arena_doubles(arena, numbers_known(p) * numbers_known(p) * RUNG);
  p->centre = le_arena_doubles(arena, numbers_drawn(p) * dim_most(p));
  p->point = le_arena_doubles(arena, numbers_drawn(p) * dim_most(p) * p->draws);
  if (arena->failed) return LE_NO_MEMORY;
  for (size_t c = 0; c < chains; c++) {
    p->chain[c].rng = p->machine.streams.rng[c + 1];
    le_partition_chain_alloc(&p->chain[c], &p->space, arena);
    p->kept[c].every = 1;
    p->kept[c].t = le_arena_indices(arena, KEPT);
    p->kept[c].density = le_arena_doubles(arena, KEPT);
    p->kept[c].label = le_arena_bytes(arena, KEPT * n, 1);
  }
  if (arena->failed) return LE_NO_MEMORY;
  le_partition_space_prepare(&p->space);
  return LE_OK;
}

/* Levels for numbers of blocks above the anchor: minus the log density of typical partitions with
 * this number, from short chains in which it does not change. */
static void guess_levels(partitions *p)
{
  partition_space *space = &p->space;
  const partition_ladder *ladder = &p->ladder;
  double *level = space->level, *guess = p->share, *kept_level = p->work;
  memcpy(kept_level, level, (ladder->last + 2) * sizeof(double));
  for (size_t t = ladder->first; t <= ladder->last; t++) {
    for (size_t k = 0; k <= ladder->last + 1; k++)
      level[k] = (t == ladder->first && k <= t) || k == t ? kept_level[k] : -INFINITY;
    guess[t] = -INFINITY;
    for (size_t c = 0; c < GUESSES; c++) {
      partition_chain *chain = &p->chain[c % ladder->chains];
      double sum = 0;
      le_partition_start(chain, space, t);
      for (size_t s = 0; s < 2 * GUESS_SWEEPS; s++) {
        le_partition_sweep(chain, space);
        if (s >= GUESS_SWEEPS)
          sum += (level[chain->t] - level[t] + le_partition_density(chain, space)) / GUESS_SWEEPS;
      }
      guess[t] = fmax(guess[t], sum);
    }
  }
  memcpy(level, kept_level, (ladder->last + 2) * sizeof(double));
  double most = guess[ladder->first];
  for (size_t t = ladder->first + 1; t <= ladder->last; t++) {
    level[t] = level[t - 1] - fmax(0, guess[t] - most - CLUSTER_GAIN);
    most = fmax(most, guess[t]);
  }
}

static le_status begin(void *self, le_progress *progress)
{
  partitions *p = self;
  (void)progress;
  if (p->machine.store.n < 1)
    return le_fail(&p->machine.context->error, LE_BAD_ARGUMENT,
                   "partitions() needs at least one row.");
  LE_TRY(allocate(p));
  const double sweep = (double)p->space.rows.n * (double)p->ladder.last *
                       (double)p->ladder.chains;
  const double length = p->budget / (4 * LADDER_BATCHES * sweep);
  p->length = length < 1 ? 1 : length > LENGTH_MOST ? LENGTH_MOST : (size_t)length;
  p->step = (double)(p->ladder.last - p->ladder.first + 1);
  le_ladder_levels(&p->ladder, &p->space);
  guess_levels(p);
  for (size_t c = 0; c < p->ladder.chains; c++)
    le_partition_start(&p->chain[c], &p->space, c % 2 ? p->ladder.last : p->ladder.first);
  p->machine.phase = p->ladder.last > p->ladder.first ? ADAPTING : RUNNING;
  return LE_OK;
}

/* ---- chains side by side ---- */

static void keep(partitions *p, size_t c)
{
  kept *k = &p->kept[c];
  const partition_chain *chain = &p->chain[c];
  const size_t n = p->space.rows.n;
  if (++k->since < k->every) return;
  k->since = 0;
  if (k->n == KEPT) { /* every second one goes */
    k->n /= 2;
    k->every *= 2;
    for (size_t s = 0; s < k->n; s++) {
      k->t[s] = k->t[2 * s + 1];
      k->density[s] = k->density[2 * s + 1];
      memcpy(k->label + s * n, k->label + (2 * s + 1) * n, n);
    }
  }
  for (size_t i = 0; i < n; i++)
    k->label[k->n * n + i] = (unsigned char)chain->place[chain->label[i]];
  k->t[k->n] = chain->t;
  k->density[k->n++] = le_partition_density(chain, &p->space);
}

static void count_trips(const partitions *p, partition_chain *chain)
{
  for (size_t t = p->ladder.first; t < p->ladder.last; t++) {
    if (chain->t == p->ladder.last) chain->high[t] = 1;
    if (!chain->high[t] || chain->t > t) continue;
    chain->high[t] = 0;
    chain->trips[t]++;
  }
}

static void move_chain(partitions *p, size_t c, size_t sweeps, int keeps)
{
  partition_chain *chain = &p->chain[c];
  le_partition_rebuild(chain, &p->space);
  memset(chain->occupied, 0, (p->space.most + 1) * sizeof(double));
  for (size_t s = 0; s < sweeps; s++) {
    le_partition_sweep(chain, &p->space);
    for (size_t k = 0; k < p->splits; k++) le_partition_split_or_merge(chain, &p->space);
    if (keeps) keep(p, c);
    count_trips(p, chain);
  }
}

/* Each chain has its own memory and random numbers. */
static void move_chains(partitions *p, size_t sweeps, int keeps)
{
  const int chains = (int)p->ladder.chains;
#ifdef _OPENMP
  const int threads = p->machine.context->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1)
#endif
  for (int c = 0; c < chains; c++) move_chain(p, (size_t)c, sweeps, keeps);
}

static double work_done(const partitions *p)
{
  double sum = 0;
  for (size_t c = 0; c < p->ladder.chains; c++) sum += p->chain[c].evaluations;
  return sum;
}

/* ---- phases ---- */

/* As in Wang and Landau (2001): the step of the levels is halved when all numbers of blocks have
 * had a part of their fair share of the visits since it was halved last. */
static le_status adapt(void *self, le_progress *progress)
{
  partitions *p = self;
  (void)progress;
  const size_t t = p->ladder.last + 1;
  move_chains(p, ADAPT_EACH, 0);
  memset(p->share, 0, t * sizeof(double));
  const double all = (double)(ADAPT_EACH * p->space.rows.n * p->ladder.chains);
  for (size_t c = 0; c < p->ladder.chains; c++)
    for (size_t k = 0; k < t; k++) p->share[k] += p->chain[c].occupied[k] / all;
  le_ladder_adapt(&p->ladder, p->share, p->step, p->space.level);
  for (size_t k = 0; k < t; k++) p->visits[k] += p->share[k];
  if (++p->adapted >= ADAPT_LEAST && le_ladder_is_even(&p->ladder, p->visits)) {
    p->step /= 2;
    p->adapted = 0;
    memset(p->visits, 0, t * sizeof(double));
  }
  if (p->step < STEP_LEAST || work_done(p) > ADAPT_MOST * p->budget) p->machine.phase = RUNNING;
  return LE_OK;
}

static double *pair_at(const partitions *p, size_t components, size_t base)
{
  const size_t first = p->ladder.first;
  return p->rung + ((components - first) * numbers_known(p) + base - first) * RUNG;
}

/* Of all chains, down to each number of components. */
static void sum_trips(partitions *p)
{
  for (size_t k = 0; k < numbers_known(p); k++) {
    p->trips[k] = 0;
    for (size_t c = 0; c < p->ladder.chains; c++)
      p->trips[k] += p->chain[c].trips[p->ladder.first + k];
  }
}

static int is_precise(const partitions *p, double target)
{
  if (numbers_known(p) > 1 && p->trips[0] < TRIPS_LEAST) return 0;
  for (size_t k = p->ladder.first; k <= p->ladder.last; k++)
    if (!(pair_at(p, k, p->ladder.first)[1] < target)) return 0;
  return 1;
}

static void set_rungs(partitions *p)
{
  for (size_t k = p->ladder.first; k <= p->ladder.last; k++)
    for (size_t base = p->ladder.first; base <= p->ladder.last; base++) {
      const partition_rung rung = le_ladder_rung(&p->ladder, &p->space, k, base, p->work);
      double *out = pair_at(p, k, base);
      out[0] = rung.log_ratio;
      out[1] = rung.se;
      out[2] = rung.apart;
    }
}

/* If numbers of blocks are visited too rarely, the levels change by what the visits say, and the
 * batches so far do not count. */
static int correct_levels(partitions *p)
{
  if (!le_ladder_correct(&p->ladder, p->share, p->space.level)) return 0;
  p->ladder.batches = 0;
  for (size_t c = 0; c < p->ladder.chains; c++) {
    p->kept[c].n = p->kept[c].since = 0;
    p->kept[c].every = 1;
    memset(p->chain[c].trips, 0, (p->space.most + 1) * sizeof(double));
    memset(p->chain[c].high, 0, (p->space.most + 1) * sizeof(size_t));
  }
  return 1;
}

static le_status run(void *self, le_progress *progress)
{
  partitions *p = self;
  (void)progress;
  partition_ladder *ladder = &p->ladder;
  const size_t t = ladder->last + 1;
  if (ladder->batches == LADDER_BATCHES) {
    le_ladder_halve(ladder);
    p->length *= 2;
  }
  move_chains(p, p->length, 1);
  double *batch = ladder->occupied + ladder->batches * ladder->chains * t;
  for (size_t c = 0; c < ladder->chains; c++)
    for (size_t k = 0; k < t; k++)
      batch[c * t + k] = p->chain[c].occupied[k] / (double)p->space.rows.n;
  if (++ladder->batches < LADDER_BATCHES) return LE_OK;
  set_rungs(p);
  sum_trips(p);
  if (work_done(p) < CORRECT_MOST * p->budget && correct_levels(p)) return LE_OK;
  const double work = work_done(p) / p->budget;
  if (is_precise(p, p->target) || (work > 1 && is_precise(p, ROUGH)) || work > WORK_ROUGH)
    p->machine.phase = DRAWING;
  return LE_OK;
}

/* ---- draws ---- */

/* Chooses partitions, more of those with more weight; returns the best one. */
static size_t choose(partitions *p, size_t components)
{
  const size_t all = p->ladder.chains * KEPT;
  double top = -INFINITY, best_density = -INFINITY, sum = 0;
  size_t best = 0, drawn = 0;
  for (size_t s = 0; s < all; s++) {
    const kept *k = &p->kept[s / KEPT];
    const size_t at = s % KEPT;
    p->weight[s] = at < k->n && k->t[at] <= components
                     ? le_ladder_weight(&p->ladder, &p->space, components, k->t[at])
                     : -INFINITY;
    top = fmax(top, p->weight[s]);
    if (p->weight[s] == -INFINITY) continue;
    const double density = k->density[at] + p->weight[s] + p->space.level[k->t[at]];
    if (density > best_density) {
      best_density = density;
      best = s;
    }
  }
  for (size_t s = 0; s < all; s++)
    sum += p->weight[s] = top > -INFINITY ? exp(p->weight[s] - top) : 0;
  const double start = gsl_rng_uniform(p->machine.streams.rng[0]);
  double below = 0;
  for (size_t s = 0; s < all && sum > 0; s++) {
    below += p->weight[s] / sum * (double)p->draws;
    while (drawn < p->draws && (double)drawn + start < below) p->chosen[drawn++] = s;
  }
  while (drawn < p->draws) p->chosen[drawn++] = best;
  return best;
}

/* Makes the blocks of a partition in the first chain, which has ended. */
static size_t restore_partition(partitions *p, size_t s, const double **block)
{
  partition_chain *chain = &p->chain[0];
  const kept *k = &p->kept[s / KEPT];
  const size_t n = p->space.rows.n, at = s % KEPT;
  chain->t = k->t[at];
  for (size_t a = 0; a <= p->space.most; a++) chain->slot[a] = chain->place[a] = a;
  for (size_t i = 0; i < n; i++) chain->label[i] = k->label[at * n + i];
  le_partition_rebuild(chain, &p->space);
  for (size_t a = 0; a < chain->t; a++) block[a] = chain->block + a * p->space.stride;
  return chain->t;
}

static le_status draw(void *self, le_progress *progress)
{
  partitions *p = self;
  (void)progress;
  const partition_space *space = &p->space;
  const size_t components = p->draws_from + p->drawn, d = dim_most(p), best = choose(p, components);
  const double *block[UCHAR_MAX + 1];
  double *scratch = p->work, *point = p->point + p->drawn * p->draws * d;
  size_t t = restore_partition(p, best, block);
  space->ops->draw(space->self, space->tables, components, t, block, NULL,
                   p->centre + p->drawn * d, scratch);
  size_t now = best;
  for (size_t k = 0; k < p->draws; k++) {
    if (p->chosen[k] != now) t = restore_partition(p, now = p->chosen[k], block);
    space->ops->draw(space->self, space->tables, components, t, block, p->machine.streams.rng[0],
                     point + k * d, scratch);
  }
  if (++p->drawn == numbers_drawn(p)) p->machine.phase = FINISHED;
  return LE_OK;
}

/* ---- the contract ---- */

static void partitions_progress(const void *self, double *rows, double *share)
{
  const partitions *p = self;
  *rows = (double)p->machine.store.n;
  *share = p->machine.phase >= DRAWING ? 1
           : p->machine.phase == WAITING ? 0 : fmin(1, work_done(p) / p->budget);
}

static le_status partitions_result(void *self, le_result *result)
{
  partitions *p = self;
  const partition_ladder *ladder = &p->ladder;
  const int there = p->machine.phase != WAITING;
  double proposed = 0, accepted = 0;
  for (size_t c = 0; there && c < ladder->chains; c++) {
    proposed += p->chain[c].proposed;
    accepted += p->chain[c].accepted;
  }
  static const char *const names[] = {"n",       "lambda_steps", "likelihoods", "gradients",
                                      "seconds", "sweeps",       "accepted"};
  const double figures[] = {(double)p->machine.store.n,
                            0,
                            there ? work_done(p) / (double)ladder->last : 0,
                            0,
                            p->machine.seconds,
                            (double)(p->length * ladder->batches * ladder->chains),
                            proposed > 0 ? accepted / proposed : 0};
  memcpy(p->summary, figures, sizeof figures);
  le_result_figures(result, sizeof names / sizeof *names, names, p->summary);
  if (!there) return LE_OK;
  le_result_array(result, "trips", numbers_known(p), 1, p->trips);
  le_result_array(result, "rungs", RUNG * numbers_known(p), numbers_known(p), p->rung);
  le_result_array(result, "levels", ladder->last, 1, p->space.level + 1);
  le_result_array(result, "occupied", ladder->last + 1, ladder->chains * ladder->batches,
                  ladder->occupied);
  le_result_array(result, "centre", dim_most(p), p->drawn, p->centre);
  le_result_array(result, "draws", dim_most(p), p->drawn * p->draws, p->point);
  return LE_OK;
}

static void archive_chain(partitions *p, size_t c, le_archive *archive)
{
  partition_chain *chain = &p->chain[c];
  kept *k = &p->kept[c];
  const size_t n = p->space.rows.n, slots = p->space.most + 1;
  le_archive_size(archive, &chain->t);
  le_archive_sizes(archive, chain->label, n);
  le_archive_sizes(archive, chain->slot, slots);
  le_archive_sizes(archive, chain->place, slots);
  double *const figure[] = {&chain->proposed, &chain->accepted, &chain->evaluations};
  le_archive_doubles(archive, chain->trips, p->space.most + 1);
  le_archive_sizes(archive, chain->high, p->space.most + 1);
  for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) le_archive_double(archive, figure[i]);
  size_t *const count[] = {&k->n, &k->every, &k->since};
  for (size_t i = 0; i < sizeof count / sizeof *count; i++) le_archive_size(archive, count[i]);
  le_archive_sizes(archive, k->t, KEPT);
  le_archive_doubles(archive, k->density, KEPT);
  le_archive_bytes(archive, k->label, KEPT * n);
}

/* Numbers of a damaged state are not used as indices. */
static int is_sound(const partitions *p)
{
  const size_t slots = p->space.most + 1;
  int sound = p->ladder.batches <= LADDER_BATCHES && p->length > 0 && p->drawn <= numbers_drawn(p);
  for (size_t c = 0; c < p->ladder.chains; c++) {
    const partition_chain *chain = &p->chain[c];
    const kept *k = &p->kept[c];
    sound = sound && chain->t >= 1 && chain->t <= p->space.most && k->n <= KEPT && k->every > 0;
    for (size_t a = 0; a < slots; a++)
      sound = sound && chain->slot[a] < slots && chain->place[a] < slots &&
              chain->place[chain->slot[a]] == a;
    for (size_t i = 0; sound && i < p->space.rows.n; i++)
      sound = chain->label[i] < slots && chain->place[chain->label[i]] < chain->t;
    for (size_t s = 0; sound && s < k->n; s++) sound = k->t[s] >= 1 && k->t[s] <= p->space.most;
    for (size_t s = 0; sound && s < k->n * p->space.rows.n; s++)
      sound = k->label[s] < k->t[s / p->space.rows.n];
  }
  return sound;
}

static void partitions_archive(void *self, le_archive *archive)
{
  partitions *p = self;
  partition_ladder *ladder = &p->ladder;
  le_archive_expect(archive, ladder->first);
  le_archive_expect(archive, ladder->last);
  le_archive_expect(archive, ladder->chains);
  le_archive_expect(archive, p->draws);
  le_archive_expect(archive, p->draws_from);
  le_machine_archive(&p->machine, archive);
  const int there = p->machine.phase != WAITING;
  if (archive->status == LE_OK && there && !archive->writing) archive->status = allocate(p);
  if (archive->status != LE_OK || !there) return;
  const size_t t = ladder->last + 1;
  size_t *const count[] = {&p->adapted, &p->length, &p->drawn, &ladder->batches};
  for (size_t i = 0; i < sizeof count / sizeof *count; i++) le_archive_size(archive, count[i]);
  le_archive_double(archive, &p->step);
  le_archive_doubles(archive, p->visits, t);
  le_archive_doubles(archive, p->trips, t);
  le_archive_doubles(archive, p->space.level, t + 1);
  le_archive_doubles(archive, p->space.alone, p->space.rows.n);
  le_archive_doubles(archive, p->rung, numbers_known(p) * numbers_known(p) * RUNG);
  le_archive_doubles(archive, ladder->occupied, LADDER_BATCHES * ladder->chains * t);
  for (size_t c = 0; c < ladder->chains; c++) archive_chain(p, c, archive);
  le_archive_doubles(archive, p->centre, numbers_drawn(p) * dim_most(p));
  le_archive_doubles(archive, p->point, numbers_drawn(p) * dim_most(p) * p->draws);
  if (archive->status == LE_OK && !archive->writing && !is_sound(p)) archive->status = LE_CORRUPT;
}

static const le_phase phases[] = {
  [WAITING] = {"begin", begin, 1},
  [ADAPTING] = {"adapt", adapt, 0},
  [RUNNING] = {"run", run, 0},
  [DRAWING] = {"draw", draw, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status read_settings(const le_problem *problem, partitions *p)
{
  const le_args *args = &problem->settings;
  p->ladder.last = le_setting_count(args, settings, "components");
  p->ladder.first = le_setting_count(args, settings, "anchor");
  p->ladder.chains = le_setting_count(args, settings, "chains");
  p->draws_from = le_setting_count(args, settings, "draws_from");
  p->splits = le_setting_count(args, settings, "splits");
  p->budget = le_setting_number(args, settings, "work");
  p->target = le_setting_number(args, settings, "target");
  p->draws = le_setting_count(args, settings, "draws");
  p->space.most = p->ladder.last;
  return p->ladder.last < UCHAR_MAX && p->ladder.first <= p->ladder.last &&
             p->draws_from <= p->ladder.last && p->ladder.chains < 1024
           ? LE_OK
           : LE_BAD_ARGUMENT;
}

static le_status partitions_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  if (!problem->ops->partitions)
    return le_fail(&context->error, LE_UNSUPPORTED,
                   "partitions() needs a mixture whose parameters can be integrated out, such as "
                   "gaussian_mixture(), not %s().",
                   problem->ops->name);
  partitions *p = le_resize(NULL, sizeof *p);
  if (!p) return LE_NO_MEMORY;
  memset(p, 0, sizeof *p);
  p->model = problem->ops;
  p->space.ops = problem->ops->partitions;
  p->space.self = problem->model;
  le_status status = read_settings(problem, p);
  if (status == LE_OK)
    status = le_machine_alloc(&p->machine, phases, FINISHED + 1, problem, p->ladder.chains + 1,
                              context);
  if (status != LE_OK) {
    partitions_free(p);
    return status;
  }
  *self = p;
  return LE_OK;
}

const le_estimator_ops le_partitions_estimator = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_estimator_ops),
  .name = "partitions",
  .knows = {{settings}, NULL},
  .alloc = partitions_alloc,
  .free = partitions_free,
  .feed = le_machine_feed,
  .advance = le_machine_advance,
  .progress = partitions_progress,
  .result = partitions_result,
  .archive = partitions_archive,
};
