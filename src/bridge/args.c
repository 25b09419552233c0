/* Conversions from R to C, each with its check: after them all types and sizes are right. */
#include "bridge/bridge.h"

#include "base/clock.h"
#include "base/threads.h"

#include <gsl/gsl_errno.h>

/* Seconds between two questions, which take R some microseconds. */
static const double ASK_EVERY = 0.01;

static void restore_handler(void *handler, Rboolean jump)
{
  (void)jump;
  gsl_set_error_handler(*(gsl_error_handler_t **)handler);
}

SEXP guarded(SEXP (*body)(void *data), void *data)
{
  /* first, as it allocates */
  SEXP token = PROTECT(R_MakeUnwindCont());
  gsl_error_handler_t *handler = gsl_set_error_handler_off();
  SEXP value = R_UnwindProtect(body, data, restore_handler, &handler, token);
  UNPROTECT(1);
  return value;
}

SEXP call_package(SEXP call)
{
  PROTECT(call);
  SEXP package = PROTECT(Rf_mkString("logevidence"));
  SEXP value = Rf_eval(call, PROTECT(R_FindNamespace(package)));
  UNPROTECT(3);
  return value;
}

void raise_status(le_status status, const le_error *error)
{
  const char *sentence = error && error->message[0] ? error->message : le_status_sentence(status);
  const char *kind = status == LE_INTERRUPTED ? "logevidence_interrupt" : "logevidence_error";
  call_package(
    Rf_lang3(Rf_install("raise"), PROTECT(Rf_mkString(sentence)), PROTECT(Rf_mkString(kind))));
  UNPROTECT(2);
  Rf_error("%s", sentence); /* not reached: the R function raises an error */
}

void check_status(le_status status)
{
  if (status != LE_OK && status != LE_USER_ERROR) raise_status(status, NULL);
}

static SEXP keep_condition(SEXP condition, void *kept)
{
  SET_VECTOR_ELT((SEXP)kept, 0, condition);
  return R_NilValue;
}

void catch_conditions(SEXP (*body)(void *), void *data, SEXP kept)
{
  static const char *const names[] = {"error", "interrupt"};
  SEXP classes = PROTECT(string_vector(2, names));
  R_tryCatch(body, data, classes, keep_condition, kept, NULL, NULL);
  UNPROTECT(1);
}

static SEXP check_interrupt(void *unused)
{
  (void)unused;
  R_CheckUserInterrupt();
  return R_NilValue;
}

/* An interrupt, or an error such as that of a time limit: neither may jump over C's frames, and an
 * error that nothing catches ends R where it is not interactive. Other threads than that of R read
 * what it was told. */
int user_interrupts(void *payload)
{
  r_watch *watch = payload;
  if (!watch) return 0;
  const double now = le_now();
  if (now > watch->until) return 1;
  if (watch->leader) watch = watch->leader;
  if (!le_thread_loaded()) return atomic_load(&watch->stopped);
  if (VECTOR_ELT(watch->kept, 0) == R_NilValue && now - watch->asked >= ASK_EVERY) {
    watch->asked = now;
    catch_conditions(check_interrupt, NULL, watch->kept);
  }
  atomic_store(&watch->stopped, VECTOR_ELT(watch->kept, 0) != R_NilValue);
  return atomic_load(&watch->stopped);
}

void raise_condition(SEXP condition)
{
  PROTECT(condition);
  call_package(Rf_lang2(Rf_install("raise_condition"), condition));
  UNPROTECT(1);
}

le_context watched(r_watch *watch)
{
  /* R itself looks for interrupts between calls */
  *watch = (r_watch){.kept = Rf_allocVector(VECSXP, 1), .asked = le_now(), .until = INFINITY};
  return (le_context){.threads = 1, .interrupted = user_interrupts, .payload = watch};
}

void finish_watched(le_status status, const r_watch *watch, const le_context *context)
{
  if (VECTOR_ELT(watch->kept, 0) != R_NilValue) raise_condition(VECTOR_ELT(watch->kept, 0));
  if (status != LE_OK && status != LE_USER_ERROR) raise_status(status, &context->error);
}

SEXP new_object(size_t bytes, R_CFinalizer_t finalizer, SEXP kept)
{
  SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, kept));
  R_RegisterCFinalizerEx(pointer, finalizer, TRUE);
  void *object = le_resize(NULL, bytes);
  if (!object) raise_status(LE_NO_MEMORY, NULL);
  memset(object, 0, bytes);
  R_SetExternalPtrAddr(pointer, object);
  UNPROTECT(1);
  return pointer;
}

int has_member(const void *table, size_t offset)
{
  void (*member)(void) = NULL;
  if (table) memcpy(&member, (const char *)table + offset, sizeof member);
  return member != NULL;
}

/* Settings are parts of objects that a user holds and may have altered. */
static void refuse_settings(const char *name)
{
  le_error error = {""};
  if (name)
    le_fail(&error, LE_BAD_ARGUMENT, "Setting `%s` must be numeric or one string.", name);
  else
    le_fail(&error, LE_BAD_ARGUMENT, "Settings must be a named list.");
  raise_status(LE_BAD_ARGUMENT, &error);
}

