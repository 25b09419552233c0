/* A round of nested sampling: the points of lowest likelihood are replaced by copies of others,
 * which are then moved under the constraint. */
#include "estimators/nested/parts.h"

#include <math.h>
#include <string.h>

/* Relabels all live points to be nearest to the best one; the prior is the same for all
 * labellings. */
static void common_labels(nested *s)
{
  if (!s->target.ops->relabel) return;
  memcpy(s->labels, s->theta + s->order[s->live - 1] * s->d, s->d * sizeof(double));
  s->target.labels = s->labels;
  for (size_t i = 0; i < s->live; i++)
    s->target.ops->relabel(s->target.model, s->labels, s->theta + i * s->d);
}

/* Finds clusters of points, such as the modes of a posterior; distances are measured relative to
 * the spread of a point's cluster. */
static void find_clusters(nested *s)
{
  if (s->rounds == 0 || s->states.ops) {
    le_clusters_join(&s->clusters, s->live);
    return;
  }
  for (size_t i = 0; i < s->live; i++)
    le_metric_whiten(&s->metric[0], s->theta + i * s->d, s->apart + i * s->d);
  le_clusters_find(&s->clusters, s->live, s->apart);
}

/* The metric for walkers that copy a point of one half is made from the other half. */
static void update_metrics(nested *s)
{
  if (s->metric_kind == LE_METRIC_IDENTITY) return;
  const size_t half = s->live / 2;
  for (int k = 0; k < 2; k++) {
    /* half of very few points is too little to estimate a scale: use all, in spite of the bias */
    const size_t from = k == 0 && s->live >= 8 ? half : 0,
                 to = k == 1 && s->live >= 8 ? half : s->live;
    const size_t used = le_clusters_residuals(&s->clusters, from, to, s->theta, s->apart);
    for (size_t i = 0; i < used; i++) s->weight[i] = 1 / (double)used;
    if (used > 1) le_metric_set_particles(&s->metric[k], used, s->apart, s->weight, NULL);
  }
}

/* Chooses the points to copy: random survivors, those of the first half first. */
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
  /* all points so far have likelihood zero, so there is no sum yet */
  if (!(s->log_sum > -INFINITY)) return 0;
  /* in this order, because the volume would be lost in rounding beside a huge likelihood */
  return (le_nested_best(s) - s->log_sum) + s->log_volume < log(s->tol);
}

/* While all points have likelihood zero, the search ends after every live point has been replaced
 * about this many times. */
static const double impossible_nats = 5;

/* A run is stopped if the posterior is narrower than the prior by more than this number of nats,
 * plus the second number for each dimension: it would take hours, and its standard error would be
 * several nats. */
static const double endless_nats = 1000, endless_nats_each = 50;

static le_status give_up(const nested *s)
{
  if (le_nested_best(s) == INFINITY)
    return le_fail(&s->machine.context->error, LE_NOT_FINITE,
                   "The likelihood of the observations is infinite at some points of the prior.");
  if (!(-s->log_volume > endless_nats + endless_nats_each * (double)s->d)) return LE_OK;
  return le_fail(&s->machine.context->error, LE_STALLED,
                 "The volume has shrunk by %.0f nats and the points have not reached the posterior "
                 "of the observations up to number %.0f: the likelihood is too narrow compared "
                 "with %s. Are the columns scaled, or is a row an outlier?",
                 -s->log_volume, (double)(s->target.seen + s->target.chunk),
                 s->target.seen > 0 ? "the posterior of the rows before" : "the prior");
}

static le_status begin_moves(nested *s, size_t m, double *theta)
{
  return le_kernel_begin(s->kernel, &s->target, m, theta, &s->machine.streams);
}

/* Moves these points once; after the last move phase `next` begins. */
static le_status one_move(nested *s, size_t m, double *theta, nested_phase next)
{
  LE_TRY(s->spec->ops->move(s->kernel, &s->target, m, theta, &s->machine.streams));
  if (s->kernel->unfinished) return LE_OK;
  if (++s->step < s->steps) return LE_OK;
  le_kernel_tune(s->kernel);
  s->machine.phase = (int)next;
  return LE_OK;
}

