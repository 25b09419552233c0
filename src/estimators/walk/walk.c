/* The engine for all methods that move weighted particles along a path of annealed distributions
 * (math.md 1, restated): reweight, resample if needed, move, repeat. Chunks, schedule, resampling,
 * gradients, kernels and metric are settings (settings.h).
 *
 * A run may record its path (core/path.h), and another run follow it without adaptation: forwards,
 * or in reverse from an exact posterior draw, with the moves before each reciprocal weight, so that
 * the mean weight is an unbiased estimate of 1 / Z (reverse AIS; by rows, the sequential harmonic
 * mean). All particles of such a run share one metric: a metric chosen by a particle's index would,
 * after ordered resampling, depend on its position and cause bias.
 *
 * The engine is a state machine (core/machine.h): between any two phases a run can pause, be
 * saved or be stopped. */
#include "estimators/walk/parts.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { AUDIT_BATCH = 64 };
enum { SEARCH_ROWS = 1000 };

#define BLOCK(member, shape) LE_BLOCK(walk, member, shape)
#define KEPT(member, shape) LE_KEPT(walk, member, shape)
static const le_block blocks[] = {
  KEPT(theta, LE_POINTS), BLOCK(swap, LE_POINTS),
  KEPT(log_weight, LE_EACH), KEPT(chunk_value, LE_EACH), KEPT(weight, LE_EACH),
  BLOCK(ancestor, LE_EACH), KEPT(prior_variance, LE_POINT), KEPT(centre, LE_POINT),
  KEPT(labels, LE_POINT), KEPT(anchor_info, LE_SQUARE), KEPT(chunk_info, LE_SQUARE),
  KEPT(precision, LE_SQUARE)};

/* The numbers that belong to the saved state. */
#define FIELD(member) LE_FIELD(walk, member)
static const le_field fields[] = {
  LE_EXPECTED(walk, d), LE_EXPECTED(walk, most), LE_EXPECTED(walk, path.points),
  LE_BELOW(walk, stage, settings.stages), LE_UP_TO(walk, m, most),
  FIELD(target.seen), FIELD(target.chunk), FIELD(target.lambda),
  FIELD(target.likelihoods), FIELD(target.gradients), FIELD(target.noise), FIELD(check_cost),
  FIELD(skip_moves), LE_WITHIN(walk, check, 0, CHECK_INTERIM), FIELD(first_checked),
  FIELD(from_importance), FIELD(uneven),
  LE_WITHIN(walk, skip_remeasure, 0, INT_MAX), LE_WITHIN(walk, skip_measure, 0, INT_MAX),
  FIELD(step), FIELD(chunk_steps), LE_UP_TO(walk, at, path.points),
  FIELD(restart_rows), FIELD(retry_control_at), FIELD(noise_measured_at), FIELD(rows_at_check),
  FIELD(moves), FIELD(tried), FIELD(chunk_ess), FIELD(log_z_before), FIELD(variance_before),
  FIELD(lambda_steps), FIELD(restarts), FIELD(drift), FIELD(shortest), FIELD(tried_renewal),
  FIELD(renewed), FIELD(step_bias), FIELD(bias_rate), FIELD(bias_rate_variance),
  FIELD(bias_total), FIELD(bias_total_variance), FIELD(temperature),
  LE_WITHIN(walk, audit_round, 0, ROUND_EXACT),
  FIELD(reopened), FIELD(passes), FIELD(past_se), FIELD(unreached), FIELD(apart), FIELD(changed),
  LE_UNSAVED(walk, expansion)}; /* its anchor is set for each use */

static void walk_release(void *self)
{
  walk *w = self;
  le_search_free(&w->search);
  le_audit_free(&w->audit);
  le_trace_free(&w->moments);
  le_trace_free(&w->recorded);
}

/* Whether any stage measures the renewal of the particles. */
static int renews(const walk *w)
{
  int any = 0;
  for (size_t s = 0; s < w->settings.stages; s++) any |= w->settings.stage[s].renew != 0;
  return any;
}

static le_status alloc_stage(walk *w, size_t s)
{
  le_arena *arena = &w->machine.arena;
  const le_stage *stage = &w->settings.stage[s];
  for (size_t half = 0; half < 2; half++)
    le_metric_alloc(&w->metric[s][half], w->d, stage->metric_kind, w->target.held, arena);
  le_gradient_alloc(&w->gradient[s], stage->gradient,
                    stage->gradient == LE_GRADIENT_FULL ? 1 : stage->batch, stage->own_batches,
                    &w->target, arena);
  if (arena->failed) return LE_NO_MEMORY;
  if (!stage->kernel) return LE_OK;
  return le_kernel_alloc(stage->kernel, w->d, stage->particles, arena, &w->kernel[s]);
}

