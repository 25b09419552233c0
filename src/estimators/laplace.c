/* The evidence from the posterior modes: Laplace's approximation, importance sampling around the
 * modes, the maximum of the likelihood for bic(), and the exact value if the model has one.
 * core/search finds the points to climb from on all rows. */
#include "core/machine.h"
#include "core/search.h"

#include <math.h>
#include <string.h>

typedef enum laplace_phase { WAIT, SEARCH, CLIMB, MAXIMUM, EXACT, FINISHED } laplace_phase;

/* Climbs by numerical differences are expensive, so fewer are made. */
enum { LEAST_BY_DIFFERENCES = 16 };
static const double WORK_BY_DIFFERENCES = 4000;

typedef struct laplace {
  le_machine machine;
  size_t d, starts, importance, rows, draws, batch;
  int wants_maximum, wants_exact;
  le_target target;
  le_audit audit;
  le_search search;
  le_mode top; /* maximum of the likelihood without the prior */
  int top_found;
  int every; /* set once */
  double *normal;
  double *work; /* scratch */
  double refit_least; /* set once */
  double exact, maximum;
} laplace;

static const le_setting settings[] = {
  LE_COUNT_INTO(laplace, starts, "starts", 0, 0), /* 0: the number that suits the dimension */
  /* draws for importance sampling; 0 for none */
  LE_COUNT_INTO(laplace, importance, "importance", 0, 0),
  /* share of the ideal effective size below which the draws are of no use to the caller */
  LE_REAL_INTO(laplace, refit_least, "refit_least", 0, 0, 1),
  LE_COUNT_INTO(laplace, rows, "rows", 2000, 1),   /* rows used by the first climbs */
  LE_COUNT_INTO(laplace, draws, "draws", 1000, 0), /* draws from the normal approximation */
  LE_COUNT_INTO(laplace, batch, "batch", 32, 2),   /* points at which sums are computed at once */
  /* also maximise the likelihood without the prior */
  LE_FLAG_INTO(laplace, wants_maximum, "maximum", 0),
  LE_FLAG_INTO(laplace, wants_exact, "exact", 0), /* also compute the exact evidence */
  {0}};

/* Most climbs for a model with starts of its own, such as a regression, whose posterior may have
 * several modes; they end when they agree. */
enum { OWN_STARTS = 48 };

/* A mixture of one component has one mode. */
static int may_have_several(const le_model_ops *ops, const void *model)
{
  return (ops->traits & LE_MODEL_MULTIMODAL) &&
         !(ops->log_symmetry && ops->log_symmetry(model) == 0);
}

/* A quadratic log-likelihood with many parameters has normal draws around its mode, which are exact
 * too: their factor is made in bands, between which interrupts are heard. */
static int has_exact_draws(const laplace *s)
{
  enum { FEW_PARAMETERS = 500 };
  return s->wants_exact && s->target.ops->exact_draws &&
         !(s->target.ops->traits & LE_MODEL_QUADRATIC && s->d > FEW_PARAMETERS);
}

static laplace_phase last_phase(const laplace *s) { return s->wants_exact ? EXACT : FINISHED; }

static size_t starts_by_differences(size_t d)
{
  return (size_t)fmax(LEAST_BY_DIFFERENCES,
                      fmin(LE_SEARCH_STARTS_MOST, WORK_BY_DIFFERENCES / (double)d));
}

static void laplace_release(void *self)
{
  laplace *s = self;
  le_search_free(&s->search);
  le_audit_free(&s->audit);
}

static le_status begin(void *self)
{
  laplace *s = self;
  s->target.seen = s->machine.store.n;
  if (s->wants_exact && !le_rows_of(&s->target)->readable)
    return le_fail(&s->machine.context->error, LE_UNSUPPORTED,
                   "exact() needs all rows in memory: laplace() can ask about rows elsewhere.");
  le_search_start(&s->search);
  /* draws from the exact posterior need no modes */
  s->machine.phase = has_exact_draws(s) ? EXACT : SEARCH;
  return LE_OK;
}

