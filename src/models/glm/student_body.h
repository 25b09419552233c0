/* Student's t with scale a and b degrees of freedom: setting[] is 1 / a and b. The source file says
 * by FAMILY_FURTHER whether b is a parameter. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec rate = V(given)(setting, 0), nu = V(given)(setting, 1), more = nu + v_set(1);
  /* a limit, so that q u is 1 and not NaN where z^2 overflows */
  const vec z = (y - eta) * rate, q = v_min(v_set(1e300), z * z / nu),
            u = v_set(1) / (v_set(1) + q), qu = q * u, zu = z * u * rate;
  const vec log_q = V(log_1p)(q), half = v_set(0.5);
  (void)extra;
  if (wanted & WANT_VALUE) t.value = v_set(-0.5) * more * log_q;
  if (wanted & WANT_SLOPE) {
    t.slope = more / nu * zu;
    t.a = more * qu;
    t.b = half * (more * qu - nu * log_q);
  }
  if (wanted & WANT_CURVE) {
    t.curve = more / nu * (qu - u) * (u * rate * rate);
    t.eta_a = v_set(-2) * more / nu * zu * u;
    t.eta_b = zu / nu * (more * qu - v_set(1));
    t.aa = v_set(-2) * more * qu * u;
    t.ab = qu * (nu - more * u);
    t.bb = nu * (qu - half * log_q) - half * more * qu * u;
  }
  return t;
}
