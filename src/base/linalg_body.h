/* Products of small matrices and vectors, for base/variants.h. */

V_KERNEL double V(dot)(const double *x, const double *y, size_t d)
{
  vec one = v_set(0), two = v_set(0);
  size_t j = 0;
  for (; j + 2 * V_LANES <= d; j += 2 * V_LANES) {
    one = v_fma(v_load(x + j), v_load(y + j), one);
    two = v_fma(v_load(x + j + V_LANES), v_load(y + j + V_LANES), two);
  }
  for (; j < d; j += V_LANES) one = v_fma(v_load_first(x + j, d - j), v_load_first(y + j, d - j), one);
  return v_sum(one + two);
}

V_KERNEL void V(matvec)(const double *a, size_t d, const double *x, double *y)
{
  for (size_t i = 0; i < d; i++) y[i] = V(dot)(a + i * d, x, d);
}

/* Both a vector of columns at a time; on the other side of the diagonal stand zeros. */
V_KERNEL void V(lower_transpose_matvec)(const double *lower, size_t d, const double *x, double *y)
{
  for (size_t j = 0; j < d; j += V_LANES) {
    vec one = v_set(0), two = v_set(0);
    size_t i = j;
    for (; i + 2 <= d; i += 2) {
      one = v_fma(v_set(x[i]), v_load_first(lower + i * d + j, d - j), one);
      two = v_fma(v_set(x[i + 1]), v_load_first(lower + (i + 1) * d + j, d - j), two);
    }
    if (i < d) one = v_fma(v_set(x[i]), v_load_first(lower + i * d + j, d - j), one);
    v_store_first(y + j, d - j, one + two);
  }
}

V_KERNEL void V(upper_transpose_matvec)(const double *upper, size_t d, const double *x, double *y)
{
  for (size_t j = 0; j < d; j += V_LANES) {
    vec one = v_set(0), two = v_set(0);
    const size_t end = j + V_LANES < d ? j + V_LANES : d;
    size_t i = 0;
    for (; i + 2 <= end; i += 2) {
      one = v_fma(v_set(x[i]), v_load_first(upper + i * d + j, d - j), one);
      two = v_fma(v_set(x[i + 1]), v_load_first(upper + (i + 1) * d + j, d - j), two);
    }
    if (i < end) one = v_fma(v_set(x[i]), v_load_first(upper + i * d + j, d - j), one);
    v_store_first(y + j, d - j, one + two);
  }
}
