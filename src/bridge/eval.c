/* A model's functions bound to data, for R; and small pieces of the machinery, for the tests. */
#include "bridge/bridge.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "base/logsum.h"
#include "base/pareto.h"
#include "base/threads.h"
#include "core/clusters.h"
#include "core/gradient.h"
#include "core/resample.h"
#include "core/schedule.h"
#include "core/varopt.h"

#include <math.h>

typedef struct model_call {
  SEXP type, args, rows, what, theta, extra;
} model_call;

/* All that one evaluation needs; memory from R, so nothing leaks when R jumps. */
typedef struct evaluation {
  const le_model_ops *ops;
  const void *self;
  size_t d, m;
  const double *theta;
  le_rows rows;
  double *scratch;
  const model_call *call; /* what was asked, as R has it */
} evaluation;

/* An error in a user's function is kept by the model, which raises it when the answer is done. */
static void check(le_status status)
{
  if (status != LE_OK && status != LE_USER_ERROR) raise_status(status, NULL);
}

static void need(const void *function, const char *what)
{
  if (!function) Rf_error("This model offers no `%s`.", what);
}
#define NEED(e, member) need((const void *)(size_t)((e)->ops->member != NULL), #member)

static SEXP zeros(size_t rows, size_t columns)
{
  SEXP matrix = Rf_allocMatrix(REALSXP, (int)rows, (int)columns);
  memset(REAL(matrix), 0, rows * columns * sizeof(double));
  return matrix;
}

static SEXP zero_vector(size_t n)
{
  SEXP vector = Rf_allocVector(REALSXP, (R_xlen_t)n);
  memset(REAL(vector), 0, n * sizeof(double));
  return vector;
}

/* Blocks as the estimators would pass them. */
enum { BLOCK = 512, ROWS_BOUND = 128, TOLD = 8 };
#define FOR_BLOCKS(e, block)                                                                           \
  for (size_t at_ = 0; at_ < (e)->rows.n; at_ += BLOCK)                                                \
    for (le_rows block = {(e)->rows.n - at_ < BLOCK ? (e)->rows.n - at_ : BLOCK, (e)->rows.width,      \
                          (e)->rows.values + at_ * (e)->rows.width},                                   \
                 *once_ = &block;                                                                      \
         once_; once_ = NULL)

static SEXP eval_log_prior(const evaluation *e)
{
  SEXP value = PROTECT(zero_vector(e->m));
  e->ops->log_prior(e->self, e->m, e->theta, REAL(value));
  UNPROTECT(1);
  return value;
}

static SEXP eval_log_prior_grad(const evaluation *e)
{
  NEED(e, log_prior_grad);
  SEXP value = PROTECT(zeros(e->d, e->m));
  e->ops->log_prior_grad(e->self, e->m, e->theta, REAL(value));
  UNPROTECT(1);
  return value;
}

static SEXP eval_log_prior_hess(const evaluation *e)
{
  NEED(e, log_prior_hess);
  SEXP value = PROTECT(zeros(e->d, e->d));
  e->ops->log_prior_hess(e->self, e->theta, REAL(value));
  UNPROTECT(1);
  return value;
}

static SEXP eval_log_lik(const evaluation *e)
{
  SEXP value = PROTECT(zero_vector(e->m));
  FOR_BLOCKS(e, block) check(e->ops->log_lik(e->self, e->m, e->theta, &block, REAL(value), e->scratch));
  UNPROTECT(1);
  return value;
}

static SEXP eval_log_lik_grad(const evaluation *e)
{
  NEED(e, log_lik_grad);
  static const char *const names[] = {"value", "gradient"};
  SEXP part[2] = {PROTECT(zero_vector(e->m)), PROTECT(zeros(e->d, e->m))};
  FOR_BLOCKS(e, block)
  check(e->ops->log_lik_grad(e->self, e->m, e->theta, &block, REAL(part[0]), REAL(part[1]), e->scratch));
  SEXP list = named_list(2, names, part);
  UNPROTECT(2);
  return list;
}

static SEXP eval_log_lik_grad_alone(const evaluation *e)
{
  NEED(e, log_lik_grad_alone);
  SEXP value = PROTECT(zeros(e->d, e->m));
  FOR_BLOCKS(e, block)
  check(e->ops->log_lik_grad_alone(e->self, e->m, e->theta, &block, REAL(value), e->scratch));
  UNPROTECT(1);
  return value;
}

static SEXP eval_log_lik_hess(const evaluation *e)
{
  NEED(e, log_lik_hess);
  static const char *const names[] = {"gradient", "hessian"};
  SEXP part[2] = {PROTECT(zero_vector(e->d)), PROTECT(zeros(e->d, e->d))};
  FOR_BLOCKS(e, block) check(e->ops->log_lik_hess(e->self, e->theta, &block, REAL(part[0]), REAL(part[1]), e->scratch));
  SEXP list = named_list(2, names, part);
  UNPROTECT(2);
  return list;
}

