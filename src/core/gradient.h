/* Gradients of the annealed log density from a mini-batch that all particles share, and a chunk's log-likelihoods from part of its rows.
 *
 * Plain: the published estimate, the batch scaled up to the rows seen before and the chunk in full.
 * Controlled: with an anchor a and the sums of gradient G and second derivatives H of all rows there,
 *
 *     G(a) + H(a) (theta - a) + (n / B) sum_batch [ g(theta) - g(a) - h(a) (theta - a) ]
 *
 * is unbiased, and its noise is what is left of each row beyond second order (Baker, Fearnhead, Fox & Nemeth 2019
 * for first order).  For a quadratic model nothing is left and no batch is drawn. */
#ifndef LE_CORE_GRADIENT_H
#define LE_CORE_GRADIENT_H

#include "core/expansion.h"

typedef enum le_gradient_rule {
  LE_GRADIENT_FULL,
  LE_GRADIENT_BATCH,
  LE_GRADIENT_CONTROL
} le_gradient_rule;

/* So many mini-batches can be at hand at a time. */
enum { LE_DRAWS_MOST = 8 };

typedef struct le_gradient {
  le_gradient_rule rule;
  size_t batch;
  int second_order; /* the model gives second derivatives */
  int anchored;     /* the sums below belong to `anchor` */
  size_t anchored_rows; /* rows seen when the anchor was set */
  double *anchor;   /* a */
  double *grad, *hess;             /* sums at a over the rows seen */
  double *chunk_grad, *chunk_hess; /* sums at a over the chunk */
  double *batch_grad; /* sums at a over one batch */
  double *total_grad, *total_hess; /* what the formula adds for every particle, by each batch, and behind them without one */
  double *rows;     /* of each batch, batch x width */
  le_rows drawn[LE_DRAWS_MOST]; /* the batches */
  size_t *picked;   /* batch */
  double *uniform;  /* batch */
  double chunk_value, checked; /* of the anchor; for how far a weighing by part of the chunk has been checked, -1 not yet */
  size_t part;        /* of the chunk's rows by which it was weighed rightly, 0 not yet */
  size_t exact_until; /* rows seen before which no chunk is weighed by part of its rows */
} le_gradient;

void le_gradient_alloc(le_gradient *gradient, le_gradient_rule rule, size_t batch,
                       const le_target *target, le_arena *arena);
/* 0 when the rule asks for the full data or there are so few rows that the full data cost no more. */
int le_gradient_active(const le_gradient *gradient, const le_target *target);
/* Moves the anchor and sums gradients and second derivatives of the rows seen; a pass over them. */
le_status le_gradient_set_anchor(le_gradient *gradient, le_target *target, const double *anchor);
/* Sums at the anchor over a new chunk; and the chunk joining the rows seen. */
le_status le_gradient_open_chunk(le_gradient *gradient, le_target *target);
void le_gradient_close_chunk(le_gradient *gradient, const le_target *target);
/* How many rows an estimate costs a particle. */
size_t le_gradient_rows(const le_gradient *gradient, const le_target *target);
/* New mini-batches, no more than LE_DRAWS_MOST, and what they need at the anchor; then estimates by each, of whatever particles. */
le_status le_gradient_draw(le_gradient *gradient, le_target *target, size_t n);
le_status le_gradient_estimate(const le_gradient *gradient, size_t draw, le_target *target,
                               size_t m, const double *theta, double *grad);
/* Overwrites value[m] with the log-likelihood of the chunk: by `part` of its rows around the anchor (core/expansion.h; 0 is never) where
 * that is less work and comes out as it should for the farthest particles, which is seen to when a chunk is weighed first and again if
 * particles get twice as far; else by four times as many, and in the end by all rows. */
le_status le_gradient_log_lik(le_gradient *gradient, le_expansion *expansion, le_target *target,
                              size_t part, size_t m, const double *theta, double *value);
void le_gradient_archive(le_gradient *gradient, const le_target *target, le_archive *archive);

#endif
