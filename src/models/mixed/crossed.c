/* Linear regression with group-level effects of several factors, nested or crossed, from sums over
 * each unit (models/mixed/unit.h says what a unit is). A row of the engine is
 *
 *     n, the number of levels of each factor in the unit,
 *     the triangular factor R of [X y], row by row without its zeros,
 *     Z'Z as models/mixed/arrow.h stores it, but with both triangles,
 *     Z'X and Z'y, the numbers of each effect one after another.
 *
 * Given theta, K = 1 + L'Z'Z L / sigma^2 is the precision of v, where u = L v are the effects. With
 * e = y - X w and v = K^-1 L'Z'e / sigma^2, the log-likelihood is
 *
 *     -n (log sigma + log(2 pi) / 2) - log det(K) / 2 - (e'e - e'Z L v) / (2 sigma^2). */
#include "models/mixed/arrow.h"
#include "models/mixed/covariance.h"
#include "models/mixed/differences.h"
#include "models/mixed/members.h"
#include "models/priors.h"

#include "base/linalg.h"

#include <float.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FACTORS_MOST = 6, COLUMNS_MOST = 128, LEVELS_MOST = 10000000,
       SQUARED = MIXED_EFFECTS_MOST * MIXED_EFFECTS_MOST };

typedef struct crossed {
  le_priors priors;
  size_t factors, p;
  mixed_covariance factor[FACTORS_MOST];
  size_t levels[FACTORS_MOST]; /* the most of a unit */
  size_t dim, rest;            /* the most effects of a unit, and of factors but the first */
  size_t width, triangle;      /* numbers of a row, and of R */
  int known;
  double sigma;
  double size[COLUMNS_MOST]; /* of each covariate, for differences */
} crossed;

/* A row of the engine. */
typedef struct sums {
  double n;
  size_t levels[FACTORS_MOST], first[FACTORS_MOST], dim, rest, split;
  const double *triangle, *own, *shared, *others, *with_x;
} sums;

/* ---- settings ---- */

static void destroy(void *self)
{
  crossed *model = self;
  if (!model) return;
  free(model->priors.user);
  free(model->priors.mean);
  free(model->priors.of);
  free(model);
}

static int read_levels(const le_args *args, crossed *model, char *message)
{
  for (size_t f = 0; f < model->factors; f++) {
    double levels;
    if (!le_read_number(args, "levels", 1, 0, model->factors, f, &levels, message)) return 0;
    if (levels != floor(levels) || levels > LEVELS_MOST) {
      snprintf(message, LE_MESSAGE_SIZE, "`levels` must be whole numbers up to %d, not %g.",
               LEVELS_MOST, levels);
      return 0;
    }
    model->levels[f] = (size_t)levels;
    model->dim += model->levels[f] * model->factor[f].q;
  }
  model->rest = model->dim - model->levels[0] * model->factor[0].q;
  return 1;
}

static le_status read(const le_args *args, crossed *model, char *message)
{
  size_t end;
  if (!le_read_count(args, "covariates", 0, COLUMNS_MOST, &model->p, message))
    return LE_BAD_ARGUMENT;
  model->known = le_args_find(args, "sigma") != NULL;
  if (model->known && !le_read_numbers(args, "sigma", 1, 0, 1, &model->sigma, message))
    return LE_BAD_ARGUMENT;
  if (!le_mixed_read(args, model->p + (size_t)!model->known, FACTORS_MOST, &model->factors,
                     model->factor, &end, &model->priors.d, message) ||
      !read_levels(args, model, message) ||
      !le_mixed_read_sizes(args, model->p, model->size, message))
    return LE_BAD_ARGUMENT;
  if (model->factors < 1) {
    snprintf(message, LE_MESSAGE_SIZE, "There must be effects.");
    return LE_BAD_ARGUMENT;
  }
  model->triangle = (model->p + 1) * (model->p + 2) / 2;
  model->width = 1 + model->factors + model->triangle +
                 le_arrow_size(model->factor[0].q, model->levels[0], model->rest) +
                 model->dim * (model->p + 1);
  const size_t positive[][2] = {{model->p, end}};
  return le_mixed_read_priors(args, 1, positive, &model->priors, message);
}

CREATE(crossed, read, destroy)

static size_t width(const void *self) { return ((const crossed *)self)->width; }

static size_t scales(const void *self)
{
  const crossed *model = self;
  return le_priors_tails(self) > 0 ? model->priors.d : model->priors.d - model->p;
}

