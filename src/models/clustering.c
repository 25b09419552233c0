/* Clusters with Gaussian centres: z_i ~ Categorical(p), theta_kj ~ N(0, prior_sd^2), y_ij ~ N(theta_{z_i j}, noise_sd^2).
 * Centres are integrated out of every density; a likelihood to the power lambda is one of noise variance noise_sd^2 / lambda,
 * but for a constant.
 *
 * State: variance of the centres, variance of the noise, proportions (K), labels (N).  Settings: components, proportions,
 * and those of latent_shared.h; with `infer` the proportions are Dirichlet(1). */
#include "models/latent_shared.h"

#include <gsl/gsl_randist.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CENTRES, NOISE, PROPORTIONS };

typedef struct clustering {
  le_gaussian_prior gaussian;
  size_t k;
  double proportions[];
} clustering;

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

static size_t size(const void *self, size_t n) { return PROPORTIONS + ((const clustering *)self)->k + n; }

/* What a set of labels says of the rows: sizes, sums and their squared lengths, and what a size contributes at lambda. */
typedef struct sums {
  size_t k, d;
  double lambda, noise; /* variance */
  double *count, *sum, *square, *log_weight;
  double *volume, *pull; /* by size: log of the determinant's share, and what multiplies the squared length of the sum */
} sums;

static size_t scratch_size(const void *self, size_t n)
{
  const clustering *model = self;
  return model->k * (3 + model->gaussian.width) + 2 * (n + 2);
}

static double *labels_of(const clustering *model, double *state) { return state + PROPORTIONS + model->k; }

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

static sums gather(const clustering *model, size_t seen, size_t n, const le_rows *rows, double lambda, double *state,
                   double *scratch)
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

/* What all labels have in common in the density of a row. */
static double common(const sums *s, const double *y)
{
  double square = 0;
  for (size_t j = 0; j < s->d; j++) square += y[j] * y[j];
  return -s->lambda * ((double)s->d * (HALF_LOG_2PI + 0.5 * log(s->noise)) + 0.5 * square / s->noise);
}

/* log density of a row in a cluster, given its other rows, but for `common`. */
static double fit(const sums *s, size_t cluster, const double *y)
{
  const double *sum = s->sum + cluster * s->d;
  const size_t n = (size_t)s->count[cluster];
  double square = 0;
  for (size_t j = 0; j < s->d; j++) square += (sum[j] + y[j]) * (sum[j] + y[j]);
  return s->pull[n + 1] * square - s->pull[n] * s->square[cluster] - s->volume[n + 1] + s->volume[n];
}

static void weigh(const clustering *model, const sums *s, const double *y, const double *state)
{
  for (size_t c = 0; c < model->k; c++) s->log_weight[c] = log(state[PROPORTIONS + c]) + fit(s, c, y);
}

static void start(const void *self, const gsl_rng *rng, double *state)
{
  const clustering *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  state[CENTRES] = g->infer ? le_draw_variance(g, rng, 0, 0) : g->prior_sd * g->prior_sd;
  state[NOISE] = g->infer ? le_draw_variance(g, rng, 0, 0) : g->noise_sd * g->noise_sd;
  double sum = 0;
  for (size_t c = 0; c < model->k; c++)
    sum += state[PROPORTIONS + c] = g->infer ? gsl_ran_gamma(rng, 1, 1) : model->proportions[c];
  for (size_t c = 0; c < model->k; c++) state[PROPORTIONS + c] /= sum;
}

static void extend_blind(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng, double *state,
                         double *scratch)
{
  const clustering *model = self;
  (void)rows;
  (void)scratch;
  double point = gsl_rng_uniform(rng);
  size_t c = 0;
  while (c + 1 < model->k && (point -= state[PROPORTIONS + c]) >= 0) c++;
  labels_of(model, state)[seen] = (double)c;
}

