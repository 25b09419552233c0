/* Presents a model with latent variables as a model of points, for engines that only move points.
 * All rows are given at once, and a point is a state (le_latent_ops). There is a prior to draw from
 * and a likelihood, but no prior density, because the probabilities in a state need not be free
 * parameters. */
#ifndef LE_CORE_STATES_H
#define LE_CORE_STATES_H

#include <logevidence.h>

typedef struct le_states {
  const le_latent_ops *ops;
  const void *self;
  size_t n, width;
  double *scratch; /* for draws from the prior */
} le_states;

/* Draws a state for all rows of the chain from the prior. */
void le_draw_state(const le_latent_ops *ops, const void *self, const le_chain *chain);

extern const le_model_ops le_states_model;

#endif
