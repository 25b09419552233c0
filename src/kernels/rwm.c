/* Random-walk Metropolis on the scale of the metric. */
#include "kernels/shared.h"

#include <math.h>
#include <string.h>

static const le_setting settings[] = {
  LE_REAL_SETTING("step_size", 0, 0, HUGE_VAL), /* 0: 2.38 / sqrt(d), adapted */
  {0}};

typedef struct rwm {
  le_base base;
  double *proposal, *value, *proposed_value, *level, *noise, *displacement;
} rwm;

static const le_block blocks[] = {
  LE_KEPT(rwm, value, LE_EACH), LE_BLOCK(rwm, proposed_value, LE_EACH),
  LE_BLOCK(rwm, level, LE_EACH), LE_BLOCK(rwm, proposal, LE_POINTS),
  LE_BLOCK(rwm, noise, LE_POINTS), LE_BLOCK(rwm, displacement, LE_POINT)};
static const le_layout layout = {sizeof(rwm), LE_TABLE(blocks), NULL, 0};

static le_status rwm_alloc(const le_args *args, size_t d, size_t m, le_arena *arena, void **self)
{
  rwm *k = *self = le_base_alloc(&layout, d, m, arena);
  if (!k) return LE_NO_MEMORY;
  le_base_adapt(&k->base, le_setting_number(args, settings, "step_size"), 2.38 / sqrt((double)d),
                d == 1 ? 0.44 : 0.234, 20);
  return LE_OK;
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
  const size_t d = k->base.d;
  le_normals(streams, 1, m, d, k->noise);
  for (size_t i = 0; i < m; i++) {
    le_metric_drift(le_target_metric(target, i), k->noise + i * d, k->displacement);
    for (size_t j = 0; j < d; j++)
      k->proposal[i * d + j] = theta[i * d + j] + k->base.step * k->displacement[j];
  }
  for (size_t i = 0; i < m; i++)
    k->level[i] = k->value[i] + log(gsl_rng_uniform_pos(streams->rng[i + 1]));
  LE_TRY(le_target_density_above(target, m, k->proposal, k->level, k->proposed_value));
  for (size_t i = 0; i < m; i++) {
    const int accepted = isfinite(k->proposed_value[i]) && k->proposed_value[i] > k->level[i] &&
                         !le_target_outside(target, k->proposal + i * d);
    k->base.accepted += accepted;
    k->base.proposed++;
    if (accepted) {
      memcpy(theta + i * d, k->proposal + i * d, d * sizeof(double));
      k->value[i] = k->proposed_value[i];
    }
  }
  return LE_OK;
}

const le_kernel_ops le_rwm_kernel = {
  .name = "rwm",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY | LE_KEEPS_FLOOR,
  .default_metric = LE_METRIC_DENSE,
  .alloc = rwm_alloc,
  .begin = rwm_begin,
  .move = rwm_move,
  .tune = le_base_tune,
  .fix = le_base_fix,
  .report = le_base_report,
  .archive = le_base_archive,
};
