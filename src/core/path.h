/* The path of a run, as numbers: every distribution it visited and the tuning of its moves there. A
 * run that follows a recorded path adapts nothing, so its estimates of the evidence and of its
 * inverse, forwards and backwards, are unbiased.
 *
 * A point of the path is a row of
 *
 *   seen, chunk, lambda   the annealed distribution (core/target.h)
 *   moves, step           how often the kernel moves there, and its step size
 *   labelled, labels      1 and the reference labelling, or 0 and unused numbers
 *   metric                one for all particles
 */
#pragma once

#include "core/target.h"

/* The column of the number of moves. */
enum { LE_PATH_MOVES = 3 };

typedef struct le_path {
  size_t d, columns, points;
  const double *values; /* points x columns, owned by the caller */
} le_path;

typedef struct le_path_point {
  size_t seen, chunk, moves;
  double lambda, step;
  const double *labels; /* NULL if there is none */
  const double *metric;
} le_path_point;

size_t le_path_columns(const le_metric *metric);
/* Writes the distribution of the target as a row. */
void le_path_write(const le_target *target, const le_metric *metric, size_t moves, double step,
                   double *row);
le_path_point le_path_at(const le_path *path, size_t point);
/* Checks that a path runs from the prior to the posterior of n rows; if not, writes an error. */
le_status le_path_check(const le_path *path, size_t n, le_error *error);

/* Number of columns before the labels. */
enum { LE_PATH_LABELLED = 6 };
extern const char *const le_path_names[LE_PATH_LABELLED];
