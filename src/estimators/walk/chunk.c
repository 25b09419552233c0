/* Opens and closes chunks of rows, and enters the next stage of the run. */
#include "estimators/walk/parts.h"

#include "base/logsum.h"

#include <math.h>

/* Fewest rows per parameter for the first check. With fewer rows, particles from the prior find
 * small modes that climbs miss: with 12 rows and five parameters the first check alone was 0.055
 * nats too low, with a standard error of 0.011. */
static const double FIRST_ROWS = 5;

static le_status begin_path(walk *w)
{
  if (!w->machine.closed) return le_machine_needs_rows(&w->machine);
  LE_TRY(le_path_check(&w->path, w->machine.store.n, &w->machine.context->error));
  if (!w->settings.reverse) return LE_OK;
  w->at = w->path.points;
  w->chunk_ess = 1;
  le_walk_go_to_point(w, w->at);
  return le_walk_begin_moves(w, 0);
}

/* Whether the first check, before any particle moves, is still to be made. */
static int may_check_first(const walk *w)
{
  return w->settings.first_look && w->settings.search && !w->settings.record &&
         w->settings.stages > 1 && w->stage == 0 && w->target.seen == 0 && !w->first_checked;
}

/* Draws or a check may follow, unless importance sampling has just seen all rows. */
static le_status end_of_rows(walk *w)
{
  w->machine.phase = FINISHED;
  if (w->from_importance) return LE_OK;
  if (w->settings.rounds)
    w->machine.phase = COLLECT;
  else if (w->settings.audit && w->target.seen > 0)
    w->machine.phase = w->settings.search ? SEARCH : AUDIT;
  w->step = 0;
  w->target.chunk = 0;
  w->target.lambda = 0;
  return w->machine.phase == FINISHED ? le_walk_past_error(w) : LE_OK;
}

le_status le_walk_open_chunk(void *self)
{
  walk *w = self;
  if (follows(w) && w->at == 0) {
    LE_TRY(begin_path(w));
    if (w->machine.progress == LE_NEEDS_ROWS || w->machine.phase != OPEN_CHUNK) return LE_OK;
  }
  const size_t seen = w->target.seen, there = w->machine.store.n - seen;
  while (w->stage + 1 < w->settings.stages && (double)seen >= stage_of(w)->until) {
    le_walk_resize(w, w->settings.stage[w->stage + 1].particles);
    le_walk_enter_stage(w, w->stage + 1);
  }
  /* once only: this function may be called again when more rows are there */
  if (w->retry_control_at && seen >= w->retry_control_at && w->stage + 1 == w->settings.stages) {
    /* the number of particles stays until control variates have been tested again */
    const size_t m = w->m;
    le_walk_enter_stage(w, w->stage - 1);
    w->m = m;
  }
  const le_stage *stage = stage_of(w);
  const double rows = (double)w->machine.store.n,
               few = w->target.ops->traits & LE_MODEL_UNITS ? 1 : FIRST_ROWS * (double)w->d;
  const int ended = there == 0 && w->machine.closed;
  if (may_check_first(w)) {
    if (!w->machine.closed && rows <= fmax(stage->until, few))
      return le_machine_needs_rows(&w->machine);
    if (w->machine.closed && rows < few) w->first_checked = 1;
    else if (!ended) {
      w->target.seen = (size_t)fmin(stage->until, w->restart_rows ? (double)w->restart_rows : rows);
      return le_walk_begin_check(w, CHECK_FIRST);
    }
  }
  if (ended) return end_of_rows(w);
  double wanted = floor(stage->chunk_fraction * (double)seen);
  wanted = fmin(fmax(wanted, stage->chunk_least), stage->chunk_most);
  if (stage->whole) wanted = INFINITY;
  if (!le_rows_of(&w->target)->readable) wanted = fmin(wanted, (double)w->settings.keep);
  if (seen < w->restart_rows) wanted = fmin(wanted, (double)(w->restart_rows - seen));
  /* one row more, so that it is known whether this is the last chunk: the size of the blocks in
   * which rows come must not matter */
  if ((double)there <= wanted && !w->machine.closed)
    return le_machine_needs_rows(&w->machine);
  if (stage->gradient == LE_GRADIENT_CONTROL && !w->rows_at_check && le_walk_may_check(w))
    return le_walk_begin_check(w, CHECK_INTERIM);
  w->target.chunk = (double)there < wanted ? there : (size_t)wanted;
  if (follows(w)) w->target.chunk = le_path_at(&w->path, w->at).chunk;
  w->target.lambda = 0;
  w->chunk_steps = 0;
  w->from_importance = 0;
  w->chunk_ess = 1;
  w->drift = NAN;
  if (stage->gradient != LE_GRADIENT_CONTROL) w->target.noise = NAN;
  w->shortest = 1;
  w->machine.phase = REWEIGHT;
  return stage->gradient == LE_GRADIENT_CONTROL ? le_walk_open_controlled_chunk(w) : LE_OK;
}

le_status le_walk_close_chunk(void *self)
{
  walk *w = self;
  const le_stage *stage = stage_of(w);
  if (stage->gradient == LE_GRADIENT_CONTROL) {
    le_gradient_close_chunk(&w->gradient[w->stage]);
    for (size_t k = 0; k < w->d * w->d; k++) w->anchor_info[k] += w->chunk_info[k];
  }
  if (w->settings.moments) {
    LE_TRY(le_target_log_lik(&w->target, w->target.seen, w->target.seen + w->target.chunk, w->m,
                             w->theta, w->chunk_value));
    LE_TRY(le_walk_add_moments(w, 0));
  }
  const size_t chunk = w->target.chunk;
  w->target.seen += chunk;
  w->target.chunk = 0;
  w->target.lambda = 0;
  w->target.proposal = NULL;
  /* after this shuffle a contiguous block of rows is a mini-batch, whatever their original order */
  if (stage->gradient == LE_GRADIENT_BATCH && le_rows_of(&w->target)->readable &&
      w->machine.store.mixed < w->target.seen)
    LE_TRY(le_store_shuffle(&w->machine.store, w->machine.store.mixed, w->target.seen,
                            w->machine.streams.order));
  LE_TRY(le_walk_let_rows_go(w, chunk));
  if (!stage->whole && w->target.seen >= w->restart_rows)
    LE_TRY(le_walk_add_trace(w, (double)w->target.seen, 1, (double)w->chunk_steps));
  if (w->settings.mean_weights) {
    /* the mean predictive density of a chunk is a separate factor of Z: the next chunk starts
     * with equal weights */
    le_walk_begin_from(w, w->log_z_before + le_logmeanexp(w->log_weight, w->m),
                       w->variance_before +
                         le_walk_unseen(w) * le_genealogy_variance(&w->genealogy));
    w->chunk_steps = 0;
  }
  w->machine.phase = OPEN_CHUNK;
  return LE_OK;
}
