/* Local optima of a function among points at which it is known. */
#pragma once

#include <stddef.h>

/* Points that are better than all their nearest neighbours (Toern and Viitanen 1994, topographical
 * global optimisation): each leads to a mode, also to one with a small basin. `order` has the
 * indices of the n points theta (n x d), the best first; the optima are moved to its front, still
 * the best first. Distances are relative to `scale`; `rest` is memory for n indices. Returns the
 * number of optima. */
size_t le_optima(size_t n, size_t d, const double *theta, const double *scale, size_t *order,
                 size_t *rest);
