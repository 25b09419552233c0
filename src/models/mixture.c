/* A mixture of K Gaussians with diagonal covariance in p dimensions:
 *   weights ~ Dirichlet(concentration, ..),  sigma_kj^2 ~ InvGamma(shape, rate),
 *   mu_kj | sigma_kj^2 ~ N(location_j, mean_scale^2 sigma_kj^2).
 * The parameters are non-centred: theta is
 *   K - 1 log-ratios  eta_k = log(weight_k / weight_K)
 *   K * p offsets     t_kj = (mu_kj - location_j) / (mean_scale sigma_kj),  at k * p + j
 *   K * p log-scales  u_kj = log sigma_kj^2,                                at k * p + j.
 * A priori t is standard normal and independent of u, so that a component without observations leaves t and u
 * unrelated where the centred mean would be a funnel.  With v = exp(-u/2) and s = mean_scale
 *   z = v (y - location) - s t,   log f_k(y) = sum_j (-log(2 pi)/2 - u/2 - z^2/2),
 *   dz/dt = -s,   dz/du = -v (y - location)/2 = -(z + s t)/2,
 * and all derivatives are polynomials in z. */
#include <math.h>
#include <float.h>
#include <stdlib.h>
#include <gsl/gsl_randist.h>
#include "models/variational_shared.h"

#define MOST_COMPONENTS 64 /* small arrays over components live on the stack */
#define MOST_DIMENSIONS 100000

/* Beyond these a component is a spike that no observation can come from: its density is taken as zero, which
 * keeps z^2 from overflowing and zero weights from meeting infinite residuals. */
#define LARGEST_PRECISION_ROOT 1e100
#define LARGEST_OFFSET 1e150

typedef struct mixture {
  size_t components, dimensions;
  le_simd simd;
  double mean_scale, shape, rate, concentration;
  double weight_constant; /* of the Dirichlet density */
  double scale_constant;  /* of the inverse gamma density */
  double log_symmetry;    /* log K! */
  double location[];
} mixture;

/* ---- settings ---- */

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  size_t components, p;
  if (!le_read_count(args, "components", 1, MOST_COMPONENTS, &components, message) ||
      !le_read_count(args, "dimensions", 1, MOST_DIMENSIONS, &p, message))
    return LE_BAD_ARGUMENT;
  mixture *model = malloc(sizeof *model + p * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->components = components;
  model->dimensions = p;
  model->simd = le_simd_for(args);
  if (!le_read_numbers(args, "location", 0, -INFINITY, p, model->location, message) ||
      !le_read_numbers(args, "mean_scale", 2, 0, 1, &model->mean_scale, message) ||
      !le_read_numbers(args, "shape", 1, 0, 1, &model->shape, message) ||
      !le_read_numbers(args, "rate", 1, 0, 1, &model->rate, message) ||
      !le_read_numbers(args, "concentration", 1, 0, 1, &model->concentration, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  double count = (double)components;
  model->weight_constant = lgamma(count * model->concentration) - count * lgamma(model->concentration);
  model->scale_constant = model->shape * log(model->rate) - lgamma(model->shape);
  model->log_symmetry = lgamma(count + 1);
  *self = model;
  return LE_OK;
}

static void destroy(void *self) { free(self); }

static size_t dim(const void *self)
{
  const mixture *model = self;
  return model->components - 1 + 2 * model->components * model->dimensions;
}

static size_t width(const void *self) { return ((const mixture *)self)->dimensions; }

/* Where the offsets and the log-scales begin. */
static size_t offsets_at(const mixture *model) { return model->components - 1; }

static size_t scales_at(const mixture *model) { return offsets_at(model) + model->components * model->dimensions; }

/* Weights but for a factor, of which the largest is 1; their sum, and the log-ratio of the largest. */
static double relative_weights(const mixture *model, const double *theta, double *out, double *sum)
{
  const size_t last = model->components - 1;
  double top = 0;
  for (size_t k = 0; k < last; k++) top = theta[k] > top ? theta[k] : top;
  le_vector_exp(model->simd, last, 1, -top, theta, out);
  out[last] = top > 0 ? exp(-top) : 1;
  *sum = 0;
  for (size_t k = 0; k <= last; k++) *sum += out[k];
  return top;
}

static void weights(const mixture *model, const double *theta, double *out)
{
  double sum;
  (void)relative_weights(model, theta, out, &sum);
  for (size_t k = 0; k < model->components; k++) out[k] /= sum;
}

static void log_weights(const mixture *model, const double *theta, double *out)
{
  const size_t last = model->components - 1;
  double sum;
  const double top = relative_weights(model, theta, out, &sum), base = top + log(sum);
  for (size_t k = 0; k < last; k++) out[k] = theta[k] - base;
  out[last] = -base;
}

/* ---- prior ----
 * The Jacobian turns Dirichlet exponents concentration - 1 into concentration, for all K weights, and the
 * inverse gamma density of sigma^2 into  -shape u - rate exp(-u). */

enum { TOGETHER = 64 };

/* exp(-u) of the first TOGETHER of n numbers, at most; how many. */
static size_t negative_exp(const mixture *model, size_t n, const double *u, double *out)
{
  const size_t here = n < TOGETHER ? n : TOGETHER;
  le_vector_exp(model->simd, here, -1, 0, u, out);
  return here;
}

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const mixture *model = self;
  size_t components = model->components, n = components * model->dimensions, d = dim(self);
  double weight[MOST_COMPONENTS], precision[TOGETHER];
  for (size_t i = 0; i < m; i++, theta += d) {
    const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
    double density = model->weight_constant;
    log_weights(model, theta, weight);
    for (size_t k = 0; k < components; k++) density += model->concentration * weight[k];
    for (size_t from = 0; from < n; from += TOGETHER) {
      const size_t here = negative_exp(model, n - from, u + from, precision);
      for (size_t a = from; a < from + here; a++)
        density += model->scale_constant - HALF_LOG_2PI - 0.5 * t[a] * t[a] - model->shape * u[a] -
                   model->rate * precision[a - from];
    }
    value[i] = density < INFINITY ? density : -INFINITY; /* not a number counts as impossible */
  }
}

/* rate exp(-u), finite however wild the point. */
static double prior_precision(const mixture *model, double u) { return fmin(model->rate * exp(-u), 1e300); }

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const mixture *model = self;
  size_t components = model->components, n = components * model->dimensions, d = dim(self);
  double weight[MOST_COMPONENTS], precision[TOGETHER];
  for (size_t i = 0; i < m; i++, theta += d, grad += d) {
    const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
    weights(model, theta, weight);
    for (size_t k = 0; k + 1 < components; k++)
      grad[k] = model->concentration * (1 - (double)components * weight[k]);
    for (size_t from = 0; from < n; from += TOGETHER) {
      const size_t here = negative_exp(model, n - from, u + from, precision);
      for (size_t a = from; a < from + here; a++) {
        grad[offsets_at(model) + a] = -t[a];
        grad[scales_at(model) + a] = fmin(model->rate * precision[a - from], 1e300) - model->shape;
      }
    }
  }
}

