/* Moves of a kernel on the density of a model, without a run around them: paths of points
 * (kernel_path()), and for the tests single moves, gradients and sums. */
#include "bridge/bridge.h"

#include "core/gradient.h"

#include <math.h>
#include <string.h>

/* A setting with one value per distribution: that of the r-th, or the last one given. */
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

/* Moves of one distribution, `thin` of them at a time; after each `thin` moves points and densities
 * are written behind those of before. */
static le_status record_path(le_kernel *kernel, le_target *target, const le_streams *streams,
                             size_t thin, size_t kept, double *theta, double *path, double *value)
{
  const size_t m = target->m, size = m * target->d;
  for (size_t k = 0; k <= kept; k++) {
    for (size_t s = 0, made; k > 0 && s < thin; s += made)
      LE_TRY(le_kernel_moves(kernel, target, m, theta, streams, thin - s, &made));
    memcpy(path + k * size, theta, size * sizeof(double));
    if (value) LE_TRY(le_target_density(target, m, theta, value + k * m));
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
  }
  return LE_OK;
}

/* Settings: the number of distributions, and for each moves, seen and lambda; gradient rule
 * ("full", "batch", "control"), batch, anchor, precision, floor (value and tie), mixed (rows are in
 * random order), noise, at_once (largest number of moves per call); answer ("moves", "gradient",
 * "log_lik" of the chunk by a subsample of `part` rows, or "path": in the last distribution the
 * points after each `thin` moves, and their densities if `density` is 1). */
SEXP ffi_kernel_moves(SEXP type, SEXP args, SEXP spec, SEXP values, SEXP start, SEXP list,
                      SEXP seed)
{
  SEXP model = PROTECT(model_new(type, args)), theta = PROTECT(Rf_duplicate(start));
  model_handle *handle = model_get(model);
  le_arena *arena = &handle->arena; /* the finalizer of the model frees it */
  const size_t d = handle->ops->dim(handle->self), m = (size_t)Rf_ncols(theta);
  const le_args settings = args_from_list(list, arena);
  const le_kernel_spec wish = {le_find_kernel(one_string(VECTOR_ELT(spec, 0), "kernel")),
                               args_from_list(VECTOR_ELT(spec, 1), arena)};
  if (!wish.ops) Rf_error("There is no such kernel.");
  const le_streams streams = new_streams(m + 1, seed, 0);
  const le_rows rows = rows_from_matrix(values, handle->ops->width(handle->self));
  le_store store = {.width = rows.width};
  check_status(le_store_take(&store, &rows, NULL, LE_LAST_ROWS)); /* borrowed, so nothing to free */
  store.mixed = le_args_number(&settings, "mixed", 0) != 0 ? rows.n : 0;

  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  user_model_watch(handle, &context);
  le_target target;
  le_metric metric;
  le_gradient gradient;
  le_expansion expansion;
  le_target_alloc(&target, handle->ops, handle->self, m, 0, &context, arena);
  le_metric_alloc(&metric, d, wish.ops->default_metric, target.held, arena);
  const char *rule = le_args_word(&settings, "gradient", "full");
  le_gradient_alloc(&gradient,
                    strcmp(rule, "batch") == 0     ? LE_GRADIENT_BATCH
                    : strcmp(rule, "control") == 0 ? LE_GRADIENT_CONTROL
                                                   : LE_GRADIENT_FULL,
                    (size_t)le_args_number(&settings, "batch", 100),
                    le_args_number(&settings, "own_batches", 0) != 0, &target, arena);
  le_expansion_alloc(&expansion, &target, arena);
  if (arena->failed) raise_status(LE_NO_MEMORY, NULL);
  target.store = &store;
  target.rng = streams.rng[0];
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
  const le_arg *precision = le_args_find(&settings, "precision"),
               *anchor = le_args_find(&settings, "anchor");
  if (precision && precision->n == d * d)
    check_status(le_metric_set_precision(&metric, precision->values));
  if (anchor && anchor->n == d) {
    check_status(le_gradient_set_anchor(&gradient, &target, anchor->values));
    check_status(le_gradient_open_chunk(&gradient, &target));
  }

  le_kernel *kernel = NULL;
  check_status(le_kernel_alloc(&wish, d, m, arena, &kernel));
  const char *wanted = le_args_word(&settings, "answer", "moves");
  if (strcmp(wanted, "gradient") == 0) {
    check_status(le_target_draw(&target, 1));
    check_status(le_target_gradient(&target, 0, m, REAL(start), streams.rng + 1, REAL(theta)));
    UNPROTECT(3);
    return theta;
  }
  if (strcmp(wanted, "log_lik") == 0) {
    SEXP value = PROTECT(zero_vector(m));
    check_status(le_gradient_log_lik(&gradient, &expansion, &target,
                                     (size_t)le_args_number(&settings, "part", 0), m,
                                     REAL(start), REAL(value)));
    Rf_setAttrib(value, Rf_install("likelihoods"), PROTECT(Rf_ScalarReal(target.likelihoods)));
    UNPROTECT(5);
    return value;
  }
  const size_t rounds = (size_t)le_args_number(&settings, "distributions", 1);
  const size_t at_once = (size_t)le_args_number(&settings, "at_once", 1e6);
  const size_t thin = (size_t)le_args_number(&settings, "thin", 1);
  const int with_path = strcmp(wanted, "path") == 0,
            with_density = le_args_number(&settings, "density", 0) != 0;
  const size_t kept = with_path ? (size_t)number_at(&settings, "moves", rounds - 1, 1) / thin : 0;
  SEXP path = PROTECT(with_path ? zero_vector((kept + 1) * m * d) : R_NilValue),
       value = PROTECT(with_path && with_density ? zero_vector((kept + 1) * m) : R_NilValue);
  le_status status = LE_OK;
  double used = NAN; /* the step of the last move */
  for (size_t r = 0; r < rounds && status == LE_OK; r++) {
    const size_t moves = (size_t)number_at(&settings, "moves", r, 1);
    begin_at(&target, &settings, rows.n, r);
    status = le_kernel_begin(kernel, &target, m, REAL(theta), &streams);
    if (with_path && r + 1 == rounds && status == LE_OK)
      status = record_path(kernel, &target, &streams, thin, kept, REAL(theta), REAL(path),
                           with_density ? REAL(value) : NULL);
    else
      for (size_t s = 0, made; s < moves && status == LE_OK; s += made)
        status = le_kernel_moves(kernel, &target, m, REAL(theta), &streams,
                                 moves - s < at_once ? moves - s : at_once, &made);
    if (status == LE_OK && le_interrupted(&context)) status = LE_INTERRUPTED;
    used = kernel->step;
    le_kernel_tune(kernel);
  }
  user_model_raise(handle);
  finish_watched(status, &watch, &context);
  SEXP answer = with_path ? path : theta;
  if (with_density) Rf_setAttrib(answer, Rf_install("log_density"), value);
  Rf_setAttrib(answer, Rf_install("acceptance"), PROTECT(Rf_ScalarReal(kernel->acceptance)));
  const double step = with_path ? used : kernel->step;
  Rf_setAttrib(answer, Rf_install("step_size"), PROTECT(Rf_ScalarReal(step)));
  UNPROTECT(7);
  return answer;
}
