/* The contract of a Markov kernel. A kernel moves particles and leaves the target invariant,
 * exactly or in the limit of a small step size. Each kernel is one file that ends with one constant
 * table. All kernels have the same memory, step size, counts and archive. */
#pragma once

#include "base/blocks.h"
#include "base/rng.h"
#include "core/settings.h"
#include "core/target.h"

enum {
  LE_NEEDS_GRADIENT = 1u << 0, /* calls le_target_draw, then le_target_gradient */
  LE_NEEDS_DENSITY = 1u << 1,  /* exact densities, so no mini-batches */
  LE_NEEDS_FLOOR = 1u << 2,    /* only for targets with a likelihood constraint */
  LE_KEEPS_FLOOR = 1u << 3,    /* not a need: respects target->floor */
  /* not a need: leaves the target exactly invariant at any fixed step size and metric, as a run
   * along a recorded path needs it */
  LE_ANY_STEP = 1u << 4
};

typedef struct le_layout {
  size_t size;           /* of the struct */
  const le_block *block; /* its arrays */
  size_t blocks;
  const le_field *field; /* its numbers that belong to the saved state */
  size_t fields;
} le_layout;

typedef struct le_kernel_ops {
  const char *name;
  const le_setting *settings; /* REQUIRED. A table that ends with {0}. */
  unsigned needs;
  le_metric_kind default_metric;
  size_t steps_most; /* OPTIONAL (0). Most steps of a trajectory whose number of them is adapted. */
  le_layout layout; /* REQUIRED. Of a struct that begins with a le_kernel. */

  /* OPTIONAL (nothing). Reads the settings, those of its table, into a new kernel. */
  void (*set)(void *self, const le_args *args);
  /* OPTIONAL. Prepares for a new distribution, for example draws new momenta. */
  le_status (*begin)(void *self, le_target *target, size_t m, double *theta,
                     const le_streams *streams);
  /* REQUIRED, unless there is `moves`. Moves every particle once. Particle i uses
   * streams->rng[i + 1]; stream 0 belongs to the run. */
  le_status (*move)(void *self, le_target *target, size_t m, double *theta,
                    const le_streams *streams);
  /* OPTIONAL. Moves every particle `moves` times: threads need not synchronise after each move. The
   * result is the same as that of single moves up to rounding. */
  le_status (*moves)(void *self, le_target *target, size_t m, double *theta,
                     const le_streams *streams, size_t moves);
} le_kernel_ops;

/* A kernel and its settings, as given in a method. */
typedef struct le_kernel_spec {
  const le_kernel_ops *ops;
  le_args args;
} le_kernel_spec;

/* A new kernel is all zero except that the step size is NaN and fixed. */
typedef struct le_kernel {
  const le_kernel_ops *ops;
  size_t d;
  double step;               /* its size */
  double goal, most;         /* set once: the acceptance rate to adapt to, and the largest step */
  int fixed;                 /* 1: the step size is not adapted */
  int unfinished;            /* 1: the last move must be continued by another call first */
  double accepted, proposed; /* since the last adaptation */
  double acceptance;         /* of the last distribution; NaN before the first, or without any */
  double tunings;
  double *value; /* of kernels that begin with le_kernel_density(): log f at the points */
} le_kernel;

/* A kernel for m particles. */
le_status le_kernel_alloc(const le_kernel_spec *spec, size_t d, size_t m, le_arena *arena,
                          le_kernel **made);
/* A positive `step` was given by the user and never changes. Otherwise the step begins at `start`
 * and is adapted towards the acceptance rate `goal`. */
void le_kernel_adapt(le_kernel *kernel, double step, double start, double goal, double most);
/* To be called before the moves of a new distribution. */
le_status le_kernel_begin(le_kernel *kernel, le_target *target, size_t m, double *theta,
                          const le_streams *streams);
/* The member `begin` of kernels that need only the densities. */
le_status le_kernel_density(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams);
/* Makes at least one and at most `wanted` moves, as many as the kernel can make in one call. Gibbs
 * steps of the coordinates with few values follow each, if there are any. */
le_status le_kernel_moves(le_kernel *kernel, le_target *target, size_t m, double *theta,
                          const le_streams *streams, size_t wanted, size_t *made);
/* Called between distributions, the only time when step sizes may adapt. */
void le_kernel_tune(le_kernel *kernel);
void le_kernel_archive(le_kernel *kernel, size_t m, le_archive *archive);

#define LE_UNWATCHED 1e7 /* multiplications between two tests for an interrupt */