le_args args_from_list(SEXP list, le_arena *arena)
{
  le_args args = {0, NULL};
  if (Rf_isNull(list) || XLENGTH(list) == 0) return args;
  if (TYPEOF(list) != VECSXP) refuse_settings(NULL);
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  if (TYPEOF(names) != STRSXP) refuse_settings(NULL);
  const R_xlen_t n = XLENGTH(list);
  le_arg *arg = le_arena_bytes(arena, (size_t)n, sizeof *arg);
  if (!arg) raise_status(LE_NO_MEMORY, NULL);
  for (R_xlen_t i = 0; i < n; i++) {
    SEXP value = VECTOR_ELT(list, i);
    arg[i].name = CHAR(STRING_ELT(names, i));
    if (TYPEOF(value) == REALSXP) {
      arg[i].values = REAL(value);
      arg[i].n = (size_t)XLENGTH(value);
    } else if (TYPEOF(value) == STRSXP && XLENGTH(value) == 1) {
      arg[i].word = CHAR(STRING_ELT(value, 0));
    } else {
      refuse_settings(arg[i].name);
    }
  }
  args.n = (size_t)n;
  args.arg = arg;
  return args;
}

le_rows rows_from_matrix(SEXP matrix, size_t width)
{
  if (TYPEOF(matrix) != REALSXP || !Rf_isMatrix(matrix) || (size_t)Rf_nrows(matrix) != width)
    Rf_error("Rows must be a numeric matrix of %d rows.", (int)width);
  const le_rows rows = {(size_t)Rf_ncols(matrix), width, REAL(matrix)};
  return rows;
}

uint64_t seed_from_words(SEXP words)
{
  if (TYPEOF(words) != REALSXP || XLENGTH(words) != 2) Rf_error("A seed must be two numbers.");
  return ((uint64_t)(uint32_t)REAL(words)[0] << 32) | (uint32_t)REAL(words)[1];
}

const char *one_string(SEXP string, const char *name)
{
  if (TYPEOF(string) != STRSXP || XLENGTH(string) != 1) Rf_error("`%s` must be one string.", name);
  return CHAR(STRING_ELT(string, 0));
}

size_t one_count(SEXP number, const char *name)
{
  const double value = Rf_asReal(number);
  if (!(value >= 0 && value < 9e15)) Rf_error("`%s` must be a whole number.", name);
  return (size_t)value;
}

le_streams new_streams(size_t n, SEXP seed, uint32_t replicate)
{
  const uint64_t words = Rf_isNull(seed) ? 1 : seed_from_words(seed);
  const size_t size = le_rng_philox->size;
  gsl_rng *rng = (gsl_rng *)R_alloc(n, sizeof *rng);
  char *state = R_alloc(n, (int)size);
  le_streams made, kept = {n, (gsl_rng **)R_alloc(n, sizeof *kept.rng), NULL};
  check_status(le_streams_alloc(&made, n, words, replicate));
  for (size_t i = 0; i < n; i++) {
    rng[i] = (gsl_rng){le_rng_philox, state + i * size};
    gsl_rng_memcpy(&rng[i], made.rng[i]);
    kept.rng[i] = &rng[i];
  }
  le_streams_free(&made);
  return kept;
}

gsl_rng *new_stream(SEXP seed)
{
  return new_streams(1, seed, 0).rng[0];
}

/* The position of the element with this name, or -1. */
static R_xlen_t position(SEXP list, const char *name)
{
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  if (TYPEOF(list) != VECSXP || TYPEOF(names) != STRSXP) return -1;
  for (R_xlen_t i = 0; i < XLENGTH(list); i++)
    if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0) return i;
  return -1;
}

SEXP list_element(SEXP list, const char *name)
{
  const R_xlen_t i = position(list, name);
  if (i < 0) Rf_error("`%s` is missing.", name);
  return VECTOR_ELT(list, i);
}

SEXP maybe_element(SEXP list, const char *name)
{
  const R_xlen_t i = position(list, name);
  return i < 0 ? R_NilValue : VECTOR_ELT(list, i);
}

double number_element(SEXP list, const char *name, double otherwise)
{
  SEXP value = maybe_element(list, name);
  return Rf_isNull(value) ? otherwise : Rf_asReal(value);
}

SEXP named_list(size_t n, const char *const *names, SEXP *values)
{
  SEXP list = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t)n));
  for (size_t i = 0; values && i < n; i++) SET_VECTOR_ELT(list, (R_xlen_t)i, values[i]);
  Rf_setAttrib(list, R_NamesSymbol, PROTECT(string_vector(n, names)));
  UNPROTECT(2);
  return list;
}

SEXP zeros(size_t rows, size_t columns)
{
  SEXP matrix = Rf_allocMatrix(REALSXP, (int)rows, (int)columns);
  memset(REAL(matrix), 0, rows * columns * sizeof(double));
  return matrix;
}

SEXP zero_vector(size_t n)
{
  SEXP vector = Rf_allocVector(REALSXP, (R_xlen_t)n);
  memset(REAL(vector), 0, n * sizeof(double));
  return vector;
}

SEXP number_vector(size_t n, const double *values)
{
  SEXP vector = Rf_allocVector(REALSXP, (R_xlen_t)n);
  if (n) memcpy(REAL(vector), values, n * sizeof(double));
  return vector;
}

SEXP string_vector(size_t n, const char *const *values)
{
  SEXP vector = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)n));
  for (size_t i = 0; i < n; i++) SET_STRING_ELT(vector, (R_xlen_t)i, Rf_mkChar(values[i]));
  UNPROTECT(1);
  return vector;
}