static SEXP eval_information(const evaluation *e)
{
  NEED(e, information);
  SEXP value = PROTECT(zeros(e->d, e->d));
  FOR_BLOCKS(e, block) check(e->ops->information(e->self, e->theta, &block, REAL(value), e->scratch));
  UNPROTECT(1);
  return value;
}

/* n x m: a column of rows for each particle. */
static SEXP eval_log_lik_each(const evaluation *e)
{
  SEXP value = PROTECT(zeros(e->rows.n, e->m));
  double *part = (double *)R_alloc(BLOCK * e->m, sizeof(double));
  size_t from = 0;
  FOR_BLOCKS(e, block)
  {
    check(e->ops->log_lik_each(e->self, e->m, e->theta, &block, part, e->scratch));
    for (size_t i = 0; i < e->m; i++)
      memcpy(REAL(value) + i * e->rows.n + from, part + i * block.n, block.n * sizeof(double));
    from += block.n;
  }
  UNPROTECT(1);
  return value;
}

static SEXP eval_to_user(const evaluation *e)
{
  const size_t users = e->ops->user_dim ? e->ops->user_dim(e->self) : e->d;
  SEXP value = PROTECT(zeros(users, e->m));
  for (size_t i = 0; i < e->m; i++) {
    if (e->ops->to_user)
      e->ops->to_user(e->self, e->theta + i * e->d, REAL(value) + i * users);
    else
      memcpy(REAL(value) + i * users, e->theta + i * e->d, e->d * sizeof(double));
  }
  UNPROTECT(1);
  return value;
}

static SEXP eval_exact(const evaluation *e)
{
  NEED(e, exact);
  double log_evidence = NAN;
  check(e->ops->exact(e->self, &e->rows, &log_evidence));
  return Rf_ScalarReal(log_evidence);
}

static SEXP eval_draw_prior(const evaluation *e, SEXP extra)
{
  const size_t n = one_count(list_element(extra, "n"), "n");
  SEXP value = PROTECT(zeros(e->d, n));
  le_streams streams;
  if (le_streams_alloc(&streams, 1, seed_from_words(list_element(extra, "seed")), 0) != LE_OK)
    raise_status(LE_NO_MEMORY, NULL);
  for (size_t i = 0; i < n; i++) e->ops->draw_prior(e->self, streams.rng[0], REAL(value) + i * e->d);
  le_streams_free(&streams);
  UNPROTECT(1);
  return value;
}

static SEXP eval_simulate(const evaluation *e)
{
  NEED(e, simulate);
  const uint64_t seed = seed_from_words(list_element(e->call->extra, "seed"));
  SEXP value = PROTECT(Rf_duplicate(e->call->rows));
  le_streams streams;
  if (le_streams_alloc(&streams, 1, seed, 0) != LE_OK) raise_status(LE_NO_MEMORY, NULL);
  e->ops->simulate(e->self, e->theta, streams.rng[0], e->rows.n, REAL(value));
  le_streams_free(&streams);
  UNPROTECT(1);
  return value;
}

/* A point that comes along with the question. */
static const double *point_of(const evaluation *e, const char *name)
{
  SEXP point = list_element(e->call->extra, name);
  if (TYPEOF(point) != REALSXP || (size_t)XLENGTH(point) != e->d) Rf_error("`%s` must be %d numbers.", name, (int)e->d);
  return REAL(point);
}

static SEXP eval_relabel(const evaluation *e)
{
  const double *reference = point_of(e, "reference");
  SEXP value = PROTECT(Rf_duplicate(e->call->theta));
  if (e->ops->relabel)
    for (size_t i = 0; i < e->m; i++) e->ops->relabel(e->self, reference, REAL(value) + i * e->d);
  UNPROTECT(1);
  return value;
}

static SEXP eval_start(const evaluation *e)
{
  NEED(e, start);
  const size_t n = one_count(list_element(e->call->extra, "n"), "n");
  const uint64_t seed = seed_from_words(list_element(e->call->extra, "seed"));
  double *scratch = (double *)R_alloc(e->ops->start_scratch(e->self, e->rows.n) + 1, sizeof(double));
  SEXP value = PROTECT(zeros(e->d, n));
  le_streams streams;
  if (le_streams_alloc(&streams, 1, seed, 0) != LE_OK) raise_status(LE_NO_MEMORY, NULL);
  for (size_t i = 0; i < n; i++) e->ops->start(e->self, &e->rows, streams.rng[0], REAL(value) + i * e->d, scratch);
  le_streams_free(&streams);
  UNPROTECT(1);
  return value;
}

