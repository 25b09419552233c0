/* Binary attributes: z_ik ~ Bernoulli(p_k), a_kj ~ N(0, prior_sd^2), y_ij ~ N(z_i' a_j,
 * noise_sd^2). The features A are integrated out of every density: given Z, the columns of A share
 * one posterior covariance, and one row changes it by a matrix of rank one.
 *
 * State: variance of the features, variance of the noise, probabilities (K), Z (N x K). Settings:
 * attributes, probabilities, and those of latent_shared.h; with `infer` the probabilities have
 * Beta(1, 1) priors. */
#include "models/binary_attributes/parts.h"

#include <stdlib.h>

static le_status create(const le_args *args, void **self, char *message)
{
  size_t k;
  *self = NULL;
  if (!le_read_count(args, "attributes", 1, MOST_ENUMERATED, &k, message)) return LE_BAD_ARGUMENT;
  binary *model = calloc(1, sizeof *model + k * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->k = k;
  if (!le_gaussian_prior_read(args, &model->gaussian, message) ||
      !le_read_numbers(args, "probabilities", 0.5, 0, k, model->probability, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  *self = model;
  return LE_OK;
}

static size_t width(const void *self) { return ((const binary *)self)->gaussian.width; }

const le_model_ops le_binary_attributes_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "binary_attributes",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = width,
  .latent = &le_binary_attributes_states,
  .variational = &le_binary_attributes_variational,
  .maximum = &le_binary_attributes_maximum,
};
