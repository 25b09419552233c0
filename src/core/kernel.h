/* The contract of a Markov kernel: moves particles so that the target stays invariant, exactly or as its step size
 * goes to zero.  Each kernel is one file ending in one constant table. */
#ifndef LE_CORE_KERNEL_H
#define LE_CORE_KERNEL_H

#include "base/rng.h"
#include "core/settings.h"
#include "core/target.h"

enum {
  LE_NEEDS_GRADIENT = 1u << 0, /* le_target_draw, then le_target_gradient */
  LE_NEEDS_DENSITY = 1u << 1,  /* exact densities: no mini-batches */
  LE_NEEDS_FLOOR = 1u << 2,    /* only makes sense inside a wall of the likelihood */
  LE_KEEPS_FLOOR = 1u << 3     /* not a need: stays inside target->floor */
};

/* What a kernel shows of itself in the trace. */
typedef struct le_kernel_report {
  double acceptance; /* of the moves since the last tune; NaN where nothing is rejected */
  double step_size;
} le_kernel_report;

typedef struct le_kernel_ops {
  unsigned version; /* LE_CONTRACT_VERSION */
  size_t size;      /* sizeof(le_kernel_ops) */
  const char *name;
  const le_setting *settings; /* REQUIRED.  A table that ends with {0}. */
  unsigned needs;
  le_metric_kind default_metric;

  /* REQUIRED.  Memory for m particles comes from the arena; settings are those of the table. */
  le_status (*alloc)(const le_args *args, size_t d, size_t m, le_arena *arena, void **self);
  /* OPTIONAL.  A new distribution begins: fresh momenta. */
  le_status (*begin)(void *self, le_target *target, size_t m, double *theta,
                     const le_streams *streams);
  /* REQUIRED.  One move of every particle, particle i with streams->rng[i + 1]; stream 0 is the run's. */
  le_status (*move)(void *self, le_target *target, size_t m, double *theta,
                    const le_streams *streams);
  /* OPTIONAL (never).  Whether the last move is to be gone on with by another call before anything else. */
  int (*unfinished)(const void *self);
  /* OPTIONAL.  The same as `moves` times `move`, up to rounding, by threads that need not meet after each. */
  le_status (*moves)(void *self, le_target *target, size_t m, double *theta,
                     const le_streams *streams, size_t moves);
  /* OPTIONAL.  Between distributions, the only place where step sizes may adapt. */
  void (*tune)(void *self);
  /* OPTIONAL.  Moves with this step size from now on.  Only for kernels that, at any fixed step size and metric, leave the
   * target invariant exactly: a walk that follows a path takes no others. */
  void (*fix)(void *self, double step);
  /* REQUIRED. */
  le_kernel_report (*report)(const void *self);
  /* REQUIRED.  Everything that outlives a move. */
  void (*archive)(void *self, size_t m, le_archive *archive);
} le_kernel_ops;

#define LE_UNWATCHED 1e7 /* multiplications between two looks at the interrupt flag */

/* At least one of `wanted` moves, as many as may be made at once. */
static inline le_status le_kernel_moves(const le_kernel_ops *ops, void *self, le_target *target,
                                        size_t m, double *theta, const le_streams *streams,
                                        size_t wanted, size_t *made)
{
  const size_t ahead = ops->moves ? le_target_ahead(target, m) : 1;
  *made = wanted < ahead ? wanted : ahead;
  /* products with a dense mass matrix may take seconds, whatever the number of rows */
  if ((double)m * (double)target->d * (double)target->d > LE_UNWATCHED &&
      le_interrupted(target->context))
    return LE_INTERRUPTED;
  return *made > 1 ? ops->moves(self, target, m, theta, streams, *made)
                   : ops->move(self, target, m, theta, streams);
}

#endif
