/* Binomial with the logistic link: `extra` is the number of trials. */

V_INLINE V(terms) V(row)(int wanted, vec eta, vec y, vec extra, V(settings) setting)
{
  V(terms) t;
  const vec e = v_exp_down(v_set(0) - V(size_of)(eta));
  (void)setting;
  if (wanted & WANT_VALUE) { /* without cancellation where failures or successes are certain */
    const vec sure = v_if_less(eta, v_set(0), y, y - extra);
    t.value = v_fma(sure, eta, v_set(0) - extra * V(log_1p)(e));
  }
  if (wanted & WANT_SLOPE) t.slope = v_fnma(extra, V(logistic)(eta, e), y);
  if (wanted & WANT_CURVE) t.curve = v_set(0) - extra * V(logistic_slope)(e);
  return t;
}
