/* Copies columns of numbers into rows, without matrices between them. Values are converted to
 * doubles in pieces that stay in cache, one column after another. */
#include "bridge/columns.h"

#include <math.h>

enum { PIECE = 256 };

#define CONVERT(kind, type, format)                                                                \
  case kind:                                                                                       \
    for (size_t i = 0; i < n; i++) out[i] = (double)((const type *)from->values)[start + i];       \
    break;

static int bit_of(const uint8_t *bits, size_t i) { return bits[i / 8] >> (i % 8) & 1; }

/* Values at, at + 1, ..., at + n - 1 of a column as doubles. */
static void convert(const column *from, size_t at, size_t n, double *out)
{
  const size_t start = from->offset + at;
  switch (from->kind) {
    COLUMN_NUMBERS(CONVERT)
  case COLUMN_BIT:
    for (size_t i = 0; i < n; i++) out[i] = bit_of(from->values, start + i);
    break;
  case COLUMN_R_INTEGER:
    for (size_t i = 0; i < n; i++) {
      const int value = ((const int *)from->values)[start + i];
      out[i] = value == NA_INTEGER ? NA_REAL : value;
    }
    break;
  }
  for (size_t i = 0; from->valid && i < n; i++)
    if (!bit_of(from->valid, start + i)) out[i] = NA_REAL;
}

/* The first bad number in the order of the rows. */
static SEXP first_bad(const double *rows, size_t n, size_t width, size_t first)
{
  for (size_t i = 0; i < n; i++)
    for (size_t j = first; j < width; j++)
      if (!isfinite(rows[i * width + j])) {
        const double bad[] = {(double)i + 1, (double)(j - first) + 1, rows[i * width + j]};
        return number_vector(3, bad);
      }
  return R_NilValue;
}

SEXP rows_from_columns(size_t n, size_t p, const column *columns, int intercept)
{
  const size_t first = intercept ? 1 : 0, width = first + p;
  SEXP rows = PROTECT(Rf_allocMatrix(REALSXP, (int)width, (int)n));
  double *out = REAL(rows), piece[PIECE];
  int finite = 1;
  for (size_t at = 0; at < n; at += PIECE) {
    const size_t m = n - at < PIECE ? n - at : PIECE;
    for (size_t i = 0; intercept && i < m; i++) out[(at + i) * width] = 1;
    for (size_t j = 0; j < p; j++) {
      convert(&columns[j], at, m, piece);
      for (size_t i = 0; i < m; i++) {
        finite &= isfinite(piece[i]) != 0;
        out[(at + i) * width + first + j] = piece[i];
      }
    }
  }
  SEXP result = finite ? rows : first_bad(out, n, width, first);
  UNPROTECT(1);
  return result;
}

/* A list of numeric or logical vectors of the same length as rows; see rows_from_columns(). */
SEXP ffi_vector_rows(SEXP vectors, SEXP intercept)
{
  const size_t p = (size_t)XLENGTH(vectors);
  if (TYPEOF(vectors) != VECSXP || p == 0) Rf_error("Columns must be a list of vectors.");
  const R_xlen_t n = XLENGTH(VECTOR_ELT(vectors, 0));
  column *columns = (column *)R_alloc(p, sizeof *columns);
  for (size_t j = 0; j < p; j++) {
    SEXP vector = VECTOR_ELT(vectors, (R_xlen_t)j);
    if (XLENGTH(vector) != n) Rf_error("Columns must have the same length.");
    column *to = &columns[j];
    *to = (column){COLUMN_DOUBLE, NULL, NULL, 0};
    switch (TYPEOF(vector)) {
    case REALSXP: to->values = REAL(vector); break;
    case LGLSXP:
    case INTSXP: to->kind = COLUMN_R_INTEGER, to->values = INTEGER(vector); break;
    default: Rf_error("Columns must be numeric.");
    }
  }
  return rows_from_columns((size_t)n, p, columns, Rf_asLogical(intercept) == 1);
}
