/* Normal with unknown standard deviation a: setting[0] is 1 / a. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec rate = V(given)(setting, 0), z = (y - eta) * rate, square = z * z;
  (void)extra;
  if (wanted & WANT_VALUE) t.value = v_set(-0.5) * square;
  if (wanted & WANT_SLOPE) {
    t.slope = z * rate;
    t.a = square;
  }
  if (wanted & WANT_CURVE) {
    t.curve = v_set(0) - rate * rate;
    t.eta_a = v_set(-2) * z * rate;
    t.aa = v_set(-2) * square;
  }
  return t;
}
