/* Types and functions shared by the files of nested sampling; nested.c describes the method. */
#pragma once

#include "core/clusters.h"
#include "core/gradient.h"
#include "core/reservoir.h"
#include "core/machine.h"
#include "core/states.h"
#include "core/varopt.h"
#include "core/volumes.h"
#include "estimators/parts.h"

#include <math.h>

typedef enum nested_phase {
  OPEN_CHUNK,
  FILL,
  CHOOSE,
  MOVE,
  REPLACE,
  CLOSE_CHUNK,
  FRESHEN,
  FINISHED
} nested_phase;

/* Points at which rows in memory are compared with what replaces them. */
enum { PAST_POINTS = 100 };

/* The columns of a point besides its parameters: its likelihood and label; those of the constraint
 * under which it was drawn; its rank among the points that survived then, which is uniform on (0,
 * 1) if sampling is correct; and the number of live points when it was removed. */
enum { LOG_LIK, TIE, BIRTH, BIRTH_TIE, RANK, LIVE, LEVEL_COLUMNS };

typedef struct nested {
  le_machine machine; /* streams 1..most: points */
  const le_kernel_spec *spec;
  size_t d, live, batch, steps, kept, simulations;
  size_t first_steps, most; /* set once */
  int adapts; /* set once; adapts the number of steps to the renewal of the points */
  double tol, chunk_least, chunk_fraction, chunk_most;
  int whole;
  int keeps; /* set once; keeps every point, to merge and continue runs; else only a reservoir */
  le_states states; /* set once, for a model with latent variables; the points are its states */
  le_metric_kind metric_kind; /* set once */
  le_target target;
  le_gradient gradient;
  size_t keep, early; /* set once: more rows must go, and may go if a sample does as well; or 0 */
  le_past past;       /* rows that are no longer in memory */
  le_metric metric[2];  /* for each half of the points, made from the other half */
  le_clusters clusters; /* clusters of the live points */
  le_kernel *kernel;
  const le_arg *from_theta, *from_levels;

  size_t step;
  size_t filled; /* live points whose likelihood of the chunk is known */
  le_floor floor;
  size_t *order;         /* live points in increasing order of likelihood */
  double *theta, *level; /* live: x d and x LEVEL_COLUMNS */
  double *walker, *start; /* batch x d */
  size_t *source;        /* batch: the points that the walkers copy */
  double *value, *weight, *labels, *apart; /* apart: most x d */
  double *work, *past_work; /* scratch */
  size_t *ancestor;
  le_varopt reservoir;
  le_trace levels, points; /* of the removed points; `points` is unused with chunks */

  double log_volume, log_sum;                  /* of this chunk so far: expected volume; sum */
  double banked, banked_variance, information; /* sums over finished chunks */
  double past_se; /* what rows that are no longer in memory add to the standard error */
  double renewal, echo;
  double rounds;
  double *sums, *log_volumes, *log_weights; /* for the result: parts of `sums`, which grows */
} nested;

static inline double *level_of(const nested *s, size_t i)
{
  return s->level + i * LEVEL_COLUMNS;
}

/* Standard error of the finished chunks. */
static inline double banked_se(const nested *s)
{
  return sqrt(s->banked_variance + s->past_se * s->past_se);
}

/* The number of points after a chunk: of the next one, or of the result. */
static inline size_t next_points(const nested *s)
{
  return s->machine.store.n == s->target.seen && s->machine.closed ? s->kept : s->live;
}

/* ---- points.c ---- */

/* Sorts n indices of points by likelihood; `spare` has room for n more. */
void le_nested_sort(const nested *s, size_t n, size_t *order, size_t *spare);
/* Inserts the `batch` points `fresh` into the order, whose last `batch` entries are free and whose
 * others are sorted. Sorts `fresh`. */
void le_nested_insert(nested *s, size_t *fresh);
void le_nested_set_level(nested *s, size_t i, double log_lik, double birth, double birth_tie);
/* The number of survivors below `level`, in order from entry `from` on. */
size_t le_nested_count_below(const nested *s, const double *level, size_t from);
le_status le_nested_record(nested *s, const double *theta, const double *level, double live);
double le_nested_best(const nested *s);
/* Computes the volumes and sums over the recorded points, of which the last `rest` were live at the
 * end. */
le_status le_nested_sum_volumes(nested *s, size_t rest, le_volumes *volumes);
le_status le_nested_add_trace(nested *s);
extern const char *const le_nested_columns[];
le_status le_nested_result(void *self, le_result *result);

/* ---- round.c ---- */

le_status le_nested_choose(void *self);
le_status le_nested_move(void *self);
le_status le_nested_replace(void *self);
/* Moves points that were copied, so that copies differ before the next chunk begins. */
le_status le_nested_freshen(void *self);

/* ---- chunks.c ---- */

le_status le_nested_open_chunk(void *self);
/* Draws live points if they are from the prior, and computes their likelihoods: a part of them. */
le_status le_nested_fill(void *self);
/* Removes all points that are still live, in order, with a decreasing number of live points. */
le_status le_nested_close_chunk(void *self);
