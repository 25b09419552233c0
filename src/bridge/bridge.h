/* The functions between R's objects and the core. Only this folder uses R's headers. */
#pragma once

#include "base/arena.h"
#include "registry.h"

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>

#include <stdatomic.h>

/* Runs `body` with GSL's error handler switched off. The handler is restored however `body` ends,
 * also after R errors and interrupts. */
SEXP guarded(SEXP (*body)(void *data), void *data);

/* Converts a named R list of numeric vectors and strings to settings. Names and numbers stay in R's
 * memory, so the list must stay protected while they are used. */
le_args args_from_list(SEXP list, le_arena *arena);
/* A numeric matrix with one observation per column, as rows. */
le_rows rows_from_matrix(SEXP matrix, size_t width);
uint64_t seed_from_words(SEXP words);
/* Streams of random numbers of a seed, by default 1, without that for the order of rows; and the
 * first one. R frees them when the call from R ends. */
le_streams new_streams(size_t n, SEXP seed, uint32_t replicate);
gsl_rng *new_stream(SEXP seed);
const char *one_string(SEXP string, const char *name);
size_t one_count(SEXP number, const char *name);

/* An external pointer to zeroed memory, which its finalizer gives back by le_release(). `kept`
 * exists as long as the pointer. */
SEXP new_object(size_t bytes, R_CFinalizer_t finalizer, SEXP kept);

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

/* Whether a table of functions exists and has the one that is a member at this offset. */
int has_member(const void *table, size_t offset);

/* Models made of R functions (user_model.c). */
void user_model_create(model_handle *handle, SEXP args, SEXP kept);
int user_model_made(const model_handle *handle);
/* The width of models whose rows are numbers of rows, or a row that they do not read. */
size_t one_wide(const void *self);
/* The context of the run that uses the model. */
void user_model_watch(const model_handle *handle, const le_context *context);
void user_model_archive(const model_handle *handle, le_archive *archive);
/* Models compiled in other libraries (compiled_model.c). */
void compiled_model_find(model_handle *handle, SEXP args);
void compiled_model_check(model_handle *handle);
/* If the setting `.together` says so, so many rows are one row of the model (joined_model.c). */
void join_rows(model_handle *handle, SEXP args);
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
  double until;           /* then work ends, too, and is undone */
  atomic_int stopped;     /* the answer, for those that follow */
  struct r_watch *leader; /* the watch that asks R instead of this one, or NULL */
} r_watch;
/* Called by runs, with an r_watch: whether the user has pressed the interrupt key or a time limit
 * has been reached. The condition is kept, to be raised when C has returned. */
int user_interrupts(void *watch);
/* A context whose interrupts R is asked for; the caller must protect watch->kept. At the end what R
 * said is raised, or the sentence of a failure; errors of users' functions are left to
 * user_model_raise(). */
le_context watched(r_watch *watch);
void finish_watched(le_status status, const r_watch *watch, const le_context *context);
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
/* A named list from arrays of names and values; without values all elements are NULL. */
SEXP named_list(size_t n, const char *const *names, SEXP *values);
/* A matrix of zeros. */
SEXP zeros(size_t rows, size_t columns);
SEXP zero_vector(size_t n);
/* Vectors of these numbers or texts. */
SEXP number_vector(size_t n, const double *values);
SEXP string_vector(size_t n, const char *const *values);

/* All routines that R calls, with their numbers of arguments. While guarded ones work, GSL's error
 * handler is switched off (init.c). */
#define GUARDED_ROUTINES(ROUTINE)                                                                  \
  ROUTINE(ffi_model, 6)                                                                            \
  ROUTINE(ffi_model_facts, 2)                                                                      \
  ROUTINE(ffi_check_model, 3)                                                                      \
  ROUTINE(ffi_run_new, 1)                                                                          \
  ROUTINE(ffi_run_feed, 3)                                                                         \
  ROUTINE(ffi_run_advance, 3)                                                                      \
  ROUTINE(ffi_run_reopen, 1)                                                                       \
  ROUTINE(ffi_run_result, 1)                                                                       \
  ROUTINE(ffi_run_sums, 2)                                                                         \
  ROUTINE(ffi_kernel_moves, 7)                                                                     \
  ROUTINE(ffi_segment_tables, 3)                                                                   \
  ROUTINE(ffi_segment_add, 7)                                                                      \
  ROUTINE(ffi_segment_join, 6)                                                                     \
  ROUTINE(ffi_segments, 6)                                                                         \
  ROUTINE(ffi_segments_laplace, 6)                                                                 \
  ROUTINE(ffi_segments_draw, 7)                                                                    \
  ROUTINE(ffi_segments_sums, 4)                                                                    \
  ROUTINE(ffi_runs, 6)                                                                             \
  ROUTINE(ffi_latent_density, 5)
