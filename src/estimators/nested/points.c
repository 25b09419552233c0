/* Live and removed points: their order, their constraints, the volumes that they represent, and the
 * trace and result of a run. */
#include "estimators/nested/parts.h"

#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* Order by likelihood; points of equal likelihood by label. */
static int below(const double *a, const double *b)
{
  return a[LOG_LIK] != b[LOG_LIK] ? a[LOG_LIK] < b[LOG_LIK] : a[TIE] < b[TIE];
}

/* Merges [0, half) and [half, n), which are sorted. */
static void merge(const nested *s, size_t half, size_t n, const size_t *from, size_t *to)
{
  size_t a = 0, b = half;
  for (size_t k = 0; k < n; k++) {
    const int second =
      a == half || (b < n && below(level_of(s, from[b]), level_of(s, from[a])));
    to[k] = second ? from[b++] : from[a++];
  }
}

void le_nested_sort(const nested *s, size_t n, size_t *order, size_t *spare)
{
  for (size_t run = 1; run < n; run *= 2) {
    for (size_t at = 0; at < n; at += 2 * run) {
      const size_t size = n - at < 2 * run ? n - at : 2 * run;
      merge(s, size < run ? size : run, size, order + at, spare + at);
    }
    memcpy(order, spare, n * sizeof *order);
  }
}

void le_nested_insert(nested *s, size_t *fresh)
{
  size_t old = s->live - s->batch, left = s->batch;
  le_nested_sort(s, left, fresh, s->order + old);
  for (size_t k = s->live; left > 0; k--) {
    const int higher =
      old == 0 || !below(level_of(s, fresh[left - 1]), level_of(s, s->order[old - 1]));
    s->order[k - 1] = higher ? fresh[--left] : s->order[--old];
  }
}

void le_nested_set_level(nested *s, size_t i, double log_lik, double birth, double birth_tie)
{
  double *level = level_of(s, i);
  const gsl_rng *rng = s->machine.streams.rng[0];
  level[LOG_LIK] = isnan(log_lik) ? -INFINITY : log_lik;
  level[BIRTH] = birth;
  level[BIRTH_TIE] = birth_tie;
  /* a label is uniform, and above that of the constraint if the likelihood equals it */
  level[TIE] = gsl_rng_uniform_pos(rng);
  if (level[LOG_LIK] == birth) level[TIE] = birth_tie + (1 - birth_tie) * level[TIE];
  level[RANK] = NAN;
  level[LIVE] = 0;
}

size_t le_nested_count_below(const nested *s, const double *level, size_t from)
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

le_status le_nested_record(nested *s, const double *theta, const double *level, double live)
{
  LE_TRY(le_trace_add(&s->levels, level));
  le_trace_last(&s->levels)[LIVE] = live;
  const double before = s->log_volume;
  s->log_volume -= 1 / live;
  /* the volume between the constraint of this point and the last one */
  const double term = level[LOG_LIK] + before + log(-expm1(s->log_volume - before));
  const double terms[2] = {s->log_sum, term};
  s->log_sum = le_logsumexp(terms, 2);
  if (s->keeps) return le_trace_add(&s->points, theta);
  le_varopt_add(&s->reservoir, theta, term, s->machine.streams.rng[0]);
  return LE_OK;
}

double le_nested_best(const nested *s)
{
  return level_of(s, s->order[s->live - 1])[LOG_LIK];
}

