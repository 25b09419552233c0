/* Small parts of the package's C code, for tests that call them directly. helper-units.R makes a
 * library of this file and of the files of src/base and src/core that it needs. Tests give
 * arguments of the right kind, so nothing is checked here. */
#include "base/arrays.h"
#include "base/clock.h"
#include "base/linalg.h"
#include "base/rng.h"
#include "base/simd.h"
#include "base/sort.h"
#include "base/status.h"
#include "base/threads.h"
#include "core/clusters.h"
#include "core/resample.h"
#include "core/schedule.h"
#include "core/varopt.h"

#define MULTIPLY_ADDS(variant) multiply_adds_##variant
#define VECTOR_BODY "units_body.h"
#include "base/variants.h"

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include <string.h>

/* R finds the functions below by their names. */
#pragma GCC visibility push(default)

void R_init_units(DllInfo *library)
{
  R_useDynamicSymbols(library, TRUE);
  le_threads_init();
  le_simd_init();
}

static SEXP numbers(size_t n) { return Rf_allocVector(REALSXP, (R_xlen_t)n); }
static size_t count_of(SEXP number) { return (size_t)Rf_asReal(number); }

/* A seed is two words of 32 bits. */
static le_streams streams_of(size_t n, SEXP seed, uint32_t replicate)
{
  const uint64_t high = (uint32_t)REAL(seed)[0], low = (uint32_t)REAL(seed)[1];
  le_streams streams;
  if (le_streams_alloc(&streams, n, high << 32 | low, replicate) != LE_OK) Rf_error("no memory");
  return streams;
}

SEXP unit_philox(SEXP counter, SEXP key)
{
  uint32_t c[4], k[2], out[4];
  SEXP value = PROTECT(numbers(4));
  for (int i = 0; i < 4; i++) c[i] = (uint32_t)REAL(counter)[i];
  for (int i = 0; i < 2; i++) k[i] = (uint32_t)REAL(key)[i];
  le_philox(c, k, out);
  for (int i = 0; i < 4; i++) REAL(value)[i] = out[i];
  UNPROTECT(1);
  return value;
}

/* d standard normals from each of n streams, `times` times: an array of d x n x times. */
SEXP unit_normals(SEXP seed, SEXP replicate, SEXP n, SEXP d, SEXP times)
{
  const size_t count = count_of(n), dim = count_of(d), rounds = count_of(times);
  SEXP value = PROTECT(numbers(count * dim * rounds));
  le_streams streams = streams_of(count, seed, (uint32_t)count_of(replicate));
  for (size_t k = 0; k < rounds; k++)
    le_normals(&streams, 0, count, dim, REAL(value) + k * count * dim);
  le_streams_free(&streams);
  UNPROTECT(1);
  return value;
}

/* The lower Cholesky factor of a symmetric matrix, row by row as in C; NULL if it is not positive
 * definite. */
SEXP unit_cholesky(SEXP matrix)
{
  SEXP factor = PROTECT(Rf_duplicate(matrix));
  const le_status status = le_cholesky(REAL(factor), (size_t)Rf_nrows(matrix));
  UNPROTECT(1);
  return status == LE_OK ? factor : R_NilValue;
}

/* Simulates shares of work: for each thread a row, for each piece of work a column, with numbers of
 * pieces and seconds. Returns for each column whether threads pause, and the length of the next
 * pause. */
