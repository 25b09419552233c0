/* A response that is used as it is, and a density whose constant does not depend on it. */

V_INLINE vec V(response)(vec extra, vec *y, int constant)
{
  (void)extra;
  (void)y;
  (void)constant;
  return v_set(0);
}
