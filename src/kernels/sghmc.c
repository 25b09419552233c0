/* Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin 2014) as the SGAIS papers use it:
 *
 *     v ~ N(0, eta) at the start of a distribution (with refresh = 1 before every step), then
 *     v <- v - alpha v - eta grad U + N(0, 2 (alpha - beta eta) eta);   theta <- theta + v,   eta = rate / n.
 *
 * Settings: rate, friction (alpha; 1 is SGLD), noise (beta), refresh, tempered (1: n counts the chunk lambda times, 0: in
 * full as published). */
#include "core/kernel.h"

#include <gsl/gsl_randist.h>
#include <math.h>

typedef struct sghmc {
  size_t d;
  double rate, friction, noise, eta;
  int refresh, tempered;
  double *grad, *velocity;
} sghmc;

static le_status sghmc_alloc(const le_args *args, size_t d, size_t m, le_arena *arena, void **self)
{
  sghmc *k = le_arena_bytes(arena, 1, sizeof *k);
  if (!k) return LE_NO_MEMORY;
  k->d = d;
  k->rate = le_args_number(args, "rate", 0.1);
  k->friction = le_args_number(args, "friction", 0.2);
  k->noise = le_args_number(args, "noise", 0);
  k->refresh = le_args_number(args, "refresh", 0) != 0;
  k->tempered = le_args_number(args, "tempered", 1) != 0;
  k->grad = le_arena_doubles(arena, m * d);
  k->velocity = le_arena_doubles(arena, m * d);
  *self = k;
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

static void fresh_velocity(const sghmc *k, size_t i, const gsl_rng *rng)
{
  for (size_t j = 0; j < k->d; j++) k->velocity[i * k->d + j] = gsl_ran_gaussian_ziggurat(rng, sqrt(k->eta));
}

static le_status sghmc_begin(void *self, le_target *target, size_t m, double *theta, const le_streams *streams)
{
  sghmc *k = self;
  (void)theta;
  k->eta = k->rate / le_target_count(target, k->tempered);
  for (size_t i = 0; i < m; i++) fresh_velocity(k, i, streams->rng[i + 1]);
  return LE_OK;
}

static le_status sghmc_move(void *self, le_target *target, size_t m, double *theta, const le_streams *streams)
{
  sghmc *k = self;
  const double deviation = sqrt(fmax(2 * (k->friction - k->noise * k->eta) * k->eta, 0));
  /* fresh momenta bring (1 - alpha)^2 eta of noise besides the 2 alpha eta: a drift of half their sum belongs to it,
   * where the full one would cool the target to about half its temperature */
  const double kick = k->refresh ? 0.5 * (1 + k->friction * k->friction) * k->eta : k->eta;
  LE_TRY(le_target_gradient(target, m, theta, k->grad));
  for (size_t i = 0; i < m; i++) {
    const gsl_rng *rng = streams->rng[i + 1];
    if (k->refresh) fresh_velocity(k, i, rng);
    for (size_t c = i * k->d; c < (i + 1) * k->d; c++) {
      const double v = (1 - k->friction) * k->velocity[c] + kick * k->grad[c] +
                       gsl_ran_gaussian_ziggurat(rng, deviation);
      k->velocity[c] = isfinite(v) ? v : 0;
      theta[c] += k->velocity[c];
    }
  }
  return LE_OK;
}

static le_kernel_report sghmc_report(const void *self)
{
  const le_kernel_report report = {NAN, ((const sghmc *)self)->eta};
  return report;
}

static void sghmc_archive(void *self, size_t m, le_archive *archive)
{
  sghmc *k = self;
  le_archive_double(archive, &k->eta);
  le_archive_doubles(archive, k->velocity, m * k->d);
}

const le_kernel_ops le_sghmc_kernel = {LE_CONTRACT_VERSION, sizeof(le_kernel_ops), "sghmc",     LE_NEEDS_GRADIENT,
                                       LE_METRIC_IDENTITY,  sghmc_alloc,           sghmc_begin, sghmc_move,
                                       NULL,                sghmc_report,          sghmc_archive};
