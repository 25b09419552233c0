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
  static const le_group_settings names = {"attributes", "probabilities", MOST_ENUMERATED, 0};
  return le_grouped_create(&names, args, self, message);
}

const le_model_ops le_binary_attributes_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "binary_attributes",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = le_gaussian_width,
  .latent = &le_binary_attributes_states,
  .variational = &le_binary_attributes_variational,
  .maximum = &le_binary_attributes_maximum,
};
