/* When rows leave the memory during the walk, and what the run does if their distribution has
 * changed since. */
#include "estimators/walk/parts.h"

le_status le_walk_let_rows_go(walk *w, size_t chunk)
{
  le_past *past = &w->past;
  const le_gradient *g = &w->gradient[w->stage];
  const int anchored = g->rule == LE_GRADIENT_CONTROL && g->anchored;
  if (!le_past_due(past, &w->target) || (w->settings.keep_all && !w->reopened)) return LE_OK;
  if (!anchored && le_past_is_stale(past, &w->target)) le_walk_labelled_mean(w);
  return le_past_let_go(past, &w->target, &w->machine.store, chunk, anchored ? g : NULL, w->centre,
                        w->machine.streams.order);
}

void le_walk_forget_anchors(walk *w)
{
  w->retry_control_at = w->noise_measured_at = 0;
  for (size_t s = 0; s < w->settings.stages; s++) w->gradient[s].anchored = 0;
  if (w->settings.search) le_search_start(&w->search);
}

/* The rows to start again from cannot be read: importance sampling around the modes of the sample
 * gives new particles. */
le_status le_walk_restart_from_sample(walk *w)
{
  const size_t chunk = w->target.chunk;
  w->target.seen += chunk;
  w->target.chunk = 0;
  w->target.lambda = 0;
  LE_TRY(le_past_add(&w->past, &w->target, &w->machine.store, chunk, NULL,
                     w->machine.streams.order));
  w->restart_rows = w->target.seen;
  w->restarts++;
  w->changed++;
  le_walk_forget_anchors(w);
  return le_walk_begin_check(w, CHECK_INTERIM);
}

/* At the end of a run whose rows are all in memory: only a sample of them stays, with sums at the
 * mode that the check has found, or at the mean of the particles. */
static le_status condense(walk *w)
{
  const le_audit *a = &w->audit;
  const int known = w->settings.audit && a->phase == LE_AUDIT_DONE && !a->failed &&
                    w->past.order == 2 && a->part > 0 && !a->in_two_steps;
  if (!le_rows_of(&w->target)->readable || !le_past_due(&w->past, &w->target)) return LE_OK;
  if (!known) {
    le_walk_labelled_mean(w);
    return le_past_begin(&w->past, &w->target, &w->machine.store, w->centre, NULL,
                         w->machine.streams.order);
  }
  le_walk_relabel_to(w, a->mode[0].theta);
  return le_past_begin(&w->past, &w->target, &w->machine.store, a->mode[0].theta,
                       le_audit_sums(&w->audit, &w->target), w->machine.streams.order);
}

le_status le_walk_reopen(void *self)
{
  walk *w = self;
  if (w->machine.phase != FINISHED || !w->machine.closed || follows(w) || w->settings.rounds ||
      stage_of(w)->whole)
    return le_fail(&w->machine.context->error, LE_UNSUPPORTED,
                   "This run cannot take further rows.");
  LE_TRY(condense(w));
  w->audit.drawn = 0; /* the next check makes its own draws: these need not be saved */
  le_walk_forget_anchors(w);
  w->past.plain = 0;
  w->passes = 0;
  w->reopened = w->machine.once = 1;
  w->machine.shuffle = 0;
  w->machine.closed = 0;
  w->machine.phase = OPEN_CHUNK;
  return LE_OK;
}
