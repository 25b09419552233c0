/* Converts tiles of doubles to tiles of floats, for a VECTOR_SINGLE_BODY. */

/* Converts the first `columns` columns of each tile. largest[column] is the largest absolute value.
 * It is infinite if all nonzero numbers are so small, or one is so large, that products in single
 * precision would lose digits. */
V_KERNEL void V(narrow)(size_t tiles, size_t columns, const double *from, float *to,
                        double *largest)
{
  for (size_t j = 0; j < columns; j++) {
    vec most = v_set(0);
    for (size_t t = 0; t < tiles; t++)
      for (size_t at = 0; at < TILE; at += V_LANES) {
        const vec x = v_narrow(from + (t * columns + j) * TILE + at);
        v_store(to + (t * columns + j) * TILE + at, x);
        most = v_max(v_max(x, v_set(0) - x), most);
      }
    float lanes[V_LANES], top = 0;
    v_store(lanes, most);
    for (size_t l = 0; l < V_LANES; l++) top = lanes[l] > top ? lanes[l] : top;
    largest[j] = top == 0 || (top > 1e-30f && top < 1e30f) ? (double)top : INFINITY;
  }
}
