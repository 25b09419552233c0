/* Sweeps of a model with latent variables under a likelihood constraint: each variable is drawn
 * from its prior, restricted to the values that satisfy the constraint. */
#include "core/kernel.h"
#include "core/states.h"

static const le_setting settings[] = {{0}};

static le_status sweeps_move(void *self, le_target *target, size_t m, double *theta,
                             const le_streams *streams)
{
  const size_t d = ((const le_kernel *)self)->d;
  if (target->ops != &le_states_model || !target->floor)
    return le_fail(&target->context->error, LE_UNSUPPORTED,
                   "`kernel` sweeps is for models with latent variables in nested().");
  const le_states *states = target->model;
  const le_rows rows = le_store_rows(target->store, 0, target->chunk);
  le_chain chain = {.rows = rows,
                    .lambda = 1,
                    .walled = 1,
                    .floor = target->floor->value,
                    .tie = 1 - target->floor->tie,
                    .scratch = target->scratch};
  for (size_t i = 0; i < m; i++) {
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
    chain.rng = streams->rng[i + 1];
    chain.state = theta + i * d;
    states->ops->sweep(states->self, &chain, 0, NULL);
  }
  target->likelihoods += (double)(m * rows.n);
  return LE_OK;
}

const le_kernel_ops le_sweeps_kernel = {
  .name = "sweeps",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY | LE_NEEDS_FLOOR | LE_KEEPS_FLOOR,
  .default_metric = LE_METRIC_IDENTITY,
  .layout = {sizeof(le_kernel), NULL, 0, NULL, 0},
  .move = sweeps_move,
};
