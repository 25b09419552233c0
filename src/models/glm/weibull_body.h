/* Weibull with scale exp(eta) and shape a: setting[] is a and log a. `extra` is 1 if the event was
 * observed, 0 if the time is a lower limit. V(row) gets the log of the time. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec a = V(given)(setting, 0), z = a * (y - eta), e = v_exp(z);
  if (wanted & WANT_VALUE) t.value = extra * (z + V(given)(setting, 1)) - e;
  if (wanted & WANT_SLOPE) {
    t.slope = a * (e - extra);
    t.a = extra + z * (extra - e);
  }
  if (wanted & WANT_CURVE) {
    t.curve = v_set(0) - a * a * e;
    t.eta_a = a * (e - extra + z * e);
    t.aa = z * (extra - e) - z * z * e;
  }
  return t;
}
