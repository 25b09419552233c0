/* The kernel of a mixture in single precision, for base/variants.h: gradients without values. */
#include "models/narrow_body.h"

typedef single_workspace V(space);
#include "models/mixture/weigh_body.h"

V_KERNEL void V(moments_alone)(const single_workspace *w)
{
  for (size_t from = 0; from < tiles_of(w->n); from += w->together) {
    int near = 1;
    for (size_t t = from; t < last_tile(w->n, w->together, from); t++)
      V(weigh_tile)(w, t, w->share + (t - from) * w->components * TILE, &near, NULL, NULL, 1);
    V(add_moments)(w, from);
  }
}
