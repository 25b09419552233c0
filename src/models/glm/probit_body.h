/* Binomial with the probit link: `extra` is the number of trials. */
/* Mills' ratio Phi(-x) / phi(x) for x >= 0, relative error 1e-15: times 1 + 3x/2 it is a polynomial
 * of t = (x - 5) / (x + 5), of degree 24 (from its expansion in Chebyshev polynomials). */

V_INLINE vec V(mills)(vec x)
{
  static const double c[] = {
    1.638868890080184,      -0.16443392526106387,   -0.02879828453503807,  0.1389811758084812,
    -0.15924419073244975,   0.12160254125119686,    -0.0683089001066487,   0.02750378618425759,
    -0.006577101507955262,  -0.0001389951077652695, 0.000761300336115554,  -0.0002027662453819081,
    -4.553569321001414e-05, 3.565627314181839e-05,  5.801232717954283e-07, -5.2210839542121384e-06,
    3.8649546960201125e-07, 7.874083434187099e-07,  -8.744620669691214e-08,
    -1.2390118831306818e-07, 1.2863203928242427e-08, 1.752875726582498e-08,
    -1.282102351319264e-09, -1.51257472079175e-09,  6.311607206234834e-11};
  const vec t = (x - v_set(5)) / (x + v_set(5)), square = t * t;
  vec even = v_set(c[24]), odd = v_set(c[23]);
  for (int k = 22; k >= 0; k -= 2) even = v_fma(even, square, v_set(c[k]));
  for (int k = 21; k >= 1; k -= 2) odd = v_fma(odd, square, v_set(c[k]));
  return v_fma(odd, t, even) / v_fma(v_set(1.5), x, v_set(1));
}

/* With x = |eta|: tail = Phi(-x), head = Phi(x). */
V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec zero = v_set(0), x = v_min(v_set(1e150), V(size_of)(eta)), ratio = V(mills)(x);
  const vec half = v_set(-0.5) * x * x,
            density = v_exp_down(half) * v_set(0.3989422804014326779), tail = density * ratio;
  const vec failures = extra - y;
  (void)setting;
  if (wanted & WANT_VALUE) {
    const vec log_tail = half - v_set(HALF_LOG_2PI) + v_log(ratio),
              log_head = V(log_1p)(zero - tail);
    t.value = y * v_if_less(eta, zero, log_tail, log_head) +
              failures * v_if_less(eta, zero, log_head, log_tail);
  }
  if (wanted & (WANT_SLOPE | WANT_CURVE)) {
    const vec of_tail = v_set(1) / ratio, of_head = density / (v_set(1) - tail);
    const vec up = v_if_less(eta, zero, of_tail, of_head),
              down = v_if_less(eta, zero, of_head, of_tail);
    t.slope = y * up - failures * down;
    t.curve = zero - (y * up * (up + eta) + failures * down * (down - eta));
  }
  return t;
}
