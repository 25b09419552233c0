/* A recorded path of distributions: writing, reading and checking it. */
#include "core/path.h"

#include <math.h>
#include <string.h>

enum { SEEN, CHUNK, LAMBDA, MOVES, STEP, LABELLED, LABELS };
const char *const le_path_names[LE_PATH_LABELLED] = {"seen",  "chunk", "lambda",
                                                     "moves", "step",  "labelled"};

size_t le_path_columns(const le_metric *metric)
{
  return LABELS + metric->d + le_metric_size(metric);
}

void le_path_write(const le_target *target, const le_metric *metric, size_t moves, double step,
                   double *row)
{
  row[SEEN] = (double)target->seen;
  row[CHUNK] = (double)target->chunk;
  row[LAMBDA] = target->lambda;
  row[MOVES] = (double)moves;
  row[STEP] = step;
  row[LABELLED] = target->labels != NULL;
  if (target->labels)
    memcpy(row + LABELS, target->labels, target->d * sizeof(double));
  else
    memset(row + LABELS, 0, target->d * sizeof(double));
  le_metric_write(metric, row + LABELS + target->d);
}

le_path_point le_path_at(const le_path *path, size_t point)
{
  const double *row = path->values + point * path->columns;
  const le_path_point at = {(size_t)row[SEEN],
                            (size_t)row[CHUNK],
                            (size_t)row[MOVES],
                            row[LAMBDA],
                            row[STEP],
                            row[LABELLED] != 0 ? row + LABELS : NULL,
                            row + LABELS + path->d};
  return at;
}

static int is_whole(double x, double least, double most)
{
  return x >= least && x <= most && x == floor(x);
}

le_status le_path_check(const le_path *path, size_t n, le_error *error)
{
  double seen = 0, lambda = 0;
  for (size_t i = 0; i < path->points; i++) {
    const double *row = path->values + i * path->columns;
    int sound = row[SEEN] == seen && is_whole(row[CHUNK], 1, (double)n - seen) &&
                row[LAMBDA] > lambda && row[LAMBDA] <= 1 && is_whole(row[MOVES], 0, 1e6) &&
                row[STEP] > 0;
    for (size_t k = 0; k < path->columns; k++) sound = sound && isfinite(row[k]);
    /* the chunk is the same until lambda is 1 */
    if (lambda > 0) sound = sound && row[CHUNK] == (row - path->columns)[CHUNK];
    if (!sound)
      return le_fail(error, LE_BAD_ARGUMENT,
                     "The path is invalid at distribution %.0f.", (double)i + 1);
    lambda = row[LAMBDA] < 1 ? row[LAMBDA] : 0;
    if (lambda == 0) seen += row[CHUNK];
  }
  if (seen != (double)n)
    return le_fail(error, LE_BAD_ARGUMENT, "The path ends at %.0f of %.0f observations.",
                   seen, (double)n);
  return LE_OK;
}
