/* Rows that are no longer in memory, represented by sums and by a sample.
 *
 * Of n rows a uniform random sample of k is kept (at the front of the store), and the sums V, G and
 * H of the log-likelihood, its gradient and its second derivatives over all n rows at an anchor a.
 * The log-likelihood of the n rows is then the function
 *
 *     l(theta) = V + G . s + s' H s / 2
 *                + (n / k) sum_sample [ l_i(theta) - l_i(a) - g_i(a) . s - s' h_i(a) s / 2 ],
 *     s = theta - a,
 *
 * that is, n / k times the log-likelihood of the sample plus a quadratic polynomial. All sums over
 * rows seen (core/sums.h) use this function, so engines need not know whether rows are gone. It is
 * accurate near the anchor. Far away, as for a search among other modes, `plain` leaves the
 * polynomial out except its constant.
 *
 * New rows are added to the sums exactly, at the anchor of their time. When the anchor moves to b,
 * the sums are carried there with the sample's estimate of the terms beyond second order. The sample
 * is divided into LE_PAST_GROUPS groups of rows, and each carries sums of its own with its own rows;
 * V, G and H are their means, and their spread gives the error of the result. */
#ifndef LE_CORE_PAST_H
#define LE_CORE_PAST_H

#include "core/sums.h"

enum { LE_PAST_GROUPS = 10 };

typedef struct le_past {
  size_t d, keep;   /* largest number of rows in the sample; 0: all rows stay in memory */
  int order;        /* 2 with second derivatives, 1 with gradients, else 0 */
  int sums;         /* 0: only the sample is kept, since nobody asks for sums over all rows */
  int plain;
  size_t anchored_rows; /* rows seen when the anchor was set */
  double *anchor;       /* a */
  double *value, *grad, *hess; /* V, G and H of each group */
  double sample_value, *sample_grad, *sample_hess; /* sums over the sample at the anchor */
  double constant, *slope, *curve;                 /* the polynomial */
  double *work;
  size_t *last;    /* of each place of the sample: the row that comes there, or NOBODY */
  size_t *places;  /* places of the sample whose row changes */
  double *rows;    /* these rows */
  double *uniform;
} le_past;

void le_past_alloc(le_past *past, const le_target *target, size_t keep, le_arena *arena);
/* Whether the rows seen are more than may stay in memory. */
int le_past_due(const le_past *past, const le_target *target);
/* The first time that rows must go: sums at this anchor over all rows seen, and a sample of them. */
le_status le_past_begin(le_past *past, le_target *target, le_store *store, const double *anchor,
                        const gsl_rng *rng);
/* Adds the last `chunk` of the rows seen, which are still in memory, to the sums and the sample. */
le_status le_past_add(le_past *past, le_target *target, le_store *store, size_t chunk,
                      const gsl_rng *rng);
/* Carries the sums to another anchor. */
le_status le_past_move(le_past *past, le_target *target, const double *anchor);
/* Replaces the anchor and the sums there by exact ones, computed elsewhere. */
le_status le_past_replace(le_past *past, le_target *target, const double *anchor, double value,
                          const double *grad, const double *hess);
/* Standard error that the sample and the carried sums add to log Z, from weighted posterior draws;
 * `work` holds (LE_PAST_GROUPS + 1) x m numbers. */
le_status le_past_error(const le_past *past, le_target *target, size_t m, const double *theta,
                        const double *log_weight, double *work, double *se);

/* Completes sums over the sample to sums over the rows that it represents, for m points (value or
 * grad may be NULL), or at one point. */
void le_past_complete(const le_past *past, const le_target *target, size_t m, const double *theta,
                      double *value, double *grad);
void le_past_complete_hess(const le_past *past, const le_target *target, const double *theta,
                           double *grad, double *hess);
void le_past_archive(le_past *past, le_archive *archive);

#endif
