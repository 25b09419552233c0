/* The kernels of a mixture that are the same in double and in single precision. V(space) is the
 * workspace. With z' = z / sqrt(2) = rate y + minus, a log density is peak - sum z'^2. */
#include "models/compare_body.h"
#include "models/products.h"

#ifndef LE_MIXTURE_MACROS
#define LE_MIXTURE_MACROS

/* s_0r is the log density of one component in the r-th vector of rows. */
#define START_PEAK(q, r) vec s##q##r = v_set(w->peak[k]);
#define LOAD_Y(q, r) const vec y##r = v_load(y + j * TILE + at + r * V_LANES);
#define STANDARDISE(q, r) const vec z##r = v_fma(rate, y##r, minus);
#define MINUS_SQUARE(q, r) s##q##r = v_fnma(z##r, z##r, s##q##r);

/* Sums of share z' and share z'^2 in J dimensions at once, those of share beside. */
#define SET_COMPONENT(q, j)                                                                        \
  const vec rate##j = v_set(w->rate[a + j]), minus##j = v_set(w->minus[a + j]);
#define START_MOMENTS(q, j) vec first##j = v_set(0), second##j = v_set(0);
#define ADD_MOMENTS(q, j)                                                                          \
  const vec z##j = v_fma(rate##j, v_load(y + j * TILE + at), minus##j),                            \
            weighted##j = share * z##j;                                                            \
  first##j = v_fma(share, z##j, first##j);                                                         \
  second##j = v_fma(weighted##j, z##j, second##j);
#define SUM_MOMENTS_1 v_add_sums(moments + 1, 2, first0, second0, v_set(0), v_set(0));
#define SUM_MOMENTS_2 v_add_sums(moments + 1, 4, first0, second0, first1, second1);

/* For rows of tiles [from, from + together) and component a / p, whose dimension a % p is the first
 * of the J. */
#define DEFINE_MOMENTS(J)                                                                          \
  V_KERNEL void V(moments_##J)(const V(space) *w, size_t from, size_t a, double *count,            \
                               double *moments)                                                    \
  {                                                                                                \
    const size_t p = w->p, n = rows_between(w->n, w->together, from);                              \
    const real *share_at = w->share + a / p * TILE, *y = w->y + (from * p + a % p) * TILE;         \
    vec sum = v_set(0);                                                                            \
    ALONG(J, SET_COMPONENT)                                                                        \
    ALONG(J, START_MOMENTS) for (size_t done = 0; done < n;                                        \
                                 done += TILE, share_at += w->components * TILE, y += p * TILE)    \
    {                                                                                              \
      const size_t here = n - done < TILE ? n - done : TILE;                                       \
      for (size_t at = 0; at < here; at += V_LANES) {                                              \
        const vec share = v_load(share_at + at);                                                   \
        sum = sum + share;                                                                         \
        ALONG(J, ADD_MOMENTS)                                                                      \
      }                                                                                            \
    }                                                                                              \
    SUM_MOMENTS_##J *count = v_sum(sum);                                                           \
  }

#endif

DEFINE_MOMENTS(1) DEFINE_MOMENTS(2)

/* Log densities of all components in tile t. */
V_KERNEL void V(densities)(const V(space) *w, size_t t, real *share)
{
  const real *y = w->y + t * w->p * TILE;
  for (size_t k = 0; k < w->components; k++, share += TILE)
    for (size_t at = 0; at < rows_in_tile(w->n, t); at += 4 * V_LANES) {
      real *out = share;
      ALONG(4, START_PEAK)
      for (size_t j = 0; j < w->p; j++) {
        const vec rate = v_set(w->rate[k * w->p + j]), minus = v_set(w->minus[k * w->p + j]);
        ALONG(4, LOAD_Y) ALONG(4, STANDARDISE) ALONG(4, MINUS_SQUARE)
      }
      ALL(1, 4, KEEP)
    }
}

/* For tile t, whose components begin at `tile`: the log-likelihood as partial sums, `tops` plus
 * the log of `product` (unless NULL); and with `shares` the responsibilities, written to the
 * tile, which are zero in rows that no component can explain and in rows that only fill the
 * tile. Exponentials and divisions are in separate loops, because a division after each sum
 * would stall. */
