/* Bridge sampling (Meng & Wong 1996) between the posterior, known by draws from Markov chains, and
 * a normal density fitted to half of these draws: the optimal bridge function by fixed-point
 * iteration, with the error estimate of Fruehwirth-Schnatter (2004). */
#pragma once

#include "core/component.h"

typedef struct le_bridging {
  size_t d, batch, chains, rounds; /* set once; a round is one draw from each chain */
  size_t fitted; /* set once: the first rounds fit the proposal, the others are for the bridge */
  size_t draws; /* set once: of the posterior for the bridge, and as many of the proposal */
  size_t drawn;
  le_mode proposal;
  /* log target - log proposal of the posterior draws used for the bridge, round by round */
  double *own;
  double *other; /* the same of as many draws from the proposal */
  double *theta, *mean, *term, *shape, *work; /* scratch */
  int done, failed;
  double log_evidence, se, effective;
} le_bridging;

void le_bridging_alloc(le_bridging *bridging, const le_target *target, size_t chains, size_t rounds,
                       size_t batch, le_arena *arena);
/* theta[(round * chains + chain) * d], and the log-likelihoods of the rows seen in the same
 * order. */
le_status le_bridging_start(le_bridging *bridging, le_target *target, const double *theta,
                            const double *log_lik);
/* One batch of draws from the proposal; the last batch computes the estimate. */
le_status le_bridging_step(le_bridging *bridging, le_target *target, const gsl_rng *rng);
void le_bridging_archive(le_bridging *bridging, le_archive *archive);
