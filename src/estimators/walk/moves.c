/* Kernel moves at one distribution: their metric, from curvature, from the other half of the
 * particles, or as recorded in a path; their number, by the renewal that they reach; and the bias
 * of kernels without an accept-reject step. */
#include "estimators/walk/parts.h"

#include <math.h>
#include <string.h>

/* TEMPERED_MOVES multiplies the number of moves on the way from an importance proposal.
 * MOVES_MOST bounds the number of moves that few rows call for. After the renewal was AMPLE
 * above the goal with the fewest moves, it is not measured for SKIP_MEASURE_FOR distributions;
 * after a second measurement showed that moves within the modes suffice, no further moves are
 * made for SKIP_REMEASURE_FOR distributions. */
enum { TEMPERED_MOVES = 4 };
enum { MOVES_MOST = 200, SKIP_REMEASURE_FOR = 4, SKIP_MEASURE_FOR = 3 };
static const double AMPLE = 0.1;

/* ---- the metric ---- */

/* The metric of one half of the particles, from those [from, to) of the other half. */
static void metric_of_other_half(walk *w, le_metric *metric, size_t from, size_t to)
{
  double total = 0;
  for (size_t i = from; i < to; i++) total += w->weight[i];
  if (!(total > 0)) return;
  LE_SCRATCH(weight, w->target.stack, to - from);
  for (size_t i = from; i < to; i++) weight[i - from] = w->weight[i] / total;
  le_metric_set_particles(metric, to - from, w->theta + from * w->d, weight, w->prior_variance);
}

/* The density is the same under all labels, so particles may be relabelled between distributions
 * without bias. */
static le_status tune_as_recorded(walk *w, const le_path_point *point)
{
  w->target.labels = NULL;
  if (point->labels) le_walk_relabel_to(w, point->labels);
  w->kernel[w->stage]->step = point->step;
  w->kernel[w->stage]->fixed = 1;
  return le_metric_read(&w->metric[w->stage][0], point->metric);
}

le_status le_walk_update_metric(walk *w)
{
  const le_stage *stage = stage_of(w);
  le_metric *metric = w->metric[w->stage];
  if (stage->metric == LE_METRIC_FIXED) return LE_OK;
  if (stage->gradient == LE_GRADIENT_CONTROL && stage->metric == LE_METRIC_FROM_CURVATURE) {
    le_walk_anchored_precision(w, w->precision);
    le_walk_relabel_to(w, w->gradient[w->stage].anchor);
  } else {
    if (w->target.proposal)
      le_walk_relabel_to(w, w->audit.mode[0].theta); /* the labels of the draws */
    else
      le_walk_relabel_to_heaviest(w);
    if (stage->metric == LE_METRIC_FROM_PARTICLES) {
      metric_of_other_half(w, &metric[0], w->target.split, w->m);
      metric_of_other_half(w, &metric[1], 0, w->target.split);
      return LE_OK;
    }
    le_walk_weighted_mean(w, w->centre);
    le_walk_prior_precision(w, w->centre, w->precision);
    LE_TRY(le_target_information(&w->target, 0, w->target.seen, 1, w->centre, w->precision));
    LE_TRY(le_target_information(&w->target, w->target.seen, w->target.seen + w->target.chunk,
                                 w->target.lambda, w->centre, w->precision));
  }
  le_metric_set_precision(&metric[0], w->precision);
  return LE_OK;
}

/* ---- the number of moves ---- */

static int measures_renewal(const walk *w)
{
  return stage_of(w)->renew != 0 && !follows(w) && !w->skip_moves && w->skip_measure == 0;
}

static int follows_renewal(const walk *w)
{
  return stage_of(w)->renew > 0 && measures_renewal(w);
}

/* With few rows moves are cheap and the posterior is least regular: more moves are made there. */
static size_t least_moves(const walk *w)
{
  const le_stage *stage = stage_of(w);
  const double wanted =
      fmin(ceil(stage->work / (double)(w->target.seen + w->target.chunk)), MOVES_MOST);
  const size_t moves = wanted > (double)stage->steps ? (size_t)wanted : stage->steps;
  return w->target.proposal ? TEMPERED_MOVES * moves : moves;
}

