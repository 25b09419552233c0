/* Reads the settings of the engine and of its stages (prefix "1.", "2." or "3."), and tests that
 * model, kernel and gradient rule fit together. le_setting tables test ranges. */
#include "estimators/walk/settings.h"

#include "core/search.h"

#include <math.h>
#include <string.h>

/* Their meaning is documented at the members of le_walk_settings and le_stage. */
const le_setting le_walk_table[] = {
  LE_COUNT_INTO(le_walk_settings, stages, "stages", 1, 1),
  LE_FLAG_INTO(le_walk_settings, shuffle, "shuffle", 0),
  LE_FLAG_INTO(le_walk_settings, mean_weights, "mean_weights", 0),
  LE_FLAG_INTO(le_walk_settings, correct, "correct", 0),
  LE_COUNT_INTO(le_walk_settings, lag, "lag", 2, 0),
  LE_REAL_INTO(le_walk_settings, unseen, "unseen", 1, 0, HUGE_VAL),
  LE_FLAG_INTO(le_walk_settings, audit, "audit", 0),
  LE_COUNT_INTO(le_walk_settings, audit_draws, "audit_draws", 100, 0),
  LE_COUNT_INTO(le_walk_settings, audit_lots, "audit_lots", 1, 1),
  LE_COUNT_INTO(le_walk_settings, audit_part, "audit_part", 0, 0),
  LE_REAL_INTO(le_walk_settings, audit_work, "audit_work", 0, 0, HUGE_VAL),
  LE_COUNT_SETTING("audit_least", NAN, 0),
  LE_COUNT_INTO(le_walk_settings, keep, "keep", 0, 0),
  LE_FLAG_INTO(le_walk_settings, keep_all, "keep_all", 0),
  LE_FLAG_INTO(le_walk_settings, again, "again", 0),
  LE_COUNT_SETTING("search", 0, 0),
  LE_FLAG_INTO(le_walk_settings, first_look, "first_look", 1),
  LE_COUNT_INTO(le_walk_settings, rounds, "rounds", 0, 0),
  LE_FLAG_INTO(le_walk_settings, bridge, "bridge", 0),
  LE_FLAG_INTO(le_walk_settings, restarts, "restarts", 0),
  LE_FLAG_INTO(le_walk_settings, moments, "moments", 0),
  LE_FLAG_INTO(le_walk_settings, record, "record", 0),
  LE_FLAG_SETTING("reverse", 0),
  LE_NUMBERS_SETTING("follow"),
  LE_NUMBERS_SETTING("from_state"),
  {0}};

const le_setting le_stage_table[] = {
  LE_COUNT_INTO(le_stage, particles, "particles", 0, 1),
  LE_REAL_INTO(le_stage, until, "until", HUGE_VAL, 0, HUGE_VAL),
  LE_FLAG_INTO(le_stage, whole, "whole", 0),
  LE_REAL_INTO(le_stage, chunk_least, "chunk_least", 500, 0, HUGE_VAL),
  LE_REAL_INTO(le_stage, chunk_fraction, "chunk_fraction", 0, 0, HUGE_VAL),
  LE_REAL_INTO(le_stage, chunk_most, "chunk_most", HUGE_VAL, 0, HUGE_VAL),
  LE_WORD_INTO(le_stage, schedule, "schedule", "one fixed adaptive curvature"),
  LE_REAL_INTO(le_stage, ess, "ess", 0, 0, HUGE_VAL),
  LE_NUMBERS_SETTING("lambda"),
  LE_WORD_INTO(le_stage, resampling, "resampling", LE_RESAMPLINGS),
  LE_REAL_INTO(le_stage, anneal, "anneal", 0, 0, HUGE_VAL),
  LE_REAL_INTO(le_stage, threshold, "threshold", 0, 0, 1),
  LE_WORD_INTO(le_stage, gradient, "gradient", "full batch control"),
  LE_COUNT_INTO(le_stage, batch, "batch", 500, 1),
  LE_FLAG_INTO(le_stage, own_batches, "own_batches", 0),
  LE_COUNT_INTO(le_stage, part, "part", 0, 0),
  LE_COUNT_SETTING("kernel", 0, 0),
  LE_COUNT_INTO(le_stage, steps, "steps", 0, 0),
  LE_REAL_INTO(le_stage, renew, "renew", 0, -1, 1),
  LE_REAL_INTO(le_stage, work, "work", 0, 0, HUGE_VAL),
  LE_FLAG_INTO(le_stage, move_resampled, "move_resampled", 0),
  LE_WORD_SETTING("metric", "auto curvature particles fixed"),
  LE_WORD_SETTING("mass", "default identity diagonal dense"),
  {0}};

