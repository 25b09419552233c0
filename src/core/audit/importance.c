/* Draws from the proposal, their weights, and the estimate.
 *
 * Draws are stratified over the components (draw k comes from the component whose cumulated
 * share contains (k + 1/2) / n) and weighted by the density of the whole mixture. */
#include "core/audit/parts.h"

#include "base/linalg.h"
#include "base/logsum.h"
#include "base/pareto.h"
#include "core/schedule.h"

#include <math.h>
#include <string.h>

/* Largest power of the weights, so that some annealing remains if weights are even but for a
 * tail. */
static const double TEMPERED_MOST = 0.5;

/* The component of a draw: all lots have the same strata. Draws in two steps have none. */
static size_t part_of_draw(const le_audit *a, size_t draw)
{
  return a->in_two_steps ? 0 : le_component_stratum(a->share, a->parts, draw % a->lot, a->lot);
}

/* Relative variance of the mean of normalised weights. Draws are stratified over the components, so
 * only differences within a component count: with a wide component the variance of all weights
 * together is up to eight times as large. A component with one draw is compared with all draws. */
static double variance_of_mean(const le_audit *a, const double *weight)
{
  const size_t n = a->draws, parts = a->parts > 0 ? a->parts : 1;
  double *sum = a->term, *size = sum + parts, variance = 0;
  memset(sum, 0, 2 * parts * sizeof(double));
  for (size_t i = 0; i < n; i++) {
    const size_t k = part_of_draw(a, i);
    size[k]++;
    sum[k] += weight[i];
  }
  for (size_t i = 0; i < n; i++) {
    const size_t k = part_of_draw(a, i);
    const double m = size[k], away = weight[i] - (m > 1 ? sum[k] / m : 1 / (double)n);
    variance += away * away * (m > 1 ? m / (m - 1) : 1);
  }
  return variance;
}

/* The share of the estimate in parts of the proposal of which few draws have weight: the overall
 * effective sample size hides them, and their masses are hardly known. */
static double thin_share(const le_audit *a, const double *weight)
{
  const size_t parts = a->parts > 0 ? a->parts : 1;
  double *sum = a->term, *squares = sum + parts, share = 0;
  memset(sum, 0, 2 * parts * sizeof(double));
  for (size_t i = 0; i < a->draws; i++) {
    const size_t k = part_of_draw(a, i);
    sum[k] += weight[i];
    squares[k] += weight[i] * weight[i];
  }
  for (size_t k = 0; k < parts; k++)
    if (sum[k] > LE_AUDIT_LIMITS.thin_share &&
        sum[k] * sum[k] < LE_AUDIT_LIMITS.thin_ess * squares[k])
      share += sum[k];
  return share;
}

void le_audit_finish(le_audit *a, const le_target *target)
{
  const size_t n = a->draws;
  double *weight = a->work;
  for (size_t i = 0; i < n; i++)
    if (isnan(a->log_weight[i])) a->log_weight[i] = -INFINITY;
  const double total = le_normalise(a->log_weight, n, weight);
  a->phase = LE_AUDIT_DONE;
  a->failed = !isfinite(total);
  if (a->failed) return;
  a->log_evidence = total - log((double)n) + le_audit_orbit(target, &a->mode[0]);
  a->effective_size = 1 / le_dot(weight, weight, n);
  a->ideal_size = a->refitted ? LE_AUDIT_REFIT_IDEAL * (double)n
                              : a->ideal_sum * a->ideal_sum / a->ideal_squares;
  /* half of the relative variance of the mean weight is the mean error of its logarithm */
  const double relative = variance_of_mean(a, weight);
  a->thin = thin_share(a, weight);
  a->log_evidence += 0.5 * relative;
  const le_pareto tail = le_pareto_tail(a->log_weight, n, a->work);
  a->pareto_k = tail.k;
  a->unseen = tail.unseen;
  a->se = hypot(sqrt(relative), tail.unseen);
}

int le_audit_temper(le_audit *a, const le_target *target, double *lambda, double *log_integral,
                    double *variance, double *weight)
{
  const size_t n = a->draws;
  const double symmetry = le_audit_symmetry(target);
  /* if some components of the mode are equal, relabelled draws have other densities under the
   * proposal */
  if (a->failed || a->in_two_steps || a->modes > 1 ||
      le_audit_orbit(target, &a->mode[0]) != symmetry ||
      le_schedule_adaptive(a->log_weight, NULL, n, LE_AUDIT_UNEVEN * a->ideal_size, 0, lambda) !=
        LE_OK)
    return 0;
  *lambda = fmin(*lambda, TEMPERED_MOST);
  for (size_t i = 0; i < n; i++) weight[i] = *lambda * a->log_weight[i];
  *log_integral = le_normalise(weight, n, weight) - log((double)n) + symmetry;
  *variance = variance_of_mean(a, weight);
  return isfinite(*log_integral);
}

/* Another lot is drawn if weights are uneven and its cost is small. */
static int wants_more(const le_audit *a, const le_target *target)
{
  const size_t draws = a->draws + a->lot;
  return !a->failed && !a->by_part && draws <= a->room &&
         (double)draws * (double)le_store_sample(target->store, target->seen) <= a->work_least &&
         !(a->effective_size >= LE_AUDIT_UNEVEN * a->ideal_size);
}

/* The weight of draw i, whose log density is `value`. */
static void weigh(le_audit *a, const le_target *target, size_t i, double value)
{
  double *theta = a->theta + i * a->d, normal;
  const double proposal = le_audit_log_densities(a, target, theta, &normal, a->work),
               ideal = exp(normal - proposal);
  a->log_weight[i] += value - proposal;
  a->ideal_sum += ideal;
  a->ideal_squares += ideal * ideal;
  if (le_audit_relabel(a, target, theta)) a->log_weight[i] = -INFINITY;
}

le_status le_audit_draw(le_audit *a, le_target *target, const gsl_rng *rng)
{
  const size_t d = a->d, from = a->drawn, first = part_of_draw(a, from),
               most = from + a->batch < a->draws ? from + a->batch : a->draws;
  size_t to = from;
  for (; to < most; to++) {
    const size_t part = part_of_draw(a, to);
    if (a->by_part && part != first) break;
    const double nu = le_audit_freedom(a, part, rng);
    a->log_weight[to] =
      le_audit_draw_from(a, target, part, nu, rng, a->theta + to * d) ? 0 : -INFINITY;
  }
  const double *theta = a->theta + from * d;
  LE_TRY(a->by_part ? le_audit_densities_by_part(a, target, first, to - from, theta, a->value)
                    : le_target_density(target, to - from, theta, a->value));
  for (size_t i = from; i < to; i++) weigh(a, target, i, a->value[i - from]);
  a->drawn = to;
  if (to < a->draws) return LE_OK;
  le_audit_finish(a, target);
  if (!wants_more(a, target)) return LE_OK;
  a->draws += a->lot;
  a->phase = LE_AUDIT_DRAW;
  return LE_OK;
}
