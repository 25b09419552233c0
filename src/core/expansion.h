/* Log-likelihoods of many points from a subsample of the rows. With an anchor a whose sums over n
 * rows are known,
 *
 *     l(theta) = l(a) + G . s + s' H s / 2
 *                + (n / k) sum_k rows [ l_k(theta) - l_k(a) - g_k . s - s' h_k s / 2 ],
 *     s = theta - a,
 *
 * where the k rows are a stratified random sample of the n. The estimate is unbiased. The sum is of
 * third order, so the error is very small if there are many rows and points are no farther from the
 * anchor than the posterior is wide. A subsample can overlook a single row that differs from all
 * others, so the caller must also compare some points with the sum over all rows
 * (`le_expansion_missed`). */
#pragma once

#include "core/sums.h"

enum { LE_EXPANSION_PROBES = 4 };

typedef struct le_expansion {
  /* the anchor, and the sums there over all rows: the gradient, and behind it the second
   * derivatives; owned by the caller */
  const double *anchor, *sums;
  double *part; /* the same sums over the subsample */
  double *distance;                   /* m: |s' H s| */
  double *rest;                       /* m: terms beyond second order */
  size_t room;                        /* rows gathered at once, in each of LE_TARGET_PARTS strata */
  double *sum; /* LE_TARGET_PARTS x (m + 1): sums of each stratum; the last is for the anchor */
  double *uniform;                    /* LE_TARGET_PARTS x room */
  double *rows;                       /* of every thread */
  size_t *picked;
} le_expansion;

void le_expansion_alloc(le_expansion *expansion, const le_target *target, le_arena *arena);
/* Whether the target has what an expansion needs. */
int le_expansion_possible(const le_target *target);
/* value[m]: l(theta) - l(a) for rows [from, to), from a subsample of `part` rows (no rows if the
 * likelihood is quadratic). */
le_status le_expansion_values(le_expansion *expansion, le_target *target, size_t from, size_t to,
                              size_t part, size_t m, const double *theta, double *value);
/* Computes the sum over all rows for l(a), and for the LE_EXPANSION_PROBES points farthest from the
 * anchor, whose values are replaced. Returns the largest error of these points and the distance up
 * to which it was tested. Points at distance -Inf are left out. */
le_status le_expansion_missed(le_expansion *expansion, le_target *target, size_t from, size_t to,
                              size_t m, const double *theta, double *value, double *at_anchor,
                              double *missed, double *farthest);
