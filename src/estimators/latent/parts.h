/* The engine for models with latent variables, and what its files share. */
#pragma once

#include "core/genealogy.h"
#include "core/machine.h"
#include "core/states.h"
#include "estimators/walk/settings.h"

#include <math.h>
#include <string.h>

typedef enum latent_phase { WAITING, STEPPING, SWEEPING, COLLECTING, FINISHED } latent_phase;

typedef struct latent {
  le_machine machine;
  le_walk_settings settings;
  const le_latent_ops *ops;
  const void *self;
  le_genealogy genealogy;
  const le_arg *from;
  size_t m, sweeps, warm, first, often;
  size_t size, n; /* set once */
  int by_rows, blind;
  int reverse; /* set once */
  int copied; /* whether the last step has resampled, and sweeps follow */
  /* Resamplings of few particles since sweeps last changed any, and their largest number. Where
   * variances are unknown they count: labels may be certain while variances differ. */
  size_t still, still_most;

  size_t step, swept, seen;
  double lambda, length, work; /* length: of the next step of lambda */
  double *value;                  /* rounds x m log-likelihoods */
  double *state;          /* these are allocated once the number of rows is known */
  double *swap, *scratch; /* scratch */
  double *log_weight, *weight, *before, *after, *spare;
  size_t *ancestor;
  /* the position of each row in the order of processing; NULL if rows keep their order */
  uint32_t *place;
} latent;

static inline const le_stage *stage_of(const latent *w) { return &w->settings.stage[0]; }

static inline double *state_of(const latent *w, size_t i) { return w->state + i * w->size; }

/* Whether the path has come to its end. */
static inline int done(const latent *w)
{
  if (w->by_rows) return w->reverse ? w->seen == 0 : w->seen == w->n && w->lambda >= 1;
  return w->reverse ? w->lambda <= 0 : w->lambda >= 1;
}

double le_latent_log_evidence(const latent *w);
/* Computes a number from the chain of each particle, which may change its state. */
le_status le_latent_each(latent *w, size_t seen, double lambda,
                         double (*what)(latent *w, const le_chain *chain), double *value);
/* The chain of particle i for the first `seen` rows. */
le_chain le_latent_chain(const latent *w, size_t i, size_t seen, double lambda);
/* The log-likelihoods of all particles at lambda. */
le_status le_latent_log_liks(latent *w, double lambda, double *value);
void le_latent_resample(latent *w);
/* The phase of one step along the path: new weights, and resampling if needed. */
le_status le_latent_step(void *self);
