/* The next step of lambda, by the schedule of the stage, and the test for a change in the
 * distribution of the rows. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

/* The test for a change needs CHANGE_ROWS rows, CHANGE_FACTOR times as many as at the last
 * restart, and a first increment below CHANGE_STEP of the usual one. */
enum { CHANGE_ROWS = 200 };
/* Largest ratio between the step from the curvature and the step from the particles. */
static const double CURVATURE_OFF = 5;
static const double CHANGE_FACTOR = 1.5, CHANGE_STEP = 0.048;

/* The step at which the effective sample size of a normal posterior would fall to the goal: the
 * chunk's log-likelihood has variance v = g' P^-1 g + tr((P^-1 H)^2) / 2 under it, and a step
 * leaves the share exp(-step^2 v) of the effective sample size. */
static double curvature_step(walk *w)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  const double lambda = w->target.lambda;
  LE_SCRATCH(factor, w->target.stack, 3 * d * d + 2 * d);
  double *inverse = factor + d * d, *across = inverse + d * d, *grad = across + d * d,
         *mean = grad + d;
  memcpy(factor, w->precision, d * d * sizeof(double));
  if (le_cholesky(factor, d) != LE_OK) return NAN;
  /* the mean of the annealed posterior by one Newton step from the anchor, and the chunk's
   * gradient */
  w->target.ops->log_prior_grad(w->target.model, 1, g->anchor, mean);
  for (size_t j = 0; j < d; j++) mean[j] += g->grad[j] + lambda * g->chunk_grad[j];
  le_cholesky_solve(factor, d, mean);
  memcpy(grad, g->chunk_grad, d * sizeof(double));
  le_add_symmetric_matvec(g->chunk_hess, d, mean, grad);
  memcpy(mean, grad, d * sizeof(double));
  le_cholesky_solve(factor, d, mean);
  double variance = le_dot(grad, mean, d);
  /* tr((P^-1 H)^2) = sum of squares of L^-1 H L^-T */
  le_lower_inverse(factor, d, inverse);
  le_transpose(inverse, d, across);
  for (size_t i = 0; i < d; i++) {
    memset(grad, 0, d * sizeof(double));
    le_add_symmetric_matvec(g->chunk_hess, d, inverse + i * d, grad);
    le_upper_transpose_matvec(across, d, grad, mean);
    variance += 0.5 * le_dot(mean, mean, d);
  }
  return sqrt(-log(stage_of(w)->ess / (double)w->m) / variance);
}

/* Bias of log Z because the particles that are weighed also choose the step: if by chance their
 * log-likelihoods have a high mean and a small standard deviation s, the step c / s is longer.
 * This adds -c cov(mean, s) / s to log Z, with cov(mean, s) = third central moment / (2 s m).
 * Particles that keep no weight do not choose the step, however small their likelihoods are: log
 * weights of the step count from -SATURATED, relative to the largest. */
static const double SATURATED = 10;

static double step_bias(const walk *w, double increment)
{
  double largest = -INFINITY, mean = 0, square = 0, cube = 0, squares = 0;
  for (size_t i = 0; i < w->m; i++)
    if (w->weight[i] > 0) largest = fmax(largest, w->chunk_value[i]);
  for (size_t i = 0; i < w->m; i++) {
    if (!(w->weight[i] > 0)) continue;
    mean += w->weight[i] * fmax(increment * (w->chunk_value[i] - largest), -SATURATED);
    squares += w->weight[i] * w->weight[i];
  }
  for (size_t i = 0; i < w->m; i++) {
    if (!(w->weight[i] > 0)) continue;
    const double away = fmax(increment * (w->chunk_value[i] - largest), -SATURATED) - mean;
    square += w->weight[i] * away * away;
    cube += w->weight[i] * away * away * away;
  }
  return square > 0 ? -cube / (2 * square) * squares : 0;
}

/* ---- the rules ---- */

/* The weights by which the schedule leaves out particles. If particles are never resampled, most of
 * them may have lost their weight, and then all count; else a few that are stuck far from all
 * others would hold the steps near zero. As published, all count if rows come in chunks. */
static const double *weights(const walk *w)
{
  size_t lost = 0;
  if (stage_of(w)->threshold > 0) return w->weight;
  if (!stage_of(w)->whole) return NULL;
  for (size_t i = 0; i < w->m; i++) lost += w->weight[i] < LE_WEIGHT_LOST / (double)w->m;
  return 2 * lost <= w->m ? w->weight : NULL;
}

