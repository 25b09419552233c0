/* The kernel of softmax regression in single precision, for base/variants.h: gradients without
 * values. All logits are relative to the first class. With four classes this is a quarter less
 * work, but the entries of the first class have fewer correct digits where they are smaller than
 * the others. */
#include "models/combine_body.h"
#include "models/narrow_body.h"

/* For two vectors of rows at once, beginning at `share`: exponentials of the logits of all classes
 * but the first, relative to that of the first; and their sum, including 1 for the first class. If
 * logits are large, the largest is subtracted first. */
#define FIRST_EXP(q, r) vec total##r = v_set(1);
#define FAR_TOP(q, r)                                                                              \
  vec top##r = v_set(0);                                                                           \
  for (size_t k = 0; k < free; k++)                                                                \
    top##r = v_max(v_load(share + k * TILE + r * V_LANES), top##r);                                \
  total##r = v_exp_down(v_set(0) - top##r);
#define FAR_EXP(q, r) const vec e##r = v_exp_down(v_load(share + k * TILE + r * V_LANES) - top##r);
#define NEAR_EXP(q, r) const vec e##r = v_exp_near(v_load(share + k * TILE + r * V_LANES));
#define ADD_EXP(q, r)                            \
  v_store(share + k * TILE + r * V_LANES, e##r); \
  total##r = total##r + e##r;
#define KEEP_SUM(q, r) v_store(sums + r * V_LANES, total##r);

V_INLINE vec V(near_exponentials)(size_t free, real *share, real *sums)
{
  ALONG(2, FIRST_EXP)
  for (size_t k = 0; k < free; k++) {
    ALONG(2, NEAR_EXP) ALONG(2, ADD_EXP)
  }
  ALONG(2, KEEP_SUM)
  return total0 + total1;
}

V_INLINE void V(far_exponentials)(size_t free, real *share, real *sums)
{
  ALONG(2, FIRST_EXP) ALONG(2, FAR_TOP)
  for (size_t k = 0; k < free; k++) {
    ALONG(2, FAR_EXP) ALONG(2, ADD_EXP)
  }
  ALONG(2, KEEP_SUM)
}

#define INVERT(q, r)                                                                               \
  const vec inverse##r = v_inverse(v_load(sums + at + r * V_LANES)),                               \
            own##r = v_load(label + at + r * V_LANES);
#define SLOPE(q, r)                                                                                \
  v_store(at_k + r * V_LANES, v_fnma(v_load(at_k + r * V_LANES), inverse##r,                       \
                                     v_if_equal(own##r, number, v_set(1), v_set(0))));

/* Writes the derivatives by the logits of all classes but the first to w->share, for tiles [from,
 * to). w->free are the weights minus those of the first class. */
V_INLINE void V(free_slopes)(const single_workspace *w, size_t from, size_t to)
{
  const size_t free = w->classes - 1;
  int near = 1;
  for (size_t t = from; t < to; t++) {
    const size_t here = rows_in_tile(w->n, t);
    const real *label = w->x + (t * (w->p + 1) + w->p) * TILE;
    real *tile = w->share + (t - from) * free * TILE, sums[TILE];
    if (near) {
      vec outside = v_set(0); /* a sum keeps NaN, a maximum would not */
      V(combine)(here, free, w->p, w->free, w->x + t * (w->p + 1) * TILE, tile);
      for (size_t at = 0; at < here; at += 2 * V_LANES)
        outside = outside + V(near_exponentials)(free, tile + at, sums + at);
      near = v_all_within(outside, V_LARGEST);
    }
    if (!near) { /* all later tiles too, whose logits are probably as large */
      V(combine)(here, free, w->p, w->free, w->x + t * (w->p + 1) * TILE, tile);
      for (size_t at = 0; at < here; at += 2 * V_LANES)
        V(far_exponentials)(free, tile + at, sums + at);
    }
    for (size_t at = 0; at < here; at += 2 * V_LANES) {
      ALONG(2, INVERT)
      for (size_t k = 0; k < free; k++) {
        const vec number = v_set(w->number[k + 1]);
        real *at_k = tile + k * TILE + at;
        ALONG(2, SLOPE)
      }
    }
  }
}

/* Adds the gradient by the weights of all classes but the first to w->sums. */
V_KERNEL void V(free_sums)(const single_workspace *w)
{
  const size_t share_step = (w->classes - 1) * TILE, x_step = (w->p + 1) * TILE;
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) {
    V(free_slopes)(w, t, last_tile(w->n, w->together, t));
    V(le_cross)(rows_between(w->n, w->together, t), w->classes - 1, w->share, share_step, w->p,
                w->x + t * x_step, x_step, w->sums, w->p);
  }
}