static le_status match_kernel(const le_problem *problem, const le_stage *stage, le_error *error)
{
  const le_model_ops *model = problem->ops;
  const le_kernel_ops *kernel = stage->kernel->ops;
  const int has_gradient = model->log_lik_grad && model->log_prior_grad;
  if ((kernel->needs & LE_NEEDS_GRADIENT) && !has_gradient)
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` %s() needs gradients, which %s() does not offer: use rwm() or "
                   "slice().",
                   kernel->name, model->name);
  if ((kernel->needs & LE_NEEDS_DENSITY) && stage->gradient != LE_GRADIENT_FULL)
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` %s() accepts or rejects on the exact density, which mini-batches do "
                   "not give: use baoab(), sghmc() or sgld(), or `batch = Inf`.",
                   kernel->name);
  if (kernel->needs & LE_NEEDS_FLOOR)
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` %s() is for nested() only: it draws from the prior and ignores the "
                   "particles.",
                   kernel->name);
  return LE_OK;
}

static le_status read_stage(const le_problem *problem, size_t s, le_stage *stage, le_error *error)
{
  const le_model_ops *model = problem->ops;
  const le_args *args = &problem->settings;
  memset(stage, 0, sizeof *stage);
  le_stage_read(args, le_stage_table, s, stage);
  if (stage->particles < 1)
    return le_fail(error, LE_BAD_ARGUMENT, "`particles` must be at least 1.");
  if (stage->ess > (double)stage->particles)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "`ess` must not exceed the number of particles, %d, but is %g.",
                   (int)stage->particles, stage->ess);
  if (stage->schedule == LE_FIXED_STEPS) {
    const le_arg *lambda = le_stage_numbers(args, s, "lambda");
    if (!lambda || !lambda->values || lambda->n < 1 || lambda->values[lambda->n - 1] != 1)
      return le_fail(error, LE_BAD_ARGUMENT,
                     "`schedule` must be an increasing list that ends at 1.");
    stage->lambda = lambda->values;
    stage->lambdas = lambda->n;
  }
  if (stage->schedule == LE_CURVATURE_STEPS &&
      (model->discrete || !(model->log_lik_hess && model->log_prior_hess)))
    stage->schedule = LE_ADAPTIVE_STEPS;

  const double kernel = le_stage_number(args, le_stage_table, s, "kernel");
  const int metric = le_stage_word(args, le_stage_table, s, "metric"),
            mass = le_stage_word(args, le_stage_table, s, "mass");
  if (kernel >= 1 && kernel <= (double)problem->kernels)
    stage->kernel = &problem->kernel[(size_t)kernel - 1];
  if (!stage->kernel) stage->steps = 0;
  stage->metric_kind = stage->kernel ? stage->kernel->ops->default_metric : LE_METRIC_IDENTITY;
  if (mass > 0) stage->metric_kind = (le_metric_kind)(mass - 1);
  const int curvature = (model->log_lik_hess || model->information) && model->log_prior_hess &&
                        !model->discrete;
  stage->metric = stage->metric_kind == LE_METRIC_IDENTITY || metric == 3 ? LE_METRIC_FIXED
                  : metric == 2 || !curvature ||
                          (metric == 0 && (model->traits & LE_MODEL_MULTIMODAL) &&
                           stage->gradient != LE_GRADIENT_CONTROL)
                      ? LE_METRIC_FROM_PARTICLES
                      : LE_METRIC_FROM_CURVATURE;
  return stage->kernel ? match_kernel(problem, stage, error) : LE_OK;
}

/* A path can be recorded or followed if the run has one stage, exact densities, and no choice
 * that needs the particles twice. */
static le_status read_path(const le_problem *problem, le_walk_settings *settings, le_error *error)
{
  const le_args *args = &problem->settings;
  const le_stage *stage = &settings->stage[0];
  settings->follow = le_args_find(args, "follow");
  if (!settings->record && !settings->follow) return LE_OK;
  if (settings->stages > 1 || stage->gradient != LE_GRADIENT_FULL || settings->shuffle ||
      settings->mean_weights || settings->correct || (settings->rounds && settings->follow) ||
      !stage->kernel)
    return le_fail(error, LE_UNSUPPORTED,
                   "This method has no path that could be followed or reversed.");
  if (!(stage->kernel->ops->needs & LE_ANY_STEP))
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` must be hmc(), mala(), rwm() or slice(), which leave the posterior "
                   "exactly invariant, not %s(): a kernel with a step-size error gives no bounds.",
                   stage->kernel->ops->name);
  if (!settings->follow) return LE_OK;
  settings->reverse = le_setting_flag(args, le_walk_table, "reverse");
  const le_arg *from = le_args_find(args, "from_state");
  const size_t d = problem->ops->dim(problem->model);
  if (settings->reverse && (!from || !from->values || from->n < d || from->n % d != 0))
    return le_fail(error, LE_BAD_ARGUMENT,
                   "A reverse run needs an exact draw from the posterior to start from.");
  settings->from = settings->reverse ? from->values : NULL;
  settings->starts = settings->reverse ? from->n / d : 0;
  return LE_OK;
}