static void to_user(const void *self, const double *theta, double *user)
{
  const crossed *model = self;
  le_priors_to_user(self, theta, user);
  for (size_t f = 0; f < model->factors; f++)
    le_mixed_correlations(&model->factor[f], theta, user);
}

/* Numbers of a row that are indices are never larger than the memory. */
static size_t within(double x, size_t most)
{
  return x >= 1 ? x < (double)most ? (size_t)x : most : 1;
}

static sums sums_of(const crossed *model, const double *row)
{
  sums s = {.n = row[0]};
  for (size_t f = 0; f < model->factors; f++) {
    s.levels[f] = within(row[1 + f], model->levels[f]);
    s.first[f] = s.dim;
    s.dim += s.levels[f] * model->factor[f].q;
    if (f == 0) s.split = s.dim;
  }
  s.rest = s.dim - s.split;
  s.triangle = row + 1 + model->factors;
  s.own = s.triangle + model->triangle;
  s.shared = s.own + s.split * model->factor[0].q;
  s.others = s.shared + s.split * s.rest;
  s.with_x = s.others + s.rest * s.rest;
  return s;
}

/* ---- likelihood ---- */

typedef struct room {
  arrow k;
  double *arrow;                  /* its room */
  double *v, *effects, *e, *line; /* e: -w, then 1; line: R e */
  double *inverse, *along;        /* of the others; a row times it */
} room;

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const crossed *model = self;
  (void)particles;
  (void)rows;
  return LE_ALIGN_MORE + le_arrow_size(model->factor[0].q, model->levels[0], model->rest) +
         2 * model->dim + 2 * (model->p + 1) + (2 * model->rest + 1) * model->rest +
         MIXED_EFFECTS_MOST * model->rest + model->priors.d +
         le_mixed_differences_room(model->priors.d);
}

static room place(const crossed *model, double *scratch)
{
  room r = {.arrow = le_aligned(scratch)};
  r.v = r.arrow + le_arrow_size(model->factor[0].q, model->levels[0], model->rest);
  r.effects = r.v + model->dim;
  r.e = r.effects + model->dim;
  r.line = r.e + model->p + 1;
  r.inverse = r.line + model->p + 1;
  r.along = r.inverse + 2 * model->rest * model->rest;
  return r;
}

/* to = factor A'G B for blocks q x o of matrices whose rows are `step` apart. */
static void congruence(size_t q, size_t o, const double *a, const double *b, double factor,
                       const double *g, size_t step, double *to, size_t to_step)
{
  if (q == 1 && o == 1) {
    *to = factor * *a * *b * *g;
    return;
  }
  double half[SQUARED];
  for (size_t i = 0; i < q; i++)
    for (size_t j = 0; j < o; j++) {
      half[i * o + j] = 0;
      for (size_t l = i; l < q; l++) half[i * o + j] += a[l * q + i] * g[l * step + j];
    }
  for (size_t i = 0; i < q; i++)
    for (size_t j = 0; j < o; j++) {
      double sum = 0;
      for (size_t l = j; l < o; l++) sum += half[i * o + l] * b[l * o + j];
      to[i * to_step + j] = factor * sum;
    }
}

/* K, from Z'Z and the roots. */
static void fill(const crossed *model, const sums *s, const double *root, double precision, room *r)
{
  const size_t q = model->factor[0].q, rest = s->rest;
  arrow *k = &r->k;
  le_arrow_place(k, q, s->levels[0], rest, r->arrow);
  for (size_t l = 0; l < s->levels[0]; l++) {
    congruence(q, q, root, root, precision, s->own + l * q * q, q, k->own + l * q * q, q);
    for (size_t f = 1; f < model->factors; f++) {
      const size_t o = model->factor[f].q, from = s->first[f] - s->split;
      for (size_t m = 0; m < s->levels[f]; m++) {
        const size_t at = l * q * rest + from + m * o;
        congruence(q, o, root, root + f * SQUARED, precision, s->shared + at, rest,
                   k->shared + at, rest);
      }
    }
  }
  for (size_t f = 1; f < model->factors; f++)
    for (size_t l = 0; l < s->levels[f]; l++) {
      const size_t o = model->factor[f].q, row = s->first[f] - s->split + l * o;
      for (size_t g = 1; g <= f; g++)
        for (size_t m = 0; m < s->levels[g]; m++) {
          const size_t at = row * rest + s->first[g] - s->split + m * model->factor[g].q;
          congruence(o, model->factor[g].q, root + f * SQUARED, root + g * SQUARED, precision,
                     s->others + at, rest, k->others + at, rest);
        }
    }
  for (size_t j = 0; j < s->split; j++) k->own[j * q + j % q] += 1;
  for (size_t j = 0; j < rest; j++) k->others[j * rest + j] += 1;
}

