/* Columns of numbers, wherever they are stored, as rows for C. */
#pragma once

#include "bridge/bridge.h"

/* Numbers of C, with their letters in Arrow's formats. */
#define COLUMN_NUMBERS(X)                                                                          \
  X(COLUMN_DOUBLE, double, 'g')                                                                    \
  X(COLUMN_FLOAT, float, 'f')                                                                      \
  X(COLUMN_INT64, int64_t, 'l')                                                                    \
  X(COLUMN_UINT64, uint64_t, 'L')                                                                  \
  X(COLUMN_INT32, int32_t, 'i')                                                                    \
  X(COLUMN_UINT32, uint32_t, 'I')                                                                  \
  X(COLUMN_INT16, int16_t, 's')                                                                    \
  X(COLUMN_UINT16, uint16_t, 'S')                                                                  \
  X(COLUMN_INT8, int8_t, 'c')                                                                      \
  X(COLUMN_UINT8, uint8_t, 'C')
#define COLUMN_NAME(kind, type, format) kind,

typedef enum column_kind {
  COLUMN_NUMBERS(COLUMN_NAME)
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
