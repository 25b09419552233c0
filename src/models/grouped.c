/* Models with groups: settings, states, and the layout of q. */
#include "models/grouped.h"

#include <stdlib.h>

le_status le_grouped_create(const le_group_settings *names, const le_args *args, void **self,
                            char *message)
{
  size_t k;
  *self = NULL;
  if (!le_read_count(args, names->count, 1, names->most, &k, message)) return LE_BAD_ARGUMENT;
  le_grouped *model = calloc(1, sizeof *model + k * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->k = k;
  model->exclusive = names->exclusive;
  const double even = names->exclusive ? 1 / (double)k : 0.5;
  if (!le_gaussian_prior_read(args, PROBABILITIES, &model->gaussian, message) ||
      !le_read_numbers(args, names->probabilities, even, 0, k, model->probability, message)) {
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

le_grouped_q le_grouped_divide(const le_grouped *model, size_t n, const double *q)
{
  const size_t k = model->k, d = model->gaussian.width;
  const double count[] = {(double)(k * d), (double)(n * d)};
  le_grouped_q f = {.model = model, .infer = model->gaussian.infer, .n = n, .k = k, .d = d};
  f.share = (double *)(size_t)q;
  f.mean = f.share + n * k;
  f.covariance = f.mean + k * d;
  double *variances = f.covariance + (model->exclusive ? k : k * k);
  f.variances = le_q_variances_at(&model->gaussian, variances, count);
  f.alpha = variances + 4;
  return f;
}

size_t le_grouped_q_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  return model->k * (n + model->gaussian.width + (model->exclusive ? 2 : model->k + 2)) + 4;
}

size_t le_grouped_q_factors(const void *self)
{
  return ((const le_grouped *)self)->gaussian.infer ? Q_FACTORS : Q_SPREAD;
}

double le_grouped_q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng,
                             double *scratch)
{
  const le_grouped *model = self;
  return le_relabelling_gain(n, model->k, q, !model->exclusive,
                             model->gaussian.infer ? NULL : model->probability, rng, scratch);
}

size_t le_grouped_m_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  (void)n;
  return M_PROBABILITIES + model->k * (1 + model->gaussian.width);
}
