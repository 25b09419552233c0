/* Functions for the tests and bench/kernels.R only: they call small parts of the core directly. */
#include "bridge/bridge.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "base/pareto.h"
#include "base/threads.h"
#include "core/clusters.h"
#include "core/gradient.h"
#include "core/resample.h"
#include "core/schedule.h"
#include "core/varopt.h"

#include <math.h>

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

/* Settings: the number of distributions, and for each moves, seen and lambda; gradient rule
 * ("full", "batch", "control"), batch, anchor, precision, floor (value and tie), mixed (rows are in
 * random order), noise, at_once (largest number of moves per call); answer ("moves", "gradient", or
 * "log_lik" of the chunk by a subsample of `part` rows). */
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

  le_context context = {.threads = 1, .interrupted = user_interrupts};
  le_target target;
  le_metric metric;
  le_gradient gradient;
  le_expansion expansion;
  le_target_alloc(&target, handle->ops, handle->self, m, 0, &context, arena);
  le_metric_alloc(&metric, d, wish.ops->default_metric, arena);
  const char *rule = le_args_word(&settings, "gradient", "full");
  le_gradient_alloc(&gradient,
                    strcmp(rule, "batch") == 0     ? LE_GRADIENT_BATCH
                    : strcmp(rule, "control") == 0 ? LE_GRADIENT_CONTROL
                                                   : LE_GRADIENT_FULL,
                    (size_t)le_args_number(&settings, "batch", 100), &target, arena);
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
    check_status(le_target_gradient(&target, 0, m, REAL(start), REAL(theta)));
    UNPROTECT(2);
    return theta;
  }
  if (strcmp(wanted, "log_lik") == 0) {
    SEXP value = PROTECT(zero_vector(m));
    check_status(le_gradient_log_lik(&gradient, &expansion, &target,
                                     (size_t)le_args_number(&settings, "part", 0), m,
                                     REAL(start), REAL(value)));
    Rf_setAttrib(value, Rf_install("likelihoods"), PROTECT(Rf_ScalarReal(target.likelihoods)));
    UNPROTECT(4);
    return value;
  }
  const size_t rounds = (size_t)le_args_number(&settings, "distributions", 1);
  const size_t at_once = (size_t)le_args_number(&settings, "at_once", 1e6);
  for (size_t r = 0; r < rounds; r++) {
    const size_t moves = (size_t)number_at(&settings, "moves", r, 1);
    begin_at(&target, &settings, rows.n, r);
    check_status(le_kernel_begin(kernel, &target, m, REAL(theta), &streams));
    for (size_t s = 0, made; s < moves; s += made) {
      const size_t wanted = moves - s < at_once ? moves - s : at_once;
      check_status(le_kernel_moves(kernel, &target, m, REAL(theta), &streams, wanted, &made));
    }
    le_kernel_tune(kernel);
  }
  Rf_setAttrib(theta, Rf_install("acceptance"), PROTECT(Rf_ScalarReal(kernel->acceptance)));
  Rf_setAttrib(theta, Rf_install("step_size"), PROTECT(Rf_ScalarReal(kernel->step)));
  UNPROTECT(4);
  return theta;
}

SEXP ffi_philox(SEXP counter, SEXP key)
{
  uint32_t c[4], k[2], out[4];
  double words[4];
  if (XLENGTH(counter) != 4 || XLENGTH(key) != 2)
    Rf_error("A Philox block has four words and two keys.");
  for (int i = 0; i < 4; i++) c[i] = (uint32_t)REAL(counter)[i];
  for (int i = 0; i < 2; i++) k[i] = (uint32_t)REAL(key)[i];
  le_philox(c, k, out);
  for (int i = 0; i < 4; i++) words[i] = out[i];
  return number_vector(4, words);
}

/* d standard normals from each of n streams, `times` times: an array of d x n x times. */
SEXP ffi_normals(SEXP seed, SEXP replicate, SEXP n, SEXP d, SEXP times)
{
  const size_t count = one_count(n, "n"), dim = one_count(d, "d"),
               rounds = one_count(times, "times");
  const uint32_t repeat = (uint32_t)one_count(replicate, "replicate");
  const le_streams streams = new_streams(count, seed, repeat);
  SEXP value = PROTECT(zero_vector(count * dim * rounds));
  for (size_t k = 0; k < rounds; k++)
    le_normals(&streams, 0, count, dim, REAL(value) + k * count * dim);
  UNPROTECT(1);
  return value;
}

/* The lower Cholesky factor of a symmetric matrix, row by row as in C; NULL if it is not positive
 * definite. */
SEXP ffi_cholesky(SEXP matrix)
{
  SEXP factor = PROTECT(Rf_duplicate(matrix));
  const le_status status = le_cholesky(REAL(factor), (size_t)Rf_nrows(matrix));
  UNPROTECT(1);
  return status == LE_OK ? factor : R_NilValue;
}

static void need_memory(le_arena *arena)
{
  if (!arena->failed) return;
  le_arena_free(arena);
  raise_status(LE_NO_MEMORY, NULL);
}

/* Simulates shares of work: for each thread a row, for each piece of work a column, with numbers of
 * pieces and seconds. Returns for each column whether threads pause, and the length of the next
 * pause. */
