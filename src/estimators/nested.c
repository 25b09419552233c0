/* Nested sampling (Skilling 2006), whole or chunk by chunk.
 *
 * `live` points drawn from a distribution climb the likelihood of a chunk of rows: the lowest `batch` of them are
 * recorded and replaced by copies of others, moved inside the wall that the highest of the lowest leaves behind.  Taking
 * several at once costs a little information and lets likelihood calls have many points; a point's number of live
 * companions when it died says what volume it stands for, whatever the batch.
 *
 * With one chunk that holds all rows the distribution is the prior, and all points are kept.  With more, it is the
 * posterior of the rows before, whose draws are the last chunk's points, kept in a weighted reservoir of the size of the
 * population (Cameron's online nested sampling). */
#include "base/linalg.h"
#include "base/logsum.h"
#include "core/clusters.h"
#include "core/gradient.h"
#include "core/machine.h"
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
static const char *const level_names[LEVEL_COLUMNS] = {"log_lik", "tie", "birth", "birth_tie", "rank", "live"};

const le_setting le_nested_table[] = {
  LE_COUNT_SETTING("live", 400, 2),
  LE_COUNT_SETTING("batch", 1, 1),
  LE_COUNT_SETTING("steps", 0, 0),
  LE_COUNT_SETTING("steps_per_dimension", 1, 0),
  LE_REAL_SETTING("tol", 0.01, 0, HUGE_VAL),
  LE_COUNT_SETTING("simulations", 200, 0),
  LE_COUNT_SETTING("reservoir", NAN, 1), /* points carried to the next chunk; as many as are live */
  LE_FLAG_SETTING("whole", 1),
  LE_FLAG_SETTING("shuffle", 0),
  LE_REAL_SETTING("chunk_least", 1, 0, HUGE_VAL),
  LE_REAL_SETTING("chunk_fraction", 0, 0, HUGE_VAL),
  LE_REAL_SETTING("chunk_most", HUGE_VAL, 0, HUGE_VAL),
  LE_WORD_SETTING("gradient", "full batch control"),
  LE_COUNT_SETTING("gradient_batch", 500, 1),
  LE_WORD_SETTING("mass", "default identity diagonal dense"),
  LE_NUMBERS_SETTING("from_theta"), /* and levels: the points of an earlier run of the problem, which goes on */
  LE_NUMBERS_SETTING("from_levels"),
  {0}};

typedef struct nested {
  le_machine machine; /* streams 1..most: points */
  const le_model_ops *model;
  const le_kernel_spec *spec;
  size_t d, live, batch, steps, first_steps, kept, simulations;
  int adapts; /* steps follow the renewal of the points */
  double tol, chunk_least, chunk_fraction, chunk_most;
  int whole;
  int keeps;         /* every point, to merge runs and to go on; else a reservoir of them */
  le_states states;  /* of a model with latent variables, whose points they are */
  le_metric_kind metric_kind;
  size_t total;
  le_arena arena;
  size_t most;
  le_target target;
  le_gradient gradient;
  le_metric metric[2]; /* each half's, from the other half */
  le_clusters clusters; /* of the live points */
  void *kernel;
  const le_arg *from_theta, *from_levels;

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
  double rounds;
  le_trace trace;
  double summary[16];
  double *log_volumes, *log_weights, *scratch, *columns; /* for the result, grown */
} nested;

/* ---- memory ---- */

