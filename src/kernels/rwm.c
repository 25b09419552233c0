/* Random-walk Metropolis on the scale of the metric. */
#include "core/adapt.h"
#include "core/kernel.h"

#include <math.h>
#include <string.h>

static const le_setting settings[] = {
  LE_REAL_SETTING("step_size", 0, 0, HUGE_VAL), /* 0: 2.38 / sqrt(d), adapted */
  {0}};

typedef struct rwm {
  size_t d;
  le_adapt adapt;
  double *proposal, *value, *proposed_value, *level, *noise, *displacement;
} rwm;

static le_status rwm_alloc(const le_args *args, size_t d, size_t m, le_arena *arena, void **self)
{
  rwm *k = le_arena_bytes(arena, 1, sizeof *k);
  if (!k) return LE_NO_MEMORY;
  k->d = d;
  k->adapt = le_adapt_make(le_setting_number(args, settings, "step_size"), 2.38 / sqrt((double)d),
                           d == 1 ? 0.44 : 0.234, 20);
  k->proposal = le_arena_doubles(arena, m * d);
  k->value = le_arena_doubles(arena, m);
  k->proposed_value = le_arena_doubles(arena, m);
  k->level = le_arena_doubles(arena, m);
  k->noise = le_arena_doubles(arena, m * d);
  k->displacement = le_arena_doubles(arena, d);
  *self = k;
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

static le_status rwm_begin(void *self, le_target *target, size_t m, double *theta,
                           const le_streams *streams)
{
  rwm *k = self;
  (void)streams;
  return le_target_density(target, m, theta, k->value);
}

static le_status rwm_move(void *self, le_target *target, size_t m, double *theta,
                          const le_streams *streams)
{
  rwm *k = self;
  const size_t d = k->d;
  le_normals(streams, 1, m, d, k->noise);
  for (size_t i = 0; i < m; i++) {
    le_metric_drift(le_target_metric(target, i), k->noise + i * d, k->displacement);
    for (size_t j = 0; j < d; j++)
      k->proposal[i * d + j] = theta[i * d + j] + k->adapt.step * k->displacement[j];
  }
  for (size_t i = 0; i < m; i++)
    k->level[i] = k->value[i] + log(gsl_rng_uniform_pos(streams->rng[i + 1]));
  LE_TRY(le_target_density_above(target, m, k->proposal, k->level, k->proposed_value));
  for (size_t i = 0; i < m; i++) {
    const int accepted = isfinite(k->proposed_value[i]) && k->proposed_value[i] > k->level[i] &&
                         !le_target_outside(target, k->proposal + i * d);
    k->adapt.accepted += accepted;
    k->adapt.proposed++;
    if (accepted) {
      memcpy(theta + i * d, k->proposal + i * d, d * sizeof(double));
      k->value[i] = k->proposed_value[i];
    }
  }
  return LE_OK;
}

static void rwm_tune(void *self)
{
  le_adapt_tune(&((rwm *)self)->adapt);
}

static void rwm_fix(void *self, double step)
{
  le_adapt_fix(&((rwm *)self)->adapt, step);
}

static le_kernel_report rwm_report(const void *self)
{
  const rwm *k = self;
  const le_kernel_report report = {k->adapt.acceptance, k->adapt.step};
  return report;
}

static void rwm_archive(void *self, size_t m, le_archive *archive)
{
  rwm *k = self;
  le_adapt_archive(&k->adapt, archive);
  le_archive_doubles(archive, k->value, m);
}

const le_kernel_ops le_rwm_kernel = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_kernel_ops),
  .name = "rwm",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY | LE_KEEPS_FLOOR,
  .default_metric = LE_METRIC_DENSE,
  .alloc = rwm_alloc,
  .begin = rwm_begin,
  .move = rwm_move,
  .tune = rwm_tune,
  .fix = rwm_fix,
  .report = rwm_report,
  .archive = rwm_archive,
};
