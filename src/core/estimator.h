/* The contract of an estimator. A run is started, gets rows, works in slices of time and reports
 * its result. It never calls back into R: the bridge (src/bridge/run.c) decides when it works. */
#pragma once

#include "base/archive.h"
#include "core/context.h"
#include "core/kernel.h"
#include "core/result.h"
#include "core/rows.h"
#include "core/settings.h"

/* LE_ASKS: a question about rows (core/question.h) is open. It waits for its answer, or for all
 * rows once more, from the first on, in the same order. */
typedef enum le_progress {
  LE_MORE,
  LE_NEEDS_ROWS,
  LE_ASKS,
  LE_DONE,
  LE_FAILED
} le_progress;

/* Everything needed to start a run. */
typedef struct le_problem {
  const le_model_ops *ops;
  const void *model;
  le_args settings;
  size_t kernels;
  const le_kernel_spec *kernel;
  uint64_t seed;
  uint32_t replicate;
  size_t total; /* number of rows expected in total, 0 if unknown */
} le_problem;

/* Particles of equal weight that stand for the posterior of the first `seen` rows: what one engine
 * hands to the next. */
typedef struct le_population {
  size_t seen, m;
  const double *theta; /* m x d, owned by the engine that hands them over */
  double log_evidence, variance; /* of those rows, and the variance of its estimate */
} le_population;

/* A piece of work. */
typedef struct le_phase {
  const char *name;
  le_status (*run)(void *self); /* NULL marks the end */
  int waits;                    /* 1: waits until all rows are there */
} le_phase;

/* How core/machine.h makes an instance of an engine and works with it. `self` is the instance. */
typedef struct le_estimator_ops {
  const char *name;
  /* REQUIRED. Tables of its settings. */
  le_knows knows;
  /* REQUIRED. Of an instance, which begins with a le_machine and is zero at first. */
  size_t size;
  /* REQUIRED unless there is `advance`. Ends with one that has no work. */
  const le_phase *phases;
  /* OPTIONAL. The names of the columns of the machine's trace; ends with NULL. */
  const char *const *columns;
  /* OPTIONAL. Numbers that belong to the saved state. */
  le_fields fields;

  /* REQUIRED. Reads the settings, checks that the model offers what the kernels need, allocates
   * memory from the machine's arena, and random streams. */
  le_status (*make)(void *self);
  /* OPTIONAL. Frees what is not the machine's, also after make() has failed. */
  void (*release)(void *self);
  /* OPTIONAL. Memory whose size depends on the rows: called by the first phase, which waits for
   * them, and before a later phase is read from a saved state. */
  le_status (*allocate)(void *self);
  /* OPTIONAL. Draws from the prior. Called once before the first advance, and not if a saved state
   * is read. */
  le_status (*start)(void *self);
  /* OPTIONAL. Instead of le_machine_take(). */
  le_status (*feed)(void *self, const le_rows *rows, le_feed feed);
  /* OPTIONAL. Instead of phases. */
  le_progress (*advance)(void *self, double seconds, le_status *status);
  /* REQUIRED. Rows processed and the fraction of the work done, for a progress bar. */
  void (*progress)(const void *self, double *rows, double *share);
  /* REQUIRED. The results so far, without the trace. */
  le_status (*result)(void *self, le_result *result);
  /* REQUIRED. Writes the state besides `fields` and the machine, or reads it. Not called before
   * `allocate` was. */
  void (*archive)(void *self, le_archive *archive);
  /* OPTIONAL (0). 1 if it accepts models with latent variables; 1 if rows may be elsewhere. */
  int latent, asks;
  /* OPTIONAL.  If the engine consists of others: the instance that works now. */
  void *(*at_work)(void *self);
  /* OPTIONAL.  At the end of its rows: the particles, for another engine to go on with. */
  void (*hand_over)(const void *self, le_population *population);
  /* OPTIONAL.  Instead of draws from the prior, before the first advance; rows are fed already. */
  le_status (*take_over)(void *self, const le_population *population);
  /* OPTIONAL.  After the end: makes the run ready for further rows, with all that it needs of the
   * earlier ones in bounded memory. */
  le_status (*reopen)(void *self);
} le_estimator_ops;
