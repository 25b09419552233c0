/* The default prior of Rouder, Morey, Speckman and Province (2012) for the effects of factors.
 *
 * y = X mu + Z u + noise; the effects u_j of block k have independent normal densities of variance
 * g_k sigma^2, mu (a constant, or nothing) a flat one, and that of sigma^2 is 1 / sigma^2. Given g
 * all of them are integrated out: with V = 1 + Z G Z' and p columns of X,
 *
 *     log p(y | g) = -(n - p) / 2 log(2 pi) - log det(V) / 2 - log det(X'V^-1 X) / 2
 *                    + log Gamma((n - p) / 2) - (n - p) / 2 log(Q / 2),
 *
 * where Q is y'V^-1 y minus what mu explains. theta is log g. There is one row:
 *
 *     n, the triangular factor of [X y], and for the effects, of which the first `levels` belong to
 *     groups that share no row: Z'Z of these, of these with the others, of the others; then
 *     Z'[X y], the numbers of each effect one after another. */
#include "models/mixed/arrow.h"
#include "models/mixed/covariance.h"
#include "models/mixed/differences.h"
#include "models/mixed/members.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "models/shared.h"

#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdlib.h>

enum { BLOCKS_MOST = 64, EFFECTS_MOST = 1000000, FLAT_MOST = 1 };

typedef struct factors {
  le_priors priors;
  size_t p, levels, others, width;
  size_t *block; /* of each of the others; that of the levels is 0 */
} factors;

static void destroy(void *self)
{
  factors *model = self;
  if (!model) return;
  free(model->block);
  free(model->priors.user);
  free(model->priors.mean);
  free(model->priors.of);
  free(model);
}

static le_status read(const le_args *args, factors *model, char *message)
{
  size_t *const d = &model->priors.d;
  if (!le_read_count(args, "flat", 0, FLAT_MOST, &model->p, message) ||
      !le_read_count(args, "blocks", 1, BLOCKS_MOST, d, message) ||
      !le_read_count(args, "levels", 0, EFFECTS_MOST, &model->levels, message) ||
      !le_read_count(args, "others", 0, EFFECTS_MOST, &model->others, message))
    return LE_BAD_ARGUMENT;
  model->block = calloc(model->others + 1, sizeof *model->block);
  if (!model->block) return LE_NO_MEMORY;
  for (size_t j = 0; j < model->others; j++) {
    double block;
    if (!le_read_number(args, "block", 0, -1, model->others, j, &block, message) ||
        !le_all_codes(&block, 1, *d))
      return LE_BAD_ARGUMENT;
    model->block[j] = (size_t)block;
  }
  const size_t c = model->p + 1;
  model->width = 1 + c * (c + 1) / 2 + model->levels * (1 + model->others) +
                 model->others * model->others + (model->levels + model->others) * c;
  const size_t positive[][2] = {{0, *d}};
  return le_mixed_read_priors(args, 1, positive, &model->priors, message);
}

CREATE(factors, read, destroy)

static size_t width(const void *self) { return ((const factors *)self)->width; }

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const factors *model = self;
  (void)particles;
  (void)rows;
  return LE_ALIGN_MORE + le_arrow_size(1, model->levels, model->others) +
         (FLAT_MOST + 2) * (model->levels + model->others) + model->priors.d +
         le_mixed_differences_room(model->priors.d);
}

/* ---- likelihood ---- */

/* The factor of K = 1 + S Z'Z S, where S has the roots of g. */
static int factorise(const factors *model, const double *zz, const double *root, arrow *k)
{
  const size_t levels = model->levels, m = model->others;
  const double *shared = zz + levels, *others = shared + levels * m;
  for (size_t l = 0; l < levels; l++) {
    k->own[l] = 1 + root[l] * root[l] * zz[l];
    for (size_t j = 0; j < m; j++)
      k->shared[l * m + j] = root[l] * root[levels + j] * shared[l * m + j];
  }
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < m; j++)
      k->others[i * m + j] = root[levels + i] * root[levels + j] * others[i * m + j] +
                             (double)(i == j);
  return le_arrow_factorise(k);
}

static double evaluate(const factors *model, const double *row, const double *theta,
                       double *scratch)
{
  const size_t c = model->p + 1, all = model->levels + model->others;
  const double n = row[0], *triangle = row + 1, *zz = triangle + c * (c + 1) / 2,
               *with_x = row + model->width - all * c;
  double *room = le_aligned(scratch), *root = room + le_arrow_size(1, model->levels, model->others),
         *v = root + all, left[FLAT_MOST + 1][FLAT_MOST + 1] = {{0}};
  arrow k;
  le_arrow_place(&k, 1, model->levels, model->others, room);
  const double first = exp(0.5 * theta[0]);
  for (size_t j = 0; j < model->levels; j++) root[j] = first;
  for (size_t j = model->levels; j < all; j++)
    root[j] = exp(0.5 * theta[model->block[j - model->levels]]);
  if (!factorise(model, zz, root, &k)) return -INFINITY;
  for (size_t a = 0; a < c; a++) {
    for (size_t j = 0; j < all; j++) v[a * all + j] = root[j] * with_x[j * c + a];
    le_arrow_gather(&k, v + a * all);
  }
  /* [X y]'V^-1 [X y] */
  for (size_t a = 0; a < c; a++)
    for (size_t b = 0; b <= a; b++) {
      double sum = -le_dot(v + a * all, v + b * all, all);
      const double *line = triangle;
      for (size_t i = 0; i <= b; i++, line += c + 1 - i) sum += line[a - i] * line[b - i];
      left[a][b] = sum;
    }
  double rest = left[c - 1][c - 1], log_det = 0;
  if (model->p) {
    rest -= left[1][0] * left[1][0] / left[0][0];
    log_det = log(left[0][0]);
  }
  const double half = 0.5 * (n - (double)model->p);
  return -half * (2 * HALF_LOG_2PI) - k.half_log_det - 0.5 * log_det + gsl_sf_lngamma(half) -
         half * log(0.5 * rest);
}

static le_status all_rows(const factors *model, size_t m, const double *theta,
                          const le_rows *rows, double *value, double *grad, double *each,
                          double *scratch);
LIKELIHOODS(all_rows)

/* Gradients are differences of the values. */
static le_status all_rows(const factors *model, size_t m, const double *theta,
                          const le_rows *rows, double *value, double *grad, double *each,
                          double *scratch)
{
  const size_t d = model->priors.d;
  double *step = scratch, *room = step + d;
  le_mixed_steps(0, d, NULL, 1, step);
  if (grad)
    return le_mixed_slopes(model, d, log_lik, m, theta, rows, step, value, grad, room,
                           room + le_mixed_differences_room(d));
  for (size_t r = 0; r < rows->n; r++)
    for (size_t i = 0; i < m; i++) {
      const double x = evaluate(model, rows->values + r * rows->width, theta + i * d, scratch);
      if (value) add_value(x, &value[i]);
      if (each) each[i * rows->n + r] = x < INFINITY ? x : -INFINITY;
    }
  return LE_OK;
}

const le_model_ops le_factor_priors_model = {
  UNITS,
  .traits = LE_MODEL_UNITS | LE_MODEL_DIFFERENCES,
  .name = "factor_priors",
  .create = create,
  .destroy = destroy,
  .width = width,
  .log_lik_grad = log_lik_grad,
  .to_user = le_priors_to_user,
};