le_status le_nested_sum_volumes(nested *s, size_t rest, le_volumes *volumes)
{
  const size_t n = s->levels.rows;
  double *sums = le_resize(s->sums, (5 * n + 1) * sizeof(double));
  if (!sums) return LE_NO_MEMORY;
  double *log_lik = sums + 2 * n, *live = log_lik + n, *work = live + n;
  s->sums = s->log_volumes = sums;
  s->log_weights = sums + n;
  for (size_t k = 0; k < n; k++) {
    log_lik[k] = s->levels.values[k * LEVEL_COLUMNS + LOG_LIK];
    live[k] = s->levels.values[k * LEVEL_COLUMNS + LIVE];
  }
  /* a copy of the stream, so that asking for a result does not change the run */
  gsl_rng *rng = gsl_rng_clone(s->machine.streams.rng[0]);
  if (!rng) return LE_NO_MEMORY;
  le_volumes_sum(n, log_lik, live, rest, s->simulations, rng, s->log_volumes, s->log_weights, work,
                 volumes);
  gsl_rng_free(rng);
  return LE_OK;
}

/* ---- the trace and the result ---- */

static const char *const level_names[LEVEL_COLUMNS] = {"log_lik",   "tie",  "birth",
                                                       "birth_tie", "rank", "live"};
const char *const le_nested_columns[] = {
  "n", "log_evidence", "se", "steps", "ess", "acceptance", "step_size", "particles",
  "evaluations", "seconds", "log_lik", "log_volume", "renewal", "echo", NULL};

le_status le_nested_add_trace(nested *s)
{
  const double rest[2] = {s->log_sum, le_nested_best(s) + s->log_volume};
  const double row[] = {(double)(s->target.seen + s->target.chunk),
                        s->banked + le_logsumexp(rest, 2),
                        sqrt(pow(banked_se(s), 2) + fmax(-s->log_volume, 0) / (double)s->live),
                        (double)s->steps,
                        (double)s->live,
                        s->kernel->acceptance,
                        s->kernel->step,
                        (double)s->live,
                        s->target.likelihoods + s->target.gradients,
                        s->machine.seconds,
                        s->floor.value,
                        s->log_volume,
                        s->renewal,
                        s->echo};
  return le_trace_add(&s->machine.trace, row);
}

le_status le_nested_result(void *self, le_result *result)
{
  nested *s = self;
  const int summed = s->whole && s->machine.phase == FINISHED && s->levels.rows > 0;
  le_volumes v = {.log_evidence = s->banked, .se = sqrt(s->banked_variance), .lower = NAN,
                  .upper = NAN, .published = NAN, .mean = NAN, .information = s->information};
  if (summed) LE_TRY(le_nested_sum_volumes(s, s->live, &v));
  const le_figure figures[] = {
    {"log_evidence", v.log_evidence}, {"se", v.se}, {"n", (double)s->target.seen},
    {"lambda_steps", s->rounds}, {"likelihoods", s->target.likelihoods},
    {"gradients", s->target.gradients}, {"seconds", s->machine.seconds},
    {"information", v.information}, {"lower", v.lower}, {"upper", v.upper},
    {"published", v.published}, {"simulated", v.mean}};
  le_result_figures(result, LE_TABLE(figures));
  if (!le_rows_of(&s->target)->readable) {
    const le_figure past[] = {{"past_se", s->past_se}, {"past_changed", 0}};
    le_result_figures(result, LE_TABLE(past));
  }
  if (summed) {
    const size_t n = s->levels.rows;
    le_varopt_settle(&s->reservoir);
    le_result_table(result, "levels", LEVEL_COLUMNS, level_names, LEVEL_COLUMNS, n,
                    s->levels.values);
    le_result_array(result, "level_log_weights", 1, n, s->log_weights);
    le_result_array(result, "draws", s->d, s->keeps ? n : s->reservoir.n,
                    s->keeps ? s->points.values : s->reservoir.theta);
    le_result_array(result, "log_weights", 1, s->keeps ? n : s->reservoir.n,
                    s->keeps ? s->log_weights : s->reservoir.log_weight);
    le_result_array(result, "log_volumes", 1, n, s->log_volumes);
  } else {
    le_result_array(result, "draws", s->d,
                    s->machine.phase == FINISHED && s->target.seen > 0 ? s->kept : s->live,
                    s->theta);
  }
  return LE_OK;
}
