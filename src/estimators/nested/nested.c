/* Nested sampling (Skilling 2006) on all rows, or chunk by chunk.
 *
 * `live` points are drawn from a distribution. In each round the `batch` points of lowest
 * likelihood (of a chunk of rows) are recorded and replaced by copies of others, which are moved
 * under the constraint that their likelihood exceeds the highest of those removed. Removing several
 * points at once costs a little information, but likelihood calls then have many points. The number
 * of live points at the removal of a point determines its volume, whatever the batch.
 *
 * With one chunk that holds all rows the distribution is the prior, and all points are kept. With
 * more chunks it is the posterior of the rows before; its draws are the points of the last chunk,
 * kept in a weighted reservoir of the size of the population (Cameron's online nested sampling). */
#include "estimators/nested/parts.h"

#include <math.h>

const le_setting le_nested_table[] = {
  LE_COUNT_INTO(nested, live, "live", 400, 2),
  LE_COUNT_INTO(nested, batch, "batch", 1, 1),
  LE_COUNT_INTO(nested, steps, "steps", 0, 0),
  LE_COUNT_SETTING("steps_per_dimension", 1, 0),
  LE_REAL_INTO(nested, tol, "tol", 0.01, 0, HUGE_VAL),
  LE_COUNT_INTO(nested, simulations, "simulations", 200, 0),
  /* points carried to the next chunk; by default the number of live points */
  LE_COUNT_SETTING("reservoir", NAN, 1),
  LE_FLAG_INTO(nested, whole, "whole", 1),
  LE_FLAG_INTO(nested, machine.shuffle, "shuffle", 0),
  LE_REAL_INTO(nested, chunk_least, "chunk_least", 1, 0, HUGE_VAL),
  LE_REAL_INTO(nested, chunk_fraction, "chunk_fraction", 0, 0, HUGE_VAL),
  LE_REAL_INTO(nested, chunk_most, "chunk_most", HUGE_VAL, 0, HUGE_VAL),
  LE_WORD_SETTING("gradient", "full batch control"),
  LE_COUNT_SETTING("gradient_batch", 500, 1),
  LE_COUNT_INTO(nested, keep, "keep", 0, 0),
  LE_COUNT_INTO(nested, early, "past", 0, 0),
  LE_FLAG_SETTING("again", 0),
  LE_WORD_SETTING("mass", "default identity diagonal dense"),
  /* and levels: the points of an earlier run of the same problem, which is continued */
  LE_NUMBERS_SETTING("from_theta"),
  LE_NUMBERS_SETTING("from_levels"),
  {0}};

#define BLOCK(member, shape) LE_BLOCK(nested, member, shape)
#define KEPT(member, shape) LE_KEPT(nested, member, shape)
static const le_block blocks[] = {
  KEPT(theta, LE_POINTS), BLOCK(walker, LE_POINTS), BLOCK(start, LE_POINTS),
  BLOCK(apart, LE_POINTS), BLOCK(value, LE_EACH), BLOCK(weight, LE_EACH), BLOCK(order, LE_EACH),
  BLOCK(source, LE_EACH), BLOCK(ancestor, LE_EACH), KEPT(labels, LE_POINT)};

/* The numbers that belong to the saved state. */
#define FIELD(member) LE_FIELD(nested, member)
static const le_field fields[] = {
  LE_EXPECTED(nested, d), LE_EXPECTED(nested, live), LE_EXPECTED(nested, kept),
  FIELD(target.seen), FIELD(target.chunk), LE_UP_TO(nested, target.split, most),
  FIELD(target.likelihoods), FIELD(target.gradients), FIELD(step), FIELD(steps),
  LE_UP_TO(nested, filled, live), FIELD(floor.value),
  FIELD(floor.tie), FIELD(log_volume), FIELD(log_sum), FIELD(banked), FIELD(banked_variance),
  FIELD(past_se), FIELD(information), FIELD(renewal), FIELD(echo),
  LE_WITHIN(nested, rounds, 0, LE_COUNT_MOST), LE_UP_TO(nested, clusters.count, live),
  /* made with the result */
  LE_UNSAVED(nested, sums), LE_UNSAVED(nested, log_volumes), LE_UNSAVED(nested, log_weights)};

static const le_phase phases[] = {
  [OPEN_CHUNK] = {"open chunk", le_nested_open_chunk, 0},
  [FILL] = {"fill", le_nested_fill, 0},
  [CHOOSE] = {"choose", le_nested_choose, 0},
  [MOVE] = {"move", le_nested_move, 0},
  [REPLACE] = {"replace", le_nested_replace, 0},
  [CLOSE_CHUNK] = {"close chunk", le_nested_close_chunk, 0},
  [FRESHEN] = {"freshen", le_nested_freshen, 0},
  [FINISHED] = {"finished", NULL, 0}};

