/* Models with groups: settings and states. */
#include "models/grouped.h"

#include <gsl/gsl_randist.h>
#include <stdlib.h>
#include <string.h>

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

/* Divides k numbers by their sum. */
static void normalise(size_t k, double *share)
{
  double sum = 0;
  for (size_t c = 0; c < k; c++) sum += share[c];
  for (size_t c = 0; c < k; c++) share[c] /= sum;
}

void le_grouped_start(const void *self, const gsl_rng *rng, double *state)
{
  const le_grouped *model = self;
  double *probability = state + PROBABILITIES;
  le_start_variances(&model->gaussian, rng, state);
  for (size_t a = 0; a < model->k; a++)
    probability[a] = !model->gaussian.infer ? model->probability[a]
                     : model->exclusive     ? gsl_ran_gamma(rng, 1, 1)
                                            : gsl_rng_uniform_pos(rng);
  if (model->exclusive) normalise(model->k, probability);
}

double le_grouped_log_prior(const void *self, const le_chain *chain)
{
  const le_grouped *model = self;
  const double *latent = latents_of(model, chain->state);
  double sum = 0;
  for (size_t i = 0; i < chain->rows.n; i++)
    for (size_t a = 0; a < (model->exclusive ? 1 : model->k); a++)
      sum += model->exclusive ? log(chain->state[PROBABILITIES + (size_t)latent[i]])
                              : log_bit(chain->state, a, latent[i * model->k + a]);
  if (model->exclusive && model->gaussian.infer) sum += lgamma((double)model->k);
  le_add_variance_priors(&model->gaussian, chain->state, &sum);
  return sum;
}

void le_grouped_sweep_settings(const le_grouped *model,
                               double (*log_lik)(const void *self, const le_chain *chain),
                               const le_chain *chain)
{
  const size_t k = model->k, n = chain->rows.n;
  const double *latent = latents_of(model, chain->state);
  double *probability = chain->state + PROBABILITIES;
  for (size_t a = 0; a < k; a++) {
    double on = 0;
    for (size_t i = 0; i < n; i++)
      on += model->exclusive ? latent[i] == (double)a : latent[i * k + a];
    probability[a] = model->exclusive ? gsl_ran_gamma(chain->rng, 1 + on, 1)
                                      : gsl_ran_beta(chain->rng, 1 + on, 1 + (double)n - on);
  }
  if (model->exclusive) normalise(k, probability);
  le_slice_variance(model, log_lik, chain, SPREAD);
  le_slice_variance(model, log_lik, chain, NOISE);
}

void le_grouped_simulate(const void *self, const le_chain *chain, double *rows)
{
  const le_grouped *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *latent = latents_of(model, chain->state);
  double *parameter = chain->scratch;
  for (size_t c = 0; c < k * d; c++)
    parameter[c] = gsl_ran_gaussian_ziggurat(chain->rng, sqrt(chain->state[SPREAD]));
  for (size_t i = 0; i < chain->rows.n; i++)
    for (size_t j = 0; j < d; j++) {
      double value = gsl_ran_gaussian_ziggurat(chain->rng, sqrt(chain->state[NOISE]));
      if (model->exclusive) value += parameter[(size_t)latent[i] * d + j];
      for (size_t a = 0; a < k && !model->exclusive; a++)
        value += latent[i * k + a] * parameter[a * d + j];
      rows[i * d + j] = value;
    }
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

size_t le_grouped_parts(const void *self) { return ((const le_grouped *)self)->k; }

/* Known probabilities tell groups apart. */
double le_grouped_part_kind(const void *self, size_t part)
{
  const le_grouped *model = self;
  return model->gaussian.infer ? 0 : model->probability[part];
}

void le_grouped_renumber(const void *self, size_t n, const size_t *image, const double *state,
                         double *out)
{
  const le_grouped *model = self;
  const size_t k = model->k;
  const double *latent = state + PROBABILITIES + k;
  double *to = out + PROBABILITIES + k;
  memcpy(out, state, PROBABILITIES * sizeof(double));
  for (size_t c = 0; c < k; c++) {
    const size_t from = image[c] / 2;
    out[PROBABILITIES + c] = state[PROBABILITIES + from];
    for (size_t i = 0; i < n; i++) {
      if (!model->exclusive) to[i * k + c] = latent[i * k + from];
      else if (latent[i] == (double)from) to[i] = (double)c;
    }
  }
}

/* Minus the number of rows that belong to one of the two groups only. */
void le_grouped_likeness(const void *self, size_t n, const double *one, const double *other,
                         double *likeness)
{
  const le_grouped *model = self;
  const size_t k = model->k;
  const double *a = one + PROBABILITIES + k, *b = other + PROBABILITIES + k;
  memset(likeness, 0, k * k * sizeof(double));
  for (size_t i = 0; i < n; i++) {
    if (!model->exclusive) {
      for (size_t c = 0; c < k; c++)
        for (size_t j = 0; j < k; j++) likeness[c * k + j] -= a[i * k + c] != b[i * k + j];
      continue;
    }
    const size_t own = (size_t)a[i], there = (size_t)b[i];
    for (size_t c = 0; c < k; c++) {
      likeness[own * k + c]--;
      likeness[c * k + there]--;
    }
    likeness[own * k + there] += 2;
  }
}

size_t le_grouped_m_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  (void)n;
  return M_PROBABILITIES + model->k * (1 + model->gaussian.width);
}