/* Adds count * (weight weight' - diag(weight)) to the block of the log-ratios. */
static void add_weight_curvature(const mixture *model, const double *theta, double count, double *hess)
{
  size_t last = model->components - 1, d = dim(model);
  double weight[MOST_COMPONENTS];
  weights(model, theta, weight);
  for (size_t k = 0; k < last; k++)
    for (size_t l = 0; l < last; l++)
      hess[k * d + l] += count * (k == l ? weight[k] * (weight[k] - 1) : weight[k] * weight[l]);
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  const mixture *model = self;
  size_t n = model->components * model->dimensions, d = dim(self);
  add_weight_curvature(model, theta, (double)model->components * model->concentration, hess);
  for (size_t a = offsets_at(model); a < offsets_at(model) + n; a++) hess[a * d + a] -= 1;
  for (size_t a = scales_at(model); a < scales_at(model) + n; a++)
    hess[a * d + a] -= prior_precision(model, theta[a]);
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const mixture *model = self;
  size_t last = model->components - 1, n = model->components * model->dimensions;
  if (last > 0) {
    for (size_t k = 0; k < last; k++) theta[k] = le_draw_log_gamma(rng, model->concentration);
    double reference = le_draw_log_gamma(rng, model->concentration);
    for (size_t k = 0; k < last; k++) theta[k] -= reference;
  }
  for (size_t a = 0; a < n; a++) {
    theta[offsets_at(model) + a] = gsl_ran_gaussian_ziggurat(rng, 1);
    theta[scales_at(model) + a] = log(model->rate) - le_draw_log_gamma(rng, model->shape);
  }
}

/* ---- likelihood ---- */

/* What is kept for several tiles at once should fit in the nearest caches: shares, and slopes with excesses. */
enum { SHARES_MOST = 4096, SLOPES_MOST = 16384 };

typedef struct workspace {
  size_t n, p, components;
  size_t together;   /* tiles whose shares, and whatever comes of them, are kept */
  double mean_scale;
  double *y;         /* tiles of the observations, less the location */
  double *peak;      /* [component]: log of its weight and of its normalising constant */
  double *weight;    /* [component] */
  double *rate;      /* [component][dimension]: exp(-u/2) / sqrt(2) */
  double *minus;     /* [component][dimension]: -mean_scale t / sqrt(2) */
  double *st;        /* [component][dimension]: mean_scale t */
  double *moments;   /* [component][1 + 2 p]: sums of share, then share z and share z^2 by dimension */
  double *share;     /* tiles: log density of each component, then over the largest, then the responsibility */
  double *slope;     /* tiles: [component][1 + 2 p]: see log_lik_hess */
  double *excess;
  double *sums;      /* [1 + 2 p][1 + 2 p]: of their products */
} workspace;

/* Of the same rows with floats. */
typedef struct single_workspace {
  size_t n, p, components, together;
  float *y, *peak, *rate, *minus, *share;
  double *moments;
} single_workspace;

#define VECTOR_BODY "models/mixture_body.h"
#define VECTOR_SINGLE_BODY "models/mixture_single_body.h"
#include "base/variants.h"

typedef struct kernels {
  double (*log_lik)(const workspace *w);
  double (*log_lik_moments)(const workspace *w);
  void (*narrow)(size_t tiles, size_t columns, const double *from, float *to, double *largest);
  void (*moments_alone)(const single_workspace *w);
  void (*add_values)(const workspace *w, size_t from, int shares, double *lanes);
  void (*add_moments)(const workspace *w, size_t from);
  void (*derive)(const workspace *w, size_t from);
  void (*pair)(const workspace *w, size_t from, size_t k, size_t l);
  void (*each)(const workspace *w, size_t t, double *value);
  void (*apart)(size_t n, double mean_scale, const double *t, const double *u, const double *other_t, const double *other_u, double *out);
} kernels;

#define KERNELS(variant)                                                                               \
  {                                                                                                    \
    log_lik_##variant, log_lik_moments_##variant, narrow_##variant##_single,                           \
      moments_alone_##variant##_single, add_values_##variant, add_moments_##variant, derive_##variant, \
      pair_##variant, each_##variant, apart_##variant                                                  \
  }

static const kernels *kernels_of(const mixture *model)
{
  static const kernels table[] = TABLES(KERNELS);
  return &table[model->simd];
}

static size_t moments_of(const mixture *model) { return 1 + 2 * model->dimensions; }

/* As many tiles as leave `each` doubles for every one, one at the least. */
static size_t tiles_together(size_t most, size_t each, size_t n)
{
  const size_t fit = most / TILE / each, all = tiles_of(n);
  return fit < 1 || all < 1 ? 1 : fit < all ? fit : all;
}

static size_t round_up(size_t n) { return (n + LANES - 1) / LANES * LANES; }

/* Everything up to the shares, which begin at a cache line. */
static size_t fixed_size(const mixture *model, size_t n)
{
  const size_t p = model->dimensions, components = model->components;
  return round_up(tiles_of(n) * p * TILE + 2 * round_up(components) + 3 * round_up(components * p) +
                  components * moments_of(model));
}

static size_t single_floats(const mixture *model, size_t n)
{
  const size_t p = model->dimensions, components = model->components;
  return (tiles_of(n) * p + tiles_together(SHARES_MOST, components, n) * components) * TILE + components + 2 * components * p;
}

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const mixture *model = self;
  const size_t components = model->components, columns = moments_of(model);
  const size_t shares = tiles_together(SHARES_MOST, components, rows) * components * TILE;
  const size_t tiles = tiles_together(SLOPES_MOST, 2 * components * columns, rows);
  const size_t slopes = tiles * components * (2 * columns + 1) * TILE + columns * columns;
  const size_t single = shares + room_for_floats(single_floats(model, rows)) + model->dimensions;
  (void)particles;
  return 2 * LE_ALIGN_MORE + fixed_size(model, rows) + (single > slopes ? single : slopes);
}

