/* Rounds of the refitted proposal: weights, a further component, shares. */
#include "core/refit.h"

#include "base/linalg.h"
#include "base/logsum.h"
#include "base/pareto.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

/* Rounds end at GOOD effective draws of a draw, unless the weights have a Pareto tail above TAIL:
 * then a part of the posterior is covered badly, and the next component goes there. They also end
 * after POOR_MOST rounds that gain less than GAIN. Before HOPE_ROUNDS all is possible. */
static const double GOOD = 0.7, TAIL = 0.7, GAIN = 1.05;
static const double DENSITY_LEAST = 1e-200; /* a smaller sum is made again from the logs */
enum { POOR_MOST = 4, HOPE_ROUNDS = 4, SHARE_ROUNDS = 20, SHAPE_ROUNDS = 2 };
/* Least share of the first proposal, which reaches where the others do not, and of any part. */
static const double FIRST_LEAST = 0.05, PART_LEAST = 1e-4;
/* The first shape of a component is that of the nearest draws: so many for each parameter, and at
 * least this share of a lot. It is made wider by WIDER. */
static const double NEAREST_SHARE = 0.15, WIDER = 1.1, SHRINK = 0.3;
enum { NEAREST_EACH = 4 };

enum { COLUMNS = LE_REFIT_PARTS_MOST + 1 };

le_status le_refit_start(le_refit *r, size_t d, size_t lot, le_arena *arena)
{
  const size_t n = lot * COLUMNS, work = 2 * n + 3 * d * d + 4 * d;
  le_release(r->theta);
  r->d = d;
  r->lot = lot;
  r->room = n;
  r->n = r->poor = 0;
  r->done = 0;
  r->now = r->best = (le_refit_mixture){.share = {1}};
  memset(r->drawn, 0, sizeof r->drawn);
  r->theta = le_resize(NULL, (n * (d + 3 + 2 * COLUMNS) + work) * sizeof(double));
  for (size_t j = 0; j < LE_REFIT_PARTS_MOST && !r->part[j].theta; j++)
    le_mode_alloc(&r->part[j], d, arena);
  if (!r->theta || arena->failed) return LE_NO_MEMORY;
  r->value = r->theta + n * d;
  r->column = r->value + n;
  r->density = r->column + n * COLUMNS;
  r->top = r->density + n * COLUMNS;
  r->weight = r->top + n;
  r->work = r->weight + n;
  return LE_OK;
}

void le_refit_free(le_refit *r)
{
  le_release(r->theta);
  r->theta = NULL;
}

/* Log density of a draw under a mixture with these shares of the components. */
static double mixed(const double *column, const double *share, size_t parts)
{
  double most = -INFINITY, sum = 0;
  for (size_t j = 0; j <= parts; j++)
    if (share[j] > 0) most = fmax(most, column[j]);
  if (most == -INFINITY) return most;
  for (size_t j = 0; j <= parts; j++)
    if (share[j] > 0) sum += share[j] * exp(column[j] - most);
  return most + log(sum);
}

/* Densities of draw i under the components, relative to the largest of them. */
static double *density_of(const le_refit *r, size_t i) { return r->density + i * COLUMNS; }

/* Once in a round, as everything that follows takes sums of the densities with several shares. */
static void set_densities(le_refit *r)
{
  const size_t parts = r->now.parts;
  for (size_t i = 0; i < r->n; i++) {
    const double *column = le_refit_column(r, i);
    double *density = density_of(r, i), top = column[0];
    for (size_t j = 1; j <= parts; j++) top = column[j] > top ? column[j] : top;
    for (size_t j = 0; j <= parts; j++) density[j] = column[j] == top ? 1 : exp(column[j] - top);
    r->top[i] = top;
  }
}

static double shared_density(const double *density, const double *share, size_t parts)
{
  double sum = 0;
  for (size_t j = 0; j <= parts; j++) sum += share[j] * density[j];
  return sum;
}

/* As mixed(), from the densities of this round. */
static double mixed_now(const le_refit *r, size_t i, const double *share, size_t parts)
{
  const double sum = shared_density(density_of(r, i), share, parts);
  return sum > DENSITY_LEAST ? r->top[i] + log(sum) : mixed(le_refit_column(r, i), share, parts);
}

/* Normalised weights of all draws, by the mixture of the proposals that they came from; returns the
 * log of the mean weight. */
static double weigh(le_refit *r)
{
  double share[COLUMNS], *log_weight = r->work;
  const size_t parts = r->now.parts;
  for (size_t j = 0; j <= parts; j++) share[j] = r->drawn[j] / (double)r->n;
  set_densities(r);
  for (size_t i = 0; i < r->n; i++) {
    log_weight[i] = r->value[i] - mixed_now(r, i, share, parts);
    if (!(log_weight[i] < INFINITY)) log_weight[i] = -INFINITY; /* also NaN */
  }
  return le_normalise(log_weight, r->n, r->weight) - log((double)r->n);
}

