/* Normal, its precision the sum of a and b: setting[] is a + b, a and b. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec precision = V(given)(setting, 0), a = V(given)(setting, 1), b = V(given)(setting, 2),
            z = y - eta, half = v_set(-0.5) * z * z;
  (void)extra;
  if (wanted & WANT_VALUE) t.value = precision * half;
  if (wanted & WANT_SLOPE) {
    t.slope = precision * z;
    t.a = a * half;
    t.b = b * half;
  }
  if (wanted & WANT_CURVE) {
    t.curve = v_set(0) - precision;
    t.eta_a = a * z;
    t.eta_b = b * z;
    t.aa = a * half;
    t.ab = v_set(0);
    t.bb = b * half;
  }
  return t;
}