static workspace divide_scratch(const mixture *model, const le_rows *rows, double *scratch)
{
  const size_t p = model->dimensions, components = model->components;
  workspace w = {.n = rows->n, .p = p, .components = components, .mean_scale = model->mean_scale};
  w.together = tiles_together(SHARES_MOST, components, rows->n);
  w.y = le_aligned(scratch);
  w.peak = w.y + tiles_of(rows->n) * p * TILE;
  w.weight = w.peak + round_up(components);
  w.rate = w.weight + round_up(components);
  w.minus = w.rate + round_up(components * p);
  w.st = w.minus + round_up(components * p);
  w.moments = w.st + round_up(components * p);
  w.share = w.y + fixed_size(model, rows->n);
  fill_tiles(model->simd, rows, p, w.y);
  for (size_t column = 0; column < tiles_of(rows->n) * p; column++)
    for (size_t r = 0; r < TILE; r++) w.y[column * TILE + r] -= model->location[column % p];
  return w;
}

/* What depends on the particle alone. Without values all densities may have a factor. */
static void prepare(const mixture *model, const double *theta, int values, workspace *w)
{
  const size_t p = model->dimensions, components = model->components, n = components * p;
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
  double sum;
  const double top = relative_weights(model, theta, w->weight, &sum), base = values ? log(sum) + (double)p * HALF_LOG_2PI : 0;
  for (size_t k = 0; k < components; k++) w->weight[k] /= sum;

  for (size_t k = 0; k < components; k++) {
    w->peak[k] = (k + 1 < components ? theta[k] - top : -top) - base;
    for (size_t a = k * p; a < (k + 1) * p; a++) w->peak[k] -= 0.5 * u[a];
  }
  le_vector_exp(model->simd, n, -0.5, 0, u, w->rate);
  for (size_t a = 0; a < n; a++) {
    w->st[a] = model->mean_scale * t[a];
    if (!(w->rate[a] <= LARGEST_PRECISION_ROOT && fabs(w->st[a]) <= LARGEST_OFFSET)) {
      w->peak[a / p] = -INFINITY;
      w->rate[a] = w->st[a] = 0;
    }
    w->rate[a] *= M_SQRT1_2;
    w->minus[a] = -M_SQRT1_2 * w->st[a];
  }
}

static void clear_moments(const mixture *model, workspace *w)
{
  memset(w->moments, 0, model->components * moments_of(model) * sizeof(double));
}

/* From sums of z' to those of z. */
static void finish_moments(const mixture *model, workspace *w)
{
  for (size_t k = 0; k < model->components; k++)
    for (size_t j = 0; j < model->dimensions; j++) {
      double *moments = w->moments + k * moments_of(model) + 1 + 2 * j;
      moments[0] *= M_SQRT2;
      moments[1] *= 2;
    }
}

static void add_gradient(const mixture *model, size_t n, const workspace *w, double *grad)
{
  size_t p = model->dimensions;
  for (size_t k = 0; k < model->components; k++) {
    const double *moments = w->moments + k * moments_of(model);
    if (k + 1 < model->components) add_finite(moments[0] - (double)n * w->weight[k], &grad[k]);
    for (size_t j = 0; j < p; j++) {
      size_t a = k * p + j;
      double first = moments[1 + 2 * j], second = moments[2 + 2 * j];
      add_finite(model->mean_scale * first, &grad[offsets_at(model) + a]);
      add_finite(0.5 * (second + w->st[a] * first - moments[0]), &grad[scales_at(model) + a]);
    }
  }
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                         double *scratch)
{
  const mixture *model = self;
  workspace w = divide_scratch(model, rows, scratch);
  for (size_t i = 0; i < m; i++) {
    prepare(model, theta + i * dim(self), 1, &w);
    add_value(kernels_of(model)->log_lik(&w), &value[i]);
  }
  return LE_OK;
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                              double *grad, double *scratch)
{
  const mixture *model = self;
  const size_t d = dim(self);
  workspace w = divide_scratch(model, rows, scratch);
  for (size_t i = 0; i < m; i++) {
    prepare(model, theta + i * d, 1, &w);
    clear_moments(model, &w);
    add_value(kernels_of(model)->log_lik_moments(&w), &value[i]);
    finish_moments(model, &w);
    add_gradient(model, rows->n, &w, grad + i * d);
  }
  return LE_OK;
}

/* Beyond the shares of the doubles; `largest` has as many numbers as a row. */
static single_workspace prepare_single(const mixture *model, const workspace *w, double **largest)
{
  const size_t p = w->p, components = w->components, tiles = tiles_of(w->n);
  single_workspace s = {.n = w->n, .p = p, .components = components, .together = w->together, .moments = w->moments};
  double *beyond = le_aligned(w->share + w->together * components * TILE);
  s.y = (float *)beyond;
  s.share = s.y + tiles * p * TILE;
  s.peak = s.share + s.together * components * TILE;
  s.rate = s.peak + components;
  s.minus = s.rate + components * p;
  *largest = beyond + room_for_floats(single_floats(model, w->n));
  kernels_of(model)->narrow(tiles, p, w->y, s.y, *largest);
  return s;
}

/* What `prepare` found, densities relative to the greatest that there can be. Are exponents near enough to 0? */
static int take_single(const workspace *w, const single_workspace *s, const double *largest)
{
  int fits = 1;
  double top = -INFINITY;
  for (size_t k = 0; k < w->components; k++) top = fmax(top, w->peak[k]);
  for (size_t k = 0; k < w->components; k++) {
    s->peak[k] = (float)(w->peak[k] - top);
    for (size_t j = 0; j < w->p; j++) {
      const size_t a = k * w->p + j;
      const double part = w->rate[a] * largest[j];
      fits = fits && part * part + w->minus[a] * w->minus[a] <= SINGLE_MOST * SINGLE_MOST;
      s->rate[a] = (float)w->rate[a];
      s->minus[a] = (float)w->minus[a];
    }
  }
  return fits && isfinite(top);
}

static le_status log_lik_grad_alone(const void *self, size_t m, const double *theta, const le_rows *rows, double *grad,
                                    double *scratch)
{
  const mixture *model = self;
  const kernels *kernel = kernels_of(model);
  const size_t d = dim(self);
  double *largest;
  workspace w = divide_scratch(model, rows, scratch);
  const single_workspace s = prepare_single(model, &w, &largest);
  for (size_t i = 0; i < m; i++) {
    prepare(model, theta + i * d, 0, &w);
    clear_moments(model, &w);
    if (take_single(&w, &s, largest)) kernel->moments_alone(&s);
    else (void)kernel->log_lik_moments(&w);
    finish_moments(model, &w);
    add_gradient(model, rows->n, &w, grad + i * d);
  }
  return LE_OK;
}

