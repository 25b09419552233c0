/* Gradients of the annealed log density from mini-batches, and log-likelihoods of a chunk from a
 * subsample of its rows. A mini-batch is shared by all particles, or each particle has its own in
 * each estimate, as in the papers: particles that share it all move by the same noise, so that
 * their mean is off by the noise of one, while noise of their own averages out.
 *
 * Plain rule: the published estimate, with the batch scaled up to all rows seen and the chunk in
 * full. Controlled rule: with an anchor a, and the sums G of gradients and H of second derivatives
 * of all rows at a, the estimate
 *
 *     G(a) + H(a) (theta - a) + (n / B) sum_batch [ g(theta) - g(a) - h(a) (theta - a) ]
 *
 * is unbiased, and only terms beyond second order contribute noise (Baker, Fearnhead, Fox & Nemeth
 * 2019 for the first-order version). For a quadratic model these terms vanish and no batch is
 * drawn. */
#pragma once

#include "core/expansion.h"

typedef enum le_gradient_rule {
  LE_GRADIENT_FULL,
  LE_GRADIENT_BATCH,
  LE_GRADIENT_CONTROL
} le_gradient_rule;

/* The largest number of mini-batches held at a time. */
enum { LE_DRAWS_MOST = 8 };

typedef struct le_gradient {
  le_gradient_rule rule;           /* set once */
  size_t batch;                    /* set once */
  int own;                         /* set once: whether each particle has its own mini-batches */
  int second_order;                /* set once: whether the model has second derivatives */
  int anchored;                    /* whether the sums below belong to `anchor` */
  size_t anchored_rows;            /* rows seen when the anchor was set */
  double *anchor;                  /* a */
  /* sums at a over the rows seen, and over the chunk: the gradient, and behind it d x d second
   * derivatives, which are zero if the model has none */
  double *grad, *chunk_grad;
  double *hess, *chunk_hess; /* derived: in the same blocks */
  size_t size; /* set once: how many of them exist: d + d x d or d */
  /* linear and constant terms of the formula, `size` numbers per batch; the last entry is without a
   * batch */
  double *total;                /* scratch */
  double *rows;                 /* scratch; of each batch: batch x width */
  le_rows drawn[LE_DRAWS_MOST]; /* the batches */
  double *own_total;            /* scratch; the same of particles' own batches, for each thread */
  double *own_rows;             /* scratch; for each thread */
  size_t *picked;               /* scratch; batch, for each thread */
  double *uniform;              /* scratch; batch, for each thread */
  /* log-likelihood of the chunk at the anchor; distance up to which a subsample was tested, -1 if
   * not yet */
  double chunk_value, checked;
  size_t part;        /* rows in a subsample that passed the test, 0 if none yet */
  size_t exact_until; /* chunks that begin before this row are weighed by all of their rows */
} le_gradient;

void le_gradient_alloc(le_gradient *gradient, le_gradient_rule rule, size_t batch, int own,
                       const le_target *target, le_arena *arena);
/* 0 if the rule is to use all data, or if there are so few rows that this costs no more. */
int le_gradient_active(const le_gradient *gradient, const le_target *target);
/* Moves the anchor, and sums gradients and second derivatives over the rows seen (one pass). */
le_status le_gradient_set_anchor(le_gradient *gradient, le_target *target, const double *anchor);
/* Sums over a new chunk at the anchor; and adds the chunk to the rows seen. */
le_status le_gradient_open_chunk(le_gradient *gradient, le_target *target);
void le_gradient_close_chunk(le_gradient *gradient);
/* How many rows one estimate visits per particle. */
size_t le_gradient_rows(const le_gradient *gradient, const le_target *target);
/* Draws at most LE_DRAWS_MOST new mini-batches and computes their terms at the anchor; then gives
 * the estimate from one of them for any particles, or from a batch of each particle's own, drawn by
 * its generator, if `rng` is not NULL. Without new mini-batches (n is 0) only their terms at the
 * annealed distribution are computed. */
le_status le_gradient_draw(le_gradient *gradient, le_target *target, size_t n);
le_status le_gradient_estimate(const le_gradient *gradient, size_t draw, le_target *target,
                               size_t m, const double *theta, gsl_rng *const *rng, double *grad);
/* Overwrites value[m] with the log-likelihood of the chunk. Uses a subsample of `part` rows
 * around the anchor (core/expansion.h; 0: never) if that is less work and agrees with the sum
 * over all rows for the farthest particles. This is tested when a chunk is first weighed, and
 * again when particles are twice as far away. If the test fails the subsample grows fourfold, up
 * to all rows. */
le_status le_gradient_log_lik(le_gradient *gradient, le_expansion *expansion, le_target *target,
                              size_t part, size_t m, const double *theta, double *value);
void le_gradient_archive(le_gradient *gradient, const le_target *target, le_archive *archive);