static void nested_free(void *self)
{
  nested *s = self;
  if (!s) return;
  le_machine_free(&s->machine);
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
  const le_args *args = &problem->settings;
  const le_model_ops *model = s->model;
  le_error *error = &s->machine.context->error;
  s->live = le_setting_count(args, le_nested_table, "live");
  s->batch = le_setting_count(args, le_nested_table, "batch");
  s->steps = le_setting_count(args, le_nested_table, "steps");
  s->tol = le_setting_number(args, le_nested_table, "tol");
  s->simulations = le_setting_count(args, le_nested_table, "simulations");
  const double carried = le_setting_number(args, le_nested_table, "reservoir");
  s->kept = isnan(carried) ? s->live : (size_t)carried;
  s->whole = le_setting_flag(args, le_nested_table, "whole");
  s->machine.shuffle = le_setting_flag(args, le_nested_table, "shuffle");
  s->chunk_least = le_setting_number(args, le_nested_table, "chunk_least");
  s->chunk_fraction = le_setting_number(args, le_nested_table, "chunk_fraction");
  s->chunk_most = le_setting_number(args, le_nested_table, "chunk_most");
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
  s->first_steps = (size_t)ceil(le_setting_number(args, le_nested_table, "steps_per_dimension") * (double)s->d);
  s->adapts = s->steps == 0 && !(kernel->needs & LE_NEEDS_FLOOR);
  if (s->steps == 0) s->steps = s->adapts ? (size_t)fmax(5, (double)s->first_steps) : 1;
  s->metric_kind = kernel->default_metric;
  const int mass = le_setting_word(args, le_nested_table, "mass");
  if (mass > 0) s->metric_kind = (le_metric_kind)(mass - 1);
  if (s->states.ops) s->metric_kind = LE_METRIC_IDENTITY;
  return LE_OK;
}

static le_gradient_rule gradient_rule(const nested *s, const le_problem *problem)
{
  if (s->spec->ops->needs & LE_NEEDS_DENSITY) return LE_GRADIENT_FULL;
  return (le_gradient_rule)le_setting_word(&problem->settings, le_nested_table, "gradient");
}

static le_status alloc_all(nested *s, const le_problem *problem)
{
  const size_t d = s->d, most = s->most;
  le_target_alloc(&s->target, problem->ops, problem->model, most, s->machine.context, &s->arena);
  s->target.store = &s->machine.store;
  s->target.rng = s->machine.streams.rng[0];
  const le_gradient_rule rule = gradient_rule(s, problem);
  const size_t rows = le_setting_count(&problem->settings, le_nested_table, "gradient_batch");
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
  const gsl_rng *rng = s->machine.streams.rng[0];
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
  return ((double)count_below(s, level, from) + gsl_rng_uniform(s->machine.streams.rng[0])) / (double)(s->live - from + 1);
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
    le_varopt_add(&s->reservoir, theta, term, s->machine.streams.rng[0]);
  }
  return LE_OK;
}

static le_status nested_start(void *self)
{
  nested *s = self;
  for (size_t i = 0; i < s->live; i++) s->model->draw_prior(s->target.model, s->machine.streams.rng[i + 1], s->theta + i * s->d);
  return LE_OK;
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
  if (s->whole) return s->machine.store.n - s->target.seen;
  return (size_t)fmin(fmax(s->chunk_least, floor(s->chunk_fraction * seen)), s->chunk_most);
}

