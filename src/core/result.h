/* The results of a run: figures (one number each) and arrays, of which the trace is one. The run
 * owns the numbers of arrays, the caller owns the list of results. */
#pragma once

#include "base/status.h"

/* A figure, or a column-major table of numbers. */
typedef struct le_output {
  const char *name;
  int is_array, is_frame; /* of a frame R has a column for each row: a list of vectors */
  double figure;
  size_t rows, columns;
  const double *values;
  const char *const *labels; /* names of the first rows, or NULL */
  size_t labelled;
} le_output;

typedef struct le_result {
  size_t n, capacity;
  le_output *output;
  le_status status; /* LE_NO_MEMORY: some outputs are missing */
} le_result;

typedef struct le_figure {
  const char *name;
  double value;
} le_figure;

void le_result_figures(le_result *result, const le_figure *figures, size_t n);
void le_result_array(le_result *result, const char *name, size_t rows, size_t columns,
                     const double *values);
/* Adds an array whose first `labelled` rows have names. */
void le_result_table(le_result *result, const char *name, size_t labelled,
                     const char *const *labels, size_t rows, size_t columns, const double *values);
/* The same with names for all rows, as a frame. */
void le_result_frame(le_result *result, const char *name, const char *const *labels, size_t rows,
                     size_t columns, const double *values);
void le_result_free(le_result *result);