/* ---- second derivatives ----
 * Let h_a be the derivative of component c(a)'s log density in coordinate a (one for its log-ratio), r_c its
 * responsibility.  Then the matrix of a row is
 *   [c(a) = c(b)] r_c h_a h_b - (r h)_a (r h)_b  +  sum_k r_k (second derivatives of log f_k)  -  W
 * with W = diag(weight) - weight weight' among the log-ratios.  The first two terms are products of
 * slope_a = r h_a with excess_b = (1 - r) h_b inside a component and with -slope_b across; the third needs only
 * the moments of z. */

/* Where column c of component k stands among the parameters: its log-ratio, which the last has not, its offsets, its
 * log-scales. */
static size_t place_of(const mixture *model, size_t k, size_t c)
{
  const size_t p = model->dimensions;
  return c == 0 ? k : c <= p ? offsets_at(model) + k * p + c - 1 : scales_at(model) + k * p + c - 1 - p;
}

static void add_pair(const mixture *model, size_t k, size_t l, const double *sums, double *hess)
{
  const size_t d = dim(model), columns = moments_of(model);
  for (size_t i = k + 1 == model->components; i < columns; i++)
    for (size_t j = l + 1 == model->components; j < (k == l ? i + 1 : columns); j++) {
      const size_t a = place_of(model, k, i), b = place_of(model, l, j);
      const double entry = k == l ? sums[i * columns + j] : -sums[i * columns + j];
      hess[a * d + b] += entry;
      if (a != b) hess[b * d + a] += entry;
    }
}

/* Adds the entries of one component and dimension: offset with offset, offset with scale, scale with scale. */
static void add_local(const mixture *model, size_t a, double oo, double os, double ss, double *hess)
{
  size_t d = dim(model), offset = offsets_at(model) + a, scale = scales_at(model) + a;
  hess[offset * d + offset] += oo;
  hess[offset * d + scale] += os;
  hess[scale * d + offset] += os;
  hess[scale * d + scale] += ss;
}

/* Second derivatives of log f with w = z + s t:  -s^2,  -s w / 2,  -(w^2 + z w) / 4. */
static void add_component_curvature(const mixture *model, const workspace *w, double *hess)
{
  size_t p = model->dimensions;
  double s = model->mean_scale;
  for (size_t a = 0; a < model->components * p; a++) {
    const double *moments = w->moments + a / p * moments_of(model);
    double count = moments[0], first = moments[1 + 2 * (a % p)], second = moments[2 + 2 * (a % p)], st = w->st[a];
    add_local(model, a, -s * s * count, -0.5 * s * (first + st * count),
              -0.25 * (2 * second + 3 * st * first + st * st * count), hess);
  }
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows, double *grad, double *hess,
                              double *scratch)
{
  const mixture *model = self;
  const kernels *kernel = kernels_of(model);
  const size_t columns = moments_of(model);
  workspace w = divide_scratch(model, rows, scratch);
  double lanes[LANES] = {0}, value = 0;
  w.together = tiles_together(SLOPES_MOST, 2 * model->components * columns, rows->n);
  w.slope = w.share + w.together * model->components * TILE;
  w.excess = w.slope + w.together * model->components * columns * TILE;
  w.sums = w.excess + w.together * model->components * columns * TILE;
  prepare(model, theta, 1, &w);
  clear_moments(model, &w);
  for (size_t t = 0; t < tiles_of(rows->n); t += w.together) {
    kernel->add_values(&w, t, 1, lanes);
    kernel->add_moments(&w, t);
    kernel->derive(&w, t);
    for (size_t k = 0; k < model->components; k++)
      for (size_t l = 0; l <= k; l++) {
        memset(w.sums, 0, columns * columns * sizeof(double));
        kernel->pair(&w, t, k, l);
        add_pair(model, k, l, w.sums, hess);
      }
  }
  for (size_t l = 0; l < LANES; l++) value += lanes[l];
  finish_moments(model, &w);
  add_gradient(model, rows->n, &w, grad);
  add_component_curvature(model, &w, hess);
  add_weight_curvature(model, theta, (double)rows->n, hess);
  return isfinite(value) ? LE_OK : LE_NOT_FINITE;
}

/* The expected information of the completed data, each row belonging to component k with its responsibility.
 * Under component k, z is standard normal and w = z + s t, so minus the second derivatives above become
 *   s^2,  s^2 t / 2,  (2 + s^2 t^2) / 4,
 * with determinant s^2 / 2: positive definite wherever a component has any share at all. */
static le_status information(const void *self, const double *theta, const le_rows *rows, double *info,
                             double *scratch)
{
  const mixture *model = self;
  workspace w = divide_scratch(model, rows, scratch);
  const size_t p = model->dimensions;
  const double s = model->mean_scale;
  prepare(model, theta, 1, &w);
  clear_moments(model, &w);
  const double value = kernels_of(model)->log_lik_moments(&w);
  for (size_t a = 0; a < model->components * p; a++) {
    double count = w.moments[a / p * moments_of(model)], st = w.st[a];
    add_local(model, a, s * s * count, 0.5 * s * st * count, 0.25 * (2 + st * st) * count, info);
  }
  add_weight_curvature(model, theta, -(double)rows->n, info);
  return isfinite(value) ? LE_OK : LE_NOT_FINITE;
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows, double *value,
                              double *scratch)
{
  const mixture *model = self;
  workspace w = divide_scratch(model, rows, scratch);
  const size_t n = rows->n;
  double tile[TILE];
  for (size_t i = 0; i < m; i++) {
    prepare(model, theta + i * dim(self), 1, &w);
    for (size_t t = 0; t < tiles_of(n); t++) {
      kernels_of(model)->each(&w, t, tile);
      for (size_t r = 0; r < rows_in_tile(n, t); r++)
        value[i * n + t * TILE + r] = tile[r] < INFINITY ? tile[r] : -INFINITY; /* not a number counts as impossible */
    }
  }
  return LE_OK;
}

/* ---- simulation ---- */

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n, double *rows)
{
  const mixture *model = self;
  size_t p = model->dimensions;
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
  double weight[MOST_COMPONENTS];
  log_weights(model, theta, weight);
  for (size_t r = 0; r < n; r++) {
    double left = gsl_rng_uniform(rng);
    size_t k = 0;
    while (k + 1 < model->components && (left -= exp(weight[k])) >= 0) k++;
    for (size_t j = 0; j < p; j++) {
      double sd = exp(0.5 * u[k * p + j]);
      rows[r * p + j] =
        model->location[j] + sd * (model->mean_scale * t[k * p + j] + gsl_ran_gaussian_ziggurat(rng, 1));
    }
  }
}

