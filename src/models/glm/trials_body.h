/* The response of binomial families: the constant is the log of the binomial coefficient. */

V_INLINE vec V(response)(vec extra, vec *y, int constant)
{
  if (!constant) return v_set(0);
  const vec c = V(log_factorial)(extra) - V(log_factorial)(*y) - V(log_factorial)(extra - *y);
  /* exactly zero for a single trial */
  return v_if_less(extra, v_set(1.5), v_set(0), c);
}