/* The log determinant comes behind the coordinates. */
static SEXP eval_to_normal(const evaluation *e)
{
  NEED(e, to_normal);
  const double *peak = point_of(e, "peak");
  SEXP value = PROTECT(zeros(e->d + 1, e->m));
  for (size_t i = 0; i < e->m; i++) {
    double *out = REAL(value) + i * (e->d + 1);
    out[e->d] = e->ops->to_normal(e->self, peak, e->theta + i * e->d, out);
  }
  UNPROTECT(1);
  return value;
}

static SEXP eval_from_normal(const evaluation *e)
{
  NEED(e, from_normal);
  const double *peak = point_of(e, "peak");
  SEXP value = PROTECT(Rf_duplicate(e->call->theta));
  for (size_t i = 0; i < e->m; i++)
    if (!e->ops->from_normal(e->self, peak, REAL(value) + i * e->d)) Rf_error("No parameters have these coordinates.");
  UNPROTECT(1);
  return value;
}

typedef struct question {
  const char *what;
  int points; /* theta: 0 not needed, 1 exactly one, 2 any number */
  int rows;
  SEXP (*answer)(const evaluation *e);
} question;

static const question questions[] = {{"log_prior", 2, 0, eval_log_prior},
                                     {"log_prior_grad", 2, 0, eval_log_prior_grad},
                                     {"log_prior_hess", 1, 0, eval_log_prior_hess},
                                     {"log_lik", 2, 1, eval_log_lik},
                                     {"log_lik_grad", 2, 1, eval_log_lik_grad},
                                     {"log_lik_grad_alone", 2, 1, eval_log_lik_grad_alone},
                                     {"log_lik_hess", 1, 1, eval_log_lik_hess},
                                     {"log_lik_each", 2, 1, eval_log_lik_each},
                                     {"information", 1, 1, eval_information},
                                     {"to_user", 2, 0, eval_to_user},
                                     {"exact", 0, 1, eval_exact},
                                     {"simulate", 1, 1, eval_simulate},
                                     {"relabel", 2, 0, eval_relabel},
                                     {"start", 0, 1, eval_start},
                                     {"to_normal", 2, 0, eval_to_normal},
                                     {"from_normal", 2, 0, eval_from_normal}};

static SEXP simple_answer(const evaluation *e, const char *what, SEXP extra)
{
  if (strcmp(what, "dim") == 0) return Rf_ScalarReal((double)e->d);
  if (strcmp(what, "width") == 0) return Rf_ScalarReal((double)e->ops->width(e->self));
  if (strcmp(what, "takes_data") == 0) return Rf_ScalarReal(compiled_model_takes_data(e->ops));
  if (strcmp(what, "simulates") == 0) return Rf_ScalarReal(e->ops->simulate != NULL);
  if (strcmp(what, "traits") == 0) return Rf_ScalarReal((double)e->ops->traits);
  if (strcmp(what, "user_dim") == 0)
    return Rf_ScalarReal((double)(e->ops->user_dim ? e->ops->user_dim(e->self) : e->d));
  if (strcmp(what, "log_symmetry") == 0)
    return Rf_ScalarReal(e->ops->log_symmetry                              ? e->ops->log_symmetry(e->self)
                         : e->ops->latent && e->ops->latent->log_symmetry ? e->ops->latent->log_symmetry(e->self)
                                                                           : 0);
  if (strcmp(what, "draw_prior") == 0) return eval_draw_prior(e, extra);
  return NULL;
}

static void bind(evaluation *e, const question *q, SEXP rows, SEXP theta)
{
  if (q->points) {
    if (TYPEOF(theta) != REALSXP || !Rf_isMatrix(theta) || (size_t)Rf_nrows(theta) != e->d)
      Rf_error("`theta` must be a numeric matrix of %d rows.", (int)e->d);
    e->theta = REAL(theta);
    e->m = (size_t)Rf_ncols(theta);
    if (q->points == 1 && e->m != 1) Rf_error("`theta` must be one point, not %d.", (int)e->m);
  }
  if (q->rows) e->rows = rows_from_matrix(rows, e->ops->width(e->self));
  const size_t scratch = e->ops->scratch ? e->ops->scratch(e->self, e->m ? e->m : 1, BLOCK) : 0;
  e->scratch = (double *)R_alloc(scratch + 1, sizeof(double));
}

static SEXP model_body(void *data)
{
  const model_call *call = data;
  const char *what = one_string(call->what, "what");
  SEXP pointer = PROTECT(model_new(call->type, call->args));
  const model_handle *handle = model_get(pointer);
  evaluation e = {handle->ops, handle->self, handle->ops->dim ? handle->ops->dim(handle->self) : 0, 0, NULL, {0, 0, NULL}, NULL, call};
  SEXP answer = simple_answer(&e, what, call->extra);
  for (size_t i = 0; !answer && i < sizeof questions / sizeof *questions; i++) {
    const question *q = &questions[i];
    if (strcmp(what, q->what) != 0) continue;
    bind(&e, q, call->rows, call->theta);
    answer = q->answer(&e);
  }
  if (!answer) Rf_error("A model has no `%s`.", what);
  PROTECT(answer);
  user_model_raise(handle);
  UNPROTECT(2);
  return answer;
}

