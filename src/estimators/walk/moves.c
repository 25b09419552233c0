/* Moves of the particles at one distribution: how many, what the trace says of them, and what they cost. */
#include "estimators/walk/parts.h"

#include <math.h>
#include <string.h>

enum { LED_MOVES = 4 };
enum { MOVES_MOST = 200, SETTLED_FOR = 4, RESTS = 3 };
static const double AMPLE = 0.1;

static size_t moves_wanted(const walk *w);

static int measures_renewal(const walk *w)
{
  return stage_of(w)->renew != 0 && !follows(w) && !w->skip_moves && w->resting == 0;
}

static int follows_renewal(const walk *w)
{
  return stage_of(w)->renew > 0 && measures_renewal(w);
}

static le_status record(walk *w)
{
  double *row = le_trace_add(&w->recorded);
  if (!row) return LE_NO_MEMORY;
  const double step = stage_of(w)->kernel->ops->report(w->kernel[w->stage]).step_size;
  le_path_write(&w->target, &w->metric[w->stage][0], w->skip_moves ? 0 : moves_wanted(w), step, row);
  return LE_OK;
}

/* The kernel made ready for moves at this distribution, if there are to be any. */
le_status le_walk_begin_moves(walk *w, int resampled)
{
  const le_stage *stage = stage_of(w);
  le_target *target = &w->target;
  w->step = w->tried = 0;
  w->tried_renewal = w->renewed = w->heat = NAN;
  w->machine.phase = MOVE;
  if (follows(w)) {
    const le_path_point point = le_path_at(&w->path, w->settings.reverse ? w->at - 1 : w->at);
    w->skip_moves = point.moves == 0;
    if (!w->skip_moves) LE_TRY(le_walk_tune_as_recorded(w, &point));
  } else {
    /* whoever walks a path back will want moves at its end, to leave the draw where it starts */
    const int end = w->settings.record && w->machine.closed && target->lambda >= 1 && target->seen + target->chunk == w->machine.store.n;
    const int annealed = stage->anneal > stage->ess && (target->lambda < 1 || w->chunk_steps > 1);
    w->skip_moves = stage->steps == 0 || (stage->move_resampled && !resampled && !end && !annealed);
    if (!w->skip_moves) LE_TRY(le_walk_update_metric(w));
  }
  if (!w->skip_moves && stage->kernel->ops->begin)
    LE_TRY(stage->kernel->ops->begin(w->kernel[w->stage], target, w->m, w->theta, &w->machine.streams));
  if (measures_renewal(w)) le_renewal_start(&w->renewal, w->m, w->theta);
  return w->settings.record ? record(w) : LE_OK;
}

/* Where rows are few, moves are cheap and the posterior is at its least regular. */
static size_t least_moves(const walk *w)
{
  const le_stage *stage = stage_of(w);
  const double wanted = fmin(ceil(stage->work / (double)(w->target.seen + w->target.chunk)), MOVES_MOST);
  const size_t moves = wanted > (double)stage->steps ? (size_t)wanted : stage->steps;
  return w->target.proposal ? LED_MOVES * moves : moves;
}

/* Moves at this distribution. */
static size_t moves_wanted(const walk *w)
{
  if (follows(w)) return le_path_at(&w->path, w->settings.reverse ? w->at - 1 : w->at).moves;
  const size_t least = least_moves(w);
  return follows_renewal(w) && w->moves > least ? w->moves : least;
}

/* Beyond so many, more moves are no answer: a trajectory goes a long way, a random walk needs about two for each dimension, and
 * errors of the step size, where nothing is rejected, stay as they are. */
static double moves_most(const walk *w)
{
  const unsigned needs = stage_of(w)->kernel->ops->needs;
  const double further = !(needs & LE_NEEDS_DENSITY) ? 8 : needs & LE_NEEDS_GRADIENT ? 20 : 40 + 5 * (double)w->d;
  return further + (double)least_moves(w);
}

/* The moves planned are made. Are they enough? If not, as many again or what else it takes are planned. What is planned at the
 * end is the next distribution's. The whole population decides, so that no particle stops where it likes to be. */
static int plan_more(walk *w)
{
  const le_stage *stage = stage_of(w);
  const double goal = stage->renew, most = moves_most(w);
  double reached = le_renewal_measure(&w->renewal, w->m, w->theta, w->weight, &w->metric[w->stage][0]);
  if (w->tried && w->step >= 2 * w->tried) {
    const double within = le_renewal_within(w->tried_renewal, reached);
    if (within >= goal && reached < goal) w->settled = SETTLED_FOR;
    reached = within;
    w->tried = 0;
  }
  w->renewed = reached;
  if (isnan(reached) || !follows_renewal(w)) return 0;
  if (reached >= goal) {
    if (w->step == least_moves(w) && reached >= goal + AMPLE) w->resting = RESTS;
    w->moves = (size_t)fmax(0.7 * (double)w->step, fmin((double)w->step, ceil(le_renewal_moves((double)w->step, reached, goal + 0.05))));
    return 0;
  }
  if (w->settled > 0) {
    w->settled--;
    w->renewed = NAN;
    w->moves = w->step;
    return 0;
  }
  if ((double)w->step >= most) {
    w->moves = w->step;
    return 0;
  }
  const double further = le_renewal_moves((double)w->step, reached, goal + 0.05);
  w->tried = w->step;
  w->tried_renewal = reached;
  w->moves = (size_t)fmin(fmin(2 * (double)w->step, most), fmax(ceil(further), (double)w->step + 1));
  return 1;
}

