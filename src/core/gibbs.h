/* Gibbs steps of coordinates that can take few values (`discrete` of a model): a kernel holds them,
 * and each is drawn from its conditional distribution under the target, given all others. */
#pragma once

#include "base/rng.h"
#include "core/target.h"

/* Draws these coordinates of m points one after another. Particle i uses streams->rng[i + 1]. */
le_status le_gibbs_sweep(le_target *target, size_t m, double *theta, const le_streams *streams);
