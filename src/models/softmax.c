/* Softmax (multinomial logistic) regression: p(y = k | x) is proportional to exp(w_k'x), k = 0 .. K-1.
 * A row is x_1 .. x_p and the label; an intercept is a covariate that is always one.  All K vectors are free,
 * theta[k * p + j] is weight j of class k, and the prior N(0, prior_sd_j^2) makes the sum identified. */
#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_randist.h>
#include "models/shared.h"

#define MOST_CLASSES 10000 /* products of eight normalising sums must not overflow */

typedef struct softmax {
  size_t covariates, classes;
  double prior_constant;
  double prior_sd[]; /* one for each covariate, the same in all classes */
} softmax;

/* ---- settings ---- */

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  size_t p, classes;
  if (!le_read_count(args, "covariates", 1, MOST_COVARIATES, &p, message) ||
      !le_read_count(args, "classes", 2, MOST_CLASSES, &classes, message))
    return LE_BAD_ARGUMENT;
  softmax *model = malloc(sizeof *model + p * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->covariates = p;
  model->classes = classes;
  if (!le_read_numbers(args, "prior_sd", 1, 0, p, model->prior_sd, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  model->prior_constant = 0;
  for (size_t j = 0; j < p; j++) model->prior_constant -= (double)classes * (log(model->prior_sd[j]) + HALF_LOG_2PI);
  *self = model;
  return LE_OK;
}

static void destroy(void *self) { free(self); }

static size_t dim(const void *self)
{
  const softmax *model = self;
  return model->classes * model->covariates;
}

static size_t width(const void *self) { return ((const softmax *)self)->covariates + 1; }

/* ---- prior ---- */

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const softmax *model = self;
  size_t p = model->covariates, d = dim(self);
  for (size_t i = 0; i < m; i++) {
    double squares = 0;
    for (size_t a = 0; a < d; a++) {
      double z = theta[i * d + a] / model->prior_sd[a % p];
      squares += z * z;
    }
    double density = model->prior_constant - 0.5 * squares;
    value[i] = isnan(density) ? -INFINITY : density;
  }
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const softmax *model = self;
  size_t p = model->covariates;
  for (size_t row = 0; row < m * model->classes; row++)
    for (size_t j = 0; j < p; j++)
      grad[row * p + j] = -theta[row * p + j] / model->prior_sd[j] / model->prior_sd[j];
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  const softmax *model = self;
  size_t p = model->covariates, d = dim(self);
  (void)theta;
  for (size_t a = 0; a < d; a++) hess[a * d + a] -= 1 / model->prior_sd[a % p] / model->prior_sd[a % p];
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const softmax *model = self;
  size_t p = model->covariates, d = dim(self);
  for (size_t a = 0; a < d; a++) theta[a] = gsl_ran_gaussian_ziggurat(rng, model->prior_sd[a % p]);
}

/* ---- likelihood ---- */

typedef struct workspace {
  double *x;      /* tiles of the covariates */
  double *label;  /* tiles of the labels */
  double *share;  /* [class][row]: logits, then exp(logit - top), then what the caller makes of them */
  double *chosen; /* the logit of the label, less top */
  double *top;    /* the largest logit */
  double *sum;    /* of share, before it is normalised: from 1 to K */
  double *lanes;  /* [class][covariate]: partial sums of the gradient */
  double *weighted; /* one covariate times the curvature of a pair of classes */
} workspace;

static workspace divide_scratch(const softmax *model, size_t n, double *scratch)
{
  size_t p = model->covariates, classes = model->classes;
  workspace w;
  w.x = scratch;
  w.label = w.x + tiles_of(n) * p * TILE;
  w.share = w.label + tiles_of(n) * TILE;
  w.chosen = w.share + classes * TILE;
  w.top = w.chosen + TILE;
  w.sum = w.top + TILE;
  w.lanes = w.sum + TILE;
  w.weighted = w.lanes + classes * p * LANES;
  return w;
}

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const softmax *model = self;
  size_t p = model->covariates, classes = model->classes;
  (void)particles;
  return tiles_of(rows) * (p + 1) * TILE + (classes + 4) * TILE + classes * p * LANES;
}

