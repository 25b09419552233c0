/* The path that a walk took, as numbers: every distribution that it visited and all that its moves were tuned to there.
 * Whoever follows it adapts to nothing, so weights are what theory says they are, forwards and backwards.
 *
 * A point of the path is a row of
 *
 *     seen, chunk, lambda   the annealed distribution (core/target.h)
 *     moves, step           how often the kernel moves there, and its step size
 *     labelled, labels      1 and a reference for the labels, or 0 and nothing of note
 *     metric                one for all particles */
#ifndef LE_CORE_PATH_H
#define LE_CORE_PATH_H

#include "core/target.h"

/* The number of moves' place in a row. */
enum { LE_PATH_MOVES = 3 };

typedef struct le_path {
  size_t d, columns, points;
  const double *values; /* points x columns, somebody else's */
} le_path;

typedef struct le_path_point {
  size_t seen, chunk, moves;
  double lambda, step;
  const double *labels; /* NULL without */
  const double *metric;
} le_path_point;

size_t le_path_columns(const le_metric *metric);
/* The target's distribution as a row. */
void le_path_write(const le_target *target, const le_metric *metric, size_t moves, double step,
                   double *row);
le_path_point le_path_at(const le_path *path, size_t point);
/* Does a path lead from the prior to the posterior of n rows?  Else a sentence. */
le_status le_path_check(const le_path *path, size_t n, le_error *error);

/* Of the first numbers of a distribution. */
enum { LE_PATH_LABELLED = 6 };
extern const char *const le_path_names[LE_PATH_LABELLED];

#endif
