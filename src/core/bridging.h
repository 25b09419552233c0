/* Bridge sampling (Meng & Wong 1996) between the posterior, known by draws from chains, and a normal density made from
 * half of them: the optimal bridge by its fixed point, with the error measure of Fruehwirth-Schnatter (2004). */
#ifndef LE_CORE_BRIDGING_H
#define LE_CORE_BRIDGING_H

#include "core/target.h"

#include <gsl/gsl_rng.h>

typedef struct le_bridging {
  size_t d, chains, rounds; /* draws: rounds of one from each chain */
  size_t fitted;            /* rounds that made the proposal; the others bridge */
  size_t drawn, batch;
  double *centre, *factor, *precision;
  double *own;      /* of the posterior draws that bridge, chain by chain: log target - log proposal */
  double *proposal; /* as many draws of the proposal, and the same of them */
  double *other;
  double *work;
  int done, failed;
  double log_evidence, se, effective;
} le_bridging;

void le_bridging_alloc(le_bridging *bridging, const le_target *target, size_t chains, size_t rounds,
                       size_t batch, le_arena *arena);
/* theta[(round * chains + chain) * d], with the log-likelihoods of the rows seen in the same order. */
le_status le_bridging_start(le_bridging *bridging, le_target *target, const double *theta,
                            const double *log_lik);
/* One batch of draws from the proposal; at the last one the estimate. */
le_status le_bridging_step(le_bridging *bridging, le_target *target, const gsl_rng *rng);
void le_bridging_archive(le_bridging *bridging, le_archive *archive);

#endif
