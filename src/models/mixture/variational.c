/* Mean-field variational Bayes for a mixture.
 *
 * q: shares (N x K), a Dirichlet for the weights (K), and for each component and column a
 * normal-inverse-gamma of the same form as the prior: centre, count, shape and scale (K x p each),
 * with mu | sigma^2 ~ N(centre, sigma^2 / count). The bound does not depend on the parametrisation;
 * draws are of theta. */
#include "models/mixture/parts.h"

#include "core/rows.h"
#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>

enum { Q_LABELS, Q_WEIGHTS, Q_COMPONENTS, Q_FACTORS };

typedef struct factors {
  size_t n, k, p;
  double *share, *alpha, *centre, *count, *shape, *scale;
} factors;

static factors divide(const mixture *model, size_t n, const double *q)
{
  factors f = {.n = n,
               .k = model->components,
               .p = model->dimensions,
               .share = (double *)(size_t)q};
  f.alpha = f.share + n * f.k;
  f.centre = f.alpha + f.k;
  f.count = f.centre + f.k * f.p;
  f.shape = f.count + f.k * f.p;
  f.scale = f.shape + f.k * f.p;
  return f;
}

static size_t q_size(const void *self, size_t n)
{
  const mixture *model = self;
  return model->components * (n + 1 + 4 * model->dimensions);
}

static size_t q_scratch(const void *self, size_t n)
{
  const mixture *model = self;
  const size_t relabelling = le_relabelling_scratch(n, model->components),
               most = 2 * n + model->components + 2 * model->dimensions;
  return relabelling > most ? relabelling : most;
}

static size_t q_factors(const void *self)
{
  (void)self;
  return Q_FACTORS;
}

/* For each component: E[log weight] plus the part of the expected log density that does not depend
 * on the row. */
static void expect_peaks(const factors *f, double *peak)
{
  le_expect_log_proportions(f->k, f->alpha, peak);
  for (size_t at = 0; at < f->k * f->p; at++) {
    const double q[2] = {f->shape[at], f->scale[at]};
    peak[at / f->p] -= HALF_LOG_2PI + 0.5 * le_expect_variance(q).log + 0.5 / f->count[at];
  }
}

/* E of half the squared distance in standard deviations, without the contribution of the variance
 * of the mean. */
static double half_distance(const factors *f, const double *y, size_t c)
{
  double sum = 0;
  for (size_t at = c * f->p, j = 0; j < f->p; at++, j++)
    sum += 0.5 * (y[j] - f->centre[at]) * (y[j] - f->centre[at]) * f->shape[at] / f->scale[at];
  return sum;
}

static void update_labels(const factors *f, const le_rows *rows, double *peak)
{
  expect_peaks(f, peak);
  for (size_t i = 0; i < f->n; i++) {
    double *share = f->share + i * f->k;
    for (size_t c = 0; c < f->k; c++)
      share[c] = peak[c] - half_distance(f, rows->values + i * f->p, c);
    le_to_shares(f->k, share);
  }
}

static void update_weights(const mixture *model, const factors *f)
{
  for (size_t c = 0; c < f->k; c++) f->alpha[c] = model->concentration;
  for (size_t i = 0; i < f->n * f->k; i++) f->alpha[i % f->k] += f->share[i];
}

/* Squares are taken about the new centres, so that no digits are lost. */
static void update_components(const mixture *model, const factors *f, const le_rows *rows)
{
  const size_t k = f->k, p = f->p;
  const double before = prior_count(model);
  for (size_t at = 0; at < k * p; at++) {
    f->count[at] = before;
    f->centre[at] = before * model->location[at % p];
    f->shape[at] = model->shape;
    f->scale[at] = model->rate[at];
  }
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < k; c++) {
      const double share = f->share[i * k + c], *y = rows->values + i * p;
      for (size_t j = 0, at = c * p; j < p; j++, at++) {
        f->count[at] += share;
        f->shape[at] += 0.5 * share;
        f->centre[at] += share * y[j];
      }
    }
  for (size_t at = 0; at < k * p; at++) {
    f->centre[at] /= f->count[at];
    f->scale[at] += 0.5 * before * pow(f->centre[at] - model->location[at % p], 2);
  }
  for (size_t i = 0; i < f->n; i++)
    for (size_t c = 0; c < k; c++) {
      const double half = 0.5 * f->share[i * k + c], *y = rows->values + i * p;
      for (size_t j = 0, at = c * p; j < p; j++, at++)
        f->scale[at] += half * (y[j] - f->centre[at]) * (y[j] - f->centre[at]);
    }
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const mixture *model = self;
  const factors f = divide(model, rows->n, q);
  switch (factor) {
  case Q_LABELS: update_labels(&f, rows, scratch); break;
  case Q_WEIGHTS: update_weights(model, &f); break;
  case Q_COMPONENTS: update_components(model, &f, rows); break;
  default: break;
  }
  return LE_OK;
}

