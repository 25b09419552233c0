/* One annealing step: compute the chunk's log-likelihoods, choose the step, weigh, and resample. */
#include "estimators/walk/parts.h"

#include "base/logsum.h"

#include <math.h>
#include <stdio.h>

/* More annealing steps per chunk than this are an error. */
enum { STEPS_MOST = 20000 };

/* Reports, by its number in the user's order, the first row of the chunk that has zero
 * likelihood under every particle. */
static le_status impossible_row(walk *w)
{
  const le_problem *problem = &w->machine.problem;
  const size_t seen = w->target.seen;
  size_t found = seen;
  for (size_t r = seen; r < seen + w->target.chunk; r++) {
    LE_TRY(le_target_log_lik(&w->target, r, r + 1, w->m, w->theta, w->chunk_value));
    int possible = 0;
    for (size_t i = 0; i < w->m; i++) possible |= w->chunk_value[i] > -INFINITY;
    found = r;
    if (!possible) break;
  }
  char subject[40] = "An observation";
  le_streams again;
  if (w->machine.store.n == 1) {
    snprintf(subject, sizeof subject, "The model");
  } else if (!w->restart_rows && !(w->settings.shuffle && w->machine.feeds > 1)) {
    if (w->settings.shuffle &&
        le_streams_alloc(&again, 0, problem->seed, problem->replicate) == LE_OK) {
      found = le_store_origin(w->machine.store.n, found, again.order);
      le_streams_free(&again);
    }
    snprintf(subject, sizeof subject, "Observation %.0f", (double)found + 1);
  }
  return le_fail(&w->machine.context->error, LE_ALL_IMPOSSIBLE,
                 "%s has zero likelihood (or one that is not a number) under every particle.",
                 subject);
}

static int has_closed_form(const walk *w)
{
  const le_model_ops *ops = w->target.ops;
  const int several = ops->log_symmetry && ops->log_symmetry(w->target.model) > 0;
  return !several && le_target_has_exact(ops, w->target.model);
}

/* Replaces the error of a run that cannot continue if a kernel without an accept-reject step is
 * its cause: the loss of log Z by its bias is above BIAS_MOST nats, in total or at the present
 * distribution. Its absolute value counts: a rate that is far below zero is rounding error of
 * particles that have diverged. The first sentence that le_fail() is given is the one reported,
 * so this is called first. */
static const double BIAS_MOST = 10;

static void explain_by_kernel(walk *w)
{
  const int exploded = fabs(w->bias_rate) > BIAS_MOST + 0.5 * (double)w->d;
  const le_kernel_spec *kernel = stage_of(w)->kernel;
  if (isnan(w->bias_rate) || (w->bias_total < BIAS_MOST && !exploded)) return;
  le_fail(
      &w->machine.context->error, LE_STALLED,
      "The run stopped at lambda = %.2g because the steps of %s() are too long for these data: the "
      "particles are spread many times too widely. Use hmc(), which accepts or rejects, a smaller "
      "%s, or scaled columns.",
      w->target.lambda, kernel->ops->name,
      isnan(le_setting_number(&kernel->args, kernel->ops->settings, "rate")) ? "`step_size`"
                                                                             : "`rate`");
}

le_status le_walk_add_moments(walk *w, double increment)
{
  double mean = 0, square = 0, total = 0, squares = 0;
  LE_SCRATCH(term, w->target.stack, w->m);
  for (size_t i = 0; i < w->m; i++) {
    term[i] = log(w->weight[i]) + increment * w->chunk_value[i];
    if (w->weight[i] > 0) mean += w->weight[i] * w->chunk_value[i];
    squares += w->weight[i] * w->weight[i];
    total += w->weight[i];
  }
  for (size_t i = 0; i < w->m; i++)
    if (w->weight[i] > 0) square += w->weight[i] * pow(w->chunk_value[i] - mean, 2);
  const double row[MOMENT_COLUMNS] = {w->target.lambda, mean, square, total * total / squares,
                                      le_logsumexp(term, w->m)};
  return le_trace_add(&w->moments, row);
}

/* The values that a step of lambda multiplies: the chunk's log-likelihoods, or the log ratio of
 * the posterior to the proposal if annealing starts from a proposal. */
static le_status values_to_weigh(walk *w)
{
  le_target *target = &w->target;
  const double lambda = target->lambda;
  if (!target->proposal)
    return le_gradient_log_lik(&w->gradient[w->stage], &w->expansion, target, stage_of(w)->part,
                               w->m, w->theta, w->chunk_value);
  target->lambda = 1;
  const le_status status = le_target_density(target, w->m, w->theta, w->chunk_value);
  target->lambda = lambda;
  LE_SCRATCH(work, target->stack, 2 * w->d);
  for (size_t i = 0; i < w->m; i++)
    w->chunk_value[i] -=
        target->proposal->log_density(target->proposal->self, target, w->theta + i * w->d, work);
  return status;
}

