/* Annealed sequential Monte Carlo for models with latent variables. Particles are states
 * (le_latent_ops) and moves are sweeps. log f at lambda comes from the model and is not lambda
 * times a log-likelihood, because parameters are integrated out.
 *
 *   by temperature   all rows from the start; weights are f at the next lambda over f at this
 *                    one, then sweeps
 *   by rows          one row at a time; its latent is drawn from its conditional distribution
 *                    (weight p(row | rest)) or from the prior (weight p(row | rest, latent)),
 *                    then sweeps
 *
 * In reverse, the same path is followed backwards from `from_state`, an exact draw from the
 * posterior, with sweeps in reverse order before each reciprocal weight; the mean weight then
 * estimates 1 / Z without bias.
 *
 * With `rounds` the run only serves to reach the posterior: particles are resampled and continue as
 * chains, and the estimate is the harmonic mean of their likelihoods. With `from_state` and not in
 * reverse, the chains start there.
 *
 * By rows, the first few (`first`) may be added together by temperature: if parameters are not
 * integrated out, draws from the prior would all have negligible likelihood. With `often`,
 * particles are swept after every row up to that number of rows, then each time the rows have grown
 * by one part in `often`, and after every resampling. But for the last, when to sweep depends only
 * on the number of rows, so a reverse run follows the same path. With `shuffle` rows are processed
 * in random order; states are read and returned in the order of the caller. */
#include "base/logsum.h"
#include "core/genealogy.h"
#include "core/machine.h"
#include "core/states.h"
#include "core/trace.h"
#include "estimators/walk/settings.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { TRACE_COLUMNS = 7, STEPS_MOST = 100000, TRIALS = 60 };
/* The first trial of a step's length; how many times the allowed variance a step may have. */
static const double FIRST_LENGTH = 1e-3, RETRY = 3;
/* Resampling from a smaller effective sample size than this share makes copies of few particles. */
static const double FEW = 0.6;
static const char *const trace_names[TRACE_COLUMNS] = {"n",   "lambda",      "log_evidence", "se",
                                                       "ess", "evaluations", "seconds"};

typedef enum latent_phase { WAITING, STEPPING, SWEEPING, COLLECTING, FINISHED } latent_phase;

/* The settings in addition to those of a stage of smc(), except its kernel. */
static const le_setting settings[] = {
  LE_COUNT_SETTING("sweeps", 1, 0), /* sweeps at each distribution */
  /* before the first reciprocal weight, this many times as many sweeps */
  LE_COUNT_SETTING("warm", 1, 0),
  LE_FLAG_SETTING("by_rows", 0),
  LE_COUNT_SETTING("first", 0, 0), /* rows that are added together by temperature */
  LE_COUNT_SETTING("often", 0, 0),
  LE_FLAG_SETTING("blind", 0), /* latents of new rows are drawn from the prior */
  {0}};

typedef struct latent {
  le_machine machine;
  le_walk_settings settings;
  const le_latent_ops *ops;
  const void *self;
  le_arena arena;
  le_genealogy genealogy;
  const le_arg *from;
  size_t m, sweeps, warm, size, n, first, often;
  int by_rows, blind, reverse;
  int copied; /* whether the last step has resampled, and sweeps follow */
  /* Resamplings of few particles since sweeps last changed any, and their largest number. Where
   * variances are unknown they count: labels may be certain while variances differ. */
  size_t still, still_most;

  size_t step, swept, seen;
  double lambda, length, work; /* length: of the next step of lambda */
  double *value;                  /* rounds x m log-likelihoods */
  double *state, *swap, *scratch; /* allocated once the number of rows is known */
  double *log_weight, *weight, *before, *after, *spare;
  size_t *ancestor;
  /* the position of each row in the order of processing; NULL if rows keep their order */
  uint32_t *place;
  le_trace trace;
  double summary[8];
} latent;

static const le_stage *stage_of(const latent *w) { return &w->settings.stage[0]; }

static void latent_free(void *self)
{
  latent *w = self;
  if (!w) return;
  le_machine_free(&w->machine);
  le_trace_free(&w->trace);
  le_arena_free(&w->arena);
  le_release(w);
}

