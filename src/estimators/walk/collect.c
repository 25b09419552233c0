/* Posterior draws after the last chunk, for the harmonic mean and bridge sampling. */
#include "estimators/walk/parts.h"

#include <string.h>

/* The particles are resampled once to equal weight; each then runs its own Markov chain, and
 * each round keeps one draw per chain. */
le_status le_walk_collect(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  const le_stage *stage = stage_of(w);
  if (w->step == 0) {
    le_walk_resample(w, w->m);
    LE_TRY(le_walk_update_metric(w));
  }
  if (stage->kernel->ops->begin)
    LE_TRY(stage->kernel->ops->begin(w->kernel[w->stage], &w->target, w->m, w->theta,
                                     &w->machine.streams));
  const size_t moves = w->moves > stage->steps ? w->moves : stage->steps;
  for (size_t s = 0; s < moves; s++)
    LE_TRY(stage->kernel->ops->move(w->kernel[w->stage], &w->target, w->m, w->theta,
                                    &w->machine.streams));
  LE_TRY(le_target_log_lik(&w->target, 0, w->target.seen, w->m, w->theta,
                           w->draw_value + w->step * w->m));
  memcpy(w->draw_theta + w->step * w->m * w->d, w->theta, w->m * w->d * sizeof(double));
  if (++w->step < w->settings.rounds) return LE_OK;
  w->machine.phase = w->settings.bridge ? BRIDGE : FINISHED;
  return w->settings.bridge
             ? le_bridging_start(&w->bridging, &w->target, w->draw_theta, w->draw_value)
             : LE_OK;
}

le_status le_walk_bridge(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  LE_TRY(le_bridging_step(&w->bridging, &w->target, w->machine.streams.rng[0]));
  if (w->bridging.done) w->machine.phase = FINISHED;
  return LE_OK;
}