/* ---- relabelling ----
 * A distance between a component of theta and one of the reference depends on nothing but these two, hence the
 * sum over the best matching is the same for all relabellings of theta, and almost surely one of them alone has
 * it in the order of the reference. */

static double log_symmetry(const void *self) { return ((const mixture *)self)->log_symmetry; }

/* Coordinates of two components (weight, standardised means, log variances) that are nearly the same: a climb ends this near to its peak. */
static int are_alike(const mixture *model, const double *theta, size_t a, size_t b)
{
  const size_t K = model->components, p = model->dimensions;
  const double near = 0.1, wa = a + 1 < K ? theta[a] : 0, wb = b + 1 < K ? theta[b] : 0;
  if (fabs(wa - wb) > near) return 0;
  for (size_t part = 0; part < 2; part++)
    for (size_t j = 0; j < p; j++) {
      const double *block = theta + K - 1 + part * K * p;
      if (fabs(block[a * p + j] - block[b * p + j]) > near) return 0;
    }
  return 1;
}

static double log_orbit(const void *self, const double *theta)
{
  const mixture *model = self;
  double orbit = model->log_symmetry;
  for (size_t k = 1; k < model->components; k++) {
    size_t before = 0;
    for (size_t c = 0; c < k; c++) before += (size_t)are_alike(model, theta, k, c);
    orbit -= log((double)before + 1);
  }
  return orbit;
}

/* Of every component and every one of the reference: squared difference of the means over the sum of the variances; then the
 * difference of u and, with a small weight, of the log weights. */
static void distances(const mixture *model, const double *theta, const double *log_weight, const double *reference,
                      const double *reference_log_weight, double (*sum)[MOST_COMPONENTS])
{
  const size_t components = model->components, p = model->dimensions, n = components * p;
  double t[TOGETHER], u[TOGETHER], apart[TOGETHER];
  for (size_t k = 0; k < components; k++) {
    const double *own_t = theta + offsets_at(model) + k * p, *own_u = theta + scales_at(model) + k * p;
    size_t slot = 0, j = 0, at = 0;
    for (size_t s = 0; s < components; s++)
      sum[k][s] = 0.1 * (log_weight[k] - reference_log_weight[s]) * (log_weight[k] - reference_log_weight[s]);
    for (size_t from = 0; from < n; from += TOGETHER) {
      const size_t here = n - from < TOGETHER ? n - from : TOGETHER;
      for (size_t a = 0; a < here; a++, j = j + 1 < p ? j + 1 : 0) {
        t[a] = own_t[j];
        u[a] = own_u[j];
      }
      kernels_of(model)->apart(here, model->mean_scale, t, u, reference + offsets_at(model) + from, reference + scales_at(model) + from, apart);
      for (size_t a = 0; a < here; a++) {
        sum[k][slot] += apart[a];
        if (++at == p) {
          at = 0;
          slot++;
        }
      }
    }
  }
}

/* From distances to what their assignment costs: the logarithm keeps one stray component from deciding how all others are
 * matched. */
static void cost_of_distances(const mixture *model, double (*cost)[MOST_COMPONENTS])
{
  const size_t components = model->components;
  double more[MOST_COMPONENTS], logs[MOST_COMPONENTS];
  for (size_t k = 0; k < components; k++) {
    for (size_t s = 0; s < components; s++) more[s] = 1 + cost[k][s];
    le_vector_log(model->simd, components, more, logs);
    for (size_t s = 0; s < components; s++) {
      cost[k][s] = logs[s] + (cost[k][s] - (more[s] - 1)) / more[s]; /* what rounding 1 + distance has lost */
      cost[k][s] = cost[k][s] < 1e3 ? cost[k][s] : 1e3;              /* also when it is not a number */
    }
  }
}

/* The cheapest assignment by shortest augmenting paths (Hungarian method in the form of Jonker and Volgenant):
 * taken[slot] is the component that goes to the slot.  Index K stands for the component still unassigned. */
static void assign(size_t n, double (*cost)[MOST_COMPONENTS], size_t *taken)
{
  double by_component[MOST_COMPONENTS] = {0}, by_slot[MOST_COMPONENTS + 1] = {0};
  size_t owner[MOST_COMPONENTS + 1], came_from[MOST_COMPONENTS + 1] = {0};
  for (size_t slot = 0; slot <= n; slot++) owner[slot] = n;
  for (size_t k = 0; k < n; k++) {
    double shortest[MOST_COMPONENTS];
    char reached[MOST_COMPONENTS + 1] = {0};
    size_t slot = n;
    owner[n] = k;
    for (size_t s = 0; s < n; s++) shortest[s] = INFINITY;
    do {
      double step = INFINITY;
      size_t component = owner[slot], next = 0;
      reached[slot] = 1;
      for (size_t s = 0; s < n; s++) {
        if (reached[s]) continue;
        double reduced = cost[component][s] - by_component[component] - by_slot[s];
        if (reduced < shortest[s]) {
          shortest[s] = reduced;
          came_from[s] = slot;
        }
        if (shortest[s] < step) {
          step = shortest[s];
          next = s;
        }
      }
      for (size_t s = 0; s <= n; s++)
        if (reached[s]) {
          by_component[owner[s]] += step;
          by_slot[s] -= step;
        } else if (s < n) {
          shortest[s] -= step;
        }
      slot = next;
    } while (owner[slot] != n);
    while (slot != n) {
      owner[slot] = owner[came_from[slot]];
      slot = came_from[slot];
    }
  }
  memcpy(taken, owner, n * sizeof *taken);
}

/* Whether leaving everything in place is as good, rounding aside: only slots that would change count. */
static int identity_is_best(size_t n, double (*cost)[MOST_COMPONENTS], const size_t *taken)
{
  double gain = 0, size = 0;
  for (size_t s = 0; s < n; s++) {
    gain += cost[s][s] - cost[taken[s]][s];
    size += taken[s] == s ? 0 : cost[s][s] + cost[taken[s]][s];
  }
  return gain <= 4 * DBL_EPSILON * size;
}

static int nearest_are_own(size_t n, double (*cost)[MOST_COMPONENTS])
{
  for (size_t k = 0; k < n; k++)
    for (size_t s = 0; s < n; s++)
      if (!(cost[k][s] >= cost[k][k])) return 0;
  return 1;
}