static le_status read_settings(latent *w, const le_problem *problem)
{
  const le_args *args = &problem->settings;
  le_error *error = &w->machine.context->error;
  LE_TRY(le_walk_settings_read(problem, &w->settings, error));
  w->m = stage_of(w)->particles;
  w->sweeps = le_setting_count(args, settings, "sweeps");
  w->warm = le_setting_count(args, settings, "warm");
  w->by_rows = le_setting_flag(args, settings, "by_rows");
  w->first = w->by_rows ? le_setting_count(args, settings, "first") : 0;
  w->often = le_setting_count(args, settings, "often");
  w->blind = le_setting_flag(args, settings, "blind");
  w->reverse = le_setting_flag(args, le_walk_table, "reverse");
  w->from = le_args_find(args, "from_state");
  if (w->reverse && !w->from)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "A reverse run needs an exact draw from the posterior to start from.");
  if (w->reverse && w->first)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "A run that adds its first rows together cannot be run in reverse.");
  if (w->reverse && !w->by_rows && stage_of(w)->schedule == LE_ADAPTIVE_STEPS)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "An adaptive schedule cannot be run in reverse: give its temperatures, or "
                   "linear() or sigmoidal().");
  return LE_OK;
}

static double *state_of(const latent *w, size_t i) { return w->state + i * w->size; }

/* The chain of particle i for the first `seen` rows. */
static le_chain chain_of(const latent *w, size_t i, size_t seen, double lambda)
{
  const le_store *store = &w->machine.store;
  return (le_chain){.rows = {seen, store->width, store->values},
                    .lambda = lambda,
                    .rng = w->machine.streams.rng[i + 1],
                    .state = state_of(w, i),
                    .scratch = w->scratch};
}

/* Computes a number from the chain of each particle, which may change its state. */
static le_status each(latent *w, size_t seen, double lambda,
                      double (*what)(latent *w, const le_chain *chain), double *value)
{
  for (size_t i = 0; i < w->m; i++) {
    if (le_interrupted(w->machine.context)) return LE_INTERRUPTED;
    const le_chain chain = chain_of(w, i, seen, lambda);
    value[i] = what(w, &chain);
  }
  return LE_OK;
}

/* Allocates the states, once all rows are there. */
static le_status allocate(latent *w)
{
  w->n = w->machine.store.n;
  w->size = w->ops->size(w->self, w->n);
  if (w->first > w->n) w->first = w->n;
  if (w->settings.shuffle && w->n > UINT32_MAX) return LE_NO_MEMORY;
  if (w->settings.shuffle) w->place = le_arena_bytes(&w->arena, w->n + 1, sizeof *w->place);
  w->state = le_arena_doubles(&w->arena, w->m * w->size + 1);
  w->swap = le_arena_doubles(&w->arena, w->m * w->size + 1);
  w->scratch = le_arena_doubles(&w->arena, w->ops->scratch(w->self, w->n) + 1);
  return w->arena.failed ? LE_NO_MEMORY : LE_OK;
}

/* The last stream is for the order of the rows. */
static le_status shuffle(latent *w)
{
  const gsl_rng *rng = w->machine.streams.rng[w->m + 1];
  LE_TRY(le_store_places(w->n, rng, 1, w->place));
  return le_store_shuffle(&w->machine.store, 0, w->n, rng);
}

/* The latents of a state come last, one per row: converts from the caller's order to the order of
 * processing, or back. */
static void reorder(const latent *w, const double *from, double *to, int back)
{
  const size_t head = w->ops->size(w->self, 0), each = (w->size - head) / (w->n ? w->n : 1);
  memcpy(to, from, w->size * sizeof(double));
  for (size_t r = 0; r < w->n && w->place; r++) {
    const size_t own = head + r * each, there = head + w->place[r] * each;
    memcpy(to + (back ? own : there), from + (back ? there : own), each * sizeof(double));
  }
}

