/* Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin 2014) as used in the papers on
 * stochastic gradient annealed importance sampling:
 *
 *     v ~ N(0, eta) at the start of a distribution (with refresh = 1 before every step), then
 *     v <- v - alpha v - eta grad U + N(0, 2 (alpha - beta eta) eta);
 *     theta <- theta + v,   eta = rate / n.
 *
 * Stochastic gradient Langevin dynamics (Welling & Teh 2011; thesis algorithm 3) is the case of
 * alpha = 1, without velocities at the start.
 *
 * Move t of a distribution (t = 0, 1, ...) has the step eta (1 + t / delay)^-decay. Velocities are
 * rescaled by the square root of the ratio of two steps, so that their variance stays the step.
 * With scaled = 0 the noise is 2 (alpha - beta) eta.
 *
 * With adaptive = 1 a move uses two mini-batches, whose mean is the gradient. Half of the squared
 * half difference is an unbiased estimate of half the variance of that mean; its running mean over
 * particles and moves, for each parameter, is beta. (Divided by the square of the number of rows it
 * does not depend on it.)
 *
 * Under the likelihood constraint of nested sampling, a step that would violate it is reflected: v'
 * = v - 2 n (v . n), where n is the unit vector along the gradient of the likelihood at the
 * rejected point x + v (Galilean Monte Carlo, Skilling 2012). With bounce = 1 the point moves on to
 * x + v + v' if the constraint holds there, and otherwise stays and reverses its velocity, which is
 * reversible. With bounce = 0, as published, it stays at x with velocity v', which is not
 * reversible: too few points are near the boundary, and in ten dimensions the evidence is several
 * nats too large. */
#include "core/kernel.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

/* The step size is eta. Under a constraint steps are accepted or rejected. */
typedef struct sghmc {
  le_kernel base;
  double rate, friction, noise, decay, delay;
  int refresh, tempered, bounce, scaled, adaptive;
  double first;  /* the first step of the distribution */
  size_t made;   /* moves in this distribution */
  double measured; /* moves in which the noise of gradients was measured */
  double *variance; /* of the gradient of each parameter, divided by the squared number of rows */
  double *grad, *velocity, *fresh;
  double *ahead, *value; /* under a constraint: the points that a step leads to */
  size_t *offending;
} sghmc;

static const le_setting settings[] = {
  LE_REAL_INTO(sghmc, friction, "friction", 0.2, 0, HUGE_VAL), /* alpha; 1 is SGLD */
  LE_FLAG_INTO(sghmc, refresh, "refresh", 0),
  LE_FLAG_INTO(sghmc, bounce, "bounce", 1),
  LE_REAL_INTO(sghmc, rate, "rate", 0.1, 0, HUGE_VAL),
  LE_REAL_INTO(sghmc, noise, "noise", 0, 0, HUGE_VAL), /* beta, the assumed gradient noise */
  /* 1: the rows of the chunk count lambda times in n; 0: in full, as published */
  LE_FLAG_INTO(sghmc, tempered, "tempered", 1),
  LE_REAL_INTO(sghmc, decay, "decay", 0, 0, 1),
  LE_REAL_INTO(sghmc, delay, "delay", 1, 0, HUGE_VAL),
  LE_FLAG_INTO(sghmc, scaled, "scaled", 1), /* 0: the noise is a part of the friction */
  LE_FLAG_INTO(sghmc, adaptive, "adaptive", 0),
  {0}};

static const le_field fields[] = {LE_FIELD(sghmc, first), LE_FIELD(sghmc, made),
                                  LE_FIELD(sghmc, measured)};

static const le_block blocks[] = {
  LE_KEPT(sghmc, velocity, LE_POINTS), LE_KEPT(sghmc, variance, LE_POINT),
  LE_BLOCK(sghmc, grad, LE_POINTS), LE_BLOCK(sghmc, fresh, LE_POINTS),
  LE_BLOCK(sghmc, ahead, LE_POINTS), LE_BLOCK(sghmc, value, LE_EACH),
  LE_BLOCK(sghmc, offending, LE_EACH)};

