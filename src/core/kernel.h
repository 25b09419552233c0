/* The contract of a Markov kernel. A kernel moves particles and leaves the target invariant,
 * exactly or in the limit of a small step size. Each kernel is one file that ends with one constant
 * table. */
#ifndef LE_CORE_KERNEL_H
#define LE_CORE_KERNEL_H

#include "base/rng.h"
#include "core/settings.h"
#include "core/target.h"

enum {
  LE_NEEDS_GRADIENT = 1u << 0, /* calls le_target_draw, then le_target_gradient */
  LE_NEEDS_DENSITY = 1u << 1,  /* exact densities, so no mini-batches */
  LE_NEEDS_FLOOR = 1u << 2,    /* only for targets with a likelihood constraint */
  LE_KEEPS_FLOOR = 1u << 3     /* not a need: respects target->floor */
};

/* What a kernel reports for the trace. */
typedef struct le_kernel_report {
  double acceptance; /* of the moves since the last call of tune; NaN if nothing is rejected */
  double step_size;
} le_kernel_report;

typedef struct le_kernel_ops {
  const char *name;
  const le_setting *settings; /* REQUIRED. A table that ends with {0}. */
  unsigned needs;
  le_metric_kind default_metric;

  /* REQUIRED. Takes memory for m particles from the arena; settings are those of its table. */
  le_status (*alloc)(const le_args *args, size_t d, size_t m, le_arena *arena, void **self);
  /* OPTIONAL. Prepares for a new distribution, for example draws new momenta. */
  le_status (*begin)(void *self, le_target *target, size_t m, double *theta,
                     const le_streams *streams);
  /* REQUIRED. Moves every particle once. Particle i uses streams->rng[i + 1]; stream 0 belongs to
   * the run. */
  le_status (*move)(void *self, le_target *target, size_t m, double *theta,
                    const le_streams *streams);
  /* OPTIONAL (never). Whether the last move must be continued by another call before anything
   * else. */
  int (*unfinished)(const void *self);
  /* OPTIONAL. The same as calling `move` `moves` times, up to rounding, but threads need not
   * synchronise after each move. */
  le_status (*moves)(void *self, le_target *target, size_t m, double *theta,
                     const le_streams *streams, size_t moves);
  /* OPTIONAL. Called between distributions, the only time when step sizes may adapt. */
  void (*tune)(void *self);
  /* OPTIONAL. Uses this step size from now on. Only for kernels that leave the target exactly
   * invariant at any fixed step size and metric: a run along a recorded path needs such a
   * kernel. */
  void (*fix)(void *self, double step);
  /* REQUIRED. */
  le_kernel_report (*report)(const void *self);
  /* REQUIRED. Everything that must be kept from one move to the next. */
  void (*archive)(void *self, size_t m, le_archive *archive);
} le_kernel_ops;

#define LE_UNWATCHED 1e7 /* multiplications between two tests for an interrupt */

/* Makes at least one and at most `wanted` moves, as many as the kernel can make in one call. */
static inline le_status le_kernel_moves(const le_kernel_ops *ops, void *self, le_target *target,
                                        size_t m, double *theta, const le_streams *streams,
                                        size_t wanted, size_t *made)
{
  const size_t ahead = ops->moves ? le_target_ahead(target, m) : 1;
  *made = wanted < ahead ? wanted : ahead;
  /* products with a dense mass matrix may take seconds even if there are few rows */
  if ((double)m * (double)target->d * (double)target->d > LE_UNWATCHED &&
      le_interrupted(target->context))
    return LE_INTERRUPTED;
  return *made > 1 ? ops->moves(self, target, m, theta, streams, *made)
                   : ops->move(self, target, m, theta, streams);
}

#endif