static double last_given_rest(const void *self, size_t seen, const le_rows *rows, double *state, double *scratch)
{
  const clustering *model = self;
  const double *y = rows->values + (seen - 1) * rows->width;
  const sums s = gather(model, seen - 1, seen, rows, 1, state, scratch);
  size_t any;
  double log_density;
  weigh(model, &s, y, state);
  return common(&s, y) + le_draw_category(NULL, model->k, s.log_weight, 0, &any, &log_density);
}

static double extend(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng, double *state,
                     double *scratch)
{
  const clustering *model = self;
  const double *y = rows->values + seen * rows->width;
  const sums s = gather(model, seen, seen + 1, rows, 1, state, scratch);
  size_t cluster;
  double log_density;
  weigh(model, &s, y, state);
  const double value = common(&s, y) + le_draw_category(rng, model->k, s.log_weight, SIZE_MAX, &cluster, &log_density);
  labels_of(model, state)[seen] = (double)cluster;
  return value;
}

static double last_given_latent(const void *self, size_t seen, const le_rows *rows, double *state, double *scratch)
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

static double log_lik(const void *self, size_t seen, const le_rows *rows, double lambda, const double *state,
                      double *scratch)
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

/* Proportions, of which the likelihood knows nothing, and variances. */
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

static double sweep(const void *self, size_t seen, const le_rows *rows, double lambda, int backwards, const double *to,
                    const gsl_rng *rng, double *state, double *scratch)
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
    le_draw_category(rng, model->k, s.log_weight, to ? (size_t)to[PROPORTIONS + model->k + i] : SIZE_MAX, &cluster, &part);
    if (to) log_density += part;
    label[i] = (double)cluster;
    add_row(&s, cluster, y, 1);
  }
  if (infer && !backwards) sweep_settings(model, &view, rng);
  return log_density;
}

static void sweep_above(const void *self, size_t seen, const le_rows *rows, double floor, double tie, const gsl_rng *rng,
                        double *state, double *scratch)
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
      s.log_weight[c] = log(state[PROPORTIONS + c]) + le_log_above(value + fit(&s, c, y), floor, tie);
      possible = fmax(possible, s.log_weight[c]);
    }
    if (possible > -INFINITY) le_draw_category(rng, model->k, s.log_weight, SIZE_MAX, &cluster, &any);
    value += fit(&s, cluster, y);
    label[i] = (double)cluster;
    add_row(&s, cluster, y, 1);
  }
  const le_view view = {log_lik, self, &model->gaussian, seen, rows, 1, 1, floor, state, scratch};
  if (model->gaussian.infer) sweep_settings(model, &view, rng);
}

static void simulate(const void *self, size_t n, const double *state, const gsl_rng *rng, double *rows, double *scratch)
{
  const clustering *model = self;
  const size_t d = model->gaussian.width;
  const double *label = state + PROPORTIONS + model->k;
  for (size_t c = 0; c < model->k * d; c++) scratch[c] = gsl_ran_gaussian_ziggurat(rng, sqrt(state[CENTRES]));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++)
      rows[i * d + j] = scratch[(size_t)label[i] * d + j] + gsl_ran_gaussian_ziggurat(rng, sqrt(state[NOISE]));
}

static double log_symmetry(const void *self)
{
  const clustering *model = self;
  return model->gaussian.infer ? lgamma((double)model->k + 1) : le_log_exchanges(model->k, model->proportions);
}

/* A proportion may be zero, where its component has no rows. */
static int possible(const void *self, size_t seen, const double *state)
{
  const clustering *model = self;
  for (size_t c = 0; c < model->k; c++)
    if (!(state[PROPORTIONS + c] >= 0 && isfinite(state[PROPORTIONS + c]))) return 0;
  return le_all_positive(state, PROPORTIONS) && le_all_codes(state + PROPORTIONS + model->k, seen, model->k);
}

/* ---- mean-field variational Bayes ----
 * q: shares (N x K), means of the centres (K x D), their variances (K), which all columns share, and with `infer` both variances
 * and the proportions. */

