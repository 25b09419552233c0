/* Poisson: the mean is exp(eta). */
#include "models/glm/functions_body.h"
#define FAMILY_FURTHER 0

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

V_INLINE vec V(response)(vec extra, vec *y, int constant)
{
  (void)extra;
  return constant ? v_set(0) - V(log_factorial)(*y) : v_set(0);
}

#include "models/glm/family_body.h"
#undef FAMILY_FURTHER