SEXP ffi_model(SEXP type, SEXP args, SEXP rows, SEXP what, SEXP theta, SEXP extra)
{
  model_call call = {type, args, rows, what, theta, extra};
  return guarded(model_body, &call);
}

/* The top bit is set for what is not finite, whose exponent has all bits set. */
static uint64_t told_finite(double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7ff0000000000000u) + 0x0010000000000000u;
}

/* Without the memory that is.finite() and, of a factor, is.na() take for their answers. */
SEXP ffi_all_finite(SEXP x)
{
  const size_t n = (size_t)XLENGTH(x), whole = n - n % TOLD;
  int missing[TOLD] = {0}; /* many at once, for compilers to use vectors */
  uint64_t told[TOLD] = {0};
  if (TYPEOF(x) == INTSXP) {
    const int *value = INTEGER(x);
    for (size_t i = 0; i < whole; i += TOLD)
      for (size_t k = 0; k < TOLD; k++) missing[k] |= value[i + k] == NA_INTEGER;
    for (size_t i = whole; i < n; i++) missing[0] |= value[i] == NA_INTEGER;
  } else {
    if (TYPEOF(x) != REALSXP) Rf_error("There must be numbers.");
    const double *value = REAL(x);
    for (size_t i = 0; i < whole; i += TOLD)
      for (size_t k = 0; k < TOLD; k++) told[k] |= told_finite(value[i + k]);
    for (size_t i = whole; i < n; i++) told[0] |= told_finite(value[i]);
  }
  for (size_t k = 1; k < TOLD; k++) {
    missing[0] |= missing[k];
    told[0] |= told[k];
  }
  return Rf_ScalarLogical(!missing[0] && told[0] >> 63 == 0);
}

typedef struct places_call {
  SEXP seed;
  size_t n;
  int threads;
  uint32_t *place;
} places_call;

/* Where each of n rows goes, in the order of a run with this seed; as they are, without one. Memory of R's own, of this size, would have it
 * collect garbage. */
static SEXP find_places(void *data)
{
  places_call *call = data;
  const size_t n = call->n;
  const uint64_t seed = Rf_isNull(call->seed) ? 0 : seed_from_words(call->seed);
  le_streams streams = {0, NULL, NULL};
  le_status status = le_streams_alloc(&streams, 0, seed, 0);
  call->place = le_resize(NULL, n * sizeof *call->place);
  if (!call->place) status = LE_NO_MEMORY;
  if (status == LE_OK && Rf_isNull(call->seed))
    for (size_t i = 0; i < n; i++) call->place[i] = (uint32_t)i;
  else if (status == LE_OK)
    status = le_store_places(n, streams.order, call->threads, call->place);
  le_streams_free(&streams);
  if (status == LE_OK) return R_NilValue;
  le_release(call->place);
  raise_status(status, NULL);
  return R_NilValue;
}

/* A matrix with an observation in each row, and its responses, numbers or a factor whose codes shall begin with zero, if there are
 * any, as one with an observation in each column, maybe after a 1; NULL if not all of the former is finite. With a seed, in the random
 * order in which a run with it walks them. Most of the time is what the system takes for new pages, of which each thread asks for its
 * own. (Not guarded as a whole: of what that returns, R makes a copy where it is given names.) */
SEXP ffi_bind_rows(SEXP x, SEXP y, SEXP intercept, SEXP threads, SEXP seed)
{
  const int coded = Rf_isFactor(y), last = !Rf_isNull(y);
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x) || (last && ((TYPEOF(y) != REALSXP && !coded) || XLENGTH(y) != Rf_nrows(x))))
    Rf_error("Covariates and responses must be numbers, as many of one as of the other.");
  const size_t n = (size_t)Rf_nrows(x), p = (size_t)Rf_ncols(x), first = Rf_asLogical(intercept) == TRUE, width = first + p + (size_t)last;
  SEXP rows = PROTECT(Rf_allocMatrix(REALSXP, (int)width, (int)n));
  const double *values = REAL(x), *responses = coded || !last ? NULL : REAL(y);
  const int *codes = coded ? INTEGER(y) : NULL;
  const int usable = le_threads_usable(Rf_asInteger(threads));
  places_call places = {seed, n, usable, NULL};
  guarded(find_places, &places);
  const uint32_t *place = places.place;
  double *out = REAL(rows);
  uint64_t told = 0;
  le_advise_large(out, n * width * sizeof(double));