/* Number of moves at this distribution as planned so far. */
static size_t moves_wanted(const walk *w)
{
  if (follows(w)) return le_path_at(&w->path, w->settings.reverse ? w->at - 1 : w->at).moves;
  const size_t least = least_moves(w);
  return follows_renewal(w) && w->moves > least ? w->moves : least;
}

/* The largest useful number of moves: a gradient-based trajectory moves far, a random walk needs
 * about two moves per dimension, and more moves do not reduce the discretization error of
 * kernels that do not reject. */
static double moves_most(const walk *w)
{
  const unsigned needs = stage_of(w)->kernel->ops->needs;
  const double further = !(needs & LE_NEEDS_DENSITY) ? 8
                         : needs & LE_NEEDS_GRADIENT ? 20
                                                     : 40 + 5 * (double)w->d;
  return further + (double)least_moves(w);
}

/* After the planned moves: if the renewal is below the goal, plans more, at most twice as many.
 * The final number is the plan of the next distribution. The decision uses all particles
 * together, so that no particle's stopping depends on its own position, which would cause bias. */
static int plan_more(walk *w)
{
  const le_stage *stage = stage_of(w);
  const double goal = stage->renew, most = moves_most(w);
  double reached =
      le_renewal_measure(&w->renewal, w->m, w->theta, w->weight, &w->metric[w->stage][0]);
  if (w->tried && w->step >= 2 * w->tried) {
    const double within = le_renewal_within(w->tried_renewal, reached);
    if (within >= goal && reached < goal) w->skip_remeasure = SKIP_REMEASURE_FOR;
    reached = within;
    w->tried = 0;
  }
  w->renewed = reached;
  if (isnan(reached) || !follows_renewal(w)) return 0;
  if (reached >= goal) {
    if (w->step == least_moves(w) && reached >= goal + AMPLE) w->skip_measure = SKIP_MEASURE_FOR;
    w->moves = (size_t)fmax(
        0.7 * (double)w->step,
        fmin((double)w->step, ceil(le_renewal_moves((double)w->step, reached, goal + 0.05))));
    return 0;
  }
  const int accepted = w->skip_remeasure > 0;
  if (accepted || (double)w->step >= most) {
    w->skip_remeasure -= accepted;
    if (accepted) w->renewed = NAN;
    w->moves = w->step;
    return 0;
  }
  const double further = le_renewal_moves((double)w->step, reached, goal + 0.05);
  w->tried = w->step;
  w->tried_renewal = reached;
  w->moves =
      (size_t)fmin(fmin(2 * (double)w->step, most), fmax(ceil(further), (double)w->step + 1));
  return 1;
}

static le_status record(walk *w)
{
  LE_TRY(le_trace_add(&w->recorded, NULL));
  le_path_write(&w->target, &w->metric[w->stage][0], w->skip_moves ? 0 : moves_wanted(w),
                w->kernel[w->stage]->step, le_trace_last(&w->recorded));
  return LE_OK;
}

le_status le_walk_begin_moves(walk *w, int resampled)
{
  const le_stage *stage = stage_of(w);
  le_target *target = &w->target;
  w->step = w->tried = 0;
  w->tried_renewal = w->renewed = w->temperature = NAN;
  w->machine.phase = MOVE;
  if (follows(w)) {
    const le_path_point point = le_path_at(&w->path, w->settings.reverse ? w->at - 1 : w->at);
    w->skip_moves = point.moves == 0;
    if (!w->skip_moves) LE_TRY(tune_as_recorded(w, &point));
  } else {
    /* a reverse run along this path starts with moves from the posterior draw: they must be
     * recorded */
    const int end = w->settings.record && w->machine.closed && target->lambda >= 1 &&
                    target->seen + target->chunk == w->machine.store.n;
    const int annealed = stage->anneal > stage->ess && (target->lambda < 1 || w->chunk_steps > 1);
    w->skip_moves = stage->steps == 0 || (stage->move_resampled && !resampled && !end && !annealed);
    if (!w->skip_moves) LE_TRY(le_walk_update_metric(w));
  }
  if (!w->skip_moves)
    LE_TRY(le_kernel_begin(w->kernel[w->stage], target, w->m, w->theta, &w->machine.streams));
  if (measures_renewal(w)) le_renewal_start(&w->renewal, w->m, w->theta);
  return w->settings.record ? record(w) : LE_OK;
}

/* Updates the number of moves in the last point of the recorded path. */
static void record_moves(walk *w)
{
  if (w->settings.record && !w->skip_moves)
    le_trace_last(&w->recorded)[LE_PATH_MOVES] = (double)w->step;
}