static double log_ratio(const mixture *model, const double *theta, size_t k)
{
  return k + 1 < model->components ? theta[k] : 0;
}

/* Orders components by their coordinates, one after the other; 0 means the same in all of them. */
static int compare(const mixture *model, const double *theta, size_t k, size_t l)
{
  size_t p = model->dimensions;
  for (size_t at = offsets_at(model); at <= scales_at(model); at += model->components * p)
    for (size_t j = 0; j < p; j++) {
      double one = theta[at + k * p + j], other = theta[at + l * p + j];
      if (one != other) return one < other ? -1 : 1;
    }
  double one = log_ratio(model, theta, k), other = log_ratio(model, theta, l);
  return one == other ? 0 : one < other ? -1 : 1;
}

/* Where components of the reference are alike, for example all without observations, the order of what is matched to them says
 * nothing; sorting them leaves one.  Is that all there is to do? */
static int settle_alike(const mixture *model, const double *reference, const double *theta, size_t *taken)
{
  const size_t K = model->components;
  size_t group[MOST_COMPONENTS];
  int alone = 1;
  for (size_t s = 0; s < K; s++)
    for (group[s] = 0; group[s] < s && !are_alike(model, reference, s, group[s]);) group[s]++;
  for (size_t s = 0; s < K; s++) alone = alone && group[taken[s]] == group[s];
  for (size_t s = 0; s < K; s++)
    for (size_t later = s + 1; later < K; later++)
      if (group[s] == group[later] && compare(model, theta, taken[later], taken[s]) < 0) {
        size_t swap = taken[s];
        taken[s] = taken[later];
        taken[later] = swap;
      }
  return alone;
}

static void permute(const mixture *model, const size_t *taken, double *theta)
{
  size_t components = model->components, p = model->dimensions;
  double old[MOST_COMPONENTS];
  for (size_t k = 0; k < components; k++) old[k] = log_ratio(model, theta, k);
  for (size_t s = 0; s + 1 < components; s++) theta[s] = old[taken[s]] - old[taken[components - 1]];
  for (size_t j = 0; j < 2 * p; j++) {
    double *column = theta + (j < p ? offsets_at(model) + j : scales_at(model) + j - p);
    for (size_t k = 0; k < components; k++) old[k] = column[k * p];
    for (size_t s = 0; s < components; s++) column[s * p] = old[taken[s]];
  }
}

static int relabel(const void *self, const double *reference, double *theta)
{
  const mixture *model = self;
  size_t components = model->components, taken[MOST_COMPONENTS];
  double cost[MOST_COMPONENTS][MOST_COMPONENTS], weight[MOST_COMPONENTS], reference_weight[MOST_COMPONENTS];
  log_weights(model, theta, weight);
  log_weights(model, reference, reference_weight);
  distances(model, theta, weight, reference, reference_weight, cost);
  /* where everyone is nearest to their own place, as is usual, there is nothing to assign */
  const int settled = nearest_are_own(components, cost);
  if (!settled) {
    cost_of_distances(model, cost);
    assign(components, cost, taken);
  }
  if (settled || identity_is_best(components, cost, taken))
    for (size_t s = 0; s < components; s++) taken[s] = s;
  const int alike = settle_alike(model, reference, theta, taken);
  for (size_t s = 0; s < components; s++)
    if (taken[s] != s) {
      permute(model, taken, theta);
      return alike ? 2 : 1;
    }
  return 0;
}

/* ---- the user's scale: weights, means and standard deviations, components one behind the other ---- */

static size_t user_dim(const void *self)
{
  const mixture *model = self;
  return model->components * (1 + 2 * model->dimensions);
}

static void to_user(const void *self, const double *theta, double *user)
{
  const mixture *model = self;
  size_t components = model->components, n = components * model->dimensions;
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
  double *mean = user + components, *sd = mean + n;
  weights(model, theta, user);
  for (size_t a = 0; a < n; a++) {
    sd[a] = exp(0.5 * u[a]);
    mean[a] = model->location[a % model->dimensions] + model->mean_scale * sd[a] * t[a];
  }
}

/* Of one component: each column is normal numbers with a normal-inverse-gamma prior. */
static le_status exact(const void *self, const le_rows *rows, double *log_evidence)
{
  const mixture *model = self;
  const size_t p = model->dimensions;
  const double n = (double)rows->n, s2 = model->mean_scale * model->mean_scale, late = model->shape + 0.5 * n;
  *log_evidence = NAN;
  if (model->components > 1) return LE_OK;
  double sum = 0;
  for (size_t j = 0; j < p; j++) {
    double mean = 0, square = 0;
    for (size_t r = 0; r < rows->n; r++) mean += (rows->values[r * p + j] - model->location[j]) / n;
    for (size_t r = 0; r < rows->n; r++) square += pow(rows->values[r * p + j] - model->location[j] - mean, 2);
    const double rate = model->rate + 0.5 * (square + n * mean * mean / (1 + n * s2));
    sum += model->scale_constant + lgamma(late) - late * log(rate) - 0.5 * log1p(n * s2) - n * HALF_LOG_2PI;
  }
  *log_evidence = sum;
  return LE_OK;
}

/* ---- starts for climbs ----
 * Rows are divided into cells around seeds, those of k-means++ on columns of equal variance.  A
 * third of the starts makes each cell a component.  A third has fewer cells than components, as
 * posteriors of more components than clusters have peaks with empty ones; a third has more and
 * joins some at random, as one component may have to stand for several clusters.  A few steps of EM
 * then lead towards the peak. */

enum { EM_STEPS = 15, CELLS_MOST = 2 * MOST_COMPONENTS + 1 };

static size_t start_scratch(const void *self, size_t n)
{
  const mixture *model = self;
  const size_t seeds = n * (2 * model->components + 2) + model->dimensions, em = scratch_size(self, 1, n);
  return seeds > em ? seeds : em;
}

/* One over the variance of each column. */
static void column_weights(const le_rows *rows, double *weight)
{
  const size_t n = rows->n, p = rows->width;
  for (size_t j = 0; j < p; j++) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += rows->values[i * p + j] / (double)n;
    for (size_t i = 0; i < n; i++) square += pow(rows->values[i * p + j] - mean, 2) / (double)n;
    weight[j] = square > 0 ? 1 / square : 0;
  }
}

/* What one component and column has at its peak, given the sum of its rows' shares, and the sum and the sum of squares of their
 * distances from `centre`. */
