/* Chib's estimator for models with latent variables, in the form of Murray & Salakhutdinov (2009).
 *
 * For any state x*, p(rows) = f(x*) / p(x* | rows). Sweeps T leave the posterior invariant, so p(x*
 * | rows) is the posterior mean of T(x* | x). It is averaged along a chain: the state at a random
 * place comes from x* by a sweep in reverse order, later states by sweeps, earlier states by sweeps
 * in reverse order. The distribution of this chain is that of a stationary chain times the average
 * over p(x* | rows), so the estimate of Z is unbiased. In the plain form the chain continues from
 * the sweep that found x*, which is biased.
 *
 * Sweeps may hardly ever exchange labels (components, attributes; for a product of two matrices
 * columns and their signs). Let G be the group of the relabellings g, all of which leave the
 * posterior invariant. Then so does a sweep after a random relabelling, whose transition density is
 *
 *     K(x* | x) = mean over g of T(x* | g x),
 *
 * and everything above holds for K instead of T. Its reversal is a sweep in reverse order, then a
 * random relabelling. The average K is taken exactly if there are few relabellings. Otherwise one
 * of them is drawn with probability q(g | x), and T(x* | g x) / (|G| q(g | x)) has the mean K. The
 * estimate is still unbiased: its chain is one of pairs (x, g), for which p(x | rows) q(g | x) is
 * stationary.
 * At the random place the pair has the density
 *
 *     p(x | rows) q(g | x) * T(x* | g x) / (|G| q(g | x)) / p(x* | rows),
 *
 * in which q cancels: y = g x comes from x* by a sweep in reverse order, g is uniform, and x is the
 * inverse of g applied to y. At other places g comes from q. A relabelling drawn uniformly would be
 * unbiased, too, but of all g few count; q prefers those that make x like x*.
 *
 * x* is given, or the state of highest density in the second half of `search` sweeps; the first
 * half is burn-in from the prior. */
#include "base/logsum.h"
#include "base/pareto.h"
#include "core/machine.h"
#include "core/relabel.h"
#include "core/states.h"

#include <math.h>
#include <string.h>

/* RELABELLED: up to so many relabellings the average over them is exact. */
enum { BATCHES = 20, RELABELLED = 24 };

typedef enum chib_phase { WAITING, SEARCHING, DRAWING, FINISHED } chib_phase;

typedef struct chib {
  le_machine machine;
  const le_latent_ops *ops;
  const void *self;
  size_t draws, search, step, place; /* place: index of the state that comes from x* */
  size_t size, n;                    /* set once */
  int plain, relabel;
  const le_arg *from;                /* set once: the chosen state, or NULL */
  le_relabel relabelling;            /* scratch; set once: whether the model has any */
  size_t relabellings;               /* set once: 0 if they are many, 1 if there are none */
  /* value: log T(x* | x) of each draw, in the order of the chain */
  double *state, *first, *best, *copy, *value;
  size_t moves; /* sweeps that changed the state */
  double *sorted, *scratch, each[RELABELLED]; /* scratch */
  double top, work;
} chib;

static const le_setting settings[] = {LE_COUNT_INTO(chib, draws, "draws", 1000, 1),
                                      LE_COUNT_INTO(chib, search, "search", 500, 1),
                                      LE_FLAG_INTO(chib, plain, "plain", 0),
                                      LE_FLAG_INTO(chib, relabel, "relabel", 1),
                                      LE_NUMBERS_SETTING("from_state"),
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
  const double log_count = c->relabel ? le_relabel_log_count(c->ops, c->self) : 0;
  c->relabellings = log_count > log(RELABELLED + 0.5) ? 0 : (size_t)lround(exp(log_count));
  if (c->relabellings != 1) le_relabel_make(&c->relabelling, arena, c->ops, c->self, c->n);
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

/* log K(x* | x), or of an unbiased estimate of it from one relabelling: of the current one if it is
 * `given`. */
static double to_best(chib *c, const double *state, int given)
{
  le_relabel *r = &c->relabelling;
  if (c->relabellings == 1) {
    memcpy(c->copy, state, c->size * sizeof(double));
    return sweep(c, 1, 0, c->best, c->copy);
  }
  if (c->relabellings == 0) {
    const gsl_rng *rng = given ? NULL : c->machine.streams.rng[0];
    const double log_q = le_relabel_towards(r, c->best, state, rng);
    le_relabel_apply(r, state, c->copy);
    return sweep(c, 1, 0, c->best, c->copy) - log_q - r->log_count;
  }
  for (size_t g = 0; g < c->relabellings; g++) {
    le_relabel_number(r, g);
    le_relabel_apply(r, state, c->copy);
    c->each[g] = sweep(c, 1, 0, c->best, c->copy);
  }
  return le_logmeanexp(c->each, c->relabellings);
}

/* Goes to the state from which draws begin. If that comes from x*, it is the first draw. */
static void turn(chib *c)
{
  c->place = c->step = c->moves = 0;
  if (!c->plain) {
    const gsl_rng *rng = c->machine.streams.rng[0];
    memcpy(c->state, c->best, c->size * sizeof(double));
    sweep(c, 1, 1, NULL, c->state);
    c->place = gsl_rng_uniform_int(rng, c->draws);
    if (c->relabellings != 1) {
      le_relabel_uniform(&c->relabelling, rng);
      le_relabel_invert(&c->relabelling);
      le_relabel_apply(&c->relabelling, c->state, c->copy);
      le_relabel_invert(&c->relabelling);
      memcpy(c->state, c->copy, c->size * sizeof(double));
    }
    c->value[c->place] = to_best(c, c->state, 1);
    c->step = 1;
  }
  memcpy(c->first, c->state, c->size * sizeof(double));
  c->machine.phase = c->step < c->draws ? DRAWING : FINISHED;
}

static le_status begin(void *self)
{
  chib *c = self;
  LE_TRY(allocate(c));
  c->top = -INFINITY;
  c->step = 0;
  if (c->from) {
    if (c->from->n != c->size || (c->ops->possible &&
                                  !c->ops->possible(c->self, c->n, c->from->values)))
      return le_fail(&c->machine.context->error, LE_BAD_ARGUMENT,
                     "`state` is not a state of this model.");
    memcpy(c->state, c->from->values, c->size * sizeof(double));
    memcpy(c->best, c->state, c->size * sizeof(double));
    c->top = density(c);
    turn(c);
    return LE_OK;
  }
  const le_chain chain = chain_of(c, 0, c->state);
  le_draw_state(c->ops, c->self, &chain);
  c->machine.phase = SEARCHING;
  return LE_OK;
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
  memcpy(c->copy, c->state, c->size * sizeof(double));
  sweep(c, 1, backwards, NULL, c->state);
  c->moves += memcmp(c->copy, c->state, c->size * sizeof(double)) != 0;
  c->value[at] = to_best(c, c->state, 0);
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

/* The share of sweeps that change the state. If it is zero, the variance between batches is zero
 * although the posterior may have mass elsewhere. */
static double moved(const chib *c)
{
  const size_t sweeps = c->step - (c->plain ? 0 : 1);
  return c->step > 1 ? (double)c->moves / (double)sweeps : NAN;
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
                                  LE_UP_TO(chib, place, draws), LE_UP_TO(chib, moves, draws),
                                  LE_FIELD(chib, top), LE_FIELD(chib, work)};

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
  c->from = le_args_find(&problem->settings, "from_state");
  if (c->from) c->search = 0;
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