/* The sum over the levels of a factor of v v' + K^-1 - 1, both triangles; returns the trace of
 * K^-1 there. `block` writes the block of K^-1 of a level. */
static double add_level(size_t q, const double *v, const double *block, double *sum)
{
  double trace = 0;
  for (size_t i = 0; i < q; i++) {
    for (size_t j = 0; j < q; j++)
      sum[i * q + j] += v[i] * v[j] + block[i * q + j] - (double)(i == j);
    trace += block[i * q + i];
  }
  return trace;
}

/* The block of K^-1 of level l of the first factor: with A the root of the level's own block and C
 * what it shares, A'^-1 (1 + C S^-1 C') A^-1. */
static void own_block(const sums *s, const room *r, size_t l, double *block)
{
  const arrow *k = &r->k;
  const size_t q = k->q, rest = s->rest;
  const double *own = k->own + l * q * q;
  const double *shared = k->shared + l * q * rest;
  double middle[SQUARED], inverse[SQUARED];
  /* of the others only those that share rows with the level */
  size_t many = 0;
  for (size_t m = 0; m < rest; m++) {
    double any = 0;
    for (size_t i = 0; i < q; i++) any += fabs(shared[i * rest + m]);
    if (any > 0) k->used[many++] = m;
  }
  if (many == rest) memset(r->along, 0, q * rest * sizeof(double));
  for (size_t i = 0; i < q; i++)
    if (many == rest)
      le_add_symmetric_matvec(r->inverse, rest, shared + i * rest, r->along + i * rest);
    else for (size_t a = 0; a < many; a++) {
      const double *row = r->inverse + k->used[a] * rest;
      double sum = 0;
      for (size_t b = 0; b < many; b++) sum += row[k->used[b]] * shared[i * rest + k->used[b]];
      r->along[i * rest + a] = sum;
    }
  for (size_t i = 0; i < q; i++)
    for (size_t j = 0; j < q; j++) {
      middle[i * q + j] = (double)(i == j);
      for (size_t a = 0; a < many; a++)
        middle[i * q + j] += r->along[i * rest + a] * shared[j * rest + k->used[a]];
    }
  le_lower_inverse(own, q, inverse);
  for (size_t i = 0; i < q; i++)
    for (size_t j = 0; j < q; j++) {
      double sum = 0;
      for (size_t a = i; a < q; a++)
        for (size_t b = j; b < q; b++)
          sum += inverse[a * q + i] * middle[a * q + b] * inverse[b * q + j];
      block[i * q + j] = sum;
    }
}

/* Adds the gradient; `quadratic` is (e'e - e'Z L v) / sigma^2. */
static void add_gradient(const crossed *model, const sums *s, const double *theta,
                         const double *root, double precision, double quadratic, room *r,
                         double *grad)
{
  const size_t p = model->p, rest = s->rest;
  const double *line = s->triangle;
  double trace = 0;
  for (size_t i = 0; i <= p; i++, line += p + 2 - i)
    for (size_t j = i; j < p; j++) add_finite(precision * line[j - i] * r->line[i], &grad[j]);
  for (size_t k = 0; k < s->dim; k++)
    for (size_t j = 0; j < p; j++)
      add_finite(-precision * r->effects[k] * s->with_x[k * (p + 1) + j], &grad[j]);
  /* S^-1 from its root */
  double *half = r->inverse + rest * rest;
  if (rest > 0) {
    le_lower_inverse(r->k.others, rest, half);
    le_lower_gram(half, rest, r->inverse);
  }
  for (size_t f = 0; f < model->factors; f++) {
    const size_t q = model->factor[f].q;
    double sum[SQUARED] = {0}, block[SQUARED], slope[SQUARED] = {0}, column[MIXED_EFFECTS_MOST];
    for (size_t l = 0; l < s->levels[f]; l++) {
      if (f == 0) own_block(s, r, l, block);
      else
        for (size_t i = 0; i < q; i++)
          memcpy(block + i * q,
                 r->inverse + (s->first[f] - s->split + l * q + i) * rest + s->first[f] -
                   s->split + l * q, q * sizeof *block);
      trace += add_level(q, r->v + s->first[f] + l * q, block, sum);
    }
    for (size_t j = 0; j < q; j++) {
      for (size_t i = 0; i < q; i++) column[i] = sum[i * q + j];
      le_lower_transpose_solve(root + f * SQUARED, q, column);
      for (size_t i = 0; i < q; i++) add_finite(column[i], &slope[i * q + j]);
    }
    le_mixed_chain(&model->factor[f], theta, root + f * SQUARED, slope, grad);
  }
  if (!model->known)
    add_finite(quadratic - le_dot(r->v, r->v, s->dim) + (double)s->dim - trace - s->n,
               &grad[p]);
}

