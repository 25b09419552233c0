/* Chib's estimator for models with latent variables, in the form of Murray & Salakhutdinov (2009).
 *
 * For any state x*, p(rows) = f(x*) / p(x* | rows). Sweeps T leave the posterior invariant, so p(x*
 * | rows) is the posterior mean of T(x* | x). It is averaged along a chain: the state at a random
 * place comes from x* by a sweep in reverse order, later states by sweeps, earlier states by sweeps
 * in reverse order. The distribution of this chain is that of a stationary chain times the average
 * over p(x* | rows), so the estimate of Z is unbiased. In the plain form the chain continues from
 * the sweep that found x*, which is biased.
 *
 * A posterior may have a mirror image that sweeps never reach in practice; the average would be
 * twice too large. A sweep that begins, with probability one half, with a move to the mirror image
 * also leaves the posterior invariant, and its transition density is the mean of two.
 *
 * x* is the state of highest density in the second half of `search` sweeps; the first half is
 * burn-in from the prior. */
#include "base/logsum.h"
#include "base/pareto.h"
#include "core/machine.h"
#include "core/states.h"

#include <math.h>
#include <string.h>

enum { BATCHES = 20 };

typedef enum chib_phase { WAITING, SEARCHING, DRAWING, FINISHED } chib_phase;

typedef struct chib {
  le_machine machine;
  const le_latent_ops *ops;
  const void *self;
  size_t draws, search, step, place; /* place: index of the state that comes from x* */
  size_t size, n;                    /* set once */
  int plain;
  /* value: log T(x* | x) of each draw, in the order of the chain */
  double *state, *first, *best, *copy, *value;
  double *sorted, *scratch; /* scratch */
  double top, work;
} chib;

static const le_setting settings[] = {LE_COUNT_INTO(chib, draws, "draws", 1000, 1),
                                      LE_COUNT_INTO(chib, search, "search", 500, 1),
                                      LE_FLAG_INTO(chib, plain, "plain", 0),
                                      {0}};

/* m: draws, d: numbers of a state */
static const le_block blocks[] = {
  LE_KEPT(chib, state, LE_POINT), LE_KEPT(chib, first, LE_POINT), LE_KEPT(chib, best, LE_POINT),
  LE_BLOCK(chib, copy, LE_POINT), LE_KEPT(chib, value, LE_EACH)};