static void set_component(const mixture *model, size_t a, double centre, double count, double first, double second, double *theta)
{
  const double s2 = model->mean_scale * model->mean_scale, off = centre - model->location[a % model->dimensions];
  const double step = (first - off / s2) / (count + 1 / s2), mean = off + step;
  const double square = fmax(second - 2 * step * first + step * step * count, 0) + mean * mean / s2;
  const double variance = (0.5 * square + model->rate) / (0.5 * count + model->shape);
  theta[scales_at(model) + a] = log(variance);
  theta[offsets_at(model) + a] = mean / (model->mean_scale * sqrt(variance));
}

static void set_weights(const mixture *model, const double *count, double *theta)
{
  const size_t last = model->components - 1;
  for (size_t k = 0; k < last; k++) theta[k] = log((count[k] + model->concentration) / (count[last] + model->concentration));
}

/* How many cells, and which component each belongs to. */
static size_t choose_cells(const mixture *model, size_t n, const gsl_rng *rng, size_t *owner)
{
  const size_t K = model->components, kind = gsl_rng_uniform_int(rng, 3);
  size_t cells = kind == 0 ? K : kind == 1 ? 1 + gsl_rng_uniform_int(rng, K) : K + 1 + gsl_rng_uniform_int(rng, K + 1);
  if (cells > n) cells = n;
  for (size_t c = 0; c < cells; c++) owner[c] = c < K ? c : gsl_rng_uniform_int(rng, K);
  return cells;
}

static void seed_components(const mixture *model, const le_rows *rows, const gsl_rng *rng, double *theta, double *scratch)
{
  const size_t n = rows->n, p = model->dimensions;
  size_t owner[CELLS_MOST];
  const size_t cells = choose_cells(model, n, rng, owner);
  double *share = scratch, *weight = share + n * cells, count[MOST_COMPONENTS] = {0};
  column_weights(rows, weight);
  le_start_shares(rows, cells, weight, rng, share, weight + p);
  for (size_t i = 0; i < n; i++) { /* from here on a row has the number of its component */
    size_t c = 0;
    while (c + 1 < cells && share[i * cells + c] == 0) c++;
    share[i] = (double)owner[c];
    count[owner[c]]++;
  }
  for (size_t a = 0; a < model->components * p; a++) {
    const size_t k = a / p, j = a % p;
    double mean = count[k] > 0 ? 0 : model->location[j], square = 0;
    for (size_t i = 0; i < n; i++)
      if (share[i] == (double)k) mean += rows->values[i * p + j] / count[k];
    for (size_t i = 0; i < n; i++)
      if (share[i] == (double)k) square += pow(rows->values[i * p + j] - mean, 2);
    set_component(model, a, mean, count[k], 0, square, theta);
  }
  set_weights(model, count, theta);
}

static void start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta, double *scratch)
{
  const mixture *model = self;
  const size_t K = model->components, p = model->dimensions;
  seed_components(model, rows, rng, theta, scratch);
  workspace w = divide_scratch(model, rows, scratch);
  for (int step = 0; step < EM_STEPS; step++) {
    double count[MOST_COMPONENTS];
    prepare(model, theta, 1, &w);
    clear_moments(model, &w);
    if (!isfinite(kernels_of(model)->log_lik_moments(&w))) return;
    finish_moments(model, &w);
    for (size_t k = 0; k < K; k++) count[k] = w.moments[k * moments_of(model)];
    for (size_t a = 0; a < K * p; a++) {
      const double *moments = w.moments + a / p * moments_of(model) + 1 + 2 * (a % p), sd = exp(0.5 * theta[scales_at(model) + a]);
      set_component(model, a, model->location[a % p] + w.st[a] * sd, count[a / p], sd * moments[0], sd * sd * moments[1], theta);
    }
    set_weights(model, count, theta);
  }
}

/* ---- coordinates for proposals ----
 * Given which rows belong to a component, its precision exp(-u) is gamma distributed, and so are
 * the weights but for their sum; t given u is normal with a constant variance and a mean
 * proportional to exp(-u/2).  Cube roots of gamma variables are nearly normal, even where a
 * component is empty (Wilson and Hilferty).  With 0 for the peak, the coordinates are
 *   u_0 + 3 (1 - exp(-(u - u_0)/3))                     in the place of u,
 *   t - t_0 exp(-(u - u_0)/2) + t_0 (1 - w/2)           in the place of t, w being what the former adds to u_0,
 * and likewise for the log-ratios, taken to the heaviest component of the peak. */

static size_t heaviest(const mixture *model, const double *theta)
{
  const size_t last = model->components - 1;
  size_t best = last;
  for (size_t k = 0; k < last; k++)
    if (theta[k] > (best == last ? 0 : theta[best])) best = k;
  return best;
}

/* Log-ratios to another component than the last: that of the last stands in the place of its own. */
static void change_reference(const mixture *model, size_t to, double *theta)
{
  const size_t last = model->components - 1;
  if (to == last) return;
  const double level = theta[to];
  for (size_t k = 0; k < last; k++) theta[k] -= level;
  theta[to] = -level;
}

/* The inverse is the same. */
static void ratios_to_heaviest(const mixture *model, const double *peak, double *theta, double *centre)
{
  const size_t last = model->components - 1, best = heaviest(model, peak);
  memcpy(centre, peak, last * sizeof(double));
  change_reference(model, best, theta);
  change_reference(model, best, centre);
}

static double to_normal(const void *self, const double *peak, const double *theta, double *out)
{
  const mixture *model = self;
  const size_t n = model->components * model->dimensions, t = offsets_at(model), u = scales_at(model);
  double centre[MOST_COMPONENTS], unused[MOST_COMPONENTS], sum = 0;
  memmove(out, theta, dim(self) * sizeof(double));
  ratios_to_heaviest(model, peak, out, centre);
  for (size_t k = 0; k < t; k++) {
    const double off = out[k] - centre[k];
    out[k] = centre[k] + 3 * expm1(off / 3);
    sum += off / 3;
  }
  ratios_to_heaviest(model, peak, out, unused);
  for (size_t a = 0; a < n; a++) {
    const double off = theta[u + a] - peak[u + a], w = -3 * expm1(-off / 3);
    out[t + a] = theta[t + a] - peak[t + a] * (expm1(-0.5 * off) + 0.5 * w);
    out[u + a] = peak[u + a] + w;
    sum -= off / 3;
  }
  return sum;
}

