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
  le_release(trace->table);
}

void le_trace_archive(le_trace *trace, le_archive *archive)
{
  size_t rows = trace->rows;
  le_archive_size(archive, &rows);
  if (!archive->writing && archive->status == LE_OK) {
    const size_t room = (archive->size - archive->position) / (trace->columns * sizeof(double));
    archive->status = rows > room ? LE_CORRUPT : reserve(trace, rows + 1);
    if (archive->status != LE_OK) return;
    trace->rows = rows;
  }
  le_archive_doubles(archive, trace->values, trace->rows * trace->columns);
}

le_status le_trace_output(le_trace *trace, const char *const *names, le_result *result)
{
  const size_t rows = trace->rows, columns = trace->columns;
  double *table = le_resize(trace->table, (rows + 1) * columns * sizeof(double));
  if (!table) return LE_NO_MEMORY;
  trace->table = table;
  for (size_t c = 0; c < columns; c++) {
    for (size_t r = 0; r < rows; r++) table[c * rows + r] = trace->values[r * columns + c];
    le_result_column(result, names[c], rows, table + c * rows);
  }
  return LE_OK;
}
