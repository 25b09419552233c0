/* The trace and the result of a run. */
#include "estimators/nested/parts.h"

#include "base/logsum.h"

#include <math.h>
#include <string.h>

static const char *const level_names[LEVEL_COLUMNS] = {"log_lik",   "tie",  "birth",
                                                       "birth_tie", "rank", "live"};
static const char *const trace_names[TRACE_COLUMNS] = {"n",         "log_evidence", "se",
                                                       "steps",     "ess",          "acceptance",
                                                       "step_size", "particles",    "evaluations",
                                                       "seconds",   "log_lik",      "log_volume",
                                                       "renewal",   "echo"};

le_status le_nested_add_trace(nested *s)
{
  const le_kernel_report report = s->spec->ops->report(s->kernel);
  const double rest[2] = {s->log_sum, le_nested_best(s) + s->log_volume};
  const double row[TRACE_COLUMNS] = {(double)(s->target.seen + s->target.chunk),
                                     s->banked + le_logsumexp(rest, 2),
                                     sqrt(s->banked_variance +
                                          fmax(-s->log_volume, 0) / (double)s->live),
                                     (double)s->steps,
                                     (double)s->live,
                                     report.acceptance,
                                     report.step_size,
                                     (double)s->live,
                                     s->target.likelihoods + s->target.gradients,
                                     s->machine.seconds,
                                     s->floor.value,
                                     s->log_volume,
                                     s->renewal,
                                     s->echo};
  double *added = le_trace_add(&s->trace);
  if (!added) return LE_NO_MEMORY;
  memcpy(added, row, sizeof row);
  return LE_OK;
}

le_status le_nested_result(void *self, le_result *result)
{
  nested *s = self;
  static const char *const names[SUMMARY] = {
    "log_evidence", "se",          "n",     "lambda_steps", "likelihoods", "gradients",
    "seconds",      "information", "lower", "upper",        "published",   "simulated"};
  const int summed = s->whole && s->machine.phase == FINISHED && s->levels.rows > 0;
  le_volumes v = {.log_evidence = s->banked, .se = sqrt(s->banked_variance), .lower = NAN,
                  .upper = NAN, .published = NAN, .mean = NAN, .information = s->information};
  if (summed) LE_TRY(le_nested_sum_volumes(s, s->live, &v));
  const double values[SUMMARY] = {v.log_evidence, v.se, (double)s->target.seen, s->rounds,
                                  s->target.likelihoods, s->target.gradients, s->machine.seconds,
                                  v.information, v.lower, v.upper, v.published, v.mean};
  memcpy(s->summary, values, sizeof values);
  le_result_figures(result, SUMMARY, names, s->summary);
  if (summed) {
    const size_t n = s->levels.rows;
    le_result_table(result, "levels", LEVEL_COLUMNS, level_names, LEVEL_COLUMNS, n,
                    s->levels.values);
    le_result_array(result, "level_log_weights", 1, n, s->log_weights);
    le_result_array(result, "draws", s->d, s->keeps ? n : s->reservoir.n,
                    s->keeps ? s->points.values : s->reservoir.theta);
    le_result_array(result, "log_weights", 1, s->keeps ? n : s->reservoir.n,
                    s->keeps ? s->log_weights : s->reservoir.log_weight);
    le_result_array(result, "log_volumes", 1, n, s->log_volumes);
  } else {
    le_result_array(result, "draws", s->d,
                    s->machine.phase == FINISHED && s->target.seen > 0 ? s->kept : s->live,
                    s->theta);
  }
  return le_trace_output(&s->trace, trace_names, result);
}