V_INLINE void V(weigh)(const V(space) *w, size_t t, real *tile, vec *tops, vec *product, int shares)
{
  const size_t here = rows_in_tile(w->n, t), components = w->components;
  real sums[TILE];
  vec all = v_set(1), sum_of_tops = v_set(0);
  V(densities)(w, t, tile);
  for (size_t at = 0; at < here; at += V_LANES) {
    vec top, sum;
    V(compare)(components, here - at, tile + at, &top, &sum);
    sum_of_tops = sum_of_tops + top;
    all = all * sum;
    v_store(sums + at, sum);
  }
  for (size_t at = 0; at < here && shares; at += V_LANES) {
    const vec sum = v_load(sums + at);
    const vec inverse = v_first(v_inverse(v_if_less(v_set(0), sum, sum, v_set(1))), here - at,
                                v_set(0));
    for (size_t k = 0; k < components; k++)
      v_store(tile + k * TILE + at, v_load(tile + k * TILE + at) * inverse);
  }
  if (product) {
    *tops = sum_of_tops;
    *product = all;
  }
}

#define NO_SUM(q, r) vec total##r = v_set(0);
#define ADD_DENSITY(q, r)                                                      \
  const vec e##r = v_exp_near(v_load(tile + k * TILE + at + r * V_LANES));     \
  v_store(tile + k * TILE + at + r * V_LANES, e##r);                           \
  total##r = total##r + e##r;
#define ROWS_LEFT(r) (here > at + r * V_LANES ? here - (at + r * V_LANES) : 0)
#define MULTIPLY(q, r)                                                         \
  total##r = v_first(total##r, ROWS_LEFT(r), v_set(1));                        \
  if (product) all = all * total##r;                                           \
  least = v_min(v_min(total##r, all), least);                                  \
  most = most + (total##r + all);                                              \
  v_store(sums + at + r * V_LANES, total##r);
#define INVERT_TOTAL(q, r)                                                                         \
  const vec factor##r = v_first(v_inverse(v_load(sums + at + r * V_LANES)), ROWS_LEFT(r), v_set(0));
#define TO_SHARE(q, r)                                                                             \
  v_store(tile + k * TILE + at + r * V_LANES,                                                      \
          v_load(tile + k * TILE + at + r * V_LANES) * factor##r);

/* The same without subtracting the largest log density first. Returns whether no sum of densities,
 * and no product of sums, was too small or too large for this. (Sums keep NaN, which a minimum or
 * maximum would not.) */
V_INLINE int V(weigh_near)(const V(space) *w, size_t t, real *tile, vec *product, int shares)
{
  const size_t here = rows_in_tile(w->n, t), components = w->components;
  real sums[TILE];
  vec all = v_set(1), least = v_set(1), most = v_set(0);
  V(densities)(w, t, tile);
  for (size_t at = 0; at < here; at += 2 * V_LANES) {
    ALONG(2, NO_SUM)
    for (size_t k = 0; k < components; k++) {
      ALONG(2, ADD_DENSITY)
    }
    ALONG(2, MULTIPLY)
  }
  if (!v_all_within(most, V_LARGEST) || !v_all_within(v_inverse(least), 1 / V_SMALLEST)) return 0;
  for (size_t at = 0; at < here && shares; at += 2 * V_LANES) {
    ALONG(2, INVERT_TOTAL)
    for (size_t k = 0; k < components; k++) {
      ALONG(2, TO_SHARE)
    }
  }
  if (product) *product = all;
  return 1;
}

/* Chooses between the two for tile t. After a tile with large exponents, later tiles use the slower
 * one at once. */
V_INLINE void V(weigh_tile)(const V(space) *w, size_t t, real *tile, int *near, vec *tops,
                            vec *product, int shares)
{
  if (product) *tops = v_set(0);
  *near = *near && V(weigh_near)(w, t, tile, product, shares);
  if (!*near) V(weigh)(w, t, tile, tops, product, shares);
}

/* Adds to w->moments. */
V_KERNEL void V(add_moments)(const V(space) *w, size_t from)
{
  double *moments = w->moments;
  for (size_t k = 0; k < w->components; k++, moments += 1 + 2 * w->p) {
    double count = 0;
    for (size_t j = 0; j < w->p; j += 2)
      (w->p - j < 2 ? V(moments_1) : V(moments_2))(w, from, k * w->p + j, &count, moments + 2 * j);
    moments[0] += count;
  }
}
