/* Poisson: the mean is exp(eta). */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec mean = v_exp(eta);
  (void)extra;
  (void)setting;
  if (wanted & WANT_VALUE) t.value = v_fma(y, eta, v_set(0) - mean);
  if (wanted & WANT_SLOPE) t.slope = y - mean;
  if (wanted & WANT_CURVE) t.curve = v_set(0) - mean;
  return t;
}
