/* Metropolis steps of a fixed size, the same in all coordinates. */
#include "core/kernel.h"

#include <math.h>
#include <string.h>

static const le_setting settings[] = {LE_REAL_SETTING("step_size", 0.5, 0, HUGE_VAL), {0}};

typedef struct toy {
  size_t d;
  double step, accepted, proposed;
  double *proposal, *value, *proposed_value;
} toy;

static le_status toy_alloc(const le_args *args, size_t d, size_t m, le_arena *arena, void **self)
{
  toy *k = le_arena_bytes(arena, 1, sizeof *k);
  if (!k) return LE_NO_MEMORY;
  k->d = d;
  k->step = le_setting_number(args, settings, "step_size");
  k->proposal = le_arena_doubles(arena, m * d);
  k->value = le_arena_doubles(arena, m);
  k->proposed_value = le_arena_doubles(arena, m);
  *self = k;
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

static le_status toy_begin(void *self, le_target *target, size_t m, double *theta,
                           const le_streams *streams)
{
  (void)streams;
  return le_target_density(target, m, theta, ((toy *)self)->value);
}

static le_status toy_move(void *self, le_target *target, size_t m, double *theta,
                          const le_streams *streams)
{
  toy *k = self;
  const size_t d = k->d;
  le_normals(streams, 1, m, d, k->proposal);
  for (size_t j = 0; j < m * d; j++) k->proposal[j] = theta[j] + k->step * k->proposal[j];
  LE_TRY(le_target_density(target, m, k->proposal, k->proposed_value));
  for (size_t i = 0; i < m; i++) {
    const double level = k->value[i] + log(gsl_rng_uniform_pos(streams->rng[i + 1]));
    k->proposed++;
    if (!(k->proposed_value[i] > level) || le_target_outside(target, k->proposal + i * d)) continue;
    k->accepted++;
    k->value[i] = k->proposed_value[i];
    memcpy(theta + i * d, k->proposal + i * d, d * sizeof(double));
  }
  return LE_OK;
}

static void toy_tune(void *self)
{
  toy *k = self;
  k->accepted = k->proposed = 0;
}

static le_kernel_report toy_report(const void *self)
{
  const toy *k = self;
  const le_kernel_report report = {k->proposed > 0 ? k->accepted / k->proposed : NAN, k->step};
  return report;
}

static void toy_archive(void *self, size_t m, le_archive *archive)
{
  toy *k = self;
  le_archive_double(archive, &k->accepted);
  le_archive_double(archive, &k->proposed);
  le_archive_doubles(archive, k->value, m);
}

const le_kernel_ops le_toy_kernel = {
  .name = "toy",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY,
  .default_metric = LE_METRIC_IDENTITY,
  .alloc = toy_alloc,
  .begin = toy_begin,
  .move = toy_move,
  .tune = toy_tune,
  .report = toy_report,
  .archive = toy_archive,
};