SEXP ffi_pace(SEXP done, SEXP spent)
{
  const size_t n = (size_t)Rf_nrows(done), rounds = (size_t)Rf_ncols(done);
  le_arena arena = {0};
  le_pace pace;
  SEXP value = PROTECT(Rf_allocMatrix(REALSXP, 2, (int)rounds));
  le_pace_alloc(&pace, (int)n, &arena);
  need_memory(&arena);
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
  const int which = le_word_place(LE_RESAMPLINGS, one_string(scheme, "scheme"));
  if (which < 0) Rf_error("There is no such resampling scheme.");
  const size_t n = (size_t)XLENGTH(weight), count = one_count(m, "m");
  double *work = (double *)R_alloc(n, sizeof(double));
  size_t *ancestor = (size_t *)R_alloc(count, sizeof(size_t));
  SEXP value = PROTECT(zero_vector(count));
  le_resample((le_resampling)which, n, REAL(weight), count, new_stream(seed), work, ancestor);
  for (size_t i = 0; i < count; i++) REAL(value)[i] = (double)ancestor[i] + 1;
  UNPROTECT(1);
  return value;
}

/* Which points of a weighted stream a reservoir keeps, and their weights. */
SEXP ffi_varopt(SEXP log_weight, SEXP most, SEXP seed)
{
  static const char *const names[] = {"kept", "log_weight"};
  if (TYPEOF(log_weight) != REALSXP) Rf_error("Weights must be numbers.");
  const size_t n = (size_t)XLENGTH(log_weight), bound = one_count(most, "most");
  const gsl_rng *rng = new_stream(seed);
  le_varopt reservoir = {.most = bound, .d = 1};
  reservoir.theta = (double *)R_alloc(bound + 1, sizeof(double));
  reservoir.log_weight = (double *)R_alloc(bound + 1, sizeof(double));
  reservoir.sorted = (double *)R_alloc(bound + 1, sizeof(double));
  for (size_t i = 0; i < n; i++) {
    const double point = (double)i + 1;
    le_varopt_add(&reservoir, &point, REAL(log_weight)[i], rng);
  }
  SEXP values[2] = {PROTECT(number_vector(reservoir.n, reservoir.theta)),
                    PROTECT(number_vector(reservoir.n, reservoir.log_weight))};
  SEXP list = named_list(2, names, values);
  UNPROTECT(2);
  return list;
}

SEXP ffi_clusters(SEXP points)
{
  static const char *const names[] = {"label", "residuals", "variance"};
  if (TYPEOF(points) != REALSXP || !Rf_isMatrix(points))
    Rf_error("Points must be a numeric matrix.");
  const size_t d = (size_t)Rf_nrows(points), n = (size_t)Rf_ncols(points);
  SEXP values[3] = {PROTECT(zero_vector(n)), PROTECT(zero_vector(n * d)),
                    PROTECT(zero_vector(n * d))};
  le_arena arena = {0};
  le_clusters clusters;
  le_clusters_alloc(&clusters, n, d, &arena);
  need_memory(&arena);
  le_clusters_find(&clusters, n, REAL(points));
  le_clusters_spread(&clusters, n, REAL(points));
  for (size_t i = 0; i < n; i++) REAL(values[0])[i] = (double)clusters.label[i];
  const size_t count = clusters.count,
               left = le_clusters_residuals(&clusters, 0, n, REAL(points), REAL(values[1]));
  memcpy(REAL(values[2]), clusters.variance, count * d * sizeof(double));
  le_arena_free(&arena);
  values[1] = PROTECT(Rf_xlengthgets(values[1], (R_xlen_t)(left * d)));
  values[2] = PROTECT(Rf_xlengthgets(values[2], (R_xlen_t)(count * d)));
  SEXP list = named_list(3, names, values);
  UNPROTECT(5);
  return list;
}

SEXP ffi_schedule(SEXP log_lik, SEXP weight, SEXP target, SEXP lambda)
{
  double increment = NAN;
  check_status(le_schedule_adaptive(REAL(log_lik), Rf_isNull(weight) ? NULL : REAL(weight),
                                    (size_t)XLENGTH(log_lik), Rf_asReal(target), Rf_asReal(lambda),
                                    &increment));
  return Rf_ScalarReal(increment);
}

SEXP ffi_pareto_k(SEXP log_weight)
{
  const size_t n = (size_t)XLENGTH(log_weight);
  double *work = (double *)R_alloc(n + 1, sizeof(double));
  const le_pareto tail = le_pareto_tail(REAL(log_weight), n, work);
  return number_vector(2, (double[]){tail.k, tail.unseen});
}

/* exp or log of numbers by one variant; or the seconds for this many rounds of multiply-adds. */
SEXP ffi_vector(SEXP what, SEXP x, SEXP variant)
{
  const char *word = one_string(what, "what");
  const le_simd wanted = le_simd_named(one_string(variant, "variant"));
  if (wanted > le_simd_best()) Rf_error("This processor does not support these instructions.");
  if (TYPEOF(x) != REALSXP) Rf_error("`x` must be numbers.");
  SEXP value = PROTECT(zero_vector((size_t)XLENGTH(x)));
  if (strcmp(word, "exp") == 0)
    le_arrays(wanted)->exp((size_t)XLENGTH(x), 1, 0, REAL(x), REAL(value));
  else if (strcmp(word, "log") == 0)
    le_arrays(wanted)->log((size_t)XLENGTH(x), REAL(x), REAL(value));
  else
    REAL(value)[0] = le_arrays(wanted)->peak((size_t)REAL(x)[0]);
  UNPROTECT(1);
  return value;
}