#ifdef _OPENMP
#pragma omp parallel for num_threads(usable) schedule(static) reduction(| : told) if (usable > 1 && n * width > 100000)
#endif
  for (size_t from = 0; from < n; from += ROWS_BOUND) {
    const size_t to = from + ROWS_BOUND < n ? from + ROWS_BOUND : n;
    for (size_t i = to; i < n && i < to + ROWS_BOUND; i++) le_prefetch(out + place[i] * width, width * sizeof(double));
    for (size_t i = from; i < to && first; i++) out[place[i] * width] = 1;
    for (size_t j = 0; j < p; j++) {
      const double *column = values + j * n;
      double *to_column = out + first + j;
      for (size_t i = from; i < to; i++) {
        to_column[place[i] * width] = column[i];
        told |= told_finite(column[i]);
      }
    }
    for (size_t i = from; i < to && last; i++) out[place[i] * width + first + p] = coded ? (double)codes[i] - 1 : responses[i];
  }
  (void)usable;
  le_release(places.place);
  UNPROTECT(1);
  return told >> 63 ? R_NilValue : rows;
}

/* ---- pieces of the machinery ---- */

typedef struct kernel_call {
  SEXP model_type, model_args, kernel, rows, theta, settings, seed;
} kernel_call;

typedef struct kernel_run {
  le_arena arena;
  le_streams streams;
  le_store store;
} kernel_run;

static void kernel_run_finalize(SEXP pointer)
{
  kernel_run *run = R_ExternalPtrAddr(pointer);
  if (!run) return;
  le_streams_free(&run->streams);
  le_store_free(&run->store);
  le_arena_free(&run->arena);
  le_release(run);
  R_ClearExternalPtr(pointer);
}

/* A setting that may differ between distributions: of the r-th, or the last that is given. */
static double number_at(const le_args *settings, const char *name, size_t r, double otherwise)
{
  const le_arg *arg = le_args_find(settings, name);
  return arg && arg->n ? arg->values[r < arg->n ? r : arg->n - 1] : otherwise;
}

static void begin_at(le_target *target, const le_args *settings, size_t n, size_t r)
{
  target->seen = (size_t)number_at(settings, "seen", r, (double)n);
  target->chunk = n - target->seen;
  target->lambda = number_at(settings, "lambda", r, 0);
}

/* Settings: distributions, and of each moves, seen and lambda; gradient rule ("full", "batch", "control"), batch, anchor, precision,
 * floor (value and tie), mixed (the rows are in random order), noise, at_once (moves, at the most); answer ("moves", "gradient", "log_lik"
 * of the chunk by `part`). */
