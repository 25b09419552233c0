/* Names of stage settings carry the prefix "1." or "2."; R has checked ranges, so what is wrong here is a mismatch of
 * parts, said in a sentence. */
#include "estimators/walk_settings.h"

#include "core/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "1.particles" and so on; args are looked up at once, so one buffer per call is enough. */
typedef struct setting_name {
  char text[32];
} setting_name;

static setting_name name_of(size_t stage, const char *name)
{
  setting_name full;
  snprintf(full.text, sizeof full.text, "%d.%s", (int)stage + 1, name);
  return full;
}

static double number(const le_problem *problem, size_t stage, const char *name, double fallback)
{
  return le_args_number(&problem->settings, name_of(stage, name).text, fallback);
}

/* Which of `choices` the word is; -1 for none of them. */
static int choice(const le_problem *problem, size_t stage, const char *name, const char *const *choices, int n)
{
  const char *word = le_args_word(&problem->settings, name_of(stage, name).text, choices[0]);
  for (int i = 0; i < n; i++)
    if (strcmp(word, choices[i]) == 0) return i;
  return -1;
}

static le_status match_kernel(const le_problem *problem, const le_stage *stage, le_error *error)
{
  const le_model_ops *model = problem->ops;
  const le_kernel_ops *kernel = stage->kernel->ops;
  const int has_gradient = model->log_lik_grad && model->log_prior_grad;
  if ((kernel->needs & LE_NEEDS_GRADIENT) && !has_gradient)
    return le_fail(error, LE_UNSUPPORTED, "`kernel` %s() needs gradients, which %s() does not offer here: use rwm() or slice(), or nested().",
                   kernel->name, model->name);
  if ((kernel->needs & LE_NEEDS_DENSITY) && stage->gradient != LE_GRADIENT_FULL)
    return le_fail(error, LE_UNSUPPORTED,
                   "`kernel` %s() accepts or rejects on the exact density, which mini-batches do not give: use "
                   "baoab(), sghmc() or sgld(), or `batch = Inf`.",
                   kernel->name);
  if (kernel->needs & LE_NEEDS_FLOOR)
    return le_fail(error, LE_UNSUPPORTED, "`kernel` %s() is for nested() alone: it draws from the prior, wherever the "
                   "particles are.", kernel->name);
  return LE_OK;
}

static le_status read_stage(const le_problem *problem, size_t s, le_stage *stage, le_error *error)
{
  static const char *const schedules[] = {"one", "fixed", "adaptive", "curvature"};
  static const char *const gradients[] = {"full", "batch", "control"};
  static const char *const metrics[] = {"auto", "curvature", "particles", "fixed"};
  static const char *const masses[] = {"default", "identity", "diagonal", "dense"};
  static const char *const resamplings[] = {"systematic", "stratified", "multinomial", "residual"};
  const le_model_ops *model = problem->ops;
  memset(stage, 0, sizeof *stage);
  stage->particles = (size_t)number(problem, s, "particles", 0);
  stage->until = number(problem, s, "until", INFINITY);
  stage->whole = number(problem, s, "whole", 0) != 0;
  stage->chunk_least = number(problem, s, "chunk_least", 500);
  stage->chunk_fraction = number(problem, s, "chunk_fraction", 0);
  stage->chunk_most = number(problem, s, "chunk_most", INFINITY);
  stage->ess = number(problem, s, "ess", 0);
  stage->anneal = number(problem, s, "anneal", 0);
  stage->threshold = number(problem, s, "threshold", 0);
  stage->batch = (size_t)number(problem, s, "batch", 500);
  stage->part = (size_t)number(problem, s, "part", 0);
  stage->steps = (size_t)number(problem, s, "steps", 0);
  stage->renew = number(problem, s, "renew", 0);
  stage->work = number(problem, s, "work", 0);
  stage->move_resampled = number(problem, s, "move_resampled", 0) != 0;

  const int schedule = choice(problem, s, "schedule", schedules, 4), gradient = choice(problem, s, "gradient", gradients, 3),
            metric = choice(problem, s, "metric", metrics, 4), mass = choice(problem, s, "mass", masses, 4),
            resampling = choice(problem, s, "resampling", resamplings, 4);
  if (schedule < 0 || gradient < 0 || metric < 0 || mass < 0 || resampling < 0)
    return le_fail(error, LE_BAD_ARGUMENT, "Stage %d of the walk has an unknown setting.", (int)s + 1);
  stage->schedule = (le_schedule_rule)schedule;
  stage->gradient = (le_gradient_rule)gradient;
  stage->resampling = (le_resampling)resampling;
  if (stage->particles < 1) return le_fail(error, LE_BAD_ARGUMENT, "`particles` must be at least 1.");
  if (stage->ess > (double)stage->particles)
    return le_fail(error, LE_BAD_ARGUMENT, "`ess` must not exceed the number of particles, %d, but is %g.",
                   (int)stage->particles, stage->ess);
  if (stage->schedule == LE_FIXED_STEPS) {
    const le_arg *lambda = le_args_find(&problem->settings, name_of(s, "lambda").text);
    if (!lambda || !lambda->values || lambda->n < 1 || lambda->values[lambda->n - 1] != 1)
      return le_fail(error, LE_BAD_ARGUMENT, "`schedule` must be an increasing list that ends at 1.");
    stage->lambda = lambda->values;
    stage->lambdas = lambda->n;
  }
  if (stage->schedule == LE_CURVATURE_STEPS && !(model->log_lik_hess && model->log_prior_hess))
    stage->schedule = LE_ADAPTIVE_STEPS;

  const double kernel = number(problem, s, "kernel", 0);
  if (kernel >= 1 && kernel <= (double)problem->kernels) stage->kernel = &problem->kernel[(size_t)kernel - 1];
  if (!stage->kernel) stage->steps = 0;
  stage->metric_kind = stage->kernel ? stage->kernel->ops->default_metric : LE_METRIC_IDENTITY;
  if (mass > 0) stage->metric_kind = (le_metric_kind)(mass - 1);
  const int curvature = (model->log_lik_hess || model->information) && model->log_prior_hess;
  stage->metric = stage->metric_kind == LE_METRIC_IDENTITY || metric == 3 ? LE_METRIC_FIXED
                  : metric == 2 || !curvature || (metric == 0 && (model->traits & LE_MODEL_MULTIMODAL) &&
                                                  stage->gradient != LE_GRADIENT_CONTROL)
                      ? LE_METRIC_FROM_PARTICLES
                      : LE_METRIC_FROM_CURVATURE;
  return stage->kernel ? match_kernel(problem, stage, error) : LE_OK;
}

