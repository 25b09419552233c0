/* Sweeps of the labels, and densities with the centres integrated out. */
#include "models/clustering/parts.h"

#include <gsl/gsl_randist.h>
#include <stdint.h>
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

static size_t scratch_size(const void *self, size_t n)
{
  const clustering *model = self;
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

static sums gather(const clustering *model, size_t seen, size_t n, const le_rows *rows,
                   double lambda, double *state, double *scratch)
{
  const size_t k = model->k, d = model->gaussian.width;
  sums s = {k, d, lambda, state[NOISE], scratch, NULL, scratch + k, scratch + 2 * k, NULL, NULL};
  s.sum = scratch + 3 * k;
  s.volume = s.sum + k * d;
  s.pull = s.volume + n + 2;
  memset(scratch, 0, (3 * k + k * d) * sizeof(double));
  const double ratio = lambda * state[CENTRES] / s.noise;
  for (size_t c = 0; c <= n + 1; c++) {
    s.volume[c] = 0.5 * (double)d * log1p((double)c * ratio);
    s.pull[c] = 0.5 * lambda * ratio / s.noise / (1 + (double)c * ratio);
  }
  const double *label = labels_of(model, state);
  for (size_t i = 0; i < seen; i++) {
    const size_t cluster = (size_t)label[i];
    s.count[cluster]++;
    for (size_t j = 0; j < d; j++) s.sum[cluster * d + j] += rows->values[i * d + j];
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

static void weigh(const clustering *model, const sums *s, const double *y, const double *state)
{
  for (size_t c = 0; c < model->k; c++)
    s->log_weight[c] = log(state[PROPORTIONS + c]) + fit(s, c, y);
}

static void start(const void *self, const gsl_rng *rng, double *state)
{
  const clustering *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  state[CENTRES] = le_start_variance(g, g->prior_sd, rng);
  state[NOISE] = le_start_variance(g, g->noise_sd, rng);
  double sum = 0;
  for (size_t c = 0; c < model->k; c++)
    sum += state[PROPORTIONS + c] = g->infer ? gsl_ran_gamma(rng, 1, 1) : model->probability[c];
  for (size_t c = 0; c < model->k; c++) state[PROPORTIONS + c] /= sum;
}

static void extend_blind(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                         double *state, double *scratch)
{
  const clustering *model = self;
  (void)rows;
  (void)scratch;
  double point = gsl_rng_uniform(rng);
  size_t c = 0;
  while (c + 1 < model->k && (point -= state[PROPORTIONS + c]) >= 0) c++;
  labels_of(model, state)[seen] = (double)c;
}

static double last_given_rest(const void *self, size_t seen, const le_rows *rows, double *state,
                              double *scratch)
{
  const clustering *model = self;
  const double *y = rows->values + (seen - 1) * rows->width;
  const sums s = gather(model, seen - 1, seen, rows, 1, state, scratch);
  size_t any;
  double log_density;
  weigh(model, &s, y, state);
  return common(&s, y) + le_draw_category(NULL, model->k, s.log_weight, 0, &any, &log_density);
}

static double extend(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                     double *state, double *scratch)
{
  const clustering *model = self;
  const double *y = rows->values + seen * rows->width;
  const sums s = gather(model, seen, seen + 1, rows, 1, state, scratch);
  size_t cluster;
  double log_density;
  weigh(model, &s, y, state);
  const double value = common(&s, y) + le_draw_category(rng, model->k, s.log_weight, SIZE_MAX,
                                                        &cluster, &log_density);
  labels_of(model, state)[seen] = (double)cluster;
  return value;
}

static double last_given_latent(const void *self, size_t seen, const le_rows *rows, double *state,
                                double *scratch)
{
  const clustering *model = self;
  const double *y = rows->values + (seen - 1) * rows->width;
  const sums s = gather(model, seen - 1, seen, rows, 1, state, scratch);
  return common(&s, y) + fit(&s, (size_t)labels_of(model, state)[seen - 1], y);
}

static double log_prior(const void *self, size_t seen, const double *state)
{
  const clustering *model = self;
  const double *label = state + PROPORTIONS + model->k;
  double sum = 0;
  for (size_t i = 0; i < seen; i++) sum += log(state[PROPORTIONS + (size_t)label[i]]);
  if (!model->gaussian.infer) return sum;
  return sum + lgamma((double)model->k) + le_log_variance_prior(&model->gaussian, state[CENTRES]) +
         le_log_variance_prior(&model->gaussian, state[NOISE]);
}

static double log_lik(const void *self, size_t seen, const le_rows *rows, double lambda,
                      const double *state, double *scratch)
{
  const clustering *model = self;
  const sums s = gather(model, seen, seen, rows, lambda, (double *)(size_t)state, scratch);
  double sum = 0;
  for (size_t i = 0; i < seen; i++) sum += common(&s, rows->values + i * rows->width);
  for (size_t c = 0; c < model->k; c++) {
    const size_t n = (size_t)s.count[c];
    sum += s.pull[n] * s.square[c] - s.volume[n];
  }
  return sum;
}

/* Draws the proportions, on which the likelihood does not depend given the labels, and the
 * variances. */
static void sweep_settings(const clustering *model, const le_view *view, const gsl_rng *rng)
{
  double *share = view->state + PROPORTIONS, sum = 0;
  for (size_t c = 0; c < model->k; c++) share[c] = 1;
  for (size_t i = 0; i < view->seen; i++) share[(size_t)labels_of(model, view->state)[i]]++;
  for (size_t c = 0; c < model->k; c++) sum += share[c] = gsl_ran_gamma(rng, share[c], 1);
  for (size_t c = 0; c < model->k; c++) share[c] /= sum;
  le_slice_variance(view, rng, CENTRES);
  le_slice_variance(view, rng, NOISE);
}

static double sweep(const void *self, size_t seen, const le_rows *rows, double lambda,
                    int backwards, const double *to, const gsl_rng *rng, double *state,
                    double *scratch)
{
  const clustering *model = self;
  const int infer = model->gaussian.infer;
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, lambda, 0, 0, state, scratch};
  if (infer && backwards) sweep_settings(model, &view, rng);
  sums s = gather(model, seen, seen, rows, lambda, state, scratch);
  double *label = labels_of(model, state), log_density = 0;
  for (size_t step = 0; step < seen; step++) {
    const size_t i = backwards ? seen - 1 - step : step;
    const double *y = rows->values + i * rows->width;
    add_row(&s, (size_t)label[i], y, -1);
    weigh(model, &s, y, state);
    size_t cluster;
    double part;
    le_draw_category(rng, model->k, s.log_weight,
                     to ? (size_t)to[PROPORTIONS + model->k + i] : SIZE_MAX, &cluster, &part);
    if (to) log_density += part;
    label[i] = (double)cluster;
    add_row(&s, cluster, y, 1);
  }
  if (infer && !backwards) sweep_settings(model, &view, rng);
  return log_density;
}

static void sweep_above(const void *self, size_t seen, const le_rows *rows, double floor,
                        double tie, const gsl_rng *rng, double *state, double *scratch)
{
  const clustering *model = self;
  double value = log_lik(self, seen, rows, 1, state, scratch), *label = labels_of(model, state);
  sums s = gather(model, seen, seen, rows, 1, state, scratch);
  for (size_t i = 0; i < seen; i++) {
    const double *y = rows->values + i * rows->width;
    size_t cluster = (size_t)label[i];
    double any, possible = -INFINITY;
    add_row(&s, cluster, y, -1);
    value -= fit(&s, cluster, y);
    for (size_t c = 0; c < model->k; c++) {
      s.log_weight[c] = log(state[PROPORTIONS + c]) +
                        le_log_above(value + fit(&s, c, y), floor, tie);
      possible = fmax(possible, s.log_weight[c]);
    }
    if (possible > -INFINITY)
      le_draw_category(rng, model->k, s.log_weight, SIZE_MAX, &cluster, &any);
    value += fit(&s, cluster, y);
    label[i] = (double)cluster;
    add_row(&s, cluster, y, 1);
  }
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, 1, 1, floor, state, scratch};
  if (model->gaussian.infer) sweep_settings(model, &view, rng);
}

static void simulate(const void *self, size_t n, const double *state, const gsl_rng *rng,
                     double *rows, double *scratch)
{
  const clustering *model = self;
  const size_t d = model->gaussian.width;
  const double *label = state + PROPORTIONS + model->k;
  for (size_t c = 0; c < model->k * d; c++)
    scratch[c] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[CENTRES]));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++)
      rows[i * d + j] = scratch[(size_t)label[i] * d + j] +
                        gsl_ran_gaussian_ziggurat(rng, sqrt(state[NOISE]));
}

/* A proportion may underflow to zero if its component has no rows. */
static int possible(const void *self, size_t seen, const double *state)
{
  const clustering *model = self;
  for (size_t c = 0; c < model->k; c++)
    if (!(state[PROPORTIONS + c] >= 0 && isfinite(state[PROPORTIONS + c]))) return 0;
  return le_all_positive(state, PROPORTIONS) &&
         le_all_codes(state + PROPORTIONS + model->k, seen, model->k);
}

const le_latent_ops le_clustering_states = {
  .size = size,
  .scratch = scratch_size,
  .start = start,
  .extend_blind = extend_blind,
  .extend = extend,
  .last_given_latent = last_given_latent,
  .last_given_rest = last_given_rest,
  .log_prior = log_prior,
  .log_lik = log_lik,
  .sweep = sweep,
  .sweep_above = sweep_above,
  .simulate = simulate,
  .log_symmetry = le_grouped_symmetry,
  .possible = possible,
};