static le_status exact(void *self)
{
  laplace *s = self;
  const le_rows rows = le_store_rows(&s->machine.store, 0, s->machine.store.n);
  LE_TRY(s->target.ops->exact(s->target.model, &rows, &s->exact));
  if (isfinite(s->exact) && has_exact_draws(s))
    LE_TRY(s->target.ops->exact_draws(s->target.model, &rows, s->machine.streams.rng[0], s->draws,
                                      s->normal));
  s->machine.phase = FINISHED;
  return LE_OK;
}

static le_status search(void *self)
{
  laplace *s = self;
  LE_TRY(le_search_step(&s->search, &s->audit, &s->target, s->machine.streams.rng[0],
                        s->machine.streams.rng[1]));
  if (!s->search.done) return LE_OK;
  le_search_climbs(&s->search, &s->audit, 0);
  s->audit.enough = LE_MODE_TOP;
  s->machine.phase = CLIMB;
  return LE_OK;
}

static le_status climb(void *self)
{
  laplace *s = self;
  if (s->audit.phase != LE_AUDIT_DONE)
    return le_audit_step(&s->audit, &s->target, s->machine.streams.rng[0]);
  if (s->audit.modes > 0)
    LE_TRY(
      le_audit_normal_draws(&s->audit, &s->target, s->machine.streams.rng[0], s->draws, s->normal));
  s->machine.phase = s->wants_maximum && s->audit.modes > 0 ? MAXIMUM : last_phase(s);
  return LE_OK;
}

/* Maximises the likelihood alone, starting at the posterior mode. If it is unbounded (as for
 * mixtures and for separable classes), the likelihood at the posterior mode is used instead. */
static le_status maximum(void *self)
{
  laplace *s = self;
  const le_mode *peak = &s->audit.mode[0];
  LE_TRY(le_target_log_lik(&s->target, 0, s->machine.store.n, 1, peak->theta, &s->maximum));
  s->machine.phase = last_phase(s);
  if (may_have_several(s->target.ops, s->target.model)) return LE_OK;
  memcpy(s->top.theta, peak->theta, s->d * sizeof(double));
  memcpy(s->top.scale, peak->scale, s->d * sizeof(double));
  s->target.flat = 1;
  const le_status status = le_mode_climb(&s->top, &s->target, LE_MODE_TOP, -INFINITY, s->work);
  s->target.flat = 0;
  LE_TRY(status);
  s->top_found = s->top.converged;
  if (s->top_found && s->top.log_density > s->maximum) s->maximum = s->top.log_density;
  return LE_OK;
}

static void laplace_progress(const void *self, double *rows, double *share)
{
  const laplace *s = self;
  const le_audit *a = &s->audit;
  const double climbed = a->starts ? (double)a->climbed / (double)a->starts : 0,
               drawn = s->importance ? (double)a->drawn / (double)s->importance : 1;
  *rows = s->machine.phase == FINISHED ? (double)s->machine.store.n : 0;
  *share = s->machine.phase == FINISHED ? 1
           : s->machine.phase == CLIMB  ? 0.2 + 0.4 * climbed + 0.4 * drawn
                                        : 0.2 * climbed;
}

static le_status laplace_result(void *self, le_result *result)
{
  laplace *s = self;
  const le_audit *a = &s->audit;
  const le_figure figures[] = {
    {"n", (double)s->machine.store.n}, {"likelihoods", s->target.likelihoods},
    {"gradients", s->target.gradients}, {"seconds", s->machine.seconds},
    {"failed", (double)(a->failed || a->modes == 0)}, {"modes", (double)a->modes},
    {"laplace", a->laplace}, {"importance", a->log_evidence}, {"se", a->se},
    {"ess", a->effective_size}, {"pareto_k", a->pareto_k}, {"thin", a->thin}, {"unseen", a->unseen},
    {"exact", s->exact},
    {"maximum", s->maximum}, {"top_found", (double)s->top_found},
    {"log_peak", a->modes ? a->mode[0].log_density : NAN}, {"climbs", (double)a->climbed},
    {"ideal", a->ideal_size},
    /* on all rows there is only one climb from each mode found on fewer rows */
    {"once", s->search.few.n ? 0 : le_audit_rarely(a, LE_FEW_HITS)},
    {"refused", le_audit_refused(a)}, {"drawn", (double)has_exact_draws(s)}};
  le_result_figures(result, LE_TABLE(figures));
  if (a->modes > 0 || has_exact_draws(s))
    le_result_array(result, "normal_draws", s->d, s->draws, s->normal);
  if (a->modes == 0) return LE_OK;
  le_audit_list_modes(&s->audit, result);
  le_result_array(result, "peak", s->d, 1, a->mode[0].theta);
  if (s->importance && !a->failed) {
    le_result_array(result, "draws", s->d, a->draws, a->theta);
    le_result_array(result, "log_weights", 1, a->draws, a->log_weight);
  }
  return LE_OK;
}