static void nested_release(void *self)
{
  nested *s = self;
  le_trace_free(&s->levels);
  le_trace_free(&s->points);
  le_release(s->sums);
}

static le_status read_settings(nested *s)
{
  const le_problem *problem = &s->machine.problem;
  const le_args *args = &problem->settings;
  const le_model_ops *model = problem->ops;
  le_error *error = &s->machine.context->error;
  le_settings_read(args, le_nested_table, s);
  const double carried = le_setting_number(args, le_nested_table, "reservoir");
  s->kept = isnan(carried) ? s->live : (size_t)carried;
  s->keeps = s->whole && !s->states.ops;
  s->from_theta = le_args_find(args, "from_theta");
  s->from_levels = le_args_find(args, "from_levels");
  if (s->live < 2 || s->batch < 1 || s->batch >= s->live)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "`live` must be at least 2, and larger than the number of points replaced at "
                   "once.");
  if (problem->kernels < 1)
    return le_fail(error, LE_BAD_ARGUMENT, "Nested sampling needs a kernel.");
  s->spec = &problem->kernel[0];
  const le_kernel_ops *kernel = s->spec->ops;
  if (!(kernel->needs & LE_KEEPS_FLOOR))
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` must keep points above a likelihood threshold: slice(), rwm(), "
                   "sghmc() or prior_draws(), not %s().",
                   kernel->name);
  if ((kernel->needs & LE_NEEDS_GRADIENT) && !(model->log_lik_grad && model->log_prior_grad))
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` %s() needs gradients, which %s() does not offer: use rwm() or "
                   "slice().",
                   kernel->name, model->name);
  if ((kernel->needs & LE_NEEDS_FLOOR) && !s->whole)
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` %s() draws from the prior, which is correct only when all rows are "
                   "used at once.",
                   kernel->name);
  s->first_steps =
    (size_t)ceil(le_setting_number(args, le_nested_table, "steps_per_dimension") * (double)s->d);
  s->adapts = s->steps == 0 && !(kernel->needs & LE_NEEDS_FLOOR);
  if (s->steps == 0) s->steps = s->adapts ? (size_t)fmax(5, (double)s->first_steps) : 1;
  s->metric_kind = kernel->default_metric;
  const int mass = le_setting_word(args, le_nested_table, "mass");
  if (mass > 0) s->metric_kind = (le_metric_kind)(mass - 1);
  if (s->states.ops) s->metric_kind = LE_METRIC_IDENTITY;
  return LE_OK;
}

static le_gradient_rule gradient_rule(const nested *s)
{
  if (s->spec->ops->needs & LE_NEEDS_DENSITY) return LE_GRADIENT_FULL;
  return (le_gradient_rule)le_setting_word(&s->machine.problem.settings, le_nested_table,
                                           "gradient");
}

static le_status alloc_all(nested *s)
{
  const le_problem *problem = &s->machine.problem;
  le_arena *arena = &s->machine.arena;
  const size_t d = s->d, most = s->most;
  le_target_alloc(&s->target, problem->ops, problem->model, most, 0, s->machine.context, arena);
  s->target.store = &s->machine.store;
  s->target.rng = s->machine.streams.rng[0];
  const le_gradient_rule rule = gradient_rule(s);
  const size_t rows = le_setting_count(&problem->settings, le_nested_table, "gradient_batch");
  le_gradient_alloc(&s->gradient, rule, rule == LE_GRADIENT_FULL ? 1 : rows, 0, &s->target, arena);
  s->target.gradient = &s->gradient;
  le_past_alloc(&s->past, &s->target, s->keep > s->early ? s->keep : s->early, arena);
  if (s->early && (s->early < s->keep || !s->keep)) s->past.keep = s->early;
  s->target.past = &s->past;
  for (int half = 0; half < 2; half++) {
    le_metric_alloc(&s->metric[half], d, s->metric_kind, s->target.held, arena);
    s->target.metric[half] = &s->metric[half];
  }
  le_blocks_alloc(arena, s, LE_TABLE(blocks), most, d);
  s->level = le_arena_doubles(arena, most * LEVEL_COLUMNS);
  s->work = le_arena_doubles(arena, most + 4 * d);
  s->past_work = le_arena_doubles(arena, (LE_PAST_GROUPS + 2) * PAST_POINTS);
  le_clusters_alloc(&s->clusters, most, d, arena);
  if (!s->keeps) le_varopt_alloc(&s->reservoir, s->kept, d, arena);
  if (s->states.ops) {
    s->states.scratch = s->target.scratch;
    s->target.block = s->states.n; /* a state has one likelihood, of all rows together */
  }
  if (arena->failed) return LE_NO_MEMORY;
  return le_kernel_alloc(s->spec, d, most, arena, &s->kernel);
}

static le_status nested_make(void *self)
{
  nested *s = self;
  le_problem *problem = &s->machine.problem;
  const le_model_ops *ops = problem->ops;
  if (ops->latent && problem->total == 0)
    return le_fail(&s->machine.context->error, LE_UNSUPPORTED,
                   "The model %s needs all rows at once.", ops->name);
  if (ops->latent) {
    s->states = (le_states){ops->latent, problem->model, problem->total,
                            ops->width(problem->model), NULL};
    problem->ops = &le_states_model;
    problem->model = &s->states;
  }
  s->d = problem->ops->dim(problem->model);
  s->levels.columns = LEVEL_COLUMNS;
  s->points.columns = s->d;
  LE_TRY(read_settings(s));
  s->most = s->kept > s->live ? s->kept : s->live;
  LE_TRY(le_machine_streams(&s->machine, s->most + 1));
  return alloc_all(s);
}

/* What phases take for granted. */
static void require_sound(const nested *s, le_archive *archive)
{
  const int phase = s->machine.phase, filled = phase >= CHOOSE && phase <= CLOSE_CHUNK;
  le_archive_require(archive, phase < FILL || phase > CLOSE_CHUNK || s->target.chunk > 0);
  le_archive_require(archive, !filled || s->filled == s->live);
  le_archive_require(archive, (phase != MOVE && phase != REPLACE) || s->target.floor);
  le_archive_require(archive, !s->keeps || s->points.rows == s->levels.rows);
}

static void nested_archive(void *self, le_archive *archive)
{
  nested *s = self;
  le_blocks_archive(archive, s, LE_TABLE(blocks), s->most, s->d);
  le_archive_indices(archive, s->order, s->live, s->live);
  le_archive_indices(archive, s->clusters.label, s->live, s->clusters.count);
  le_archive_indices(archive, s->source, s->batch, s->live);
  le_archive_doubles(archive, s->level, s->live * LEVEL_COLUMNS);
  le_archive_doubles(archive, s->walker, s->batch * s->d);
  le_archive_doubles(archive, s->start, s->batch * s->d);
  int labelled = s->target.labels != NULL, walled = s->target.floor != NULL;
  le_archive_flag(archive, &labelled);
  le_archive_flag(archive, &walled);
  s->target.labels = labelled ? s->labels : NULL;
  s->target.floor = walled ? &s->floor : NULL;
  le_target_require(&s->target, archive);
  if (s->states.ops && s->filled == s->live)
    le_states_require(s->states.ops, s->states.self, s->states.n, s->live, s->theta, archive);
  if (archive->status != LE_OK) return;
  le_gradient_archive(&s->gradient, &s->target, archive);
  le_past_archive(&s->past, archive);
  for (int half = 0; half < 2; half++) le_metric_archive(&s->metric[half], archive);
  le_kernel_archive(s->kernel, s->most, archive);
  if (!s->keeps) le_varopt_archive(&s->reservoir, archive);
  le_trace_archive(&s->levels, archive);
  le_trace_archive(&s->points, archive);
  require_sound(s, archive);
}

static void nested_hand_over(const void *self, le_population *population)
{
  const nested *s = self;
  *population = (le_population){s->target.seen, s->kept, s->theta, s->banked, s->banked_variance};
}

/* The progress of a run is not known in advance. It is estimated from the share of the evidence
 * that live points could still hold, which is best near the end, and from the remaining volume
 * before that. */
static void nested_progress(const void *self, double *rows, double *share)
{
  const nested *s = self;
  const size_t expected = s->machine.problem.total;
  const double total = (double)(expected ? expected : s->machine.store.n);
  *rows = (double)s->target.seen;
  if (!s->whole || total <= 0) {
    *share = total > 0 ? (double)s->target.seen / total : 0;
    return;
  }
  if (s->machine.phase == FINISHED) {
    *share = 1;
  } else if (s->log_sum > -INFINITY && s->rounds > 0) {
    const double ahead = fmax(le_nested_best(s) + s->log_volume - s->log_sum - log(s->tol), 0);
    *share = -s->log_volume / (-s->log_volume + ahead);
  } else {
    *share = 0;
  }
}

const le_estimator_ops le_nested_estimator = {
  .name = "nested",
  .knows = {{le_nested_table}, NULL},
  .size = sizeof(nested),
  .phases = phases,
  .columns = le_nested_columns,
  .fields = {LE_TABLE(fields)},
  .make = nested_make,
  .release = nested_release,
  .progress = nested_progress,
  .result = le_nested_result,
  .archive = nested_archive,
  .latent = 1,
  .hand_over = nested_hand_over,
};
