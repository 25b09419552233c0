/* Nested sampling (Skilling 2006), whole or chunk by chunk.
 *
 * `live` points drawn from a distribution climb the likelihood of a chunk of rows: the lowest `batch` of them are
 * recorded and replaced by copies of others, moved inside the wall that the highest of the lowest leaves behind.  Taking
 * several at once costs a little information and lets likelihood calls have many points; a point's number of live
 * companions when it died says what volume it stands for, whatever the batch.
 *
 * With one chunk that holds all rows the distribution is the prior, and all points are kept.  With more, it is the
 * posterior of the rows before, whose draws are the last chunk's points, kept in a weighted reservoir of the size of the
 * population (Cameron's online nested sampling).
 *
 * Settings: live, batch, steps, tol, simulations, reservoir (points carried to the next chunk), whole, chunk_least,
 * chunk_fraction, chunk_most, shuffle, gradient, gradient_batch, mass; from_theta and from_levels, the points of an
 * earlier run of the same problem that goes on. */
#include "estimators/nested/parts.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

static void nested_free(void *self)
{
  nested *s = self;
  if (!s) return;
  le_streams_free(&s->streams);
  le_store_free(&s->store);
  le_trace_free(&s->levels);
  le_trace_free(&s->points);
  le_trace_free(&s->trace);
  le_release(s->log_volumes);
  le_release(s->log_weights);
  le_release(s->scratch);
  le_release(s->columns);
  le_arena_free(&s->arena);
  le_release(s);
}

static le_status read_settings(nested *s, const le_problem *problem)
{
  static const char *const masses[] = {"default", "identity", "diagonal", "dense"};
  const le_args *args = &problem->settings;
  const le_model_ops *model = s->model;
  le_error *error = &s->context->error;
  s->live = (size_t)le_args_number(args, "live", 400);
  s->batch = (size_t)le_args_number(args, "batch", 1);
  s->steps = (size_t)le_args_number(args, "steps", 0);
  s->tol = le_args_number(args, "tol", 0.01);
  s->simulations = (size_t)le_args_number(args, "simulations", 200);
  s->kept = (size_t)le_args_number(args, "reservoir", (double)s->live);
  s->whole = le_args_number(args, "whole", 1) != 0;
  s->shuffle = le_args_number(args, "shuffle", 0) != 0;
  s->chunk_least = le_args_number(args, "chunk_least", 1);
  s->chunk_fraction = le_args_number(args, "chunk_fraction", 0);
  s->chunk_most = le_args_number(args, "chunk_most", INFINITY);
  s->keeps = s->whole && !s->states.ops;
  s->from_theta = le_args_find(args, "from_theta");
  s->from_levels = le_args_find(args, "from_levels");
  if (s->live < 2 || s->batch < 1 || s->batch >= s->live)
    return le_fail(error, LE_BAD_ARGUMENT, "`live` must be at least 2, and more than are replaced at once.");
  if (problem->kernels < 1) return le_fail(error, LE_BAD_ARGUMENT, "Nested sampling needs a kernel.");
  s->spec = &problem->kernel[0];
  const le_kernel_ops *kernel = s->spec->ops;
  if (!(kernel->needs & LE_KEEPS_FLOOR))
    return le_fail(error, LE_UNSUPPORTED, "`kernel` %s() cannot keep points above a likelihood: use slice(), rwm(), sghmc() "
                   "or prior_draws().", kernel->name);
  if ((kernel->needs & LE_NEEDS_GRADIENT) && !(model->log_lik_grad && model->log_prior_grad))
    return le_fail(error, LE_UNSUPPORTED, "`kernel` %s() needs gradients, which the model %s does not offer.",
                   kernel->name, model->name);
  if ((kernel->needs & LE_NEEDS_FLOOR) && !s->whole)
    return le_fail(error, LE_UNSUPPORTED, "`kernel` %s() draws from the prior, which is only right for all rows at once.",
                   kernel->name);
  s->first_steps = (size_t)ceil(le_args_number(args, "steps_per_dimension", 1) * (double)s->d);
  s->adapts = s->steps == 0 && !(kernel->needs & LE_NEEDS_FLOOR);
  if (s->steps == 0) s->steps = s->adapts ? (size_t)fmax(5, (double)s->first_steps) : 1;
  s->metric_kind = kernel->default_metric;
  const char *mass = le_args_word(args, "mass", masses[0]);
  for (int k = 1; k < 4; k++)
    if (strcmp(mass, masses[k]) == 0) s->metric_kind = (le_metric_kind)(k - 1);
  if (s->states.ops) s->metric_kind = LE_METRIC_IDENTITY;
  return LE_OK;
}

