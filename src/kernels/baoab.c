/* Underdamped Langevin dynamics by the BAOAB splitting (Leimkuhler & Matthews 2013) on the scale of
 * the metric.
 *
 * In z, theta = a + L^-T z, one move is: kick by h grad, drift h/2, v <- c v + sqrt(1 - c^2) noise
 * with c = exp(-gamma h), drift h/2. Kicks at the ends of neighbouring moves are merged: the first
 * kick after new momenta is halved, and the last one is left out because its momenta are not used.
 * On a standard normal target the positions are sampled exactly at any h < 2 if momenta start from
 * their own stationary variance, 1 - h^2/4.
 *
 * Gradient noise of variance v adds k v to the variance of the positions, k = h^2 / 4 (1 + c) / (1
 * - c). If v is known, the noise of the momenta is reduced accordingly. */
#include "core/kernel.h"

#include <math.h>

typedef struct baoab {
  le_kernel base;
  double friction, clip;
  int first;
  double *grad, *velocity, *noise, *displacement;
} baoab;

static const le_setting settings[] = {
  LE_REAL_SETTING("step_size", 0.7, 0, HUGE_VAL),            /* h */
  LE_REAL_INTO(baoab, friction, "friction", 2, 0, HUGE_VAL), /* gamma */
  LE_REAL_INTO(baoab, clip, "clip", 3, 0, HUGE_VAL), /* the largest move of a coordinate of z */
  {0}};
static const le_field fields[] = {LE_FIELD(baoab, first)};
static const le_block blocks[] = {
  LE_KEPT(baoab, velocity, LE_POINTS), LE_BLOCK(baoab, grad, LE_POINTS),
  LE_BLOCK(baoab, noise, LE_POINTS), LE_BLOCK(baoab, displacement, LE_POINTS)};

static void baoab_set(void *self, const le_args *args)
{
  baoab *k = self;
  le_settings_read(args, settings, k);
  k->base.step = le_setting_number(args, settings, "step_size");
  k->first = 1;
}

/* Momenta are drawn in the first move, within each thread's share. */
static le_status baoab_begin(void *self, le_target *target, size_t m, double *theta,
                             const le_streams *streams)
{
  (void)target;
  (void)m;
  (void)theta;
  (void)streams;
  ((baoab *)self)->first = 1;
  return LE_OK;
}

static void fresh_momenta(const baoab *k, const le_streams *streams, size_t first, size_t m)
{
  const double h = k->base.step, deviation = sqrt(1 - 0.25 * h * h);
  double *velocity = k->velocity + first * k->base.d;
  le_normals(streams, 1 + first, m, k->base.d, velocity);
  for (size_t a = 0; a < m * k->base.d; a++) velocity[a] *= deviation;
}

/* Several moves of all particles. */
typedef struct stride {
  baoab *kernel;
  const le_streams *streams;
  double *theta, c, noise;
  size_t moves;
} stride;

static le_status one_move(const stride *s, le_target *target, size_t move, size_t first, size_t m)
{
  const baoab *k = s->kernel;
  const size_t d = k->base.d;
  const int fresh = k->first && move == 0;
  const double h = k->base.step, kick = fresh ? 0.5 * h : h;
  double *grad = k->grad + first * d, *noise = k->noise + first * d;
  if (fresh) fresh_momenta(k, s->streams, first, m);
  LE_TRY(le_target_gradient(target, move, m, s->theta + first * d, s->streams->rng + 1 + first,
                            grad));
  le_normals(s->streams, 1 + first, m, d, noise);
  for (size_t i = 0; i < m; i++) {
    double *theta = s->theta + (first + i) * d, *v = k->velocity + (first + i) * d,
           *shift = k->displacement + (first + i) * d;
    double *theta_shift = grad + i * d; /* this part of the gradient is no longer needed */
    le_metric_kick(le_target_metric(target, first + i), grad + i * d, shift);
    for (size_t j = 0; j < d; j++) {
      double before = v[j] + kick * shift[j];
      if (!isfinite(before)) before = 0;
      const double after = s->c * before + s->noise * noise[i * d + j];
      /* a clipped move loses its momentum too; otherwise the next move would be clipped again */
      const double move = 0.5 * h * (before + after);
      const int clipped = fabs(move) > k->clip;
      v[j] = clipped ? 0 : after;
      shift[j] = clipped ? copysign(k->clip, move) : move;
    }
    le_metric_drift(le_target_metric(target, first + i), shift, theta_shift);
    for (size_t j = 0; j < d; j++) theta[j] += theta_shift[j];
    if (le_target_outside(target, theta))
      for (size_t j = 0; j < d; j++) {
        theta[j] -= theta_shift[j];
        v[j] = -v[j];
      }
  }
  return LE_OK;
}

static le_status some_moves(void *self, le_target *target, size_t first, size_t m)
{
  const stride *s = self;
  for (size_t move = 0; move < s->moves; move++) LE_TRY(one_move(s, target, move, first, m));
  return LE_OK;
}

static le_status baoab_moves(void *self, le_target *target, size_t m, double *theta,
                             const le_streams *streams, size_t moves)
{
  baoab *k = self;
  const double h = k->base.step, c = exp(-k->friction * h);
  const double heat = target->noise > 0 ? 0.25 * h * h * (1 + c) / (1 - c) * target->noise : 0;
  stride all = {k, streams, theta, c, sqrt((1 - c * c) * fmax(0, 1 - heat)), moves};
  LE_TRY(le_target_draw(target, moves));
  LE_TRY(le_target_share(target, m, (double)(moves * le_target_rows(target)), some_moves, &all));
  k->first = 0;
  return LE_OK;
}

const le_kernel_ops le_baoab_kernel = {
  .name = "baoab",
  .settings = settings,
  .needs = LE_NEEDS_GRADIENT,
  .default_metric = LE_METRIC_DENSE,
  .layout = {sizeof(baoab), LE_TABLE(blocks), LE_TABLE(fields)},
  .set = baoab_set,
  .begin = baoab_begin,
  .moves = baoab_moves,
};
