/* Hamiltonian Monte Carlo: leapfrog steps on the scale of the metric, accepted or rejected by the
 * exact density. The step size of a trajectory is jittered by up to 15%, the same for all
 * particles, to avoid resonance with the period of any direction. */
#include "base/linalg.h"
#include "core/kernel.h"

#include <math.h>
#include <string.h>

static const le_setting settings[] = {
  /* steps of a trajectory; 0: about a quarter period; 1: MALA */
  LE_COUNT_SETTING("leapfrog", 0, 0),
  LE_REAL_SETTING("step_size", 0, 0, HUGE_VAL), /* 0: adapted */
  LE_REAL_SETTING("accept", NAN, 0, 1),         /* the acceptance rate to adapt to */
  {0}};

typedef struct hmc {
  le_kernel base;
  size_t leapfrog; /* set once */
  /* the points to which the stored values and gradients belong, their number, and lambda */
  double *at, lambda;
  size_t known, seen, chunk, revision;
  /* at the current points and at the ends of the trajectories */
  double *value, *grad, *end, *end_value, *end_grad, *velocity, *kinetic, *displacement, *chance;
} hmc;

static const le_field fields[] = {LE_FIELD(hmc, known), LE_FIELD(hmc, seen), LE_FIELD(hmc, chunk),
                                  LE_FIELD(hmc, revision), LE_FIELD(hmc, lambda)};
static const le_block blocks[] = {
  LE_KEPT(hmc, at, LE_POINTS), LE_KEPT(hmc, value, LE_EACH), LE_KEPT(hmc, grad, LE_POINTS),
  LE_BLOCK(hmc, end, LE_POINTS), LE_BLOCK(hmc, end_value, LE_EACH),
  LE_BLOCK(hmc, end_grad, LE_POINTS), LE_BLOCK(hmc, velocity, LE_POINTS),
  LE_BLOCK(hmc, kinetic, LE_EACH), LE_BLOCK(hmc, displacement, LE_POINTS),
  LE_BLOCK(hmc, chance, LE_EACH)};

enum { LEAPFROG_MOST = 40 };
static const double trajectory = 1.5, jitter = 0.15;

static void hmc_set(void *self, const le_args *args)
{
  hmc *k = self;
  k->leapfrog = le_setting_count(args, settings, "leapfrog");
  const double accept = le_setting_number(args, settings, "accept");
  const double goal = !isnan(accept) ? accept : k->leapfrog == 1 ? 0.65 : 0.8;
  const double start = (k->leapfrog == 1 ? 1.0 : 0.8) *
                       pow((double)k->base.d, k->leapfrog == 1 ? -1.0 / 6 : -0.25);
  le_kernel_adapt(&k->base, le_setting_number(args, settings, "step_size"), start, goal, 1.6);
}

/* From one distribution to the next only the exponent of the chunk changes, or a new chunk begins.
 * So for points that have not moved the terms of the other rows are known. */
static le_status hmc_begin(void *self, le_target *target, size_t m, double *theta,
                           const le_streams *streams)
{
  hmc *k = self;
  const size_t d = k->base.d;
  const int same = target->seen == k->seen && target->chunk == k->chunk,
            next = target->seen == k->seen + k->chunk && k->lambda == 1;
  const int stayed = m <= k->known && memcmp(theta, k->at, m * d * sizeof(double)) == 0;
  const size_t revision = le_target_revision(target);
  (void)streams;
  if (stayed && revision == k->revision && (same || next) && target->seen > 0) {
    const double more = target->lambda - (same ? k->lambda : 0);
    if (more != 0 && target->chunk > 0) {
      LE_TRY(le_target_log_lik_grad(target, target->seen, target->seen + target->chunk, m, theta,
                                    k->end_value, k->end_grad));
      le_add_scaled(m, more, k->end_value, k->value);
      le_add_scaled(m * d, more, k->end_grad, k->grad);
    }
    for (size_t i = 0; i < m; i++)
      if (isnan(k->value[i])) k->value[i] = -INFINITY;
  } else {
    k->known = 0;
    LE_TRY(le_target_density_grad(target, m, theta, k->value, k->grad));
    memcpy(k->at, theta, m * d * sizeof(double));
  }
  k->seen = target->seen;
  k->chunk = target->chunk;
  k->lambda = target->lambda;
  k->revision = revision;
  /* under a constraint the chunk is not part of the density, and with a proposal the density
   * depends on lambda in another way */
  k->known = target->floor || target->proposal ? 0 : m;
  return LE_OK;
}

