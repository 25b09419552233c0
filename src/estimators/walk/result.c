/* Reports the results of a run: figures, draws, trace, moments, path and audit. */
#include "estimators/walk/parts.h"

#include "base/logsum.h"

#include <math.h>

static const char *const moment_names[MOMENT_COLUMNS] = {"lambda", "mean", "variance", "ess",
                                                         "log_ratio"};
static const char *const trace_names[TRACE_COLUMNS] = {
  "n",     "lambda",     "log_evidence", "se",        "lambda_steps", "shortest",
  "ess",   "acceptance", "step_size",    "particles", "temperature",  "noise",
  "drift", "restarts",   "moves",        "renewal",   "evaluations",  "seconds"};

le_status le_walk_result(void *self, le_result *result)
{
  walk *w = self;
  double *s = w->summary;
  s[0] = le_walk_current_log_evidence(w);
  s[1] = le_walk_current_se(w);
  if (w->settings.rounds && w->machine.phase == FINISHED) {
    if (w->settings.bridge) {
      s[0] = w->bridging.log_evidence;
      s[1] = w->bridging.se;
    } else {
      s[0] = le_logharmonic(w->draw_value, w->m, w->settings.rounds, &s[1]);
    }
  }
  s[2] = (double)w->target.seen;
  s[3] = w->lambda_steps;
  s[4] = w->target.likelihoods;
  s[5] = w->target.gradients;
  s[6] = w->machine.seconds;
  static const char *const names[] = {"log_evidence", "se",        "n",      "lambda_steps",
                                      "likelihoods",  "gradients", "seconds"};
  le_result_figures(result, sizeof names / sizeof *names, names, s);

  if (w->settings.rounds && w->machine.phase == FINISHED) {
    le_result_array(result, "draws", w->d, w->m * w->settings.rounds, w->draw_theta);
  } else {
    le_result_array(result, "draws", w->d, w->m, w->theta);
    le_result_array(result, "log_weights", 1, w->m, w->log_weight);
  }
  if (!isnan(w->bias_rate)) {
    s[10] = w->bias_total;
    s[11] = sqrt(w->bias_total_variance);
    le_result_figure(result, "heated", &s[10]);
    le_result_figure(result, "heated_noise", &s[11]);
  }
  LE_TRY(le_trace_output(&w->trace, trace_names, result));
  if (w->settings.moments)
    le_result_table(result, "moments", MOMENT_COLUMNS, moment_names, MOMENT_COLUMNS,
                    w->moments.rows, w->moments.values);
  if (w->settings.record)
    le_result_table(result, "path", LE_PATH_LABELLED, le_path_names, w->recorded.columns,
                    w->recorded.rows, w->recorded.values);
  if (w->machine.store.gone) {
    const le_rows sample = le_store_rows(&w->machine.store, 0, w->target.seen);
    s[13] = (double)(w->audit_round == ROUND_EXACT);
    le_result_figure(result, "past_se", &w->past_se);
    le_result_figure(result, "past_changed", &w->changed);
    le_result_figure(result, "past_exact", &s[13]);
    le_result_array(result, "sample", sample.width, sample.n, sample.values);
  }
  if (w->settings.audit && w->machine.phase == FINISHED && w->target.seen > 0) {
    const le_audit *a = &w->audit;
    s[7] = (double)a->failed;
    s[8] = (double)(a->modes + (a->modes == 0 && a->in_two_steps && !a->failed));
    s[9] = (double)w->from_importance;
    s[12] = le_walk_chance_of(w->d);
    le_result_figure(result, "audit_chance", &s[12]);
    le_result_figure(result, "audit_first", &s[9]);
    le_result_figure(result, "audit_failed", &s[7]);
    le_result_figure(result, "audit_modes", &s[8]);
    le_result_figure(result, "audit_log_evidence", &a->log_evidence);
    le_result_figure(result, "audit_se", &a->se);
    s[14] = w->settings.search ? le_search_unseen(&w->search, a, LE_FEW_HITS) : 0;
    le_result_figure(result, "audit_missing", &s[14]);
    le_result_figure(result, "audit_unreached", &a->unreached);
    le_result_figure(result, "audit_laplace", &a->laplace);
    le_result_figure(result, "audit_ess", &a->effective_size);
    le_result_figure(result, "audit_ideal", &a->ideal_size);
    le_result_figure(result, "audit_pareto_k", &a->pareto_k);
    le_result_figure(result, "audit_unseen", &a->unseen);
    le_result_figure(result, "audit_cost", &w->check_cost);
    if (!a->failed) {
      le_result_array(result, "audit_draws", w->d, a->draws, a->theta);
      le_result_array(result, "audit_log_weights", 1, a->draws, a->log_weight);
    }
  }
  return LE_OK;
}
