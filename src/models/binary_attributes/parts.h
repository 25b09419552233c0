/* Types and functions shared by the files of binary_attributes. */
#ifndef LE_MODELS_BINARY_ATTRIBUTES_PARTS_H
#define LE_MODELS_BINARY_ATTRIBUTES_PARTS_H

#include "models/latent_shared.h"

enum { FEATURES, NOISE, PROBABILITIES };
enum { MOST_ENUMERATED = 16 };

typedef le_grouped binary;

static inline size_t size(const void *self, size_t n)
{
  return PROBABILITIES + ((const binary *)self)->k * (1 + n);
}
static inline double *bits_of(const binary *model, double *state)
{
  return state + PROBABILITIES + model->k;
}

extern const le_latent_ops le_binary_attributes_states;
extern const le_variational_ops le_binary_attributes_variational, le_binary_attributes_maximum;

#endif
