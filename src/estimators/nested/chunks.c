/* Chunks of rows: how one begins and ends, and how points are carried to the next. */
#include "estimators/nested/parts.h"

#include "base/logsum.h"
#include "core/resample.h"

#include <math.h>
#include <string.h>

static size_t rows_wanted(const nested *s)
{
  const size_t left = s->machine.store.n - s->target.seen;
  if (s->whole) return left;
  const double part = floor(s->chunk_fraction * (double)s->target.seen);
  const double wanted = fmin(fmax(s->chunk_least, part), s->chunk_most);
  /* any number above `left` says that more rows are wanted than are here */
  return wanted > (double)left ? left + 1 : (size_t)wanted;
}

/* Reads the points of an earlier run: removed points, and those that were live at its end. */
static le_status take_up(nested *s)
{
  const size_t n = s->from_levels->n / LEVEL_COLUMNS, dead = n - s->live;
  if (n < s->live || s->from_theta->n != n * s->d)
    return le_fail(&s->machine.context->error, LE_BAD_ARGUMENT,
                   "A run can only be continued with the same number of live points.");
  for (size_t k = 0; k < n; k++) {
    const double *level = s->from_levels->values + k * LEVEL_COLUMNS,
                 *theta = s->from_theta->values + k * s->d;
    if (k < dead) {
      LE_TRY(le_nested_record(s, theta, level, level[LIVE]));
    } else {
      memcpy(level_of(s, k - dead), level, LEVEL_COLUMNS * sizeof(double));
      memcpy(s->theta + (k - dead) * s->d, theta, s->d * sizeof(double));
    }
  }
  return LE_OK;
}

static void mean_of_points(const nested *s, size_t n, double *mean)
{
  memset(mean, 0, s->d * sizeof(double));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < s->d; j++) mean[j] += s->theta[i * s->d + j] / (double)n;
}

/* Rows may go early if a sample gives the log-likelihood at the points to so many nats. */
static const double EARLY_ERROR = 0.1;

/* After a chunk was added to the rows seen: keeps only a sample of them if they are too many, or if
 * fewer do as well. */
static le_status let_rows_go(nested *s, size_t chunk, size_t points)
{
  const le_model_ops *ops = s->target.ops;
  const int exchangeable = ops->log_symmetry && ops->log_symmetry(s->target.model) > 0,
            must = s->keep && s->target.seen > s->keep,
            in_memory = le_rows_of(&s->target)->readable;
  const size_t looked_at = points < PAST_POINTS ? points : PAST_POINTS;
  if (!le_past_due(&s->past, &s->target) || (exchangeable && !must)) return LE_OK;
  if (exchangeable)
    return le_fail(&s->machine.context->error, LE_UNSUPPORTED,
                   "The model's components can be exchanged, and this method then needs all rows "
                   "in memory: use sgais(), or a larger `keep`.");
  const int anchored = s->gradient.rule == LE_GRADIENT_CONTROL && s->gradient.anchored;
  mean_of_points(s, points, s->work);
  if (in_memory && !must) {
    double error;
    LE_TRY(le_past_try(&s->past, &s->target, &s->machine.store, s->work, looked_at, s->theta,
                       s->machine.streams.order, s->past_work, &error));
    if (!(error <= EARLY_ERROR)) return LE_OK;
  }
  if (in_memory && must) s->past.keep = s->keep;
  LE_TRY(le_past_let_go(&s->past, &s->target, &s->machine.store, chunk,
                        anchored ? &s->gradient : NULL, s->work, s->machine.streams.order));
  double *weight = s->past_work, *work = weight + looked_at;
  memset(weight, 0, looked_at * sizeof(double));
  return le_past_error(&s->past, &s->target, looked_at, s->theta, weight, work, &s->past_se);
}

