/* The contract of an estimator: a run that is started, fed with rows, advanced in slices of time and asked for its
 * result.  It never calls back: R conducts (src/bridge/run.c), C plays. */
#ifndef LE_CORE_ESTIMATOR_H
#define LE_CORE_ESTIMATOR_H

#include "base/archive.h"
#include "core/context.h"
#include "core/kernel.h"
#include "core/result.h"
#include "core/rows.h"
#include "core/settings.h"

typedef enum le_progress { LE_MORE, LE_NEEDS_ROWS, LE_DONE, LE_FAILED } le_progress;

/* A kernel and its settings, as a method names them. */
typedef struct le_kernel_spec {
  const le_kernel_ops *ops;
  le_args args;
} le_kernel_spec;

/* All that a run is made from. */
typedef struct le_problem {
  const le_model_ops *ops;
  const void *model;
  le_args settings;
  size_t kernels;
  const le_kernel_spec *kernel;
  uint64_t seed;
  uint32_t replicate;
  size_t total; /* rows expected in all, 0 when unknown */
} le_problem;

/* Particles of equal weight that stand for the posterior of the first `seen` rows: what one engine
 * hands to the next. */
typedef struct le_population {
  size_t seen, m;
  const double *theta; /* m x d, owned by the engine that hands them over */
  double log_evidence, variance; /* of those rows, and the variance of its estimate */
} le_population;

typedef struct le_estimator_ops {
  unsigned version; /* LE_CONTRACT_VERSION */
  size_t size;      /* sizeof(le_estimator_ops) */
  const char *name;
  /* REQUIRED.  Tables of the settings that it knows. */
  le_knows knows;

  /* REQUIRED.  Reads the settings, checks the kernels' needs against what the model offers, takes memory. */
  le_status (*alloc)(const le_problem *problem, le_context *context, void **self);
  /* REQUIRED.  Accepts NULL. */
  void (*free)(void *self);
  /* OPTIONAL.  Draws from the prior; once, before the first advance, not before a state is read. */
  le_status (*start)(void *self);
  /* REQUIRED.  Appends rows; the last close the stream.  Rows of a first feed that is also the last stay where they are as
   * long as the run lives: they may be borrowed, and the run's own be put in another order. */
  le_status (*feed)(void *self, const le_rows *rows, le_feed feed);
  /* REQUIRED.  Works for about `seconds` and says how it stands; with LE_FAILED the status and the context's error
   * say why. */
  le_progress (*advance)(void *self, double seconds, le_status *status);
  /* REQUIRED.  Rows walked and the share of the work done, for a progress bar. */
  void (*progress)(const void *self, double *rows, double *share);
  /* REQUIRED.  What is known so far. */
  le_status (*result)(void *self, le_result *result);
  /* REQUIRED.  Writes the state, or reads it into a freshly allocated instance of the same problem. */
  void (*archive)(void *self, le_archive *archive);
  /* OPTIONAL (0).  1: knows what to do with models that have latent variables. */
  int latent;
  /* OPTIONAL.  At the end of its rows: the particles, for another engine to go on with. */
  void (*hand_over)(const void *self, le_population *population);
  /* OPTIONAL.  Instead of draws from the prior, before the first advance and after all their rows are fed. */
  le_status (*take_over)(void *self, const le_population *population);
} le_estimator_ops;

#endif
