/* The kernels of softmax regression, for base/variants.h: logits by tiles, then vector by vector of rows what follows from
 * them. */
#include "models/products_body.h"

#if V_REGISTERS == 32
DEFINE_COMBINE(1, 4) DEFINE_COMBINE(2, 4) DEFINE_COMBINE(3, 4) DEFINE_COMBINE(4, 4)
#else
DEFINE_COMBINE(1, 2) DEFINE_COMBINE(2, 2) DEFINE_COMBINE(3, 2) DEFINE_COMBINE(4, 2)
#endif

V_INLINE void V(logits)(const workspace *w, const double *theta, size_t t, double *share)
{
  static const le_combine table[] = {V(combine_1), V(combine_2), V(combine_3), V(combine_4)};
  for (size_t k = 0, together; k < w->classes; k += together) {
    together = w->classes - k < COLUMNS_TOGETHER ? w->classes - k : COLUMNS_TOGETHER;
    table[together - 1](rows_in_tile(w->n, t), w->p, theta + k * w->p, w->x + t * (w->p + 1) * TILE, share + k * TILE);
  }
}

/* From logits to exp(logit - top) for the vector of rows whose first class is at `share`.  Their sum is from 1 to K, but 1 in
 * rows that only fill the tile; log p(label) = chosen - log(sum). */
V_INLINE void V(classify)(const workspace *w, size_t rows, vec label, double *share, vec *chosen, vec *sum)
{
  vec top = v_load(share);
  *chosen = top;
  for (size_t k = 1; k < w->classes; k++) {
    const vec logit = v_load(share + k * TILE);
    top = v_max(logit, top);
    *chosen = v_if_equal(label, v_set((double)k), logit, *chosen);
  }
  *chosen = *chosen - top;
  *sum = v_set(0);
  for (size_t k = 0; k < w->classes; k++) {
    const vec e = v_exp(v_load(share + k * TILE) - top);
    v_store(share + k * TILE, e);
    *sum = *sum + e;
  }
  *sum = v_first(*sum, rows, v_set(1));
}

/* Adds the log-likelihood of tiles [from, to) to the partial sums in `lanes`, and leaves the shares of their rows in
 * w->share: normalised when PROBABILITIES, as slopes in the logits when SLOPES.  The logs of the sums are the log of their
 * product, taken once for a tile: each is at most MOST_CLASSES. */
V_INLINE void V(add_tiles)(const workspace *w, const double *theta, size_t from, size_t to, shares wanted, double *lanes)
{
  vec total = v_load(lanes);
  for (size_t t = from; t < to; t++) {
    const size_t here = rows_in_tile(w->n, t);
    const double *label_at = w->x + (t * (w->p + 1) + w->p) * TILE;
    double *tile = w->share + (t - from) * w->classes * TILE;
    vec product = v_set(1);
    V(logits)(w, theta, t, tile);
    for (size_t at = 0; at < here; at += V_LANES) {
      const vec label = v_load(label_at + at);
      double *share = tile + at;
      vec chosen, sum;
      V(classify)(w, here - at, label, share, &chosen, &sum);
      total = total + chosen;
      product = product * sum;
      if (wanted == NONE) continue;
      const vec inverse = v_set(1) / sum;
      for (size_t k = 0; k < w->classes; k++) {
        const vec e = v_load(share + k * TILE);
        const vec hit = v_if_equal(label, v_set((double)k), v_set(1), v_set(0));
        v_store(share + k * TILE, wanted == SLOPES ? v_fnma(e, inverse, hit) : e * inverse);
      }
    }
    total = total - v_log(product);
  }
  v_store(lanes, total);
}

V_KERNEL double V(log_lik)(const workspace *w, const double *theta)
{
  double lanes[LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) V(add_tiles)(w, theta, t, last_tile(w, t), NONE, lanes);
  return v_sum(v_load(lanes));
}

/* Adds the gradient to w->sums. */
V_KERNEL double V(log_lik_grad)(const workspace *w, const double *theta)
{
  const size_t share_step = w->classes * TILE, x_step = (w->p + 1) * TILE;
  double lanes[LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) {
    V(add_tiles)(w, theta, t, last_tile(w, t), SLOPES, lanes);
    V(cross)(rows_between(w, t), w->classes, w->share, share_step, w->p, w->x + t * x_step, x_step, w->sums, w->p);
  }
  return v_sum(v_load(lanes));
}

/* For tiles [from, to), whose shares must be probabilities: w->weighted is p_k p_l x_j, and its products with the covariates
 * up to j, at the least, are added to w->sums. */
V_KERNEL void V(pair)(const workspace *w, size_t from, size_t to, size_t k, size_t l)
{
  const size_t p = w->p, x_step = (p + 1) * TILE;
  for (size_t t = from; t < to; t++) {
    const double *x = w->x + t * x_step, *share = w->share + (t - from) * w->classes * TILE;
    double *out = w->weighted + (t - from) * p * TILE;
    for (size_t at = 0; at < rows_in_tile(w->n, t); at += V_LANES) {
      const vec weight = v_load(share + k * TILE + at) * v_load(share + l * TILE + at);
      for (size_t j = 0; j < p; j++) v_store(out + j * TILE + at, weight * v_load(x + j * TILE + at));
    }
  }
  for (size_t j = 0; j < p; j += COLUMNS_TOGETHER) {
    const size_t columns = p - j < COLUMNS_TOGETHER ? p - j : COLUMNS_TOGETHER;
    V(cross)(rows_between(w, from), columns, w->weighted + j * TILE, p * TILE, j + columns, w->x + from * x_step, x_step,
             w->sums + j * p, p);
  }
}

V_KERNEL void V(probabilities)(const workspace *w, const double *theta, size_t from, size_t to)
{
  double lanes[LANES] = {0};
  V(add_tiles)(w, theta, from, to, PROBABILITIES, lanes);
}

/* Of the rows of tile t. */
V_KERNEL void V(each)(const workspace *w, const double *theta, size_t t, double *value)
{
  const double *label = w->x + (t * (w->p + 1) + w->p) * TILE;
  const size_t here = rows_in_tile(w->n, t);
  V(logits)(w, theta, t, w->share);
  for (size_t at = 0; at < here; at += V_LANES) {
    vec chosen, sum;
    V(classify)(w, here - at, v_load(label + at), w->share + at, &chosen, &sum);
    v_store(value + at, chosen - v_log(sum));
  }
}