/* The root R of K, and R^-1 L'Z'e / sigma^2 in r->v; returns e'e / sigma^2, or NaN. */
static double condense(const crossed *model, const sums *s, const double *theta, const double *root,
                       double precision, room *r)
{
  const size_t p = model->p;
  double squares = 0;
  const double *line = s->triangle;
  for (size_t j = 0; j < p; j++) r->e[j] = -theta[j];
  r->e[p] = 1;
  for (size_t i = 0; i <= p; i++, line += p + 2 - i) {
    r->line[i] = 0;
    for (size_t j = i; j <= p; j++) r->line[i] += line[j - i] * r->e[j];
    squares += r->line[i] * r->line[i];
  }
  for (size_t k = 0; k < s->dim; k++)
    r->effects[k] = le_dot(s->with_x + k * (p + 1), r->e, p + 1);
  for (size_t f = 0; f < model->factors; f++) {
    const size_t q = model->factor[f].q;
    const double *own = root + f * SQUARED;
    for (size_t l = 0; l < s->levels[f]; l++) {
      const size_t at = s->first[f] + l * q;
      for (size_t k = 0; k < q; k++) {
        double sum = 0;
        for (size_t i = k; i < q; i++) sum += own[i * q + k] * r->effects[at + i];
        r->v[at + k] = precision * sum;
      }
    }
  }
  fill(model, s, root, precision, r);
  if (!le_arrow_factorise(&r->k)) return NAN;
  le_arrow_gather(&r->k, r->v);
  return precision * squares;
}

static double log_sigma_at(const crossed *model, const double *theta)
{
  return model->known ? log(model->sigma) : theta[model->p];
}

static void find_roots(const crossed *model, const double *theta, double *root)
{
  for (size_t f = 0; f < model->factors; f++)
    le_mixed_root(&model->factor[f], theta, root + f * SQUARED);
}

/* u = L v. */
static void find_effects(const crossed *model, const sums *s, const double *root, const double *v,
                         double *effects)
{
  for (size_t f = 0; f < model->factors; f++) {
    const size_t q = model->factor[f].q;
    for (size_t l = 0; l < s->levels[f]; l++)
      le_lower_matvec(root + f * SQUARED, q, v + s->first[f] + l * q,
                      effects + s->first[f] + l * q);
  }
}

/* What rounding leaves of e'e - e'Z L v, as a share of e'e: a smaller difference is not known.
 * Without it this noise would let the likelihood grow without end as sigma goes to zero. */
static const double ROUNDING = 16 * DBL_EPSILON;

static double evaluate(const crossed *model, const double *row, const double *theta, room *r,
                       double *grad)
{
  const sums s = sums_of(model, row);
  double root[FACTORS_MOST * SQUARED];
  const double log_sigma = log_sigma_at(model, theta), precision = exp(-2 * log_sigma);
  find_roots(model, theta, root);
  const double squares = condense(model, &s, theta, root, precision, r),
               quadratic = fmax(squares - le_dot(r->v, r->v, s.dim), ROUNDING * squares),
               value = -s.n * (log_sigma + HALF_LOG_2PI) - r->k.half_log_det - 0.5 * quadratic;
  if (!grad || isnan(squares)) return value;
  le_arrow_spread(&r->k, r->v);
  find_effects(model, &s, root, r->v, r->effects);
  add_gradient(model, &s, theta, root, precision, quadratic, r, grad);
  return value;
}

/* ---- effects ---- */

static size_t effects_size(const void *self) { return ((const crossed *)self)->dim; }

static void effects(const void *self, const double *theta, const le_rows *rows, const gsl_rng *rng,
                    double *out, double *scratch)
{
  const crossed *model = self;
  room r = place(model, scratch);
  double root[FACTORS_MOST * SQUARED];
  find_roots(model, theta, root);
  for (size_t g = 0; g < rows->n; g++, out += model->dim) {
    const sums s = sums_of(model, rows->values + g * rows->width);
    const double squares = condense(model, &s, theta, root,
                                    exp(-2 * log_sigma_at(model, theta)), &r);
    if (isnan(squares)) memset(r.v, 0, s.dim * sizeof *r.v);
    for (size_t k = 0; rng && k < s.dim; k++) r.v[k] += gsl_ran_gaussian_ziggurat(rng, 1);
    le_arrow_spread(&r.k, r.v);
    find_effects(model, &s, root, r.v, out);
  }
}

