/* The kernels of a family, for base/variants.h. Its source file defines FAMILY_FURTHER, its number
 * of further parameters, FAMILY_RESPONSE, one of the functions of responses below, and FAMILY_BODY,
 * a file with this function, which fills only the members of its result that `wanted` says:
 *
 *     V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
 *
 * `wanted` is a constant in each case, so that the compiler drops what is not used. Rows that only
 * fill the last vector of a tile have covariates of zero; sums leave them out. */
#include "models/glm/functions_body.h"
#include FAMILY_BODY

/* A function of responses replaces y by what V(row) needs, and returns the constant of the log
 * density, if that is asked for. */

V_INLINE vec V(plain)(vec extra, vec *y, int constant)
{
  (void)extra, (void)y, (void)constant;
  return v_set(0);
}

/* The constant is the log of the binomial coefficient, exactly zero for a single trial. */
V_INLINE vec V(trials)(vec extra, vec *y, int constant)
{
  if (!constant) return v_set(0);
  const vec c = V(log_factorial)(extra) - V(log_factorial)(*y) - V(log_factorial)(extra - *y);
  return v_if_less(extra, v_set(1.5), v_set(0), c);
}

V_INLINE vec V(counts)(vec extra, vec *y, int constant)
{
  (void)extra;
  return constant ? v_set(0) - V(log_factorial)(*y) : v_set(0);
}

/* Their logs. `extra` is 0 where a response is only a lower limit. */
V_INLINE vec V(positive)(vec extra, vec *y, int constant)
{
  (void)constant;
  *y = v_log(*y);
  return v_set(0) - extra * *y;
}

V_INLINE void V(glm_add)(double *sums, int sum, vec terms, size_t rows)
{
  double *to = sums + sum * LANES;
  v_store(to, v_load(to) + v_first(terms, rows, v_set(0)));
}

V_INLINE void V(glm_store)(int wanted, double *to, vec terms, size_t rows)
{
  v_store(to, wanted & WANT_BY_ROW ? v_first(terms, rows, v_set(0)) : terms);
}

/* A derivative by a and b. `common` is the rows' own part of the sums, for vectors by row. */
V_INLINE void V(glm_further)(int wanted, const glm_out *out, size_t at, int sum, vec terms,
                             const double *common, size_t rows)
{
  if (wanted & WANT_BY_ROW)
    V(glm_store)(wanted, out->parts + sum * TILE + at, terms + v_load(common + sum * TILE), rows);
  else
    V(glm_add)(out->sums, sum, terms, rows);
}

V_INLINE void V(glm_rows)(int wanted, const glm_tile *tile, const double *point, const glm_out *to)
{
  const int by_row = wanted & WANT_BY_ROW;
  const glm_out out = *to; /* for the compiler a store may change `to` */
  for (size_t at = 0; at < tile->n; at += V_LANES) {
    const size_t rows = tile->n - at;
    const double *setting = by_row ? point + at : point, *common = setting + GLM_SETTINGS * TILE;
    double *column = out.column + at;
    const V(terms) t = V(row)(wanted, v_load(column), v_load(tile->y + at),
                              v_load(tile->extra + at), (V(settings)){setting, by_row ? TILE : 0});
    if (wanted & WANT_VALUE) {
      const vec value = by_row ? t.value + v_load(common + SUM_VALUE * TILE) : t.value;
      if (wanted & WANT_EACH) v_store(column, value);
      else V(glm_add)(out.sums, SUM_VALUE, value, rows);
    }
    if (wanted & WANT_SLOPE) {
      V(glm_store)(wanted, column, t.slope, rows);
      if (FAMILY_FURTHER > 0) V(glm_further)(wanted, &out, at, SUM_A, t.a, common, rows);
      if (FAMILY_FURTHER > 1) V(glm_further)(wanted, &out, at, SUM_B, t.b, common, rows);
    }
    if (wanted & WANT_CURVE) {
      V(glm_store)(wanted, column + TILE, t.curve, rows);
      if (FAMILY_FURTHER > 0) {
        V(glm_store)(wanted, column + 2 * TILE, t.eta_a, rows);
        V(glm_further)(wanted, &out, at, SUM_AA, t.aa, common, rows);
      }
      if (FAMILY_FURTHER > 1) {
        V(glm_store)(wanted, column + 3 * TILE, t.eta_b, rows);
        V(glm_further)(wanted, &out, at, SUM_AB, t.ab, common, rows);
        V(glm_further)(wanted, &out, at, SUM_BB, t.bb, common, rows);
      }
    }
  }
}

/* Each case is compiled on its own. */
#define GLM_CASE(wanted)                                                                           \
  case wanted:                                                                                     \
    V(glm_rows)(wanted, tile, point, out);                                                         \
    break;

V_KERNEL void V(rows)(int wanted, const glm_tile *tile, const double *point, const glm_out *out)
{
  switch (wanted) {
    GLM_CASE(WANT_VALUE)
#if LE_SIMD_X86 && V_VARIANT == 0
  /* Processors of x86 without AVX2 are from before 2014: one code for all other cases is a fifth
   * as large. */
  default:
    V(glm_rows)(wanted, tile, point, out);
#else
    GLM_CASE(WANT_SLOPE)
    GLM_CASE(WANT_VALUE | WANT_SLOPE)
    GLM_CASE(WANT_SLOPE | WANT_CURVE)
    GLM_CASE(WANT_VALUE | WANT_EACH)
#if FAMILY_FURTHER > 0
    GLM_CASE(WANT_BY_ROW | WANT_VALUE)
    GLM_CASE(WANT_BY_ROW | WANT_VALUE | WANT_SLOPE)
    GLM_CASE(WANT_BY_ROW | WANT_SLOPE | WANT_CURVE)
    GLM_CASE(WANT_BY_ROW | WANT_VALUE | WANT_EACH)
#endif
#endif
  }
}

V_KERNEL void V(responses)(size_t n, const double *extra, double *y, double *constant)
{
  for (size_t at = 0; at < n; at += V_LANES) {
    vec response = v_load(y + at);
    const vec c = V(FAMILY_RESPONSE)(v_load(extra + at), &response, constant != NULL);
    v_store(y + at, v_first(response, n - at, v_set(0)));
    if (constant) v_store(constant + at, v_first(c, n - at, v_set(0)));
  }
}