/* Particles moved by a kernel without an accept-reject step may be too widely spread, because
 * its steps are too long, or too narrowly, because they are too few. For any smooth density f,
 * coordinate j and constant c, E[(theta - c)_j d/dtheta_j log f] = -1; T_j, minus the same mean
 * over the particles, is their temperature in this coordinate. If the likelihood contributes the
 * share s_j of T_j (1 where the likelihood dominates, 0 where the prior does), the mean of
 * lambda times the log-likelihood has the error -sum_j s_j (T_j - 1) / 2: exactly so for normal
 * densities with independent coordinates or a flat prior. This is the loss of log Z when the
 * rows, or lambda, grow by a factor e. */
static le_status measure_temperature(walk *w)
{
  const le_stage *stage = stage_of(w);
  const size_t d = w->d, m = w->m;
  double squares = 0, mean = 0, variance = 0;
  w->temperature = NAN;
  if (w->skip_moves || !stage->kernel || (stage->kernel->ops->needs & LE_NEEDS_DENSITY) ||
      stage->gradient != LE_GRADIENT_FULL || w->settings.stages > 1 || w->settings.reverse)
    return LE_OK;
  for (size_t i = 0; i < m; i++) squares += w->weight[i] * w->weight[i];
  if (squares > 0.5) return LE_OK;
  LE_SCRATCH(grad, w->target.stack, 2 * m * d + 3 * d);
  double *of_prior = grad + m * d, *centre = of_prior + m * d, *wide = centre + d,
         *share = wide + d;
  LE_TRY(le_target_density_grad(&w->target, m, w->theta, NULL, grad));
  le_target_prior(&w->target, m, w->theta, NULL, of_prior);
  le_walk_weighted_mean(w, centre);
  memset(wide, 0, 2 * d * sizeof(double));
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < d; j++) {
      const double away = w->weight[i] * (w->theta[i * d + j] - centre[j]) / (1 - squares);
      wide[j] -= away * grad[i * d + j];
      share[j] -= away * (grad[i * d + j] - of_prior[i * d + j]);
    }
  w->temperature = w->bias_rate = 0;
  for (size_t j = 0; j < d; j++) {
    share[j] = wide[j] > 0 ? fmax(-1, fmin(share[j] / wide[j], 1)) : 1;
    w->temperature += wide[j] / (double)d;
    w->bias_rate += 0.5 * share[j] * (wide[j] - 1);
  }
  if (!isfinite(w->temperature) || !isfinite(w->bias_rate))
    w->temperature = w->bias_rate = INFINITY;
  for (int second = 0; second < 2; second++)
    for (size_t i = 0; i < m; i++) {
      double term = 0;
      for (size_t j = 0; j < d; j++)
        term -= 0.5 * share[j] * (w->theta[i * d + j] - centre[j]) * grad[i * d + j];
      if (second) variance += pow(w->weight[i] * (term - mean), 2);
      else mean += w->weight[i] * term;
    }
  w->bias_rate_variance = variance;
  return LE_OK;
}

le_status le_walk_move(void *self)
{
  walk *w = self;
  const le_stage *stage = stage_of(w);
  size_t moves = w->skip_moves ? 0 : moves_wanted(w);
  if (w->step < moves) {
    size_t made;
    LE_TRY(le_kernel_moves(w->kernel[w->stage], &w->target, w->m, w->theta, &w->machine.streams,
                           moves - w->step, &made));
    w->step += made;
    if (w->step < moves) return LE_OK;
    if (w->skip_measure > 0)
      w->skip_measure--;
    else if (measures_renewal(w) && plan_more(w))
      return LE_OK;
    le_kernel_tune(w->kernel[w->stage]);
    record_moves(w);
  }
  LE_TRY(measure_temperature(w));
  if (stage->whole || w->settings.reverse) {
    LE_TRY(le_walk_add_trace(w, (double)(w->target.seen + w->target.chunk), w->target.lambda, 1));
    w->chunk_ess = 1;
  }
  if (follows(w) && !w->settings.reverse) w->at++;
  w->machine.phase = w->settings.reverse    ? STEP_BACK
                     : w->target.lambda < 1 ? REWEIGHT
                                            : CLOSE_CHUNK;
  return LE_OK;
}