static void sghmc_set(void *self, const le_args *args)
{
  sghmc *k = self;
  le_settings_read(args, settings, k);
  k->base.step = 0;
}

static void sgld_set(void *self, const le_args *args)
{
  sghmc_set(self, args);
  ((sghmc *)self)->friction = 1;
}

static void fresh_velocities(const sghmc *k, size_t m, const le_streams *streams)
{
  le_normals(streams, 1, m, k->base.d, k->velocity);
  for (size_t c = 0; c < m * k->base.d; c++) k->velocity[c] *= sqrt(k->base.step);
}

static le_status sgld_begin(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams)
{
  sghmc *k = self;
  (void)m;
  (void)theta;
  (void)streams;
  k->base.step = k->first = k->rate / le_target_count(target, k->tempered);
  k->made = 0;
  return LE_OK;
}

static le_status sghmc_begin(void *self, le_target *target, size_t m, double *theta,
                             const le_streams *streams)
{
  LE_TRY(sgld_begin(self, target, m, theta, streams));
  fresh_velocities(self, m, streams);
  return LE_OK;
}

/* Makes the steps that satisfy the constraint, and reflects the others. */
static le_status step_or_reflect(sghmc *k, le_target *target, size_t m, double *theta)
{
  const size_t d = k->base.d, from = target->seen, to = target->seen + target->chunk;
  size_t offending = 0;
  for (size_t c = 0; c < m * d; c++) k->ahead[c] = theta[c] + k->velocity[c];
  LE_TRY(le_target_log_lik(target, from, to, m, k->ahead, k->value));
  for (size_t i = 0; i < m; i++) {
    if (!isnan(k->value[i]) && le_target_above_floor(target, k->value[i])) {
      memcpy(theta + i * d, k->ahead + i * d, d * sizeof(double));
    } else {
      memcpy(k->ahead + offending * d, k->ahead + i * d, d * sizeof(double));
      k->offending[offending++] = i;
    }
  }
  k->base.accepted += (double)(m - offending);
  k->base.proposed += (double)m;
  if (offending == 0) return LE_OK;
  LE_TRY(le_target_log_lik_grad(target, from, to, offending, k->ahead, k->value, k->grad));
  for (size_t o = 0; o < offending; o++) {
    const double *n = k->grad + o * d, *v = k->velocity + k->offending[o] * d;
    double *reflected = k->grad + o * d;
    const double along = le_dot(v, n, d), square = le_dot(n, n, d);
    /* where the likelihood is flat or zero there is no normal direction: reverse the velocity */
    const double factor = square > 0 && isfinite(square) ? 2 * along / square : NAN;
    for (size_t j = 0; j < d; j++) {
      reflected[j] = isnan(factor) ? -v[j] : v[j] - factor * n[j];
      k->ahead[o * d + j] += reflected[j];
    }
  }
  if (k->bounce) LE_TRY(le_target_log_lik(target, from, to, offending, k->ahead, k->value));
  for (size_t o = 0; o < offending; o++) {
    const size_t i = k->offending[o];
    const int bounces =
      k->bounce && !isnan(k->value[o]) && le_target_above_floor(target, k->value[o]);
    double *v = k->velocity + i * d;
    if (bounces) memcpy(theta + i * d, k->ahead + o * d, d * sizeof(double));
    for (size_t j = 0; j < d; j++) v[j] = bounces || !k->bounce ? k->grad[o * d + j] : -v[j];
  }
  return LE_OK;
}

/* The step of the next move. */
static void shorten_step(sghmc *k, size_t m)
{
  const double next = k->first * pow(1 + (double)k->made / k->delay, -k->decay);
  const double ratio = sqrt(next / k->base.step);
  k->made++;
  if (ratio == 1) return;
  for (size_t c = 0; c < m * k->base.d; c++) k->velocity[c] *= ratio;
  k->base.step = next;
}