static SEXP kernel_body(void *data)
{
  const kernel_call *call = data;
  SEXP model = PROTECT(model_new(call->model_type, call->model_args));
  SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue)), theta = PROTECT(Rf_duplicate(call->theta));
  kernel_run *run = le_resize(NULL, sizeof *run);
  if (!run) raise_status(LE_NO_MEMORY, NULL);
  memset(run, 0, sizeof *run);
  R_SetExternalPtrAddr(pointer, run);
  R_RegisterCFinalizerEx(pointer, kernel_run_finalize, TRUE);

  const model_handle *handle = model_get(model);
  const size_t d = handle->ops->dim(handle->self), m = (size_t)Rf_ncols(theta);
  const le_args settings = args_from_list(call->settings, &run->arena);
  const le_args kernel_args = args_from_list(VECTOR_ELT(call->kernel, 1), &run->arena);
  const le_kernel_ops *ops = le_find_kernel(one_string(VECTOR_ELT(call->kernel, 0), "kernel"));
  if (!ops) Rf_error("There is no such kernel.");
  check(le_streams_alloc(&run->streams, m + 1, seed_from_words(call->seed), 0));
  const le_rows rows = rows_from_matrix(call->rows, handle->ops->width(handle->self));
  run->store.width = rows.width;
  check(le_store_append(&run->store, &rows, NULL));
  run->store.mixed = le_args_number(&settings, "mixed", 0) != 0 ? rows.n : 0;

  le_context context = {1, user_interrupts, NULL, {""}};
  le_target target;
  le_metric metric;
  le_gradient gradient;
  le_expansion expansion;
  le_target_alloc(&target, handle->ops, handle->self, m, &context, &run->arena);
  le_metric_alloc(&metric, d, ops->default_metric, &run->arena);
  const char *rule = le_args_word(&settings, "gradient", "full");
  le_gradient_alloc(&gradient,
                    strcmp(rule, "batch") == 0     ? LE_GRADIENT_BATCH
                    : strcmp(rule, "control") == 0 ? LE_GRADIENT_CONTROL
                                                   : LE_GRADIENT_FULL,
                    (size_t)le_args_number(&settings, "batch", 100), &target, &run->arena);
  le_expansion_alloc(&expansion, &target, &run->arena);
  if (run->arena.failed) raise_status(LE_NO_MEMORY, NULL);
  target.store = &run->store;
  target.rng = run->streams.rng[0];
  target.metric[0] = target.metric[1] = &metric;
  target.gradient = &gradient;
  begin_at(&target, &settings, rows.n, 0);
  target.noise = le_args_number(&settings, "noise", NAN);
  const le_arg *wall = le_args_find(&settings, "floor");
  le_floor floor = {-INFINITY, 0};
  if (wall && wall->n == 2) {
    floor.value = wall->values[0];
    floor.tie = wall->values[1];
    target.floor = &floor;
  }
  const le_arg *precision = le_args_find(&settings, "precision"), *anchor = le_args_find(&settings, "anchor");
  if (precision && precision->n == d * d) check(le_metric_set_precision(&metric, precision->values));
  if (anchor && anchor->n == d) {
    check(le_gradient_set_anchor(&gradient, &target, anchor->values));
    check(le_gradient_open_chunk(&gradient, &target));
  }

  void *kernel = NULL;
  check(ops->alloc(&kernel_args, d, m, &run->arena, &kernel));
  const char *wanted = le_args_word(&settings, "answer", "moves");
  if (strcmp(wanted, "gradient") == 0) {
    check(le_target_draw(&target, 1));
    check(le_target_gradient(&target, 0, m, REAL(call->theta), REAL(theta)));
    UNPROTECT(3);
    return theta;
  }
  if (strcmp(wanted, "log_lik") == 0) {
    SEXP value = PROTECT(zero_vector(m));
    check(le_gradient_log_lik(&gradient, &expansion, &target, (size_t)le_args_number(&settings, "part", 0), m, REAL(call->theta), REAL(value)));
    Rf_setAttrib(value, Rf_install("likelihoods"), PROTECT(Rf_ScalarReal(target.likelihoods)));
    UNPROTECT(5);
    return value;
  }
  const size_t rounds = (size_t)le_args_number(&settings, "distributions", 1);
  const size_t at_once = (size_t)le_args_number(&settings, "at_once", 1e6);
  for (size_t r = 0; r < rounds; r++) {
    const size_t moves = (size_t)number_at(&settings, "moves", r, 1);
    begin_at(&target, &settings, rows.n, r);
    if (ops->begin) check(ops->begin(kernel, &target, m, REAL(theta), &run->streams));
    for (size_t s = 0, made; s < moves; s += made) {
      const size_t wanted = moves - s < at_once ? moves - s : at_once;
      check(le_kernel_moves(ops, kernel, &target, m, REAL(theta), &run->streams, wanted, &made));
    }
    if (ops->tune) ops->tune(kernel);
  }
  const le_kernel_report report = ops->report(kernel);
  SEXP acceptance = PROTECT(Rf_ScalarReal(report.acceptance)), step = PROTECT(Rf_ScalarReal(report.step_size));
  Rf_setAttrib(theta, Rf_install("acceptance"), acceptance);
  Rf_setAttrib(theta, Rf_install("step_size"), step);
  UNPROTECT(5);
  return theta;
}

SEXP ffi_kernel_moves(SEXP model_type, SEXP model_args, SEXP kernel, SEXP rows, SEXP theta, SEXP settings, SEXP seed)
{
  kernel_call call = {model_type, model_args, kernel, rows, theta, settings, seed};
  return guarded(kernel_body, &call);
}

SEXP ffi_philox(SEXP counter, SEXP key)
{
  uint32_t c[4], k[2], out[4];
  if (XLENGTH(counter) != 4 || XLENGTH(key) != 2) Rf_error("A Philox block has four words and two keys.");
  for (int i = 0; i < 4; i++) c[i] = (uint32_t)REAL(counter)[i];
  for (int i = 0; i < 2; i++) k[i] = (uint32_t)REAL(key)[i];
  le_philox(c, k, out);
  SEXP value = PROTECT(Rf_allocVector(REALSXP, 4));
  for (int i = 0; i < 4; i++) REAL(value)[i] = out[i];
  UNPROTECT(1);
  return value;
}

/* One by one, or all at once. */
SEXP ffi_uniforms(SEXP seed, SEXP replicate, SEXP stream, SEXP n, SEXP together)
{
  const size_t which = one_count(stream, "stream"), count = one_count(n, "n");
  const uint64_t words = seed_from_words(seed);
  const uint32_t repeat = (uint32_t)one_count(replicate, "replicate");
  SEXP value = PROTECT(zero_vector(count));
  le_streams streams;
  check(le_streams_alloc(&streams, which + 1, words, repeat));
  if (Rf_asLogical(together) == 1)
    le_uniforms(streams.rng[which], count, REAL(value));
  else
    for (size_t i = 0; i < count; i++) REAL(value)[i] = gsl_rng_uniform(streams.rng[which]);
  le_streams_free(&streams);
  UNPROTECT(1);
  return value;
}