/* Adds `length` times the vectors `from`, carried to the other scale, to the vectors `to`. */
static void advance(const hmc *k, const le_target *target, size_t first, size_t m, double length,
                    void (*carry)(const le_metric *, const double *, double *), const double *from,
                    double *to)
{
  const size_t d = k->base.d;
  for (size_t i = first; i < first + m; i++) {
    double *shift = k->displacement + i * d;
    carry(le_target_metric(target, i), from + i * d, shift);
    for (size_t j = 0; j < d; j++) to[i * d + j] += length * shift[j];
  }
}

static double kinetic_energy(const double *velocity, size_t d)
{
  double sum = 0;
  for (size_t j = 0; j < d; j++) sum += velocity[j] * velocity[j];
  return 0.5 * sum;
}

/* One trajectory of all particles. */
typedef struct flight {
  hmc *kernel;
  const le_streams *streams;
  double *theta, step;
  size_t leapfrog;
} flight;

static le_status some_trajectories(void *self, le_target *target, size_t first, size_t m)
{
  const flight *f = self;
  hmc *k = f->kernel;
  const size_t d = k->base.d, last = first + m;
  double *end = k->end + first * d;
  le_normals(f->streams, 1 + first, m, d, k->velocity + first * d);
  for (size_t i = first; i < last; i++) k->kinetic[i] = kinetic_energy(k->velocity + i * d, d);
  memcpy(end, f->theta + first * d, m * d * sizeof(double));
  advance(k, target, first, m, 0.5 * f->step, le_metric_kick, k->grad, k->velocity);
  for (size_t s = 1; s <= f->leapfrog; s++) {
    if ((double)m * (double)d * (double)d > LE_UNWATCHED && le_interrupted(target->context))
      return LE_INTERRUPTED;
    advance(k, target, first, m, f->step, le_metric_drift, k->velocity, k->end);
    LE_TRY(le_target_density_grad(target, m, end, s < f->leapfrog ? NULL : k->end_value + first,
                                  k->end_grad + first * d));
    advance(k, target, first, m, s < f->leapfrog ? f->step : 0.5 * f->step, le_metric_kick,
            k->end_grad, k->velocity);
  }
  for (size_t i = first; i < last; i++) {
    if (isfinite(k->end_value[i]) && le_target_outside(target, k->end + i * d))
      k->end_value[i] = -INFINITY;
    const double ratio = k->end_value[i] - kinetic_energy(k->velocity + i * d, d) -
                         (k->value[i] - k->kinetic[i]);
    const int possible = isfinite(k->end_value[i]) && !isnan(ratio);
    k->chance[i] = !possible ? 0 : ratio >= 0 ? 1 : exp(ratio);
    if (log(gsl_rng_uniform_pos(f->streams->rng[i + 1])) < ratio && possible) {
      memcpy(f->theta + i * d, k->end + i * d, d * sizeof(double));
      memcpy(k->grad + i * d, k->end_grad + i * d, d * sizeof(double));
      k->value[i] = k->end_value[i];
    }
  }
  return LE_OK;
}

static le_status hmc_move(void *self, le_target *target, size_t m, double *theta,
                          const le_streams *streams)
{
  hmc *k = self;
  flight all = {k, streams, theta, k->base.step, k->leapfrog};
  if (all.leapfrog == 0) {
    const double wanted = ceil(trajectory / all.step - 0.25);
    all.leapfrog = wanted < 1 ? 1 : wanted > LEAPFROG_MOST ? LEAPFROG_MOST : (size_t)wanted;
  }
  if (all.leapfrog > 1) all.step *= 1 + jitter * (2 * gsl_rng_uniform(streams->rng[0]) - 1);
  LE_TRY(le_target_share(target, m, (double)all.leapfrog * (double)(target->seen + target->chunk),
                         some_trajectories, &all));
  for (size_t i = 0; i < m; i++) k->base.accepted += k->chance[i];
  k->base.proposed += (double)m;
  memcpy(k->at, theta, m * k->base.d * sizeof(double));
  return LE_OK;
}

const le_kernel_ops le_hmc_kernel = {
  .name = "hmc",
  .settings = settings,
  .needs = LE_NEEDS_GRADIENT | LE_NEEDS_DENSITY | LE_ANY_STEP,
  .default_metric = LE_METRIC_DENSE,
  .steps_most = LEAPFROG_MOST,
  .layout = {sizeof(hmc), LE_TABLE(blocks), LE_TABLE(fields)},
  .set = hmc_set,
  .begin = hmc_begin,
  .move = hmc_move,
};
