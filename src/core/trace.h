/* A table that grows by rows while an estimator runs: its trace, or the points of nested sampling. */
#ifndef LE_CORE_TRACE_H
#define LE_CORE_TRACE_H

#include "base/archive.h"
#include "core/result.h"

typedef struct le_trace {
  size_t columns, rows, capacity;
  double *values; /* row by row */
  double *table;  /* column by column, made for a result */
} le_trace;

/* A new row of `columns` numbers, or NULL when there is no memory. */
double *le_trace_add(le_trace *trace);
void le_trace_free(le_trace *trace);
void le_trace_archive(le_trace *trace, le_archive *archive);
/* Each column under its name. */
le_status le_trace_output(le_trace *trace, const char *const *names, le_result *result);
#endif