static le_gradient_rule gradient_rule(const nested *s, const le_problem *problem)
{
  const char *word = le_args_word(&problem->settings, "gradient", "full");
  if (s->spec->ops->needs & LE_NEEDS_DENSITY) return LE_GRADIENT_FULL;
  return strcmp(word, "control") == 0 ? LE_GRADIENT_CONTROL : strcmp(word, "batch") == 0 ? LE_GRADIENT_BATCH
                                                                                        : LE_GRADIENT_FULL;
}

static le_status alloc_all(nested *s, const le_problem *problem)
{
  const size_t d = s->d, most = s->most;
  LE_TRY(le_streams_alloc(&s->streams, most + 1, problem->seed, problem->replicate));
  le_target_alloc(&s->target, problem->ops, problem->model, most, s->context, &s->arena);
  s->target.store = &s->store;
  s->target.rng = s->streams.rng[0];
  s->store.width = problem->ops->width(problem->model);
  const le_gradient_rule rule = gradient_rule(s, problem);
  const size_t rows = (size_t)le_args_number(&problem->settings, "gradient_batch", 500);
  le_gradient_alloc(&s->gradient, rule, rule == LE_GRADIENT_FULL ? 1 : rows, &s->target, &s->arena);
  s->target.gradient = &s->gradient;
  for (int half = 0; half < 2; half++) {
    le_metric_alloc(&s->metric[half], d, s->metric_kind, &s->arena);
    s->target.metric[half] = &s->metric[half];
  }
  s->order = le_arena_indices(&s->arena, most);
  s->theta = le_arena_doubles(&s->arena, most * d);
  s->level = le_arena_doubles(&s->arena, most * LEVEL_COLUMNS);
  s->walker = le_arena_doubles(&s->arena, most * d);
  s->start = le_arena_doubles(&s->arena, s->batch * d);
  s->source = le_arena_indices(&s->arena, most);
  s->value = le_arena_doubles(&s->arena, most);
  s->weight = le_arena_doubles(&s->arena, most);
  s->labels = le_arena_doubles(&s->arena, d);
  s->work = le_arena_doubles(&s->arena, most + 4 * d);
  s->apart = le_arena_doubles(&s->arena, most * d);
  le_clusters_alloc(&s->clusters, most, d, &s->arena);
  s->ancestor = le_arena_indices(&s->arena, most);
  if (!s->keeps) le_varopt_alloc(&s->reservoir, s->kept, d, &s->arena);
  if (s->states.ops) {
    s->states.scratch = s->target.scratch;
    s->target.block = s->states.n; /* states have one likelihood, of all rows */
  }
  if (s->arena.failed) return LE_NO_MEMORY;
  return s->spec->ops->alloc(&s->spec->args, d, most, &s->arena, &s->kernel);
}

