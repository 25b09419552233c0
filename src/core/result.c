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

void le_result_figures(le_result *result, const le_figure *figures, size_t n)
{
  for (const le_figure *f = figures; f < figures + n; f++)
    add(result, (le_output){.name = f->name, .figure = f->value});
}

void le_result_array(le_result *result, const char *name, size_t rows, size_t columns,
                     const double *values)
{
  le_result_table(result, name, 0, NULL, rows, columns, values);
}

void le_result_table(le_result *result, const char *name, size_t labelled,
                     const char *const *labels, size_t rows, size_t columns, const double *values)
{
  add(result, (le_output){.name = name, .is_array = 1, .rows = rows, .columns = columns,
                          .values = values, .labels = labels, .labelled = labelled});
}

void le_result_frame(le_result *result, const char *name, const char *const *labels, size_t rows,
                     size_t columns, const double *values)
{
  add(result, (le_output){.name = name, .is_array = 1, .is_frame = 1, .rows = rows,
                          .columns = columns, .values = values, .labels = labels,
                          .labelled = rows});
}

void le_result_free(le_result *result)
{
  le_release(result->output);
  result->output = NULL;
  result->n = result->capacity = 0;
}
