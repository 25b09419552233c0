/* The kernels of a mixture in double precision, for base/variants.h. */
#include "models/products.h"

typedef workspace V(space);
#include "models/mixture/weigh_body.h"

/* Adds the log-likelihood of the rows in the tiles kept from `from` on to partial sums; with
 * `shares` keeps their responsibilities. */
V_KERNEL void V(add_values)(const workspace *w, size_t from, int shares, double *lanes)
{
  int near = 1;
  vec value = v_load(lanes);
  for (size_t t = from; t < last_tile(w->n, w->together, from); t++) {
    vec tops, product;
    V(weigh_tile)(w, t, w->share + (t - from) * w->components * TILE, &near, &tops, &product,
                  shares);
    value = value + (tops + v_log(product));
  }
  v_store(lanes, value);
}

/* Slopes and excesses of the rows in the tiles kept from `from` on, from their responsibilities:
 * see derivatives.c. */
V_KERNEL void V(derive)(const workspace *w, size_t from)
{
  const size_t p = w->p, columns = 1 + 2 * p;
  for (size_t t = from; t < last_tile(w->n, w->together, from); t++)
    for (size_t k = 0; k < w->components; k++) {
      const double *y = w->y + t * p * TILE,
                   *share_at = w->share + ((t - from) * w->components + k) * TILE;
      const size_t first = ((t - from) * w->components + k) * columns * TILE;
      for (size_t at = 0; at < rows_in_tile(w->n, t); at += V_LANES) {
        double *slope = w->slope + first + at, *excess = w->excess + first + at;
        const vec share = v_load(share_at + at), rest = v_set(1) - share;
        v_store(slope, share);
        v_store(excess, rest);
        for (size_t j = 0; j < p; j++) {
          const size_t a = k * p + j;
          const vec z = v_fma(v_set(w->rate[a]), v_load(y + j * TILE + at), v_set(w->minus[a])) *
                        v_set(M_SQRT2);
          const vec in_offset = z * v_set(w->mean_scale);
          const vec in_scale = v_fma(z, z + v_set(w->st[a]), v_set(-1)) * v_set(0.5);
          v_store(slope + (1 + j) * TILE, share * in_offset);
          v_store(excess + (1 + j) * TILE, rest * in_offset);
          v_store(slope + (1 + p + j) * TILE, share * in_scale);
          v_store(excess + (1 + p + j) * TILE, rest * in_scale);
        }
      }
    }
}

/* The log densities of the rows of tile t. */
V_KERNEL void V(each)(const workspace *w, size_t t, double *value)
{
  const size_t here = rows_in_tile(w->n, t);
  V(densities)(w, t, w->share);
  for (size_t at = 0; at < here; at += V_LANES) {
    vec top, sum;
    V(compare)(w->components, here - at, w->share + at, &top, &sum);
    v_store(value + at, top + v_log(sum));
  }
}

/* For n offsets and scales against n others: the squared differences of the means over the sum of
 * the variances, and the squared differences of the scales. The first is written with the smaller
 * standard deviation over the larger, so that nothing overflows. */
V_KERNEL void V(apart)(size_t n, double mean_scale, const double *t, const double *u,
                       const double *other_t, const double *other_u, double *out)
{
  const vec zero = v_set(0), one = v_set(1);
  for (size_t a = 0; a < n; a += V_LANES) {
    const vec own = v_load_first(t + a, n - a), other = v_load_first(other_t + a, n - a);
    const vec gap = v_load_first(u + a, n - a) - v_load_first(other_u + a, n - a);
    const vec ratio = v_exp_down(v_min(gap, zero - gap) * v_set(0.5));
    const vec shift = v_if_less(zero, gap, v_fnma(ratio, other, own),
                                v_fma(ratio, own, zero - other)) *
                      v_set(mean_scale);
    v_store_first(out + a, n - a, v_fma(gap, gap, shift * shift / v_fma(ratio, ratio, one)));
  }
}
