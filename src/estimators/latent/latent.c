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
#include "estimators/latent/parts.h"

#include "base/logsum.h"

#include <stdint.h>

static const char *const columns[] = {"n",   "lambda",      "log_evidence", "se",
                                      "ess", "evaluations", "seconds",      NULL};

/* The settings in addition to those of a stage of smc(), except its kernel. */
static const le_setting settings[] = {
  LE_COUNT_INTO(latent, sweeps, "sweeps", 1, 0), /* sweeps at each distribution */
  /* before the first reciprocal weight, this many times as many sweeps */
  LE_COUNT_INTO(latent, warm, "warm", 1, 0),
  LE_FLAG_INTO(latent, by_rows, "by_rows", 0),
  LE_COUNT_INTO(latent, first, "first", 0, 0), /* rows that are added together by temperature */
  LE_COUNT_INTO(latent, often, "often", 0, 0),
  LE_FLAG_INTO(latent, blind, "blind", 0), /* latents of new rows are drawn from the prior */
  {0}};

static const le_block blocks[] = {
  LE_KEPT(latent, log_weight, LE_EACH), LE_KEPT(latent, weight, LE_EACH),
  LE_BLOCK(latent, before, LE_EACH), LE_BLOCK(latent, after, LE_EACH),
  LE_BLOCK(latent, spare, LE_EACH), LE_BLOCK(latent, ancestor, LE_EACH)};