static le_status begin(void *self, le_progress *progress)
{
  latent *w = self;
  (void)progress;
  LE_TRY(allocate(w));
  if (w->settings.shuffle) LE_TRY(shuffle(w));
  const int walks = !w->from || w->reverse;
  if (w->from && w->from->n != w->size)
    return le_fail(&w->machine.context->error, LE_BAD_ARGUMENT,
                   "The draw to start from must have %.0f numbers, not %.0f.", (double)w->size,
                   (double)w->from->n);
  if (w->from && w->ops->possible && !w->ops->possible(w->self, w->n, w->from->values))
    return le_fail(&w->machine.context->error, LE_BAD_ARGUMENT,
                   "The draw to start from is not a state of this model.");
  w->seen = w->by_rows && !w->from ? w->first : w->n;
  for (size_t i = 0; i < w->m; i++) {
    const le_chain chain = chain_of(w, i, w->seen, 0);
    if (w->from) reorder(w, w->from->values, chain.state, 0);
    else le_draw_state(w->ops, w->self, &chain);
  }
  w->lambda = (w->by_rows && !w->first) || w->from ? 1 : 0;
  w->swept = 0;
  w->machine.phase = !walks ? COLLECTING : w->reverse ? SWEEPING : STEPPING;
  return LE_OK;
}

static double log_evidence(const latent *w)
{
  const double mean = le_logmeanexp(w->log_weight, w->m);
  return w->reverse ? -mean : mean;
}

static le_status add_trace(latent *w)
{
  const double row[TRACE_COLUMNS] = {(double)w->seen,
                                     w->lambda,
                                     log_evidence(w),
                                     sqrt(fmax(w->genealogy.variance, 0)),
                                     le_effective_size(w->log_weight, w->m, 1),
                                     w->work,
                                     w->machine.seconds};
  double *added = le_trace_add(&w->trace);
  if (!added) return LE_NO_MEMORY;
  memcpy(added, row, sizeof row);
  return LE_OK;
}

static void resample(latent *w)
{
  const double level = le_logmeanexp(w->log_weight, w->m);
  const le_resampling scheme = stage_of(w)->resampling;
  le_resample(scheme, w->m, w->weight, w->m, w->machine.streams.rng[0], w->spare, w->ancestor);
  for (size_t i = 0; i < w->m; i++)
    memcpy(w->swap + i * w->size, state_of(w, w->ancestor[i]), w->size * sizeof(double));
  double *old = w->state;
  w->state = w->swap;
  w->swap = old;
  le_genealogy_resample(&w->genealogy, w->m, w->weight,
                        scheme == LE_MULTINOMIAL || scheme == LE_RESIDUAL, w->m, w->ancestor);
  for (size_t i = 0; i < w->m; i++) {
    w->log_weight[i] = level;
    w->weight[i] = 1 / (double)w->m;
  }
}

/* Adds `after - before` to the log weights. */
static le_status weigh(latent *w)
{
  int possible = 0;
  for (size_t i = 0; i < w->m; i++) {
    const double gain = w->after[i] - w->before[i];
    w->log_weight[i] += isnan(gain) ? -INFINITY : gain;
    possible |= w->log_weight[i] > -INFINITY;
  }
  if (!possible)
    return le_fail(&w->machine.context->error, LE_ALL_IMPOSSIBLE,
                   "No particle gives the observations a positive probability.");
  le_normalise(w->log_weight, w->m, w->weight);
  le_genealogy_weigh(&w->genealogy, w->m, w->weight);
  return LE_OK;
}

static double log_lik(latent *w, const le_chain *chain) { return w->ops->log_lik(w->self, chain); }

static le_status log_liks(latent *w, double lambda, double *value)
{
  LE_TRY(each(w, w->seen, lambda, log_lik, value));
  w->work += (double)(w->m * w->seen);
  return LE_OK;
}

/* 1 / ESS - 1 per particle of a step to this lambda: the relative variance of the step's weights.
 * For short steps it is proportional to the square of their length. */
static le_status step_variance(latent *w, double lambda, double *variance)
{
  LE_TRY(log_liks(w, lambda, w->after));
  for (size_t i = 0; i < w->m; i++) w->spare[i] = w->after[i] - w->before[i];
  *variance = (double)w->m / le_effective_size(w->spare, w->m, 1) - 1;
  return LE_OK;
}

static le_status too_short(latent *w)
{
  return le_fail(&w->machine.context->error, LE_STALLED,
                 "The annealing increment became too small: the particles' "
                 "likelihoods differ too much. More `particles` or a smaller `ess` may help.");
}

