/* Slice sampling (Neal 2003) along the directions of a random orthonormal basis on the scale of the
 * metric, by shrinkage only: an interval of fixed width is placed at random around the point, and
 * its ends move in to each rejected draw. All particles use the same direction at the same time, so
 * that each likelihood call has many points. */
#include "core/kernel.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

enum { SHRINKS_MOST = 200 };

static const le_setting settings[] = {
  LE_REAL_SETTING("width", 0, 0, HUGE_VAL), /* of the interval; 0: adapted */
  {0}};

typedef struct slice {
  le_kernel base;
  size_t used; /* number of directions of the basis already used */
  double *basis, *level, *low, *high, *at;
  double *step[2]; /* the direction in theta, for each half of the particles */
  double *proposal, *proposed_level, *proposed_value;
  size_t *open; /* particles whose interval is still shrinking */
} slice;

static const le_field fields[] = {LE_FIELD(slice, used)};
static const le_block blocks[] = {
  LE_KEPT(slice, base.value, LE_EACH), LE_KEPT(slice, basis, LE_SQUARE),
  LE_BLOCK(slice, level, LE_EACH), LE_BLOCK(slice, low, LE_EACH), LE_BLOCK(slice, high, LE_EACH),
  LE_BLOCK(slice, at, LE_EACH), LE_BLOCK(slice, step[0], LE_POINT),
  LE_BLOCK(slice, step[1], LE_POINT), LE_BLOCK(slice, proposal, LE_POINTS),
  LE_BLOCK(slice, proposed_level, LE_EACH), LE_BLOCK(slice, proposed_value, LE_EACH),
  LE_BLOCK(slice, open, LE_EACH)};

static void slice_set(void *self, const le_args *args)
{
  slice *k = self;
  k->used = k->base.d;
  le_kernel_adapt(&k->base, le_setting_number(args, settings, "width"), 8, 0.35, 50);
}

/* Makes a new orthonormal basis, of the coordinates that move, when all directions have been used:
 * Gram-Schmidt on normal vectors, done twice for accuracy. */
static const double *next_direction(slice *k, const int *held, const gsl_rng *rng)
{
  const size_t d = k->base.d;
  size_t directions = d;
  for (size_t c = 0; held && c < d; c++) directions -= (size_t)held[c];
  if (k->used >= directions) {
    k->used = 0;
    for (size_t j = 0; j < directions; j++) {
      double *b = k->basis + j * d;
      for (size_t c = 0; c < d; c++)
        b[c] = held && held[c] ? 0 : gsl_ran_gaussian_ziggurat(rng, 1);
      for (size_t pass = 0; pass < 2; pass++)
        for (size_t before = 0; before < j; before++) {
          const double along = le_dot(b, k->basis + before * d, d);
          for (size_t c = 0; c < d; c++) b[c] -= along * k->basis[before * d + c];
        }
      const double length = sqrt(le_dot(b, b, d));
      for (size_t c = 0; c < d; c++) b[c] /= length;
    }
  }
  return k->basis + k->used++ * d;
}

static le_status slice_move(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams)
{
  slice *k = self;
  const size_t d = k->base.d;
  const double *direction = next_direction(k, target->held, streams->rng[0]);
  for (int half = 0; half < 2; half++)
    le_metric_drift(target->metric[half], direction, k->step[half]);
  for (size_t i = 0; i < m; i++) {
    const gsl_rng *rng = streams->rng[i + 1];
    k->level[i] = k->base.value[i] + log(gsl_rng_uniform_pos(rng));
    k->low[i] = -k->base.step * gsl_rng_uniform_pos(rng);
    k->high[i] = k->low[i] + k->base.step;
    k->open[i] = i;
  }
  size_t open = m;
  for (int shrinks = 0; open > 0 && shrinks < SHRINKS_MOST; shrinks++) {
    for (size_t o = 0; o < open; o++) {
      const size_t i = k->open[o];
      const double *step = k->step[i >= target->split];
      k->at[i] = k->low[i] + (k->high[i] - k->low[i]) * gsl_rng_uniform_pos(streams->rng[i + 1]);
      k->proposed_level[o] = k->level[i];
      for (size_t j = 0; j < d; j++) k->proposal[o * d + j] = theta[i * d + j] + k->at[i] * step[j];
    }
    LE_TRY(
      le_target_density_above(target, open, k->proposal, k->proposed_level, k->proposed_value));
    k->base.proposed += (double)open;
    size_t left = 0;
    for (size_t o = 0; o < open; o++) {
      const size_t i = k->open[o];
      if (k->proposed_value[o] > k->level[i] && isfinite(k->proposed_value[o]) &&
          !le_target_outside(target, k->proposal + o * d)) {
        memcpy(theta + i * d, k->proposal + o * d, d * sizeof(double));
        k->base.value[i] = k->proposed_value[o];
        k->base.accepted++;
      } else {
        *(k->at[i] < 0 ? &k->low[i] : &k->high[i]) = k->at[i];
        k->open[left++] = i;
      }
    }
    open = left;
  }
  return LE_OK;
}

const le_kernel_ops le_slice_kernel = {
  .name = "slice",
  .settings = settings,
  .needs = LE_NEEDS_DENSITY | LE_KEEPS_FLOOR | LE_ANY_STEP,
  .default_metric = LE_METRIC_DENSE,
  .layout = {sizeof(slice), LE_TABLE(blocks), LE_TABLE(fields)},
  .set = slice_set,
  .begin = le_kernel_density,
  .move = slice_move,
};