static le_status read_settings(latent *w)
{
  const le_problem *problem = &w->machine.problem;
  const le_args *args = &problem->settings;
  le_error *error = &w->machine.context->error;
  LE_TRY(le_walk_settings_read(problem, &w->settings, error));
  w->m = stage_of(w)->particles;
  le_settings_read(args, settings, w);
  if (!w->by_rows) w->first = 0;
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

/* Allocates the states, once all rows are there. */
static le_status allocate(void *self)
{
  latent *w = self;
  le_arena *arena = &w->machine.arena;
  w->n = w->machine.store.n;
  w->size = w->ops->size(w->self, w->n);
  if (w->first > w->n) w->first = w->n;
  if (w->settings.shuffle && w->n > UINT32_MAX) return LE_NO_MEMORY;
  if (w->settings.shuffle) w->place = le_arena_bytes(arena, w->n, sizeof *w->place);
  w->state = le_arena_doubles(arena, w->m * w->size);
  w->swap = le_arena_doubles(arena, w->m * w->size);
  w->scratch = le_arena_doubles(arena, w->ops->scratch(w->self, w->n));
  return arena->failed ? LE_NO_MEMORY : LE_OK;
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

static le_status begin(void *self)
{
  latent *w = self;
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
  le_genealogy_start(&w->genealogy, w->m);
  for (size_t i = 0; i < w->m; i++) {
    const le_chain chain = le_latent_chain(w, i, w->seen, 0);
    w->weight[i] = 1 / (double)w->m;
    if (w->from) reorder(w, w->from->values, chain.state, 0);
    else le_draw_state(w->ops, w->self, &chain);
  }
  w->lambda = (w->by_rows && !w->first) || w->from ? 1 : 0;
  w->swept = 0;
  w->machine.phase = !walks ? COLLECTING : w->reverse ? SWEEPING : STEPPING;
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
  LE_TRY(le_latent_each(w, w->seen, w->lambda, sweep_one, w->spare));
  w->work += (double)(w->m * w->seen);
  return LE_OK;
}

/* One sweep of every particle. */
static le_status sweep(void *self)
{
  latent *w = self;
  const size_t wanted = w->reverse && w->step == 0 ? w->warm * w->sweeps
                        : sweep_is_due(w)          ? w->sweeps
                                                   : 0;
  if (w->swept < wanted) {
    LE_TRY(sweep_all(w));
    w->swept++;
  }
  if (w->swept < wanted) return LE_OK;
  const int there = !w->reverse && done(w);
  if (there && w->settings.rounds) le_latent_resample(w);
  w->machine.phase = !there ? STEPPING : w->settings.rounds ? COLLECTING : FINISHED;
  w->swept = 0;
  return LE_OK;
}

/* One round of the chains; `swept` counts rounds. */
static le_status collect(void *self)
{
  latent *w = self;
  for (size_t s = 0; s < w->sweeps; s++) LE_TRY(sweep_all(w));
  LE_TRY(le_latent_log_liks(w, 1, w->value + w->swept * w->m));
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
  double se = sqrt(fmax(le_genealogy_variance(&w->genealogy), 0)),
         log_z = le_latent_log_evidence(w);
  if (w->settings.rounds && w->machine.phase == FINISHED)
    log_z = le_logharmonic(w->value, w->m, w->settings.rounds, &se);
  const le_figure figures[] = {
    {"log_evidence", log_z}, {"se", se}, {"n", (double)w->seen},
    {"lambda_steps", (double)w->step}, {"likelihoods", w->work}, {"gradients", 0},
    {"seconds", w->machine.seconds}, {"unmoved", (double)w->still_most}};
  le_result_figures(result, LE_TABLE(figures));
  if (w->place)
    for (size_t i = 0; i < w->m; i++) reorder(w, state_of(w, i), w->swap + i * w->size, 1);
  le_result_array(result, "draws", w->size, w->state ? w->m : 0, w->place ? w->swap : w->state);
  le_result_array(result, "log_weights", 1, w->m, w->log_weight);
  return LE_OK;
}

#define FIELD(member) LE_FIELD(latent, member)
static const le_field fields[] = {
  LE_EXPECTED(latent, m), FIELD(step), FIELD(swept), FIELD(seen), FIELD(still), FIELD(still_most),
  FIELD(copied), FIELD(lambda), FIELD(length), FIELD(work)
};
#undef FIELD

/* What phases take for granted. */
static void require_sound(const latent *w, le_archive *archive)
{
  const le_stage *stage = stage_of(w);
  const int phase = w->machine.phase;
  const int steps = phase == STEPPING || (phase == SWEEPING && w->reverse);
  le_archive_require(archive, w->by_rows ? w->seen <= w->n : w->seen == w->n);
  le_archive_require(archive, !steps || !done(w));
  le_archive_require(archive, stage->schedule != LE_FIXED_STEPS || w->lambda >= 1 || w->reverse ||
                                w->step < stage->lambdas);
  le_archive_require(archive, phase != COLLECTING || w->swept < w->settings.rounds);
  if (archive->status != LE_OK) return;
  for (size_t i = 0; i < w->m; i++)
    le_states_require(w->ops, w->self, w->seen, 1, state_of(w, i), archive);
}

static void latent_archive(void *self, le_archive *archive)
{
  latent *w = self;
  le_archive_expect(archive, w->settings.shuffle ? 1 : 0);
  le_archive_doubles(archive, w->state, w->m * w->size);
  if (w->place) le_archive_bytes(archive, w->place, w->n * sizeof *w->place);
  for (size_t r = 0; w->place && r < w->n; r++) le_archive_require(archive, w->place[r] < w->n);
  le_blocks_archive(archive, w, LE_TABLE(blocks), w->m, 0);
  if (w->settings.rounds) le_archive_doubles(archive, w->value, w->settings.rounds * w->m);
  le_genealogy_archive(&w->genealogy, archive);
  require_sound(w, archive);
}

static const le_phase phases[] = {
  [WAITING] = {"begin", begin, 1},
  [STEPPING] = {"step", le_latent_step, 0},
  [SWEEPING] = {"sweep", sweep, 0},
  [COLLECTING] = {"collect", collect, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status latent_make(void *self)
{
  latent *w = self;
  const le_problem *problem = &w->machine.problem;
  le_arena *arena = &w->machine.arena;
  if (!problem->ops->latent)
    return le_fail(&w->machine.context->error, LE_UNSUPPORTED,
                   "The model %s has no latent variables.", problem->ops->name);
  w->ops = problem->ops->latent;
  w->self = problem->model;
  LE_TRY(read_settings(w));
  le_blocks_alloc(arena, w, LE_TABLE(blocks), w->m, 0);
  if (w->settings.rounds) w->value = le_arena_doubles(arena, w->settings.rounds * w->m);
  le_genealogy_alloc(&w->genealogy, w->settings.lag, w->m, arena);
  return le_machine_streams(&w->machine, w->m + 2);
}

const le_estimator_ops le_latent_estimator = {
  .name = "latent",
  .knows = {{settings, le_walk_table}, le_stage_table},
  .size = sizeof(latent),
  .phases = phases,
  .columns = columns,
  .fields = {LE_TABLE(fields)},
  .make = latent_make,
  .allocate = allocate,
  .progress = latent_progress,
  .result = latent_result,
  .archive = latent_archive,
  .latent = 1,
};
