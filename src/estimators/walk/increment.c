/* The next step of lambda, by the rule of the stage; and whether the law of the rows has changed. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

/* Rows from which a change of the law is looked for, how many times as many as at the last one, and how short a first step is. */
enum { CHANGE_ROWS = 200 };
/* By what factor curvature and particles may differ on the length of a step. */
static const double CURVATURE_OFF = 5;
static const double CHANGE_FACTOR = 1.5, CHANGE_STEP = 0.048;

/* The step at which a Gaussian posterior's effective sample size would fall to the goal: the chunk's log-likelihood
 * has variance v = g' P^-1 g + tr((P^-1 H)^2) / 2 there, and exp(-step^2 v) is the share that is left. */
static double curvature_step(walk *w)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  const double lambda = w->target.lambda;
  double *factor = w->work, *grad = w->work + d * d, *mean = grad + d;
  memcpy(factor, w->precision, d * d * sizeof(double));
  if (le_cholesky(factor, d) != LE_OK) return NAN;
  /* the mean of the annealed posterior, by one Newton step from the anchor, and the chunk's gradient there */
  w->model->log_prior_grad(w->target.model, 1, g->anchor, mean);
  for (size_t j = 0; j < d; j++) mean[j] += g->grad[j] + lambda * g->chunk_grad[j];
  le_cholesky_solve(factor, d, mean);
  memcpy(grad, g->chunk_grad, d * sizeof(double));
  le_add_symmetric_matvec(g->chunk_hess, d, mean, grad);
  memcpy(mean, grad, d * sizeof(double));
  le_cholesky_solve(factor, d, mean);
  double variance = le_dot(grad, mean, d);
  /* tr((P^-1 H)^2) = sum of squares of L^-1 H L^-T */
  double *inverse = w->metric[w->stage][0].work, *across = inverse + d * d;
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

/* Where the particles happen to have high likelihoods they also happen to spread less, and choose a longer step: one of length
 * c / s adds -c cov(mean, s) / s to log Z, with cov(mean, s) = third central moment / (2 s m). */
static double eagerness(const walk *w, double increment)
{
  double mean = 0, square = 0, cube = 0, squares = 0;
  for (size_t i = 0; i < w->m; i++) {
    if (!(w->weight[i] > 0)) continue;
    if (!isfinite(w->chunk_value[i])) return 0;
    mean += w->weight[i] * w->chunk_value[i];
    squares += w->weight[i] * w->weight[i];
  }
  for (size_t i = 0; i < w->m; i++) {
    if (!(w->weight[i] > 0)) continue;
    const double away = w->chunk_value[i] - mean;
    square += w->weight[i] * away * away;
    cube += w->weight[i] * away * away * away;
  }
  return square > 0 ? -increment * cube / (2 * square) * squares : 0;
}

le_status le_walk_choose_increment(walk *w, double *increment)
{
  const le_stage *stage = stage_of(w);
  const double lambda = w->target.lambda, rest = 1 - lambda;
  if (follows(w)) {
    *increment = le_path_at(&w->path, w->at).lambda - lambda;
    return LE_OK;
  }
  switch (stage->schedule) {
  case LE_ONE_STEP:
    *increment = rest;
    return LE_OK;
  case LE_FIXED_STEPS:
    *increment = w->fixed + 1 < stage->lambdas ? stage->lambda[w->fixed] - lambda : rest;
    w->fixed++;
    return LE_OK;
  case LE_CURVATURE_STEPS: {
    if (stage->gradient == LE_GRADIENT_CONTROL) {
      LE_TRY(le_walk_anchored_precision(w, w->precision));
      double step = curvature_step(w), seen;
      if (isfinite(step) && step > 0) {
        /* where the posterior is nothing like what its curvature says, the particles know better */
        if (le_schedule_adaptive(w->chunk_value, w->m, stage->ess, lambda, &seen) == LE_OK)
          step = fmin(fmax(step, seen / CURVATURE_OFF), seen * CURVATURE_OFF);
        /* steps of equal length: the last one is not a crumb */
        *increment = rest / ceil(rest / step);
        return lambda + *increment > lambda ? LE_OK : LE_STALLED;
      }
    }
  } /* fall through: no curvature to go by */
  case LE_ADAPTIVE_STEPS:
    break;
  }
  LE_TRY(le_schedule_adaptive(w->chunk_value, w->m, stage->ess, lambda, increment));
  /* a chunk that one step cannot take up moves the posterior: particles must keep up with it */
  if (stage->anneal > stage->ess && (lambda > 0 || *increment < rest))
    return le_schedule_adaptive(w->chunk_value, w->m, stage->anneal, lambda, increment);
  if (stage->whole && *increment < rest) w->eager += eagerness(w, *increment);
  return LE_OK;
}

/* Does the next chunk contradict the rows seen?  A first step this short, against what the rule for steps makes of a chunk like
 * those before, says so: the law of the stream has changed, and particles that are led from the old posterior to the new one
 * cross between modes too late to keep their shares. */
int le_walk_law_has_changed(const walk *w, double increment)
{
  const le_stage *stage = stage_of(w);
  const double seen = (double)w->target.seen, usual = sqrt(-log(stage->ess / (double)w->m));
  return w->settings.restarts && w->target.lambda == 0 && stage->schedule != LE_FIXED_STEPS && seen >= CHANGE_ROWS &&
         seen >= CHANGE_FACTOR * (double)w->regained && increment < CHANGE_STEP * usual;
}

/* All rows so far, the chunk among them, in random order from the prior on. */
le_status le_walk_start_again(walk *w)
{
  w->regained = w->target.seen + w->target.chunk;
  w->restarts++;
  LE_TRY(le_store_shuffle(&w->machine.store, 0, w->regained, w->machine.streams.order));
  w->target.seen = w->target.chunk = 0;
  w->target.lambda = 0;
  w->target.labels = NULL;
  w->refuge = w->noised = 0;
  w->looked = 0;
  w->first_looked = w->uneven = 0;
  le_search_start(&w->search);
  w->banked = w->banked_variance = w->eager = w->heated = w->heated_variance = 0;
  w->lost = NAN;
  for (size_t s = 0; s < w->settings.stages; s++) w->gradient[s].anchored = w->gradient[s].exact_until = 0;
  le_walk_enter_stage(w, 0);
  le_walk_spread_out(w);
  return LE_OK;
}
