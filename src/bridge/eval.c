/* The functions of a model with data, callable from R (model_functions()). */
#include "bridge/bridge.h"

#include "base/linalg.h"
#include "base/logsum.h"
#include "base/rng.h"

#include <math.h>

typedef struct model_call {
  SEXP type, args, rows, what, theta, extra;
} model_call;

/* Everything for one evaluation. Memory comes from R, so nothing leaks if R raises an error. */
typedef struct evaluation {
  const le_model_ops *ops;
  const void *self;
  size_t d, m;
  const double *theta;
  le_rows rows;
  double *scratch;
  const model_call *call; /* the call from R */
} evaluation;

static void need(const void *function, const char *what)
{
  if (!function) Rf_error("This model offers no `%s`.", what);
}
#define NEED(e, member) need((const void *)(size_t)((e)->ops->member != NULL), #member)

/* The block size that estimators use. */
enum { BLOCK = 512 };
#define FOR_BLOCKS(e, block)                                                                       \
  for (size_t at_ = 0; at_ < (e)->rows.n; at_ += BLOCK)                                            \
    for (le_rows block = {(e)->rows.n - at_ < BLOCK ? (e)->rows.n - at_ : BLOCK, (e)->rows.width,  \
                          (e)->rows.values + at_ * (e)->rows.width},                               \
                 *once_ = &block;                                                                  \
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
  FOR_BLOCKS(e, block)
  check_status(e->ops->log_lik(e->self, e->m, e->theta, &block, REAL(value), e->scratch));
  UNPROTECT(1);
  return value;
}

static SEXP eval_log_lik_grad(const evaluation *e)
{
  NEED(e, log_lik_grad);
  static const char *const names[] = {"value", "gradient"};
  SEXP part[2] = {PROTECT(zero_vector(e->m)), PROTECT(zeros(e->d, e->m))};
  FOR_BLOCKS(e, block)
  check_status(e->ops->log_lik_grad(e->self, e->m, e->theta, &block, REAL(part[0]), REAL(part[1]),
                                    e->scratch));
  SEXP list = named_list(2, names, part);
  UNPROTECT(2);
  return list;
}

static SEXP eval_log_lik_grad_alone(const evaluation *e)
{
  NEED(e, log_lik_grad_alone);
  SEXP value = PROTECT(zeros(e->d, e->m));
  FOR_BLOCKS(e, block)
  check_status(
    e->ops->log_lik_grad_alone(e->self, e->m, e->theta, &block, REAL(value), e->scratch));
  UNPROTECT(1);
  return value;
}

static SEXP eval_log_lik_hess(const evaluation *e)
{
  NEED(e, log_lik_hess);
  static const char *const names[] = {"gradient", "hessian"};
  SEXP part[2] = {PROTECT(zero_vector(e->d)), PROTECT(zeros(e->d, e->d))};
  FOR_BLOCKS(e, block)
  check_status(
    e->ops->log_lik_hess(e->self, e->theta, &block, REAL(part[0]), REAL(part[1]), e->scratch));
  SEXP list = named_list(2, names, part);
  UNPROTECT(2);
  return list;
}

static SEXP eval_information(const evaluation *e)
{
  NEED(e, information);
  SEXP value = PROTECT(zeros(e->d, e->d));
  FOR_BLOCKS(e, block)
  check_status(e->ops->information(e->self, e->theta, &block, REAL(value), e->scratch));
  UNPROTECT(1);
  return value;
}

/* n x m: one column per particle, one row per observation. */
static SEXP eval_log_lik_each(const evaluation *e)
{
  SEXP value = PROTECT(zeros(e->rows.n, e->m));
  double *part = (double *)R_alloc(BLOCK * e->m, sizeof(double));
  size_t from = 0;
  FOR_BLOCKS(e, block)
  {
    check_status(e->ops->log_lik_each(e->self, e->m, e->theta, &block, part, e->scratch));
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
  check_status(e->ops->exact(e->self, &e->rows, &log_evidence));
  return Rf_ScalarReal(log_evidence);
}

static SEXP eval_draw_prior(const evaluation *e, SEXP extra)
{
  const size_t n = one_count(list_element(extra, "n"), "n");
  SEXP value = PROTECT(zeros(e->d, n));
  le_streams streams;
  if (le_streams_alloc(&streams, 1, seed_from_words(list_element(extra, "seed")), 0) != LE_OK)
    raise_status(LE_NO_MEMORY, NULL);
  for (size_t i = 0; i < n; i++)
    e->ops->draw_prior(e->self, streams.rng[0], REAL(value) + i * e->d);
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

/* An additional point among the arguments. */
static const double *point_of(const evaluation *e, const char *name)
{
  SEXP point = list_element(e->call->extra, name);
  if (TYPEOF(point) != REALSXP || (size_t)XLENGTH(point) != e->d)
    Rf_error("`%s` must be %d numbers.", name, (int)e->d);
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
  double *scratch = (double *)R_alloc(e->ops->start_scratch(e->self, e->rows.n) + 1,
                                      sizeof(double));
  SEXP value = PROTECT(zeros(e->d, n));
  le_streams streams;
  if (le_streams_alloc(&streams, 1, seed, 0) != LE_OK) raise_status(LE_NO_MEMORY, NULL);
  for (size_t i = 0; i < n; i++)
    e->ops->start(e->self, &e->rows, streams.rng[0], REAL(value) + i * e->d, scratch);
  le_streams_free(&streams);
  UNPROTECT(1);
  return value;
}

/* The coordinates, followed by the log determinant. */
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
    if (!e->ops->from_normal(e->self, peak, REAL(value) + i * e->d))
      Rf_error("No parameters have these coordinates.");
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
  if (strcmp(what, "takes_data") == 0) return Rf_ScalarReal(!(e->ops->traits & LE_MODEL_NO_DATA));
  if (strcmp(what, "simulates") == 0) return Rf_ScalarReal(e->ops->simulate != NULL);
  if (strcmp(what, "traits") == 0) return traits_of(e->ops);
  if (strcmp(what, "user_dim") == 0)
    return Rf_ScalarReal((double)(e->ops->user_dim ? e->ops->user_dim(e->self) : e->d));
  if (strcmp(what, "log_symmetry") == 0)
    return Rf_ScalarReal(e->ops->log_symmetry ? e->ops->log_symmetry(e->self)
                         : e->ops->latent && e->ops->latent->log_symmetry
                           ? e->ops->latent->log_symmetry(e->self)
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
  evaluation e = {handle->ops, handle->self, handle->ops->dim ? handle->ops->dim(handle->self) : 0,
                  0,           NULL,         {0, 0, NULL},
                  NULL,        call};
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
