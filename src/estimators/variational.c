/* Mean-field variational Bayes: a lower bound on the log evidence by coordinate ascent from several
 * starts.
 *
 * A start is random as the model defines it. For models with latent variables it is the state after
 * a few Gibbs sweeps from the prior towards the posterior, because coordinate ascent by itself
 * stays near its start. An ascent ends when the bound has grown by less than `tolerance` over the
 * last 50 iterations (Grosse, Ghahramani & Adams 2015) or after `iterations`. The highest bound of
 * `restarts` ascents is the result; the contribution of relabellings is reported beside it. With
 * `maximum` the same steps are EM for maximum likelihood; the one draw is then the state from which
 * the best ascent began. */
#include "core/machine.h"
#include "core/states.h"

#include <math.h>
#include <string.h>

/* the bound is computed every ten iterations */
enum { LOOK = 10, WINDOW = 50, LOOKS = WINDOW / LOOK };

typedef enum variational_phase {
  WAITING,
  SWEEPING,
  STARTING,
  CLIMBING,
  DRAWING,
  FINISHED
} variational_phase;

typedef struct variational {
  le_machine machine;
  const le_model_ops *model;
  const le_variational_ops *ops;
  const void *self;
  const le_arg *hint;
  size_t restarts, sweeps, iterations, draws, restart, step, iteration, drawn;
  size_t size, point_size, n; /* set once */
  double tolerance;
  int maximum;
  double *q, *best, *point, *state;
  double *scratch; /* scratch */
  double recent[LOOKS + 1]; /* the bound, now and at the last computations */
  double top, symmetry, work, climb_seconds;
} variational;

/* from_state: where the first ascent starts, if a good state is known. */
static const le_setting settings[] = {
  LE_FLAG_INTO(variational, maximum, "maximum", 0),
  LE_COUNT_INTO(variational, restarts, "restarts", 10, 1),
  LE_COUNT_INTO(variational, sweeps, "sweeps", 100, 0),
  LE_COUNT_INTO(variational, iterations, "iterations", 10000, 1),
  LE_REAL_INTO(variational, tolerance, "tolerance", 0.01, 0, HUGE_VAL),
  LE_COUNT_INTO(variational, draws, "draws", 1000, 1),
  LE_NUMBERS_SETTING("from_state"),
  {0}};

