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
  size_t k;
  *self = NULL;
  if (!le_read_count(args, "components", 1, 10000, &k, message)) return LE_BAD_ARGUMENT;
  clustering *model = calloc(1, sizeof *model + k * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->k = k;
  if (!le_gaussian_prior_read(args, &model->gaussian, message) ||
      !le_read_numbers(args, "proportions", 1 / (double)k, 0, k, model->proportions, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  *self = model;
  return LE_OK;
}

static size_t width(const void *self) { return ((const clustering *)self)->gaussian.width; }

const le_model_ops le_clustering_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "clustering",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = width,
  .latent = &le_clustering_states,
  .variational = &le_clustering_variational,
  .maximum = &le_clustering_maximum,
};
