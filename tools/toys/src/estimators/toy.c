/* Likelihood weighting: draws from the prior, weighted by their likelihood, a batch at a time. */
#include "base/logsum.h"
#include "core/machine.h"
#include "core/sums.h"

#include <math.h>

enum { BATCH = 100 };

typedef enum toy_phase { WEIGH, FINISHED } toy_phase;

typedef struct toy {
  le_machine machine;
  le_target target;
  size_t draws, done;
  double *theta, *log_weight;
} toy;

static const le_setting settings[] = {LE_COUNT_INTO(toy, draws, "draws", 1000, 2), {0}};
static const le_field fields[] = {
  LE_EXPECTED(toy, draws), LE_FIELD(toy, done), LE_FIELD(toy, target.likelihoods)};
/* m: draws, d: parameters */
static const le_block blocks[] = {
  LE_KEPT(toy, theta, LE_POINTS), LE_KEPT(toy, log_weight, LE_EACH)};

static le_status weigh(void *self)
{
  toy *t = self;
  const le_rows rows = le_machine_rows(&t->machine);
  const size_t left = t->draws - t->done, m = left < BATCH ? left : BATCH;
  double *theta = t->theta + t->done * t->target.d;
  for (size_t i = 0; i < m; i++)
    t->target.ops->draw_prior(t->target.model, t->machine.streams.rng[0], theta + i * t->target.d);
  LE_TRY(le_target_sums(&t->target, &rows, m, theta, t->log_weight + t->done, NULL));
  t->done += m;
  if (t->done == t->draws) t->machine.phase = FINISHED;
  return LE_OK;
}

static void toy_progress(const void *self, double *rows, double *share)
{
  const toy *t = self;
  *rows = (double)t->machine.store.n;
  *share = (double)t->done / (double)t->draws;
}

static le_status toy_result(void *self, le_result *result)
{
  toy *t = self;
  const double mean = t->done ? le_logmeanexp(t->log_weight, t->done) : NAN;
  double squares = 0;
  for (size_t i = 0; i < t->done; i++) squares += pow(expm1(t->log_weight[i] - mean), 2);
  const le_figure figures[] = {
    {"log_evidence", mean},
    {"se", t->done > 1 ? sqrt(squares / (double)t->done / ((double)t->done - 1)) : NAN},
    {"n", (double)t->machine.store.n},
    {"likelihoods", t->target.likelihoods},
    {"seconds", t->machine.seconds}};
  le_result_figures(result, LE_TABLE(figures));
  le_result_array(result, "draws", t->target.d, t->done, t->theta);
  le_result_array(result, "log_weights", 1, t->done, t->log_weight);
  return LE_OK;
}

static void toy_archive(void *self, le_archive *archive)
{
  toy *t = self;
  le_blocks_archive(archive, t, LE_TABLE(blocks), t->draws, t->target.d);
}

static const le_phase phases[] = {
    [WEIGH] = {"weigh", weigh, 1},
    [FINISHED] = {"finished", NULL, 0},
};

static le_status toy_make(void *self)
{
  toy *t = self;
  const le_problem *problem = &t->machine.problem;
  le_arena *arena = &t->machine.arena;
  le_settings_read(&problem->settings, settings, t);
  le_target_alloc(&t->target, problem->ops, problem->model, BATCH, 0, t->machine.context, arena);
  le_blocks_alloc(arena, t, LE_TABLE(blocks), t->draws, t->target.d);
  return le_machine_streams(&t->machine, 1);
}

const le_estimator_ops le_toy_estimator = {
  .name = "toy",
  .knows = {{settings}, NULL},
  .size = sizeof(toy),
  .phases = phases,
  .fields = {LE_TABLE(fields)},
  .make = toy_make,
  .progress = toy_progress,
  .result = toy_result,
  .archive = toy_archive,
};
