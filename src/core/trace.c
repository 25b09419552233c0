/* A table that grows by rows. */
#include "core/trace.h"

#include "base/arena.h"

#include <string.h>

static le_status reserve(le_trace *trace, size_t capacity)
{
  double *grown = le_resize(trace->values, capacity * trace->columns * sizeof(double));
  if (!grown) return LE_NO_MEMORY;
  trace->values = grown;
  trace->capacity = capacity;
  return LE_OK;
}

le_status le_trace_add(le_trace *trace, const double *row)
{
  if (trace->rows == trace->capacity)
    LE_TRY(reserve(trace, trace->capacity + trace->capacity / 2 + 64));
  trace->rows++;
  if (row) memcpy(le_trace_last(trace), row, trace->columns * sizeof(double));
  return LE_OK;
}

void le_trace_free(le_trace *trace)
{
  le_release(trace->values);
}

void le_trace_archive(le_trace *trace, le_archive *archive)
{
  static const le_field fields[] = {LE_UNSAVED(le_trace, capacity), LE_UNSAVED(le_trace, values)};
  LE_ARCHIVE_FIELDS(archive, trace, fields);
  size_t rows = trace->rows;
  const size_t row = trace->columns * sizeof(double);
  le_archive_count(archive, &rows, row);
  if (!archive->writing && archive->status == LE_OK) {
    archive->status = reserve(trace, rows + 1);
    if (archive->status != LE_OK) return;
    trace->rows = rows;
  }
  le_archive_doubles(archive, trace->values, trace->rows * trace->columns);
}