#define OTHER_ROUTINES(ROUTINE)                                                                    \
  ROUTINE(ffi_threads, 1)                                                                          \
  ROUTINE(ffi_threads_none, 0)                                                                     \
  ROUTINE(ffi_processor_time, 0)                                                                   \
  ROUTINE(ffi_now, 0)                                                                              \
  ROUTINE(ffi_run_progress, 1)                                                                     \
  ROUTINE(ffi_run_question, 1)                                                                     \
  ROUTINE(ffi_run_answer, 3)                                                                       \
  ROUTINE(ffi_run_save, 1)                                                                         \
  ROUTINE(ffi_run_restore, 2)                                                                      \
  ROUTINE(ffi_state_seal, 1)                                                                       \
  ROUTINE(ffi_run_free, 1)                                                                         \
  ROUTINE(ffi_problem_id, 1)                                                                       \
  ROUTINE(ffi_path_kind, 1)                                                                        \
  ROUTINE(ffi_file_read, 1)                                                                        \
  ROUTINE(ffi_checkpoint_open, 2)                                                                  \
  ROUTINE(ffi_checkpoint_close, 1)                                                                 \
  ROUTINE(ffi_checkpoint_read, 1)                                                                  \
  ROUTINE(ffi_checkpoint_write, 2)                                                                 \
  ROUTINE(ffi_checkpoint_intact, 1)                                                                \
  ROUTINE(ffi_fingerprint, 3)                                                                      \
  ROUTINE(ffi_all_finite, 1)                                                                       \
  ROUTINE(ffi_standard_constants, 2)                                                               \
  ROUTINE(ffi_standardise, 5)                                                                      \
  ROUTINE(ffi_bind_rows, 5)                                                                        \
  ROUTINE(ffi_vector_rows, 2)                                                                      \
  ROUTINE(ffi_group_sums, 3)                                                                       \
  ROUTINE(ffi_join_sums, 4)                                                                        \
  ROUTINE(ffi_group_units, 1)                                                                      \
  ROUTINE(ffi_unit_sums, 5)                                                                        \
  ROUTINE(ffi_join_unit_sums, 5)                                                                   \
  ROUTINE(ffi_arrow_next, 2)                                                                       \
  ROUTINE(ffi_arrow_rows, 4)                                                                       \
  ROUTINE(ffi_csv, 4)                                                                              \
  ROUTINE(ffi_csv_fields, 2)                                                                       \
  ROUTINE(ffi_csv_kinds, 4)                                                                        \
  ROUTINE(ffi_csv_lines, 2)                                                                        \
  ROUTINE(ffi_fifo_open, 1)                                                                        \
  ROUTINE(ffi_fifo_read, 2)                                                                        \
  ROUTINE(ffi_fifo_close, 1)                                                                       \
  ROUTINE(ffi_crc32, 2)                                                                            \
  ROUTINE(ffi_volumes, 5)                                                                          \
  ROUTINE(ffi_uniforms, 5)                                                                         \
  ROUTINE(ffi_pareto_k, 1)                                                                         \
  ROUTINE(ffi_simd, 0)                                                                             \
  ROUTINE(ffi_row_quantiles, 4)                                                                    \
  ROUTINE(ffi_tables, 0)

/* EACH_n(X) is X(0), X(1) and so on, for each of n arguments. */
#define EACH_0(X) void
#define EACH_1(X) X(0)
#define EACH_2(X) EACH_1(X), X(1)
#define EACH_3(X) EACH_2(X), X(2)
#define EACH_4(X) EACH_3(X), X(3)
#define EACH_5(X) EACH_4(X), X(4)
#define EACH_6(X) EACH_5(X), X(5)
#define EACH_7(X) EACH_6(X), X(6)
#define PARAMETER(k) SEXP a##k
#define DECLARE_ROUTINE(name, arguments) SEXP name(EACH_##arguments(PARAMETER));
GUARDED_ROUTINES(DECLARE_ROUTINE)
OTHER_ROUTINES(DECLARE_ROUTINE)
