/* The log-likelihood of a mixture and its gradient. */
#include "models/mixture/parts.h"

/* If the precision is larger, the component is a spike with no observation in it, and its density
 * is set to zero. This prevents overflow of z^2, and products of zero weights with infinite
 * residuals. */
#define LARGEST_PRECISION_ROOT 1e100
#define LARGEST_OFFSET 1e150

#define VECTOR_BODY "models/mixture/density_body.h"
#define VECTOR_SINGLE_BODY "models/mixture/density_single_body.h"
#include "base/variants.h"

#define KERNELS(variant)                                                                           \
  {                                                                                                \
    narrow_##variant##_single, moments_alone_##variant##_single, add_values_##variant,             \
      add_moments_##variant, derive_##variant, each_##variant, apart_##variant                     \
  }

const kernels *le_mixture_kernels(const mixture *model)
{
  static const kernels table[] = TABLES(KERNELS);
  return &table[model->simd];
}

static size_t round_up(size_t n) { return (n + LANES - 1) / LANES * LANES; }

/* Scratch before the shares, which begin at a cache line. */
static size_t fixed_size(const mixture *model, size_t n)
{
  const size_t p = model->dimensions, components = model->components;
  return round_up(tiles_of(n) * p * TILE + 2 * round_up(components) + 3 * round_up(components * p) +
                  components * columns_of(model));
}

static size_t single_floats(const mixture *model, size_t n)
{
  const size_t p = model->dimensions, components = model->components;
  return (tiles_of(n) * p + tiles_together(SHARES_MOST, components, n) * components) * TILE +
         components + 2 * components * p;
}

size_t le_mixture_scratch(const void *self, size_t particles, size_t rows)
{
  const mixture *model = self;
  const size_t components = model->components, columns = columns_of(model);
  const size_t shares = tiles_together(SHARES_MOST, components, rows) * components * TILE;
  const size_t tiles = tiles_together(SLOPES_MOST, 2 * components * columns, rows);
  const size_t slopes = tiles * components * (2 * columns + 1) * TILE + columns * columns;
  const size_t single = shares + room_for_floats(single_floats(model, rows)) + model->dimensions;
  (void)particles;
  return 2 * LE_ALIGN_MORE + fixed_size(model, rows) + (single > slopes ? single : slopes);
}

workspace le_mixture_divide(const mixture *model, const le_rows *rows, double *scratch)
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

void le_mixture_prepare(const mixture *model, const double *theta, int values, workspace *w)
{
  const size_t p = model->dimensions, components = model->components, n = components * p;
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
  double sum;
  const double top = le_mixture_relative_weights(model, theta, w->weight, &sum),
               base = values ? log(sum) + (double)p * HALF_LOG_2PI : 0;
  for (size_t k = 0; k < components; k++) w->weight[k] /= sum;

  for (size_t k = 0; k < components; k++) {
    w->peak[k] = log_ratio(model, theta, k) - top - base;
    for (size_t a = k * p; a < (k + 1) * p; a++) w->peak[k] -= 0.5 * u[a];
  }
  le_arrays(model->simd)->exp(n, -0.5, 0, u, w->rate);
  for (size_t a = 0; a < n; a++) {
    w->st[a] = model->mean_scale * t[a];
    if (!(w->rate[a] <= LARGEST_PRECISION_ROOT && fabs(w->st[a]) <= LARGEST_OFFSET)) {
      w->peak[a / p] = -INFINITY;
      w->rate[a] = w->st[a] = 0;
    }
    w->rate[a] *= M_SQRT1_2;
    w->minus[a] = -M_SQRT1_2 * w->st[a];
  }
  memset(w->moments, 0, components * columns_of(model) * sizeof(double));
}

/* The log-likelihood; with `moments` these are added, too. */
static double sum_rows(const mixture *model, int moments, const workspace *w)
{
  const kernels *kernel = le_mixture_kernels(model);
  double lanes[LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) {
    kernel->add_values(w, t, moments, lanes);
    if (moments) kernel->add_moments(w, t);
  }
  return sum_lanes(lanes);
}

