/* Likelihoods of groups from triangular factors of their rows, for the particles of a tile
 * (models/mixed/sums.h). */

/* Of [1 B / sigma], q x 2q: the lower triangle T of T U, where the rows of U are orthonormal and
 * replace it (Gram and Schmidt). S = sigma^2 T T' is the covariance of the residuals w. Neither S
 * nor its inverse is formed from squares or differences, so that no digits are lost for any ratio
 * of noise to effects; the diagonal of T is at least 1. `inverse` becomes 1 / diagonal. */
V_INLINE void V(orthogonalise)(size_t q, vec *u, vec *t, vec *inverse)
{
  for (size_t i = 0; i < q; i++) {
    vec *own = u + 2 * i * q, squares = v_set(1);
    for (size_t j = 0; j < i; j++) {
      const vec *other = u + 2 * j * q;
      vec sum = v_set(0);
      for (size_t l = 0; l < 2 * q; l++)
        if (l < j || l >= q) sum = v_fma(other[l], own[l], sum);
      t[i * q + j] = sum;
      own[j] = v_set(0) - sum * other[j];
      for (size_t l = 0; l < 2 * q; l++)
        if (l < j || l >= q) own[l] = v_fnma(sum, other[l], own[l]);
    }
    for (size_t l = 0; l < 2 * q; l++)
      if (l < i || l >= q) squares = v_fma(own[l], own[l], squares);
    t[i * q + i] = v_sqrt(squares);
    own[i] = inverse[i] = v_set(1) / t[i * q + i];
    for (size_t l = 0; l < 2 * q; l++)
      if (l < i || l >= q) own[l] = own[l] * inverse[i];
  }
}

/* A group and a vector of particles, given the number of effects q. */
V_INLINE vec V(group_of)(size_t q, const sums_shape *shape, const double *row, int slopes,
                         const double *point, double *to)
{
  const size_t c = shape->columns;
  const double *factor = row + 1;
  const vec rate = v_load(point + shape->rate * TILE), n = v_set(row[0]);
  const double *root = point + shape->root * TILE;
  vec w[SUMS_COLUMNS_MOST + 1], u[2 * EFFECTS_SQUARED], t[EFFECTS_SQUARED], y[MIXED_EFFECTS_MOST],
    v[MIXED_EFFECTS_MOST], d[EFFECTS_SQUARED], inverse[MIXED_EFFECTS_MOST];
  /* the residuals at v = 0, in the coordinates of the factor, in units of sigma */
  const double *line = factor;
  vec squares = v_set(0);
  for (size_t i = 0; i <= c; i++, line += c + 2 - i) {
    vec sum = v_set(line[c - i]);
    for (size_t j = i; j < c; j++) sum = v_fma(v_set(line[j - i]), v_load(point + j * TILE), sum);
    w[i] = sum * rate;
    if (i >= q) squares = v_fma(w[i], w[i], squares);
  }
  /* B: the factor of the effects' columns times the root */
  line = factor;
  for (size_t i = 0; i < q; i++, line += c + 2 - i)
    for (size_t j = 0; j < q; j++) {
      vec sum = v_set(0);
      for (size_t l = i > j ? i : j; l < q; l++)
        sum = v_fma(v_set(line[l - i]), v_load(root + (l * q + j) * TILE), sum);
      u[2 * i * q + q + j] = sum * rate;
    }
  V(orthogonalise)(q, u, t, inverse);
  /* y = T^-1 w, and w becomes S^-1 w times sigma */
  vec product = v_set(1);
  for (size_t i = 0; i < q; i++) {
    vec sum = w[i];
    for (size_t l = 0; l < i; l++) sum = v_fnma(t[i * q + l], y[l], sum);
    y[i] = sum * inverse[i];
    squares = v_fma(y[i], y[i], squares);
    product = product * t[i * q + i];
  }
  const vec value = v_fma(v_set(-0.5), squares, v_set(0)) - v_log(product) -
                    n * v_load(point + shape->constant * TILE);
  if (!slopes) return value;
  /* v, the mean of the effects given the rows, and the slopes by B times sigma: T'^-1 d */
  for (size_t j = 0; j < q; j++) {
    v[j] = v_set(0);
    for (size_t i = 0; i < q; i++) v[j] = v_fma(u[2 * i * q + q + j], y[i], v[j]);
    for (size_t i = 0; i < q; i++)
      d[i * q + j] = v_fma(y[i], v[j], v_set(0) - u[2 * i * q + q + j]);
  }
  vec by_log_sigma = v_set((double)q) - n;
  for (size_t i = q; i <= c; i++) by_log_sigma = v_fma(w[i], w[i], by_log_sigma);
  for (size_t i = q; i-- > 0;) {
    w[i] = y[i];
    for (size_t l = i + 1; l < q; l++) w[i] = v_fnma(t[l * q + i], w[l], w[i]);
    w[i] = w[i] * inverse[i];
    by_log_sigma = v_fma(w[i], w[i], by_log_sigma);
    for (size_t j = 0; j < q; j++) {
      if (j <= i) by_log_sigma = v_fnma(u[2 * i * q + j], u[2 * i * q + j], by_log_sigma);
      for (size_t l = i + 1; l < q; l++)
        d[i * q + j] = v_fnma(t[l * q + i], d[l * q + j], d[i * q + j]);
      d[i * q + j] = d[i * q + j] * inverse[i];
    }
  }
  double *by = to + shape->rate * TILE;
  v_store(by, v_load(by) + by_log_sigma);
  line = factor;
  for (size_t i = 0; i <= c; i++, line += c + 2 - i) {
    const vec along = w[i] * rate;
    for (size_t j = i; j < c; j++)
      v_store(to + j * TILE, v_fma(v_set(line[j - i]), along, v_load(to + j * TILE)));
  }
  line = factor;
  for (size_t i = 0; i < q; i++, line += c + 2 - i)
    for (size_t j = 0; j < q; j++) {
      const vec along = d[i * q + j] * rate;
      for (size_t l = i > j ? i : j; l < q; l++) {
        by = to + (shape->root + l * q + j) * TILE;
        v_store(by, v_fma(v_set(line[l - i]), along, v_load(by)));
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