static const le_field fields[] = {
  LE_EXPECTED(laplace, d), LE_EXPECTED(laplace, starts),
  LE_FIELD(laplace, target.seen), LE_FIELD(laplace, target.likelihoods),
  LE_FIELD(laplace, target.gradients), LE_FIELD(laplace, top_found), LE_FIELD(laplace, exact),
  LE_FIELD(laplace, maximum), LE_UNSAVED(laplace, top)}; /* the climb, not its result */

static void laplace_archive(void *self, le_archive *archive)
{
  laplace *s = self;
  le_archive_doubles(archive, s->normal, s->draws * s->d);
  le_target_require(&s->target, archive);
  le_search_archive(&s->search, archive);
  le_audit_archive(&s->audit, archive);
  le_archive_require(archive, s->machine.phase != MAXIMUM || s->audit.modes > 0);
  le_archive_require(archive, s->machine.phase != EXACT || s->wants_exact);
}

static const le_phase phases[] = {
  [WAIT] = {"begin", begin, 1},
  [SEARCH] = {"search", search, 0},
  [CLIMB] = {"climb", climb, 0},
  [MAXIMUM] = {"maximum", maximum, 0},
  [EXACT] = {"exact", exact, 0},
  [FINISHED] = {"finished", NULL, 0}};

static void alloc_all(laplace *s)
{
  const le_problem *problem = &s->machine.problem;
  le_arena *arena = &s->machine.arena;
  const size_t d = s->d;
  le_target_alloc(&s->target, problem->ops, problem->model, s->batch, le_mode_work(d),
                  s->machine.context, arena);
  s->target.store = &s->machine.store;
  s->machine.target = &s->target;
  s->target.rng = s->machine.streams.rng[0];
  le_audit_alloc(&s->audit, &s->target, s->starts, s->importance, 1, s->batch, arena);
  s->audit.refit_least = s->refit_least;
  le_audit_in_two_steps(&s->audit, &s->target, arena);
  le_mode_alloc(&s->top, d, arena);
  le_search_alloc(&s->search, &s->target, s->starts, s->rows, arena);
  s->search.every = s->every;
  if (!s->every && s->starts > 2) le_search_attach(&s->search, &s->audit);
  s->normal = le_arena_doubles(arena, s->draws * d);
  s->work = le_arena_doubles(arena, le_mode_work(d));
}

static le_status laplace_make(void *self)
{
  laplace *s = self;
  const le_problem *problem = &s->machine.problem;
  s->d = problem->ops->dim(problem->model);
  le_settings_read(&problem->settings, settings, s);
  const int several = may_have_several(problem->ops, problem->model);
  s->every = s->starts > 0;
  if (s->starts == 0)
    s->starts = !several && !problem->ops->start ? 2
                : !several                       ? OWN_STARTS
                : problem->ops->log_lik_hess ? le_search_starts(s->d)
                                             : starts_by_differences(s->d);
  s->exact = s->maximum = NAN;
  if (s->wants_exact && (several || !le_target_has_exact(problem->ops, problem->model)))
    return le_fail(&s->machine.context->error, LE_UNSUPPORTED,
                   "exact() needs a model whose evidence has a closed form, such as "
                   "gaussian_mean() or linear_regression(); %s() has none.",
                   problem->ops->name);
  LE_TRY(le_machine_streams(&s->machine, 2)); /* stream 1 chooses the sample of rows */
  alloc_all(s);
  return LE_OK;
}

const le_estimator_ops le_laplace_estimator = {
  .name = "laplace",
  .knows = {{settings}, NULL},
  .size = sizeof(laplace),
  .asks = 1,
  .phases = phases,
  .fields = {LE_TABLE(fields)},
  .make = laplace_make,
  .release = laplace_release,
  .progress = laplace_progress,
  .result = laplace_result,
  .archive = laplace_archive,
};
