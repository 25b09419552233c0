/* A model with latent variables as one of points, for engines that only move points: all its rows are given at once, and a
 * point is a state (le_latent_ops).  It has a prior to draw from and a likelihood, but no density of the prior, since
 * proportions of a state need not be free numbers. */
#ifndef LE_CORE_STATES_H
#define LE_CORE_STATES_H

#include <logevidence.h>

typedef struct le_states {
  const le_latent_ops *ops;
  const void *self;
  size_t n, width;
  double *scratch; /* for draws from the prior */
} le_states;

extern const le_model_ops le_states_model;

#endif
