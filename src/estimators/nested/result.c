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
  static const char *const names[] = {"log_evidence", "se",        "n",         "lambda_steps",
                                      "likelihoods",  "gradients", "seconds",   "information",
                                      "lower",        "upper",     "published", "simulated"};
  double *out = s->summary;
  le_volumes volumes = {0};
  if (s->whole && s->machine.phase == FINISHED && s->levels.rows > 0) {
    LE_TRY(le_nested_sum_volumes(s, s->live, &volumes));
    out[0] = volumes.log_evidence;
    out[1] = volumes.se;
  } else {
    volumes.information = s->information;
    volumes.lower = volumes.upper = volumes.published = volumes.mean = NAN;
    out[0] = s->banked;
    out[1] = sqrt(s->banked_variance);
  }
  out[2] = (double)s->target.seen;
  out[3] = s->rounds;
  out[4] = s->target.likelihoods;
  out[5] = s->target.gradients;
  out[6] = s->machine.seconds;
  out[7] = volumes.information;
  out[8] = volumes.lower;
  out[9] = volumes.upper;
  out[10] = volumes.published;
  out[11] = volumes.mean;
  le_result_figures(result, sizeof names / sizeof *names, names, out);
  if (s->whole && s->machine.phase == FINISHED && s->levels.rows > 0) {
    le_result_table(result, "levels", LEVEL_COLUMNS, level_names, LEVEL_COLUMNS, s->levels.rows,
                    s->levels.values);
    le_result_array(result, "level_log_weights", 1, s->levels.rows, s->log_weights);
    if (s->keeps) {
      le_result_array(result, "draws", s->d, s->points.rows, s->points.values);
      le_result_array(result, "log_weights", 1, s->levels.rows, s->log_weights);
    } else {
      le_result_array(result, "draws", s->d, s->reservoir.n, s->reservoir.theta);
      le_result_array(result, "log_weights", 1, s->reservoir.n, s->reservoir.log_weight);
    }
    le_result_array(result, "log_volumes", 1, s->levels.rows, s->log_volumes);
  } else {
    le_result_array(result, "draws", s->d,
                    s->machine.phase == FINISHED && s->target.seen > 0 ? s->kept : s->live,
                    s->theta);
  }
  return le_trace_output(&s->trace, trace_names, result);
}
