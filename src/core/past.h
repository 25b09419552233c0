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
 * that is, n / k times the log-likelihood of the sample plus a quadratic polynomial. It is accurate
 * near the anchor. Far away, as for a search among other modes, `plain` leaves the polynomial out
 * except its constant.
 *
 * New rows are added to the sums exactly, at the anchor of their time. When the anchor moves to b,
 * the sums are carried there with the sample's estimate of the terms beyond second order. The
 * sample is divided into LE_PAST_GROUPS groups of rows, and each carries sums of its own with its
 * own rows; V, G and H are their means, and their spread gives the error of the result. */
#pragma once

#include "core/rows.h"

enum { LE_PAST_GROUPS = 10 };

typedef struct le_past {
  size_t d, most;   /* set once: largest possible `keep` */
  size_t keep;      /* largest number of rows in the sample; 0: all rows stay in memory */
  int order;        /* set once: 2 with second derivatives, 1 with gradients, 0: rows cannot go */
  int plain;
  size_t revision;      /* counts changes of the function */
  size_t anchored_rows; /* rows seen when the anchor was set */
  double *anchor;       /* a */
  /* arrays of `size` numbers: the value, the gradient, and d x d second derivatives or none */
  size_t size;        /* set once */
  double *sums;       /* V, G and H of each group */
  double *sample;     /* sums over the sample at the anchor */
  double *polynomial; /* its coefficients */
  double *change;     /* scratch: of the sums of each group */
  double *work;       /* scratch: two such arrays, then 2 d numbers */
  size_t *last;    /* scratch: of each place of the sample: the row that comes there, or NOBODY */
  size_t *places;  /* scratch: places of the sample whose row changes */
  double *rows;    /* scratch: these rows */
  double *uniform; /* scratch */
} le_past;

/* How many rows each of n rows of the sample represents. */
double le_past_weight(const le_store *store, size_t n);
/* Sets the polynomial from the sums. */
void le_past_set_polynomial(le_past *past, const le_store *store);
/* How much a value changes from the anchor to theta, to second order by these sums. `work` receives
 * the distance and, behind it, the change of the gradient. */
double le_past_expected(const le_past *past, const double *sums, const double *theta, double *work);
/* Completes sums over the sample to sums over the rows that it represents, for m points, or with
 * second derivatives at one; each may be NULL. `work` holds 2 d numbers. */
void le_past_complete(const le_past *past, const le_store *store, size_t m, const double *theta,
                      double *value, double *grad, double *hess, double *work);
/* Adds the gradient of the polynomial: what the sample lacks. */
void le_past_add_slope(const le_past *past, size_t m, const double *theta, double *grad,
                       double *work);
void le_past_archive(le_past *past, le_archive *archive);