static le_status allocate(void *self)
{
  variational *v = self;
  le_arena *arena = &v->machine.arena;
  const le_latent_ops *latent = v->model->latent;
  v->n = v->machine.store.n;
  v->size = v->ops->size(v->self, v->n);
  v->point_size = latent ? latent->size(v->self, v->n) : v->model->dim(v->self);
  const size_t own = v->ops->scratch(v->self, v->n),
               theirs = latent ? latent->scratch(v->self, v->n) : 0;
  v->q = le_arena_doubles(arena, v->size + 1);
  v->best = le_arena_doubles(arena, v->size + 1);
  v->point = le_arena_doubles(arena, v->draws * v->point_size + 1);
  v->scratch = le_arena_doubles(arena, (own > theirs ? own : theirs) + 1);
  v->state = le_arena_doubles(arena, v->point_size + 1);
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

static le_status begin(void *self)
{
  variational *v = self;
  LE_TRY(allocate(v));
  if (v->hint && v->hint->n != v->point_size)
    return le_fail(&v->machine.context->error, LE_BAD_ARGUMENT,
                   "A state of %zu rows must have %zu numbers, not %zu.", v->n, v->point_size,
                   v->hint->n);
  if (v->hint) memcpy(v->state, v->hint->values, v->point_size * sizeof(double));
  v->machine.phase = v->hint ? STARTING : SWEEPING;
  return LE_OK;
}

static le_status sweep(void *self)
{
  variational *v = self;
  const le_chain chain = {.rows = le_machine_rows(&v->machine),
                          .lambda = ((double)v->step + 1) / (double)v->sweeps,
                          .rng = v->machine.streams.rng[0],
                          .state = v->state,
                          .scratch = v->scratch};
  if (v->step == 0) v->climb_seconds = v->machine.seconds;
  if (v->step == 0 && v->sweeps > 0) le_draw_state(v->model->latent, v->self, &chain);
  if (v->step < v->sweeps) {
    v->model->latent->sweep(v->self, &chain, 0, NULL);
    v->work += (double)v->n;
    v->step++;
  }
  if (v->step >= v->sweeps) v->machine.phase = STARTING;
  return LE_OK;
}

/* Computes the bound and whether it has converged. */
static le_status look(variational *v, const le_rows *rows)
{
  memmove(v->recent + 1, v->recent, LOOKS * sizeof(double));
  v->recent[0] = v->ops->bound(v->self, rows, v->q, v->scratch);
  v->work += (double)v->n;
  if (isfinite(v->recent[0])) return LE_OK;
  if (v->maximum)
    return le_fail(&v->machine.context->error, LE_NOT_FINITE,
                   "The likelihood has no maximum, because the fit leaves no residual noise: use "
                   "fewer components, or known variances.");
  return le_fail(
    &v->machine.context->error, LE_NOT_FINITE,
    "The variational bound became infinite or not a number: scale the columns of the data.");
}

static le_status set_out(void *self)
{
  variational *v = self;
  const le_rows all = le_machine_rows(&v->machine), *rows = &all;
  const int placed = v->sweeps > 0 || (v->hint && v->restart == 0);
  const double *hint = placed ? v->state : NULL;
  LE_TRY(v->ops->start(v->self, rows, hint, v->machine.streams.rng[0], v->q, v->scratch));
  v->work += (double)v->n;
  v->iteration = 0;
  v->step = 0;
  LE_TRY(look(v, rows));
  v->machine.phase = CLIMBING;
  return LE_OK;
}

static le_status arrive(variational *v, int converged)
{
  const double row[] = {(double)v->iteration, v->recent[0], v->machine.seconds - v->climb_seconds,
                        converged};
  LE_TRY(le_trace_add(&v->machine.trace, row));
  if (v->recent[0] > v->top) {
    v->top = v->recent[0];
    memcpy(v->best, v->q, v->size * sizeof(double));
    if (v->maximum) memcpy(v->point, v->state, v->point_size * sizeof(double));
  }
  v->machine.phase = ++v->restart < v->restarts ? SWEEPING : DRAWING;
  return LE_OK;
}

static le_status climb(void *self)
{
  variational *v = self;
  const le_rows all = le_machine_rows(&v->machine), *rows = &all;
  const size_t factors = v->ops->factors ? v->ops->factors(v->self) : 1;
  for (size_t factor = 0; factor < factors; factor++)
    LE_TRY(v->ops->update(v->self, rows, factor, v->q, v->scratch));
  v->work += (double)v->n;
  const int last = ++v->iteration >= v->iterations;
  if (v->iteration % LOOK != 0 && !last) return LE_OK;
  LE_TRY(look(v, rows));
  const int settled = v->iteration >= WINDOW && v->iteration % LOOK == 0 &&
                      v->recent[0] - v->recent[LOOKS] < v->tolerance;
  return settled || last ? arrive(v, settled) : LE_OK;
}

/* One draw from the best q; with the first, also the gain from relabelling. */
static le_status draw(void *self)
{
  variational *v = self;
  const gsl_rng *rng = v->machine.streams.rng[0];
  if (v->drawn == 0 && v->ops->symmetry)
    v->symmetry = v->ops->symmetry(v->self, v->n, v->best, rng, v->scratch);
  /* the draw is the starting state, which is already stored */
  if (v->maximum) v->drawn = v->draws - 1;
  else
    v->ops->draw(v->self, v->n, v->best, rng, v->point + v->drawn * v->point_size, v->scratch);
  if (++v->drawn >= v->draws) v->machine.phase = FINISHED;
  return LE_OK;
}

static void variational_progress(const void *self, double *rows, double *share)
{
  const variational *v = self;
  *rows = (double)v->n;
  *share = v->machine.phase >= DRAWING ? 1 : (double)v->restart / (double)v->restarts;
}

static double log_relabellings(const variational *v)
{
  if (v->model->log_symmetry) return v->model->log_symmetry(v->self);
  return v->model->latent && v->model->latent->log_symmetry
           ? v->model->latent->log_symmetry(v->self)
           : 0;
}

static le_status variational_result(void *self, le_result *result)
{
  variational *v = self;
  const le_figure figures[] = {
    {"bound", v->top}, {"symmetry", v->symmetry}, {"relabellings", log_relabellings(v)},
    {"n", (double)v->n}, {"lambda_steps", 0}, {"likelihoods", v->work}, {"gradients", 0},
    {"seconds", v->machine.seconds}};
  le_result_figures(result, LE_TABLE(figures));
  le_result_array(result, "draws", v->point_size, v->drawn, v->point);
  return LE_OK;
}

#define FIELD(member) LE_FIELD(variational, member)
#define EXPECTED(member) LE_EXPECTED(variational, member)
#define UP_TO(member, limit) LE_UP_TO(variational, member, limit)
static const le_field fields[] = {
  EXPECTED(restarts), EXPECTED(sweeps), EXPECTED(iterations), EXPECTED(draws),
  UP_TO(restart, restarts), UP_TO(step, sweeps), UP_TO(iteration, iterations),
  UP_TO(drawn, draws), FIELD(top), FIELD(symmetry), FIELD(work), FIELD(climb_seconds)
};
#undef EXPECTED
#undef FIELD
#undef UP_TO

static void variational_archive(void *self, le_archive *archive)
{
  variational *v = self;
  le_archive_doubles(archive, v->recent, LOOKS + 1);
  le_archive_doubles(archive, v->state, v->point_size);
  le_archive_doubles(archive, v->q, v->size);
  le_archive_doubles(archive, v->best, v->size);
  le_archive_doubles(archive, v->point, v->draws * v->point_size);
  const int phase = v->machine.phase;
  le_archive_require(archive, phase >= DRAWING || v->restart < v->restarts);
  le_archive_require(archive, phase != DRAWING || v->drawn < v->draws);
  if (v->step > 0 || phase == STARTING)
    le_states_require(v->model->latent, v->self, v->n, 1, v->state, archive);
}

static const le_phase phases[] = {
  [WAITING] = {"begin", begin, 1},
  [SWEEPING] = {"sweep", sweep, 0},
  [STARTING] = {"set out", set_out, 0},
  [CLIMBING] = {"climb", climb, 0},
  [DRAWING] = {"draw", draw, 0},
  [FINISHED] = {"finished", NULL, 0}};

/* A row for each restart. */
static const char *const columns[] = {"iterations", "bound", "seconds", "converged", NULL};

static le_status variational_make(void *self)
{
  variational *v = self;
  const le_problem *problem = &v->machine.problem;
  le_settings_read(&problem->settings, settings, v);
  v->model = problem->ops;
  v->self = problem->model;
  v->ops = v->maximum ? problem->ops->maximum : problem->ops->variational;
  if (!v->ops)
    return le_fail(&v->machine.context->error, LE_UNSUPPORTED,
                   "variational() needs a model with a lower bound, such as clustering() or "
                   "gaussian_mixture(), not %s().",
                   problem->ops->name);
  if (!v->model->latent) v->sweeps = 0;
  v->hint = le_args_find(&problem->settings, "from_state");
  v->top = -INFINITY;
  return le_machine_streams(&v->machine, 1);
}

const le_estimator_ops le_variational_estimator = {
  .name = "variational",
  .knows = {{settings}, NULL},
  .size = sizeof(variational),
  .phases = phases,
  .columns = columns,
  .fields = {LE_TABLE(fields)},
  .make = variational_make,
  .allocate = allocate,
  .progress = variational_progress,
  .result = variational_result,
  .archive = variational_archive,
  .latent = 1,
};
