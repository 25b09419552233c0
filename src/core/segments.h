/* Change points: the evidence of all segments between boundaries, and exact sums over the ways to
 * divide the rows into segments (Fearnhead 2006).
 *
 * Boundaries are row numbers 0 = b_0 < b_1 < ... < b_m = n. Segment (i, j), i < j, has the rows
 * after b_i up to b_j. An array of numbers of all segments is sorted by i, then j. */
#pragma once

#include "core/context.h"
#include "logevidence.h"

static inline size_t le_segment_at(size_t m, size_t i, size_t j)
{
  return i * m - i * (i - 1) / 2 + (j - i - 1);
}

typedef struct le_segments {
  const le_model_ops *ops;
  const void *self;
  le_rows rows;         /* of Laplace's approximation */
  const double *tables; /* of closed forms: from le_partition_ops.prepare(), and the m blocks */
  const double *sums;
  size_t m;
  const double *bound; /* m + 1 */
  double least;        /* shorter segments have log evidence -Inf */
  const int *wanted;   /* NULL, or which segments are computed; others have log evidence -Inf */
  le_context *context;
} le_segments;

/* Whether segments have a closed form: the model's table of partitions describes single blocks
 * whose parameters are those of the model. */
int le_segments_closed(const le_model_ops *ops, const void *self);
/* The log evidence of all segments in closed form, m (m + 1) / 2 numbers. */
le_status le_segments_evidence(const le_segments *segments, double *log_evidence);
/* The same by Laplace's approximation at the posterior mode, for models with second derivatives.
 * NaN where no mode was found. */
le_status le_segments_laplace(const le_segments *segments, double *log_evidence);
/* Draws the parameters of k segments, which are given by the numbers of their boundaries, d numbers
 * for each; by the second from the normal density at the mode. */
le_status le_segments_draw(const le_segments *segments, size_t k, const double *from,
                           const double *to, const gsl_rng *rng, double *theta);
le_status le_segments_laplace_draw(const le_segments *segments, size_t k, const double *from,
                                   const double *to, const gsl_rng *rng, double *theta);

/* Sums over all ways to have c = 0, ..., most changes, each weighted by the product of the
 * evidences of its segments and of the weights of its boundaries. first[c * (m + 1) + j] is the log
 * of the sum for the rows up to boundary j, last[c * (m + 1) + i] that for the rows after boundary
 * i; it may be NULL. */
le_status le_segments_sums(size_t m, size_t most, const double *log_evidence,
                           const double *log_weight, const le_context *context, double *first,
                           double *last);

/* The run lengths of a stream (Adams & MacKay 2007): the possible starts of the segment that the
 * last row belongs to. After each step of rows a new segment begins with probability `hazard`. Of
 * more than `most` starts the least probable is dropped; its share is added to `lost`. */
typedef struct le_runs {
  double hazard, most, step;
  double seen, lost;
  size_t n;
  double *block;        /* most + 1 blocks */
  double *log_evidence; /* most + 1: of the rows since the start */
  double *log_weight;   /* most + 1: of this start and all rows, not normalised */
  double *start;        /* most + 1: rows before it */
} le_runs;
/* Goes on with further rows. `tables` is from le_partition_ops.prepare() of the first ones. */
le_status le_runs_extend(const le_segments *segments, const double *tables, le_runs *runs);