enum { Q_LABELS, Q_CENTRES, Q_SPREAD, Q_NOISE, Q_PROPORTIONS, Q_FACTORS };

typedef struct factors {
  size_t n, k, d;
  double *share, *mean, *variance, *spread, *noise, *alpha;
  le_expected_variance expect_spread, expect_noise;
} factors;

static factors divide(const clustering *model, size_t n, const double *q)
{
  const le_gaussian_prior *g = &model->gaussian;
  factors f = {.n = n, .k = model->k, .d = g->width, .share = (double *)(size_t)q};
  f.mean = f.share + n * f.k;
  f.variance = f.mean + f.k * f.d;
  f.spread = f.variance + f.k;
  f.noise = f.spread + 2;
  f.alpha = f.noise + 2;
  f.expect_spread = le_q_variance(g, g->prior_sd, f.spread);
  f.expect_noise = le_q_variance(g, g->noise_sd, f.noise);
  return f;
}

static size_t q_size(const void *self, size_t n)
{
  const clustering *model = self;
  return model->k * (n + model->gaussian.width + 2) + 4;
}

static size_t q_scratch(const void *self, size_t n)
{
  const size_t k = ((const clustering *)self)->k, relabelling = le_relabelling_scratch(n, k), most = n > k ? n : k;
  return relabelling > most ? relabelling : most;
}

static size_t q_factors(const void *self) { return ((const clustering *)self)->gaussian.infer ? Q_FACTORS : Q_SPREAD; }

static void expect_log_proportions(const clustering *model, const factors *f, double *out)
{
  if (model->gaussian.infer) {
    le_expect_log_proportions(f->k, f->alpha, out);
    return;
  }
  for (size_t c = 0; c < f->k; c++) out[c] = log(model->proportions[c]);
}

/* The expected squared distance of a row to a centre. */
static double q_distance(const factors *f, const double *y, size_t c)
{
  const double *mean = f->mean + c * f->d;
  double sum = (double)f->d * f->variance[c];
  for (size_t j = 0; j < f->d; j++) sum += (y[j] - mean[j]) * (y[j] - mean[j]);
  return sum;
}

static double q_residuals(const factors *f, const le_rows *rows)
{
  double sum = 0;
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < f->k; c++)
      if (f->share[i * f->k + c] > 0) sum += f->share[i * f->k + c] * q_distance(f, rows->values + i * f->d, c);
  return sum;
}

static double q_centre_squares(const factors *f)
{
  double sum = 0;
  for (size_t c = 0; c < f->k; c++) sum += (double)f->d * f->variance[c];
  for (size_t c = 0; c < f->k * f->d; c++) sum += f->mean[c] * f->mean[c];
  return sum;
}

static void update_labels(const clustering *model, const factors *f, const le_rows *rows, double *log_proportion)
{
  expect_log_proportions(model, f, log_proportion);
  for (size_t i = 0; i < f->n; i++) {
    double *share = f->share + i * f->k;
    for (size_t c = 0; c < f->k; c++)
      share[c] = log_proportion[c] - 0.5 * f->expect_noise.precision * q_distance(f, rows->values + i * f->d, c);
    le_to_shares(f->k, share);
  }
}