static le_status allocate(void *self)
{
  chib *c = self;
  le_arena *arena = &c->machine.arena;
  c->n = c->machine.store.n;
  c->size = c->ops->size(c->self, c->n);
  le_blocks_alloc(arena, c, LE_TABLE(blocks), c->draws, c->size);
  c->sorted = le_arena_doubles(arena, 2 * c->draws);
  c->scratch = le_arena_doubles(arena, c->ops->scratch(c->self, c->n));
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

static le_chain chain_of(const chib *c, double lambda, double *state)
{
  return (le_chain){.rows = le_machine_rows(&c->machine),
                    .lambda = lambda,
                    .rng = c->machine.streams.rng[0],
                    .state = state,
                    .scratch = c->scratch};
}

static double density(chib *c)
{
  const le_chain chain = chain_of(c, 1, c->state);
  c->work += (double)c->n;
  return c->ops->log_prior(c->self, &chain) + c->ops->log_lik(c->self, &chain);
}

static double sweep(chib *c, double lambda, int backwards, const double *to, double *state)
{
  const le_chain chain = chain_of(c, lambda, state);
  c->work += (double)c->n;
  return c->ops->sweep(c->self, &chain, backwards, to);
}

static le_status begin(void *self)
{
  chib *c = self;
  LE_TRY(allocate(c));
  const le_chain chain = chain_of(c, 0, c->state);
  le_draw_state(c->ops, c->self, &chain);
  c->top = -INFINITY;
  c->step = 0;
  c->machine.phase = SEARCHING;
  return LE_OK;
}

/* Goes to the state from which draws begin. */
static void turn(chib *c)
{
  c->place = 0;
  if (!c->plain) {
    memcpy(c->state, c->best, c->size * sizeof(double));
    sweep(c, 1, 1, NULL, c->state);
    c->place = gsl_rng_uniform_int(c->machine.streams.rng[0], c->draws);
  }
  memcpy(c->first, c->state, c->size * sizeof(double));
  c->step = 0;
  c->machine.phase = DRAWING;
}

/* The first half of the search is burn-in; the second half looks for the state of highest
 * density. */
static le_status search(void *self)
{
  chib *c = self;
  const double along = 2 * ((double)c->step + 1) / (double)c->search;
  sweep(c, along < 1 ? along : 1, 0, NULL, c->state);
  if (along >= 1) {
    const double value = density(c);
    if (value > c->top) {
      c->top = value;
      memcpy(c->best, c->state, c->size * sizeof(double));
    }
  }
  if (++c->step >= c->search) turn(c);
  return LE_OK;
}

static le_status draw(void *self)
{
  chib *c = self;
  /* from `place` to the end, then from `place` back to the beginning */
  const size_t later = c->draws - c->place;
  const int backwards = c->step >= later;
  const size_t at = backwards ? c->draws - 1 - c->step : c->place + c->step;
  if (c->step == later) memcpy(c->state, c->first, c->size * sizeof(double));
  if (c->plain || c->step > 0) sweep(c, 1, backwards, NULL, c->state);
  memcpy(c->copy, c->state, c->size * sizeof(double));
  c->value[at] = sweep(c, 1, 0, c->best, c->copy);
  if (c->ops->mirror) {
    memcpy(c->copy, c->state, c->size * sizeof(double));
    c->ops->mirror(c->self, c->n, c->copy);
    const double both[] = {c->value[at], sweep(c, 1, 0, c->best, c->copy)};
    c->value[at] = le_logmeanexp(both, 2);
  }
  if (++c->step >= c->draws) c->machine.phase = FINISHED;
  return LE_OK;
}

static void chib_progress(const void *self, double *rows, double *share)
{
  const chib *c = self;
  const double all = (double)(c->search + c->draws);
  *rows = (double)c->n;
  *share = c->machine.phase == DRAWING ? ((double)c->search + (double)c->step) / all
                                       : (double)c->step / all;
}

/* The relative error of the mean, from the variance between batches of successive draws. */
static double batch_error(const chib *c, double mean)
{
  const size_t batches = c->step < 2 * BATCHES ? 2 : BATCHES, each = c->step / batches;
  double square = 0;
  if (each == 0) return NAN;
  for (size_t b = 0; b < batches; b++)
    square += pow(expm1(le_logmeanexp(c->value + b * each, each) - mean), 2);
  return sqrt(square / (double)batches / ((double)batches - 1));
}

/* The share of draws whose transition density differs from that of the draw before. If it is zero,
 * the sweeps stay in one state, and the variance between batches is zero although the posterior may
 * have mass elsewhere. */
static double moved(const chib *c)
{
  size_t count = 0;
  for (size_t t = 1; t < c->step; t++)
    count += fabs(c->value[t] - c->value[t - 1]) > 1e-9 * (1 + fabs(c->value[t]));
  return c->step > 1 ? (double)count / ((double)c->step - 1) : NAN;
}

static le_status chib_result(void *self, le_result *result)
{
  chib *c = self;
  const int drawn = c->step && c->value;
  const double mean = drawn ? le_logmeanexp(c->value, c->step) : NAN;
  const le_figure figures[] = {
    {"log_evidence", c->top - mean}, {"se", drawn ? batch_error(c, mean) : NAN},
    {"n", (double)c->n}, {"lambda_steps", (double)c->search}, {"likelihoods", c->work},
    {"gradients", 0}, {"seconds", c->machine.seconds},
    {"met", drawn ? le_effective_size(c->value, c->step, 1, NULL, 0) : NAN},
    {"pareto_k", drawn ? le_pareto_tail(c->value, c->step, c->sorted).k : NAN},
    {"moved", drawn ? moved(c) : NAN}};
  le_result_figures(result, LE_TABLE(figures));
  le_result_array(result, "draws", c->size, c->state ? 1 : 0, c->state);
  return LE_OK;
}

static const le_field fields[] = {LE_EXPECTED(chib, draws), LE_FIELD(chib, step),
                                  LE_UP_TO(chib, place, draws), LE_FIELD(chib, top),
                                  LE_FIELD(chib, work)};

static void chib_archive(void *self, le_archive *archive)
{
  chib *c = self;
  le_blocks_archive(archive, c, LE_TABLE(blocks), c->draws, c->size);
  const int searches = c->machine.phase == SEARCHING;
  le_archive_require(archive, c->step < (searches ? c->search : c->draws) ||
                                (c->machine.phase == FINISHED && c->step == c->draws));
  le_states_require(c->ops, c->self, c->n, 1, c->state, archive);
  if (!searches) le_states_require(c->ops, c->self, c->n, 1, c->first, archive);
  if (!searches) le_states_require(c->ops, c->self, c->n, 1, c->best, archive);
}

static const le_phase phases[] = {
  [WAITING] = {"begin", begin, 1},
  [SEARCHING] = {"search", search, 0},
  [DRAWING] = {"draw", draw, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status chib_make(void *self)
{
  chib *c = self;
  const le_problem *problem = &c->machine.problem;
  if (!problem->ops->latent)
    return le_fail(&c->machine.context->error, LE_UNSUPPORTED,
                   "chib() is for models with latent variables, such as clustering(), not %s().",
                   problem->ops->name);
  c->ops = problem->ops->latent;
  c->self = problem->model;
  le_settings_read(&problem->settings, settings, c);
  return le_machine_streams(&c->machine, 1);
}

const le_estimator_ops le_chib_estimator = {
  .name = "chib",
  .knows = {{settings}, NULL},
  .size = sizeof(chib),
  .phases = phases,
  .fields = {LE_TABLE(fields)},
  .make = chib_make,
  .allocate = allocate,
  .progress = chib_progress,
  .result = chib_result,
  .archive = chib_archive,
  .latent = 1,
};
