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
  size_t d;
  size_t done; /* particles of an unfinished move that are already replaced */
  int unfinished;
  double accepted, proposed, acceptance, vain;
  double *draw, *value;
} prior_kernel;

static le_status prior_alloc(const le_args *args, size_t d, size_t m, le_arena *arena, void **self)
{
  prior_kernel *k = le_arena_bytes(arena, 1, sizeof *k);
  (void)args;
  if (!k) return LE_NO_MEMORY;
  k->d = d;
  k->acceptance = NAN;
  k->draw = le_arena_doubles(arena, m * d);
  k->value = le_arena_doubles(arena, m);
  *self = k;
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

/* Each successful draw replaces the next particle. Draws are evaluated a full batch at a time, so
 * that likelihood calls have many points. */
static le_status prior_move(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams)
{
  prior_kernel *k = self;
  const size_t d = k->d, from = target->seen, to = target->seen + target->chunk;
  for (double drawn = 0; k->done < m && drawn < DRAWS_AT_ONCE; drawn += (double)m) {
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
    for (size_t i = 0; i < m; i++)
      target->ops->draw_prior(target->model, streams->rng[i + 1], k->draw + i * d);
    LE_TRY(le_target_log_lik(target, from, to, m, k->draw, k->value));
    for (size_t i = 0; i < m && k->done < m; i++) {
      k->proposed++;
      k->vain++;
      if (isnan(k->value[i]) || !le_target_above_floor(target, k->value[i])) continue;
      if (le_target_outside(target, k->draw + i * d))
        target->ops->relabel(target->model, target->labels, k->draw + i * d);
      memcpy(theta + k->done++ * d, k->draw + i * d, d * sizeof(double));
      k->accepted++;
      k->vain = 0;
    }
  }
  k->unfinished = k->done < m;
  if (!k->unfinished) k->done = 0;
  if (k->vain > DRAWS_IN_VAIN)
    return le_fail(
      &target->context->error, LE_STALLED,
      "None of %.0f draws from the prior had a larger likelihood: use slice() or rwm().", k->vain);
  return LE_OK;
}

static int prior_unfinished(const void *self)
{
  return ((const prior_kernel *)self)->unfinished;
}

static void prior_tune(void *self)
{
  prior_kernel *k = self;
  if (k->proposed > 0) k->acceptance = k->accepted / k->proposed;
  k->accepted = k->proposed = 0;
}

static le_kernel_report prior_report(const void *self)
{
  const le_kernel_report report = {((const prior_kernel *)self)->acceptance, NAN};
  return report;
}

static void prior_archive(void *self, size_t m, le_archive *archive)
{
  prior_kernel *k = self;
  le_archive_double(archive, &k->accepted);
  le_archive_double(archive, &k->proposed);
  le_archive_double(archive, &k->acceptance);
  le_archive_double(archive, &k->vain);
  le_archive_size(archive, &k->done);
  le_archive_int(archive, &k->unfinished);
  if (k->done > m) archive->status = LE_CORRUPT;
}

const le_kernel_ops le_prior_kernel = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_kernel_ops),
  .name = "prior_draws",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY | LE_NEEDS_FLOOR | LE_KEEPS_FLOOR,
  .default_metric = LE_METRIC_IDENTITY,
  .alloc = prior_alloc,
  .move = prior_move,
  .unfinished = prior_unfinished,
  .tune = prior_tune,
  .report = prior_report,
  .archive = prior_archive,
};