static le_status nested_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  nested *s = le_resize(NULL, sizeof *s);
  if (!s) return LE_NO_MEMORY;
  memset(s, 0, sizeof *s);
  s->context = context;
  le_problem points = *problem;
  if (problem->ops->latent && problem->total == 0) {
    nested_free(s);
    return le_fail(&context->error, LE_UNSUPPORTED, "The model %s needs all rows at once.", problem->ops->name);
  }
  if (problem->ops->latent) {
    s->states = (le_states){problem->ops->latent, problem->model, problem->total, problem->ops->width(problem->model), NULL};
    points.ops = &le_states_model;
    points.model = &s->states;
  }
  problem = &points;
  s->model = problem->ops;
  s->d = problem->ops->dim(problem->model);
  s->total = problem->total;
  s->seed = problem->seed;
  s->trace.columns = TRACE_COLUMNS;
  s->levels.columns = LEVEL_COLUMNS;
  s->points.columns = s->d;
  le_status status = read_settings(s, problem);
  s->most = s->kept > s->live ? s->kept : s->live;
  if (status == LE_OK) status = alloc_all(s, problem);
  if (status != LE_OK) {
    nested_free(s);
    return status;
  }
  *self = s;
  return LE_OK;
}

static le_status nested_start(void *self)
{
  nested *s = self;
  for (size_t i = 0; i < s->live; i++) s->model->draw_prior(s->target.model, s->streams.rng[i + 1], s->theta + i * s->d);
  s->phase = OPEN_CHUNK;
  return LE_OK;
}

static le_status nested_feed(void *self, const le_rows *rows, le_feed feed)
{
  nested *s = self;
  if (s->closed) return le_fail(&s->context->error, LE_BAD_ARGUMENT, "This run has had its last rows.");
  if (feed != LE_ROWS) s->closed = 1;
  if (rows->n == 0) return LE_OK;
  return le_store_take(&s->store, rows, s->shuffle ? s->streams.order : NULL, feed);
}

static le_progress nested_advance(void *self, double seconds, le_status *status)
{
  nested *s = self;
  const double started = le_now(), before = s->seconds;
  le_progress progress = LE_MORE;
  *status = LE_OK;
  do {
    switch (s->phase) {
    case OPEN_CHUNK: *status = le_nested_open_chunk(s, &progress); break;
    case CHOOSE: *status = le_nested_choose(s); break;
    case MOVE: *status = le_nested_move(s); break;
    case REPLACE: *status = le_nested_replace(s); break;
    case CLOSE_CHUNK: *status = le_nested_close_chunk(s); break;
    case FRESHEN: *status = le_nested_freshen(s); break;
    case FINISHED: progress = LE_DONE; break;
    }
    s->seconds = before + le_now() - started;
    if (*status != LE_OK) return LE_FAILED;
  } while (progress == LE_MORE && le_now() - started < seconds);
  return progress;
}

const double *le_nested_particles(const void *self, double *log_evidence, double *variance)
{
  const nested *s = self;
  *log_evidence = s->banked;
  *variance = s->banked_variance;
  return s->theta;
}

/* How far a whole run is nobody knows before its end: the share of the evidence that live points could still hold says
 * it best near the end, and the volume left before. */
static void nested_progress(const void *self, double *rows, double *share)
{
  const nested *s = self;
  const double total = s->total ? (double)s->total : (double)s->store.n;
  *rows = (double)s->target.seen;
  if (!s->whole || total <= 0) {
    *share = total > 0 ? (double)s->target.seen / total : 0;
    return;
  }
  if (s->phase == FINISHED) {
    *share = 1;
  } else if (s->log_sum > -INFINITY && s->rounds > 0) {
    const double ahead = fmax(le_nested_best(s) + s->log_volume - s->log_sum - log(s->tol), 0);
    *share = -s->log_volume / (-s->log_volume + ahead);
  } else {
    *share = 0;
  }
}

const le_estimator_ops le_nested_estimator = {LE_CONTRACT_VERSION, sizeof(le_estimator_ops), "nested",
                                              nested_alloc,        nested_free,              nested_start,
                                              nested_feed,         nested_advance,           nested_progress,
                                              le_nested_result,       le_nested_archive, 1};
