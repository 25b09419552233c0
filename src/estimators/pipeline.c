/* A pipeline of two engines: the first computes the evidence of the first rows and passes its
 * particles to the second, which continues with the other rows.
 *
 * hybrid: nested sampling for the first rows, where a sequential run has its largest errors,
 * then annealing. Kernel 1 is that of nested sampling, kernel 2 that of annealing. */
#include "core/machine.h"
#include "estimators/parts.h"

enum { PARTS = 2 };
static const le_estimator_ops *const ops[PARTS] = {&le_nested_estimator, &le_walk_estimator};

typedef struct pipeline {
  le_machine machine;
  void *part[PARTS];
  size_t first, fed; /* rows of the first engine; how many of them it has received */
  int at;            /* index of the engine that runs now */
} pipeline;

/* The settings of the pipeline itself. */
static const le_setting settings[] = {
  LE_COUNT_INTO(pipeline, first, "first", 100, 1), /* rows of nested sampling */
  {0}};

static const le_field fields[] = {LE_UP_TO(pipeline, fed, first),
                                  LE_WITHIN(pipeline, at, 0, PARTS - 1)};

static void pipeline_release(void *self)
{
  pipeline *p = self;
  for (int k = 0; k < PARTS; k++) le_machine_free(p->part[k]);
}

static le_status hybrid_make(void *self)
{
  pipeline *p = self;
  le_machine *m = &p->machine;
  le_problem start = m->problem;
  le_settings_read(&m->problem.settings, settings, p);
  if (start.total > p->first) start.total = p->first;
  LE_TRY(le_machine_streams(m, 0));
  LE_TRY(le_machine_new(ops[0], &start, m->context, &p->part[0]));
  return le_machine_new(ops[1], &m->problem, m->context, &p->part[1]);
}

static le_status pipeline_start(void *self)
{
  pipeline *p = self;
  for (int k = 0; k < PARTS; k++)
    if (ops[k]->start) LE_TRY(ops[k]->start(p->part[k]));
  return LE_OK;
}

/* The second engine receives all rows, the first a copy of the first `first`: these can be
 * complete while the caller still adds rows. */
static le_status pipeline_feed(void *self, const le_rows *rows, le_feed feed)
{
  pipeline *p = self;
  if (p->fed < p->first) {
    const size_t room = p->first - p->fed, taken = rows->n < room ? rows->n : room;
    const le_rows some = {taken, rows->width, rows->values}, none = {0, rows->width, rows->values};
    LE_TRY(le_machine_feed(p->part[0], &some, LE_ROWS));
    if (!le_feed_goes_on(feed) || taken == room)
      LE_TRY(le_machine_feed(p->part[0], &none, LE_LAST_ROWS));
    p->fed += taken;
  }
  return le_machine_feed(p->part[1], rows, feed);
}

static le_progress pipeline_advance(void *self, double seconds, le_status *status)
{
  pipeline *p = self;
  const le_progress progress = le_machine_advance(p->part[p->at], seconds, status);
  if (progress != LE_DONE || p->at == PARTS - 1) return progress;
  le_population population;
  ops[p->at]->hand_over(p->part[p->at], &population);
  p->at++;
  *status = ops[p->at]->take_over(p->part[p->at], &population);
  return *status == LE_OK ? LE_MORE : LE_FAILED;
}

static void *pipeline_at_work(void *self)
{
  pipeline *p = self;
  return p->part[p->at];
}

static void pipeline_progress(const void *self, double *rows, double *share)
{
  const pipeline *p = self;
  ops[p->at]->progress(p->part[p->at], rows, share);
  if (p->at < PARTS - 1) *share = 0;
}

static le_status pipeline_result(void *self, le_result *result)
{
  pipeline *p = self;
  return le_machine_result(p->part[p->at], result);
}

static void pipeline_archive(void *self, le_archive *archive)
{
  pipeline *p = self;
  for (int k = 0; k < PARTS && archive->status == LE_OK; k++)
    le_machine_archive(p->part[k], archive);
}

const le_estimator_ops le_hybrid_estimator = {
  .name = "hybrid",
  .knows = {{settings, le_nested_table, le_walk_table}, le_stage_table},
  .size = sizeof(pipeline),
  .fields = {LE_TABLE(fields)},
  .make = hybrid_make,
  .release = pipeline_release,
  .start = pipeline_start,
  .feed = pipeline_feed,
  .advance = pipeline_advance,
  .at_work = pipeline_at_work,
  .progress = pipeline_progress,
  .result = pipeline_result,
  .archive = pipeline_archive,
};
