/* Mean-field variational Bayes for models with groups. */
#include "models/grouped.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <string.h>

enum { Q_LATENTS, Q_PARAMETERS, Q_SPREAD, Q_NOISE, Q_PROBABILITIES, Q_FACTORS };

static le_grouped_q divide(const le_grouped *model, size_t n, const double *q)
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

static size_t q_size(const void *self, size_t n)
{
  const le_grouped *model = self;
  return model->k * (n + model->gaussian.width + (model->exclusive ? 2 : model->k + 2)) + 4;
}

static size_t q_scratch(const void *self, size_t n)
{
  const le_grouped *model = self;
  const size_t k = model->k, relabelling = le_relabelling_scratch(n, k),
               most = model->exclusive ? 2 * n + k : k * k + 4 * k + model->gaussian.width;
  return relabelling > most ? relabelling : most;
}

static size_t q_factors(const void *self)
{
  return ((const le_grouped *)self)->gaussian.infer ? Q_FACTORS : Q_SPREAD;
}

/* ---- probabilities: one set of k, or a set of two for each group ---- */

static size_t sets_of(const le_grouped_q *f) { return f->model->exclusive ? 1 : f->k; }
static size_t set_size(const le_grouped_q *f) { return f->model->exclusive ? f->k : 2; }
/* Those that a share belongs to. */
static size_t options_of(const le_grouped_q *f) { return f->model->exclusive ? 1 : 2; }

static void expect_log_probabilities(const le_grouped_q *f, double *out)
{
  const size_t options = options_of(f), size = set_size(f);
  for (size_t a = 0; a < f->k; a++) {
    out[a * options] = log(f->model->probability[a]);
    if (options > 1) out[a * options + 1] = log1p(-f->model->probability[a]);
  }
  for (size_t s = 0; s < sets_of(f) && f->infer; s++)
    le_expect_log_proportions(size, f->alpha + s * size, out + s * size);
}

static void update_probabilities(const le_grouped_q *f)
{
  const size_t options = options_of(f);
  for (size_t a = 0; a < f->k * options; a++) f->alpha[a] = 1;
  for (size_t i = 0; i < f->n * f->k; i++) {
    f->alpha[i % f->k * options] += f->share[i];
    if (options > 1) f->alpha[i % f->k * options + 1] += 1 - f->share[i];
  }
}

/* E[log p(latents)] plus their entropy. */
static double gain_of_latents(const le_grouped_q *f, const double *log_p)
{
  const size_t options = options_of(f);
  double sum = 0;
  for (size_t i = 0; i < f->n * f->k; i++) {
    const double on[2] = {f->share[i], 1 - f->share[i]};
    sum += le_dot(on, log_p + i % f->k * options, options) + le_entropy(options, on);
  }
  return sum;
}

/* ---- the functions of the contract ---- */

/* The expected sum of squares of the parameters. */
static double squares(const le_grouped_q *f)
{
  double sum = le_dot(f->mean, f->mean, f->k * f->d);
  for (size_t a = 0; a < f->k; a++)
    sum += (double)f->d * f->covariance[f->model->exclusive ? a : a * (f->k + 1)];
  return sum;
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q,
                          double *scratch)
{
  const le_grouped_q f = divide(self, rows->n, q);
  const le_grouped_kind *kind = f.model->kind;
  switch (factor) {
  case Q_LATENTS:
    expect_log_probabilities(&f, scratch);
    kind->update_latents(&f, rows, scratch, scratch + f.k * options_of(&f));
    break;
  case Q_PARAMETERS: return kind->update_parameters(&f, rows, scratch);
  case Q_SPREAD: le_q_update_variance(&f.variances, SPREAD, squares(&f)); break;
  case Q_NOISE:
    le_q_update_variance(&f.variances, NOISE, kind->residuals(&f, rows, scratch));
    break;
  case Q_PROBABILITIES: update_probabilities(&f); break;
  default: break;
  }
  return LE_OK;
}

/* Starts from latents, random or given. */
static le_status q_start(const void *self, const le_rows *rows, const double *hint,
                         const gsl_rng *rng, double *q, double *scratch)
{
  const le_grouped *model = self;
  memset(q, 0, q_size(self, rows->n) * sizeof(double));
  const le_grouped_q f = divide(self, rows->n, q);
  const double *latent = hint ? hint + PROBABILITIES + f.k : NULL;
  if (model->exclusive && hint) le_label_shares(f.n, f.k, latent, f.share);
  else if (model->exclusive) le_start_shares(rows, f.k, NULL, rng, f.share, scratch);
  for (size_t i = 0; i < f.n * f.k && !model->exclusive; i++)
    f.share[i] = hint ? latent[i]
                      : gsl_rng_uniform(rng) < (f.infer ? 0.5 : model->probability[i % f.k]);
  le_q_start_variances(&f.variances, hint);
  return le_q_update_from(&le_grouped_variational, Q_PARAMETERS, self, rows, q, scratch);
}

static double half_log_det(const le_grouped_q *f, double *scratch)
{
  if (!f->model->exclusive) return le_half_log_det(f->covariance, f->k, scratch);
  double sum = 0;
  for (size_t c = 0; c < f->k; c++) sum += 0.5 * log(f->covariance[c]);
  return sum;
}

static double q_bound(const void *self, const le_rows *rows, const double *q, double *scratch)
{
  const le_grouped_q f = divide(self, rows->n, q);
  const le_q_variances *v = &f.variances;
  expect_log_probabilities(&f, scratch);
  double bound = gain_of_latents(&f, scratch) -
                 v->count[NOISE] * (HALF_LOG_2PI + 0.5 * v->expect[NOISE].log);
  bound -= 0.5 * v->expect[NOISE].precision * f.model->kind->residuals(&f, rows, scratch);
  bound += le_normal_gain(v->count[SPREAD], squares(&f), (double)f.d * half_log_det(&f, scratch),
                          v->expect[SPREAD]);
  for (size_t s = 0; s < sets_of(&f) && f.infer; s++)
    bound += le_proportions_gain(set_size(&f), 1, f.alpha + s * set_size(&f));
  le_q_add_variance_gains(v, &bound);
  return bound;
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
                   double *scratch)
{
  const le_grouped_q f = divide(self, n, q);
  const int exclusive = f.model->exclusive;
  double *probability = point + PROBABILITIES, *latent = latents_of(f.model, point);
  (void)scratch;
  le_q_draw_variances(&f.variances, rng, point);
  if (!f.infer) memcpy(probability, f.model->probability, f.k * sizeof(double));
  else if (exclusive) le_draw_proportions(f.k, f.alpha, rng, probability);
  for (size_t a = 0; a < f.k && f.infer && !exclusive; a++)
    probability[a] = gsl_ran_beta(rng, f.alpha[2 * a], f.alpha[2 * a + 1]);
  for (size_t i = 0; i < n && exclusive; i++)
    latent[i] = (double)le_draw_index(f.k, f.share + i * f.k, 1, rng);
  for (size_t i = 0; i < n * f.k && !exclusive; i++)
    latent[i] = gsl_rng_uniform(rng) < f.share[i];
}

static double q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng,
                         double *scratch)
{
  const le_grouped *model = self;
  return le_relabelling_gain(n, model->k, q, !model->exclusive,
                             model->gaussian.infer ? NULL : model->probability, rng, scratch);
}

const le_variational_ops le_grouped_variational = {
  .size = q_size,
  .scratch = q_scratch,
  .factors = q_factors,
  .start = q_start,
  .update = q_update,
  .bound = q_bound,
  .draw = q_draw,
  .symmetry = q_symmetry,
};
