/* What follows where weights are uneven: a refitted proposal, or draws in two steps. */
#include "core/audit/parts.h"

#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* Numbers of annealing steps, each STEPS_MORE times the one before, until the effective sample size
 * is ANNEALED of the draws, or ENOUGH and more steps hardly help. Weights with a Pareto tail above
 * TAIL are uneven, too: with 20 rows, estimates of t regressions were too low by more than twice
 * their errors in a quarter of runs. This choice is made with one PILOT-th of the draws, and the
 * estimate with others: if draws with a heavy tail were always made again, it would be too low on
 * average. Only draws whose Pareto tail hides the error are made again. */
enum { STEPS_MORE = 4, STEPS_MOST = LE_TWOSTEP_STEPS_MOST, PILOT = 4 };
static const double ANNEALED = 0.6, ENOUGH = 0.25, HELPS = 1.2, TAIL = 0.4;

static int is_uneven(const le_audit *a, double share)
{
  return a->failed || !(a->effective_size >= share * a->ideal_size) || a->pareto_k > TAIL;
}

static size_t pilot_of(size_t draws) { return draws > PILOT ? draws / PILOT : draws; }

static void start_two_steps(le_audit *a, const le_target *target)
{
  /* given the scales there is one mode, and the others would be lost */
  if (a->modes > 1 || !le_twostep_affordable(&a->two, target, a->first_lot, 1)) return;
  a->draws = pilot_of(a->first_lot);
  a->drawn = 0;
  a->by_part = 0;
  a->in_two_steps = 1;
  a->phase = LE_AUDIT_SCALES;
  le_twostep_start(&a->two, a->modes ? a->mode[0].theta : a->start);
}

le_status le_audit_fit_scales(le_audit *a, le_target *target, const gsl_rng *rng)
{
  LE_TRY(le_twostep_fit(&a->two, target, a->enough, rng));
  if (!a->two.fitted) return LE_OK;
  a->phase = a->two.failed ? LE_AUDIT_DONE : LE_AUDIT_DRAW;
  a->failed = a->two.failed;
  a->ideal_sum = a->ideal_squares = 0;
  return LE_OK;
}

/* The estimate; then, after the pilot draws or if weights need more steps, other draws. */
static void finish_two_steps(le_audit *a, const le_target *target)
{
  const double before = a->two.steps > 1 ? a->effective_size / a->ideal_size : 0;
  a->ideal_sum = a->ideal_squares = (double)a->draws;
  le_audit_finish(a, target);
  const size_t all = a->first_lot, steps = STEPS_MORE * a->two.steps;
  const int pilot = a->draws < all,
            helps = is_uneven(a, ENOUGH) || a->effective_size > HELPS * before * a->ideal_size,
            uneven = pilot ? is_uneven(a, ANNEALED)
                           : a->failed || a->pareto_k > LE_AUDIT_LIMITS.most_k,
            more = uneven && helps && steps <= STEPS_MOST &&
                   le_twostep_affordable(&a->two, target, all, steps);
  if (!pilot && !more) return;
  if (more && !a->failed) {
    le_normalise(a->log_weight, a->draws, a->work);
    if (!le_twostep_refit(&a->two, a->draws, a->d, a->theta + a->two.rest, a->work)) {
      a->failed = pilot; /* other draws are an estimate */
      return;
    }
  }
  if (more) a->two.steps = steps;
  a->draws = more ? pilot_of(all) : all;
  a->drawn = 0;
  a->phase = LE_AUDIT_DRAW;
}

le_status le_audit_draw_in_two_steps(le_audit *a, le_target *target, const gsl_rng *rng)
{
  const size_t from = a->drawn, rest = a->draws - from, n = rest < a->batch ? rest : a->batch;
  LE_TRY(le_twostep_draw(&a->two, target, a->enough, rng, n, a->theta + from * a->d,
                         a->log_weight + from));
  a->drawn += n;
  if (a->drawn == a->draws) finish_two_steps(a, target);
  return LE_OK;
}

/* ---- a refitted proposal ---- */

/* In few dimensions the proposal is refitted to its draws if their weights are uneven, with up to
 * REFIT_WORK rows visited. Draws that will be used anyway are refitted if that is cheap
 * (REFIT_CHEAP) and they are less than EVEN: with 16 to 52 rows and half of the draws
 * effective, estimates were 0.2 to 0.3 nats too low at four to seven stated errors. */
enum { REFIT_DIMENSIONS = 20, REFIT_DRAWS = 1000 };
static const double REFIT_WORK = 2e7, REFIT_CHEAP = 2e6, EVEN = 0.7;

