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
#include "base/clock.h"
#include "base/linalg.h"
#include "base/logsum.h"
#include "core/clusters.h"
#include "core/gradient.h"
#include "core/resample.h"
#include "core/states.h"
#include "core/trace.h"
#include "core/varopt.h"
#include "core/volumes.h"
#include "estimators/parts.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <string.h>

typedef enum nested_phase { OPEN_CHUNK, CHOOSE, MOVE, REPLACE, CLOSE_CHUNK, FRESHEN, FINISHED } nested_phase;

enum { TRACE_COLUMNS = 14 };
static const char *const trace_names[TRACE_COLUMNS] = {"n",         "log_evidence", "se",      "steps", "ess",
                                                       "acceptance", "step_size",   "particles", "evaluations", "seconds",
                                                       "log_lik",    "log_volume",  "renewal", "echo"};

/* What is known of a point besides where it is: its likelihood and label, those of the wall it was born inside, where it
 * ranked among the points that survived then, uniform on (0, 1) if all is well, and how many were live when it died. */
enum { LOG_LIK, TIE, BIRTH, BIRTH_TIE, RANK, LIVE, LEVEL_COLUMNS };

typedef struct nested {
  le_context *context;
  const le_model_ops *model;
  const le_kernel_spec *spec;
  size_t d, live, batch, steps, first_steps, kept, simulations;
  int adapts; /* steps follow the renewal of the points */
  double tol, chunk_least, chunk_fraction, chunk_most;
  int whole, shuffle;
  int keeps;         /* every point, to merge runs and to go on; else a reservoir of them */
  le_states states;  /* of a model with latent variables, whose points they are */
  le_metric_kind metric_kind;
  size_t total;
  uint64_t seed;
  le_arena arena;
  le_streams streams; /* 0: the run; 1..most: points */
  size_t most;
  le_store store;
  le_target target;
  le_gradient gradient;
  le_metric metric[2]; /* each half's, from the other half */
  le_clusters clusters; /* of the live points */
  void *kernel;
  const le_arg *from_theta, *from_levels;

  nested_phase phase;
  int closed;
  size_t step;
  le_floor floor;
  size_t *order;         /* live points by likelihood, the lowest first */
  double *theta, *level; /* live: x d and x LEVEL_COLUMNS */
  double *walker, *start; /* batch x d */
  size_t *source;        /* batch: whom the walkers copy */
  double *value, *weight, *labels, *work, *apart; /* apart: most x d */
  size_t *ancestor;
  le_varopt reservoir;
  le_trace levels, points; /* of the dead; without points in chunks */

  double log_volume, log_evidence, log_sum; /* of this chunk so far: expected volume; running sums */
  double banked, banked_variance, information; /* of finished chunks */
  double renewal, echo;
  double rounds, seconds;
  le_trace trace;
  double summary[16];
  double *log_volumes, *log_weights, *scratch, *columns; /* for the result, grown */
} nested;

/* ---- memory ---- */

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

/* ---- points ---- */

static double *level_of(const nested *s, size_t i)
{
  return s->level + i * LEVEL_COLUMNS;
}

/* By likelihood, equal ones by label. */
static int below(const double *a, const double *b)
{
  return a[LOG_LIK] != b[LOG_LIK] ? a[LOG_LIK] < b[LOG_LIK] : a[TIE] < b[TIE];
}

/* Sinks entry `at` of the order to its place among those before it. */
static void sink(nested *s, size_t at)
{
  const size_t moving = s->order[at];
  for (; at > 0 && below(level_of(s, moving), level_of(s, s->order[at - 1])); at--) s->order[at] = s->order[at - 1];
  s->order[at] = moving;
}

static void set_level(nested *s, size_t i, double log_lik, double birth, double birth_tie)
{
  double *level = level_of(s, i);
  const gsl_rng *rng = s->streams.rng[0];
  level[LOG_LIK] = isnan(log_lik) ? -INFINITY : log_lik;
  level[BIRTH] = birth;
  level[BIRTH_TIE] = birth_tie;
  /* a label is uniform, above the wall's own where the likelihood does not exceed it */
  level[TIE] = gsl_rng_uniform_pos(rng);
  if (level[LOG_LIK] == birth) level[TIE] = birth_tie + (1 - birth_tie) * level[TIE];
  level[RANK] = NAN;
  level[LIVE] = 0;
}