SEXP unit_pace(SEXP done, SEXP spent)
{
  const size_t n = (size_t)Rf_nrows(done), rounds = (size_t)Rf_ncols(done);
  SEXP value = PROTECT(Rf_allocMatrix(REALSXP, 2, (int)rounds));
  le_arena arena = {0};
  le_pace pace;
  le_pace_alloc(&pace, (int)n, &arena);
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

/* The ancestors of m offspring. `scheme` is a number of le_resampling. */
SEXP unit_resample(SEXP scheme, SEXP weight, SEXP m, SEXP seed)
{
  const size_t n = (size_t)XLENGTH(weight), count = count_of(m);
  double *work = (double *)R_alloc(n, sizeof(double));
  size_t *ancestor = (size_t *)R_alloc(count, sizeof(size_t));
  SEXP value = PROTECT(numbers(count));
  le_streams streams = streams_of(1, seed, 0);
  le_resample((le_resampling)Rf_asInteger(scheme), n, REAL(weight), count, streams.rng[0], work,
              ancestor);
  le_streams_free(&streams);
  for (size_t i = 0; i < count; i++) REAL(value)[i] = (double)ancestor[i] + 1;
  UNPROTECT(1);
  return value;
}

/* The points of a weighted stream that a reservoir keeps, and their log weights: two rows. */
SEXP unit_varopt(SEXP log_weight, SEXP most, SEXP seed)
{
  const size_t n = (size_t)XLENGTH(log_weight);
  le_arena arena = {0};
  le_varopt reservoir = {0};
  le_varopt_alloc(&reservoir, count_of(most), 1, &arena);
  le_streams streams = streams_of(1, seed, 0);
  for (size_t i = 0; i < n; i++) {
    const double point = (double)i + 1;
    le_varopt_add(&reservoir, &point, REAL(log_weight)[i], streams.rng[0]);
  }
  le_streams_free(&streams);
  le_varopt_settle(&reservoir);
  SEXP kept = PROTECT(Rf_allocMatrix(REALSXP, 2, (int)reservoir.n));
  for (size_t i = 0; i < reservoir.n; i++) {
    REAL(kept)[2 * i] = reservoir.theta[i];
    REAL(kept)[2 * i + 1] = reservoir.log_weight[i];
  }
  le_arena_free(&arena);
  UNPROTECT(1);
  return kept;
}

/* Points are columns. A list: the cluster of each point; the residuals of those that are not alone;
 * the variances of the clusters. */
SEXP unit_clusters(SEXP points)
{
  const size_t d = (size_t)Rf_nrows(points), n = (size_t)Rf_ncols(points);
  SEXP list = PROTECT(Rf_allocVector(VECSXP, 3)), residual = PROTECT(numbers(n * d));
  le_arena arena = {0};
  le_clusters clusters;
  le_clusters_alloc(&clusters, n, d, &arena);
  le_clusters_find(&clusters, n, REAL(points));
  le_clusters_spread(&clusters, n, REAL(points));
  const size_t left = le_clusters_residuals(&clusters, 0, n, REAL(points), REAL(residual));
  SET_VECTOR_ELT(list, 0, numbers(n));
  SET_VECTOR_ELT(list, 1, Rf_xlengthgets(residual, (R_xlen_t)(left * d)));
  SET_VECTOR_ELT(list, 2, numbers(clusters.count * d));
  for (size_t i = 0; i < n; i++) REAL(VECTOR_ELT(list, 0))[i] = (double)clusters.label[i];
  memcpy(REAL(VECTOR_ELT(list, 2)), clusters.variance, clusters.count * d * sizeof(double));
  le_arena_free(&arena);
  UNPROTECT(2);
  return list;
}

SEXP unit_schedule(SEXP log_lik, SEXP weight, SEXP target, SEXP lambda)
{
  double increment = NAN;
  const le_status status =
    le_schedule_adaptive(REAL(log_lik), Rf_isNull(weight) ? NULL : REAL(weight),
                         (size_t)XLENGTH(log_lik), Rf_asReal(target), Rf_asReal(lambda),
                         &increment);
  if (status != LE_OK) Rf_error("%s", le_status_sentence(status));
  return Rf_ScalarReal(increment);
}

SEXP unit_sorted(SEXP x)
{
  const size_t n = (size_t)XLENGTH(x);
  SEXP sorted = PROTECT(Rf_duplicate(x));
  le_sort(REAL(sorted), n, (double *)R_alloc(n + 1, sizeof(double)));
  UNPROTECT(1);
  return sorted;
}

/* `variant` is a number of le_simd. */
SEXP unit_exp(SEXP x, SEXP variant)
{
  SEXP value = PROTECT(numbers((size_t)XLENGTH(x)));
  le_arrays((le_simd)Rf_asInteger(variant))->exp((size_t)XLENGTH(x), 1, 0, REAL(x), REAL(value));
  UNPROTECT(1);
  return value;
}

SEXP unit_log(SEXP x, SEXP variant)
{
  SEXP value = PROTECT(numbers((size_t)XLENGTH(x)));
  le_arrays((le_simd)Rf_asInteger(variant))->log((size_t)XLENGTH(x), REAL(x), REAL(value));
  UNPROTECT(1);
  return value;
}

/* 8 * 2^20 * rounds multiply-adds, counting each lane. */
SEXP unit_multiply_adds(SEXP rounds, SEXP variant)
{
  static double (*const each[])(size_t) = TABLES(MULTIPLY_ADDS);
  return Rf_ScalarReal(each[Rf_asInteger(variant)](count_of(rounds)));
}
