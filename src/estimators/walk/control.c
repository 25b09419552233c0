/* Chunks with control variates: the anchor, the noise of mini-batch gradients, and the switch to
 * exact densities where control variates do not work. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

/* When control variates are given up: gradient noise above the smaller of NOISE_MOST and
 * NOISE_TIMES_D_MOST / d, or particles whose variance differs from the curvature's by more than
 * a factor WIDE_MOST. Noise raises the temperature of the particles: without its correction for
 * the measured noise the default kernel would lose noise x d / 10 nats each time the rows grow
 * by a factor e. The noise is measured again when the rows have grown by NOISE_GROWTH, from
 * NOISE_PAIRS pairs of mini-batches. */
enum { NOISE_PAIRS = LE_DRAWS_MOST / 2 };
static const double NOISE_GROWTH = 1.2, NOISE_MOST = 0.5, NOISE_TIMES_D_MOST = 5, WIDE_MOST = 2;
/* The job of one pair of mini-batches for le_target_share(). */
typedef struct noise_pair {
  walk *walk;
  size_t pair;
  double *one, *other; /* gradients of each mini-batch */
} noise_pair;

/* The anchor moves when the rows have doubled, or when the particles' mean is more than one
 * posterior standard deviation (per dimension) away from it. */
static int anchor_is_stale(walk *w)
{
  const le_gradient *g = &w->gradient[w->stage];
  if (!g->anchored) return 1;
  if (w->target.ops->traits & LE_MODEL_QUADRATIC && g->second_order) return 0;
  LE_SCRATCH(shift, w->target.stack, 2 * w->d);
  double *product = shift + w->d;
  le_walk_weighted_mean(w, shift);
  for (size_t j = 0; j < w->d; j++) shift[j] -= g->anchor[j];
  w->drift = le_quadratic_form(w->precision, w->d, shift, product) / (double)w->d;
  return w->target.seen >= 2 * g->anchored_rows || w->drift > 1;
}

/* Moves the anchor if needed, and computes the sums at the anchor for this chunk. */
static le_status open_chunk_at_anchor(walk *w)
{
  const size_t d = w->d;
  le_gradient *g = &w->gradient[w->stage];
  if (g->anchored) le_walk_relabel_to(w, g->anchor);
  if (anchor_is_stale(w)) {
    if (!g->anchored) le_walk_relabel_to_past(w);
    le_walk_weighted_mean(w, w->centre);
    LE_TRY(le_past_move(&w->past, &w->target, w->centre));
    LE_TRY(le_gradient_set_anchor(g, &w->target, w->centre));
    le_walk_relabel_to(w, g->anchor);
    memset(w->anchor_info, 0, d * d * sizeof(double));
    if (w->target.ops->information)
      LE_TRY(le_target_information(&w->target, 0, w->target.seen, 1, g->anchor, w->anchor_info));
  }
  LE_TRY(le_gradient_open_chunk(g, &w->target));
  memset(w->chunk_info, 0, d * d * sizeof(double));
  if (w->target.ops->information)
    LE_TRY(le_target_information(&w->target, w->target.seen, w->target.seen + w->target.chunk, 1,
                                 g->anchor, w->chunk_info));
  return LE_OK;
}

/* Squared size of the difference of the pair's gradients, in the metric, into other[i * d]. */
static le_status some_noise(void *self, le_target *target, size_t first, size_t m)
{
  const noise_pair *pair = self;
  const walk *w = pair->walk;
  const size_t d = w->d;
  const double *theta = w->theta + first * d;
  double *one = pair->one + first * d, *other = pair->other + first * d;
  LE_TRY(le_gradient_estimate(&w->gradient[w->stage], 2 * pair->pair, target, m, theta, NULL,
                              one));
  LE_TRY(le_gradient_estimate(&w->gradient[w->stage], 2 * pair->pair + 1, target, m, theta,
                              NULL, other));
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < d; j++) other[i * d + j] -= one[i * d + j];
    le_metric_kick(&w->metric[w->stage][0], other + i * d, one + i * d);
    other[i * d] = le_dot(one + i * d, one + i * d, d);
  }
  return LE_OK;
}

/* Variance of the mini-batch gradients, from pairs of mini-batches, in the metric: the same
 * scale on which the posterior has variance 1. */
static le_status gradient_noise(walk *w)
{
  const size_t d = w->d, m = w->m;
  le_gradient *g = &w->gradient[w->stage];
  double sum = 0;
  w->target.noise = 0;
  w->noise_measured_at = w->target.seen;
  if (w->target.ops->traits & LE_MODEL_QUADRATIC && g->second_order) return LE_OK;
  LE_TRY(le_gradient_draw(g, &w->target, 2 * NOISE_PAIRS));
  LE_SCRATCH(one, w->target.stack, 2 * m * d);
  double *other = one + m * d;
  for (size_t pair = 0; pair < NOISE_PAIRS; pair++) {
    noise_pair all = {w, pair, one, other};
    LE_TRY(le_target_share(&w->target, m, (double)(2 * le_gradient_rows(g, &w->target)), some_noise,
                           &all));
    for (size_t i = 0; i < m; i++) sum += other[i * d];
  }
  w->target.noise = sum / (2 * NOISE_PAIRS * (double)(m * d));
  return LE_OK;
}

/* Control variates work if the posterior is close enough to normal around one anchor. If the
 * gradients are mostly noise, or the variance of the particles does not agree with the
 * curvature, the last stage, which uses exact densities, runs until the rows have doubled. */
le_status le_walk_open_controlled_chunk(walk *w)
{
  LE_TRY(open_chunk_at_anchor(w));
  const size_t last = w->settings.stages - 1;
  if (stage_of(w)->metric != LE_METRIC_FROM_CURVATURE) return LE_OK;
  le_walk_anchored_precision(w, w->precision);
  const int definite = le_metric_set_precision(&w->metric[w->stage][0], w->precision) == LE_OK;
  if (definite && (double)w->target.seen >= NOISE_GROWTH * (double)w->noise_measured_at)
    LE_TRY(gradient_noise(w));
  if (last < 2) return LE_OK;
  const double wide = le_walk_temperature(w);
  if (definite && w->target.noise < fmin(NOISE_MOST, NOISE_TIMES_D_MOST / (double)w->d) &&
      !(wide > WIDE_MOST || wide < 1 / WIDE_MOST)) {
    le_walk_resize(w, stage_of(w)->particles);
    w->retry_control_at = 0;
    return LE_OK;
  }
  w->gradient[w->stage].anchored = 0;
  w->retry_control_at = 0;
  if (le_walk_may_check(w)) return le_walk_begin_check(w, CHECK_INTERIM);
  w->retry_control_at = 2 * w->target.seen;
  le_walk_resize(w, w->settings.stage[last].particles);
  le_walk_enter_stage(w, last);
  return LE_OK;
}
