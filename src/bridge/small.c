/* Small parts that R calls directly: random numbers, the vector instructions in use, quantiles,
 * the tail of weights. */
#include "bridge/bridge.h"

#include "base/pareto.h"
#include "base/rng.h"
#include "base/simd.h"

#include <R_ext/Utils.h>
#include <math.h>

/* One at a time, or all at once if `together`. */
SEXP ffi_uniforms(SEXP seed, SEXP replicate, SEXP stream, SEXP n, SEXP together)
{
  const size_t which = one_count(stream, "stream"), count = one_count(n, "n");
  const uint32_t repeat = (uint32_t)one_count(replicate, "replicate");
  const gsl_rng *rng = new_streams(which + 1, seed, repeat).rng[which];
  SEXP value = PROTECT(zero_vector(count));
  if (Rf_asLogical(together) == 1)
    le_uniforms(rng, count, REAL(value));
  else
    for (size_t i = 0; i < count; i++) REAL(value)[i] = gsl_rng_uniform(rng);
  UNPROTECT(1);
  return value;
}

/* Which vector instructions this processor has, which were requested, and which are used. */
SEXP ffi_simd(void)
{
  static const char *const names[] = {"best", "wish", "used"};
  SEXP part[3] = {PROTECT(Rf_mkString(le_simd_name(le_simd_best()))),
                  PROTECT(Rf_mkString(le_simd_wish())),
                  PROTECT(Rf_mkString(le_simd_name(le_simd_level())))};
  SEXP list = named_list(3, names, part);
  UNPROTECT(3);
  return list;
}

enum { BINS = 256 };

/* Sorted values have the places (weight of those before) + part x (own weight); the quantile at a
 * place is linear between them. Of n values, `near` gets those in the bin of the place, sorted,
 * with one neighbour on each side. */
static double quantile_at(double place, double part, size_t n, const double *x,
                          const double *weight, const double *mass, const unsigned char *bin,
                          double *near, int *index)
{
  size_t b = 0, k = 1, below = n, above = n;
  double before = 0, last = 0;
  while (b < BINS - 1 && before + mass[b] < place) before += mass[b++];
  for (size_t i = 0; i < n; i++) {
    if (!(weight[i] > 0)) continue;
    if (bin[i] == b) near[k] = x[i], index[k++] = (int)i;
    else if (bin[i] < b && (below == n || x[i] > x[below])) below = i;
    else if (bin[i] > b && (above == n || x[i] < x[above])) above = i;
  }
  rsort_with_index(near + 1, index + 1, (int)k - 1);
  if (above < n) near[k] = x[above], index[k++] = (int)above;
  const size_t first = below < n ? 0 : 1;
  if (below < n) near[0] = x[below], index[0] = (int)below, before -= weight[below];
  for (size_t j = first; j < k; j++) {
    const double own = weight[index[j]], at = before + part * own;
    if (at > place && j > first)
      return near[j - 1] + (near[j] - near[j - 1]) * (place - last) / (at - last);
    if (at > place) return near[j];
    last = at;
    before += own;
  }
  return near[k - 1];
}

/* Quantiles of each row of a matrix, or of a list of its columns; a column for each place. They are
 * NaN in a row in which a number with weight is NaN. */
SEXP ffi_row_quantiles(SEXP values, SEXP weights, SEXP places, SEXP part)
{
  const int listed = TYPEOF(values) == VECSXP;
  const size_t n = (size_t)XLENGTH(weights), wanted = (size_t)XLENGTH(places);
  const size_t rows = (size_t)(listed ? XLENGTH(VECTOR_ELT(values, 0)) : Rf_nrows(values));
  double *x = (double *)R_alloc(2 * n + 2, sizeof *x), mass[BINS];
  const double **column = (const double **)R_alloc(n, sizeof *column), *weight = REAL(weights);
  unsigned char *bin = (unsigned char *)R_alloc(n, 1);
  int *index = (int *)R_alloc(n + 2, sizeof *index);
  for (size_t i = 0; i < n; i++)
    column[i] = listed ? REAL(VECTOR_ELT(values, (R_xlen_t)i)) : REAL(values) + i * rows;
  SEXP found = PROTECT(Rf_allocMatrix(REALSXP, (int)rows, (int)wanted));
  for (size_t r = 0; r < rows; r++) {
    double low = INFINITY, high = -INFINITY;
    int known = 1;
    for (size_t i = 0; i < n; i++) {
      x[i] = column[i][r];
      if (isnan(x[i]) && weight[i] > 0) known = 0;
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    const double scale = high > low && isfinite(high - low) ? (BINS - 1) / (high - low) : 0;
    memset(mass, 0, sizeof mass);
    for (size_t i = 0; i < n; i++) {
      bin[i] = scale > 0 && !isnan(x[i]) ? (unsigned char)((x[i] - low) * scale) : 0;
      mass[bin[i]] += weight[i];
    }
    for (size_t q = 0; q < wanted; q++)
      REAL(found)[r + q * rows] = !known ? NAN
        : quantile_at(REAL(places)[q], Rf_asReal(part), n, x, weight, mass, bin, x + n, index);
  }
  UNPROTECT(1);
  return found;
}

/* Pareto k of the largest weights, and the part of the mean weight that few draws have met. */
SEXP ffi_pareto_k(SEXP log_weight)
{
  const size_t n = (size_t)XLENGTH(log_weight);
  double *work = (double *)R_alloc(2 * n + 1, sizeof(double));
  const le_pareto tail = le_pareto_tail(REAL(log_weight), n, work);
  return number_vector(2, (double[]){tail.k, tail.unseen});
}
