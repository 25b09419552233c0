/* Softmax (multinomial logistic) regression: p(y = k | x) is proportional to exp(w_k'x), k = 0 ..
 * K-1. A row is x_1 .. x_p and the label; an intercept is a covariate equal to one. All K weight
 * vectors are parameters: theta[k * p + j] is weight j of class k. Only their differences are
 * identified by the data; the prior identifies the rest. */
#include <math.h>
#include <stdlib.h>
#include "models/priors.h"
#include "models/shared.h"

#define MOST_CLASSES 10000 /* the product of a tile's normalising sums must not overflow */

typedef struct softmax {
  le_priors priors;
  size_t covariates, classes;
  le_simd simd;
  le_prior prior[]; /* those of the covariates, the same in all classes */
} softmax;

/* ---- settings ---- */

static void destroy(void *self)
{
  softmax *model = self;
  if (model) free(model->priors.user);
  free(model);
}

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  size_t p, classes;
  if (!le_read_count(args, "covariates", 1, MOST_COVARIATES, &p, message) ||
      !le_read_count(args, "classes", 2, MOST_CLASSES, &classes, message))
    return LE_BAD_ARGUMENT;
  softmax *model = malloc(sizeof *model + classes * p * sizeof(le_prior));
  if (!model) return LE_NO_MEMORY;
  model->covariates = p;
  model->classes = classes;
  model->simd = le_simd_for(args);
  model->priors = (le_priors){.d = classes * p, .of = model->prior};
  le_status status = LE_BAD_ARGUMENT;
  if (le_priors_read(args, p, NULL, model->prior, message))
    status = le_user_read(args, classes * p, &model->priors.user, message);
  if (status != LE_OK) {
    destroy(model);
    return status;
  }
  for (size_t a = p; a < classes * p; a++) model->prior[a] = model->prior[a - p];
  *self = model;
  return LE_OK;
}

static size_t width(const void *self) { return ((const softmax *)self)->covariates + 1; }

/* ---- likelihood ---- */

typedef enum shares { NONE, PROBABILITIES, SLOPES } shares;

typedef struct workspace {
  size_t n, p, classes;
  size_t together;  /* tiles whose results are kept */
  double *x;        /* tiles of the covariates; the last column holds the labels */
  double *share; /* tiles of the logits of the classes, then of what the caller wants (`shares`) */
  double *weighted; /* tiles of covariates times the second derivative of a pair of classes */
  double *sums;     /* of products with the covariates */
  double *number;   /* the number of each class as a double */
} workspace;

/* The same for floats. Labels are the last column. The weights of every class but the first are
 * relative to those of the first. */
typedef struct single_workspace {
  size_t n, p, classes, together;
  float *x, *share, *number, *free;
  double *sums;
} single_workspace;

#define VECTOR_BODY "models/softmax_body.h"
#define VECTOR_SINGLE_BODY "models/softmax_single_body.h"
#include "base/variants.h"

typedef struct kernels {
  int (*labels_fit)(const workspace *w);
  double (*log_lik)(const workspace *w, const double *theta);
  double (*log_lik_grad)(const workspace *w, const double *theta);
  void (*narrow)(size_t tiles, size_t columns, const double *from, float *to, double *largest);
  void (*free_sums)(const single_workspace *w);
  void (*add_free_slopes)(const workspace *w, double *grad);
  void (*probabilities)(const workspace *w, const double *theta, size_t from, size_t to);
  void (*pair)(const workspace *w, size_t from, size_t to, size_t k, size_t l);
  void (*each)(const workspace *w, const double *theta, size_t t, double *value);
} kernels;

#define KERNELS(variant)                                                                           \
  {                                                                                                \
    labels_fit_##variant, log_lik_##variant, log_lik_grad_##variant, narrow_##variant##_single,    \
      free_sums_##variant##_single, add_free_slopes_##variant, probabilities_##variant,            \
      pair_##variant, each_##variant                                                               \
  }

static const kernels *kernels_of(const softmax *model)
{
  static const kernels table[] = TABLES(KERNELS);
  return &table[model->simd];
}

