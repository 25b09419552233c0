/* Second derivatives of the log-likelihood of a mixture.
 *
 * Let h_a be the derivative of the log density of component c(a) by coordinate a (one for its
 * log-ratio), and r_c its responsibility. Then the matrix of a row is
 *
 *     [c(a) = c(b)] r_c h_a h_b - (r h)_a (r h)_b + sum_k r_k (second derivatives of log f_k) - W
 *
 * with W = diag(weight) - weight weight' for the log-ratios. The first two terms are products of
 * slope_a = r h_a with excess_b = (1 - r) h_b within a component, and with -slope_b between
 * components; the third needs only the moments of z. */
#include "models/mixture/parts.h"

/* Adds the products of the slopes of component k with those of component l, or with its own
 * excesses, in the tiles kept from `from` on. */
static void add_pair(const mixture *model, const workspace *w, size_t from, size_t k, size_t l,
                     double *hess)
{
  const size_t d = dim(model), columns = columns_of(model), step = w->components * columns * TILE;
  const double *other = k == l ? w->excess : w->slope;
  memset(w->sums, 0, columns * columns * sizeof(double));
  le_products_for(model->simd)->cross(rows_between(w->n, w->together, from), columns,
                                      w->slope + k * columns * TILE, step, columns,
                                      other + l * columns * TILE, step, w->sums, columns);
  for (size_t i = k + 1 == model->components; i < columns; i++)
    for (size_t j = l + 1 == model->components; j < (k == l ? i + 1 : columns); j++) {
      const size_t a = place_of(model, k, i), b = place_of(model, l, j);
      const double entry = k == l ? w->sums[i * columns + j] : -w->sums[i * columns + j];
      hess[a * d + b] += entry;
      if (a != b) hess[b * d + a] += entry;
    }
}

/* Adds the second derivatives for one component and dimension: offset-offset, offset-scale,
 * scale-scale. */
static void add_local(const mixture *model, size_t a, double oo, double os, double ss, double *hess)
{
  size_t d = dim(model), offset = offsets_at(model) + a, scale = scales_at(model) + a;
  hess[offset * d + offset] += oo;
  hess[offset * d + scale] += os;
  hess[scale * d + offset] += os;
  hess[scale * d + scale] += ss;
}

/* Second derivatives of log f with w = z + s t: -s^2, -s w / 2, -(w^2 + z w) / 4. */
static void add_component_curvature(const mixture *model, const workspace *w, double *hess)
{
  size_t p = model->dimensions;
  double s = model->mean_scale;
  for (size_t a = 0; a < model->components * p; a++) {
    const double *moments = w->moments + a / p * columns_of(model);
    double count = moments[0], first = moments[1 + 2 * (a % p)], second = moments[2 + 2 * (a % p)],
           st = w->st[a];
    add_local(model, a, -s * s * count, -0.5 * s * (first + st * count),
              -0.25 * (2 * second + 3 * st * first + st * st * count), hess);
  }
}

le_status le_mixture_log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                                  double *grad, double *hess, double *scratch)
{
  const mixture *model = self;
  const kernels *kernel = le_mixture_kernels(model);
  const size_t columns = columns_of(model);
  workspace w = le_mixture_divide(model, rows, scratch);
  double lanes[LANES] = {0};
  w.together = tiles_together(SLOPES_MOST, 2 * model->components * columns, rows->n);
  w.slope = w.share + w.together * model->components * TILE;
  w.excess = w.slope + w.together * model->components * columns * TILE;
  w.sums = w.excess + w.together * model->components * columns * TILE;
  le_mixture_prepare(model, theta, 1, &w);
  for (size_t t = 0; t < tiles_of(rows->n); t += w.together) {
    kernel->add_values(&w, t, 1, lanes);
    kernel->add_moments(&w, t);
    kernel->derive(&w, t);
    for (size_t k = 0; k < model->components; k++)
      for (size_t l = 0; l <= k; l++) add_pair(model, &w, t, k, l, hess);
  }
  le_mixture_finish_moments(model, &w);
  le_mixture_add_gradient(model, rows->n, &w, grad);
  add_component_curvature(model, &w, hess);
  le_mixture_add_weight_curvature(model, theta, (double)rows->n, hess);
  return isfinite(sum_lanes(lanes)) ? LE_OK : LE_NOT_FINITE;
}

/* The expected information of the completed data, in which each row belongs to component k with its
 * responsibility. Under component k, z is standard normal and w = z + s t, so minus the expected
 * second derivatives are
 *
 *     s^2,  s^2 t / 2,  (2 + s^2 t^2) / 4,
 *
 * with determinant s^2 / 2: positive definite for every component with a positive share. */
le_status le_mixture_information(const void *self, const double *theta, const le_rows *rows,
                                 double *info, double *scratch)
{
  const mixture *model = self;
  workspace w = le_mixture_divide(model, rows, scratch);
  const size_t p = model->dimensions;
  const double s = model->mean_scale;
  const double value = le_mixture_moments(model, theta, &w);
  for (size_t a = 0; a < model->components * p; a++) {
    double count = w.moments[a / p * columns_of(model)], st = w.st[a];
    add_local(model, a, s * s * count, 0.5 * s * st * count, 0.25 * (2 + st * st) * count, info);
  }
  le_mixture_add_weight_curvature(model, theta, -(double)rows->n, info);
  return isfinite(value) ? LE_OK : LE_NOT_FINITE;
}
