/* Likelihood weighting: draws from the prior, weighted by their likelihood, a batch at a time. */
#include "base/logsum.h"
#include "core/machine.h"
#include "core/sums.h"

#include <math.h>
#include <string.h>

enum { BATCH = 100 };

static const le_setting settings[] = {LE_COUNT_SETTING("draws", 1000, 2), {0}};

typedef enum toy_phase { WEIGH, FINISHED } toy_phase;

typedef struct toy {
  le_machine machine; /* first: feed and advance are the machine's own */
  le_arena arena;
  le_target target;
  size_t draws, done;
  double *theta, *log_weight;
  double figures[5];
} toy;

static void toy_free(void *self)
{
  toy *t = self;
  if (!t) return;
  le_machine_free(&t->machine);
  le_arena_free(&t->arena);
  le_release(t);
}

static le_status weigh(void *self, le_progress *progress)
{
  toy *t = self;
  (void)progress;
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
  static const char *const names[] = {"log_evidence", "se", "n", "likelihoods", "seconds"};
  toy *t = self;
  const double mean = t->done ? le_logmeanexp(t->log_weight, t->done) : NAN;
  double squares = 0;
  for (size_t i = 0; i < t->done; i++) squares += pow(expm1(t->log_weight[i] - mean), 2);
  t->figures[0] = mean;
  t->figures[1] = t->done > 1 ? sqrt(squares / (double)t->done / ((double)t->done - 1)) : NAN;
  t->figures[2] = (double)t->machine.store.n;
  t->figures[3] = t->target.likelihoods;
  t->figures[4] = t->machine.seconds;
  le_result_figures(result, sizeof names / sizeof *names, names, t->figures);
  le_result_array(result, "draws", t->target.d, t->done, t->theta);
  le_result_array(result, "log_weights", 1, t->done, t->log_weight);
  return LE_OK;
}

static void toy_archive(void *self, le_archive *archive)
{
  toy *t = self;
  le_archive_expect(archive, t->draws);
  le_machine_archive(&t->machine, archive);
  le_archive_size(archive, &t->done);
  le_archive_double(archive, &t->target.likelihoods);
  le_archive_doubles(archive, t->theta, t->draws * t->target.d);
  le_archive_doubles(archive, t->log_weight, t->draws);
}

static const le_phase phases[] = {
    [WEIGH] = {"weigh", weigh, 1},
    [FINISHED] = {"finished", NULL, 0},
};

static le_status toy_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  toy *t = le_resize(NULL, sizeof *t);
  if (!t) return LE_NO_MEMORY;
  memset(t, 0, sizeof *t);
  t->draws = le_setting_count(&problem->settings, settings, "draws");
  le_target_alloc(&t->target, problem->ops, problem->model, BATCH, context, &t->arena);
  t->theta = le_arena_doubles(&t->arena, t->draws * t->target.d);
  t->log_weight = le_arena_doubles(&t->arena, t->draws);
  le_status status = le_machine_alloc(&t->machine, phases, FINISHED + 1, problem, 1, context);
  if (status == LE_OK && t->arena.failed) status = LE_NO_MEMORY;
  if (status == LE_OK) *self = t;
  else toy_free(t);
  return status;
}

const le_estimator_ops le_toy_estimator = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_estimator_ops),
  .name = "toy",
  .knows = {{settings}, NULL},
  .alloc = toy_alloc,
  .free = toy_free,
  .feed = le_machine_feed,
  .advance = le_machine_advance,
  .progress = toy_progress,
  .result = toy_result,
  .archive = toy_archive,
};
