/* What the files of nested sampling share: nested.c says what it is. */
#ifndef LE_ESTIMATORS_NESTED_PARTS_H
#define LE_ESTIMATORS_NESTED_PARTS_H

#include "core/clusters.h"
#include "core/gradient.h"
#include "core/machine.h"
#include "core/states.h"
#include "core/trace.h"
#include "core/varopt.h"
#include "core/volumes.h"
#include "estimators/parts.h"

typedef enum nested_phase {
  OPEN_CHUNK,
  CHOOSE,
  MOVE,
  REPLACE,
  CLOSE_CHUNK,
  FRESHEN,
  FINISHED
} nested_phase;

enum { TRACE_COLUMNS = 14 };

/* What is known of a point besides where it is: its likelihood and label, those of the wall it was born inside, where it
 * ranked among the points that survived then, uniform on (0, 1) if all is well, and how many were live when it died. */
enum { LOG_LIK, TIE, BIRTH, BIRTH_TIE, RANK, LIVE, LEVEL_COLUMNS };

typedef struct nested {
  le_machine machine; /* streams 1..most: points */
  const le_model_ops *model;
  const le_kernel_spec *spec;
  size_t d, live, batch, steps, first_steps, kept, simulations;
  int adapts; /* steps follow the renewal of the points */
  double tol, chunk_least, chunk_fraction, chunk_most;
  int whole;
  int keeps;         /* every point, to merge runs and to go on; else a reservoir of them */
  le_states states;  /* of a model with latent variables, whose points they are */
  le_metric_kind metric_kind;
  size_t total;
  le_arena arena;
  size_t most;
  le_target target;
  le_gradient gradient;
  le_metric metric[2]; /* each half's, from the other half */
  le_clusters clusters; /* of the live points */
  void *kernel;
  const le_arg *from_theta, *from_levels;

  size_t step;
  le_floor floor;
  size_t *order;         /* live points by likelihood, the lowest first */
  double *theta, *level; /* live: x d and x LEVEL_COLUMNS */
  double *walker, *start; /* batch x d */
  size_t *source;        /* batch: whom the walkers copy */
  double *value, *weight, *labels, *work, *apart; /* apart: most x d */
  size_t *ancestor;
  le_varopt reservoir;
  le_trace levels, points; /* of the dead; without points in chunks */

  double log_volume, log_evidence, log_sum; /* of this chunk so far: expected volume; running sums */
  double banked, banked_variance, information; /* of finished chunks */
  double renewal, echo;
  double rounds;
  le_trace trace;
  double summary[16];
  double *log_volumes, *log_weights, *scratch, *columns; /* for the result, grown */
} nested;

static inline double *level_of(const nested *s, size_t i)
{
  return s->level + i * LEVEL_COLUMNS;
}

/* ---- points.c ---- */

/* Sinks entry `at` of the order to its place among those before it. */
void le_nested_sink(nested *s, size_t at);
void le_nested_set_level(nested *s, size_t i, double log_lik, double birth, double birth_tie);
/* How many of the survivors, in order from entry `from` on, lie below. */
size_t le_nested_count_below(const nested *s, const double *level, size_t from);
/* The share of the survivors that lie below; a tie counts by chance. */
double le_nested_rank_among(const nested *s, const double *level, size_t from);
le_status le_nested_record(nested *s, const double *theta, const double *level, double live);
/* Brings all live points to the labels nearest to the best one's; the prior does not tell them apart. */
void le_nested_common_labels(nested *s);
double le_nested_best(const nested *s);
/* Sums over the recorded points, of which the last `rest` were live at the end. */
le_status le_nested_sum_volumes(nested *s, size_t rest, le_volumes *volumes);

/* ---- result.c ---- */

le_status le_nested_add_trace(nested *s);
le_status le_nested_result(void *self, le_result *result);

/* ---- round.c ---- */

/* Each half of the live points gives the scale for walkers that copy a point of the other. */
void le_nested_update_metrics(nested *s);
le_status le_nested_choose(void *self, le_progress *progress);
le_status le_nested_move(void *self, le_progress *progress);
le_status le_nested_replace(void *self, le_progress *progress);

/* ---- chunks.c ---- */

le_status le_nested_open_chunk(void *self, le_progress *progress);
/* All that are still live die in order, with ever fewer companions. */
le_status le_nested_close_chunk(void *self, le_progress *progress);
/* Points that were copied part ways before they are asked about the next chunk. */
le_status le_nested_freshen(void *self, le_progress *progress);

/* ---- archive.c ---- */

void le_nested_archive(void *self, le_archive *archive);

#endif
