/* Bridge sampling between posterior draws and a fitted normal density. */
#include "core/bridging.h"

#include "base/linalg.h"
#include "base/logsum.h"

#include <math.h>
#include <string.h>

static const double log_two_pi = 1.8378770664093454836;

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
  b->log_evidence = b->se = b->effective = NAN;
}

static double log_proposal(const le_bridging *b, const double *theta)
{
  const le_mode *p = &b->proposal;
  return le_cholesky_half_log_det(p->factor, b->d) - 0.5 * (double)b->d * log_two_pi -
         0.5 * le_mode_distance(p, p->centre, theta, b->work);
}

/* Fits mean and precision to the first half of the rounds. */
static le_status fit_proposal(le_bridging *b, const double *theta)
{
  const size_t d = b->d, n = b->fitted * b->chains;
  double *centre = b->proposal.centre, *precision = b->proposal.precision,
         *covariance = b->proposal.factor;
  memset(centre, 0, d * sizeof(double));
  memset(covariance, 0, d * d * sizeof(double));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) centre[j] += theta[i * d + j] / (double)n;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++)
      for (size_t k = 0; k <= j; k++)
        covariance[j * d + k] +=
          (theta[i * d + j] - centre[j]) * (theta[i * d + k] - centre[k]) / ((double)n - 1);
  LE_TRY(le_cholesky(covariance, d));
  memset(precision, 0, d * d * sizeof(double));
  for (size_t j = 0; j < d; j++) {
    precision[j * d + j] = 1;
    le_cholesky_solve(covariance, d, precision + j * d);
  }
  for (size_t j = 0; j < d; j++)
    for (size_t k = 0; k < j; k++)
      precision[j * d + k] = precision[k * d + j] =
        0.5 * (precision[j * d + k] + precision[k * d + j]);
  memcpy(b->proposal.factor, precision, d * d * sizeof(double));
  return le_cholesky(b->proposal.factor, d);
}

le_status le_bridging_start(le_bridging *b, le_target *target, const double *theta,
                            const double *log_lik)
{
  const size_t d = b->d, rounds = b->rounds - b->fitted;
  b->drawn = 0;
  b->done = b->failed = 0;
  if (b->fitted * b->chains < d + 2 || fit_proposal(b, theta) != LE_OK) {
    b->done = b->failed = 1;
    return LE_OK;
  }
  for (size_t r = 0; r < rounds; r++)
    for (size_t c = 0; c < b->chains; c++) {
      const size_t at = (b->fitted + r) * b->chains + c;
      double prior;
      target->ops->log_prior(target->model, 1, theta + at * d, &prior);
      b->own[c * rounds + r] = prior + log_lik[at] - log_proposal(b, theta + at * d);
    }
  return LE_OK;
}

/* The number of independent draws that the chains' draws are worth, from the variance of the
 * chains' means relative to that of means of independent draws. */
static double effective_draws(const le_bridging *b)
{
  const size_t n = b->draws, rounds = b->rounds - b->fitted;
  double mean = 0, within = 0, between = 0;
  for (size_t i = 0; i < n; i++) mean += b->own[i] / (double)n;
  for (size_t i = 0; i < n; i++) within += pow(b->own[i] - mean, 2) / ((double)n - 1);
  for (size_t c = 0; c < b->chains; c++) {
    double chain = 0;
    for (size_t r = 0; r < rounds; r++) chain += b->own[c * rounds + r] / (double)rounds;
    between += pow(chain - mean, 2) / ((double)b->chains - 1);
  }
  if (!(within > 0) || !(between > 0)) return (double)n;
  return fmin((double)n, (double)b->chains * within / between);
}

/* The fixed point r of r = mean_q[p / (s1 p + s2 r q)] / mean_p[q / (s1 p + s2 r q)], in logs. */
static void solve(le_bridging *b)
{
  const size_t n = b->draws, rounds = b->rounds - b->fitted;
  const double effective = effective_draws(b), s1 = effective / (effective + (double)n),
               s2 = 1 - s1;
  double log_r = 0;
  for (size_t i = 0; i < n; i++) log_r += b->own[i] / (double)n;
  for (int iteration = 0; iteration < 1000; iteration++) {
    double top = 0, bottom = 0;
    for (size_t i = 0; i < n; i++) {
      /* the terms, without the factor r: p / (s1 p + s2 r q), and r q / (s1 p + s2 r q) */
      top += 1 / (s1 + s2 * exp(log_r - b->other[i]));
      bottom += 1 / (s1 * exp(b->own[i] - log_r) + s2);
    }
    const double next = log_r + log(top) - log(bottom), change = fabs(next - log_r);
    log_r = next;
    if (!isfinite(log_r) || change < 1e-10) break;
  }
  b->log_evidence = log_r;
  b->effective = effective;
  double mean2 = 0, square2 = 0, mean1 = 0, between = 0;
  for (size_t i = 0; i < n; i++) {
    const double f = 1 / (s1 + s2 * exp(log_r - b->other[i]));
    mean2 += f / (double)n;
    square2 += f * f / (double)n;
  }
  for (size_t c = 0; c < b->chains; c++) {
    double chain = 0;
    for (size_t r = 0; r < rounds; r++)
      chain += 1 / (s1 * exp(b->own[c * rounds + r] - log_r) + s2) / (double)rounds;
    mean1 += chain / (double)b->chains;
    between += chain * chain / (double)b->chains;
  }
  const double m = (double)b->chains,
               variance1 = fmax(between - mean1 * mean1, 0) * m / (m - 1) / m,
               variance2 = fmax(square2 - mean2 * mean2, 0) / (double)n;
  b->se = sqrt(variance1 / (mean1 * mean1) + variance2 / (mean2 * mean2));
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
  LE_FIELD(le_bridging, drawn),  LE_FIELD(le_bridging, done),
  LE_FIELD(le_bridging, failed), LE_FIELD(le_bridging, log_evidence),
  LE_FIELD(le_bridging, se),     LE_FIELD(le_bridging, effective)};

void le_bridging_archive(le_bridging *b, le_archive *archive)
{
  const size_t n = b->draws;
  LE_ARCHIVE_FIELDS(archive, b, fields);
  if (b->drawn > n) archive->status = LE_CORRUPT;
  le_mode_archive(&b->proposal, archive);
  le_archive_doubles(archive, b->own, n);
  le_archive_doubles(archive, b->other, n);
}
