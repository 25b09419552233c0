/* Evidences of segments by Laplace's approximation. The climb of a segment starts at the mode of
 * the one that is a block shorter, so that it needs few steps. */
#include "core/segments.h"

#include "base/linalg.h"
#include "core/mode.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>
#include <math.h>

/* Squared distance from the mode in standard deviations at which a climb ends. */
static const double NEAR = 1e-8;

typedef struct laplace {
  const le_segments *s;
  le_arena arena;
  le_store store; /* borrows the rows of a segment */
  le_target target;
  le_mode mode;
  double *work, *start;
} laplace;

static le_status begin(const le_segments *s, laplace *l)
{
  const le_model_ops *ops = s->ops;
  *l = (laplace){.s = s};
  if (ops->latent || !ops->log_lik_hess || !ops->log_prior_hess ||
      ops->traits & (LE_MODEL_MULTIMODAL | LE_MODEL_NO_DATA))
    return LE_UNSUPPORTED;
  const size_t d = ops->dim(s->self);
  le_target_alloc(&l->target, ops, s->self, 1, le_mode_work(d), s->context, &l->arena);
  le_mode_alloc(&l->mode, d, &l->arena);
  l->work = le_arena_doubles(&l->arena, le_mode_work(d) + d);
  if (l->arena.failed) return LE_NO_MEMORY;
  l->start = l->work + le_mode_work(d);
  for (size_t j = 0; j < d; j++) l->mode.scale[j] = 1;
  return LE_OK;
}

/* NaN if no mode is found. */
static le_status climb(laplace *l, double from, double to, double *log_evidence)
{
  const size_t width = l->s->rows.width;
  const le_rows rows = {(size_t)(to - from), width, l->s->rows.values + (size_t)from * width};
  l->store = (le_store){.width = width};
  LE_TRY(le_store_take(&l->store, &rows, NULL, LE_LAST_ROWS));
  l->target.store = &l->store;
  l->target.seen = rows.n;
  LE_TRY(le_mode_climb(&l->mode, &l->target, NEAR, -INFINITY, l->work));
  *log_evidence = l->mode.converged ? le_mode_mass(&l->mode) : NAN;
  return LE_OK;
}

/* The first mode of each start is near that of the start before it. */
static le_status climb_all(laplace *l, double *log_evidence)
{
  const le_segments *s = l->s;
  const size_t bytes = l->target.d * sizeof(double);
  for (size_t i = 0; i < s->m; i++) {
    memcpy(l->mode.theta, l->start, bytes);
    int first = 1;
    for (size_t j = i + 1; j <= s->m; j++) {
      const size_t at = le_segment_at(s->m, i, j);
      log_evidence[at] = -INFINITY;
      if (s->bound[j] - s->bound[i] < s->least || (s->wanted && !s->wanted[at])) continue;
      LE_TRY(climb(l, s->bound[i], s->bound[j], log_evidence + at));
      if (!l->mode.converged) memcpy(l->mode.theta, l->start, bytes);
      else if (first) memcpy(l->start, l->mode.theta, bytes);
      first = 0;
      if (le_interrupted(s->context)) return LE_INTERRUPTED;
    }
  }
  return LE_OK;
}

le_status le_segments_laplace(const le_segments *segments, double *log_evidence)
{
  laplace l;
  le_status status = begin(segments, &l);
  if (status == LE_OK) status = climb_all(&l, log_evidence);
  le_arena_free(&l.arena);
  return status;
}

/* From the normal density at the mode. */
static void draw_normal(const le_mode *mode, size_t d, const gsl_rng *rng, double *theta)
{
  for (size_t j = 0; j < d; j++) theta[j] = gsl_ran_gaussian_ziggurat(rng, 1);
  le_lower_transpose_solve(mode->factor, d, theta);
  for (size_t j = 0; j < d; j++) theta[j] += mode->theta[j];
}

le_status le_segments_laplace_draw(const le_segments *segments, size_t k, const double *from,
                                   const double *to, const gsl_rng *rng, double *theta)
{
  laplace l;
  double found;
  const double *bound = segments->bound;
  le_status status = begin(segments, &l);
  for (size_t i = 0; i < k && status == LE_OK; i++, theta += l.target.d) {
    if (i == 0 || from[i] != from[i - 1] || to[i] != to[i - 1])
      status = climb(&l, bound[(size_t)from[i]], bound[(size_t)to[i]], &found);
    if (status == LE_OK) draw_normal(&l.mode, l.target.d, rng, theta);
    if (status == LE_OK && le_interrupted(segments->context)) status = LE_INTERRUPTED;
  }
  le_arena_free(&l.arena);
  return status;
}
