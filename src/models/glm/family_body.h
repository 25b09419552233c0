/* The kernels of a family, made from V(row) and V(response), which the family's body defines
 * before it includes this file. FAMILY_FURTHER is its number of further parameters.
 *
 *     V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
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
                              v_load(tile->extra + at), (V(settings)){setting, 0});
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
                                v_load(tile->extra + at), (V(settings)){setting, 0}).value);
}

#if FAMILY_FURTHER > 0

/* The same where a and b differ between rows. */
V_INLINE void V(glm_put)(double *to, vec terms, size_t rows)
{
  v_store(to, v_first(terms, rows, v_set(0)));
}

V_INLINE void V(glm_by_row)(int wanted, const glm_tile *tile, const glm_tile_points *points,
                            const glm_tile_terms *out, double *lanes)
{
  for (size_t at = 0; at < tile->n; at += V_LANES) {
    const size_t rows = tile->n - at;
    const double *common = points->row + at;
    const V(terms) t = V(row)(wanted, v_load(out->column + at), v_load(tile->y + at),
                              v_load(tile->extra + at),
                              (V(settings)){points->setting + at, TILE});
    if (wanted & WANT_VALUE)
      V(glm_add)(lanes, SUM_VALUE, t.value + v_load(common + SUM_VALUE * TILE), rows);
    if (wanted & WANT_SLOPE) {
      V(glm_put)(out->column + at, t.slope, rows);
      V(glm_put)(out->first + at, t.a + v_load(common + SUM_A * TILE), rows);
      if (FAMILY_FURTHER > 1)
        V(glm_put)(out->first + TILE + at, t.b + v_load(common + SUM_B * TILE), rows);
    }
    if (wanted & WANT_CURVE) {
      V(glm_put)(out->column + TILE + at, t.curve, rows);
      V(glm_put)(out->column + 2 * TILE + at, t.eta_a, rows);
      V(glm_put)(out->second + at, t.aa + v_load(common + SUM_AA * TILE), rows);
      if (FAMILY_FURTHER > 1) {
        V(glm_put)(out->column + 3 * TILE + at, t.eta_b, rows);
        V(glm_put)(out->second + TILE + at, t.ab + v_load(common + SUM_AB * TILE), rows);
        V(glm_put)(out->second + 2 * TILE + at, t.bb + v_load(common + SUM_BB * TILE), rows);
      }
    }
  }
}

V_KERNEL void V(row_values)(const glm_tile *tile, const glm_tile_points *points,
                            const glm_tile_terms *out, double *lanes)
{
  V(glm_by_row)(WANT_VALUE, tile, points, out, lanes);
}

V_KERNEL void V(row_slopes)(const glm_tile *tile, const glm_tile_points *points,
                            const glm_tile_terms *out, double *lanes)
{
  V(glm_by_row)(WANT_VALUE | WANT_SLOPE, tile, points, out, lanes);
}

V_KERNEL void V(row_curves)(const glm_tile *tile, const glm_tile_points *points,
                            const glm_tile_terms *out, double *lanes)
{
  V(glm_by_row)(WANT_SLOPE | WANT_CURVE, tile, points, out, lanes);
}

V_KERNEL void V(row_each)(const glm_tile *tile, const glm_tile_points *points,
                          const glm_tile_terms *out, double *lanes)
{
  (void)lanes;
  for (size_t at = 0; at < tile->n; at += V_LANES) {
    const V(terms) t = V(row)(WANT_VALUE, v_load(out->column + at), v_load(tile->y + at),
                              v_load(tile->extra + at),
                              (V(settings)){points->setting + at, TILE});
    v_store(out->column + at, t.value + v_load(points->row + SUM_VALUE * TILE + at));
  }
}

#endif

V_KERNEL void V(responses)(size_t n, const double *extra, double *y, double *constant)
{
  for (size_t at = 0; at < n; at += V_LANES) {
    vec response = v_load(y + at);
    const vec c = V(response)(v_load(extra + at), &response, constant != NULL);
    v_store(y + at, v_first(response, n - at, v_set(0)));
    if (constant) v_store(constant + at, v_first(c, n - at, v_set(0)));
  }
}
