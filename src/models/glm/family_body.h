/* The kernels of a family, made from V(row) and V(response), which the family's body defines
 * before it includes this file. FAMILY_FURTHER is its number of further parameters.
 *
 *     V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, const double *setting)
 *     V_INLINE vec V(response)(vec extra, vec *y, int constant)
 *
 * V(row) fills only the members of its result that `wanted` says. V(response) replaces y by what
 * V(row) needs, and returns the constant of the log density, if that is asked for.
 *
 * `wanted` is a constant in each kernel, so that the compiler drops what is not used. Rows that
 * only fill the last vector of a tile have covariates of zero; sums leave them out. */

V_INLINE void V(glm_add)(double *lanes, int sum, vec terms, size_t rows)
{
  double *to = lanes + sum * LANES;
  v_store(to, v_load(to) + v_first(terms, rows, v_set(0)));
}

V_INLINE void V(glm_rows)(int wanted, const glm_tile *tile, const double *setting, double *column,
                          double *lanes)
{
  for (size_t at = 0; at < tile->n; at += V_LANES) {
    const size_t rows = tile->n - at;
    const V(terms) t = V(row)(wanted, v_load(column + at), v_load(tile->y + at),
                              v_load(tile->extra + at), setting);
    if (wanted & WANT_VALUE) V(glm_add)(lanes, SUM_VALUE, t.value, rows);
    if (wanted & WANT_SLOPE) {
      v_store(column + at, t.slope);
      if (FAMILY_FURTHER > 0) V(glm_add)(lanes, SUM_A, t.a, rows);
      if (FAMILY_FURTHER > 1) V(glm_add)(lanes, SUM_B, t.b, rows);
    }
    if (wanted & WANT_CURVE) {
      v_store(column + TILE + at, t.curve);
      if (FAMILY_FURTHER > 0) {
        v_store(column + 2 * TILE + at, t.eta_a);
        V(glm_add)(lanes, SUM_AA, t.aa, rows);
      }
      if (FAMILY_FURTHER > 1) {
        v_store(column + 3 * TILE + at, t.eta_b);
        V(glm_add)(lanes, SUM_AB, t.ab, rows);
        V(glm_add)(lanes, SUM_BB, t.bb, rows);
      }
    }
  }
}

V_KERNEL void V(values)(const glm_tile *tile, const double *setting, double *column, double *lanes)
{
  V(glm_rows)(WANT_VALUE, tile, setting, column, lanes);
}

V_KERNEL void V(slopes)(const glm_tile *tile, const double *setting, double *column, double *lanes)
{
  V(glm_rows)(WANT_SLOPE, tile, setting, column, lanes);
}

V_KERNEL void V(values_and_slopes)(const glm_tile *tile, const double *setting, double *column,
                                   double *lanes)
{
  V(glm_rows)(WANT_VALUE | WANT_SLOPE, tile, setting, column, lanes);
}

V_KERNEL void V(curves)(const glm_tile *tile, const double *setting, double *column, double *lanes)
{
  V(glm_rows)(WANT_SLOPE | WANT_CURVE, tile, setting, column, lanes);
}

V_KERNEL void V(each)(const glm_tile *tile, const double *setting, double *column, double *lanes)
{
  (void)lanes;
  for (size_t at = 0; at < tile->n; at += V_LANES)
    v_store(column + at, V(row)(WANT_VALUE, v_load(column + at), v_load(tile->y + at),
                                v_load(tile->extra + at), setting).value);
}

V_KERNEL void V(responses)(size_t n, const double *extra, double *y, double *constant)
{
  for (size_t at = 0; at < n; at += V_LANES) {
    vec response = v_load(y + at);
    const vec c = V(response)(v_load(extra + at), &response, constant != NULL);
    v_store(y + at, v_first(response, n - at, v_set(0)));
    if (constant) v_store(constant + at, v_first(c, n - at, v_set(0)));
  }
}