/* Sets what a mixture is worth from the draws so far. */
static void appraise(const le_refit *r, le_refit_mixture *mixture, double log_evidence)
{
  double sum = 0;
  for (size_t i = 0; i < r->n; i++) {
    if (!(r->weight[i] > 0)) continue;
    const double q = mixed_now(r, i, mixture->share, mixture->parts);
    sum += r->weight[i] * exp(r->value[i] - q - log_evidence);
  }
  mixture->worth = 1 / sum;
}

/* Sets the shape of a component from its covariance, which is overwritten, as is `work` (d x d). */
static int set_shape(le_mode *part, size_t d, double *covariance, double *work)
{
  for (size_t j = 0; j < d; j++) covariance[j * d + j] *= 1 + 1e-9;
  return le_component_shape(part, covariance, work) == LE_OK;
}

/* The first shape: that of the draws nearest to the centre, on the scale of all weighted draws. */
static int first_shape(le_refit *r, le_mode *part)
{
  const size_t d = r->d, n = r->n;
  double *distance = r->work, *local = distance + n, *covariance = local + n,
         *inverse = covariance + d * d, *mean = inverse + 2 * d * d, *work = mean + d;
  if (le_moments(n, d, d, r->theta, r->weight, mean, covariance, work) == 0) return 0;
  if (!set_shape(part, d, covariance, inverse)) {
    memset(part->precision, 0, d * d * sizeof(double));
    for (size_t j = 0; j < d; j++) part->precision[j * d + j] = 1;
  }
  for (size_t i = 0; i < n; i++)
    distance[i] = le_mode_distance(part, part->centre, r->theta + i * d, work);
  const size_t wanted = (size_t)fmax((double)(NEAREST_EACH * (d + 1)),
                                     NEAREST_SHARE * (double)r->lot),
               nearest = wanted < n ? wanted : n;
  memcpy(local, distance, n * sizeof(double));
  const double within = gsl_stats_select(local, 1, n, nearest - 1);
  for (size_t i = 0; i < n; i++)
    local[i] = distance[i] <= within ? 0.5 * (r->weight[i] + 1 / (double)n) : 0;
  le_moments(n, d, d, r->theta, local, mean, covariance, work);
  return set_shape(part, d, covariance, inverse);
}

static void fill_column(le_refit *r, size_t number, size_t from)
{
  const le_mode *part = &r->part[number - 1];
  const double half_log_det = le_cholesky_half_log_det(part->factor, r->d);
  const le_component_t t = le_component_t_of(r->d, LE_REFIT_FREEDOM);
  for (size_t i = from; i < r->n; i++) {
    const double q = le_mode_distance(part, part->centre, r->theta + i * r->d, r->work);
    le_refit_column(r, i)[number] = le_component_log_t(&t, half_log_det, q);
  }
}

/* EM for the shares, with the densities as they are. */
static void fit_shares(le_refit *r)
{
  const size_t parts = r->now.parts;
  double sum[COLUMNS], *share = r->now.share;
  for (size_t round = 0; round < SHARE_ROUNDS; round++) {
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < r->n; i++) {
      if (!(r->weight[i] > 0)) continue;
      const double *density = density_of(r, i),
                   each = r->weight[i] / shared_density(density, share, parts);
      for (size_t j = 0; j <= parts; j++) sum[j] += each * share[j] * density[j];
    }
    double total = 0;
    for (size_t j = 0; j <= parts; j++)
      total += sum[j] = fmax(sum[j], j ? PART_LEAST : FIRST_LEAST);
    for (size_t j = 0; j <= parts; j++) share[j] = sum[j] / total;
  }
}

/* Moves and shapes the newest component by the draws that it explains. Returns 0 if they have no
 * positive definite covariance. */
static int reshape(le_refit *r)
{
  const size_t d = r->d, number = r->now.parts;
  const double *share = r->now.share;
  double *own = r->work + r->n, *covariance = own + r->n, *work = covariance + d * d,
         *before = work + d * d, *mean = before + d * d;
  le_mode *part = &r->part[number - 1];
  for (size_t i = 0; i < r->n; i++) {
    const double *column = le_refit_column(r, i);
    own[i] = r->weight[i] > 0 ? r->weight[i] * share[number] *
                                    exp(column[number] - mixed(column, share, number))
                              : 0;
  }
  const double effective = le_moments(r->n, d, d, r->theta, own, mean, covariance, work);
  if (effective < 2 * (double)(d + 1)) return 1;
  /* few effective draws: part of the old shape stays */
  const double old = SHRINK * fmin(1, 3 * (double)d / effective);
  memcpy(before, part->precision, d * d * sizeof(double));
  if (le_invert(before, d, work) != LE_OK) return 1;
  for (size_t k = 0; k < d * d; k++)
    covariance[k] = (1 - old) * WIDER * covariance[k] + old * before[k];
  memcpy(part->centre, mean, d * sizeof(double));
  if (!set_shape(part, d, covariance, work)) return 0;
  fill_column(r, number, 0);
  return 1;
}