/* Climbs by differences of gradients are expensive: they are made up to this dimension. */
enum { BY_DIFFERENCES_MOST = 60 };

static int may_climb(const le_problem *problem)
{
  const le_model_ops *model = problem->ops;
  if (!model->log_prior_grad || !model->dim || model->discrete) return 0;
  if (model->log_lik_hess && model->log_prior_hess) return 1;
  return model->log_lik_grad && model->dim(problem->model) <= BY_DIFFERENCES_MOST;
}

/* `search` 1 means as many starts as suit the dimension, for a model with curvature and starts
 * of its own; otherwise it is the largest number allowed. */
static size_t search_starts(const le_problem *problem)
{
  const double wanted = le_setting_number(&problem->settings, le_walk_table, "search");
  if (wanted == 0 || !may_climb(problem)) return 0;
  const size_t d = problem->ops->dim(problem->model);
  return wanted == 1 ? le_search_starts(d) : (size_t)fmax(4, fmin(wanted, 600 / (double)d));
}

le_status le_walk_settings_read(const le_problem *problem, le_walk_settings *settings,
                                le_error *error)
{
  memset(settings, 0, sizeof *settings);
  le_settings_read(&problem->settings, le_walk_table, settings);
  if (settings->stages < 1 || settings->stages > LE_STAGES_MOST)
    return le_fail(error, LE_BAD_ARGUMENT, "`stages` must be 1, 2 or 3, not %d.",
                   (int)settings->stages);
  const double least = le_setting_number(&problem->settings, le_walk_table, "audit_least");
  settings->audit_least = isnan(least) ? settings->audit_draws : (size_t)least;
  settings->search = search_starts(problem);
  for (size_t s = 0; s < settings->stages; s++)
    LE_TRY(read_stage(problem, s, &settings->stage[s], error));
  if (!may_climb(problem)) settings->audit = 0;
  if (!settings->audit && !settings->first_look) settings->search = 0;
  return read_path(problem, settings, error);
}
