/* Models of R functions. One R function, made by R/spec-model-custom.R, answers every call and
 * checks what the user's functions return; this file calls it.
 *
 * An R error or an interrupt inside the function is caught, stored, and raised again after the C
 * code has returned (user_model_raise). Until then every call returns LE_USER_ERROR or NaN. Runs
 * with such a model use one thread. */
#include "bridge/bridge.h"

#include <math.h>

enum { DRAWS_AHEAD = 100 };

typedef struct user_model {
  SEXP answer; /* set once: function(what, theta, rows), protected by the model's pointer */
  SEXP kept;   /* set once, protected as well: a list of one, the stored error condition */
  SEXP values; /* set once, protected as well: the values of each discrete coordinate */
  size_t d;    /* set once */
  size_t next; /* number of prior draws used of those fetched in advance */
  double *ahead;
  const le_context *context; /* of the run, or NULL */
} user_model;

typedef struct user_call {
  user_model *model;
  const char *what;
  size_t m;
  const double *theta;
  const le_rows *rows; /* numbers of rows, or NULL */
  size_t wanted;
  double *out;
  int add;
} user_call;

static SEXP ask(void *data)
{
  user_call *c = data;
  SEXP theta = PROTECT(zeros(c->model->d, c->m)), what = PROTECT(Rf_mkString(c->what)),
       rows = PROTECT(c->rows ? number_vector(c->rows->n, c->rows->values) : zero_vector(0));
  if (c->theta) memcpy(REAL(theta), c->theta, c->model->d * c->m * sizeof(double));
  SEXP lenient = PROTECT(Rf_ScalarLogical(c->model->context && c->model->context->lenient));
  SEXP call = PROTECT(Rf_lang5(c->model->answer, what, theta, rows, lenient));
  SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
  if (TYPEOF(value) != REALSXP || (size_t)XLENGTH(value) != c->wanted)
    Rf_error("A custom model returned %.0f values instead of %.0f.", (double)XLENGTH(value),
             (double)c->wanted);
  const double *values = REAL(value);
  for (size_t i = 0; i < c->wanted; i++) c->out[i] = c->add ? c->out[i] + values[i] : values[i];
  UNPROTECT(6);
  return R_NilValue;
}

static int has_failed(const user_model *model)
{
  return VECTOR_ELT(model->kept, 0) != R_NilValue;
}

static le_status user_ask(user_model *model, const char *what, size_t m, const double *theta,
                          const le_rows *rows, size_t wanted, double *out, int add)
{
  user_call call = {model, what, m, theta, rows, wanted, out, add};
  if (!has_failed(model)) catch_conditions(ask, &call, model->kept);
  const int failed = has_failed(model);
  for (size_t i = 0; failed && !add && i < wanted; i++) out[i] = NAN;
  return failed ? LE_USER_ERROR : LE_OK;
}

/* An instance is constant except for the stored error and the prior draws fetched in advance. */
static user_model *writable(const void *self)
{
  return (user_model *)(size_t)self;
}

size_t one_wide(const void *self)
{
  (void)self;
  return 1;
}

static size_t user_dim(const void *self) { return ((const user_model *)self)->d; }

static void user_log_prior(const void *self, size_t m, const double *theta, double *value)
{
  user_ask(writable(self), "log_prior", m, theta, NULL, m, value, 0);
}

static void user_log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  user_ask(writable(self), "prior_gradient", m, theta, NULL, m * user_dim(self), grad, 0);
}

static void user_draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  user_model *model = writable(self);
  (void)rng; /* uses R's generator, which evidence() seeds */
  if (model->next == DRAWS_AHEAD) {
    user_ask(model, "draw_prior", DRAWS_AHEAD, NULL, NULL, DRAWS_AHEAD * model->d, model->ahead, 0);
    model->next = 0;
  }
  memcpy(theta, model->ahead + model->next++ * model->d, model->d * sizeof(double));
}

static void user_to_user(const void *self, const double *theta, double *user)
{
  user_ask(writable(self), "to_user", 1, theta, NULL, user_dim(self), user, 0);
}

static le_status user_log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  (void)scratch;
  return user_ask(writable(self), "log_lik", m, theta, rows, m, value, 1);
}

static le_status user_log_lik_grad_alone(const void *self, size_t m, const double *theta,
                                         const le_rows *rows, double *grad, double *scratch)
{
  (void)scratch;
  return user_ask(writable(self), "gradient", m, theta, rows, m * user_dim(self), grad, 1);
}