/* The step at which the effective sample size of the incremental weights falls to the goal. */
static le_status adaptive_step(walk *w, double *increment)
{
  const le_stage *stage = stage_of(w);
  const double lambda = w->target.lambda, rest = 1 - lambda;
  LE_TRY(le_schedule_adaptive(w->chunk_value, weights(w), w->m, stage->ess, lambda, increment));
  /* the chunk needs several steps: shorter ones, since the particles must follow the posterior */
  if (stage->anneal > stage->ess && (lambda > 0 || *increment < rest))
    return le_schedule_adaptive(w->chunk_value, weights(w), w->m, stage->anneal, lambda, increment);
  if (stage->whole && *increment < rest) w->step_bias += step_bias(w, *increment);
  return LE_OK;
}

/* The step from the curvature at the anchor, within a factor CURVATURE_OFF of the step that the
 * particles suggest, because the curvature is wrong for a posterior far from normal. Within
 * these bounds the step does not depend on the particles that it weighs. Without an anchor the
 * same as adaptive_step(). */
static le_status curved_step(walk *w, double *increment)
{
  const le_stage *stage = stage_of(w);
  const double lambda = w->target.lambda, rest = 1 - lambda;
  if (stage->gradient != LE_GRADIENT_CONTROL) return adaptive_step(w, increment);
  le_walk_anchored_precision(w, w->precision);
  double step = curvature_step(w), seen;
  if (!(isfinite(step) && step > 0)) return adaptive_step(w, increment);
  if (le_schedule_adaptive(w->chunk_value, weights(w), w->m, stage->ess, lambda, &seen) == LE_OK)
    step = fmin(fmax(step, seen / CURVATURE_OFF), seen * CURVATURE_OFF);
  /* equal steps, so that the last one is not much shorter than the others */
  *increment = rest / ceil(rest / step);
  return lambda + *increment > lambda ? LE_OK : LE_STALLED;
}

le_status le_walk_choose_increment(walk *w, double *increment)
{
  const le_stage *stage = stage_of(w);
  double next = 1;
  if (follows(w))
    next = le_path_at(&w->path, w->at).lambda;
  else if (stage->schedule == LE_ADAPTIVE_STEPS)
    return adaptive_step(w, increment);
  else if (stage->schedule == LE_CURVATURE_STEPS)
    return curved_step(w, increment);
  else if (stage->schedule == LE_FIXED_STEPS && w->chunk_steps + 1 < stage->lambdas)
    next = stage->lambda[w->chunk_steps];
  *increment = next - w->target.lambda;
  return LE_OK;
}

/* A first increment that is much shorter than usual means that the distribution of the rows has
 * changed. Particles annealed from the old posterior to the new one would then not move between
 * modes fast enough to keep the modes' masses right. */
int le_walk_law_has_changed(const walk *w, double increment)
{
  const le_stage *stage = stage_of(w);
  const double seen = (double)w->target.seen, usual = sqrt(-log(stage->ess / (double)w->m));
  /* without importance sampling only rows that can be read give new particles */
  const int may = (w->settings.restarts || (w->reopened && w->settings.search)) &&
                  (le_rows_of(&w->target)->readable || le_walk_samples_importance(w));
  return may && w->target.lambda == 0 && stage->schedule != LE_FIXED_STEPS &&
         seen >= CHANGE_ROWS && seen >= CHANGE_FACTOR * (double)w->restart_rows &&
         increment < CHANGE_STEP * usual;
}

le_status le_walk_restart(walk *w)
{
  w->restart_rows = w->target.seen + w->target.chunk;
  w->restarts++;
  LE_TRY(le_store_shuffle(&w->machine.store, 0, w->restart_rows, w->machine.streams.order));
  w->target.seen = w->target.chunk = 0;
  w->target.lambda = 0;
  w->target.labels = NULL;
  w->rows_at_check = 0;
  w->first_checked = w->uneven = 0;
  w->step_bias = w->bias_total = w->bias_total_variance = 0;
  w->bias_rate = NAN;
  le_walk_forget_anchors(w);
  for (size_t s = 0; s < w->settings.stages; s++) w->gradient[s].exact_until = 0;
  le_walk_enter_stage(w, 0);
  return le_walk_start(w);
}
