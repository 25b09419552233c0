/* Random-walk Metropolis on the scale of the metric. */
#include "core/kernel.h"

#include <math.h>
#include <string.h>

static const le_setting settings[] = {
  LE_REAL_SETTING("step_size", 0, 0, HUGE_VAL), /* 0: 2.38 / sqrt(d), adapted */
  {0}};

typedef struct rwm {
  le_kernel base;
  double *proposal, *proposed_value, *level, *noise, *displacement;
} rwm;

static const le_block blocks[] = {
  LE_KEPT(rwm, base.value, LE_EACH), LE_BLOCK(rwm, proposed_value, LE_EACH),
  LE_BLOCK(rwm, level, LE_EACH), LE_BLOCK(rwm, proposal, LE_POINTS),
  LE_BLOCK(rwm, noise, LE_POINTS), LE_BLOCK(rwm, displacement, LE_POINT)};

static void rwm_set(void *self, const le_args *args)
{
  const size_t d = ((const le_kernel *)self)->d;
  le_kernel_adapt(self, le_setting_number(args, settings, "step_size"), 2.38 / sqrt((double)d),
                  d == 1 ? 0.44 : 0.234, 20);
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
    k->level[i] = k->base.value[i] + log(gsl_rng_uniform_pos(streams->rng[i + 1]));
  LE_TRY(le_target_density_above(target, m, k->proposal, k->level, k->proposed_value));
  for (size_t i = 0; i < m; i++) {
    const int accepted = isfinite(k->proposed_value[i]) && k->proposed_value[i] > k->level[i] &&
                         !le_target_outside(target, k->proposal + i * d);
    k->base.accepted += accepted;
    k->base.proposed++;
    if (accepted) {
      memcpy(theta + i * d, k->proposal + i * d, d * sizeof(double));
      k->base.value[i] = k->proposed_value[i];
    }
  }
  return LE_OK;
}

const le_kernel_ops le_rwm_kernel = {
  .name = "rwm",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY | LE_KEEPS_FLOOR | LE_ANY_STEP,
  .default_metric = LE_METRIC_DENSE,
  .layout = {sizeof(rwm), LE_TABLE(blocks), NULL, 0},
  .set = rwm_set,
  .begin = le_kernel_density,
  .move = rwm_move,
};
