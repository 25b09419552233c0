/* Clusters with Gaussian centres: z_i ~ Categorical(p), theta_kj ~ N(0, prior_sd^2), y_ij ~
 * N(theta_{z_i j}, noise_sd^2). The centres are integrated out of every density. The likelihood to
 * the power lambda is, up to a constant, one with noise variance noise_sd^2 / lambda.
 *
 * The state is that of models/grouped.h. Settings: components, proportions, and those of
 * latent_shared.h; with `infer` the proportions have a Dirichlet(1) prior. */
#include "models/grouped.h"

#include <stdlib.h>
#include <string.h>

/* Statistics of the rows given a set of labels: sizes, sums and their squared lengths, and the
 * terms that depend on the size only, at lambda. */
typedef struct sums {
  size_t k, d;
  double lambda, noise; /* variance */
  double *count, *sum, *square, *log_weight;
  /* by size: log of the determinant term, and the factor of the squared length of the sum */
  double *volume, *pull;
} sums;

static le_status create(const le_args *args, void **self, char *message)
{
  return le_grouped_create(&le_clustering_kind, args, self, message);
}

static size_t scratch_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  return model->k * (3 + model->gaussian.width) + 2 * (n + 2);
}

static void add_row(sums *s, size_t cluster, const double *y, double sign)
{
  double *sum = s->sum + cluster * s->d, square = 0;
  s->count[cluster] += sign;
  for (size_t j = 0; j < s->d; j++) {
    sum[j] += sign * y[j];
    square += sum[j] * sum[j];
  }
  s->square[cluster] = square;
}

static sums gather(const le_grouped *model, const le_chain *chain)
{
  const size_t k = model->k, d = model->gaussian.width, n = chain->rows.n;
  double *scratch = chain->scratch;
  sums s = {.k = k, .d = d, .lambda = chain->lambda, .noise = chain->state[NOISE]};
  s.count = scratch;
  s.square = scratch + k;
  s.log_weight = scratch + 2 * k;
  s.sum = scratch + 3 * k;
  s.volume = s.sum + k * d;
  s.pull = s.volume + n + 2;
  memset(scratch, 0, (3 * k + k * d) * sizeof(double));
  const double ratio = s.lambda * chain->state[SPREAD] / s.noise;
  for (size_t c = 0; c <= n + 1; c++) {
    s.volume[c] = 0.5 * (double)d * log1p((double)c * ratio);
    s.pull[c] = 0.5 * s.lambda * ratio / s.noise / (1 + (double)c * ratio);
  }
  const double *label = latents_of(model, chain->state);
  for (size_t i = 0; i < n; i++) {
    const size_t cluster = (size_t)label[i];
    s.count[cluster]++;
    for (size_t j = 0; j < d; j++) s.sum[cluster * d + j] += chain->rows.values[i * d + j];
  }
  for (size_t c = 0; c < k; c++)
    for (size_t j = 0; j < d; j++) s.square[c] += s.sum[c * d + j] * s.sum[c * d + j];
  return s;
}

/* The part of a row's log density that does not depend on its label. */
static double common(const sums *s, const double *y)
{
  double square = 0;
  for (size_t j = 0; j < s->d; j++) square += y[j] * y[j];
  return -s->lambda *
         ((double)s->d * (HALF_LOG_2PI + 0.5 * log(s->noise)) + 0.5 * square / s->noise);
}

/* log density of a row in a cluster given the other rows of this cluster, without `common`. */
static double fit(const sums *s, size_t cluster, const double *y)
{
  const double *sum = s->sum + cluster * s->d;
  const size_t n = (size_t)s->count[cluster];
  double square = 0;
  for (size_t j = 0; j < s->d; j++) square += (sum[j] + y[j]) * (sum[j] + y[j]);
  return s->pull[n + 1] * square - s->pull[n] * s->square[cluster] - s->volume[n + 1] +
         s->volume[n];
}

/* The weights of all clusters for a row; returns the log of their sum. Under a constraint, `others`
 * is the log-likelihood of all rows without the fit of this one. */
