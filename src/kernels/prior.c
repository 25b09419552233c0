/* Draws from the prior until one satisfies the likelihood constraint. Exact and independent of the
 * point it replaces, but too slow once the constraint leaves little volume. The reference for
 * testing other kernels of nested sampling. */
#include "core/kernel.h"

#include <math.h>
#include <string.h>

/* Draws of one call (a move that needs more continues in the next call). Draws in a row without
 * success after which the kernel fails. */
static const double DRAWS_AT_ONCE = 1e4, DRAWS_IN_VAIN = 1e8;

static const le_setting settings[] = {{0}};

typedef struct prior_kernel {
  le_kernel base;
  size_t done; /* particles of an unfinished move that are already replaced */
  double vain;
  double *draw, *value;
} prior_kernel;

static const le_field fields[] = {LE_FIELD(prior_kernel, vain), LE_FIELD(prior_kernel, done),
                                  LE_FIELD(prior_kernel, base.unfinished)};
static const le_block blocks[] = {LE_BLOCK(prior_kernel, draw, LE_POINTS),
                                  LE_BLOCK(prior_kernel, value, LE_EACH)};

/* Each successful draw replaces the next particle. Draws are evaluated a full batch at a time, so
 * that likelihood calls have many points. */
static le_status prior_move(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams)
{
  prior_kernel *k = self;
  const size_t d = k->base.d, from = target->seen, to = target->seen + target->chunk;
  for (double drawn = 0; k->done < m && drawn < DRAWS_AT_ONCE; drawn += (double)m) {
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
    for (size_t i = 0; i < m; i++)
      target->ops->draw_prior(target->model, streams->rng[i + 1], k->draw + i * d);
    LE_TRY(le_target_log_lik(target, from, to, m, k->draw, k->value));
    for (size_t i = 0; i < m && k->done < m; i++) {
      k->base.proposed++;
      k->vain++;
      if (isnan(k->value[i]) || !le_target_above_floor(target, k->value[i])) continue;
      if (le_target_outside(target, k->draw + i * d))
        target->ops->relabel(target->model, target->labels, k->draw + i * d);
      memcpy(theta + k->done++ * d, k->draw + i * d, d * sizeof(double));
      k->base.accepted++;
      k->vain = 0;
    }
  }
  k->base.unfinished = k->done < m;
  if (!k->base.unfinished) k->done = 0;
  if (k->vain > DRAWS_IN_VAIN)
    return le_fail(
      &target->context->error, LE_STALLED,
      "None of %.0f draws from the prior had a larger likelihood: use slice() or rwm().", k->vain);
  return LE_OK;
}

const le_kernel_ops le_prior_kernel = {
  .name = "prior_draws",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY | LE_NEEDS_FLOOR | LE_KEEPS_FLOOR,
  .default_metric = LE_METRIC_IDENTITY,
  .layout = {sizeof(prior_kernel), LE_TABLE(blocks), LE_TABLE(fields)},
  .move = prior_move,
};
