/* Bridge sampling between posterior draws and a fitted normal density. */
#include "core/bridging.h"

#include "base/linalg.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

void le_bridging_alloc(le_bridging *b, const le_target *target, size_t chains, size_t rounds,
                       size_t batch, le_arena *arena)
{
  const size_t d = target->d;
  memset(b, 0, sizeof *b);
  b->d = d;
  b->chains = chains;
  b->rounds = rounds;
  b->fitted = rounds / 2;
  b->batch = batch < target->m ? batch : target->m;
  b->draws = (rounds - b->fitted) * chains;
  le_mode_alloc(&b->proposal, d, arena);
  b->own = le_arena_doubles(arena, b->draws);
  b->other = le_arena_doubles(arena, b->draws);
  b->theta = le_arena_doubles(arena, b->batch * d);
  b->work = le_arena_doubles(arena, 2 * d + b->batch);
  b->mean = le_arena_doubles(arena, chains);
  b->term = le_arena_doubles(arena, 2 * b->draws);
  b->shape = le_arena_doubles(arena, 2 * d * d);
  b->log_evidence = b->se = b->effective = NAN;
}

static double log_proposal(const le_bridging *b, const double *theta)
{
  const le_mode *p = &b->proposal;
  return le_component_log_normal(b->d, le_cholesky_half_log_det(p->factor, b->d),
                                 le_mode_distance(p, p->centre, theta, b->work));
}

/* Fits mean and precision to the first half of the rounds. */
static le_status fit_proposal(le_bridging *b, const double *theta)
{
  const size_t d = b->d, n = b->fitted * b->chains;
  double *covariance = b->shape;
  le_moments(n, d, d, theta, NULL, b->proposal.centre, covariance, b->work);
  for (size_t k = 0; k < d * d; k++) covariance[k] *= (double)n / ((double)n - 1);
  return le_component_shape(&b->proposal, covariance, covariance + d * d);
}

le_status le_bridging_start(le_bridging *b, le_target *target, const double *theta,
                            const double *log_lik)
{
  const size_t d = b->d, first = b->fitted * b->chains;
  b->drawn = 0;
  b->done = b->failed = 0;
  if (first < d + 2 || fit_proposal(b, theta) != LE_OK) {
    b->done = b->failed = 1;
    return LE_OK;
  }
  for (size_t i = 0; i < b->draws; i++) {
    const double *at = theta + (first + i) * d;
    double prior;
    target->ops->log_prior(target->model, 1, at, &prior);
    b->own[i] = prior + log_lik[first + i] - log_proposal(b, at);
  }
  return LE_OK;
}

/* The variance of the chains' means of these numbers, one for each posterior draw. */
static double variance_of_means(const le_bridging *b, const double *x)
{
  for (size_t c = 0; c < b->chains; c++)
    b->mean[c] = gsl_stats_mean(x + c, b->chains, b->rounds - b->fitted);
  return gsl_stats_variance(b->mean, 1, b->chains);
}

/* The number of independent draws that the chains' draws are worth, from the variance of the
 * chains' means relative to that of means of independent draws. */
static double effective_draws(const le_bridging *b)
{
  const double n = (double)b->draws, within = gsl_stats_variance(b->own, 1, b->draws),
               between = variance_of_means(b, b->own);
  if (!(within > 0) || !(between > 0)) return n;
  return fmin(n, (double)b->chains * within / between);
}

/* The fixed point r of r = mean_q[p / (s1 p + s2 r q)] / mean_p[q / (s1 p + s2 r q)], in logs. */
static void solve(le_bridging *b)
{
  const size_t n = b->draws;
  const double effective = effective_draws(b), s1 = effective / (effective + (double)n),
               s2 = 1 - s1;
  double log_r = gsl_stats_mean(b->own, 1, n), change = INFINITY, top = 1, bottom = 1,
         *of_other = b->term, *of_own = b->term + n;
  for (int iteration = 0; iteration < 1000 && isfinite(log_r) && !(change < 1e-10); iteration++) {
    for (size_t i = 0; i < n; i++) {
      /* the terms, without the factor r: p / (s1 p + s2 r q), and r q / (s1 p + s2 r q) */
      of_other[i] = 1 / (s1 + s2 * exp(log_r - b->other[i]));
      of_own[i] = 1 / (s1 * exp(b->own[i] - log_r) + s2);
    }
    top = gsl_stats_mean(of_other, 1, n);
    bottom = gsl_stats_mean(of_own, 1, n);
    change = fabs(log(top) - log(bottom));
    log_r += log(top) - log(bottom);
  }
  b->log_evidence = log_r;
  b->effective = effective;
  const double of_means = variance_of_means(b, of_own) / (double)b->chains,
               of_draws = gsl_stats_variance_with_fixed_mean(of_other, 1, n, top) / (double)n;
  b->se = sqrt(of_means / (bottom * bottom) + of_draws / (top * top));
  b->failed = !isfinite(b->log_evidence) || !isfinite(b->se);
}

le_status le_bridging_step(le_bridging *b, le_target *target, const gsl_rng *rng)
{
  const size_t d = b->d, n = b->draws;
  if (b->done) return LE_OK;
  const size_t to = b->drawn + b->batch < n ? b->drawn + b->batch : n, count = to - b->drawn;
  for (size_t i = 0; i < count; i++)
    le_component_draw(&b->proposal, INFINITY, rng, b->theta + i * d);
  double *value = b->work + 2 * d;
  LE_TRY(le_target_density(target, count, b->theta, value));
  for (size_t i = 0; i < count; i++) {
    const double *theta = b->theta + i * d;
    b->other[b->drawn + i] = le_target_outside(target, theta) ? -INFINITY
                                                              : value[i] - log_proposal(b, theta);
  }
  b->drawn = to;
  if (to < n) return LE_OK;
  solve(b);
  if (target->labels && target->ops->log_symmetry)
    b->log_evidence += target->ops->log_symmetry(target->model);
  b->done = 1;
  return LE_OK;
}

static const le_field fields[] = {
  LE_UP_TO(le_bridging, drawn, draws), LE_FIELD(le_bridging, done),
  LE_FIELD(le_bridging, failed), LE_FIELD(le_bridging, log_evidence),
  LE_FIELD(le_bridging, se),     LE_FIELD(le_bridging, effective)};

void le_bridging_archive(le_bridging *b, le_archive *archive)
{
  const size_t n = b->draws;
  LE_ARCHIVE_FIELDS(archive, b, fields);
  le_mode_archive(&b->proposal, archive);
  le_archive_doubles(archive, b->own, n);
  le_archive_doubles(archive, b->other, n);
}