static le_status alloc_all(walk *w)
{
  const le_problem *problem = &w->machine.problem;
  le_arena *arena = &w->machine.arena;
  const le_walk_settings *settings = &w->settings;
  const size_t d = w->d, most = w->most, draws = settings->audit_draws * settings->audit_lots,
               more = draws + most + le_mode_work(d) + (LE_PAST_GROUPS + 1) * ERROR_DRAWS;
  le_target_alloc(&w->target, problem->ops, problem->model, most, more,
                  w->machine.context, arena);
  w->target.store = &w->machine.store;
  w->machine.target = &w->target;
  w->target.rng = w->machine.streams.rng[0];
  le_blocks_alloc(arena, w, LE_TABLE(blocks), most, d);
  le_genealogy_alloc(&w->genealogy, settings->lag, most, arena);
  if (renews(w)) le_renewal_alloc(&w->renewal, d, most, w->target.held, arena);
  le_expansion_alloc(&w->expansion, &w->target, arena);
  if (le_walk_samples_importance(w)) {
    le_audit_alloc(&w->audit, &w->target, le_walk_particle_climbs(w) + settings->search,
                   settings->audit_draws, settings->audit_lots, AUDIT_BATCH, arena);
    le_audit_by_part(&w->audit, &w->target, &w->expansion, settings->audit_part,
                     settings->audit_least, settings->audit_work, arena);
    le_audit_in_two_steps(&w->audit, &w->target, arena);
    w->audit.prior_variance = w->prior_variance;
    le_metric_alloc(&w->wide, d, LE_METRIC_DENSE, w->target.held, arena);
  }
  if (settings->search) {
    le_search_alloc(&w->search, &w->target, settings->search, SEARCH_ROWS, arena);
    le_search_attach(&w->search, &w->audit);
  }
  if (settings->rounds) {
    const size_t m = settings->stage[settings->stages - 1].particles;
    w->draw_theta = le_arena_doubles(arena, settings->rounds * m * d);
    w->draw_value = le_arena_doubles(arena, settings->rounds * m);
    if (settings->bridge)
      le_bridging_alloc(&w->bridging, &w->target, m, settings->rounds, 32, arena);
  }
  le_past_alloc(&w->past, &w->target, settings->keep, arena);
  w->target.past = &w->past;
  for (size_t s = 0; s < settings->stages; s++) LE_TRY(alloc_stage(w, s));
  return LE_OK;
}

static le_status take_path(walk *w)
{
  const le_arg *follow = w->settings.follow;
  w->recorded.columns = w->path.columns = le_path_columns(&w->metric[0][0]);
  w->path.d = w->d;
  if (!follow) return LE_OK;
  w->path.values = follow->values;
  w->path.points = follow->n / w->path.columns;
  if (follow->values && follow->n > 0 && follow->n % w->path.columns == 0) return LE_OK;
  return le_fail(&w->machine.context->error, LE_BAD_ARGUMENT,
                 "`follow` must have %.0f numbers for each distribution of the path.",
                 (double)w->path.columns);
}

static le_status walk_take_over(void *self, const le_population *population)
{
  walk *w = self;
  if (population->m != w->m)
    return le_fail(&w->machine.context->error, LE_BAD_ARGUMENT,
                   "This engine can continue with %zu particles, not with %zu.", w->m,
                   population->m);
  memcpy(w->theta, population->theta, w->m * w->d * sizeof(double));
  w->target.seen = population->seen;
  le_walk_begin_from(w, population->log_evidence, population->variance);
  w->chunk_ess = 1;
  return le_walk_add_trace(w, (double)population->seen, 1, 0);
}

static void walk_progress(const void *self, double *rows, double *share)
{
  const walk *w = self;
  const size_t expected = w->machine.problem.total;
  const double total = (double)(expected ? expected : w->machine.store.n);
  *rows = (double)w->target.seen;
  double done =
      total > 0 ? ((double)w->target.seen + w->target.lambda * (double)w->target.chunk) / total : 0;
  /* steps of all rows are even in the logarithm of lambda from about a hundredth of a row on */
  if (w->settings.stage[w->stage].whole && done < 1)
    done = log1p(100 * total * done) / log1p(100 * total);
  if (w->settings.reverse && w->machine.phase != OPEN_CHUNK) done = 1 - done;
  if (w->machine.phase == COLLECT) done = (double)w->step / (double)w->settings.rounds;
  *share = done;
}

