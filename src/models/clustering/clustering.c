/* Clusters with Gaussian centres: z_i ~ Categorical(p), theta_kj ~ N(0, prior_sd^2), y_ij ~
 * N(theta_{z_i j}, noise_sd^2). The centres are integrated out of every density. The likelihood to
 * the power lambda is, up to a constant, one with noise variance noise_sd^2 / lambda.
 *
 * State: variance of the centres, variance of the noise, proportions (K), labels (N). Settings:
 * components, proportions, and those of latent_shared.h; with `infer` the proportions have a
 * Dirichlet(1) prior. */
#include "models/clustering/parts.h"

#include <stdlib.h>

static le_status create(const le_args *args, void **self, char *message)
{
  static const le_group_settings names = {"components", "proportions", 10000, 1};
  return le_grouped_create(&names, args, self, message);
}

const le_model_ops le_clustering_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "clustering",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = le_gaussian_width,
  .latent = &le_clustering_states,
  .variational = &le_clustering_variational,
  .maximum = &le_clustering_maximum,
};