le_status le_nested_open_chunk(void *self)
{
  nested *s = self;
  const size_t left = s->machine.store.n - s->target.seen;
  const size_t wanted = rows_wanted(s);
  if (left == 0 && s->machine.closed) {
    s->machine.phase = FINISHED;
    return LE_OK;
  }
  /* one row more, so that it is known whether this is the last chunk */
  if (!s->machine.closed && (s->whole || left <= wanted))
    return le_machine_needs_rows(&s->machine);
  s->target.chunk = left < wanted ? left : wanted;
  s->target.lambda = 0;
  s->log_volume = 0;
  s->log_sum = -INFINITY;
  s->levels.rows = 0;
  if (!s->keeps) le_varopt_empty(&s->reservoir);
  if (s->gradient.rule == LE_GRADIENT_CONTROL && s->target.seen > 0) {
    if (!s->gradient.anchored || s->target.seen >= 2 * s->gradient.anchored_rows) {
      mean_of_points(s, s->live, s->work);
      LE_TRY(le_past_move(&s->past, &s->target, s->work));
      LE_TRY(le_gradient_set_anchor(&s->gradient, &s->target, s->work));
    }
    LE_TRY(le_gradient_open_chunk(&s->gradient, &s->target));
  }
  s->filled = 0;
  if (s->keeps && s->from_levels && s->from_theta) {
    LE_TRY(take_up(s));
    s->filled = s->live;
  }
  s->machine.phase = FILL;
  return LE_OK;
}

/* A part takes some tenths of a second, so that a run with very many points can be stopped. */
static const double PART_COST = 2e7; /* points x rows */
enum { PART_LEAST = 100, PART_MOST = 10000 };

le_status le_nested_fill(void *self)
{
  nested *s = self;
  const double part = PART_COST / (double)s->target.chunk;
  const size_t left = s->live - s->filled, first = s->filled, from = s->target.seen;
  size_t n = part < PART_LEAST ? PART_LEAST : part > PART_MOST ? PART_MOST : (size_t)part;
  if (n > left) n = left;
  double *theta = s->theta + first * s->d;
  for (size_t i = 0; i < n && from == 0; i++)
    s->target.ops->draw_prior(s->target.model, s->machine.streams.rng[first + i + 1],
                              theta + i * s->d);
  if (n > 0)
    LE_TRY(le_target_log_lik(&s->target, from, from + s->target.chunk, n, theta, s->value));
  for (size_t i = 0; i < n; i++)
    le_nested_set_level(s, first + i, s->value[i], -INFINITY, 0);
  s->filled += n;
  if (s->filled < s->live) return LE_OK;
  for (size_t i = 0; i < s->live; i++) s->order[i] = i;
  le_nested_sort(s, s->live, s->order, s->source);
  s->machine.phase = CHOOSE;
  return LE_OK;
}

le_status le_nested_close_chunk(void *self)
{
  nested *s = self;
  for (size_t k = 0; k < s->live; k++)
    LE_TRY(le_nested_record(s, s->theta + s->order[k] * s->d, level_of(s, s->order[k]),
                            (double)(s->live - k)));
  s->target.floor = NULL;
  if (s->gradient.rule == LE_GRADIENT_CONTROL && s->gradient.anchored)
    le_gradient_close_chunk(&s->gradient);
  const size_t chunk = s->target.chunk;
  s->target.seen += chunk;
  s->target.chunk = 0;
  if (s->whole) {
    s->machine.phase = FINISHED;
    return LE_OK;
  }
  le_volumes volumes;
  LE_TRY(le_nested_sum_volumes(s, s->live, &volumes));
  s->banked += volumes.log_evidence;
  s->banked_variance += volumes.se * volumes.se;
  s->information += volumes.information;
  LE_TRY(le_nested_add_trace(s));
  double *row = le_trace_last(&s->machine.trace);
  row[1] = s->banked;
  row[2] = banked_se(s);
  /* resample the weighted points of the reservoir to equal weights */
  const size_t next = next_points(s);
  le_varopt_settle(&s->reservoir);
  le_normalise(s->reservoir.log_weight, s->reservoir.n, s->weight);
  le_resample(LE_SYSTEMATIC, s->reservoir.n, s->weight, next, s->machine.streams.rng[0], s->work,
              s->ancestor);
  for (size_t i = 0; i < next; i++)
    memcpy(s->theta + i * s->d, s->reservoir.theta + s->ancestor[i] * s->d, s->d * sizeof(double));
  LE_TRY(let_rows_go(s, chunk, next));
  s->rounds = 0;
  s->step = 0;
  s->machine.phase = FRESHEN;
  return LE_OK;
}
