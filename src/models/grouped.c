/* Models with groups: settings and states. */
#include "models/grouped.h"

#include <stdlib.h>

le_status le_grouped_create(const le_grouped_kind *kind, const le_args *args, void **self,
                            char *message)
{
  size_t k;
  *self = NULL;
  if (!le_read_count(args, kind->count, 1, kind->most, &k, message)) return LE_BAD_ARGUMENT;
  le_grouped *model = calloc(1, sizeof *model + k * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->k = k;
  model->kind = kind;
  model->exclusive = kind->exclusive;
  const double even = kind->exclusive ? 1 / (double)k : 0.5;
  if (!le_gaussian_prior_read(args, PROBABILITIES, &model->gaussian, message) ||
      !le_read_numbers(args, kind->probabilities, even, 0, k, model->probability, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  *self = model;
  return LE_OK;
}

size_t le_grouped_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  return PROBABILITIES + model->k + n * (model->exclusive ? 1 : model->k);
}

double le_grouped_symmetry(const void *self)
{
  const le_grouped *model = self;
  return model->gaussian.infer ? lgamma((double)model->k + 1)
                               : le_log_exchanges(model->k, model->probability);
}

/* A probability may underflow to zero if its group has no rows. */
int le_grouped_possible(const void *self, size_t n, const double *state)
{
  const le_grouped *model = self;
  const double *probability = state + PROBABILITIES, *latent = probability + model->k;
  for (size_t g = 0; g < model->k; g++)
    if (!(probability[g] >= 0 && probability[g] <= 1)) return 0;
  return le_all_positive(state, PROBABILITIES) &&
         (model->exclusive ? le_all_codes(latent, n, model->k)
                           : le_all_codes(latent, n * model->k, 2));
}

size_t le_grouped_m_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  (void)n;
  return M_PROBABILITIES + model->k * (1 + model->gaussian.width);
}