/* Fails where a label is not one of the classes: it is about to become an index. */
static le_status transpose(const softmax *model, const le_rows *rows, workspace *w)
{
  size_t p = model->covariates, count = tiles_of(rows->n);
  for (size_t t = 0; t < count; t++) {
    double *x = w->x + t * p * TILE, *label = w->label + t * TILE;
    size_t here = rows_in_tile(rows->n, t);
    for (size_t r = 0; r < here; r++) {
      const double *row = rows->values + (t * TILE + r) * (p + 1);
      if (!(row[p] >= 0 && row[p] < (double)model->classes && row[p] == floor(row[p]))) return LE_BAD_ARGUMENT;
      for (size_t j = 0; j < p; j++) x[j * TILE + r] = row[j];
      label[r] = row[p];
    }
    for (size_t r = here; r < TILE; r++) {
      for (size_t j = 0; j < p; j++) x[j * TILE + r] = 0;
      label[r] = 0;
    }
  }
  return LE_OK;
}

/* Fills share, chosen, top and sum for tile t: log p(label) = chosen - log(sum). */
static void classify(const softmax *model, const double *theta, size_t n, size_t t, workspace *w)
{
  size_t p = model->covariates, classes = model->classes, here = rows_in_tile(n, t);
  const double *x = w->x + t * p * TILE, *label = w->label + t * TILE;
  for (size_t k = 0; k < classes; k++) combine(w->share + k * TILE, p, theta + k * p, x);
  memcpy(w->top, w->share, TILE * sizeof(double));
  for (size_t k = 1; k < classes; k++) raise_to(w->top, w->share + k * TILE);
  for (size_t r = 0; r < TILE; r++) w->chosen[r] = w->share[(size_t)(int)label[r] * TILE + r] - w->top[r];
  memset(w->sum, 0, TILE * sizeof(double));
  for (size_t k = 0; k < classes; k++) {
    exponentiate(here, w->share + k * TILE, w->top, 1);
    add(w->sum, w->share + k * TILE);
  }
}

/* The log-likelihood of tile t; `chosen` is zero already where the tile is only filled up. */
static double tile_value(size_t here, workspace *w)
{
  double lanes[LANES] = {0};
  for (size_t r = here; r < TILE; r++) w->sum[r] = 1;
  fold(lanes, w->chosen);
  return sum_lanes(lanes) - sum_log(w->sum);
}

/* From shares to probabilities. */
static void normalise(const softmax *model, workspace *w)
{
  for (size_t r = 0; r < TILE; r++) w->sum[r] = 1 / w->sum[r];
  for (size_t k = 0; k < model->classes; k++) multiply(w->share + k * TILE, w->sum);
}

/* From probabilities to the slopes of the log-likelihood in the logits. */
static void subtract_from_label(const softmax *model, size_t t, workspace *w)
{
  const double *label = w->label + t * TILE;
  for (size_t a = 0; a < model->classes * TILE; a++) w->share[a] = -w->share[a];
  for (size_t r = 0; r < TILE; r++) w->share[(size_t)(int)label[r] * TILE + r] += 1;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                         double *scratch)
{
  const softmax *model = self;
  workspace w = divide_scratch(model, rows->n, scratch);
  size_t d = dim(self), count = tiles_of(rows->n);
  if (transpose(model, rows, &w) != LE_OK) return LE_BAD_ARGUMENT;
  for (size_t i = 0; i < m; i++) {
    double sum = 0;
    for (size_t t = 0; t < count; t++) {
      classify(model, theta + i * d, rows->n, t, &w);
      sum += tile_value(rows_in_tile(rows->n, t), &w);
    }
    add_value(sum, &value[i]);
  }
  return LE_OK;
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                              double *grad, double *scratch)
{
  const softmax *model = self;
  workspace w = divide_scratch(model, rows->n, scratch);
  size_t p = model->covariates, d = dim(self), count = tiles_of(rows->n);
  if (transpose(model, rows, &w) != LE_OK) return LE_BAD_ARGUMENT;
  for (size_t i = 0; i < m; i++) {
    double sum = 0;
    memset(w.lanes, 0, d * LANES * sizeof(double));
    for (size_t t = 0; t < count; t++) {
      classify(model, theta + i * d, rows->n, t, &w);
      sum += tile_value(rows_in_tile(rows->n, t), &w);
      normalise(model, &w);
      subtract_from_label(model, t, &w);
      for (size_t a = 0; a < d; a++)
        le_fold_products(w.lanes + a * LANES, w.share + a / p * TILE, w.x + (t * p + a % p) * TILE);
    }
    add_value(sum, &value[i]);
    for (size_t a = 0; a < d; a++) add_finite(sum_lanes(w.lanes + a * LANES), &grad[i * d + a]);
  }
  return LE_OK;
}