/* What phases take for granted. */
static void require_sound(const walk *w, le_archive *archive)
{
  const walk_phase phase = (walk_phase)w->machine.phase;
  const le_stage *stage = stage_of(w);
  const int between = phase == REWEIGHT || phase == MOVE || phase == STEP_BACK,
            checks = phase == SEARCH || phase == AUDIT || phase == AGAIN;
  const size_t end = w->settings.reverse ? 0 : w->path.points;
  le_archive_require(archive, !follows(w) || !between || w->at != end);
  le_archive_require(archive, phase != STEP_BACK || w->settings.reverse);
  le_archive_require(archive, phase != REWEIGHT || stage->schedule != LE_FIXED_STEPS ||
                                w->chunk_steps < stage->lambdas);
  le_archive_require(archive, phase != MOVE || stage->kernel || w->skip_moves);
  le_archive_require(archive, phase != COLLECT || w->step < w->settings.rounds);
  le_archive_require(archive, phase != BRIDGE || w->settings.bridge);
  le_archive_require(archive, !checks || le_walk_samples_importance(w));
  le_archive_require(archive, phase != SEARCH || w->settings.search);
}

static void walk_archive(void *self, le_archive *archive)
{
  walk *w = self;
  const size_t m = w->m;
  le_archive_expect(archive, (uint64_t)w->settings.reverse);
  le_archive_require(archive, m > 0);
  le_target_require(&w->target, archive);
  if (archive->status != LE_OK) return;
  if (!archive->writing) le_walk_enter_stage(w, w->stage);
  w->m = m;
  le_blocks_archive(archive, w, LE_TABLE(blocks), m, w->d);
  int labelled = w->target.labels != NULL;
  le_archive_flag(archive, &labelled);
  w->target.labels = labelled ? w->labels : NULL;
  int proposed = w->target.proposal != NULL;
  le_archive_flag(archive, &proposed);
  w->target.proposal = proposed && le_walk_samples_importance(w) ? &w->audit.density : NULL;
  for (size_t s = 0; s < w->settings.stages; s++) {
    const le_stage *settings = &w->settings.stage[s];
    le_gradient_archive(&w->gradient[s], &w->target, archive);
    for (size_t half = 0; half < 2; half++) le_metric_archive(&w->metric[s][half], archive);
    if (settings->kernel) le_kernel_archive(w->kernel[s], settings->particles, archive);
  }
  le_past_archive(&w->past, archive);
  if (w->reopened) w->machine.shuffle = 0;
  le_genealogy_archive(&w->genealogy, archive);
  if (renews(w)) le_renewal_archive(&w->renewal, m, archive);
  if (w->settings.search) le_search_archive(&w->search, archive);
  if (le_walk_samples_importance(w)) le_audit_archive(&w->audit, archive);
  if (w->settings.rounds) {
    const size_t kept = w->settings.stage[w->settings.stages - 1].particles * w->settings.rounds;
    le_archive_doubles(archive, w->draw_theta, kept * w->d);
    le_archive_doubles(archive, w->draw_value, kept);
    if (w->settings.bridge) le_bridging_archive(&w->bridging, archive);
  }
  le_trace_archive(&w->moments, archive);
  le_trace_archive(&w->recorded, archive);
  require_sound(w, archive);
}

static const le_phase phases[] = {
  [OPEN_CHUNK] = {"open chunk", le_walk_open_chunk, 0},
  [REWEIGHT] = {"reweight", le_walk_reweight, 0},
  [MOVE] = {"move", le_walk_move, 0},
  [CLOSE_CHUNK] = {"close chunk", le_walk_close_chunk, 0},
  [STEP_BACK] = {"step back", le_walk_step_back, 0},
  [COLLECT] = {"collect", le_walk_collect, 0},
  [BRIDGE] = {"bridge", le_walk_bridge, 0},
  [SEARCH] = {"search", le_walk_search, 0},
  [AUDIT] = {"audit", le_walk_audit, 0},
  [AGAIN] = {"ask again", le_walk_ask_again, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status walk_make(void *self)
{
  walk *w = self;
  const le_problem *problem = &w->machine.problem;
  w->moments.columns = MOMENT_COLUMNS;
  w->d = problem->ops->dim(problem->model);
  w->temperature = w->bias_rate = w->renewed = w->tried_renewal = NAN;
  w->apart = -INFINITY;
  LE_TRY(le_walk_settings_read(problem, &w->settings, &w->machine.context->error));
  for (size_t s = 0; s < w->settings.stages; s++)
    if (w->settings.stage[s].particles > w->most) w->most = w->settings.stage[s].particles;
  w->machine.shuffle = w->settings.shuffle;
  LE_TRY(le_machine_streams(&w->machine, w->most + 1));
  LE_TRY(alloc_all(w));
  LE_TRY(take_path(w));
  le_walk_enter_stage(w, 0);
  return LE_OK;
}

const le_estimator_ops le_walk_estimator = {
  .name = "walk",
  .knows = {{le_walk_table}, le_stage_table},
  .size = sizeof(walk),
  .phases = phases,
  .columns = le_walk_columns,
  .fields = {LE_TABLE(fields)},
  .make = walk_make,
  .release = walk_release,
  .start = le_walk_start,
  .progress = walk_progress,
  .result = le_walk_result,
  .archive = walk_archive,
  .take_over = walk_take_over,
  .reopen = le_walk_reopen,
};
