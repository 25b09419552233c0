/* Products of small matrices and vectors and the Cholesky factor. Included by base/variants.h. */

V_KERNEL double V(dot)(const double *x, const double *y, size_t d)
{
  vec one = v_set(0), two = v_set(0);
  size_t j = 0;
  for (; j + 2 * V_LANES <= d; j += 2 * V_LANES) {
    one = v_fma(v_load(x + j), v_load(y + j), one);
    two = v_fma(v_load(x + j + V_LANES), v_load(y + j + V_LANES), two);
  }
  for (; j < d; j += V_LANES)
    one = v_fma(v_load_first(x + j, d - j), v_load_first(y + j, d - j), one);
  return v_sum(one + two);
}

/* y += factor x */
V_KERNEL void V(add_scaled)(size_t n, double factor, const double *x, double *y)
{
  const vec times = v_set(factor);
  size_t j = 0;
  for (; j + V_LANES <= n; j += V_LANES) v_store(y + j, v_fma(times, v_load(x + j), v_load(y + j)));
  if (j < n)
    v_store_first(y + j, n - j,
                  v_fma(times, v_load_first(x + j, n - j), v_load_first(y + j, n - j)));
}

/* y += sign * sum of x[i] a[i] over rows i to end; rows have d numbers, of which the first n (at
 * most one vector) are used. */
V_INLINE void V(add_rows)(double sign, const double *a, size_t d, size_t n, size_t i, size_t end,
                          const double *x, double *y)
{
  vec one = v_load_first(y, n), two = v_set(0);
  for (; i + 2 <= end; i += 2) {
    one = v_fma(v_set(sign * x[i]), v_load_first(a + i * d, n), one);
    two = v_fma(v_set(sign * x[i + 1]), v_load_first(a + (i + 1) * d, n), two);
  }
  if (i < end) one = v_fma(v_set(sign * x[i]), v_load_first(a + i * d, n), one);
  v_store_first(y, n, one + two);
}

/* y += A'x with the first n rows and columns of A, of which one triangle may be zero. One vector of
 * columns at a time. */
V_KERNEL void V(add_matvec)(triangle filled, const double *a, size_t d, size_t n, const double *x,
                            double *y)
{
  for (size_t j = 0; j < n; j += V_LANES) {
    const size_t first = filled == LOWER ? j : 0,
                 end = filled == UPPER && j + V_LANES < n ? j + V_LANES : n;
    V(add_rows)(1, a + j, d, n - j, first, end, x, y + j);
  }
}

/* Computes the transpose of the factor row by row: each row is the remainder of the row of the
 * matrix. The columns of the factor are filled in at the same time, so both triangles are complete
 * at the end. Computes rows `from` to `to`; the rows before are done. */
V_KERNEL int V(cholesky)(double *a, size_t d, size_t from, size_t to)
{
  for (size_t i = from; i < to; i++) {
    double *row = a + i * d;
    for (size_t j = i; j < d; j += V_LANES) V(add_rows)(-1, a + j, d, d - j, 0, i, row, row + j);
    if (!(row[i] > 0 && row[i] < INFINITY)) return 0;
    row[i] = sqrt(row[i]);
    for (size_t j = i + 1; j < d; j++) a[j * d + i] = row[j] /= row[i];
  }
  return 1;
}
