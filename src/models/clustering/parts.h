/* Types and functions shared by the files of clustering. */
#ifndef LE_MODELS_CLUSTERING_PARTS_H
#define LE_MODELS_CLUSTERING_PARTS_H

#include "models/latent_shared.h"

enum { CENTRES, NOISE, PROPORTIONS };

typedef le_grouped clustering;

static inline size_t size(const void *self, size_t n)
{
  return PROPORTIONS + ((const clustering *)self)->k + n;
}

static inline double *labels_of(const clustering *model, double *state)
{
  return state + PROPORTIONS + model->k;
}

extern const le_latent_ops le_clustering_states;
extern const le_variational_ops le_clustering_variational, le_clustering_maximum;

#endif
