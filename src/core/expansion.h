/* Log-likelihoods of many points by part of the rows.  Around an anchor whose sums over n rows are known,
 *
 *     l(theta) = l(a) + G . s + s' H s / 2 + (n / k) sum_k rows [ l_k(theta) - l_k(a) - g_k . s - s' h_k s / 2 ],    s = theta - a,
 *
 * the k rows taken at random, evenly over the n: unbiased, and where the sum is of third order and small (many rows, points as near
 * as the posterior is wide) next to exact.  Whoever uses it asks all rows of some points besides (`le_expansion_missed`): a single row that
 * is not like the others can be what k rows do not see. */
#ifndef LE_CORE_EXPANSION_H
#define LE_CORE_EXPANSION_H

#include "core/sums.h"

enum { LE_EXPANSION_PROBES = 4 };

typedef struct le_expansion {
  const double *anchor, *grad, *hess; /* and sums there, over all the rows: the caller's */
  double *part_grad, *part_hess;      /* over part of them */
  double *shift;                      /* m x d */
  double *distance;                   /* m: |s' H s| */
  double *rest;                       /* m: what is added to second order */
  size_t room;                        /* rows gathered at once, of each of LE_TARGET_PARTS lots */
  double *sum;                        /* LE_TARGET_PARTS x (m + 1): of each lot, that at the anchor last */
  double *uniform;                    /* LE_TARGET_PARTS x room */
  double *rows;                       /* of every thread */
  size_t *picked;
} le_expansion;

void le_expansion_alloc(le_expansion *expansion, const le_target *target, le_arena *arena);
/* Is there something to expand by? */
int le_expansion_possible(const le_target *target);
/* value[m]: l(theta) - l(a) over rows [from, to), by `part` of them (none if the likelihood is quadratic). */
le_status le_expansion_values(le_expansion *expansion, le_target *target, size_t from, size_t to,
                              size_t part, size_t m, const double *theta, double *value);
/* Asks all rows of the anchor, for l(a), and of the LE_EXPANSION_PROBES points that are farthest from it, whose values are replaced; by how
 * much these were missed at most, and for how far that tells: the farthest. Points at distance -Inf are left out. */
le_status le_expansion_missed(le_expansion *expansion, le_target *target, size_t from, size_t to,
                              size_t m, const double *theta, double *value, double *at_anchor,
                              double *missed, double *farthest);

#endif
