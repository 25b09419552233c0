/* Converts columns in R to rows in C, and checks that all numbers are finite. */
#include "bridge/bridge.h"

#include "base/threads.h"

#include <math.h>

/* Rows converted at a time; numbers tested together. */
enum { ROWS_BOUND = 128, TOLD = 8 };

/* The top bit of the result is set if x is not finite, because then all bits of its exponent are
 * set. */
static uint64_t told_finite(double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7ff0000000000000u) + 0x0010000000000000u;
}

/* Needs no memory for intermediate results, unlike all(is.finite(x)) and is.na() of a factor. */
SEXP ffi_all_finite(SEXP x)
{
  const size_t n = (size_t)XLENGTH(x), whole = n - n % TOLD;
  int missing[TOLD] = {0}; /* several at once, so that compilers vectorise */
  uint64_t told[TOLD] = {0};
  if (TYPEOF(x) == INTSXP) {
    const int *value = INTEGER(x);
    for (size_t i = 0; i < whole; i += TOLD)
      for (size_t k = 0; k < TOLD; k++) missing[k] |= value[i + k] == NA_INTEGER;
    for (size_t i = whole; i < n; i++) missing[0] |= value[i] == NA_INTEGER;
  } else {
    if (TYPEOF(x) != REALSXP) Rf_error("`x` must be numeric.");
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

/* The position of each of n rows in the order of a run with this seed; without a seed the given
 * order. Not in R's memory, because an allocation of this size would trigger a garbage
 * collection. */
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

/* Binds a matrix with one observation per row, and optional responses (numbers, or a factor whose
 * codes begin with zero in the result), to a matrix with one observation per column, with a leading
 * 1 if `intercept`. Returns NULL if a number of the matrix is not finite. With a seed, rows are in
 * the random order in which a run with this seed uses them. Most of the time is spent by the system
 * on new pages, so each thread touches its own. Not guarded as a whole, because R would copy the
 * result of a guarded call when names are added. */
SEXP ffi_bind_rows(SEXP x, SEXP y, SEXP intercept, SEXP threads, SEXP seed)
{
  const int coded = Rf_isFactor(y), last = !Rf_isNull(y);
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x) ||
      (last && ((TYPEOF(y) != REALSXP && !coded) || XLENGTH(y) != Rf_nrows(x))))
    Rf_error("Covariates and responses must be numeric and have the same number of rows.");
  const size_t n = (size_t)Rf_nrows(x), p = (size_t)Rf_ncols(x),
               first = Rf_asLogical(intercept) == TRUE, width = first + p + (size_t)last;
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
#pragma omp parallel for num_threads(usable) schedule(static)                                      \
  reduction(|                                                                                      \
            : told) if (usable > 1 && n * width > 100000)
#endif
  for (size_t from = 0; from < n; from += ROWS_BOUND) {
    const size_t to = from + ROWS_BOUND < n ? from + ROWS_BOUND : n;
    for (size_t i = to; i < n && i < to + ROWS_BOUND; i++)
      le_prefetch(out + place[i] * width, width * sizeof(double));
    for (size_t i = from; i < to && first; i++) out[place[i] * width] = 1;
    for (size_t j = 0; j < p; j++) {
      const double *column = values + j * n;
      double *to_column = out + first + j;
      for (size_t i = from; i < to; i++) {
        to_column[place[i] * width] = column[i];
        told |= told_finite(column[i]);
      }
    }
    for (size_t i = from; i < to && last; i++)
      out[place[i] * width + first + p] = coded ? (double)codes[i] - 1 : responses[i];
  }
  (void)usable;
  le_release(places.place);
  UNPROTECT(1);
  return told >> 63 ? R_NilValue : rows;
}

/* ---- standardised columns ---- */

/* The sum of x - centre over n numbers and that of its squares; parts are added side by side. */
static void add_around(const double *x, size_t n, double centre, double *sum, double *squares)
{
  double first[TOLD] = {0}, second[TOLD] = {0};
  const size_t whole = n - n % TOLD;
  for (size_t i = 0; i < whole; i += TOLD)
    for (size_t k = 0; k < TOLD; k++) {
      const double away = x[i + k] - centre;
      first[k] += away;
      second[k] += away * away;
    }
  for (size_t i = whole; i < n; i++) {
    first[0] += x[i] - centre;
    second[0] += (x[i] - centre) * (x[i] - centre);
  }
  *sum = *squares = 0;
  for (size_t k = 0; k < TOLD; k++) {
    *sum += first[k];
    *squares += second[k];
  }
}