/* So many moves are remembered in the variance of gradients. */
static const double REMEMBERED = 100;

/* The mean of two estimates of the gradient, and what they say of its variance. */
static le_status measured_gradient(sghmc *k, le_target *target, size_t m, const double *theta,
                                   gsl_rng *const *rng)
{
  const size_t d = k->base.d;
  const double size = le_target_count(target, 1);
  double *other = k->fresh;
  LE_TRY(le_target_draw(target, 2));
  LE_TRY(le_target_gradient(target, 0, m, theta, rng, k->grad));
  LE_TRY(le_target_gradient(target, 1, m, theta, rng, other));
  k->measured++;
  const double weight = 1 / fmin(k->measured, REMEMBERED);
  for (size_t j = 0; j < d; j++) {
    double sum = 0;
    for (size_t i = 0; i < m; i++) {
      const double half = (k->grad[i * d + j] - other[i * d + j]) / (2 * size);
      sum += half * half;
    }
    if (isfinite(sum)) k->variance[j] += weight * (sum / (double)m - k->variance[j]);
  }
  for (size_t c = 0; c < m * d; c++) k->grad[c] = 0.5 * (k->grad[c] + other[c]);
  return LE_OK;
}

/* Standard deviation of the injected noise of parameter j. */
static double deviation_of(const sghmc *k, const le_target *target, size_t j)
{
  const double eta = k->base.step, size = le_target_count(target, 1);
  const double noise = k->adaptive ? 0.5 * eta * k->variance[j] * size * size
                                   : k->noise * (k->scaled ? eta : 1);
  return sqrt(fmax(2 * (k->friction - noise) * eta, 0));
}

static le_status sghmc_move(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams)
{
  sghmc *k = self;
  if (k->decay > 0) shorten_step(k, m);
  const size_t d = k->base.d;
  const double eta = k->base.step;
  /* new momenta contribute noise (1 - alpha)^2 eta in addition to 2 alpha eta. The matching drift
   * is half of their sum; with the full drift the temperature would be about one half */
  const double kick = k->refresh ? 0.5 * (1 + k->friction * k->friction) * eta : eta;
  if (k->adaptive && le_target_estimated(target)) {
    LE_TRY(measured_gradient(k, target, m, theta, streams->rng + 1));
  } else {
    LE_TRY(le_target_draw(target, 1));
    LE_TRY(le_target_gradient(target, 0, m, theta, streams->rng + 1, k->grad));
  }
  if (k->refresh) fresh_velocities(k, m, streams);
  le_normals(streams, 1, m, d, k->fresh);
  for (size_t j = 0; j < d; j++) {
    if (target->held && target->held[j]) continue;
    const double deviation = deviation_of(k, target, j);
    for (size_t c = j; c < m * d; c += d) {
      const double v = (1 - k->friction) * k->velocity[c] + kick * k->grad[c] +
                       deviation * k->fresh[c];
      k->velocity[c] = isfinite(v) ? v : 0;
      if (!target->floor) theta[c] += k->velocity[c];
    }
  }
  return target->floor ? step_or_reflect(k, target, m, theta) : LE_OK;
}

const le_kernel_ops le_sghmc_kernel = {
  .name = "sghmc",
  .settings = settings,
  .needs = LE_NEEDS_GRADIENT | LE_KEEPS_FLOOR,
  .default_metric = LE_METRIC_IDENTITY,
  .layout = {sizeof(sghmc), LE_TABLE(blocks), LE_TABLE(fields)},
  .set = sghmc_set,
  .begin = sghmc_begin,
  .move = sghmc_move,
};

const le_kernel_ops le_sgld_kernel = {
  .name = "sgld",
  .settings = settings + 3, /* from `rate` on */
  .needs = LE_NEEDS_GRADIENT,
  .default_metric = LE_METRIC_IDENTITY,
  .layout = {sizeof(sghmc), LE_TABLE(blocks), LE_TABLE(fields)},
  .set = sgld_set,
  .begin = sgld_begin,
  .move = sghmc_move,
};
