/* Gamma with mean exp(eta) and shape a = setting[0]. V(row) gets the log of the response. */
/* With r = y exp(-eta) the density is a (log r - r), but for terms without eta. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec a = V(given)(setting, 0), log_r = y - eta, r = v_exp(log_r), value = a * (log_r - r);
  (void)extra;
  if (wanted & WANT_VALUE) t.value = value;
  if (wanted & WANT_SLOPE) {
    t.slope = a * (r - v_set(1));
    t.a = value;
  }
  if (wanted & WANT_CURVE) {
    t.curve = v_set(0) - a * r;
    t.eta_a = a * (r - v_set(1));
    t.aa = value;
  }
  return t;
}