/* Multiplies the weights by exp(increment times these values), and resamples if due. */
static le_status weigh(walk *w, double increment)
{
  const le_stage *stage = stage_of(w);
  for (size_t i = 0; i < w->m; i++) w->log_weight[i] += increment * w->chunk_value[i];
  le_normalise(w->log_weight, w->m, w->weight);
  le_genealogy_weigh(&w->genealogy, w->m, w->weight);
  w->chunk_steps++;
  w->lambda_steps++;
  const double share = le_effective_size(w->log_weight, w->m, 1, NULL, 0) / (double)w->m;
  if (share < w->chunk_ess) w->chunk_ess = share;
  if (w->settings.reverse && w->at == 0) {
    w->machine.phase = FINISHED;
    return le_walk_add_trace(w, 0, 0, 1);
  }
  int resampled = 0;
  if (le_resampling_due(share, stage->threshold)) {
    le_walk_resample(w, w->m);
    resampled = 1;
  }
  return le_walk_begin_moves(w, resampled);
}

/* Adds the loss of log Z by the bias of the kernel while the target grows from its present size by
 * this increment, at the present rate. */
static void add_bias(walk *w, double increment)
{
  const double grown = increment * (double)w->target.chunk / fmax(le_target_size(&w->target), 1);
  if (isnan(w->bias_rate)) return;
  w->bias_total += grown * w->bias_rate;
  w->bias_total_variance += grown * grown * w->bias_rate_variance;
}

le_status le_walk_reweight(void *self)
{
  walk *w = self;
  const le_stage *stage = stage_of(w);
  le_target *target = &w->target;
  const size_t seen = target->seen;
  LE_TRY(values_to_weigh(w));
  int possible = 0;
  for (size_t i = 0; i < w->m; i++) {
    if (isnan(w->chunk_value[i])) w->chunk_value[i] = -INFINITY;
    possible |= w->chunk_value[i] > -INFINITY && w->log_weight[i] > -INFINITY;
  }
  if (!possible) explain_by_kernel(w);
  if (!possible) return impossible_row(w);
  double increment;
  const le_status status = le_walk_choose_increment(w, &increment);
  const int endless = status == LE_OK && stage->schedule != LE_FIXED_STEPS && !follows(w) &&
                      w->chunk_steps >= STEPS_MOST;
  if (endless || status != LE_OK) explain_by_kernel(w);
  if (endless)
    return le_fail(
        &w->machine.context->error, LE_STALLED,
        "After %d annealing steps lambda is still %.2g at observation %.0f: the likelihood is much "
        "narrower than the prior (are the columns scaled?), or `ess` is too close to the number of "
        "particles.%s",
        STEPS_MOST, w->target.lambda, (double)seen + 1,
        has_closed_form(w) ? " exact() needs no annealing here." : "");
  if (status == LE_STALLED)
    return le_fail(
        &w->machine.context->error, status,
        "The annealing increment became too small to move at observation %.0f: the particles' "
        "likelihoods "
        "differ too much. A smaller `chunk`, more `particles` or a wider prior may help.",
        (double)seen + 1);
  LE_TRY(status);
  if (le_walk_law_has_changed(w, increment))
    return le_rows_of(target)->readable ? le_walk_restart(w) : le_walk_restart_from_sample(w);
  if (w->settings.moments) LE_TRY(le_walk_add_moments(w, increment));
  /* the last step is not counted: it only fills up to 1 */
  if (increment < 1 - target->lambda) w->shortest = fmin(w->shortest, increment);
  target->lambda = 1 - target->lambda <= increment ? 1 : target->lambda + increment;
  add_bias(w, increment);
  return weigh(w, increment);
}

le_status le_walk_step_back(void *self)
{
  walk *w = self;
  const le_target *target = &w->target;
  const size_t seen = target->seen, chunk = target->chunk;
  const double before = w->at > 1 ? le_path_at(&w->path, w->at - 2).lambda : 1;
  LE_TRY(le_target_log_lik(&w->target, seen, seen + chunk, w->m, w->theta, w->chunk_value));
  for (size_t i = 0; i < w->m; i++)
    if (!isfinite(w->chunk_value[i]))
      return le_fail(
          &w->machine.context->error, LE_NOT_FINITE,
          "The simulated data have zero likelihood under the parameters that they were simulated "
          "with: the model's simulation does not match its likelihood.");
  const double increment = (before < 1 ? before : 0) - target->lambda;
  w->at--;
  le_walk_go_to_point(w, w->at);
  return weigh(w, increment);
}
