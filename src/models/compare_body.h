/* Sums of exponentials of logits or of log densities, for the bodies of softmax and of mixtures. */

/* Replaces `number` logs by exp(log - top) in the vector of rows whose first log is at `share`; the
 * log of the sum of their exponentials is top + log(sum). If all are -Inf, top is the most negative
 * number, so that no difference of infinities arises, and the sum is 0; otherwise it is from 1 to
 * `number`. Rows that only fill the tile have top 0 and sum 1. */
V_INLINE void V(compare)(size_t number, size_t rows, real *share, vec *top, vec *sum)
{
  vec largest = v_set(-V_MOST), total = v_set(0);
  for (size_t k = 0; k < number; k++) largest = v_max(v_load(share + k * TILE), largest);
  for (size_t k = 0; k < number; k++) {
    const vec e = v_exp_down(v_load(share + k * TILE) - largest);
    v_store(share + k * TILE, e);
    total = total + e;
  }
  *top = v_first(largest, rows, v_set(0));
  *sum = v_first(total, rows, v_set(1));
}
