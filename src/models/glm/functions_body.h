/* Functions of vectors that families share: the logistic function, log Gamma and its derivatives.
 * models/glm/family_body.h includes this file first. */

/* What V(row) returns: the log density of a row, and its derivatives by eta, a and b (family.h). */
typedef struct V(terms) {
  vec value, slope, a, b, curve, eta_a, eta_b, aa, ab, bb;
} V(terms);

/* Functions of a and b (family.h): the same for all rows, or, with a step, vectors of the rows. */
typedef struct V(settings) {
  const double *at;
  size_t step;
} V(settings);

V_INLINE vec V(given)(V(settings) s, size_t k)
{
  return s.step ? v_load(s.at + k * s.step) : v_set(s.at[k]);
}

V_INLINE vec V(size_of)(vec x) { return v_max(x, v_set(0) - x); }

/* log(1 + x) for x >= 0. The second term is the rounding error of 1 + x. */
V_INLINE vec V(log_1p)(vec x)
{
  x = v_min(v_set(V_MOST), x);
  const vec u = v_set(1) + x;
  return v_log(u) + (x - (u - v_set(1))) / u;
}

/* For e = exp(-|x|): the logistic function of x, its derivative, and log(1 + exp(x)). */
V_INLINE vec V(logistic)(vec x, vec e)
{
  return v_if_less(x, v_set(0), e, v_set(1)) / (v_set(1) + e);
}
V_INLINE vec V(logistic_slope)(vec e) { return e / ((v_set(1) + e) * (v_set(1) + e)); }
V_INLINE vec V(log_1p_exp)(vec x, vec e) { return v_max(x, v_set(0)) + V(log_1p)(e); }

/* ---- Gamma functions, from z > 0 to z + 8 by recurrence and from there by Stirling's series ----
 *
 * (z + k)(z + 7 - k) = q + k (7 - k) with q = z (z + 7), so that the eight factors of the
 * recurrence are four: q, q + 6, q + 10 and q + 12. */

V_INLINE vec V(eight_factors)(vec z)
{
  const vec q = z * (z + v_set(7));
  return q * (q + v_set(6)) * ((q + v_set(10)) * (q + v_set(12)));
}

/* sum of 1 / (z + k), k = 0 .. 7 */
V_INLINE vec V(eight_inverses)(vec z)
{
  const vec q = z * (z + v_set(7)), b = q + v_set(6), c = q + v_set(10), d = q + v_set(12);
  return (v_set(2) * z + v_set(7)) * ((q + b) / (q * b) + (c + d) / (c * d));
}

/* sum of 1 / (z + k)^2, k = 0 .. 7 */
V_INLINE vec V(eight_squares)(vec z)
{
  const vec q = z * (z + v_set(7)), twice = v_set(2) * z + v_set(7), square = twice * twice;
  vec sum = v_set(0);
  const double more[] = {0, 6, 10, 12};
  for (int k = 0; k < 4; k++) {
    const vec c = q + v_set(more[k]);
    sum = sum + (square - v_set(2) * c) / (c * c);
  }
  return sum;
}

/* log Gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2 for z >= 8. */
V_INLINE vec V(stirling)(vec z)
{
  const vec w = v_set(1) / z, x = w * w;
  vec s = v_fma(x, v_set(1.0 / 156), v_set(-691.0 / 360360));
  s = v_fma(x, s, v_set(1.0 / 1188));
  s = v_fma(x, s, v_set(-1.0 / 1680));
  s = v_fma(x, s, v_set(1.0 / 1260));
  s = v_fma(x, s, v_set(-1.0 / 360));
  return w * v_fma(x, s, v_set(1.0 / 12));
}

/* digamma(z) - log z + 1 / (2 z) for z >= 8. */
V_INLINE vec V(digamma_rest)(vec z)
{
  const vec w = v_set(1) / z, x = w * w;
  vec s = v_fma(x, v_set(-1.0 / 12), v_set(691.0 / 32760));
  s = v_fma(x, s, v_set(-1.0 / 132));
  s = v_fma(x, s, v_set(1.0 / 240));
  s = v_fma(x, s, v_set(-1.0 / 252));
  s = v_fma(x, s, v_set(1.0 / 120));
  return x * v_fma(x, s, v_set(-1.0 / 12));
}

/* (trigamma(z) - 1 / z - 1 / (2 z^2)) z^3 for z >= 8. */
V_INLINE vec V(trigamma_series)(vec z)
{
  const vec w = v_set(1) / z, x = w * w;
  vec s = v_fma(x, v_set(7.0 / 6), v_set(-691.0 / 2730));
  s = v_fma(x, s, v_set(5.0 / 66));
  s = v_fma(x, s, v_set(-1.0 / 30));
  s = v_fma(x, s, v_set(1.0 / 42));
  s = v_fma(x, s, v_set(-1.0 / 30));
  return v_fma(x, s, v_set(1.0 / 6));
}

/* trigamma(z) for z >= 8, and without its first two terms. */
V_INLINE vec V(trigamma_far)(vec z)
{
  const vec w = v_set(1) / z, x = w * w;
  return w + x * v_fma(w, V(trigamma_series)(z), v_set(0.5));
}
V_INLINE vec V(trigamma_rest)(vec z)
{
  const vec w = v_set(1) / z;
  return w * w * w * V(trigamma_series)(z);
}

/* log(y!) */
V_INLINE vec V(log_factorial)(vec y)
{
  const vec z = y + v_set(1), far = y + v_set(9);
  return (far - v_set(0.5)) * v_log(far) - far + v_set(HALF_LOG_2PI) + V(stirling)(far) -
         v_log(V(eight_factors)(z));
}
