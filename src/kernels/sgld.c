/* Stochastic gradient Langevin dynamics (Welling & Teh 2011; thesis algorithm 3):
 *
 *     theta <- theta - eta grad U + N(0, 2 (1 - beta eta) eta),   eta = rate / n. */
#include "core/kernel.h"

#include <math.h>

static const le_setting settings[] = {
  LE_REAL_SETTING("rate", 0.1, 0, HUGE_VAL),
  LE_REAL_SETTING("noise", 0, 0, HUGE_VAL), /* beta, the assumed gradient noise */
  LE_FLAG_SETTING("tempered", 1), /* 1: the rows of the chunk count lambda times in n; 0: in full */
  {0}};

typedef struct sgld {
  size_t d;
  double rate, noise, eta;
  int tempered;
  double *grad, *fresh;
} sgld;

static le_status sgld_alloc(const le_args *args, size_t d, size_t m, le_arena *arena, void **self)
{
  sgld *k = le_arena_bytes(arena, 1, sizeof *k);
  if (!k) return LE_NO_MEMORY;
  k->d = d;
  k->rate = le_setting_number(args, settings, "rate");
  k->noise = le_setting_number(args, settings, "noise");
  k->tempered = le_setting_flag(args, settings, "tempered");
  k->grad = le_arena_doubles(arena, m * d);
  k->fresh = le_arena_doubles(arena, m * d);
  *self = k;
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

static le_status sgld_begin(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams)
{
  sgld *k = self;
  (void)m;
  (void)theta;
  (void)streams;
  k->eta = k->rate / le_target_count(target, k->tempered);
  return LE_OK;
}

static le_status sgld_move(void *self, le_target *target, size_t m, double *theta,
                           const le_streams *streams)
{
  sgld *k = self;
  const double deviation = sqrt(fmax(2 * (1 - k->noise * k->eta) * k->eta, 0));
  LE_TRY(le_target_draw(target, 1));
  LE_TRY(le_target_gradient(target, 0, m, theta, k->grad));
  le_normals(streams, 1, m, k->d, k->fresh);
  for (size_t a = 0; a < m * k->d; a++) {
    const double step = k->eta * k->grad[a] + deviation * k->fresh[a];
    if (isfinite(step)) theta[a] += step;
  }
  return LE_OK;
}

static le_kernel_report sgld_report(const void *self)
{
  const le_kernel_report report = {NAN, ((const sgld *)self)->eta};
  return report;
}

static void sgld_archive(void *self, size_t m, le_archive *archive)
{
  (void)m;
  le_archive_double(archive, &((sgld *)self)->eta);
}

const le_kernel_ops le_sgld_kernel = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_kernel_ops),
  .name = "sgld",
  .settings = settings,
  .needs = LE_NEEDS_GRADIENT,
  .default_metric = LE_METRIC_IDENTITY,
  .alloc = sgld_alloc,
  .begin = sgld_begin,
  .move = sgld_move,
  .report = sgld_report,
  .archive = sgld_archive,
};
