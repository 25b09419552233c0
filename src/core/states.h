/* Presents a model with latent variables as a model of points, for engines that only move points.
 * All rows are given at once, and a point is a state (le_latent_ops). There is a prior to draw from
 * and a likelihood, but no prior density, because the probabilities in a state need not be free
 * parameters. */
#pragma once

#include "base/archive.h"

#include <logevidence.h>

typedef struct le_states {
  const le_latent_ops *ops;
  const void *self;
  size_t n, width;
  double *scratch; /* for draws from the prior */
} le_states;

/* Draws a state for all rows of the chain from the prior. */
void le_draw_state(const le_latent_ops *ops, const void *self, const le_chain *chain);

/* Of states that were read, one after the other: that they are possible for n rows. Without `ops`,
 * as of models without latent variables, it does nothing. */
void le_states_require(const le_latent_ops *ops, const void *self, size_t n, size_t states,
                       const double *state, le_archive *archive);

extern const le_model_ops le_states_model;