static void update_centres(const factors *f, const le_rows *rows)
{
  const size_t k = f->k, d = f->d;
  memset(f->mean, 0, k * d * sizeof(double));
  memset(f->variance, 0, k * sizeof(double));
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < k; c++) {
      const double share = f->share[i * k + c];
      f->variance[c] += share;
      for (size_t j = 0; j < d; j++) f->mean[c * d + j] += share * rows->values[i * d + j];
    }
  for (size_t c = 0; c < k; c++) {
    f->variance[c] = 1 / (f->expect_spread.precision + f->expect_noise.precision * f->variance[c]);
    for (size_t j = 0; j < d; j++) f->mean[c * d + j] *= f->expect_noise.precision * f->variance[c];
  }
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q, double *scratch)
{
  const clustering *model = self;
  const factors f = divide(model, rows->n, q);
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  switch (factor) {
  case Q_LABELS: update_labels(model, &f, rows, scratch); break;
  case Q_CENTRES: update_centres(&f, rows); break;
  case Q_SPREAD: le_update_variance(prior, (double)(f.k * f.d), q_centre_squares(&f), f.spread); break;
  case Q_NOISE: le_update_variance(prior, (double)(f.n * f.d), q_residuals(&f, rows), f.noise); break;
  case Q_PROPORTIONS:
    for (size_t c = 0; c < f.k; c++) f.alpha[c] = 1;
    for (size_t i = 0; i < f.n * f.k; i++) f.alpha[i % f.k] += f.share[i];
    break;
  default: break;
  }
  return LE_OK;
}

/* From labels, random or known, on. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng, double *q,
                         double *scratch)
{
  const clustering *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const le_inverse_gamma prior = le_variance_prior(g);
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  factors f = divide(model, rows->n, q);
  if (hint) le_label_shares(f.n, f.k, hint + PROPORTIONS + f.k, f.share);
  else le_start_shares(rows, f.k, NULL, rng, f.share, scratch);
  le_point_variance(prior, hint ? (double)(f.k * f.d) : 0, hint ? hint[CENTRES] : g->scale / g->shape, f.spread);
  le_point_variance(prior, hint ? (double)(f.n * f.d) : 0, hint ? hint[NOISE] : g->scale / g->shape, f.noise);
  for (size_t factor = Q_CENTRES; factor < q_factors(self); factor++) q_update(self, rows, factor, q, scratch);
  return LE_OK;
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const clustering *model = self;
  const factors f = divide(model, rows->n, q);
  const double cells = (double)(f.n * f.d), centres = (double)(f.k * f.d);
  double half_log_det = 0, labels = le_entropy(f.n * f.k, f.share);
  expect_log_proportions(model, &f, scratch);
  for (size_t i = 0; i < f.n * f.k; i++) labels += f.share[i] * scratch[i % f.k];
  for (size_t c = 0; c < f.k; c++) half_log_det += 0.5 * (double)f.d * log(f.variance[c]);
  const double bound = labels - cells * (HALF_LOG_2PI + 0.5 * f.expect_noise.log) -
                       0.5 * f.expect_noise.precision * q_residuals(&f, rows) +
                       le_normal_gain(centres, q_centre_squares(&f), half_log_det, f.expect_spread);
  if (!model->gaussian.infer) return bound;
  const le_inverse_gamma prior = le_variance_prior(&model->gaussian);
  return bound + le_variance_gain(prior, f.spread) + le_variance_gain(prior, f.noise) +
         le_proportions_gain(f.k, 1, f.alpha);
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point, double *scratch)
{
  const clustering *model = self;
  const le_gaussian_prior *g = &model->gaussian;
  const factors f = divide(model, n, q);
  (void)scratch;
  point[CENTRES] = g->infer ? le_draw_inverse_gamma(f.spread, rng) : g->prior_sd * g->prior_sd;
  point[NOISE] = g->infer ? le_draw_inverse_gamma(f.noise, rng) : g->noise_sd * g->noise_sd;
  if (g->infer) le_draw_proportions(f.k, f.alpha, rng, point + PROPORTIONS);
  else memcpy(point + PROPORTIONS, model->proportions, f.k * sizeof(double));
  for (size_t i = 0; i < n; i++)
    labels_of(model, point)[i] = (double)le_draw_share(f.k, f.share + i * f.k, rng);
}

static double q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng, double *scratch)
{
  const clustering *model = self;
  return le_relabelling_gain(n, model->k, divide(model, n, q).share, 0, model->gaussian.infer ? NULL : model->proportions,
                             rng, scratch);
}

static const le_variational_ops variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = q_symmetry,
};

/* ---- maximum likelihood by EM: variance of the noise, proportions (K), centres (K x D) ---- */