static size_t double_size(const softmax *model, size_t rows)
{
  const size_t p = model->covariates, classes = model->classes;
  const size_t together = tiles_together(SHARES_MOST, classes, rows);
  return (tiles_of(rows) * (p + 1) + together * (classes + p)) * TILE +
         p * (p > classes ? p : classes) + classes;
}

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const softmax *model = self;
  const size_t p = model->covariates, classes = model->classes;
  const size_t together = tiles_together(SHARES_MOST, classes, rows),
               tiles = tiles_of(rows) * (p + 1) + together * (classes - 1);
  (void)particles;
  return 2 * LE_ALIGN_MORE + double_size(model, rows) +
         room_for_floats(tiles * TILE + p * (classes - 1) + classes) + p + 1;
}

/* Fails if a label is not one of the classes. */
static le_status prepare(const softmax *model, const le_rows *rows, double *scratch, workspace *w)
{
  const size_t p = model->covariates, tiles = tiles_of(rows->n);
  *w = (workspace){.n = rows->n,
                   .p = p,
                   .classes = model->classes,
                   .together = tiles_together(SHARES_MOST, model->classes, rows->n)};
  w->x = le_aligned(scratch);
  w->share = w->x + tiles * (p + 1) * TILE;
  w->weighted = w->share + w->together * model->classes * TILE;
  w->sums = w->weighted + w->together * p * TILE;
  w->number = w->sums + p * (p > model->classes ? p : model->classes);
  for (size_t k = 0; k < model->classes; k++) w->number[k] = (double)k;
  fill_tiles(model->simd, rows, p + 1, w->x);
  return kernels_of(model)->labels_fit(w) ? LE_OK : LE_BAD_ARGUMENT;
}

/* Stored after the doubles; `largest` has as many numbers as a row. */
static single_workspace prepare_single(const softmax *model, const workspace *w, double *scratch,
                                       double **largest)
{
  const size_t p = w->p, classes = w->classes, tiles = tiles_of(w->n);
  single_workspace s = {.n = w->n,
                        .p = p,
                        .classes = classes,
                        .together = w->together,
                        .sums = w->sums};
  double *beyond = le_aligned(scratch + LE_ALIGN_MORE + double_size(model, w->n));
  s.x = (float *)beyond;
  s.share = s.x + tiles * (p + 1) * TILE;
  s.free = s.share + s.together * (classes - 1) * TILE;
  s.number = s.free + p * (classes - 1);
  for (size_t k = 0; k < classes; k++) s.number[k] = (float)k;
  *largest = beyond + room_for_floats((tiles * (p + 1) + s.together * (classes - 1)) * TILE +
                                      p * (classes - 1) + classes);
  kernels_of(model)->narrow(tiles, p + 1, w->x, s.x, *largest);
  return s;
}

/* The weights of all classes but the first, minus those of the first. Returns whether logits are so
 * close to 0 that single precision is enough. */
static int take_free(const single_workspace *s, const double *theta, const double *largest)
{
  int fits = 1;
  for (size_t k = 1; k < s->classes; k++) {
    double squares = 0;
    for (size_t j = 0; j < s->p; j++) {
      const double weight = theta[k * s->p + j] - theta[j], part = weight * largest[j];
      squares += part * part;
      s->free[(k - 1) * s->p + j] = (float)weight;
    }
    fits = fits && squares <= SINGLE_MOST * SINGLE_MOST;
  }
  return fits;
}

/* `value` and `grad` may be NULL. */
static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const softmax *model = self;
  const kernels *kernel = kernels_of(model);
  const size_t d = le_priors_dim(self);
  double *largest = NULL;
  workspace w;
  single_workspace s = {0};
  if (prepare(model, rows, scratch, &w) != LE_OK) return LE_BAD_ARGUMENT;
  if (!value) s = prepare_single(model, &w, scratch, &largest);
  for (size_t i = 0; i < m; i++, theta += d) {
    memset(w.sums, 0, grad ? d * sizeof(double) : 0);
    if (!value && take_free(&s, theta, largest)) {
      kernel->free_sums(&s);
      kernel->add_free_slopes(&w, grad + i * d);
      continue;
    }
    const double sum = (grad ? kernel->log_lik_grad : kernel->log_lik)(&w, theta);
    if (value) add_value(sum, &value[i]);
    for (size_t a = 0; a < d && grad; a++) add_finite(w.sums[a], &grad[i * d + a]);
  }
  return LE_OK;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  return log_lik_grad(self, m, theta, rows, value, NULL, scratch);
}