/* What a path says of the moves at its last point, where more were made than were planned. */
static void record_moves(walk *w)
{
  if (!w->settings.record || w->skip_moves) return;
  double *row = w->recorded.values + (w->recorded.rows - 1) * w->recorded.columns;
  row[LE_PATH_MOVES] = (double)w->step;
}

/* Particles whose kernel rejects nothing may lie too wide, because its steps are too long, or too
 * narrow, because they are too few. For any smooth density f, coordinate j and constant c,
 * E[(theta - c)_j d/dtheta_j log f] = -1; T_j, minus the same mean over the particles, is their
 * temperature in this coordinate. Where the likelihood has the share s_j of T_j, which is 1 where it
 * decides and 0 where the prior does, the mean of lambda times the log-likelihood is off by
 * -sum_j s_j (T_j - 1) / 2: exactly so of normal densities whose coordinates are independent, or
 * whose prior is flat. This is what log Z loses when the rows, or lambda, grow by a factor e. */
static le_status measure_heat(walk *w)
{
  const le_stage *stage = stage_of(w);
  const size_t d = w->d, m = w->m;
  double *grad = w->swap, *of_prior = w->twin, *centre = w->work, *wide = centre + d, *share = wide + d;
  double squares = 0, mean = 0, variance = 0;
  w->heat = NAN;
  if (w->skip_moves || !stage->kernel || (stage->kernel->ops->needs & LE_NEEDS_DENSITY) || stage->gradient != LE_GRADIENT_FULL ||
      w->settings.stages > 1 || w->settings.reverse)
    return LE_OK;
  for (size_t i = 0; i < m; i++) squares += w->weight[i] * w->weight[i];
  if (squares > 0.5) return LE_OK;
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
  w->heat = w->lost = 0;
  for (size_t j = 0; j < d; j++) {
    share[j] = wide[j] > 0 ? fmax(-1, fmin(share[j] / wide[j], 1)) : 1;
    w->heat += wide[j] / (double)d;
    w->lost += 0.5 * share[j] * (wide[j] - 1);
  }
  if (!isfinite(w->heat) || !isfinite(w->lost)) w->heat = w->lost = INFINITY;
  for (int second = 0; second < 2; second++)
    for (size_t i = 0; i < m; i++) {
      double term = 0;
      for (size_t j = 0; j < d; j++) term -= 0.5 * share[j] * (w->theta[i * d + j] - centre[j]) * grad[i * d + j];
      if (second) variance += pow(w->weight[i] * (term - mean), 2);
      else mean += w->weight[i] * term;
    }
  w->lost_variance = variance;
  return LE_OK;
}

/* The particles' present temperature costs so much on the way to the next distribution. */
void le_walk_add_lost(walk *w, double increment)
{
  const double grown = increment * (double)w->target.chunk / fmax(le_target_size(&w->target), 1);
  if (isnan(w->lost)) return;
  w->heated += grown * w->lost;
  w->heated_variance += grown * grown * w->lost_variance;
}

le_status le_walk_move(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  const le_stage *stage = stage_of(w);
  size_t moves = w->skip_moves ? 0 : moves_wanted(w);
  if (w->step < moves) {
    size_t made;
    LE_TRY(le_kernel_moves(stage->kernel->ops, w->kernel[w->stage], &w->target, w->m, w->theta, &w->machine.streams, moves - w->step, &made));
    w->step += made;
    if (w->step < moves) return LE_OK;
    if (w->resting > 0)
      w->resting--;
    else if (measures_renewal(w) && plan_more(w))
      return LE_OK;
    if (stage->kernel->ops->tune) stage->kernel->ops->tune(w->kernel[w->stage]);
    record_moves(w);
  }
  LE_TRY(measure_heat(w));
  if (stage->whole || w->settings.reverse) {
    LE_TRY(le_walk_add_trace(w, (double)(w->target.seen + w->target.chunk), w->target.lambda, 1));
    w->chunk_ess = 1;
  }
  if (follows(w) && !w->settings.reverse) w->at++;
  w->machine.phase = w->settings.reverse ? STEP_BACK : w->target.lambda < 1 ? REWEIGHT : CLOSE_CHUNK;
  return LE_OK;
}
