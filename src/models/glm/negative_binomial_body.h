/* Negative binomial with size a: setting[] is a, log a, far = a + 8, log far, the product of the
 * eight factors of a, Stirling's series at far, that of digamma, the sum of eight inverses of a,
 * and trigamma(a) without 1 / far + 1 / (2 far^2). */
/* With t = eta - log a and z = y + a, the density is y t - z log(1 + exp(t)) + g, where g is log
 * Gamma(z) - log Gamma(a). The difference is taken between far + y and far, and in the eight
 * factors, without cancellation for large a. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec a = V(given)(setting, 0), x = eta - V(given)(setting, 1), z = y + a,
            far = V(given)(setting, 2), farther = far + y;
  const vec e = v_exp_down(v_set(0) - V(size_of)(x)), sigma = V(logistic)(x, e),
            soft = V(log_1p_exp)(x, e), longer = V(log_1p)(y / far);
  (void)extra;
  if (wanted & WANT_VALUE) {
    const vec rest = (farther - v_set(0.5)) * longer - y + (V(stirling)(farther) -
                                                            V(given)(setting, 5));
    const vec g = y * V(given)(setting, 3) + rest -
                  v_log(V(eight_factors)(z) / V(given)(setting, 4));
    t.value = v_if_less(x, v_set(0), y, v_set(0) - a) * x - z * V(log_1p)(e) + g;
  }
  const vec slope = y - z * sigma;
  const vec first = longer + v_set(0.5) * y / (far * farther) +
                    (V(digamma_rest)(farther) - V(given)(setting, 6)) -
                    (V(eight_inverses)(z) - V(given)(setting, 7));
  const vec by_a = a * (first - soft);
  if (wanted & WANT_SLOPE) {
    t.slope = slope;
    t.a = by_a - slope;
  }
  if (wanted & WANT_CURVE) {
    const vec bend = z * V(logistic_slope)(e), share = y / (far * farther);
    const vec second = V(trigamma_rest)(farther) + V(eight_squares)(z) - V(given)(setting, 8) -
                       share - v_set(0.5) * share * (v_set(1) / far + v_set(1) / farther);
    t.curve = v_set(0) - bend;
    t.eta_a = bend - a * sigma;
    t.aa = v_set(2) * a * sigma - bend + by_a + a * a * second;
  }
  return t;
}
