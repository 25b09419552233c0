/* A matrix of low rank plus noise: y_ij ~ N(u_i' v_j, noise_sd^2), u_ik ~ N(0, row_sd^2), v_kj ~
 * N(0, column_sd^2). Nothing is integrated out: sweeps draw all of U given V, then all of V given
 * U. The latent of a row is u_i. Unknown variances of U and of the noise are drawn with U
 * integrated out, just before U is drawn.
 *
 * State: variances of U, V and the noise, V (K x D), U (N x K). Settings: rank, row_sd, and those
 * of latent_shared.h, whose prior_sd is column_sd. */
#include "models/low_rank/parts.h"

#include <stdlib.h>

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  low_rank *model = calloc(1, sizeof *model);
  if (!model) return LE_NO_MEMORY;
  if (!le_read_count(args, "rank", 1, 10000, &model->k, message) ||
      !le_gaussian_prior_read(args, FACTORS, &model->gaussian, message) ||
      !le_read_numbers(args, "row_sd", 1, 0, 1, &model->gaussian.sd[ROWS], message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  *self = model;
  return LE_OK;
}

const le_model_ops le_low_rank_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "low_rank",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = le_gaussian_width,
  .latent = &le_low_rank_states,
  .variational = &le_low_rank_variational,
  .maximum = &le_low_rank_maximum,
};