/* Of a column x of n numbers its mean, its standard deviation, and whether it has no other values
 * than 0 and 1 (`plain` is 1) or than one (2). */
static void standard_constants(const double *x, size_t n, double *centre, double *scale,
                               double *plain)
{
  size_t alike = 1, binary = 1;
  while (alike < n && x[alike] == x[0]) alike++;
  for (binary = 0; binary < n && (x[binary] == 0 || x[binary] == 1);) binary++;
  *plain = alike >= n ? 2 : binary >= n;
  if (alike >= n) {
    *centre = n ? x[0] : NAN;
    *scale = 0;
    return;
  }
  double sum, squares, rest;
  /* around the first number, so that a mean that is large costs no digits */
  add_around(x, n, x[0], &sum, &squares);
  double mean = x[0] + sum / (double)n;
  add_around(x, n, mean, &rest, &squares);
  if (!(squares < INFINITY) || squares < 1e-280 * (double)n) {
    /* squares that overflow or vanish: relative to the largest */
    double most = 0, total = 0;
    for (size_t i = 0; i < n; i++) total += x[i] / (double)n;
    mean = total;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i] - mean));
    squares = 0;
    for (size_t i = 0; i < n && most > 0; i++)
      squares += (x[i] - mean) / most * ((x[i] - mean) / most);
    *centre = mean;
    *scale = most * sqrt(squares / ((double)n - 1));
    return;
  }
  *centre = mean + rest / (double)n;
  *scale = sqrt((squares - rest * rest / (double)n) / ((double)n - 1));
}

/* Three rows for each column of a matrix: mean, standard deviation, and whether it has
 * only few values, as above. Its numbers are finite. */
SEXP ffi_standard_constants(SEXP x, SEXP threads)
{
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x)) Rf_error("`x` must be a numeric matrix.");
  const size_t n = (size_t)Rf_nrows(x), p = (size_t)Rf_ncols(x);
  SEXP constants = PROTECT(Rf_allocMatrix(REALSXP, 3, (int)p));
  const double *values = REAL(x);
  double *out = REAL(constants);
  const int usable = le_threads_usable(Rf_asInteger(threads));
#ifdef _OPENMP
#pragma omp parallel for num_threads(usable) schedule(dynamic) if (usable > 1 && n * p > 100000)
#endif
  for (size_t j = 0; j < p; j++)
    standard_constants(values + j * n, n, out + 3 * j, out + 3 * j + 1, out + 3 * j + 2);
  (void)usable;
  UNPROTECT(1);
  return constants;
}

/* Changes some rows of a matrix in place to (x - centre) / scale. The matrix must be new, so that
 * nothing else refers to it. */
SEXP ffi_standardise(SEXP rows, SEXP at, SEXP centre, SEXP scale, SEXP threads)
{
  const size_t width = (size_t)Rf_nrows(rows), n = (size_t)Rf_ncols(rows),
               count = (size_t)XLENGTH(at);
  if (TYPEOF(rows) != REALSXP || TYPEOF(at) != INTSXP || TYPEOF(centre) != REALSXP ||
      TYPEOF(scale) != REALSXP || (size_t)XLENGTH(centre) != count ||
      (size_t)XLENGTH(scale) != count)
    Rf_error("`at`, `centre` and `scale` must be those of some rows of a matrix.");
  const int *row = INTEGER(at);
  for (size_t j = 0; j < count; j++)
    if (row[j] < 1 || (size_t)row[j] > width) Rf_error("`at` must be the numbers of rows.");
  const double *c = REAL(centre), *s = REAL(scale);
  double *x = REAL(rows);
  const int usable = le_threads_usable(Rf_asInteger(threads));
#ifdef _OPENMP
#pragma omp parallel for num_threads(usable) schedule(static) if (usable > 1 && n * count > 100000)
#endif
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < count; j++) {
      double *one = x + i * width + row[j] - 1;
      *one = (*one - c[j]) / s[j];
    }
  (void)usable;
  return rows;
}