/* A step of lambda whose weights have about the relative variance that `ess` allows; leaves log f
 * there in `after`. Its length follows from the length and the variance of the step before. If the
 * weights of this step itself chose it, a step would be the longer the more of the upper tail of
 * its weights the particles happen to miss, and few particles would give too low an evidence. Only
 * if the variance is far too large (and at the first step, whose length is a guess, if it is far
 * from what is allowed) a step is tried again with another length. log f is not linear in lambda,
 * so a trial costs a pass over the rows, as much as a sweep. */
static le_status adapt_lambda(latent *w, double *next)
{
  const double most = (double)w->m / stage_of(w)->ess - 1, rest = 1 - w->lambda;
  const int first = !(w->length > 0);
  double length = first ? FIRST_LENGTH : w->length, variance = 0, ratio = 1;
  if (w->step > STEPS_MOST) return too_short(w);
  for (int trial = 0; trial < TRIALS; trial++) {
    if (length > rest * (1 - 1e-9)) length = rest;
    *next = length == rest ? 1 : w->lambda + length;
    if (!(*next > w->lambda)) return too_short(w);
    LE_TRY(step_variance(w, *next, &variance));
    ratio = sqrt(most / fmax(variance, 1e-12));
    if (!isfinite(ratio)) ratio = 0.1;
    if (variance <= RETRY * most && (!first || ratio < 2 || length == rest)) break;
    length *= fmin(fmax(ratio, 0.1), 10);
  }
  w->length = length * fmin(fmax(sqrt(ratio), 0.5), 2);
  return LE_OK;
}

/* Fixed temperatures in reverse: from lambda[count - 1] = 1 downwards, to 0 below the first. */
static le_status choose_lambda(latent *w, double *next)
{
  const le_stage *stage = stage_of(w);
  const size_t count = stage->schedule == LE_FIXED_STEPS ? stage->lambdas : 1;
  if (w->reverse) *next = w->step + 1 < count ? stage->lambda[count - 2 - w->step] : 0;
  else if (stage->schedule == LE_ADAPTIVE_STEPS) return adapt_lambda(w, next);
  else *next = stage->schedule == LE_FIXED_STEPS ? stage->lambda[w->step] : 1;
  return log_liks(w, *next, w->after);
}

/* Whether the next step adds a row instead of raising lambda. */
static int row_is_next(const latent *w) { return w->by_rows && w->lambda >= 1; }

static int done(const latent *w)
{
  if (w->by_rows) return w->reverse ? w->seen == 0 : w->seen == w->n && w->lambda >= 1;
  return w->reverse ? w->lambda <= 0 : w->lambda >= 1;
}

static double add_row(latent *w, const le_chain *chain)
{
  if (!w->blind) return w->ops->extend(w->self, chain);
  w->ops->extend_blind(w->self, chain);
  return w->ops->last_given_latent(w->self, chain);
}

static double drop_row(latent *w, const le_chain *chain)
{
  le_chain fixed = *chain;
  fixed.rng = NULL;
  return w->blind ? w->ops->last_given_latent(w->self, chain) : w->ops->extend(w->self, &fixed);
}

/* Adds a row, or in reverse drops one: the logs of its densities go to `after` or `before`. */
static le_status change_rows(latent *w)
{
  memset(w->reverse ? w->after : w->before, 0, w->m * sizeof(double));
  if (w->reverse) LE_TRY(each(w, w->seen, 1, drop_row, w->before));
  else LE_TRY(each(w, w->seen + 1, 1, add_row, w->after));
  w->seen = w->reverse ? w->seen - 1 : w->seen + 1;
  w->work += (double)w->m;
  return LE_OK;
}

/* One step along the path: new weights, and resampling if needed. */
static le_status step(void *self, le_progress *progress)
{
  latent *w = self;
  (void)progress;
  if (row_is_next(w)) {
    LE_TRY(change_rows(w));
  } else {
    double next;
    LE_TRY(log_liks(w, w->lambda, w->before));
    LE_TRY(choose_lambda(w, &next));
    w->lambda = next;
  }
  LE_TRY(weigh(w));
  w->step++;
  LE_TRY(add_trace(w));
  const double share = le_effective_size(w->log_weight, w->m, 1) / (double)w->m;
  w->copied = 0;
  if (le_resampling_due(share, stage_of(w)->threshold) && !(w->reverse && done(w))) {
    resample(w);
    w->copied = !w->reverse;
    /* latents from the prior leave one state where the rows determine it: that is no fault */
    if (share < FEW && !w->blind && ++w->still > w->still_most) w->still_most = w->still;
  }
  w->swept = 0;
  w->machine.phase = SWEEPING;
  if (w->reverse && done(w)) w->machine.phase = FINISHED;
  return LE_OK;
}