/* How many of the survivors, in order from entry `from` on, lie below. */
static size_t count_below(const nested *s, const double *level, size_t from)
{
  size_t low = from, high = s->live;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (below(level_of(s, s->order[middle]), level))
      low = middle + 1;
    else
      high = middle;
  }
  return low - from;
}

/* The share of the survivors that lie below; a tie counts by chance. */
static double rank_among(const nested *s, const double *level, size_t from)
{
  return ((double)count_below(s, level, from) + gsl_rng_uniform(s->streams.rng[0])) / (double)(s->live - from + 1);
}

static le_status record(nested *s, const double *theta, const double *level, double live)
{
  double *row = le_trace_add(&s->levels);
  if (!row) return LE_NO_MEMORY;
  memcpy(row, level, LEVEL_COLUMNS * sizeof(double));
  row[LIVE] = live;
  const double before = s->log_volume;
  s->log_volume -= 1 / live;
  /* the volume between this point's wall and the last one */
  const double term = level[LOG_LIK] + before + log(-expm1(s->log_volume - before));
  const double terms[2] = {s->log_sum, term};
  s->log_sum = le_logsumexp(terms, 2);
  if (s->keeps) {
    double *point = le_trace_add(&s->points);
    if (!point) return LE_NO_MEMORY;
    memcpy(point, theta, s->d * sizeof(double));
  } else {
    le_varopt_add(&s->reservoir, theta, term, s->streams.rng[0]);
  }
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

/* Brings all live points to the labels nearest to the best one's; the prior does not tell them apart. */
static void common_labels(nested *s)
{
  if (!s->model->relabel) return;
  memcpy(s->labels, s->theta + s->order[s->live - 1] * s->d, s->d * sizeof(double));
  s->target.labels = s->labels;
  for (size_t i = 0; i < s->live; i++) s->model->relabel(s->target.model, s->labels, s->theta + i * s->d);
}

/* ---- chunks ---- */

static size_t rows_wanted(const nested *s)
{
  const double seen = (double)s->target.seen;
  if (s->whole) return s->store.n - s->target.seen;
  return (size_t)fmin(fmax(s->chunk_least, floor(s->chunk_fraction * seen)), s->chunk_most);
}

/* The points of an earlier run: its dead, and those that were live at its end. */
static le_status take_up(nested *s)
{
  const size_t n = s->from_levels->n / LEVEL_COLUMNS, dead = n - s->live;
  if (n < s->live || s->from_theta->n != n * s->d)
    return le_fail(&s->context->error, LE_BAD_ARGUMENT, "A run can only go on with as many live points as it had.");
  for (size_t k = 0; k < n; k++) {
    const double *level = s->from_levels->values + k * LEVEL_COLUMNS, *theta = s->from_theta->values + k * s->d;
    if (k < dead) {
      LE_TRY(record(s, theta, level, level[LIVE]));
    } else {
      memcpy(level_of(s, k - dead), level, LEVEL_COLUMNS * sizeof(double));
      memcpy(s->theta + (k - dead) * s->d, theta, s->d * sizeof(double));
    }
  }
  return LE_OK;
}

static le_status open_chunk(nested *s, le_progress *progress)
{
  const size_t left = s->store.n - s->target.seen;
  const size_t wanted = rows_wanted(s);
  if (left == 0 && s->closed) {
    s->phase = FINISHED;
    return LE_OK;
  }
  if (!s->closed && (s->whole || left < wanted)) {
    *progress = LE_NEEDS_ROWS;
    return LE_OK;
  }
  s->target.chunk = left < wanted ? left : wanted;
  s->target.lambda = 0;
  s->log_volume = 0;
  s->log_sum = -INFINITY;
  s->levels.rows = 0;
  if (!s->keeps) le_varopt_clear(&s->reservoir);
  if (s->gradient.rule == LE_GRADIENT_CONTROL && s->target.seen > 0) {
    if (!s->gradient.anchored || s->target.seen >= 2 * s->gradient.anchored_rows) {
      memset(s->work, 0, s->d * sizeof(double));
      for (size_t i = 0; i < s->live; i++)
        for (size_t j = 0; j < s->d; j++) s->work[j] += s->theta[i * s->d + j] / (double)s->live;
      LE_TRY(le_gradient_set_anchor(&s->gradient, &s->target, s->work));
    }
    LE_TRY(le_gradient_open_chunk(&s->gradient, &s->target));
  }
  if (s->keeps && s->from_levels && s->from_theta) {
    LE_TRY(take_up(s));
  } else {
    LE_TRY(le_target_log_lik(&s->target, s->target.seen, s->target.seen + s->target.chunk, s->live, s->theta, s->value));
    for (size_t i = 0; i < s->live; i++) set_level(s, i, s->value[i], -INFINITY, 0);
  }
  for (size_t i = 0; i < s->live; i++) {
    s->order[i] = i;
    sink(s, i);
  }
  s->phase = CHOOSE;
  return LE_OK;
}

static double best(const nested *s)
{
  return level_of(s, s->order[s->live - 1])[LOG_LIK];
}

static le_status add_trace(nested *s)
{
  const le_kernel_report report = s->spec->ops->report(s->kernel);
  const double rest[2] = {s->log_sum, best(s) + s->log_volume};
  const double row[TRACE_COLUMNS] = {(double)(s->target.seen + s->target.chunk),
                                     s->banked + le_logsumexp(rest, 2),
                                     sqrt(s->banked_variance + fmax(-s->log_volume, 0) / (double)s->live),
                                     (double)s->steps,
                                     (double)s->live,
                                     report.acceptance,
                                     report.step_size,
                                     (double)s->live,
                                     s->target.likelihoods + s->target.gradients,
                                     s->seconds,
                                     s->floor.value,
                                     s->log_volume,
                                     s->renewal,
                                     s->echo};
  double *added = le_trace_add(&s->trace);
  if (!added) return LE_NO_MEMORY;
  memcpy(added, row, sizeof row);
  return LE_OK;
}

/* ---- a round ---- */

/* Points that lie apart, such as a posterior's modes: what is far is judged by those that belong together. */
static void find_clusters(nested *s)
{
  if (s->rounds == 0 || s->states.ops) {
    le_clusters_join(&s->clusters, s->live);
    return;
  }
  for (size_t i = 0; i < s->live; i++) le_metric_whiten(&s->metric[0], s->theta + i * s->d, s->apart + i * s->d);
  le_clusters_find(&s->clusters, s->live, s->apart);
}

/* Each half of the live points gives the scale for walkers that copy a point of the other. */
static void update_metrics(nested *s)
{
  if (s->metric_kind == LE_METRIC_IDENTITY) return;
  const size_t half = s->live / 2;
  for (int k = 0; k < 2; k++) {
    /* a handful of points says less than all of them would mislead */
    const size_t from = s->live < 8 ? 0 : k == 0 ? half : 0, n = s->live < 8 ? s->live : k == 0 ? s->live - half : half;
    const size_t used = le_clusters_residuals(&s->clusters, from, from + n, s->theta, s->apart);
    for (size_t i = 0; i < used; i++) s->weight[i] = 1 / (double)used;
    if (used > 1) le_metric_set_particles(&s->metric[k], used, s->apart, s->weight, NULL);
  }
}

/* Whom the walkers copy: survivors at random, those of the first half first. */
static void choose_sources(nested *s)
{
  const size_t survivors = s->live - s->batch, half = s->live / 2;
  size_t first = 0, last = s->batch;
  for (size_t b = 0; b < s->batch; b++) {
    const size_t i = s->order[s->batch + gsl_rng_uniform_int(s->streams.rng[0], survivors)];
    s->source[i < half ? first++ : --last] = i;
  }
  s->target.split = first;
  for (size_t b = 0; b < s->batch; b++)
    memcpy(s->walker + b * s->d, s->theta + s->source[b] * s->d, s->d * sizeof(double));
  memcpy(s->start, s->walker, s->batch * s->d * sizeof(double));
}

static int finished_climbing(const nested *s)
{
  /* nothing but impossible points so far: there is no sum to be a share of */
  if (!(s->log_sum > -INFINITY)) return 0;
  /* in this order, since beside a huge likelihood the volume would be lost */
  return (best(s) - s->log_sum) + s->log_volume < log(s->tol);
}

/* So often every live point has been replaced, by searches from all over the prior, before it is given up. */
static const double impossible_nats = 5;

/* A posterior that holds less of the prior than this many nats, and so many more for each dimension, would take hours, and its
 * standard error would be whole nats. */
static const double endless_nats = 1000, endless_nats_each = 50;

static le_status give_up(const nested *s)
{
  if (best(s) == INFINITY)
    return le_fail(&s->context->error, LE_NOT_FINITE, "The likelihood of the observations is infinite at some points of the prior.");
  if (!(-s->log_volume > endless_nats + endless_nats_each * (double)s->d)) return LE_OK;
  return le_fail(&s->context->error, LE_STALLED,
                 "After %.0f nats of climbing the points have not reached the posterior of the observations up to number %.0f: the "
                 "likelihood is too sharp for %s. Are the columns scaled, or is a row an outlier?",
                 -s->log_volume, (double)(s->target.seen + s->target.chunk),
                 s->target.seen > 0 ? "the posterior of the rows before" : "the prior");
}

static le_status choose(nested *s)
{
  if (best(s) == -INFINITY && -s->log_volume > impossible_nats)
    return le_fail(&s->context->error, LE_ALL_IMPOSSIBLE,
                   "No point of the prior gives the observations a positive probability, in %.0f draws.",
                   s->rounds * (double)s->batch);
  if (finished_climbing(s)) {
    s->phase = CLOSE_CHUNK;
    return LE_OK;
  }
  LE_TRY(give_up(s));
  for (size_t b = 0; b < s->batch; b++) {
    const size_t i = s->order[b];
    LE_TRY(record(s, s->theta + i * s->d, level_of(s, i), (double)(s->live - b)));
  }
  if (s->model->relabel && (size_t)s->rounds % (s->live / s->batch + 1) == 0) common_labels(s);
  const double *wall = level_of(s, s->order[s->batch - 1]);
  s->floor.value = wall[LOG_LIK];
  s->floor.tie = wall[TIE];
  if ((size_t)s->rounds % (s->live / s->batch + 1) == 0) find_clusters(s);
  update_metrics(s);
  choose_sources(s);
  s->target.floor = &s->floor;
  if (s->spec->ops->begin)
    LE_TRY(s->spec->ops->begin(s->kernel, &s->target, s->batch, s->walker, &s->streams));
  s->step = 0;
  s->phase = MOVE;
  return LE_OK;
}

static le_status move(nested *s)
{
  LE_TRY(s->spec->ops->move(s->kernel, &s->target, s->batch, s->walker, &s->streams));
  if (++s->step == s->steps) {
    if (s->spec->ops->tune) s->spec->ops->tune(s->kernel);
    s->phase = REPLACE;
  }
  return LE_OK;
}

static const double renewal_least = 0.87, renewal_most = 0.94, far_away = 16;

/* How far walkers have come, against the distance of two independent points of their cluster: 1 is a fresh draw, 0 a copy. */
static double renewal(nested *s)
{
  const size_t d = s->d;
  double sum = 0;
  if (s->states.ops) return NAN; /* labels have no distance */
  le_clusters_spread(&s->clusters, s->live, s->theta);
  for (size_t b = 0; b < s->batch; b++) {
    const double *variance = s->clusters.variance + s->clusters.label[s->source[b]] * d;
    double share = 0;
    int left = 0; /* for another cluster */
    for (size_t j = 0; j < d; j++) {
      const double square = pow(s->walker[b * d + j] - s->start[b * d + j], 2);
      const double ratio = variance[j] > 0 ? square / (2 * variance[j]) : square > 0;
      left |= ratio > far_away;
      share += ratio / (double)d;
    }
    sum += left ? 1 : share;
  }
  return sum / (double)s->batch;
}

/* `echo` is the correlation of the ranks, by likelihood, of copies and sources: 1 for copies that stay where they are, 0 where they
 * have forgotten how likely their source was, even if they are still near it, as on a thin ring of equal likelihood. */

/* More moves where copies stay near their sources, fewer where they are as good as fresh. */
static void adapt_steps(nested *s)
{
  const size_t d = s->d, most = 40 + 20 * d, least = 3 + s->first_steps / 3;
  const double now = renewal(s);
  s->renewal = s->rounds == 0 ? now : s->renewal + 0.2 * (now - s->renewal);
  if (!s->adapts) return;
  if (s->renewal < renewal_least && s->steps < most) s->steps += 1 + s->steps / 10;
  if (s->renewal > renewal_most && s->steps > least) s->steps -= 1 + s->steps / 20;
  if (s->steps < least) s->steps = least;
}

static le_status replace(nested *s)
{
  const size_t d = s->d;
  double echo = 0;
  adapt_steps(s);
  LE_TRY(le_target_log_lik(&s->target, s->target.seen, s->target.seen + s->target.chunk, s->batch, s->walker, s->value));
  for (size_t b = 0; b < s->batch; b++) {
    const size_t i = s->order[b];
    const double source = ((double)count_below(s, level_of(s, s->source[b]), s->batch) + 0.5) / (double)(s->live - s->batch);
    memcpy(s->theta + i * d, s->walker + b * d, d * sizeof(double));
    s->clusters.label[i] = s->clusters.label[s->source[b]];
    set_level(s, i, s->value[b], s->floor.value, s->floor.tie);
    level_of(s, i)[RANK] = rank_among(s, level_of(s, i), s->batch);
    echo += 12 * (source - 0.5) * (level_of(s, i)[RANK] - 0.5) / (double)s->batch;
  }
  s->echo = s->rounds == 0 ? echo : s->echo + 0.2 * (echo - s->echo);
  /* the survivors are in order: the new ones sink in from the end, one by one */
  memcpy(s->source, s->order, s->batch * sizeof *s->source);
  memmove(s->order, s->order + s->batch, (s->live - s->batch) * sizeof *s->order);
  for (size_t b = 0; b < s->batch; b++) {
    s->order[s->live - s->batch + b] = s->source[b];
    sink(s, s->live - s->batch + b);
  }
  s->rounds++;
  if (s->whole) LE_TRY(add_trace(s));
  s->phase = CHOOSE;
  return LE_OK;
}

/* ---- the end of a chunk ---- */

static le_status grow(double **block, size_t n)
{
  double *grown = le_resize(*block, (n + 1) * sizeof(double));
  if (!grown) return LE_NO_MEMORY;
  *block = grown;
  return LE_OK;
}

/* Sums over the recorded points, of which the last `rest` were live at the end. */
static le_status sum_volumes(nested *s, size_t rest, le_volumes *volumes)
{
  const size_t n = s->levels.rows;
  LE_TRY(grow(&s->log_volumes, n));
  LE_TRY(grow(&s->log_weights, n));
  LE_TRY(grow(&s->scratch, n));
  LE_TRY(grow(&s->columns, 2 * n));
  for (size_t k = 0; k < n; k++) {
    s->columns[k] = s->levels.values[k * LEVEL_COLUMNS + LOG_LIK];
    s->columns[n + k] = s->levels.values[k * LEVEL_COLUMNS + LIVE];
  }
  /* a stream of its own: asking for a result does not change what follows */
  gsl_rng *rng = gsl_rng_clone(s->streams.rng[0]);
  if (!rng) return LE_NO_MEMORY;
  le_volumes_sum(n, s->columns, s->columns + n, rest, s->simulations, rng, s->log_volumes, s->log_weights, s->scratch,
                 volumes);
  gsl_rng_free(rng);
  return LE_OK;
}

/* All that are still live die in order, with ever fewer companions. */
static le_status close_chunk(nested *s)
{
  for (size_t k = 0; k < s->live; k++)
    LE_TRY(record(s, s->theta + s->order[k] * s->d, level_of(s, s->order[k]), (double)(s->live - k)));
  s->target.floor = NULL;
  if (s->gradient.rule == LE_GRADIENT_CONTROL && s->gradient.anchored)
    le_gradient_close_chunk(&s->gradient, &s->target);
  s->target.seen += s->target.chunk;
  s->target.chunk = 0;
  if (s->whole) {
    s->phase = FINISHED;
    return LE_OK;
  }
  le_volumes volumes;
  LE_TRY(sum_volumes(s, s->live, &volumes));
  s->banked += volumes.log_evidence;
  s->banked_variance += volumes.se * volumes.se;
  s->information += volumes.information;
  LE_TRY(add_trace(s));
  s->trace.values[(s->trace.rows - 1) * TRACE_COLUMNS + 1] = s->banked;
  s->trace.values[(s->trace.rows - 1) * TRACE_COLUMNS + 2] = sqrt(s->banked_variance);
  /* the reservoir's weighted points, resampled to equal weight */
  const size_t next = s->store.n == s->target.seen && s->closed ? s->kept : s->live;
  le_normalise(s->reservoir.log_weight, s->reservoir.n, s->weight);
  le_resample(LE_SYSTEMATIC, s->reservoir.n, s->weight, next, s->streams.rng[0], s->work, s->ancestor);
  for (size_t i = 0; i < next; i++)
    memcpy(s->theta + i * s->d, s->reservoir.theta + s->ancestor[i] * s->d, s->d * sizeof(double));
  s->rounds = 0;
  s->step = 0;
  s->phase = FRESHEN;
  return LE_OK;
}

/* Points that were copied part ways before they are asked about the next chunk. */
static le_status freshen(nested *s)
{
  const size_t m = s->store.n == s->target.seen && s->closed ? s->kept : s->live;
  s->target.split = m;
  if (s->step == 0) {
    update_metrics(s);
    if (s->spec->ops->begin) LE_TRY(s->spec->ops->begin(s->kernel, &s->target, m, s->theta, &s->streams));
  }
  LE_TRY(s->spec->ops->move(s->kernel, &s->target, m, s->theta, &s->streams));
  if (++s->step == s->steps) {
    if (s->spec->ops->tune) s->spec->ops->tune(s->kernel);
    s->phase = OPEN_CHUNK;
  }
  return LE_OK;
}

static le_progress nested_advance(void *self, double seconds, le_status *status)
{
  nested *s = self;
  const double started = le_now(), before = s->seconds;
  le_progress progress = LE_MORE;
  *status = LE_OK;
  do {
    switch (s->phase) {
    case OPEN_CHUNK: *status = open_chunk(s, &progress); break;
    case CHOOSE: *status = choose(s); break;
    case MOVE: *status = move(s); break;
    case REPLACE: *status = replace(s); break;
    case CLOSE_CHUNK: *status = close_chunk(s); break;
    case FRESHEN: *status = freshen(s); break;
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
    const double ahead = fmax(best(s) + s->log_volume - s->log_sum - log(s->tol), 0);
    *share = -s->log_volume / (-s->log_volume + ahead);
  } else {
    *share = 0;
  }
}

/* ---- result ---- */

static le_status nested_result(void *self, le_result *result)
{
  nested *s = self;
  static const char *const names[] = {"log_evidence", "se",        "n",       "lambda_steps", "likelihoods", "gradients",
                                      "seconds",      "information", "lower", "upper",        "published",   "simulated"};
  double *out = s->summary;
  result->n = 0;
  le_volumes volumes = {0};
  if (s->whole && s->phase == FINISHED && s->levels.rows > 0) {
    LE_TRY(sum_volumes(s, s->live, &volumes));
    out[0] = volumes.log_evidence;
    out[1] = volumes.se;
  } else {
    volumes.information = s->information;
    volumes.lower = volumes.upper = volumes.published = volumes.mean = NAN;
    out[0] = s->banked;
    out[1] = sqrt(s->banked_variance);
  }
  out[2] = (double)s->target.seen;
  out[3] = s->rounds;
  out[4] = s->target.likelihoods;
  out[5] = s->target.gradients;
  out[6] = s->seconds;
  out[7] = volumes.information;
  out[8] = volumes.lower;
  out[9] = volumes.upper;
  out[10] = volumes.published;
  out[11] = volumes.mean;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) le_result_add(result, names[k], 1, 1, &out[k]);
  if (s->whole && s->phase == FINISHED && s->levels.rows > 0) {
    le_result_add(result, "levels", LEVEL_COLUMNS, s->levels.rows, s->levels.values);
    le_result_add(result, "level_log_weights", 1, s->levels.rows, s->log_weights);
    if (s->keeps) {
      le_result_add(result, "draws", s->d, s->points.rows, s->points.values);
      le_result_add(result, "log_weights", 1, s->levels.rows, s->log_weights);
    } else {
      le_result_add(result, "draws", s->d, s->reservoir.n, s->reservoir.theta);
      le_result_add(result, "log_weights", 1, s->reservoir.n, s->reservoir.log_weight);
    }
    le_result_add(result, "log_volumes", 1, s->levels.rows, s->log_volumes);
  } else {
    le_result_add(result, "draws", s->d, s->phase == FINISHED && s->target.seen > 0 ? s->kept : s->live, s->theta);
  }
  return le_trace_output(&s->trace, trace_names, result);
}

static void nested_archive(void *self, le_archive *archive)
{
  nested *s = self;
  int phase = (int)s->phase;
  le_archive_expect(archive, s->d);
  le_archive_expect(archive, s->live);
  le_archive_expect(archive, s->kept);
  le_archive_expect(archive, s->seed);
  le_store_archive(&s->store, archive);
  le_streams_archive(&s->streams, archive);
  le_archive_int(archive, &phase);
  if (archive->status != LE_OK) return;
  if (phase < 0 || phase > FINISHED) {
    archive->status = LE_CORRUPT;
    return;
  }
  s->phase = (nested_phase)phase;
  le_archive_size(archive, &s->target.seen);
  le_archive_size(archive, &s->target.chunk);
  le_archive_size(archive, &s->target.split);
  le_archive_double(archive, &s->target.likelihoods);
  le_archive_double(archive, &s->target.gradients);
  le_archive_int(archive, &s->closed);
  le_archive_size(archive, &s->step);
  le_archive_size(archive, &s->steps);
  double *const figure[] = {&s->floor.value,     &s->floor.tie,    &s->log_volume, &s->log_sum, &s->banked,
                            &s->banked_variance, &s->information, &s->renewal,    &s->echo,    &s->rounds,  &s->seconds};
  for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) le_archive_double(archive, figure[i]);
  le_archive_sizes(archive, s->order, s->live);
  le_archive_sizes(archive, s->clusters.label, s->live);
  le_archive_sizes(archive, s->source, s->batch);
  le_archive_size(archive, &s->clusters.count);
  le_archive_doubles(archive, s->theta, s->most * s->d);
  le_archive_doubles(archive, s->level, s->live * LEVEL_COLUMNS);
  le_archive_doubles(archive, s->walker, s->batch * s->d);
  le_archive_doubles(archive, s->start, s->batch * s->d);
  le_archive_doubles(archive, s->labels, s->d);
  int labelled = s->target.labels != NULL, walled = s->target.floor != NULL;
  le_archive_int(archive, &labelled);
  le_archive_int(archive, &walled);
  s->target.labels = labelled ? s->labels : NULL;
  s->target.floor = walled ? &s->floor : NULL;
  for (size_t i = 0; i < s->live; i++)
    if (s->order[i] >= s->live || s->clusters.label[i] >= s->clusters.count) archive->status = LE_CORRUPT;
  if (archive->status != LE_OK) return;
  le_gradient_archive(&s->gradient, &s->target, archive);
  for (int half = 0; half < 2; half++) le_metric_archive(&s->metric[half], archive);
  s->spec->ops->archive(s->kernel, s->most, archive);
  if (!s->keeps) le_varopt_archive(&s->reservoir, archive);
  le_trace_archive(&s->levels, archive);
  le_trace_archive(&s->points, archive);
  le_trace_archive(&s->trace, archive);
}

const le_estimator_ops le_nested_estimator = {LE_CONTRACT_VERSION, sizeof(le_estimator_ops), "nested",
                                              nested_alloc,        nested_free,              nested_start,
                                              nested_feed,         nested_advance,           nested_progress,
                                              nested_result,       nested_archive, 1};
