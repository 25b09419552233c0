/* The list of the results of a run. */
#include "core/result.h"

#include "base/arena.h"

static void add(le_result *result, le_output output)
{
  if (result->n == result->capacity) {
    const size_t capacity = 2 * result->capacity + 16;
    le_output *grown = le_resize(result->output, capacity * sizeof *grown);
    if (!grown) {
      result->status = LE_NO_MEMORY;
      return;
    }
    result->output = grown;
    result->capacity = capacity;
  }
  result->output[result->n++] = output;
}

void le_result_figure(le_result *result, const char *name, const double *value)
{
  add(result, (le_output){name, LE_FIGURE, 1, 1, value, NULL, 0});
}

void le_result_figures(le_result *result, size_t n, const char *const *names, const double *values)
{
  for (size_t k = 0; k < n; k++) le_result_figure(result, names[k], &values[k]);
}

void le_result_array(le_result *result, const char *name, size_t rows, size_t columns,
                     const double *values)
{
  add(result, (le_output){name, LE_ARRAY, rows, columns, values, NULL, 0});
}

void le_result_table(le_result *result, const char *name, size_t labelled,
                     const char *const *labels, size_t rows, size_t columns, const double *values)
{
  add(result, (le_output){name, LE_ARRAY, rows, columns, values, labels, labelled});
}

void le_result_column(le_result *result, const char *name, size_t rows, const double *values)
{
  add(result, (le_output){name, LE_TRACE_COLUMN, rows, 1, values, NULL, 0});
}

void le_result_free(le_result *result)
{
  le_release(result->output);
  result->output = NULL;
  result->n = result->capacity = 0;
}