/* Whether particles are swept at this distribution: weights that change without sweeps in between
 * leave only copies of a few particles. So particles are swept
 *
 *   at every temperature, because a temperature changes the weights by all rows seen so far;
 *   after every resampling, because it makes copies (in reverse no: the path must not depend on the
 *   particles);
 *   by rows each time that often * log(rows seen) passes a whole number, thus after each of the
 *   first `often` rows, and later whenever the rows have grown by one part in `often`, whatever
 *   their number. A rule that looks at the number of rows alone, such as a remainder, could skip
 *   all of some stretch. */
static int sweep_is_due(const latent *w)
{
  if (!w->by_rows || !w->often || w->seen <= w->first || w->seen == w->n || w->copied) return 1;
  const double often = (double)w->often, seen = (double)w->seen;
  return w->seen <= w->often || floor(often * log(seen)) > floor(often * log(seen - 1));
}

static double sweep_one(latent *w, const le_chain *chain)
{
  const size_t bytes = w->ops->size(w->self, w->seen) * sizeof(double);
  if (w->still) memcpy(w->swap, chain->state, bytes);
  w->ops->sweep(w->self, chain, w->reverse, NULL);
  if (w->still && memcmp(w->swap, chain->state, bytes)) w->still = 0;
  return 0;
}

static le_status sweep_all(latent *w)
{
  LE_TRY(each(w, w->seen, w->lambda, sweep_one, w->spare));
  w->work += (double)(w->m * w->seen);
  return LE_OK;
}

/* One sweep of every particle. */
static le_status sweep(void *self, le_progress *progress)
{
  latent *w = self;
  (void)progress;
  const size_t wanted = w->reverse && w->step == 0 ? w->warm * w->sweeps
                        : sweep_is_due(w)          ? w->sweeps
                                                   : 0;
  if (w->swept < wanted) {
    LE_TRY(sweep_all(w));
    w->swept++;
  }
  if (w->swept < wanted) return LE_OK;
  const int there = !w->reverse && done(w);
  if (there && w->settings.rounds) resample(w);
  w->machine.phase = !there ? STEPPING : w->settings.rounds ? COLLECTING : FINISHED;
  w->swept = 0;
  return LE_OK;
}

/* One round of the chains; `swept` counts rounds. */
static le_status collect(void *self, le_progress *progress)
{
  latent *w = self;
  (void)progress;
  for (size_t s = 0; s < w->sweeps; s++) LE_TRY(sweep_all(w));
  LE_TRY(log_liks(w, 1, w->value + w->swept * w->m));
  if (++w->swept == w->settings.rounds) w->machine.phase = FINISHED;
  return LE_OK;
}

static void latent_progress(const void *self, double *rows, double *share)
{
  const latent *w = self;
  const le_stage *stage = stage_of(w);
  const double done = (double)(w->reverse ? w->n - w->seen : w->seen);
  *rows = (double)w->seen;
  if (w->machine.phase == COLLECTING) *share = (double)w->swept / (double)w->settings.rounds;
  else if (w->by_rows) *share = w->n > 0 ? done / (double)w->n : 0;
  else if (stage->schedule == LE_FIXED_STEPS) *share = (double)w->step / (double)stage->lambdas;
  else *share = w->reverse && w->machine.phase != WAITING ? 1 - w->lambda : w->lambda;
}

static le_status latent_result(void *self, le_result *result)
{
  latent *w = self;
  double se = sqrt(fmax(w->genealogy.variance, 0)), log_z = log_evidence(w);
  if (w->settings.rounds && w->machine.phase == FINISHED)
    log_z = le_logharmonic(w->value, w->m, w->settings.rounds, &se);
  static const char *const names[] = {"log_evidence", "se",        "n",       "lambda_steps",
                                      "likelihoods",  "gradients", "seconds", "unmoved"};
  const double figures[] = {log_z,   se, (double)w->seen,    (double)w->step,
                            w->work, 0,  w->machine.seconds, (double)w->still_most};
  memcpy(w->summary, figures, sizeof figures);
  le_result_figures(result, sizeof names / sizeof *names, names, w->summary);
  if (w->place)
    for (size_t i = 0; i < w->m; i++) reorder(w, state_of(w, i), w->swap + i * w->size, 1);
  le_result_array(result, "draws", w->size, w->state ? w->m : 0, w->place ? w->swap : w->state);
  le_result_array(result, "log_weights", 1, w->m, w->log_weight);
  return le_trace_output(&w->trace, trace_names, result);
}

