/* Coordinates for importance-sampling proposals, in which the posterior of a mixture is nearly
 * normal.
 *
 * Given which rows belong to a component, its precision exp(-u) is gamma distributed, and the
 * weights are gamma variables divided by their sum; t given u is normal with a constant variance
 * and a mean proportional to exp(-u/2). Cube roots of gamma variables are nearly normal, even if a
 * component is empty (Wilson and Hilferty). With subscript 0 for the mode, the coordinates are
 *
 *     u_0 + w                                     instead of u,  w = 3 (1 - exp(-(u - u_0)/3)),
 *     t - t_0 exp(-(u - u_0)/2) + t_0 (1 - w/2)   instead of t,
 *
 * and likewise for the log-ratios, which are taken relative to the component that is heaviest at
 * the mode. */
#include "models/mixture/parts.h"

/* Log-ratios to component `to` instead of the last; the ratio of the last takes the place of that
 * of `to`. This function is its own inverse. */
static void change_reference(const mixture *model, size_t to, double *theta)
{
  const size_t last = model->components - 1;
  if (to == last) return;
  const double level = theta[to];
  for (size_t k = 0; k < last; k++) theta[k] -= level;
  theta[to] = -level;
}

/* Returns the component that is heaviest at the mode, and sets the mode's log-ratios to it. */
static size_t heaviest(const mixture *model, const double *peak, double *centre)
{
  const size_t last = model->components - 1;
  size_t best = last;
  for (size_t k = 0; k < last; k++)
    if (peak[k] > log_ratio(model, peak, best)) best = k;
  memcpy(centre, peak, last * sizeof(double));
  change_reference(model, best, centre);
  return best;
}

double le_mixture_to_normal(const void *self, const double *peak, const double *theta, double *out)
{
  const mixture *model = self;
  const size_t n = model->components * model->dimensions, t = offsets_at(model),
               u = scales_at(model);
  double centre[MOST_COMPONENTS], sum = 0;
  memmove(out, theta, dim(self) * sizeof(double));
  const size_t best = heaviest(model, peak, centre);
  change_reference(model, best, out);
  for (size_t k = 0; k < t; k++) {
    const double off = out[k] - centre[k];
    out[k] = centre[k] + 3 * expm1(off / 3);
    sum += off / 3;
  }
  change_reference(model, best, out);
  for (size_t a = 0; a < n; a++) {
    const double off = theta[u + a] - peak[u + a], w = -3 * expm1(-off / 3);
    out[t + a] = theta[t + a] - peak[t + a] * (expm1(-0.5 * off) + 0.5 * w);
    out[u + a] = peak[u + a] + w;
    sum -= off / 3;
  }
  return sum;
}

int le_mixture_from_normal(const void *self, const double *peak, double *point)
{
  const mixture *model = self;
  const size_t n = model->components * model->dimensions, t = offsets_at(model),
               u = scales_at(model);
  double centre[MOST_COMPONENTS];
  const size_t best = heaviest(model, peak, centre);
  change_reference(model, best, point);
  for (size_t k = 0; k < t; k++) {
    const double w = point[k] - centre[k];
    if (!(w > -3)) return 0;
    point[k] = centre[k] + 3 * log1p(w / 3);
  }
  change_reference(model, best, point);
  for (size_t a = 0; a < n; a++) {
    const double w = point[u + a] - peak[u + a];
    if (!(w < 3)) return 0;
    const double off = -3 * log1p(-w / 3);
    point[t + a] += peak[t + a] * (expm1(-0.5 * off) + 0.5 * w);
    point[u + a] = peak[u + a] + off;
  }
  return 1;
}