/* The points of an earlier run: its dead, and those that were live at its end. */
static le_status take_up(nested *s)
{
  const size_t n = s->from_levels->n / LEVEL_COLUMNS, dead = n - s->live;
  if (n < s->live || s->from_theta->n != n * s->d)
    return le_fail(&s->machine.context->error, LE_BAD_ARGUMENT, "A run can only go on with as many live points as it had.");
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

static le_status open_chunk(void *self, le_progress *progress)
{
  nested *s = self;
  const size_t left = s->machine.store.n - s->target.seen;
  const size_t wanted = rows_wanted(s);
  if (left == 0 && s->machine.closed) {
    s->machine.phase = FINISHED;
    return LE_OK;
  }
  if (!s->machine.closed && (s->whole || left < wanted)) {
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
  s->machine.phase = CHOOSE;
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
                                     s->machine.seconds,
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
    const size_t i = s->order[s->batch + gsl_rng_uniform_int(s->machine.streams.rng[0], survivors)];
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
    return le_fail(&s->machine.context->error, LE_NOT_FINITE, "The likelihood of the observations is infinite at some points of the prior.");
  if (!(-s->log_volume > endless_nats + endless_nats_each * (double)s->d)) return LE_OK;
  return le_fail(&s->machine.context->error, LE_STALLED,
                 "After %.0f nats of climbing the points have not reached the posterior of the observations up to number %.0f: the "
                 "likelihood is too sharp for %s. Are the columns scaled, or is a row an outlier?",
                 -s->log_volume, (double)(s->target.seen + s->target.chunk),
                 s->target.seen > 0 ? "the posterior of the rows before" : "the prior");
}

static le_status choose(void *self, le_progress *progress)
{
  nested *s = self;
  (void)progress;
  if (best(s) == -INFINITY && -s->log_volume > impossible_nats)
    return le_fail(&s->machine.context->error, LE_ALL_IMPOSSIBLE,
                   "No point of the prior gives the observations a positive probability, in %.0f draws.",
                   s->rounds * (double)s->batch);
  if (finished_climbing(s)) {
    s->machine.phase = CLOSE_CHUNK;
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
    LE_TRY(s->spec->ops->begin(s->kernel, &s->target, s->batch, s->walker, &s->machine.streams));
  s->step = 0;
  s->machine.phase = MOVE;
  return LE_OK;
}

static le_status move(void *self, le_progress *progress)
{
  nested *s = self;
  (void)progress;
  LE_TRY(s->spec->ops->move(s->kernel, &s->target, s->batch, s->walker, &s->machine.streams));
  if (s->spec->ops->unfinished && s->spec->ops->unfinished(s->kernel)) return LE_OK;
  if (++s->step == s->steps) {
    if (s->spec->ops->tune) s->spec->ops->tune(s->kernel);
    s->machine.phase = REPLACE;
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

static le_status replace(void *self, le_progress *progress)
{
  nested *s = self;
  (void)progress;
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
  s->machine.phase = CHOOSE;
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
  gsl_rng *rng = gsl_rng_clone(s->machine.streams.rng[0]);
  if (!rng) return LE_NO_MEMORY;
  le_volumes_sum(n, s->columns, s->columns + n, rest, s->simulations, rng, s->log_volumes, s->log_weights, s->scratch,
                 volumes);
  gsl_rng_free(rng);
  return LE_OK;
}

/* All that are still live die in order, with ever fewer companions. */
static le_status close_chunk(void *self, le_progress *progress)
{
  nested *s = self;
  (void)progress;
  for (size_t k = 0; k < s->live; k++)
    LE_TRY(record(s, s->theta + s->order[k] * s->d, level_of(s, s->order[k]), (double)(s->live - k)));
  s->target.floor = NULL;
  if (s->gradient.rule == LE_GRADIENT_CONTROL && s->gradient.anchored)
    le_gradient_close_chunk(&s->gradient, &s->target);
  s->target.seen += s->target.chunk;
  s->target.chunk = 0;
  if (s->whole) {
    s->machine.phase = FINISHED;
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
  const size_t next = s->machine.store.n == s->target.seen && s->machine.closed ? s->kept : s->live;
  le_normalise(s->reservoir.log_weight, s->reservoir.n, s->weight);
  le_resample(LE_SYSTEMATIC, s->reservoir.n, s->weight, next, s->machine.streams.rng[0], s->work, s->ancestor);
  for (size_t i = 0; i < next; i++)
    memcpy(s->theta + i * s->d, s->reservoir.theta + s->ancestor[i] * s->d, s->d * sizeof(double));
  s->rounds = 0;
  s->step = 0;
  s->machine.phase = FRESHEN;
  return LE_OK;
}

/* Points that were copied part ways before they are asked about the next chunk. */
static le_status freshen(void *self, le_progress *progress)
{
  nested *s = self;
  (void)progress;
  const size_t m = s->machine.store.n == s->target.seen && s->machine.closed ? s->kept : s->live;
  s->target.split = m;
  if (s->step == 0) {
    update_metrics(s);
    if (s->spec->ops->begin) LE_TRY(s->spec->ops->begin(s->kernel, &s->target, m, s->theta, &s->machine.streams));
  }
  LE_TRY(s->spec->ops->move(s->kernel, &s->target, m, s->theta, &s->machine.streams));
  if (++s->step == s->steps) {
    if (s->spec->ops->tune) s->spec->ops->tune(s->kernel);
    s->machine.phase = OPEN_CHUNK;
  }
  return LE_OK;
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
  const double total = s->total ? (double)s->total : (double)s->machine.store.n;
  *rows = (double)s->target.seen;
  if (!s->whole || total <= 0) {
    *share = total > 0 ? (double)s->target.seen / total : 0;
    return;
  }
  if (s->machine.phase == FINISHED) {
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
  le_volumes volumes = {0};
  if (s->whole && s->machine.phase == FINISHED && s->levels.rows > 0) {
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
  out[6] = s->machine.seconds;
  out[7] = volumes.information;
  out[8] = volumes.lower;
  out[9] = volumes.upper;
  out[10] = volumes.published;
  out[11] = volumes.mean;
  le_result_figures(result, sizeof names / sizeof *names, names, out);
  if (s->whole && s->machine.phase == FINISHED && s->levels.rows > 0) {
    le_result_table(result, "levels", LEVEL_COLUMNS, level_names, LEVEL_COLUMNS, s->levels.rows, s->levels.values);
    le_result_array(result, "level_log_weights", 1, s->levels.rows, s->log_weights);
    if (s->keeps) {
      le_result_array(result, "draws", s->d, s->points.rows, s->points.values);
      le_result_array(result, "log_weights", 1, s->levels.rows, s->log_weights);
    } else {
      le_result_array(result, "draws", s->d, s->reservoir.n, s->reservoir.theta);
      le_result_array(result, "log_weights", 1, s->reservoir.n, s->reservoir.log_weight);
    }
    le_result_array(result, "log_volumes", 1, s->levels.rows, s->log_volumes);
  } else {
    le_result_array(result, "draws", s->d, s->machine.phase == FINISHED && s->target.seen > 0 ? s->kept : s->live, s->theta);
  }
  return le_trace_output(&s->trace, trace_names, result);
}

static void nested_archive(void *self, le_archive *archive)
{
  nested *s = self;
  le_archive_expect(archive, s->d);
  le_archive_expect(archive, s->live);
  le_archive_expect(archive, s->kept);
  le_machine_archive(&s->machine, archive);
  if (archive->status != LE_OK) return;
  le_archive_size(archive, &s->target.seen);
  le_archive_size(archive, &s->target.chunk);
  le_archive_size(archive, &s->target.split);
  le_archive_double(archive, &s->target.likelihoods);
  le_archive_double(archive, &s->target.gradients);
  le_archive_size(archive, &s->step);
  le_archive_size(archive, &s->steps);
  double *const figure[] = {&s->floor.value,     &s->floor.tie,    &s->log_volume, &s->log_sum, &s->banked,
                            &s->banked_variance, &s->information, &s->renewal,    &s->echo,    &s->rounds};
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

static const le_phase phases[] = {
  [OPEN_CHUNK] = {"open chunk", open_chunk, 0},
  [CHOOSE] = {"choose", choose, 0},
  [MOVE] = {"move", move, 0},
  [REPLACE] = {"replace", replace, 0},
  [CLOSE_CHUNK] = {"close chunk", close_chunk, 0},
  [FRESHEN] = {"freshen", freshen, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status nested_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  nested *s = le_resize(NULL, sizeof *s);
  if (!s) return LE_NO_MEMORY;
  memset(s, 0, sizeof *s);
  s->machine.context = context;
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
  s->trace.columns = TRACE_COLUMNS;
  s->levels.columns = LEVEL_COLUMNS;
  s->points.columns = s->d;
  le_status status = read_settings(s, problem);
  s->most = s->kept > s->live ? s->kept : s->live;
  if (status == LE_OK)
    status = le_machine_alloc(&s->machine, phases, FINISHED + 1, problem, s->most + 1, context);
  if (status == LE_OK) status = alloc_all(s, problem);
  if (status != LE_OK) {
    nested_free(s);
    return status;
  }
  *self = s;
  return LE_OK;
}

const le_estimator_ops le_nested_estimator = {LE_CONTRACT_VERSION, sizeof(le_estimator_ops), "nested",
                                              {{le_nested_table}, NULL}, nested_alloc, nested_free, nested_start,
                                              le_machine_feed, le_machine_advance, nested_progress, nested_result,
                                              nested_archive, 1};
