/* A table that grows by rows during a run: the trace of an estimator, or the points of nested
 * sampling. */
#pragma once

#include "base/archive.h"
#include "base/status.h"

typedef struct le_trace {
  size_t columns; /* set once */
  size_t rows, capacity;
  double *values; /* row by row */
} le_trace;

/* Adds a row of `columns` numbers; if `row` is NULL they are written later. */
le_status le_trace_add(le_trace *trace, const double *row);
static inline double *le_trace_last(const le_trace *trace)
{
  return trace->values + (trace->rows - 1) * trace->columns;
}
void le_trace_free(le_trace *trace);
void le_trace_archive(le_trace *trace, le_archive *archive);
