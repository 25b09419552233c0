/* Importance sampling in two steps: scales first, then the other parameters given these. */
#include "core/twostep.h"

#include "base/linalg.h"
#include "base/logsum.h"
#include "core/schedule.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

/* Draws of a round for each scale, and most rounds. A round is the last one if its weights have
 * this share of effective draws; the covariance of a round is widened by WIDER. */
enum { OF_ROUND = 50, ROUNDS_MOST = 12, FEW_MOST = 6, DIM_MOST = 100 };
static const double EVEN = 0.5, TEMPERED = 0.25, WIDER = 1.2;
/* Proposals have tails with so many degrees of freedom: given a small scale the posterior of
 * coefficients may have many modes, of which a climb finds one. */
static const double heavy_freedom = 3;
/* Steps along the scales between climbs. */
static const double STRIDE = 1, STRIDES_MOST = 20;
/* Leapfrog steps of a move; their length in standard deviations is uniform between two numbers. */
enum { LEAPFROG = 3 };
static const double STEP_LEAST = 0.2, STEP_MOST = 0.7;
/* Most draws x rows x parameters^2 for climbs, and draws x steps x rows x parameters for moves. */
static const double CLIMBS_WORK = 2e8, MOVES_WORK = 1.1e8;

void le_twostep_alloc(le_twostep *two, const le_target *target, size_t batch, le_arena *arena)
{
  const le_model_ops *ops = target->ops;
  const size_t d = target->d, few = ops->scales ? ops->scales(target->model) : d;
  memset(two, 0, sizeof *two);
  two->possible = few < d && few <= FEW_MOST && d <= DIM_MOST && !ops->relabel &&
                  ops->log_lik_grad && ops->log_lik_hess && ops->log_prior_grad &&
                  ops->log_prior_hess;
  if (!two->possible) return;
  const size_t rest = d - few, n = OF_ROUND * (few + 1);
  two->d = d;
  two->few = few;
  two->rest = rest;
  two->batch = batch;
  two->of_scales = le_component_peak_of(few, heavy_freedom);
  two->of_rest = le_component_peak_of(rest, heavy_freedom);
  le_mode_alloc(&two->mode, d, arena);
  two->mode.free = rest;
  two->centre = le_arena_doubles(arena, few + 1);
  two->root = le_arena_doubles(arena, few * few + 1);
  two->start = le_arena_doubles(arena, d);
  two->scales = le_arena_doubles(arena, n * few + 1);
  two->mass = le_arena_doubles(arena, n);
  two->peak = le_arena_doubles(arena, batch * rest);
  two->factor = le_arena_doubles(arena, batch * rest * rest);
  two->half_log_det = le_arena_doubles(arena, batch);
  two->z = le_arena_doubles(arena, batch * rest);
  two->next = le_arena_doubles(arena, batch * rest);
  two->momentum = le_arena_doubles(arena, batch * rest);
  two->slope = le_arena_doubles(arena, batch * rest);
  two->point = le_arena_doubles(arena, batch * d);
  two->grad = le_arena_doubles(arena, batch * d);
  two->now = le_arena_doubles(arena, batch);
  two->before = le_arena_doubles(arena, batch);
  two->base = le_arena_doubles(arena, batch);
  two->weight = le_arena_doubles(arena, n);
  two->work = le_arena_doubles(arena, le_mode_work(d));
}

int le_twostep_affordable(const le_twostep *two, const le_target *target, size_t draws,
                          size_t steps)
{
  if (!two->possible || !le_rows_of(target)->readable) return 0;
  const double points = (double)draws * (double)target->seen, rest = (double)two->rest;
  return points * rest * rest <= CLIMBS_WORK && points * rest * (double)steps <= MOVES_WORK;
}

void le_twostep_start(le_twostep *two, const double *theta)
{
  const size_t few = two->few;
  memcpy(two->start, theta, two->d * sizeof(double));
  memcpy(two->centre, theta + two->rest, few * sizeof(double));
  memset(two->root, 0, few * few * sizeof(double));
  for (size_t k = 0; k < few; k++) two->root[k * few + k] = 1;
  two->round = 0;
  two->steps = 1;
  two->failed = two->fitted = 0;
}

/* The log density of the spherical proposal at squared distance q; its gradient at z is -pull z. */
static double log_proposal(const le_component_peak *peak, size_t d, double q, double *pull)
{
  double heavy;
  const double value = le_component_log_peak(peak, 0, q, &heavy);
  *pull = (1 - heavy) * (LE_PEAK_FREEDOM + (double)d) / (LE_PEAK_FREEDOM + q) +
          heavy * (heavy_freedom + (double)d) / (heavy_freedom + q);
  return value;
}

