/* What kernels have in common: memory, a step size that is adapted to a target acceptance rate, and
 * the archive. The struct of a kernel begins with a le_base, and its layout lists the other
 * members. A kernel that adapts its step size uses all functions below in its table; one that does
 * not leaves out `fix`, and if it rejects nothing also `tune`. */
#ifndef LE_KERNELS_SHARED_H
#define LE_KERNELS_SHARED_H

#include "base/blocks.h"
#include "core/kernel.h"
#include "core/members.h"

typedef struct le_layout {
  size_t size;           /* of the struct */
  const le_block *block; /* its arrays */
  size_t blocks;
  const le_field *field; /* its numbers that belong to the saved state */
  size_t fields;
} le_layout;

typedef struct le_base {
  const le_layout *layout;
  size_t d;
  double step, goal, most;   /* the step size, the acceptance rate to adapt to, the largest step */
  int fixed;                 /* 1: the step size is not adapted */
  double accepted, proposed; /* since the last adaptation */
  double acceptance;         /* of the last distribution; NaN before the first */
  double tunings;
} le_base;

/* A kernel for m particles, all zero except that the step size is NaN and fixed; NULL if there is
 * no memory. */
void *le_base_alloc(const le_layout *layout, size_t d, size_t m, le_arena *arena);
/* A positive `step` was given by the user and never changes. Otherwise the step begins at `start`
 * and is adapted towards the acceptance rate `goal`. */
void le_base_adapt(le_base *base, double step, double start, double goal, double most);
/* Step sizes change only between distributions. */
void le_base_tune(void *self);
void le_base_fix(void *self, double step);
le_kernel_report le_base_report(const void *self);
void le_base_archive(void *self, size_t m, le_archive *archive);

#endif