le_status le_nested_choose(void *self)
{
  nested *s = self;
  if (le_nested_best(s) == -INFINITY && -s->log_volume > impossible_nats)
    return le_fail(
      &s->machine.context->error, LE_ALL_IMPOSSIBLE,
      "No point of the prior gives the observations a positive probability, in %.0f draws.",
      s->rounds * (double)s->batch);
  if (finished_climbing(s)) {
    s->machine.phase = CLOSE_CHUNK;
    return LE_OK;
  }
  LE_TRY(give_up(s));
  for (size_t b = 0; b < s->batch; b++) {
    const size_t i = s->order[b];
    LE_TRY(le_nested_record(s, s->theta + i * s->d, level_of(s, i), (double)(s->live - b)));
  }
  if ((size_t)s->rounds % (s->live / s->batch + 1) == 0) {
    common_labels(s);
    find_clusters(s);
  }
  const double *wall = level_of(s, s->order[s->batch - 1]);
  s->floor.value = wall[LOG_LIK];
  s->floor.tie = wall[TIE];
  update_metrics(s);
  choose_sources(s);
  s->target.floor = &s->floor;
  s->step = 0;
  s->machine.phase = MOVE;
  return begin_moves(s, s->batch, s->walker);
}

le_status le_nested_move(void *self)
{
  nested *s = self;
  return one_move(s, s->batch, s->walker, REPLACE);
}

le_status le_nested_freshen(void *self)
{
  nested *s = self;
  const size_t m = next_points(s);
  s->target.split = m;
  if (s->step == 0) {
    update_metrics(s);
    LE_TRY(begin_moves(s, m, s->theta));
  }
  return one_move(s, m, s->theta, OPEN_CHUNK);
}

static const double renewal_least = 0.87, renewal_most = 0.94, far_away = 16;

/* How far walkers have moved relative to the distance of two independent points of their cluster: 1
 * is an independent draw, 0 is a copy. */
static double renewal(nested *s)
{
  const size_t d = s->d;
  double sum = 0;
  if (s->states.ops) return NAN; /* distances between latent labels have no meaning */
  le_clusters_spread(&s->clusters, s->live, s->theta);
  for (size_t b = 0; b < s->batch; b++) {
    const double *variance = s->clusters.variance + s->clusters.label[s->source[b]] * d;
    double share = 0;
    int left = 0; /* moved to another cluster */
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

/* `echo` is the correlation of the likelihood ranks of copies and their sources: 1 if copies do not
 * move, 0 if their likelihood is independent of that of the source, even if they are still near it,
 * as on a thin ring of equal likelihood. */

/* More moves if copies stay near their sources, fewer if they are as good as independent draws. */
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

/* The share of the survivors below `level`; a tie counts at random. */
static double rank_among(const nested *s, const double *level, size_t from)
{
  return ((double)le_nested_count_below(s, level, from) +
          gsl_rng_uniform(s->machine.streams.rng[0])) /
         (double)(s->live - from + 1);
}

le_status le_nested_replace(void *self)
{
  nested *s = self;
  const size_t d = s->d;
  double echo = 0;
  adapt_steps(s);
  LE_TRY(le_target_log_lik(&s->target, s->target.seen, s->target.seen + s->target.chunk, s->batch,
                           s->walker, s->value));
  for (size_t b = 0; b < s->batch; b++) {
    const size_t i = s->order[b];
    const double source =
      ((double)le_nested_count_below(s, level_of(s, s->source[b]), s->batch) + 0.5) /
      (double)(s->live - s->batch);
    memcpy(s->theta + i * d, s->walker + b * d, d * sizeof(double));
    s->clusters.label[i] = s->clusters.label[s->source[b]];
    le_nested_set_level(s, i, s->value[b], s->floor.value, s->floor.tie);
    level_of(s, i)[RANK] = rank_among(s, level_of(s, i), s->batch);
    echo += 12 * (source - 0.5) * (level_of(s, i)[RANK] - 0.5) / (double)s->batch;
  }
  s->echo = s->rounds == 0 ? echo : s->echo + 0.2 * (echo - s->echo);
  memcpy(s->source, s->order, s->batch * sizeof *s->source);
  memmove(s->order, s->order + s->batch, (s->live - s->batch) * sizeof *s->order);
  le_nested_insert(s, s->source);
  s->rounds++;
  if (s->whole) LE_TRY(le_nested_add_trace(s));
  s->machine.phase = CHOOSE;
  return LE_OK;
}
