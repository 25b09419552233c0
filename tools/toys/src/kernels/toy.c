/* Metropolis steps of a fixed size, the same in all coordinates. */
#include "core/kernel.h"

#include <math.h>
#include <string.h>

static const le_setting settings[] = {LE_REAL_SETTING("step_size", 0.5, 0, HUGE_VAL), {0}};

typedef struct toy {
  le_kernel base;
  double *proposal, *proposed_value;
} toy;

static const le_block blocks[] = {LE_KEPT(toy, base.value, LE_EACH),
                                  LE_BLOCK(toy, proposal, LE_POINTS),
                                  LE_BLOCK(toy, proposed_value, LE_EACH)};

static void toy_set(void *self, const le_args *args)
{
  ((toy *)self)->base.step = le_setting_number(args, settings, "step_size");
}

static le_status toy_move(void *self, le_target *target, size_t m, double *theta,
                          const le_streams *streams)
{
  toy *k = self;
  const size_t d = k->base.d;
  le_normals(streams, 1, m, d, k->proposal);
  for (size_t j = 0; j < m * d; j++) k->proposal[j] = theta[j] + k->base.step * k->proposal[j];
  LE_TRY(le_target_density(target, m, k->proposal, k->proposed_value));
  for (size_t i = 0; i < m; i++) {
    const double level = k->base.value[i] + log(gsl_rng_uniform_pos(streams->rng[i + 1]));
    k->base.proposed++;
    if (!(k->proposed_value[i] > level) || le_target_outside(target, k->proposal + i * d)) continue;
    k->base.accepted++;
    k->base.value[i] = k->proposed_value[i];
    memcpy(theta + i * d, k->proposal + i * d, d * sizeof(double));
  }
  return LE_OK;
}

const le_kernel_ops le_toy_kernel = {
  .name = "toy",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY,
  .default_metric = LE_METRIC_IDENTITY,
  .layout = {sizeof(toy), LE_TABLE(blocks), NULL, 0},
  .set = toy_set,
  .begin = le_kernel_density,
  .move = toy_move,
};