/* ---- members of the table ---- */

static le_status all_units(const crossed *model, size_t m, const double *theta,
                           const le_rows *rows, double *value, double *grad, double *each,
                           double *scratch)
{
  const size_t d = model->priors.d;
  room r = place(model, scratch);
  for (size_t g = 0; g < rows->n; g++)
    for (size_t i = 0; i < m; i++) {
      const double x = evaluate(model, rows->values + g * rows->width, theta + i * d, &r,
                                grad ? grad + i * d : NULL);
      if (value) add_value(x, &value[i]);
      if (each) each[i * rows->n + g] = x < INFINITY ? x : -INFINITY;
    }
  return LE_OK;
}

LIKELIHOODS(all_units)

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const crossed *model = self;
  const size_t d = model->priors.d;
  double *step = scratch, *room = step + d;
  le_mixed_steps(model->p, d, model->size, exp(log_sigma_at(model, theta)), step);
  return le_mixed_differences(self, d, log_lik_grad, theta, rows, step, grad, hess, room,
                              room + le_mixed_differences_room(d));
}

/* ---- starting points for finding posterior modes ---- */

static size_t start_scratch(const void *self, size_t rows)
{
  const size_t p = ((const crossed *)self)->p;
  (void)rows;
  return p * p + p;
}

/* Least squares with random weights of the units, and noise and effects of a random part of the
 * residuals. */
static void start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch)
{
  const crossed *model = self;
  const size_t p = model->p;
  double *square = scratch, *right = square + p * p, n = 0, squares = 0,
         size[FACTORS_MOST][MIXED_EFFECTS_MOST] = {{0}};
  memset(scratch, 0, (p * p + p) * sizeof *scratch);
  for (size_t j = 0; j < p; j++) {
    square[j * p + j] = 1e-6 * model->priors.of[j].precision;
    right[j] = square[j * p + j] * model->priors.of[j].location;
  }
  for (size_t g = 0; g < rows->n; g++) {
    const double *line = sums_of(model, rows->values + g * rows->width).triangle,
                 weight = gsl_ran_exponential(rng, 1);
    for (size_t i = 0; i <= p; i++, line += p + 2 - i)
      for (size_t j = i; j < p; j++) {
        right[j] += weight * line[j - i] * line[p - i];
        for (size_t k = i; k < p; k++) square[j * p + k] += weight * line[j - i] * line[k - i];
      }
  }
  for (size_t j = 0; j < p; j++) square[j * p + j] *= 1 + 1e-10;
  memcpy(theta, right, p * sizeof *theta);
  if (p > 0 && le_cholesky(square, p) == LE_OK) le_cholesky_solve(square, p, theta);
  for (size_t g = 0; g < rows->n; g++) {
    const sums s = sums_of(model, rows->values + g * rows->width);
    const double *line = s.triangle;
    n += s.n;
    for (size_t i = 0; i <= p; i++, line += p + 2 - i) {
      double residual = line[p - i];
      for (size_t j = i; j < p; j++) residual -= line[j - i] * theta[j];
      squares += residual * residual;
    }
    for (size_t f = 0; f < model->factors; f++)
      for (size_t l = 0; l < s.levels[f]; l++)
        for (size_t i = 0; i < model->factor[f].q; i++) {
          const size_t q = model->factor[f].q, k = s.first[f] + l * q + i;
          size[f][i] += f == 0 ? s.own[k * q + i]
                               : s.others[(k - s.split) * s.rest + k - s.split];
        }
  }
  const double sd = sqrt(fmax(squares, 1e-300) / fmax(n, 1));
  if (!model->known) theta[p] = log(sd) - gsl_ran_exponential(rng, 0.5);
  for (size_t f = 0; f < model->factors; f++)
    for (size_t i = 0; i < model->factor[f].q; i++)
      size[f][i] = le_mixed_unit(sd, size[f][i], n);
  le_mixed_start_scales(model->factors, model->factor, p + (size_t)!model->known, model->priors.d,
                        (const double (*)[MIXED_EFFECTS_MOST])size, rng, theta);
}

const le_model_ops le_crossed_sums_model = {
  EFFECTS,
  .traits = LE_MODEL_UNITS,
  .name = "crossed_linear_regression",
  .create = create,
  .destroy = destroy,
  .width = width,
  .log_lik_grad = log_lik_grad,
  .log_lik_hess = log_lik_hess,
  .to_user = to_user,
  .start = start,
  .start_scratch = start_scratch,
  .scales = scales,
};