void le_mixture_finish_moments(const mixture *model, workspace *w)
{
  for (size_t k = 0; k < model->components; k++)
    for (size_t j = 0; j < model->dimensions; j++) {
      double *moments = w->moments + k * columns_of(model) + 1 + 2 * j;
      moments[0] *= M_SQRT2;
      moments[1] *= 2;
    }
}

double le_mixture_moments(const mixture *model, const double *theta, workspace *w)
{
  le_mixture_prepare(model, theta, 1, w);
  const double value = sum_rows(model, 1, w);
  le_mixture_finish_moments(model, w);
  return value;
}

void le_mixture_add_gradient(const mixture *model, size_t n, const workspace *w, double *grad)
{
  size_t p = model->dimensions;
  for (size_t k = 0; k < model->components; k++) {
    const double *moments = w->moments + k * columns_of(model);
    if (k + 1 < model->components) add_finite(moments[0] - (double)n * w->weight[k], &grad[k]);
    for (size_t j = 0; j < p; j++) {
      size_t a = k * p + j;
      double first = moments[1 + 2 * j], second = moments[2 + 2 * j];
      add_finite(model->mean_scale * first, &grad[offsets_at(model) + a]);
      add_finite(0.5 * (second + w->st[a] * first - moments[0]), &grad[scales_at(model) + a]);
    }
  }
}

/* Stored after the shares of the doubles; `largest` has as many numbers as a row. */
static single_workspace prepare_single(const mixture *model, const workspace *w, double **largest)
{
  const size_t p = w->p, components = w->components, tiles = tiles_of(w->n);
  single_workspace s = {.n = w->n,
                        .p = p,
                        .components = components,
                        .together = w->together,
                        .moments = w->moments};
  double *beyond = le_aligned(w->share + w->together * components * TILE);
  s.y = (float *)beyond;
  s.share = s.y + tiles * p * TILE;
  s.peak = s.share + s.together * components * TILE;
  s.rate = s.peak + components;
  s.minus = s.rate + components * p;
  *largest = beyond + room_for_floats(single_floats(model, w->n));
  le_mixture_kernels(model)->narrow(tiles, p, w->y, s.y, *largest);
  return s;
}

/* Converts the result of `prepare`, with densities relative to the largest possible one. Returns
 * whether exponents are so close to 0 that single precision is enough. */
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

/* `value` and `grad` may be NULL. */
le_status le_mixture_log_lik_grad(const void *self, size_t m, const double *theta,
                                  const le_rows *rows, double *value, double *grad, double *scratch)
{
  const mixture *model = self;
  const size_t d = dim(self);
  double *largest = NULL;
  workspace w = le_mixture_divide(model, rows, scratch);
  single_workspace s = {0};
  if (!value) s = prepare_single(model, &w, &largest);
  for (size_t i = 0; i < m; i++) {
    le_mixture_prepare(model, theta + i * d, value != NULL, &w);
    if (!value && take_single(&w, &s, largest)) {
      le_mixture_kernels(model)->moments_alone(&s);
    } else {
      const double sum = sum_rows(model, grad != NULL, &w);
      if (value) add_value(sum, &value[i]);
    }
    if (!grad) continue;
    le_mixture_finish_moments(model, &w);
    le_mixture_add_gradient(model, rows->n, &w, grad + i * d);
  }
  return LE_OK;
}

le_status le_mixture_log_lik_each(const void *self, size_t m, const double *theta,
                                  const le_rows *rows, double *value, double *scratch)
{
  const mixture *model = self;
  workspace w = le_mixture_divide(model, rows, scratch);
  const size_t n = rows->n;
  double tile[TILE];
  for (size_t i = 0; i < m; i++) {
    le_mixture_prepare(model, theta + i * dim(self), 1, &w);
    for (size_t t = 0; t < tiles_of(n); t++) {
      le_mixture_kernels(model)->each(&w, t, tile);
      for (size_t r = 0; r < rows_in_tile(n, t); r++)
        /* NaN is treated as impossible */
        value[i * n + t * TILE + r] = tile[r] < INFINITY ? tile[r] : -INFINITY;
    }
  }
  return LE_OK;
}