/* d standard normals from each of n streams, so many times: an array of d x n x times. */
SEXP ffi_normals(SEXP seed, SEXP replicate, SEXP n, SEXP d, SEXP times)
{
  const size_t count = one_count(n, "n"), dim = one_count(d, "d"), rounds = one_count(times, "times");
  const uint64_t words = seed_from_words(seed);
  const uint32_t repeat = (uint32_t)one_count(replicate, "replicate");
  SEXP value = PROTECT(zero_vector(count * dim * rounds));
  le_streams streams;
  check(le_streams_alloc(&streams, count, words, repeat));
  for (size_t k = 0; k < rounds; k++) le_normals(&streams, 0, count, dim, REAL(value) + k * count * dim);
  le_streams_free(&streams);
  UNPROTECT(1);
  return value;
}

/* The lower factor of a symmetric matrix, row by row as C has it; NULL where it has none. */
SEXP ffi_cholesky(SEXP matrix)
{
  SEXP factor = PROTECT(Rf_duplicate(matrix));
  const le_status status = le_cholesky(REAL(factor), (size_t)Rf_nrows(matrix));
  UNPROTECT(1);
  return status == LE_OK ? factor : R_NilValue;
}

/* Shares of work as threads might have done them, a row for each: how many pieces in how many seconds. After each column: do they rest, and
 * for how long will they the next time? */
SEXP ffi_pace(SEXP done, SEXP spent)
{
  const size_t n = (size_t)Rf_nrows(done), rounds = (size_t)Rf_ncols(done);
  le_arena arena = {0};
  le_pace pace;
  SEXP value = PROTECT(Rf_allocMatrix(REALSXP, 2, (int)rounds));
  le_pace_alloc(&pace, (int)n, &arena);
  if (arena.failed) {
    le_arena_free(&arena);
    raise_status(LE_NO_MEMORY, NULL);
  }
  for (size_t r = 0; r < rounds; r++) {
    le_pace_begin(&pace, 0);
    double longest = 0;
    for (size_t t = 0; t < n; t++) {
      pace.first[t + 1] = pace.first[t] + (size_t)REAL(done)[r * n + t];
      longest = fmax(longest, REAL(spent)[r * n + t]);
    }
    pace.begun -= longest;
    for (size_t t = 0; t < n; t++) pace.ended[t] = pace.begun + REAL(spent)[r * n + t];
    le_pace_end(&pace);
    REAL(value)[2 * r] = le_pace_rests(&pace);
    REAL(value)[2 * r + 1] = pace.rest;
  }
  le_arena_free(&arena);
  UNPROTECT(1);
  return value;
}

SEXP ffi_resample(SEXP scheme, SEXP weight, SEXP m, SEXP seed)
{
  const int which = le_resampling_named(one_string(scheme, "scheme"));
  if (which < 0) Rf_error("There is no such resampling scheme.");
  const size_t n = (size_t)XLENGTH(weight), count = one_count(m, "m");
  const uint64_t words = seed_from_words(seed);
  double *work = (double *)R_alloc(n, sizeof(double));
  size_t *ancestor = (size_t *)R_alloc(count, sizeof(size_t));
  SEXP value = PROTECT(zero_vector(count));
  le_streams streams;
  check(le_streams_alloc(&streams, 1, words, 0));
  le_resample((le_resampling)which, n, REAL(weight), count, streams.rng[0], work, ancestor);
  le_streams_free(&streams);
  for (size_t i = 0; i < count; i++) REAL(value)[i] = (double)ancestor[i] + 1;
  UNPROTECT(1);
  return value;
}

/* Which of a stream of weighted points a reservoir keeps, and the weights that they carry. */
SEXP ffi_varopt(SEXP log_weight, SEXP most, SEXP seed)
{
  static const char *const names[] = {"kept", "log_weight"};
  if (TYPEOF(log_weight) != REALSXP) Rf_error("Weights must be numbers.");
  const size_t n = (size_t)XLENGTH(log_weight), bound = one_count(most, "most");
  const uint64_t words = seed_from_words(seed);
  le_varopt reservoir = {.most = bound, .d = 1};
  reservoir.theta = (double *)R_alloc(bound + 1, sizeof(double));
  reservoir.log_weight = (double *)R_alloc(bound + 1, sizeof(double));
  reservoir.sorted = (double *)R_alloc(bound + 1, sizeof(double));
  le_streams streams;
  check(le_streams_alloc(&streams, 1, words, 0));
  for (size_t i = 0; i < n; i++) {
    const double point = (double)i + 1;
    le_varopt_add(&reservoir, &point, REAL(log_weight)[i], streams.rng[0]);
  }
  le_streams_free(&streams);
  SEXP values[2] = {PROTECT(zero_vector(reservoir.n)), PROTECT(zero_vector(reservoir.n))};
  for (size_t i = 0; i < reservoir.n; i++) {
    REAL(values[0])[i] = reservoir.theta[i];
    REAL(values[1])[i] = reservoir.log_weight[i];
  }
  SEXP list = named_list(2, names, values);
  UNPROTECT(2);
  return list;
}

