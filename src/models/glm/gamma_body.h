/* Gamma with mean exp(eta) and shape a = setting[0]. V(row) gets the log of the response. */
/* exp(x) - 1 - x, relative error 1e-13: for small x by its series. */
V_INLINE vec V(exp_rest)(vec x, vec e)
{
  vec s = v_set(1.0 / 3628800);
  const double c[] = {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                      1.0 / 120,    1.0 / 24,    1.0 / 6,    1.0 / 2};
  for (int k = 0; k < 8; k++) s = v_fma(s, x, v_set(c[k]));
  return v_if_less(V(size_of)(x), v_set(1.0 / 16), s * x * x, e - v_set(1) - x);
}

/* With r = y exp(-eta) the density is a (log r - r + 1), but for terms without eta: where a is
 * large, these numbers are near zero, and so is what is left of the other terms. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec a = V(given)(setting, 0), log_r = y - eta, r = v_exp(log_r),
            rest = V(exp_rest)(log_r, r), value = v_set(0) - a * rest;
  (void)extra;
  if (wanted & WANT_VALUE) t.value = value;
  if (wanted & WANT_SLOPE) {
    t.slope = a * (log_r + rest);
    t.a = value;
  }
  if (wanted & WANT_CURVE) {
    t.curve = v_set(0) - a * r;
    t.eta_a = a * (log_r + rest);
    t.aa = value;
  }
  return t;
}
