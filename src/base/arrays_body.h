/* exp and log of arrays, transposing and gathering of rows. Included by base/variants.h. */

/* exp(scale x + shift): scaling in the same loop saves storing and loading the scaled numbers. */
V_KERNEL void V(exp_each)(size_t n, double scale, double shift, const double *x, double *out)
{
  const vec times = v_set(scale), plus = v_set(shift);
  size_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) v_store(out + i, v_exp(v_fma(v_load(x + i), times, plus)));
  if (i < n) v_store_first(out + i, n - i, v_exp(v_fma(v_load_first(x + i, n - i), times, plus)));
}

V_KERNEL void V(log_each)(size_t n, const double *x, double *out)
{
  size_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) v_store(out + i, v_log(v_load(x + i)));
  if (i < n) v_store_first(out + i, n - i, v_log(v_load_first(x + i, n - i)));
}

#define KEEP_COLUMN(c) if (c < here) v_store(out + (j + c) * stride + r, column[c]);

/* V_LANES rows and V_SQUARE columns at a time. Numbers read beyond the end of a row belong to the
 * next row and are not stored. */
V_KERNEL void V(columns)(size_t n, size_t width, size_t columns, const double *rows, double *out,
                         size_t stride)
{
  for (size_t r = 0; r < stride; r += V_LANES)
    for (size_t j = 0; j < columns; j += V_SQUARE) {
      const size_t here = columns - j, first = r * width + j;
      vec column[V_SQUARE];
      if (r + V_LANES <= n && first + (V_LANES - 1) * width + V_SQUARE <= n * width) {
        v_turn(rows + first, width, column);
      } else {
        double part[V_LANES * V_SQUARE] = {0};
        for (size_t l = 0; l < V_LANES && r + l < n; l++)
          for (size_t c = 0; c < V_SQUARE && c < here; c++)
            part[l * V_SQUARE + c] = rows[first + l * width + c];
        v_turn(part, V_SQUARE, column);
      }
      V_EACH_COLUMN(KEEP_COLUMN)
    }
}

#undef KEEP_COLUMN

/* Numbers written beyond the end of a row are overwritten by the next row; nothing is read beyond
 * the last row. */
V_KERNEL void V(gather)(size_t n, size_t width, size_t rows, const double *values,
                        const size_t *picked, double *out)
{
  const double *end = values + rows * width;
  for (size_t k = 0; k < n; k++, out += width) {
    const double *row = values + picked[k] * width;
    for (size_t j = 0; j < width; j += V_LANES)
      v_store(out + j, (size_t)(end - row) >= j + V_LANES ? v_load(row + j)
                                                          : v_load_first(row + j, width - j));
  }
}