#define FIELD(member) LE_FIELD(latent, member)
static const le_field fields[] = {
  FIELD(step), FIELD(swept), FIELD(seen), FIELD(still), FIELD(still_most), FIELD(copied),
  FIELD(lambda), FIELD(length), FIELD(work)
};
#undef FIELD

static void latent_archive(void *self, le_archive *archive)
{
  latent *w = self;
  le_archive_expect(archive, w->m);
  le_archive_expect(archive, w->settings.shuffle ? 1 : 0);
  le_machine_archive(&w->machine, archive);
  const int there = w->machine.phase != WAITING;
  if (archive->status == LE_OK && there && !archive->writing) archive->status = allocate(w);
  if (archive->status != LE_OK) return;
  LE_ARCHIVE_FIELDS(archive, w, fields);
  if (there) le_archive_doubles(archive, w->state, w->m * w->size);
  if (w->place) le_archive_bytes(archive, w->place, w->n * sizeof *w->place);
  for (size_t r = 0; w->place && r < w->n && archive->status == LE_OK; r++)
    if (w->place[r] >= w->n) archive->status = LE_CORRUPT;
  le_archive_doubles(archive, w->log_weight, w->m);
  le_archive_doubles(archive, w->weight, w->m);
  if (w->settings.rounds) le_archive_doubles(archive, w->value, w->settings.rounds * w->m);
  le_genealogy_archive(&w->genealogy, archive);
  le_trace_archive(&w->trace, archive);
}

static const le_phase phases[] = {
  [WAITING] = {"begin", begin, 1},
  [STEPPING] = {"step", step, 0},
  [SWEEPING] = {"sweep", sweep, 0},
  [COLLECTING] = {"collect", collect, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status latent_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  if (!problem->ops->latent)
    return le_fail(&context->error, LE_UNSUPPORTED, "The model %s has no latent variables.",
                   problem->ops->name);
  latent *w = le_resize(NULL, sizeof *w);
  if (!w) return LE_NO_MEMORY;
  memset(w, 0, sizeof *w);
  w->machine.context = context;
  w->ops = problem->ops->latent;
  w->self = problem->model;
  w->trace.columns = TRACE_COLUMNS;
  le_status status = read_settings(w, problem);
  const size_t m = w->m;
  w->log_weight = le_arena_doubles(&w->arena, m);
  w->weight = le_arena_doubles(&w->arena, m);
  w->before = le_arena_doubles(&w->arena, m);
  w->after = le_arena_doubles(&w->arena, m);
  w->spare = le_arena_doubles(&w->arena, m);
  w->ancestor = le_arena_indices(&w->arena, m);
  if (w->settings.rounds) w->value = le_arena_doubles(&w->arena, w->settings.rounds * m);
  le_genealogy_alloc(&w->genealogy, w->settings.lag, m, &w->arena);
  if (status == LE_OK && w->arena.failed) status = LE_NO_MEMORY;
  if (status == LE_OK)
    status = le_machine_alloc(&w->machine, phases, FINISHED + 1, problem, m + 2, context);
  if (status != LE_OK) {
    latent_free(w);
    return status;
  }
  *self = w;
  return LE_OK;
}

static le_status latent_start(void *self)
{
  latent *w = self;
  le_genealogy_start(&w->genealogy, w->m);
  for (size_t i = 0; i < w->m; i++) w->weight[i] = 1 / (double)w->m;
  return LE_OK;
}

const le_estimator_ops le_latent_estimator = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_estimator_ops),
  .name = "latent",
  .knows = {{settings, le_walk_table}, le_stage_table},
  .alloc = latent_alloc,
  .free = latent_free,
  .start = latent_start,
  .feed = le_machine_feed,
  .advance = le_machine_advance,
  .progress = latent_progress,
  .result = latent_result,
  .archive = latent_archive,
  .latent = 1,
};
