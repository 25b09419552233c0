/* Relabellings of a state of latent variables: the group of renumberings (and changes of sign) of
 * its parts that leave every density unchanged (le_latent_ops). */
#pragma once

#include "base/arena.h"

#include <logevidence.h>

typedef struct le_relabel {
  const le_latent_ops *ops;
  const void *self;
  size_t n, k;
  double log_count; /* log of the number of relabellings */
  size_t *image;    /* the current one, as `renumber` takes it */
  size_t *order, *taken, *other;
  double *likeness, *weight;
} le_relabel;

/* Of a model that has relabellings; for states of n rows. */
void le_relabel_make(le_relabel *r, le_arena *arena, const le_latent_ops *ops, const void *self,
                     size_t n);
/* Log of the number of relabellings; 0 if the model has none but the identity. */
double le_relabel_log_count(const le_latent_ops *ops, const void *self);
/* Makes `image` relabelling number `index` of all; drawn from all with equal probabilities; its
 * inverse. */
void le_relabel_number(le_relabel *r, size_t index);
void le_relabel_uniform(le_relabel *r, const gsl_rng *rng);
void le_relabel_invert(le_relabel *r);
/* Draws a relabelling of `state` that makes it like `to`, by probabilities that are positive for
 * all relabellings, and returns the log of its probability. With rng = NULL it draws nothing:
 * returns the log probability of `image`. */
double le_relabel_towards(le_relabel *r, const double *to, const double *state, const gsl_rng *rng);
/* Writes the relabelled state. */
void le_relabel_apply(const le_relabel *r, const double *state, double *out);