/* Whether a refit may visit so many rows. */
static int may_refit(const le_audit *a, const le_target *target, double most)
{
  const double rows = (double)le_store_sample(target->store, target->seen),
               work = (double)a->first_lot * (LE_REFIT_PARTS_MOST + 1) * (rows + 1);
  return !a->refitted && !a->in_two_steps && !a->failed && a->d <= REFIT_DIMENSIONS &&
         target->chunk == 0 && work <= most;
}

static int wants_refit(const le_audit *a, const le_target *target)
{
  if (!(a->effective_size > a->refit_from * a->ideal_size)) return 0;
  return (may_refit(a, target, REFIT_CHEAP) && is_uneven(a, EVEN)) ||
         (a->refit_from == 0 && may_refit(a, target, REFIT_WORK) && is_uneven(a, LE_AUDIT_UNEVEN));
}

static le_status start_refit(le_audit *a)
{
  const size_t lot = a->first_lot < REFIT_DRAWS ? a->first_lot : REFIT_DRAWS;
  a->refitted = 1;
  a->by_part = 0;
  a->phase = LE_AUDIT_REFIT;
  return le_refit_start(&a->refit, a->d, lot, a->arena);
}

/* Where it is cheap, a refit takes the place of draws in two steps, also a later one, after moves
 * of particles: of two noises in each other's place (groups of one row) draws in two steps were .1
 * nats too low on average at a stated .05 to .2, however many steps, and took 8 s, not .2. */
le_status le_audit_follow_up(le_audit *a, const le_target *target)
{
  if (wants_refit(a, target)) return start_refit(a);
  if (is_uneven(a, LE_AUDIT_UNEVEN) && !may_refit(a, target, REFIT_CHEAP))
    start_two_steps(a, target);
  return LE_OK;
}

/* Log densities of draws, -Inf outside the fundamental domain. */
static le_status densities_inside(const le_audit *a, le_target *target, size_t n,
                                  const double *theta, double *value)
{
  LE_TRY(le_target_density(target, n, theta, value));
  for (size_t i = 0; i < n; i++) {
    memcpy(a->image, theta + i * a->d, a->d * sizeof(double));
    if (le_audit_relabel(a, target, a->image)) value[i] = -INFINITY;
  }
  return LE_OK;
}

/* The refitted mixture becomes the proposal, and fresh draws of it give the estimate. */
static le_status use_refitted(le_audit *a)
{
  le_refit *r = &a->refit;
  const size_t first = a->parts;
  a->phase = LE_AUDIT_DONE;
  if (r->now.parts > 0 && r->best.worth * (double)a->draws > a->effective_size) {
    a->parts = first + r->now.parts;
    LE_TRY(le_audit_reserve(a, a->parts + 1));
    for (size_t k = 0; k < first; k++) a->share[k] *= r->now.share[0];
    for (size_t j = 0; j < r->now.parts; j++) {
      a->share[first + j] = r->now.share[j + 1];
      le_mode_swap(&a->mode[first + j], &r->part[j]);
    }
    a->draws = a->lot = a->first_lot;
    a->drawn = 0;
    a->ideal_sum = a->ideal_squares = 0;
    a->phase = LE_AUDIT_DRAW;
  }
  le_refit_free(r);
  return LE_OK;
}

/* Draw k of a lot. The first proposal is a mixture itself. */
static void draw_for_refit(const le_audit *a, const le_target *target, size_t k,
                           const gsl_rng *rng, double *theta)
{
  enum { STRATA = 1000000 };
  const le_refit *r = &a->refit;
  const size_t part = le_component_stratum(r->now.share, r->now.parts + 1, k, r->lot);
  if (part > 0) {
    le_component_draw(&r->part[part - 1], LE_REFIT_FREEDOM, rng, theta);
    return;
  }
  const size_t own = le_component_stratum(a->share, a->parts,
                                          (size_t)(gsl_rng_uniform(rng) * STRATA), STRATA);
  le_audit_draw_from(a, target, own, le_audit_freedom(a, own, rng), rng, theta);
}

le_status le_audit_refit(le_audit *a, le_target *target, const gsl_rng *rng)
{
  le_refit *r = &a->refit;
  const size_t d = a->d, lot = r->lot;
  double *theta = r->theta + r->n * d, *value = r->value + r->n;
  for (size_t k = 0; k < lot; k++) draw_for_refit(a, target, k, rng, theta + k * d);
  LE_TRY(densities_inside(a, target, lot, theta, value));
  for (size_t k = 0; k < lot; k++)
    le_refit_column(r, r->n + k)[0] = le_audit_log_proposal(a, target, theta + k * d, a->work);
  le_refit_round(r, a->refit_least * LE_AUDIT_REFIT_IDEAL);
  return r->done ? use_refitted(a) : LE_OK;
}
