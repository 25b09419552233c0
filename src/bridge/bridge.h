/* The functions between R's objects and the core. Only this folder uses R's headers. */
#ifndef LE_BRIDGE_H
#define LE_BRIDGE_H

#include "base/arena.h"
#include "registry.h"

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>

/* Runs `body` with GSL's error handler switched off. The handler is restored however `body` ends,
 * also after R errors and interrupts. */
SEXP guarded(SEXP (*body)(void *data), void *data);

/* Converts a named R list of numeric vectors and strings to settings. Names and numbers stay in R's
 * memory, so the list must stay protected while they are used. */
le_args args_from_list(SEXP list, le_arena *arena);
/* A numeric matrix with one observation per column, as rows. */
le_rows rows_from_matrix(SEXP matrix, size_t width);
uint64_t seed_from_words(SEXP words);
/* The first stream of random numbers of a seed, by default 1. R frees it when the call from R
 * ends. */
gsl_rng *new_stream(SEXP seed);
const char *one_string(SEXP string, const char *name);
size_t one_count(SEXP number, const char *name);

/* An instance of a model (model.c); the finalizer of its external pointer destroys it. */
typedef struct model_handle {
  const le_model_ops *ops;
  void *self;
  le_arena arena;
  DL_FUNC table; /* for a compiled model: the function of its library that returns the table */
  /* the table of models whose functions are known only after creation: models of R functions, and
   * of other libraries */
  le_model_ops own;
} model_handle;
SEXP model_new(SEXP type, SEXP args);
model_handle *model_get(SEXP pointer);

/* Models made of R functions (user_model.c). */
int user_model_is(SEXP type);
void user_model_create(model_handle *handle, SEXP args, SEXP kept);
int user_model_made(const model_handle *handle);
/* The context of the run that uses the model. */
void user_model_watch(const model_handle *handle, const le_context *context);
void user_model_archive(const model_handle *handle, le_archive *archive);
/* Models compiled in other libraries (compiled_model.c). */
int compiled_model_is(SEXP type);
void compiled_model_find(model_handle *handle, SEXP args);
void compiled_model_check(model_handle *handle);
/* Whether the library is still loaded: an instance exists until R's garbage collection, which may
 * be later than the unloading. */
int compiled_model_lives(const model_handle *handle, SEXP args);
/* Raises the error of a user's function, if there was one. Must be called after every use of a
 * model. */
void user_model_raise(const model_handle *handle);

/* Raises the sentence of a failure as an R error of class logevidence_error. */
void raise_status(le_status status, const le_error *error);
/* The same if `status` is an error. An error in a user's function is stored in the model, which
 * raises it after the C code has returned. */
void check_status(le_status status);

/* The names of the traits of a model (tables.c). */
SEXP traits_of(const le_model_ops *ops);

/* When R was last asked whether the user wants to stop, and a list of one element for the condition
 * that was signalled. */
typedef struct r_watch {
  double asked;
  SEXP kept;
} r_watch;
/* Called by runs in the main thread, with an r_watch: whether the user has pressed the interrupt
 * key or a time limit has been reached. The condition is kept, to be raised when C has returned. */
int user_interrupts(void *watch);
/* Calls `body`. An R error or an interrupt in it becomes the element of the list `kept`. */
void catch_conditions(SEXP (*body)(void *), void *data, SEXP kept);
/* Raises a condition that was kept. */
void raise_condition(SEXP condition);
/* Evaluates a call of a function of the package. */
SEXP call_package(SEXP call);

/* The element with this name; an R error if there is none. */
SEXP list_element(SEXP list, const char *name);
/* The same, or NULL if there is none; and a number, or `otherwise`. */
SEXP maybe_element(SEXP list, const char *name);
double number_element(SEXP list, const char *name, double otherwise);
/* A named list from arrays of names and values. */
SEXP named_list(size_t n, const char *const *names, SEXP *values);
/* A matrix of zeros. */
SEXP zeros(size_t rows, size_t columns);
SEXP zero_vector(size_t n);
/* Vectors of these numbers or texts. */
SEXP number_vector(size_t n, const double *values);
SEXP string_vector(size_t n, const char *const *values);