enum { M_NOISE, M_PROPORTIONS };

static size_t m_size(const void *self, size_t n)
{
  const clustering *model = self;
  (void)n;
  return M_PROPORTIONS + model->k * (1 + model->gaussian.width);
}

static size_t m_scratch(const void *self, size_t n) { return n * ((const clustering *)self)->k + n; }
/* Shares of the rows' clusters, and the log-likelihood. */
static double m_expect(const void *self, const le_rows *rows, const double *q, double *share)
{
  const clustering *model = self;
  const size_t k = model->k, d = model->gaussian.width;
  const double *centre = q + M_PROPORTIONS + k;
  double sum = 0;
  for (size_t i = 0; i < rows->n; i++) {
    const double *y = rows->values + i * d;
    double *own = share + i * k;
    for (size_t c = 0; c < k; c++) {
      double square = 0;
      for (size_t j = 0; j < d; j++) square += (y[j] - centre[c * d + j]) * (y[j] - centre[c * d + j]);
      own[c] = log(q[M_PROPORTIONS + c]) - 0.5 * square / q[M_NOISE] - (double)d * (HALF_LOG_2PI + 0.5 * log(q[M_NOISE]));
    }
    size_t any;
    double log_density, total = 0;
    sum += le_draw_category(NULL, k, own, 0, &any, &log_density);
    for (size_t c = 0; c < k; c++) total += own[c];
    for (size_t c = 0; c < k; c++) own[c] /= total;
  }
  return sum;
}

static void m_maximise(const clustering *model, const le_rows *rows, const double *share, double *q)
{
  const size_t k = model->k, d = model->gaussian.width, n = rows->n;
  double *centre = q + M_PROPORTIONS + k, squares = 0;
  memset(centre, 0, k * d * sizeof(double));
  for (size_t c = 0; c < k; c++) {
    double count = 0;
    for (size_t i = 0; i < n; i++) {
      count += share[i * k + c];
      for (size_t j = 0; j < d; j++) centre[c * d + j] += share[i * k + c] * rows->values[i * d + j];
    }
    for (size_t j = 0; j < d && count > 0; j++) centre[c * d + j] /= count;
    if (model->gaussian.infer) q[M_PROPORTIONS + c] = count / (double)n;
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j < d; j++) squares += share[i * k + c] * pow(rows->values[i * d + j] - centre[c * d + j], 2);
  }
  if (model->gaussian.infer) q[M_NOISE] = squares / (double)(n * d);
}

static le_status m_start(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng, double *q,
                         double *scratch)
{
  const clustering *model = self;
  q[M_NOISE] = model->gaussian.noise_sd * model->gaussian.noise_sd;
  memcpy(q + M_PROPORTIONS, model->proportions, model->k * sizeof(double));
  if (hint) le_label_shares(rows->n, model->k, hint + PROPORTIONS + model->k, scratch);
  else le_start_shares(rows, model->k, NULL, rng, scratch, scratch + rows->n * model->k);
  m_maximise(model, rows, scratch, q);
  return LE_OK;
}

static le_status m_update(const void *self, const le_rows *rows, size_t factor, double *q, double *scratch)
{
  (void)factor;
  m_expect(self, rows, q, scratch);
  m_maximise(self, rows, scratch, q);
  return LE_OK;
}

static const le_variational_ops maximum = {
  .size = m_size,
  .scratch = m_scratch,
  .start = m_start,
  .update = m_update,
  .bound = m_expect,
};

static const le_latent_ops latent = {
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
  .log_symmetry = log_symmetry,
  .possible = possible,
};

const le_model_ops le_clustering_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "clustering",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .width = width,
  .latent = &latent,
  .variational = &variational,
  .maximum = &maximum,
};
