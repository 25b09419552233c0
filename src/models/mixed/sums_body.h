/* Likelihoods of groups from triangular factors of their rows, for the particles of a tile
 * (models/mixed/sums.h). */



/* A group and a vector of particles, given the number of effects q. */
V_INLINE vec V(group_of)(size_t q, const sums_shape *shape, const double *row, int slopes,
                         const double *point, double *to)
{
  const size_t c = shape->columns;
  const double *factor = row + 1;
  const vec inverse = v_load(point + shape->precision * TILE), n = v_set(row[0]);
  const double *root = point + shape->root * TILE;
  vec w[SUMS_COLUMNS_MOST + 1], b[EFFECTS_SQUARED], k[EFFECTS_SQUARED], v[MIXED_EFFECTS_MOST],
    other[EFFECTS_SQUARED];
  /* the residuals at v = 0, in the coordinates of the factor */
  const double *line = factor;
  for (size_t i = 0; i <= c; i++, line += c + 2 - i) {
    vec sum = v_set(line[c - i]);
    for (size_t j = i; j < c; j++) sum = v_fma(v_set(line[j - i]), v_load(point + j * TILE), sum);
    w[i] = sum;
  }
  vec squares = v_set(0);
  for (size_t i = q; i <= c; i++) squares = v_fma(w[i], w[i], squares);
  /* b: the factor of the effects' columns times the root; k = 1 + b'b / sigma^2 */
  line = factor;
  for (size_t i = 0; i < q; i++, line += c + 2 - i)
    for (size_t j = 0; j < q; j++) {
      vec sum = v_set(0);
      for (size_t l = i > j ? i : j; l < q; l++)
        sum = v_fma(v_set(line[l - i]), v_load(root + (l * q + j) * TILE), sum);
      b[i * q + j] = sum;
    }
  for (size_t i = 0; i < q; i++)
    for (size_t j = 0; j <= i; j++) {
      vec sum = v_set(0);
      for (size_t l = 0; l < q; l++) sum = v_fma(b[l * q + i], b[l * q + j], sum);
      k[i * q + j] = v_fma(sum, inverse, v_set(i == j));
    }
  /* its Cholesky factor, and v, the mean of the effects given the rows */
  vec product = v_set(1);
  for (size_t i = 0; i < q; i++)
    for (size_t j = 0; j <= i; j++) {
      vec sum = k[i * q + j];
      for (size_t l = 0; l < j; l++) sum = v_fnma(k[i * q + l], k[j * q + l], sum);
      if (i == j) sum = v_sqrt(sum);
      k[i * q + j] = i == j ? sum : sum / k[j * q + j];
      if (i == j) product = product * sum;
    }
  for (size_t i = 0; i < q; i++) {
    vec sum = v_set(0);
    for (size_t l = 0; l < q; l++) sum = v_fma(b[l * q + i], w[l], sum);
    sum = sum * inverse;
    for (size_t l = 0; l < i; l++) sum = v_fnma(k[i * q + l], v[l], sum);
    v[i] = sum / k[i * q + i];
  }
  for (size_t i = q; i-- > 0;) {
    vec sum = v[i];
    for (size_t l = i + 1; l < q; l++) sum = v_fnma(k[l * q + i], v[l], sum);
    v[i] = sum / k[i * q + i];
  }
  vec length = v_set(0);
  for (size_t i = 0; i < q; i++) {
    for (size_t j = 0; j < q; j++) w[i] = v_fnma(b[i * q + j], v[j], w[i]);
    squares = v_fma(w[i], w[i], squares);
    length = v_fma(v[i], v[i], length);
  }
  squares = squares * inverse;
  const vec value = v_fma(v_set(-0.5), squares + length, v_set(0)) - v_log(product) -
                    n * v_load(point + shape->constant * TILE);
  if (!slopes) return value;
  /* inverse of the Cholesky factor, then of k */
  for (size_t j = 0; j < q; j++)
    for (size_t i = j; i < q; i++) {
      vec sum = v_set(i == j);
      for (size_t l = j; l < i; l++) sum = v_fnma(k[i * q + l], other[l * q + j], sum);
      other[i * q + j] = sum / k[i * q + i];
    }
  vec trace = v_set(0);
  for (size_t i = 0; i < q; i++)
    for (size_t j = 0; j <= i; j++) {
      vec sum = v_set(0);
      for (size_t l = i; l < q; l++) sum = v_fma(other[l * q + i], other[l * q + j], sum);
      k[i * q + j] = k[j * q + i] = sum;
      if (i == j) trace = trace + sum;
    }
  double *by = to + shape->precision * TILE;
  v_store(by, v_load(by) + (squares + v_set((double)q) - trace - n));
  line = factor;
  for (size_t i = 0; i <= c; i++, line += c + 2 - i)
    for (size_t j = i; j < c; j++)
      v_store(to + j * TILE,
              v_fma(v_set(line[j - i]), w[i] * inverse, v_load(to + j * TILE)));
  line = factor;
  for (size_t i = 0; i < q; i++, line += c + 2 - i)
    for (size_t j = 0; j < q; j++) {
      vec sum = w[i] * v[j];
      for (size_t l = 0; l < q; l++) sum = v_fnma(b[i * q + l], k[l * q + j], sum);
      sum = sum * inverse;
      for (size_t l = i > j ? i : j; l < q; l++) {
        by = to + (shape->root + l * q + j) * TILE;
        v_store(by, v_fma(v_set(line[l - i]), sum, v_load(by)));
      }
    }
  return value;
}

/* All groups of a block and n particles. With `each` values go there, TILE numbers for each group;
 * else they are added to the last numbers of `to`. */
V_INLINE void V(groups_of)(size_t q, const sums_shape *shape, const le_rows *rows, size_t n,
                           int slopes, const double *point, double *to, double *each)
{
  for (size_t r = 0; r < rows->n; r++)
    for (size_t at = 0; at < n; at += V_LANES) {
      const vec value = V(group_of)(q, shape, rows->values + r * rows->width, slopes, point + at,
                                    to + at);
      double *sum = to + shape->constant * TILE + at;
      if (each) v_store(each + r * TILE + at, value);
      else v_store(sum, v_load(sum) + value);
    }
}

#define GROUPS_CASE(q)                                                                             \
  case q: V(groups_of)(q, shape, rows, n, slopes, point, to, each); break;

V_KERNEL void V(groups)(const sums_shape *shape, const le_rows *rows, size_t n, int slopes,
                        const double *point, double *to, double *each)
{
  switch (shape->q) {
    GROUPS_CASE(1)
    GROUPS_CASE(2)
    GROUPS_CASE(3)
  default: V(groups_of)(shape->q, shape, rows, n, slopes, point, to, each);
  }
}