static le_status log_lik_grad_alone(const void *self, size_t m, const double *theta,
                                    const le_rows *rows, double *grad, double *scratch)
{
  return log_lik_grad(self, m, theta, rows, NULL, grad, scratch);
}

/* Block (k, l) of the second derivatives, k != l, is the sum of p_k p_l x x', and each row of
 * blocks sums to zero. So the diagonal blocks are minus the sums of the others; these all have the
 * same sign, so no digits are lost. */
static void add_pair(const workspace *w, size_t k, size_t l, double *hess)
{
  const size_t p = w->p, d = w->classes * p;
  for (size_t i = 0; i < p; i++)
    for (size_t j = 0; j <= i; j++) {
      const double entry = w->sums[i * p + j];
      for (size_t side = 0; side < (i == j ? 1 : 2); side++) {
        const size_t a = side ? j : i, b = side ? i : j;
        hess[(k * p + a) * d + l * p + b] += entry;
        hess[(l * p + a) * d + k * p + b] += entry;
        hess[(k * p + a) * d + k * p + b] -= entry;
        hess[(l * p + a) * d + l * p + b] -= entry;
      }
    }
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const softmax *model = self;
  const kernels *kernel = kernels_of(model);
  const size_t p = model->covariates, d = le_priors_dim(self);
  workspace w;
  if (prepare(model, rows, scratch, &w) != LE_OK) return LE_BAD_ARGUMENT;
  memset(w.sums, 0, d * sizeof(double));
  (void)kernel->log_lik_grad(&w, theta);
  for (size_t a = 0; a < d; a++) {
    grad[a] += w.sums[a];
    if (!isfinite(grad[a])) return LE_NOT_FINITE;
  }
  for (size_t t = 0; t < tiles_of(rows->n); t += w.together) {
    const size_t end = last_tile(rows->n, w.together, t);
    kernel->probabilities(&w, theta, t, end);
    for (size_t k = 1; k < model->classes; k++)
      for (size_t l = 0; l < k; l++) {
        memset(w.sums, 0, p * p * sizeof(double));
        kernel->pair(&w, t, end, k, l);
        add_pair(&w, k, l, hess);
      }
  }
  return LE_OK;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const softmax *model = self;
  const size_t d = le_priors_dim(self), n = rows->n;
  workspace w;
  double tile[TILE];
  if (prepare(model, rows, scratch, &w) != LE_OK) return LE_BAD_ARGUMENT;
  for (size_t i = 0; i < m; i++)
    for (size_t t = 0; t < tiles_of(n); t++) {
      kernels_of(model)->each(&w, theta + i * d, t, tile);
      for (size_t r = 0; r < rows_in_tile(n, t); r++)
        value[i * n + t * TILE + r] = isnan(tile[r]) ? -INFINITY : tile[r];
    }
  return LE_OK;
}

/* ---- simulation ---- */

/* The index of the largest logit plus independent Gumbel noise is distributed as the label. */
static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
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
  .dim = le_priors_dim,
  .width = width,
  .scratch = scratch_size,
  .log_prior = le_priors_log,
  .log_prior_grad = le_priors_grad,
  .log_prior_hess = le_priors_hess,
  .draw_prior = le_priors_draw,
  .log_lik = log_lik,
  .log_lik_grad = log_lik_grad,
  .log_lik_grad_alone = log_lik_grad_alone,
  .log_lik_hess = log_lik_hess,
  .log_lik_each = log_lik_each,
  .simulate = simulate,
  .user_dim = le_priors_dim,
  .to_user = le_priors_to_user,
  .tails = le_priors_tails,
};
