/* The kernels of a mixture, for base/variants.h.  With z' = z / sqrt(2) = rate y + minus a log density is peak - sum z'^2. */
#include "models/products_body.h"

#ifndef LE_MIXTURE_MACROS
#define LE_MIXTURE_MACROS

/* s_0r is the log density of one component in the r-th vector of rows. */
#define START_PEAK(q, r) vec s##q##r = v_set(w->peak[k]);
#define LOAD_Y(q, r) const vec y##r = v_load(y + j * TILE + at + r * V_LANES);
#define STANDARDISE(q, r) const vec z##r = v_fma(rate, y##r, minus);
#define MINUS_SQUARE(q, r) s##q##r = v_fnma(z##r, z##r, s##q##r);

/* Sums of share z' and share z'^2 in J dimensions at once, those of share beside. */
#define SET_COMPONENT(q, j) const vec rate##j = v_set(w->rate[a + j]), minus##j = v_set(w->minus[a + j]);
#define START_MOMENTS(q, j) vec first##j = v_set(0), second##j = v_set(0);
#define ADD_MOMENTS(q, j)                                                                              \
  const vec z##j = v_fma(rate##j, v_load(y + j * TILE + at), minus##j), weighted##j = share * z##j;    \
  first##j = v_fma(share, z##j, first##j);                                                             \
  second##j = v_fma(weighted##j, z##j, second##j);
#define SUM_MOMENTS_1 v_add_sums(moments + 1, 2, first0, second0, v_set(0), v_set(0));
#define SUM_MOMENTS_2 v_add_sums(moments + 1, 4, first0, second0, first1, second1);