static void draw_spherical(const le_component_peak *peak, size_t d, const gsl_rng *rng, double *z)
{
  le_component_spherical(d, le_component_peak_freedom(peak, rng), rng, z);
}

/* ---- scales ---- */

/* Draws scales and returns their log density. */
static double draw_scales(const le_twostep *two, const gsl_rng *rng, double *b)
{
  const size_t few = two->few;
  double e[FEW_MOST], moved[FEW_MOST] = {0}, pull;
  if (few == 0) return 0;
  draw_spherical(&two->of_scales, few, rng, e);
  le_lower_matvec(two->root, few, e, moved);
  for (size_t k = 0; k < few; k++) b[k] = two->centre[k] + moved[k];
  return log_proposal(&two->of_scales, few, le_dot(e, e, few), &pull) -
         le_cholesky_half_log_det(two->root, few);
}

/* The mode of the others given scales b. There may be many if scales are small: the climb follows
 * the mode from the first guess along a path of scales, with steps of at most STRIDE. */
static le_status climb_given(le_twostep *two, le_target *target, double enough, const double *b)
{
  le_mode *mode = &two->mode;
  const double *from = two->start + two->rest;
  double farthest = 0;
  for (size_t k = 0; k < two->few; k++) farthest = fmax(farthest, fabs(b[k] - from[k]));
  const size_t steps = (size_t)fmin(STRIDES_MOST, fmax(1, ceil(farthest / STRIDE)));
  memcpy(mode->theta, two->start, two->rest * sizeof(double));
  for (size_t step = 1; step <= steps; step++) {
    const double share = (double)step / (double)steps;
    for (size_t k = 0; k < two->few; k++)
      mode->theta[two->rest + k] = step < steps ? from[k] + share * (b[k] - from[k]) : b[k];
    LE_TRY(le_mode_climb(mode, target, enough, -INFINITY, two->work));
  }
  return LE_OK;
}

int le_twostep_refit(le_twostep *two, size_t n, size_t stride, const double *scales,
                     const double *weight)
{
  const size_t few = two->few;
  double *root = two->root;
  le_moments(n, few, stride, scales, weight, two->centre, root, two->work);
  for (size_t k = 0; k < few * few; k++) root[k] *= WIDER;
  for (size_t k = 0; k < few; k++) root[k * few + k] += 1e-6;
  return le_cholesky(root, few) == LE_OK;
}

le_status le_twostep_fit(le_twostep *two, le_target *target, double enough, const gsl_rng *rng)
{
  const size_t few = two->few, n = OF_ROUND * few;
  LE_TRY(climb_given(two, target, enough, two->centre));
  if (two->mode.converged) memcpy(two->start, two->mode.theta, two->rest * sizeof(double));
  if (few == 0) {
    two->failed = !two->mode.converged;
    two->fitted = 1;
    return LE_OK;
  }
  for (size_t i = 0; i < n; i++) {
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
    const double density = draw_scales(two, rng, two->scales + i * few);
    LE_TRY(climb_given(two, target, enough, two->scales + i * few));
    two->mass[i] = two->mode.converged ? le_mode_mass(&two->mode) - density : -INFINITY;
  }
  double power;
  two->failed = le_schedule_adaptive(two->mass, NULL, n, TEMPERED * (double)n, 0, &power) != LE_OK;
  two->fitted = two->failed;
  if (two->failed) return LE_OK;
  for (size_t i = 0; i < n; i++) two->mass[i] *= power;
  le_normalise(two->mass, n, two->weight);
  const double square = le_dot(two->weight, two->weight, n);
  two->failed = !le_twostep_refit(two, n, few, two->scales, two->weight);
  two->fitted = two->failed || (power == 1 && 1 / square > EVEN * (double)n) ||
                ++two->round == ROUNDS_MOST;
  return LE_OK;
}

/* ---- the others given the scales ---- */

/* theta = peak + L^-T z for all draws; the scales are in theta already. */
static void place(const le_twostep *two, size_t n, const double *z, double *theta)
{
  const size_t rest = two->rest, d = two->d;
  for (size_t i = 0; i < n; i++) {
    double *w = theta + i * d;
    memcpy(w, z + i * rest, rest * sizeof(double));
    le_lower_transpose_solve(two->factor + i * rest * rest, rest, w);
    for (size_t j = 0; j < rest; j++) w[j] += two->peak[i * rest + j];
  }
}

/* At z: log densities of the posterior (`value`) and of the start (`base`) in these coordinates;
 * and in `slope`, the gradient of their mixture with power lambda. */
