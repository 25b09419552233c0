/* What the peaks of the posterior say: Laplace's approximation, importance sampling around them, the likelihood at its own
 * maximum, and the closed form where there is one.
 *
 * core/search finds where to climb from on all rows.
 *
 * Settings: starts, importance (draws; 0 for none), rows (of the first climb), draws (of the normal approximation),
 * maximum (1: also climb the likelihood alone), exact (1: also the closed form). */
#include "base/clock.h"
#include "core/search.h"
#include "core/trace.h"

#include <math.h>
#include <string.h>

typedef enum laplace_phase { WAIT, SEARCH, CLIMB, MAXIMUM, FINISHED } laplace_phase;

/* Climbs by differences are dear. */
enum { BATCH = 32, LEAST_BY_DIFFERENCES = 16 };
static const double WORK_BY_DIFFERENCES = 4000;

typedef struct laplace {
  le_context *context;
  const le_model_ops *model;
  size_t d, starts, importance, rows, draws, total;
  int wants_maximum, wants_exact;
  uint64_t seed;
  le_arena arena;
  le_streams streams; /* 0: the run, 1: which rows are few */
  le_store store;
  le_target target;
  le_audit audit;
  le_search search;
  le_mode top; /* of the likelihood alone */
  laplace_phase phase;
  int closed, top_found, every;
  double *normal, *work;
  double exact, maximum, seconds;
  double summary[20];
} laplace;

/* A mixture of one component is none. */
static int may_have_several(const le_model_ops *ops, const void *model)
{
  return (ops->traits & LE_MODEL_MULTIMODAL) && !(ops->log_symmetry && ops->log_symmetry(model) == 0);
}

static size_t starts_by_differences(size_t d)
{
  return (size_t)fmax(LEAST_BY_DIFFERENCES, fmin(LE_SEARCH_STARTS_MOST, WORK_BY_DIFFERENCES / (double)d));
}

static void laplace_free(void *self)
{
  laplace *s = self;
  if (!s) return;
  le_streams_free(&s->streams);
  le_store_free(&s->store);
  le_search_free(&s->search);
  le_arena_free(&s->arena);
  le_release(s);
}

static le_status alloc_all(laplace *s, const le_problem *problem)
{
  const size_t d = s->d;
  LE_TRY(le_streams_alloc(&s->streams, 2, problem->seed, problem->replicate));
  le_target_alloc(&s->target, problem->ops, problem->model, BATCH, s->context, &s->arena);
  s->target.store = &s->store;
  s->target.rng = s->streams.rng[0];
  s->store.width = problem->ops->width(problem->model);
  le_audit_alloc(&s->audit, &s->target, s->starts, s->importance, 1, BATCH, &s->arena);
  le_mode_alloc(&s->top, d, &s->arena);
  le_search_alloc(&s->search, &s->target, s->starts, s->rows, &s->arena);
  s->search.every = s->every;
  s->normal = le_arena_doubles(&s->arena, s->draws * d);
  s->work = le_arena_doubles(&s->arena, le_mode_work(d));
  return s->arena.failed ? LE_NO_MEMORY : LE_OK;
}

static le_status laplace_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  const le_args *args = &problem->settings;
  laplace *s = le_resize(NULL, sizeof *s);
  if (!s) return LE_NO_MEMORY;
  memset(s, 0, sizeof *s);
  s->context = context;
  s->model = problem->ops;
  s->d = problem->ops->dim(problem->model);
  s->total = problem->total;
  s->seed = problem->seed;
  const int several = may_have_several(problem->ops, problem->model);
  s->starts = (size_t)le_args_number(args, "starts", 0);
  s->every = s->starts > 0;
  if (s->starts == 0) s->starts = !several ? 2 : problem->ops->log_lik_hess ? le_search_starts(s->d) : starts_by_differences(s->d);
  if (s->starts > LE_SEARCH_STARTS_MOST) s->starts = LE_SEARCH_STARTS_MOST;
  s->importance = (size_t)le_args_number(args, "importance", 0);
  s->rows = (size_t)le_args_number(args, "rows", 2000);
  s->draws = (size_t)le_args_number(args, "draws", 1000);
  s->wants_maximum = le_args_number(args, "maximum", 0) != 0;
  s->wants_exact = le_args_number(args, "exact", 0) != 0;
  s->exact = s->maximum = NAN;
  le_status status = LE_OK;
  if (s->wants_exact && (!problem->ops->exact || several))
    status = le_fail(&context->error, LE_UNSUPPORTED,
                     "exact() needs a model whose evidence has a closed form, such as gaussian_mean() or linear_regression(); "
                     "%s() has none.",
                     problem->ops->name);
  if (status == LE_OK) status = alloc_all(s, problem);
  if (status != LE_OK) {
    laplace_free(s);
    return status;
  }
  *self = s;
  return LE_OK;
}

static le_status laplace_start(void *self)
{
  ((laplace *)self)->phase = WAIT;
  return LE_OK;
}

static le_status laplace_feed(void *self, const le_rows *rows, le_feed feed)
{
  laplace *s = self;
  if (s->closed) return le_fail(&s->context->error, LE_BAD_ARGUMENT, "This run has had its last rows.");
  if (feed != LE_ROWS) s->closed = 1;
  if (rows->n == 0) return LE_OK;
  return le_store_take(&s->store, rows, NULL, feed);
}

static le_status search(laplace *s)
{
  LE_TRY(le_search_step(&s->search, &s->audit, &s->target, s->streams.rng[0], s->streams.rng[1]));
  if (!s->search.done) return LE_OK;
  le_search_climbs(&s->search, &s->audit, 0);
  s->audit.enough = LE_MODE_TOP;
  s->phase = CLIMB;
  return LE_OK;
}