/* A component at the draw of largest weight, which is then reshaped. */
static int add_part(le_refit *r)
{
  const size_t d = r->d, number = r->now.parts + 1;
  le_mode *part = &r->part[number - 1];
  const size_t top = gsl_stats_max_index(r->weight, 1, r->n);
  memcpy(part->centre, r->theta + top * d, d * sizeof(double));
  if (!first_shape(r, part)) return 0;
  r->now.parts = number;
  fill_column(r, number, 0);
  for (size_t j = 0; j < number; j++) r->now.share[j] *= 0.8;
  r->now.share[number] = 0.2;
  for (size_t round = 0; round < SHAPE_ROUNDS; round++)
    if (!reshape(r)) return 0;
  return 1;
}

/* Fits the shares, and keeps the mixture if it is the best so far. */
static void judge(le_refit *r)
{
  const double log_evidence = weigh(r);
  fit_shares(r);
  appraise(r, &r->now, log_evidence);
  /* draws in a part that was missed so far change what the best mixture is worth */
  if (r->best.worth > 0) appraise(r, &r->best, log_evidence);
  r->poor = r->now.worth > GAIN * r->best.worth ? 0 : r->poor + 1;
  if (r->now.worth > r->best.worth) r->best = r->now;
}

/* Whether the best mixture so far is too poor, if each component gains as much as those so far. */
static int is_hopeless(const le_refit *r, double least)
{
  return r->now.parts >= HOPE_ROUNDS &&
         r->best.worth * LE_REFIT_PARTS_MOST < least * (double)r->now.parts;
}

/* After judge(): whether the best mixture is good, and the weights have no heavy tail. */
static int is_good(const le_refit *r)
{
  return r->best.worth > GOOD && !(le_pareto_tail(r->work, r->n, r->density).k > TAIL);
}

void le_refit_round(le_refit *r, double least)
{
  const size_t from = r->n;
  r->n += r->lot;
  for (size_t j = 0; j <= r->now.parts; j++) r->drawn[j] += (double)r->lot * r->now.share[j];
  for (size_t j = 1; j <= r->now.parts; j++) fill_column(r, j, from);
  weigh(r);
  const int room = r->now.parts < LE_REFIT_PARTS_MOST && r->n + r->lot <= r->room;
  r->done = room && !add_part(r);
  if (!r->done) {
    judge(r);
    r->done = !room || is_good(r) || r->poor >= POOR_MOST || is_hopeless(r, least);
  }
  if (r->done && r->best.worth > 0) r->now = r->best;
}

static const le_field fields[] = {LE_UP_TO(le_refit, n, room), LE_FIELD(le_refit, poor),
                                  LE_FIELD(le_refit, done),
                                  LE_WITHIN(le_refit, now.parts, 0, LE_REFIT_PARTS_MOST),
                                  LE_FIELD(le_refit, now.worth),
                                  LE_WITHIN(le_refit, best.parts, 0, LE_REFIT_PARTS_MOST),
                                  LE_FIELD(le_refit, best.worth)};

void le_refit_archive(le_refit *r, size_t d, le_arena *arena, le_archive *archive)
{
  int under_way = r->theta != NULL;
  size_t lot = r->lot;
  le_archive_flag(archive, &under_way);
  if (!under_way || archive->status != LE_OK) return;
  le_archive_count(archive, &lot, (d + 1) * sizeof(double));
  le_archive_require(archive, lot > 0);
  if (!archive->writing && archive->status == LE_OK)
    archive->status = le_refit_start(r, d, lot, arena);
  LE_ARCHIVE_FIELDS(archive, r, fields);
  le_archive_require(archive, r->done || r->n + lot <= r->room);
  if (archive->status != LE_OK) return;
  le_archive_doubles(archive, r->now.share, COLUMNS);
  le_archive_doubles(archive, r->best.share, COLUMNS);
  le_archive_doubles(archive, r->drawn, COLUMNS);
  le_archive_doubles(archive, r->theta, r->n * d);
  le_archive_doubles(archive, r->value, r->n);
  le_archive_doubles(archive, r->column, r->n * COLUMNS);
  for (size_t j = 0; j < LE_REFIT_PARTS_MOST; j++) le_mode_archive(&r->part[j], archive);
}