static le_status evaluate(le_twostep *two, le_target *target, size_t n, double lambda,
                          const double *z, double *value, double *base)
{
  const size_t rest = two->rest, d = two->d;
  place(two, n, z, two->point);
  LE_TRY(le_target_density_grad(target, n, two->point, value, two->grad));
  for (size_t i = 0; i < n; i++) {
    const double *at = z + i * rest, *factor = two->factor + i * rest * rest,
                 q = le_dot(at, at, rest);
    double *slope = two->slope + i * rest, pull;
    base[i] = log_proposal(&two->of_rest, rest, q, &pull);
    value[i] -= two->half_log_det[i];
    for (size_t j = 0; j < rest; j++)
      slope[j] = (two->grad[i * d + j] - le_dot(factor + j * rest, slope, j)) /
                 factor[j * rest + j];
    for (size_t j = 0; j < rest; j++) slope[j] = lambda * slope[j] - (1 - lambda) * pull * at[j];
  }
  return LE_OK;
}

static double energy(const le_twostep *two, size_t i, double lambda, double value, double base)
{
  const double *p = two->momentum + i * two->rest;
  return 0.5 * le_dot(p, p, two->rest) - (1 - lambda) * base - lambda * value;
}

/* One move of each draw that leaves the mixture with power lambda unchanged. On entry `now`, `base`
 * and `slope` are those at z. */
static le_status move(le_twostep *two, le_target *target, size_t n, double lambda,
                      const gsl_rng *rng)
{
  const size_t size = n * two->rest;
  const double step = STEP_LEAST + (STEP_MOST - STEP_LEAST) * gsl_rng_uniform(rng);
  for (size_t k = 0; k < size; k++) two->momentum[k] = gsl_ran_gaussian_ziggurat(rng, 1);
  for (size_t i = 0; i < n; i++)
    two->before[i] = energy(two, i, lambda, two->now[i], two->base[i]);
  memcpy(two->next, two->z, size * sizeof(double));
  le_add_scaled(size, 0.5 * step, two->slope, two->momentum);
  for (size_t k = 1; k <= LEAPFROG; k++) {
    le_add_scaled(size, step, two->momentum, two->next);
    LE_TRY(evaluate(two, target, n, lambda, two->next, two->now, two->base));
    le_add_scaled(size, k < LEAPFROG ? step : 0.5 * step, two->slope, two->momentum);
  }
  for (size_t i = 0; i < n; i++) {
    const double rise = energy(two, i, lambda, two->now[i], two->base[i]) - two->before[i];
    if (log(gsl_rng_uniform_pos(rng)) < -rise)
      memcpy(two->z + i * two->rest, two->next + i * two->rest, two->rest * sizeof(double));
  }
  return LE_OK;
}

le_status le_twostep_draw(le_twostep *two, le_target *target, double enough, const gsl_rng *rng,
                          size_t n, double *theta, double *log_weight)
{
  const size_t rest = two->rest, d = two->d;
  if (le_interrupted(target->context)) return LE_INTERRUPTED;
  for (size_t i = 0; i < n; i++) {
    double *b = two->point + i * d + rest;
    log_weight[i] = -draw_scales(two, rng, b);
    LE_TRY(climb_given(two, target, enough, b));
    memcpy(two->peak + i * rest, two->mode.theta, rest * sizeof(double));
    memcpy(two->factor + i * rest * rest, two->mode.factor, rest * rest * sizeof(double));
    two->half_log_det[i] = le_cholesky_half_log_det(two->mode.factor, rest);
    draw_spherical(&two->of_rest, rest, rng, two->z + i * rest);
  }
  for (size_t t = 1; t <= two->steps; t++) {
    const double lambda = (double)t / (double)two->steps;
    LE_TRY(evaluate(two, target, n, lambda, two->z, two->now, two->base));
    for (size_t i = 0; i < n; i++)
      log_weight[i] += (two->now[i] - two->base[i]) / (double)two->steps;
    if (t < two->steps) LE_TRY(move(two, target, n, lambda, rng));
  }
  memcpy(theta, two->point, n * d * sizeof(double));
  return LE_OK;
}

static const le_field fields[] = {LE_FIELD(le_twostep, round),
                                  LE_WITHIN(le_twostep, steps, 0, LE_TWOSTEP_STEPS_MOST),
                                  LE_FIELD(le_twostep, failed), LE_FIELD(le_twostep, fitted),
                                  LE_UNSAVED(le_twostep, mode)}; /* the last climb */

void le_twostep_archive(le_twostep *two, le_archive *archive)
{
  if (!two->possible) return;
  LE_ARCHIVE_FIELDS(archive, two, fields);
  le_archive_doubles(archive, two->centre, two->few);
  le_archive_doubles(archive, two->root, two->few * two->few);
  le_archive_doubles(archive, two->start, two->d);
  /* scales of numerical differences and of climbs depend on earlier climbs */
  le_archive_doubles(archive, two->mode.scale, two->d);
}