/* For rows of tiles [from, from + together) and component a / p, whose dimension a % p is the first of the J. */
#define DEFINE_MOMENTS(J)                                                                              \
  V_KERNEL void V(moments_##J)(const workspace *w, size_t from, size_t a, double *count, double *moments) \
  {                                                                                                    \
    const size_t p = w->p, n = rows_between(w, from);                                                  \
    const double *share_at = w->share + a / p * TILE, *y = w->y + (from * p + a % p) * TILE;           \
    vec sum = v_set(0);                                                                                \
    ALONG(J, SET_COMPONENT) ALONG(J, START_MOMENTS)                                                    \
    for (size_t done = 0; done < n; done += TILE, share_at += w->components * TILE, y += p * TILE) {   \
      const size_t here = n - done < TILE ? n - done : TILE;                                           \
      for (size_t at = 0; at < here; at += V_LANES) {                                                  \
        const vec share = v_load(share_at + at);                                                       \
        sum = sum + share;                                                                             \
        ALONG(J, ADD_MOMENTS)                                                                          \
      }                                                                                                \
    }                                                                                                  \
    SUM_MOMENTS_##J                                                                                    \
    *count = v_sum(sum);                                                                               \
  }

#endif

DEFINE_MOMENTS(1) DEFINE_MOMENTS(2)

/* Log densities of all components in tile t. */
V_KERNEL void V(densities)(const workspace *w, size_t t, double *share)
{
  const double *y = w->y + t * w->p * TILE;
  for (size_t k = 0; k < w->components; k++, share += TILE)
    for (size_t at = 0; at < rows_in_tile(w->n, t); at += 4 * V_LANES) {
      double *out = share;
      ALONG(4, START_PEAK)
      for (size_t j = 0; j < w->p; j++) {
        const vec rate = v_set(w->rate[k * w->p + j]), minus = v_set(w->minus[k * w->p + j]);
        ALONG(4, LOAD_Y) ALONG(4, STANDARDISE) ALONG(4, MINUS_SQUARE)
      }
      ALL(1, 4, KEEP)
    }
}

/* From log densities to exp(log density - top) for the vector of rows whose first component is at `share`; log p(row) =
 * top + log(sum).  Where every component is impossible top is the most negative number, so that no difference of infinities
 * arises, and the sum is 0; else it is from 1 to K.  Rows that only fill the tile have log p = 0. */
V_INLINE void V(compare)(const workspace *w, size_t rows, double *share, vec *top, vec *sum)
{
  const size_t components = w->components; /* what is stored may be anything to a compiler, even w */
  vec largest = v_set(-DBL_MAX), total = v_set(0);
  for (size_t k = 0; k < components; k++) largest = v_max(v_load(share + k * TILE), largest);
  for (size_t k = 0; k < components; k++) {
    const vec e = v_exp_down(v_load(share + k * TILE) - largest);
    v_store(share + k * TILE, e);
    total = total + e;
  }
  *top = v_first(largest, rows, v_set(0));
  *sum = v_first(total, rows, v_set(1));
}

/* Of tile t, whose components begin at `tile`: its log-likelihood as partial sums in `value`, unless that is NULL, and responsibilities
 * in the tile, if `shares`, which are zero in rows that nothing can explain and in those that only fill the tile. What waits for the
 * exponentials is a loop of its own: a division behind each sum would hold them up. */
V_INLINE void V(weigh)(const workspace *w, size_t t, double *tile, vec *value, int shares)
{
  const size_t here = rows_in_tile(w->n, t), components = w->components;
  double sums[TILE];
  vec product = v_set(1), tops = v_set(0);
  V(densities)(w, t, tile);
  for (size_t at = 0; at < here; at += V_LANES) {
    vec top, sum;
    V(compare)(w, here - at, tile + at, &top, &sum);
    tops = tops + top;
    product = product * sum;
    v_store(sums + at, sum);
  }
  for (size_t at = 0; at < here && shares; at += V_LANES) {
    const vec sum = v_load(sums + at);
    const vec inverse = v_first(v_inverse(v_if_less(v_set(0), sum, sum, v_set(1))), here - at, v_set(0));
    for (size_t k = 0; k < components; k++) v_store(tile + k * TILE + at, v_load(tile + k * TILE + at) * inverse);
  }
  if (value) *value = tops + v_log(product);
}

#define NO_SUM(q, r) vec total##r = v_set(0);
#define ADD_DENSITY(q, r)                                                      \
  const vec e##r = v_exp_near(v_load(tile + k * TILE + at + r * V_LANES));     \
  v_store(tile + k * TILE + at + r * V_LANES, e##r);                           \
  total##r = total##r + e##r;
#define ROWS_LEFT(r) (here > at + r * V_LANES ? here - (at + r * V_LANES) : 0)
#define MULTIPLY(q, r)                                                         \
  total##r = v_first(total##r, ROWS_LEFT(r), v_set(1));                        \
  if (value) product = product * total##r;                                     \
  least = v_min(v_min(total##r, product), least);                              \
  most = most + (total##r + product);                                          \
  v_store(sums + at + r * V_LANES, total##r);
#define INVERT_TOTAL(q, r) const vec factor##r = v_first(v_inverse(v_load(sums + at + r * V_LANES)), ROWS_LEFT(r), v_set(0));
#define TO_SHARE(q, r)                                                         \
  v_store(tile + k * TILE + at + r * V_LANES, v_load(tile + k * TILE + at + r * V_LANES) * factor##r);

/* The same from the densities themselves, of which the largest is not taken off first. Was no sum of them, nor product of sums, so small
 * or large that this cannot be done? (Sums keep what is not a number, as least and largest would not.) */
V_INLINE int V(weigh_near)(const workspace *w, size_t t, double *tile, vec *value, int shares)
{
  const size_t here = rows_in_tile(w->n, t), components = w->components;
  double sums[TILE];
  vec product = v_set(1), least = v_set(1), most = v_set(0);
  V(densities)(w, t, tile);
  for (size_t at = 0; at < here; at += 2 * V_LANES) {
    ALONG(2, NO_SUM)
    for (size_t k = 0; k < components; k++) {
      ALONG(2, ADD_DENSITY)
    }
    ALONG(2, MULTIPLY)
  }
  if (!v_all_within(most + v_inverse(least), LARGEST_SUM)) return 0;
  for (size_t at = 0; at < here && shares; at += 2 * V_LANES) {
    ALONG(2, INVERT_TOTAL)
    for (size_t k = 0; k < components; k++) {
      ALONG(2, TO_SHARE)
    }
  }
  if (value) *value = v_log(product);
  return 1;
}

/* Of tiles kept from `from` on. After one that is not near others will not be either. */
V_INLINE void V(weigh_tiles)(const workspace *w, size_t from, vec *value, int shares)
{
  int near = 1;
  for (size_t t = from; t < last_tile(w, from); t++) {
    double *tile = w->share + (t - from) * w->components * TILE;
    vec own;
    near = near && V(weigh_near)(w, t, tile, value ? &own : NULL, shares);
    if (!near) V(weigh)(w, t, tile, value ? &own : NULL, shares);
    if (value) *value = *value + own;
  }
}

V_KERNEL void V(add_values)(const workspace *w, size_t from, int shares, double *lanes)
{
  vec value = v_load(lanes);
  if (shares) V(weigh_tiles)(w, from, &value, 1);
  else V(weigh_tiles)(w, from, &value, 0);
  v_store(lanes, value);
}

V_KERNEL void V(add_shares)(const workspace *w, size_t from) { V(weigh_tiles)(w, from, NULL, 1); }

V_KERNEL double V(log_lik)(const workspace *w)
{
  double lanes[LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) V(add_values)(w, t, 0, lanes);
  return v_sum(v_load(lanes));
}

/* Adds to w->moments. */
V_KERNEL void V(add_moments)(const workspace *w, size_t from)
{
  double *moments = w->moments;
  for (size_t k = 0; k < w->components; k++, moments += 1 + 2 * w->p) {
    double count = 0;
    for (size_t j = 0; j < w->p; j += 2)
      (w->p - j < 2 ? V(moments_1) : V(moments_2))(w, from, k * w->p + j, &count, moments + 2 * j);
    moments[0] += count;
  }
}

V_KERNEL double V(log_lik_moments)(const workspace *w)
{
  double lanes[LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) {
    V(add_values)(w, t, 1, lanes);
    V(add_moments)(w, t);
  }
  return v_sum(v_load(lanes));
}

V_KERNEL void V(moments_alone)(const workspace *w)
{
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) {
    V(add_shares)(w, t);
    V(add_moments)(w, t);
  }
}

/* The slopes and excesses of the rows kept from tile `from` on, whose responsibilities are there: see log_lik_hess. */
V_KERNEL void V(derive)(const workspace *w, size_t from)
{
  const size_t p = w->p, columns = 1 + 2 * p;
  for (size_t t = from; t < last_tile(w, from); t++)
    for (size_t k = 0; k < w->components; k++) {
      const double *y = w->y + t * p * TILE, *share_at = w->share + ((t - from) * w->components + k) * TILE;
      const size_t first = ((t - from) * w->components + k) * columns * TILE;
      for (size_t at = 0; at < rows_in_tile(w->n, t); at += V_LANES) {
        double *slope = w->slope + first + at, *excess = w->excess + first + at;
        const vec share = v_load(share_at + at), rest = v_set(1) - share;
        v_store(slope, share);
        v_store(excess, rest);
        for (size_t j = 0; j < p; j++) {
          const size_t a = k * p + j;
          const vec z = v_fma(v_set(w->rate[a]), v_load(y + j * TILE + at), v_set(w->minus[a])) * v_set(M_SQRT2);
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

/* Adds the products of the slopes of component k with those of component l, or with its own excesses, to w->sums. */
V_KERNEL void V(pair)(const workspace *w, size_t from, size_t k, size_t l)
{
  const size_t columns = 1 + 2 * w->p, step = w->components * columns * TILE;
  V(cross)(rows_between(w, from), columns, w->slope + k * columns * TILE, step, columns,
           (k == l ? w->excess : w->slope) + l * columns * TILE, step, w->sums, columns);
}

/* Of the rows of tile t. */
V_KERNEL void V(each)(const workspace *w, size_t t, double *value)
{
  const size_t here = rows_in_tile(w->n, t);
  V(densities)(w, t, w->share);
  for (size_t at = 0; at < here; at += V_LANES) {
    vec top, sum;
    V(compare)(w, here - at, w->share + at, &top, &sum);
    v_store(value + at, top + v_log(sum));
  }
}