/* Block (k, l) of the second derivatives is minus the sum of (p_k [k = l] - p_k p_l) x x': for each pair of
 * classes the covariates are weighted once and multiplied by themselves.  A block is symmetric and equals block
 * (l, k), so a product has up to four places. */
static void add_curvature(const softmax *model, const double *x, workspace *w, double *hess)
{
  size_t p = model->covariates, d = dim(model);
  for (size_t k = 0; k < model->classes; k++)
    for (size_t l = 0; l <= k; l++) {
      const double *one = w->share + k * TILE, *other = w->share + l * TILE;
      for (size_t r = 0; r < TILE; r++) w->chosen[r] = one[r] * (other[r] - (k == l));
      for (size_t i = 0; i < p; i++) {
        memcpy(w->weighted, w->chosen, TILE * sizeof(double));
        multiply(w->weighted, x + i * TILE);
        for (size_t j = 0; j <= i; j++) {
          double entry = dot_tile(w->weighted, x + j * TILE);
          hess[(k * p + i) * d + l * p + j] += entry;
          if (i != j) hess[(k * p + j) * d + l * p + i] += entry;
          if (k != l) hess[(l * p + i) * d + k * p + j] += entry;
          if (i != j && k != l) hess[(l * p + j) * d + k * p + i] += entry;
        }
      }
    }
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows, double *grad, double *hess,
                              double *scratch)
{
  const softmax *model = self;
  workspace w = divide_scratch(model, rows->n, scratch);
  size_t p = model->covariates, d = dim(self), count = tiles_of(rows->n);
  if (transpose(model, rows, &w) != LE_OK) return LE_BAD_ARGUMENT;
  for (size_t t = 0; t < count; t++) {
    const double *x = w.x + t * p * TILE;
    classify(model, theta, rows->n, t, &w);
    normalise(model, &w);
    add_curvature(model, x, &w, hess);
    subtract_from_label(model, t, &w);
    for (size_t a = 0; a < d; a++) grad[a] += dot_tile(w.share + a / p * TILE, x + a % p * TILE);
  }
  for (size_t a = 0; a < d; a++)
    if (!isfinite(grad[a])) return LE_NOT_FINITE;
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                              double *scratch)
{
  const softmax *model = self;
  workspace w = divide_scratch(model, rows->n, scratch);
  size_t d = dim(self), n = rows->n;
  if (transpose(model, rows, &w) != LE_OK) return LE_BAD_ARGUMENT;
  for (size_t i = 0; i < m; i++)
    for (size_t t = 0; t < tiles_of(n); t++) {
      classify(model, theta + i * d, n, t, &w);
      for (size_t r = 0; r < rows_in_tile(n, t); r++) {
        double density = w.chosen[r] - log(w.sum[r]);
        value[i * n + t * TILE + r] = isnan(density) ? -INFINITY : density;
      }
    }
  return LE_OK;
}

/* ---- simulation ---- */

/* The largest of the logits, each with its own Gumbel noise, is distributed as the label. */
static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n, double *rows)
{
  const softmax *model = self;
  size_t p = model->covariates;
  for (size_t r = 0; r < n; r++) {
    double *row = rows + r * (p + 1), best = -INFINITY;
    size_t label = 0;
    for (size_t k = 0; k < model->classes; k++) {
      double score = -log(-log(gsl_rng_uniform_pos(rng)));
      for (size_t j = 0; j < p; j++) score += theta[k * p + j] * row[j];
      if (score > best) {
        best = score;
        label = k;
      }
    }
    row[p] = (double)label;
  }
}

const le_model_ops le_softmax_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "softmax_regression",
  .traits = 0,
  .create = create,
  .destroy = destroy,
  .dim = dim,
  .width = width,
  .scratch = scratch_size,
  .log_prior = log_prior,
  .log_prior_grad = log_prior_grad,
  .log_prior_hess = log_prior_hess,
  .draw_prior = draw_prior,
  .log_lik = log_lik,
  .log_lik_grad = log_lik_grad,
  .log_lik_hess = log_lik_hess,
  .log_lik_each = log_lik_each,
  .simulate = simulate,
};
