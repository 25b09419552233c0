/* The kernels of softmax regression, for base/variants.h: logits by tiles, then the likelihood and
 * its derivatives from them. */
#include "models/combine_body.h"
#include "models/compare_body.h"

/* The logit of the label of each row. */
V_INLINE vec V(own)(const workspace *w, vec label, const double *share)
{
  const size_t classes = w->classes;
  vec own = v_load(share);
  for (size_t k = 1; k < classes; k++)
    own = v_if_equal(label, v_set(w->number[k]), v_load(share + k * TILE), own);
  return own;
}

/* Adds the log-likelihood of tiles [from, to) to the partial sums in `lanes`, and leaves in
 * w->share the PROBABILITIES or the SLOPES (derivatives by the logits); slopes of the classes that
 * are not the label keep full relative precision. The logs of the sums are taken as one log of
 * their product per tile, since each sum is at most MOST_CLASSES. Exponentials and divisions are in
 * separate loops, because a division after each exponential would stall. */
V_INLINE void V(add_tiles)(const workspace *w, const double *theta, size_t from, size_t to,
                           shares wanted, double *lanes)
{
  vec total = v_load(lanes);
  for (size_t t = from; t < to; t++) {
    const size_t here = rows_in_tile(w->n, t), classes = w->classes;
    const double *label = w->x + (t * (w->p + 1) + w->p) * TILE;
    double *tile = w->share + (t - from) * classes * TILE;
    double sums[TILE];
    vec product = v_set(1);
    V(combine)(here, classes, w->p, theta, w->x + t * (w->p + 1) * TILE, tile);
    for (size_t at = 0; at < here; at += V_LANES) {
      const vec own = V(own)(w, v_load(label + at), tile + at);
      vec top, sum;
      V(compare)(classes, here - at, tile + at, &top, &sum);
      total = total + (own - top);
      product = product * sum;
      v_store(sums + at, sum);
    }
    for (size_t at = 0; at < here && wanted != NONE; at += V_LANES) {
      const vec inverse = v_inverse(v_load(sums + at)), own = v_load(label + at);
      for (size_t k = 0; k < classes; k++) {
        const vec e = v_load(tile + k * TILE + at),
                  hit = v_if_equal(own, v_set(w->number[k]), v_set(1), v_set(0));
        v_store(tile + k * TILE + at, wanted == SLOPES ? v_fnma(e, inverse, hit) : e * inverse);
      }
    }
    total = total - v_log(product);
  }
  v_store(lanes, total);
}

V_KERNEL double V(log_lik)(const workspace *w, const double *theta)
{
  double lanes[LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t += w->together)
    V(add_tiles)(w, theta, t, last_tile(w->n, w->together, t), NONE, lanes);
  return v_sum(v_load(lanes));
}

/* Adds the gradient to w->sums. */
V_KERNEL double V(log_lik_grad)(const workspace *w, const double *theta)
{
  const size_t share_step = w->classes * TILE, x_step = (w->p + 1) * TILE;
  double lanes[LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t += w->together) {
    V(add_tiles)(w, theta, t, last_tile(w->n, w->together, t), SLOPES, lanes);
    V(le_cross)(rows_between(w->n, w->together, t), w->classes, w->share, share_step, w->p,
                w->x + t * x_step, x_step, w->sums, w->p);
  }
  return v_sum(v_load(lanes));
}

/* The gradient for all classes but the first is w->sums; for the first class it is minus their sum.
 * Values that are not finite are replaced by 0. */
V_KERNEL void V(add_free_slopes)(const workspace *w, double *grad)
{
  const size_t p = w->p, classes = w->classes;
  for (size_t j = 0; j < p; j += V_LANES) {
    vec first = v_load_first(grad + j, p - j);
    for (size_t k = 1; k < classes; k++) {
      const vec found = v_load_first(w->sums + (k - 1) * p + j, p - j);
      const vec sum = v_if_equal(found - found, v_set(0), found, v_set(0));
      double *own = grad + k * p + j;
      v_store_first(own, p - j, v_load_first(own, p - j) + sum);
      first = first - sum;
    }
    v_store_first(grad + j, p - j, first);
  }
}

/* Whether every label is one of the classes. */
V_KERNEL int V(labels_fit)(const workspace *w)
{
  const vec rounder = v_set(V_ROUNDER), classes = v_set((double)w->classes), zero = v_set(0),
            one = v_set(1);
  vec wrong = zero;
  for (size_t t = 0; t < tiles_of(w->n); t++)
    for (size_t at = 0; at < TILE; at += V_LANES) {
      const vec label = v_load(w->x + (t * (w->p + 1) + w->p) * TILE + at),
                whole = label + rounder - rounder;
      wrong = v_if_equal(label, whole,
                         v_if_less(label, zero, one, v_if_less(label, classes, wrong, one)), one);
    }
  return v_sum(wrong) == 0;
}

/* For tiles [from, to), whose shares must be probabilities: sets w->weighted to p_k p_l x_j, and
 * adds its products with the covariates, at least those up to j, to w->sums. */
V_KERNEL void V(pair)(const workspace *w, size_t from, size_t to, size_t k, size_t l)
{
  const size_t p = w->p, x_step = (p + 1) * TILE;
  for (size_t t = from; t < to; t++) {
    const double *x = w->x + t * x_step, *share = w->share + (t - from) * w->classes * TILE;
    double *out = w->weighted + (t - from) * p * TILE;
    for (size_t at = 0; at < rows_in_tile(w->n, t); at += V_LANES) {
      const vec weight = v_load(share + k * TILE + at) * v_load(share + l * TILE + at);
      for (size_t j = 0; j < p; j++)
        v_store(out + j * TILE + at, weight * v_load(x + j * TILE + at));
    }
  }
  for (size_t j = 0; j < p; j += COLUMNS_TOGETHER) {
    const size_t columns = p - j < COLUMNS_TOGETHER ? p - j : COLUMNS_TOGETHER;
    V(le_cross)(rows_between(w->n, w->together, from), columns, w->weighted + j * TILE, p * TILE,
                j + columns, w->x + from * x_step, x_step, w->sums + j * p, p);
  }
}

V_KERNEL void V(probabilities)(const workspace *w, const double *theta, size_t from, size_t to)
{
  double lanes[LANES] = {0};
  V(add_tiles)(w, theta, from, to, PROBABILITIES, lanes);
}

/* The log-likelihood of each row of tile t. */
V_KERNEL void V(each)(const workspace *w, const double *theta, size_t t, double *value)
{
  const double *label = w->x + (t * (w->p + 1) + w->p) * TILE;
  const size_t here = rows_in_tile(w->n, t);
  V(combine)(here, w->classes, w->p, theta, w->x + t * (w->p + 1) * TILE, w->share);
  for (size_t at = 0; at < here; at += V_LANES) {
    const vec own = V(own)(w, v_load(label + at), w->share + at);
    vec top, sum;
    V(compare)(w->classes, here - at, w->share + at, &top, &sum);
    v_store(value + at, own - top - v_log(sum));
  }
}