static le_status user_log_lik_grad(const void *self, size_t m, const double *theta,
                                   const le_rows *rows, double *value, double *grad,
                                   double *scratch)
{
  LE_TRY(user_log_lik(self, m, theta, rows, value, scratch));
  return user_log_lik_grad_alone(self, m, theta, rows, grad, scratch);
}

static le_status user_log_lik_each(const void *self, size_t m, const double *theta,
                                   const le_rows *rows, double *value, double *scratch)
{
  (void)scratch;
  return user_ask(writable(self), "log_lik_each", m, theta, rows, m * rows->n, value, 0);
}

static size_t user_discrete(const void *self, size_t j, const double **values)
{
  SEXP own = VECTOR_ELT(((const user_model *)self)->values, (R_xlen_t)j);
  *values = REAL(own);
  return (size_t)XLENGTH(own);
}

static void user_destroy(void *self)
{
  user_model *model = self;
  if (model) le_release(model->ahead);
  le_release(model);
}

static const le_model_ops user_ops = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "custom_model",
  .traits = LE_MODEL_ONE_THREAD,
  .destroy = user_destroy,
  .dim = user_dim,
  .width = one_wide,
  .log_prior = user_log_prior,
  .log_prior_grad = user_log_prior_grad,
  .draw_prior = user_draw_prior,
  .log_lik = user_log_lik,
  .log_lik_grad = user_log_lik_grad,
  .log_lik_grad_alone = user_log_lik_grad_alone,
  .log_lik_each = user_log_lik_each,
};

/* The state of a model of R functions: prior draws fetched in advance, and R's own generator. */
void user_model_archive(const model_handle *handle, le_archive *archive)
{
  if (!user_model_made(handle)) return;
  user_model *model = handle->self;
  le_archive_indices(archive, &model->next, 1, DRAWS_AHEAD + 1);
  le_archive_doubles(archive, model->ahead, DRAWS_AHEAD * model->d);
  SEXP name = Rf_install(".Random.seed"), text = PROTECT(Rf_mkString(".Random.seed"));
  SEXP call = PROTECT(Rf_lang3(Rf_install("get0"), text, R_GlobalEnv));
  SEXP seed = Rf_eval(call, R_BaseEnv);
  UNPROTECT(2);
  size_t n = TYPEOF(seed) == INTSXP ? (size_t)XLENGTH(seed) : 0;
  le_archive_count(archive, &n, sizeof(int));
  if (archive->status != LE_OK || n == 0) return;
  if (!archive->writing) seed = Rf_allocVector(INTSXP, (R_xlen_t)n);
  PROTECT(seed);
  le_archive_bytes(archive, INTEGER(seed), n * sizeof(int));
  if (!archive->writing) Rf_defineVar(name, seed, R_GlobalEnv);
  UNPROTECT(1);
}

int user_model_made(const model_handle *handle)
{
  return handle->ops->dim == user_dim;
}

void user_model_create(model_handle *handle, SEXP args, SEXP kept)
{
  user_model *model = le_resize(NULL, sizeof *model);
  if (!model) raise_status(LE_NO_MEMORY, NULL);
  memset(model, 0, sizeof *model);
  handle->self = model;
  handle->own = user_ops;
  handle->ops = &handle->own;
  model->answer = list_element(args, "answer");
  model->kept = kept;
  model->d = one_count(list_element(args, "dim"), "dim");
  model->next = DRAWS_AHEAD;
  model->ahead = le_resize(NULL, DRAWS_AHEAD * model->d * sizeof(double));
  if (!model->ahead) raise_status(LE_NO_MEMORY, NULL);
  if (!Rf_asLogical(list_element(args, "gradients"))) handle->own.traits |= LE_MODEL_DIFFERENCES;
  if (Rf_asLogical(list_element(args, "scaled"))) handle->own.to_user = user_to_user;
  model->values = maybe_element(args, "discrete");
  if (!Rf_isNull(model->values)) handle->own.discrete = user_discrete;
  if (Rf_asLogical(list_element(args, "several"))) handle->own.traits |= LE_MODEL_MULTIMODAL;
}

void user_model_watch(const model_handle *handle, const le_context *context)
{
  if (user_model_made(handle)) ((user_model *)handle->self)->context = context;
}

/* Raises the stored error of a user's function, if any. */
void user_model_raise(const model_handle *handle)
{
  if (!handle || !user_model_made(handle)) return;
  const user_model *model = handle->self;
  if (has_failed(model)) raise_condition(VECTOR_ELT(model->kept, 0));
}