static le_status climb(laplace *s)
{
  if (s->audit.phase != LE_AUDIT_DONE) return le_audit_step(&s->audit, &s->target, s->streams.rng[0]);
  if (s->wants_exact) {
    const le_rows rows = le_store_rows(&s->store, 0, s->store.n);
    LE_TRY(s->model->exact(s->target.model, &rows, &s->exact));
  }
  if (s->audit.modes > 0) LE_TRY(le_audit_normal_draws(&s->audit, &s->target, s->streams.rng[0], s->draws, s->normal));
  s->phase = s->wants_maximum && s->audit.modes > 0 ? MAXIMUM : FINISHED;
  return LE_OK;
}

/* The likelihood alone, from the posterior's peak.  Where it has no top to reach (it grows for ever, as that of mixtures and
 * of separable classes does) the likelihood at the posterior's peak stands in. */
static le_status maximum(laplace *s)
{
  const le_mode *peak = &s->audit.mode[0];
  LE_TRY(le_target_log_lik(&s->target, 0, s->store.n, 1, peak->theta, &s->maximum));
  s->phase = FINISHED;
  if (may_have_several(s->model, s->target.model)) return LE_OK;
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

static le_progress laplace_advance(void *self, double seconds, le_status *status)
{
  laplace *s = self;
  const double started = le_now(), before = s->seconds;
  le_progress progress = LE_MORE;
  *status = LE_OK;
  do {
    switch (s->phase) {
    case WAIT:
      if (!s->closed) return LE_NEEDS_ROWS;
      s->target.seen = s->store.n;
      le_search_start(&s->search);
      s->phase = SEARCH;
      break;
    case SEARCH: *status = search(s); break;
    case CLIMB: *status = climb(s); break;
    case MAXIMUM: *status = maximum(s); break;
    case FINISHED: progress = LE_DONE; break;
    }
    s->seconds = before + le_now() - started;
    if (*status != LE_OK) return LE_FAILED;
  } while (progress == LE_MORE && le_now() - started < seconds);
  return progress;
}

static void laplace_progress(const void *self, double *rows, double *share)
{
  const laplace *s = self;
  const le_audit *a = &s->audit;
  const double climbed = a->starts ? (double)a->climbed / (double)a->starts : 0,
               drawn = s->importance ? (double)a->drawn / (double)s->importance : 1;
  *rows = s->phase == FINISHED ? (double)s->store.n : 0;
  *share = s->phase == FINISHED ? 1 : s->phase == CLIMB ? 0.2 + 0.4 * climbed + 0.4 * drawn : 0.2 * climbed;
}

static le_status laplace_result(void *self, le_result *result)
{
  laplace *s = self;
  const le_audit *a = &s->audit;
  static const char *const names[] = {"n",      "likelihoods", "gradients", "seconds", "failed",      "modes",
                                      "laplace", "importance",  "se",       "ess",     "pareto_k",    "exact",
                                      "maximum", "top_found",   "log_peak", "climbs",  "ideal",       "once",
                                      "refused"};
  const double figures[] = {(double)s->store.n,
                            s->target.likelihoods,
                            s->target.gradients,
                            s->seconds,
                            (double)(a->failed || a->modes == 0),
                            (double)a->modes,
                            a->laplace,
                            a->log_evidence,
                            a->se,
                            a->effective_size,
                            a->pareto_k,
                            s->exact,
                            s->maximum,
                            (double)s->top_found,
                            a->modes ? a->mode[0].log_density : NAN,
                            (double)a->climbed,
                            a->ideal_size,
                            /* on all rows only the peaks of fewer rows are climbed, once each */
                            s->search.few.n ? 0 : le_audit_once(a),
                            le_audit_refused(a)};
  result->n = 0;
  memcpy(s->summary, figures, sizeof figures);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) le_result_add(result, names[k], 1, 1, &s->summary[k]);
  if (a->modes == 0) return LE_OK;
  le_result_add(result, "peak", s->d, 1, a->mode[0].theta);
  le_result_add(result, "normal_draws", s->d, s->draws, s->normal);
  if (s->importance && !a->failed) {
    le_result_add(result, "draws", s->d, a->draws, a->theta);
    le_result_add(result, "log_weights", 1, a->draws, a->log_weight);
  }
  return LE_OK;
}

static void laplace_archive(void *self, le_archive *archive)
{
  laplace *s = self;
  int phase = (int)s->phase;
  le_archive_expect(archive, s->d);
  le_archive_expect(archive, s->starts);
  le_archive_expect(archive, s->seed);
  le_store_archive(&s->store, archive);
  le_streams_archive(&s->streams, archive);
  le_archive_int(archive, &phase);
  if (archive->status != LE_OK) return;
  if (phase < 0 || phase > FINISHED) {
    archive->status = LE_CORRUPT;
    return;
  }
  s->phase = (laplace_phase)phase;
  le_archive_size(archive, &s->target.seen);
  le_archive_double(archive, &s->target.likelihoods);
  le_archive_double(archive, &s->target.gradients);
  le_archive_int(archive, &s->closed);
  le_archive_int(archive, &s->top_found);
  double *const figure[] = {&s->exact, &s->maximum, &s->seconds};
  for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) le_archive_double(archive, figure[i]);
  le_archive_doubles(archive, s->normal, s->draws * s->d);
  le_search_archive(&s->search, archive);
  le_audit_archive(&s->audit, archive);
}

const le_estimator_ops le_laplace_estimator = {LE_CONTRACT_VERSION, sizeof(le_estimator_ops), "laplace",
                                               laplace_alloc,       laplace_free,             laplace_start,
                                               laplace_feed,        laplace_advance,          laplace_progress,
                                               laplace_result,      laplace_archive, 0};