SEXP ffi_model(SEXP type, SEXP args, SEXP rows, SEXP what, SEXP theta, SEXP more);
SEXP ffi_model_facts(SEXP type, SEXP args);
SEXP ffi_check_model(SEXP type, SEXP args, SEXP calls);
SEXP ffi_run_new(SEXP problem);
SEXP ffi_run_feed(SEXP run, SEXP rows, SEXP feed);
SEXP ffi_run_advance(SEXP runs, SEXP seconds);
SEXP ffi_threads(SEXP requested);
SEXP ffi_run_progress(SEXP run);
SEXP ffi_run_reopen(SEXP run);
SEXP ffi_run_result(SEXP run);
SEXP ffi_run_save(SEXP run);
SEXP ffi_run_restore(SEXP run, SEXP state);
SEXP ffi_run_free(SEXP run);
SEXP ffi_problem_id(SEXP problem);
SEXP ffi_path_kind(SEXP path);
SEXP ffi_file_read(SEXP path);
SEXP ffi_checkpoint_open(SEXP path, SEXP directory);
SEXP ffi_checkpoint_close(SEXP pointer);
SEXP ffi_checkpoint_read(SEXP pointer);
SEXP ffi_checkpoint_write(SEXP pointer, SEXP bytes);
SEXP ffi_checkpoint_intact(SEXP bytes);
SEXP ffi_fingerprint(SEXP observations, SEXP threads, SEXP last);
SEXP ffi_all_finite(SEXP x);
SEXP ffi_bind_rows(SEXP x, SEXP y, SEXP intercept, SEXP threads, SEXP seed);
SEXP ffi_vector_rows(SEXP vectors, SEXP intercept);
SEXP ffi_arrow_next(SEXP stream, SEXP array);
SEXP ffi_arrow_rows(SEXP array, SEXP schema, SEXP names, SEXP intercept);
SEXP ffi_csv(SEXP lines, SEXP kinds, SEXP format, SEXP na);
SEXP ffi_csv_fields(SEXP lines, SEXP format);
SEXP ffi_csv_kinds(SEXP lines, SEXP columns, SEXP format, SEXP na);
SEXP ffi_csv_lines(SEXP raw, SEXP ended);
SEXP ffi_crc32(SEXP raw, SEXP before);
SEXP ffi_volumes(SEXP log_lik, SEXP live, SEXP rest, SEXP simulations, SEXP seed);
SEXP ffi_kernel_moves(SEXP model_type, SEXP model_args, SEXP kernel, SEXP rows, SEXP theta,
                      SEXP settings, SEXP seed);
SEXP ffi_philox(SEXP counter, SEXP key);
SEXP ffi_uniforms(SEXP seed, SEXP replicate, SEXP stream, SEXP n, SEXP together);
SEXP ffi_normals(SEXP seed, SEXP replicate, SEXP n, SEXP d, SEXP times);
SEXP ffi_cholesky(SEXP matrix);
SEXP ffi_pace(SEXP done, SEXP spent);
SEXP ffi_resample(SEXP scheme, SEXP weight, SEXP m, SEXP seed);
SEXP ffi_varopt(SEXP log_weight, SEXP most, SEXP seed);
SEXP ffi_clusters(SEXP points);
SEXP ffi_latent_density(SEXP type, SEXP args, SEXP rows, SEXP states, SEXP fresh);
SEXP ffi_schedule(SEXP log_lik, SEXP weight, SEXP target, SEXP lambda);
SEXP ffi_lambdas(SEXP kind, SEXP steps, SEXP delta);
SEXP ffi_pareto_k(SEXP log_weight);
SEXP ffi_simd(void);
SEXP ffi_tables(void);
SEXP ffi_vector(SEXP what, SEXP x, SEXP variant);

#endif