SEXP ffi_clusters(SEXP points)
{
  static const char *const names[] = {"label", "residuals", "variance"};
  if (TYPEOF(points) != REALSXP || !Rf_isMatrix(points)) Rf_error("Points must be a numeric matrix.");
  const size_t d = (size_t)Rf_nrows(points), n = (size_t)Rf_ncols(points);
  double *label = (double *)R_alloc(n + 1, sizeof(double)), *variance = (double *)R_alloc(n * d + 1, sizeof(double));
  double *residuals = (double *)R_alloc(n * d + 1, sizeof(double));
  le_arena arena = {0};
  le_clusters clusters;
  le_clusters_alloc(&clusters, n, d, &arena);
  if (arena.failed) {
    le_arena_free(&arena);
    raise_status(LE_NO_MEMORY, NULL);
  }
  le_clusters_find(&clusters, n, REAL(points));
  le_clusters_spread(&clusters, n, REAL(points));
  for (size_t i = 0; i < n; i++) label[i] = (double)clusters.label[i];
  memcpy(variance, clusters.variance, clusters.count * d * sizeof(double));
  const size_t left = le_clusters_residuals(&clusters, 0, n, REAL(points), residuals), count = clusters.count;
  le_arena_free(&arena);
  SEXP values[3] = {PROTECT(zero_vector(n)), PROTECT(zeros(d, left)), PROTECT(zeros(d, count))};
  memcpy(REAL(values[0]), label, n * sizeof(double));
  memcpy(REAL(values[1]), residuals, left * d * sizeof(double));
  memcpy(REAL(values[2]), variance, count * d * sizeof(double));
  SEXP list = named_list(3, names, values);
  UNPROTECT(3);
  return list;
}

SEXP ffi_schedule(SEXP log_lik, SEXP target, SEXP lambda)
{
  double increment = NAN;
  check(le_schedule_adaptive(REAL(log_lik), (size_t)XLENGTH(log_lik), Rf_asReal(target), Rf_asReal(lambda),
                             &increment));
  return Rf_ScalarReal(increment);
}

SEXP ffi_lambdas(SEXP kind, SEXP steps, SEXP delta)
{
  const size_t n = one_count(steps, "steps");
  SEXP value = PROTECT(zero_vector(n + 1));
  if (strcmp(one_string(kind, "kind"), "linear") == 0)
    le_schedule_linear(n, REAL(value));
  else
    le_schedule_sigmoidal(n, Rf_asReal(delta), REAL(value));
  UNPROTECT(1);
  return value;
}

SEXP ffi_pareto_k(SEXP log_weight)
{
  const size_t n = (size_t)XLENGTH(log_weight);
  double *work = (double *)R_alloc(n + 1, sizeof(double));
  return Rf_ScalarReal(le_pareto_k(REAL(log_weight), n, work));
}

/* Which vector instructions this processor has, which were asked for, and which are used. */
SEXP ffi_simd(void)
{
  static const char *const names[] = {"best", "wish", "used"};
  SEXP part[3] = {PROTECT(Rf_mkString(le_simd_name(le_simd_best()))), PROTECT(Rf_mkString(le_simd_wish())),
                  PROTECT(Rf_mkString(le_simd_name(le_simd_level())))};
  SEXP list = named_list(3, names, part);
  UNPROTECT(3);
  return list;
}

/* exp or log of numbers by one variant; or the seconds that so many rounds of multiply-adds take. */
SEXP ffi_vector(SEXP what, SEXP x, SEXP variant)
{
  const char *word = one_string(what, "what");
  const le_simd wanted = le_simd_named(one_string(variant, "variant"));
  if (wanted > le_simd_best()) Rf_error("This processor has no such instructions.");
  if (TYPEOF(x) != REALSXP) Rf_error("`x` must be numbers.");
  SEXP value = PROTECT(zero_vector((size_t)XLENGTH(x)));
  if (strcmp(word, "exp") == 0)
    le_vector_exp(wanted, (size_t)XLENGTH(x), 1, 0, REAL(x), REAL(value));
  else if (strcmp(word, "log") == 0)
    le_vector_log(wanted, (size_t)XLENGTH(x), REAL(x), REAL(value));
  else
    REAL(value)[0] = le_vector_peak(wanted, (size_t)REAL(x)[0]);
  UNPROTECT(1);
  return value;
}
