/* Posterior draws after the last chunk, for the harmonic mean and bridge sampling, and the results
 * of a run: figures, draws, trace, moments, path and audit. */
#include "estimators/walk/parts.h"

#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* The particles are resampled once to equal weight; each then runs its own Markov chain, and
 * each round keeps one draw per chain. */
le_status le_walk_collect(void *self)
{
  walk *w = self;
  const le_stage *stage = stage_of(w);
  if (w->step == 0) {
    le_walk_resample(w, w->m);
    LE_TRY(le_walk_update_metric(w));
  }
  LE_TRY(le_kernel_begin(w->kernel[w->stage], &w->target, w->m, w->theta, &w->machine.streams));
  const size_t moves = w->moves > stage->steps ? w->moves : stage->steps;
  for (size_t s = 0, made; s < moves; s++)
    LE_TRY(le_kernel_moves(w->kernel[w->stage], &w->target, w->m, w->theta, &w->machine.streams, 1,
                           &made));
  LE_TRY(le_target_log_lik(&w->target, 0, w->target.seen, w->m, w->theta,
                           w->draw_value + w->step * w->m));
  memcpy(w->draw_theta + w->step * w->m * w->d, w->theta, w->m * w->d * sizeof(double));
  if (++w->step < w->settings.rounds) return LE_OK;
  w->machine.phase = w->settings.bridge ? BRIDGE : FINISHED;
  return w->settings.bridge
             ? le_bridging_start(&w->bridging, &w->target, w->draw_theta, w->draw_value)
             : LE_OK;
}

le_status le_walk_bridge(void *self)
{
  walk *w = self;
  LE_TRY(le_bridging_step(&w->bridging, &w->target, w->machine.streams.rng[0]));
  if (w->bridging.done) w->machine.phase = FINISHED;
  return LE_OK;
}

static const char *const moment_names[MOMENT_COLUMNS] = {"lambda", "mean", "variance", "ess",
                                                         "log_ratio"};
const char *const le_walk_columns[] = {
  "n",     "lambda",     "log_evidence", "se",        "lambda_steps", "shortest",
  "ess",   "acceptance", "step_size",    "particles", "temperature",  "noise",
  "drift", "restarts",   "moves",        "renewal",   "evaluations",  "seconds",
  NULL};

/* The figures of the whole run. */
static void add_summary(walk *w, le_result *result, int collected)
{
  double log_evidence = le_walk_current_log_evidence(w), se = le_walk_current_se(w);
  if (collected && w->settings.bridge) {
    log_evidence = w->bridging.log_evidence;
    se = w->bridging.se;
  } else if (collected) {
    log_evidence = le_logharmonic(w->draw_value, w->m, w->settings.rounds, &se);
  }
  const le_figure figures[] = {
    {"log_evidence", log_evidence}, {"se", se}, {"n", (double)w->target.seen},
    {"lambda_steps", w->lambda_steps}, {"likelihoods", w->target.likelihoods},
    {"gradients", w->target.gradients}, {"seconds", w->machine.seconds}};
  le_result_figures(result, LE_TABLE(figures));
}

static void add_audit(walk *w, le_result *result)
{
  const le_audit *a = &w->audit;
  const size_t modes = a->modes + (a->modes == 0 && a->in_two_steps && !a->failed);
  const double missing = w->settings.search ? le_search_unseen(&w->search, a, LE_FEW_HITS) : 0;
  const le_figure figures[] = {
    {"audit_chance", le_walk_chance_of(w->d)}, {"audit_first", w->from_importance},
    {"audit_failed", a->failed}, {"audit_modes", (double)modes},
    {"audit_log_evidence", a->log_evidence}, {"audit_se", a->se}, {"audit_missing", missing},
    {"audit_unreached", a->unreached}, {"audit_laplace", a->laplace},
    {"audit_ess", a->effective_size}, {"audit_ideal", a->ideal_size},
    {"audit_pareto_k", a->pareto_k}, {"audit_unseen", a->unseen},
    {"audit_thin", a->thin}, {"audit_cost", w->check_cost},
    {"audit_given_scales", a->in_two_steps}};
  le_result_figures(result, LE_TABLE(figures));
  le_audit_list_modes(&w->audit, result);
  if (a->failed) return;
  le_result_array(result, "audit_draws", w->d, a->draws, a->theta);
  le_result_array(result, "audit_log_weights", 1, a->draws, a->log_weight);
}

le_status le_walk_result(void *self, le_result *result)
{
  walk *w = self;
  const int finished = w->machine.phase == FINISHED, collected = w->settings.rounds && finished;
  add_summary(w, result, collected);
  if (collected) {
    le_result_array(result, "draws", w->d, w->m * w->settings.rounds, w->draw_theta);
  } else {
    le_result_array(result, "draws", w->d, w->m, w->theta);
    le_result_array(result, "log_weights", 1, w->m, w->log_weight);
  }
  if (!isnan(w->bias_rate)) {
    const le_figure heated[] = {{"heated", w->bias_total},
                                {"heated_noise", sqrt(w->bias_total_variance)}};
    le_result_figures(result, LE_TABLE(heated));
  }
  if (w->settings.moments)
    le_result_table(result, "moments", MOMENT_COLUMNS, moment_names, MOMENT_COLUMNS,
                    w->moments.rows, w->moments.values);
  if (w->settings.record)
    le_result_table(result, "path", LE_PATH_LABELLED, le_path_names, w->recorded.columns,
                    w->recorded.rows, w->recorded.values);
  const int readable = le_rows_of(&w->target)->readable;
  if (!readable) {
    const le_figure past[] = {{"past_se", w->past_se},
                              {"past_changed", w->changed},
                              {"past_apart", w->apart},
                              {"past_exact", w->audit_round == ROUND_EXACT}};
    le_result_figures(result, LE_TABLE(past));
  }
  /* of more rows than are kept; they may still be all here if they came with the last chunk */
  if (!readable || (le_past_due(&w->past, &w->target) && !w->settings.keep_all)) {
    const le_rows sample = le_store_rows(&w->machine.store, 0, w->target.seen);
    le_result_array(result, "sample", sample.width, sample.n, sample.values);
  }
  if (w->settings.audit && finished && w->target.seen > 0) add_audit(w, result);
  return LE_OK;
}