static int from_normal(const void *self, const double *peak, double *point)
{
  const mixture *model = self;
  const size_t n = model->components * model->dimensions, t = offsets_at(model), u = scales_at(model);
  double centre[MOST_COMPONENTS], unused[MOST_COMPONENTS];
  ratios_to_heaviest(model, peak, point, centre);
  for (size_t k = 0; k < t; k++) {
    const double w = point[k] - centre[k];
    if (!(w > -3)) return 0;
    point[k] = centre[k] + 3 * log1p(w / 3);
  }
  ratios_to_heaviest(model, peak, point, unused);
  for (size_t a = 0; a < n; a++) {
    const double w = point[u + a] - peak[u + a];
    if (!(w < 3)) return 0;
    const double off = -3 * log1p(-w / 3);
    point[t + a] += peak[t + a] * (expm1(-0.5 * off) + 0.5 * w);
    point[u + a] = peak[u + a] + off;
  }
  return 1;
}

/* ---- mean-field variational Bayes ----
 * q: shares (N x K), a Dirichlet for the weights (K), and for each component and column a normal-inverse-gamma, the prior's
 * kin: centre, count, shape and scale (K x p each), with mu | sigma^2 ~ N(centre, sigma^2 / count).  A bound is the same in
 * whatever parameters; draws are of theta. */

enum { Q_LABELS, Q_WEIGHTS, Q_COMPONENTS, Q_FACTORS };

typedef struct factors {
  size_t n, k, p;
  double *share, *alpha, *centre, *count, *shape, *scale;
} factors;

static factors divide(const mixture *model, size_t n, const double *q)
{
  factors f = {.n = n, .k = model->components, .p = model->dimensions, .share = (double *)(size_t)q};
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
               most = n + model->components + 2 * model->dimensions;
  return relabelling > most ? relabelling : most;
}

static size_t q_factors(const void *self)
{
  (void)self;
  return Q_FACTORS;
}

static double prior_count(const mixture *model) { return 1 / (model->mean_scale * model->mean_scale); }

static le_expected_variance expect(const factors *f, size_t at)
{
  const double q[2] = {f->shape[at], f->scale[at]};
  return le_expect_variance(q);
}

/* For each component E[log weight] and the part of the expected log density that no row alters. */
static void expect_peaks(const factors *f, double *peak)
{
  le_expect_log_proportions(f->k, f->alpha, peak);
  for (size_t at = 0; at < f->k * f->p; at++)
    peak[at / f->p] -= HALF_LOG_2PI + 0.5 * expect(f, at).log + 0.5 / f->count[at];
}

/* E of half the squared distance in standard deviations, but for what the spread of the mean adds. */
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
    for (size_t c = 0; c < f->k; c++) share[c] = peak[c] - half_distance(f, rows->values + i * f->p, c);
    le_to_shares(f->k, share);
  }
}

static void update_weights(const mixture *model, const factors *f)
{
  for (size_t c = 0; c < f->k; c++) f->alpha[c] = model->concentration;
  for (size_t i = 0; i < f->n * f->k; i++) f->alpha[i % f->k] += f->share[i];
}

/* Squares are taken around the new centres, which keeps their digits. */
static void update_components(const mixture *model, const factors *f, const le_rows *rows)
{
  const size_t k = f->k, p = f->p;
  const double before = prior_count(model);
  for (size_t at = 0; at < k * p; at++) {
    f->count[at] = before;
    f->centre[at] = before * model->location[at % p];
    f->shape[at] = model->shape;
    f->scale[at] = model->rate;
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
      for (size_t j = 0, at = c * p; j < p; j++, at++) f->scale[at] += half * (y[j] - f->centre[at]) * (y[j] - f->centre[at]);
    }
}

static le_status q_update(const void *self, const le_rows *rows, size_t factor, double *q, double *scratch)
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

/* Components at theta, as sure as an equal share of the rows would make them. */
static void start_at(const mixture *model, const factors *f, const double *theta)
{
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model), own = (double)f->n / (double)f->k;
  weights(model, theta, f->alpha);
  for (size_t c = 0; c < f->k; c++) f->alpha[c] = model->concentration + (double)f->n * f->alpha[c];
  for (size_t at = 0; at < f->k * f->p; at++) {
    f->count[at] = prior_count(model) + own;
    f->shape[at] = model->shape + 0.5 * own;
    f->scale[at] = f->shape[at] * exp(u[at]);
    f->centre[at] = model->location[at % f->p] + model->mean_scale * exp(0.5 * u[at]) * t[at];
  }
}

static le_status q_start(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng, double *q,
                         double *scratch)
{
  const mixture *model = self;
  const factors f = divide(model, rows->n, q);
  if (hint) {
    start_at(model, &f, hint);
    update_labels(&f, rows, scratch);
  } else {
    column_weights(rows, scratch);
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
  const le_inverse_gamma prior = {model->shape, model->rate};
  const double before = prior_count(model);
  double bound = le_entropy(f.n * f.k, f.share) + le_proportions_gain(f.k, model->concentration, f.alpha);
  expect_peaks(&f, scratch);
  for (size_t i = 0; i < f.n; i++)
    for (size_t c = 0; c < f.k; c++) {
      const double share = f.share[i * f.k + c];
      if (share > 0) bound += share * (scratch[c] - half_distance(&f, rows->values + i * f.p, c));
    }
  for (size_t at = 0; at < f.k * f.p; at++) {
    const double one[2] = {f.shape[at], f.scale[at]}, ratio = before / f.count[at];
    const double off = f.centre[at] - model->location[at % f.p];
    bound += le_variance_gain(prior, one) + 0.5 * (log(ratio) - ratio + 1 - before * off * off * one[0] / one[1]);
  }
  return bound;
}

static void q_draw(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point, double *scratch)
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

static double q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng, double *scratch)
{
  const mixture *model = self;
  return le_relabelling_gain(n, model->components, divide(model, n, q).share, 0, NULL, rng, scratch);
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

const le_model_ops le_mixture_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "gaussian_mixture",
  .traits = LE_MODEL_MULTIMODAL,
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
  .log_lik_grad_alone = log_lik_grad_alone,
  .log_lik_hess = log_lik_hess,
  .information = information,
  .log_lik_each = log_lik_each,
  .simulate = simulate,
  .exact = exact,
  .log_symmetry = log_symmetry,
  .log_orbit = log_orbit,
  .relabel = relabel,
  .user_dim = user_dim,
  .to_user = to_user,
  .variational = &variational,
  .start = start,
  .start_scratch = start_scratch,
  .to_normal = to_normal,
  .from_normal = from_normal,
};
