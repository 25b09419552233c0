/* Functions for the tests only: they call small parts of the core directly. */
#include "bridge/bridge.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "base/sort.h"
#include "base/threads.h"
#include "core/clusters.h"
#include "core/resample.h"
#include "core/schedule.h"
#include "core/varopt.h"

#include <math.h>

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
  le_varopt reservoir = {.most = bound, .d = 1, .log_light = -INFINITY};
  reservoir.theta = (double *)R_alloc(bound + 1, sizeof(double));
  reservoir.log_weight = (double *)R_alloc(bound + 1, sizeof(double));
  for (size_t i = 0; i < n; i++) {
    const double point = (double)i + 1;
    le_varopt_add(&reservoir, &point, REAL(log_weight)[i], rng);
  }
  le_varopt_settle(&reservoir);
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

SEXP ffi_sorted(SEXP numbers)
{
  const size_t n = (size_t)XLENGTH(numbers);
  SEXP sorted = PROTECT(Rf_duplicate(numbers));
  le_sort(REAL(sorted), n, (double *)R_alloc(n + 1, sizeof(double)));
  UNPROTECT(1);
  return sorted;
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