/* A path has one stage of exact moves and nothing that looks at the particles twice. */
static le_status read_path(const le_problem *problem, le_walk_settings *settings, le_error *error)
{
  const le_args *args = &problem->settings;
  const le_stage *stage = &settings->stage[0];
  settings->record = le_args_number(args, "record", 0) != 0;
  settings->follow = le_args_find(args, "follow");
  if (!settings->record && !settings->follow) return LE_OK;
  if (settings->stages > 1 || stage->gradient != LE_GRADIENT_FULL || settings->shuffle || settings->mean_weights ||
      settings->correct || (settings->rounds && settings->follow) || !stage->kernel)
    return le_fail(error, LE_UNSUPPORTED, "This method has no path that could be followed or reversed.");
  if (!stage->kernel->ops->fix)
    return le_fail(error, LE_UNSUPPORTED, "`kernel` must be hmc(), mala(), rwm() or slice() for walks that are reversed, "
                   "not %s(): it does not leave its distribution exactly as it is.", stage->kernel->ops->name);
  if (!settings->follow) return LE_OK;
  settings->reverse = le_args_number(args, "reverse", 0) != 0;
  const le_arg *from = le_args_find(args, "from_state");
  const size_t d = problem->ops->dim(problem->model);
  if (settings->reverse && (!from || !from->values || from->n < d || from->n % d != 0))
    return le_fail(error, LE_BAD_ARGUMENT, "A reverse walk needs an exact draw from the posterior to start from.");
  settings->from = settings->reverse ? from->values : NULL;
  settings->starts = settings->reverse ? from->n / d : 0;
  return LE_OK;
}

/* Climbs by differences of gradients are dear, and made in few dimensions only. */
enum { BY_DIFFERENCES_MOST = 60 };

static int may_climb(const le_problem *problem)
{
  const le_model_ops *model = problem->ops;
  if (!model->log_prior_grad || !model->dim) return 0;
  if (model->log_lik_hess && model->log_prior_hess) return 1;
  return model->log_lik_grad && model->dim(problem->model) <= BY_DIFFERENCES_MOST;
}

/* `search` is 1 for as many starts as a model with curvature and starts of its own is worth, else the most there may be. */
static size_t search_starts(const le_problem *problem)
{
  const double wanted = le_args_number(&problem->settings, "search", 0);
  if (wanted == 0 || !may_climb(problem)) return 0;
  const size_t d = problem->ops->dim(problem->model);
  return wanted == 1 ? le_search_starts(d) : (size_t)fmax(4, fmin(wanted, 600 / (double)d));
}

le_status le_walk_settings_read(const le_problem *problem, le_walk_settings *settings, le_error *error)
{
  const le_args *args = &problem->settings;
  memset(settings, 0, sizeof *settings);
  settings->stages = (size_t)le_args_number(args, "stages", 1);
  if (settings->stages < 1 || settings->stages > LE_STAGES_MOST)
    return le_fail(error, LE_BAD_ARGUMENT, "A walk has one to three stages, not %d.", (int)settings->stages);
  settings->shuffle = le_args_number(args, "shuffle", 0) != 0;
  settings->mean_weights = le_args_number(args, "mean_weights", 0) != 0;
  settings->correct = le_args_number(args, "correct", 0) != 0;
  settings->lag = (size_t)le_args_number(args, "lag", 2);
  settings->unseen = le_args_number(args, "unseen", 1);
  settings->audit = le_args_number(args, "audit", 0) != 0;
  settings->audit_draws = (size_t)le_args_number(args, "audit_draws", 100);
  settings->audit_lots = (size_t)le_args_number(args, "audit_lots", 1);
  settings->audit_part = (size_t)le_args_number(args, "audit_part", 0);
  settings->audit_work = le_args_number(args, "audit_work", 0);
  settings->audit_least = (size_t)le_args_number(args, "audit_least", (double)settings->audit_draws);
  settings->search = search_starts(problem);
  settings->first_look = le_args_number(args, "first_look", 1) != 0;
  settings->rounds = (size_t)le_args_number(args, "rounds", 0);
  settings->bridge = le_args_number(args, "bridge", 0) != 0;
  settings->restarts = le_args_number(args, "restarts", 0) != 0;
  settings->moments = le_args_number(args, "moments", 0) != 0;
  for (size_t s = 0; s < settings->stages; s++) LE_TRY(read_stage(problem, s, &settings->stage[s], error));
  if (!may_climb(problem)) settings->audit = 0;
  if (!settings->audit && !settings->first_look) settings->search = 0;
  return read_path(problem, settings, error);
}