/* Starts with components at theta, as precise as if each had an equal share of the rows. */
static void start_at(const mixture *model, const factors *f, const double *theta)
{
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model),
               own = (double)f->n / (double)f->k;
  le_mixture_weights(model, theta, f->alpha);
  for (size_t c = 0; c < f->k; c++) f->alpha[c] = model->concentration + (double)f->n * f->alpha[c];
  for (size_t at = 0; at < f->k * f->p; at++) {
    f->count[at] = prior_count(model) + own;
    f->shape[at] = model->shape + 0.5 * own;
    f->scale[at] = f->shape[at] * exp(u[at]);
    f->centre[at] = model->location[at % f->p] + model->mean_scale * exp(0.5 * u[at]) * t[at];
  }
}

static le_status q_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const mixture *model = self;
  const factors f = divide(model, rows->n, q);
  if (hint) {
    start_at(model, &f, hint);
    update_labels(&f, rows, scratch);
  } else {
    le_rows_precisions(rows, scratch);
    le_start_shares(rows, f.k, scratch, rng, f.share, scratch + f.p);
  }
  update_weights(model, &f);
  update_components(model, &f, rows);
  return LE_OK;
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const mixture *model = self;
  const factors f = divide(model, rows->n, q);
  const double before = prior_count(model);
  double bound = le_entropy(f.n * f.k, f.share) +
                 le_proportions_gain(f.k, model->concentration, f.alpha);
  expect_peaks(&f, scratch);
  for (size_t i = 0; i < f.n; i++)
    for (size_t c = 0; c < f.k; c++) {
      const double share = f.share[i * f.k + c];
      if (share > 0) bound += share * (scratch[c] - half_distance(&f, rows->values + i * f.p, c));
    }
  for (size_t at = 0; at < f.k * f.p; at++) {
    const le_inverse_gamma prior = {model->shape, model->rate[at]};
    const double one[2] = {f.shape[at], f.scale[at]}, ratio = before / f.count[at];
    const double off = f.centre[at] - model->location[at % f.p];
    bound += le_variance_gain(prior, one) +
             0.5 * (log(ratio) - ratio + 1 - before * off * off * one[0] / one[1]);
  }
  return bound;
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const mixture *model = self;
  const factors f = divide(model, n, q);
  double *t = point + offsets_at(model), *u = point + scales_at(model);
  for (size_t c = 0; c < f.k; c++) scratch[c] = le_draw_log_gamma(rng, f.alpha[c]);
  for (size_t c = 0; c + 1 < f.k; c++) point[c] = scratch[c] - scratch[f.k - 1];
  for (size_t at = 0; at < f.k * f.p; at++) {
    u[at] = log(f.scale[at]) - le_draw_log_gamma(rng, f.shape[at]);
    t[at] = ((f.centre[at] - model->location[at % f.p]) * exp(-0.5 * u[at]) +
             gsl_ran_gaussian_ziggurat(rng, 1 / sqrt(f.count[at]))) /
            model->mean_scale;
  }
}

static double q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng,
                         double *scratch)
{
  const mixture *model = self;
  return le_relabelling_gain(n, model->components, divide(model, n, q).share, 0, NULL, rng,
                             scratch);
}

const le_variational_ops le_mixture_variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = q_symmetry,
};