static double weigh(const sums *s, const le_chain *chain, const double *y, double others,
                    double *total)
{
  for (size_t c = 0; c < s->k; c++) {
    const double own = fit(s, c, y);
    s->log_weight[c] = log(chain->state[PROBABILITIES + c]) +
                       (chain->walled ? le_log_above(chain, others + own) : own);
  }
  return le_to_weights(s->k, s->log_weight, total);
}

static void extend_blind(const void *self, const le_chain *chain)
{
  const le_grouped *model = self;
  latents_of(model, chain->state)[chain->rows.n - 1] =
    (double)le_draw_index(model->k, chain->state + PROBABILITIES, 1, chain->rng);
}

static double extend(const void *self, const le_chain *chain)
{
  const le_grouped *model = self;
  const le_chain rest = le_without_last(chain);
  const double *y = row_of(&rest.rows, rest.rows.n);
  const sums s = gather(model, &rest);
  double total;
  const double value = common(&s, y) + weigh(&s, chain, y, 0, &total);
  if (chain->rng)
    latents_of(model, chain->state)[rest.rows.n] =
      (double)le_draw_index(s.k, s.log_weight, total, chain->rng);
  return value;
}

static double last_given_latent(const void *self, const le_chain *chain)
{
  const le_grouped *model = self;
  const le_chain rest = le_without_last(chain);
  const double *y = row_of(&rest.rows, rest.rows.n);
  const sums s = gather(model, &rest);
  return common(&s, y) + fit(&s, (size_t)latents_of(model, chain->state)[rest.rows.n], y);
}

static double log_lik(const void *self, const le_chain *chain)
{
  const sums s = gather(self, chain);
  double sum = 0;
  for (size_t i = 0; i < chain->rows.n; i++) sum += common(&s, row_of(&chain->rows, i));
  for (size_t c = 0; c < s.k; c++) {
    const size_t n = (size_t)s.count[c];
    sum += s.pull[n] * s.square[c] - s.volume[n];
  }
  return sum;
}

static double sweep(const void *self, const le_chain *chain, int backwards, const double *to)
{
  const le_grouped *model = self;
  const int infer = model->gaussian.infer;
  const size_t n = chain->rows.n;
  if (infer && backwards) le_grouped_sweep_settings(model, log_lik, chain);
  double *label = latents_of(model, chain->state), log_density = 0, total,
         value = chain->walled ? log_lik(self, chain) : 0;
  sums s = gather(model, chain);
  for (size_t step = 0; step < n; step++) {
    const size_t i = backwards ? n - 1 - step : step;
    const double *y = row_of(&chain->rows, i);
    size_t cluster = (size_t)label[i];
    add_row(&s, cluster, y, -1);
    if (chain->walled) value -= fit(&s, cluster, y);
    weigh(&s, chain, y, value, &total);
    if (to) cluster = (size_t)to[label + i - chain->state];
    /* NaN if rounding makes all clusters impossible */
    else if (total > 0) cluster = le_draw_index(s.k, s.log_weight, total, chain->rng);
    if (to) log_density += log(s.log_weight[cluster] / total);
    if (chain->walled) value += fit(&s, cluster, y);
    label[i] = (double)cluster;
    add_row(&s, cluster, y, 1);
  }
  if (infer && !backwards) le_grouped_sweep_settings(model, log_lik, chain);
  return log_density;
}

static const le_latent_ops states = {
  .size = le_grouped_size,
  .scratch = scratch_size,
  .start = le_grouped_start,
  .extend_blind = extend_blind,
  .extend = extend,
  .last_given_latent = last_given_latent,
  .log_prior = le_grouped_log_prior,
  .log_lik = log_lik,
  .sweep = sweep,
  .simulate = le_grouped_simulate,
  .log_symmetry = le_grouped_symmetry,
  .possible = le_grouped_possible,
  .parts = le_grouped_parts,
  .kind = le_grouped_part_kind,
  .renumber = le_grouped_renumber,
  .likeness = le_grouped_likeness,
};

const le_model_ops le_clustering_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "clustering",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = le_gaussian_width,
  .latent = &states,
  .variational = &le_grouped_variational,
  .maximum = &le_clustering_maximum,
};
