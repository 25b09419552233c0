/* Columns of numbers, wherever they are stored, as rows for C. */
#ifndef LE_COLUMNS_H
#define LE_COLUMNS_H

#include "bridge/bridge.h"

typedef enum column_kind {
  COLUMN_DOUBLE,
  COLUMN_FLOAT,
  COLUMN_INT64,
  COLUMN_UINT64,
  COLUMN_INT32,
  COLUMN_UINT32,
  COLUMN_INT16,
  COLUMN_UINT16,
  COLUMN_INT8,
  COLUMN_UINT8,
  COLUMN_BIT, /* eight values in each byte, the first in the lowest bit */
  COLUMN_R_INTEGER /* integers and logicals of R, whose missing value is NA_INTEGER */
} column_kind;

typedef struct column {
  column_kind kind;
  const void *values;
  const uint8_t *valid; /* NULL, or a bit for each value: 0 if it is missing */
  size_t offset; /* position of the first value, in values and bits */
} column;

/* A matrix with an observation in each column, with a leading 1 if `intercept`. If a number is
 * missing or infinite, a vector instead: row and column (from 1) of the first one, and its
 * value. */
SEXP rows_from_columns(size_t n, size_t p, const column *columns, int intercept);

#endif
