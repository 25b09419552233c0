/* A pipeline of two engines: the first computes the evidence of the first rows and passes its
 * particles to the second, which continues with the other rows.
 *
 * hybrid: nested sampling for the first rows, where a sequential run has its largest errors,
 * then annealing. Kernel 1 is that of nested sampling, kernel 2 that of annealing. */
#include "base/arena.h"
#include "estimators/parts.h"

#include <string.h>

enum { PARTS = 2 };
static const le_estimator_ops *const ops[PARTS] = {&le_nested_estimator, &le_walk_estimator};

typedef struct pipeline {
  void *part[PARTS];
  size_t first, fed; /* rows of the first engine; how many of them it has received */
  int at;            /* index of the engine that runs now */
} pipeline;

/* The settings of the pipeline itself. */
static const le_setting settings[] = {
  LE_COUNT_SETTING("first", 100, 1), /* rows of nested sampling */
  {0}};

static void pipeline_free(void *self)
{
  pipeline *p = self;
  if (!p) return;
  for (int k = 0; k < PARTS; k++) ops[k]->free(p->part[k]);
  le_release(p);
}

static le_status hybrid_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  pipeline *p = le_resize(NULL, sizeof *p);
  if (!p) return LE_NO_MEMORY;
  memset(p, 0, sizeof *p);
  p->first = le_setting_count(&problem->settings, settings, "first");
  le_problem start = *problem;
  if (start.total > p->first) start.total = p->first;
  le_status status = ops[0]->alloc(&start, context, &p->part[0]);
  if (status == LE_OK) status = ops[1]->alloc(problem, context, &p->part[1]);
  if (status == LE_OK) *self = p;
  else pipeline_free(p);
  return status;
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
    LE_TRY(ops[0]->feed(p->part[0], &some, LE_ROWS));
    if (!le_feed_goes_on(feed) || taken == room)
      LE_TRY(ops[0]->feed(p->part[0], &none, LE_LAST_ROWS));
    p->fed += taken;
  }
  return ops[1]->feed(p->part[1], rows, feed);
}

static le_progress pipeline_advance(void *self, double seconds, le_status *status)
{
  pipeline *p = self;
  const le_progress progress = ops[p->at]->advance(p->part[p->at], seconds, status);
  if (progress != LE_DONE || p->at == PARTS - 1) return progress;
  le_population population;
  ops[p->at]->hand_over(p->part[p->at], &population);
  p->at++;
  *status = ops[p->at]->take_over(p->part[p->at], &population);
  return *status == LE_OK ? LE_MORE : LE_FAILED;
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
  return ops[p->at]->result(p->part[p->at], result);
}

static void pipeline_archive(void *self, le_archive *archive)
{
  pipeline *p = self;
  le_archive_size(archive, &p->fed);
  le_archive_int(archive, &p->at);
  if (p->at < 0 || p->at >= PARTS) archive->status = LE_CORRUPT;
  for (int k = 0; k < PARTS && archive->status == LE_OK; k++)
    ops[k]->archive(p->part[k], archive);
}

const le_estimator_ops le_hybrid_estimator = {
  LE_CONTRACT_VERSION, sizeof(le_estimator_ops), "hybrid",
  {{settings, le_nested_table, le_walk_table}, le_stage_table}, hybrid_alloc, pipeline_free,
  pipeline_start, pipeline_feed, pipeline_advance, pipeline_progress, pipeline_result,
  pipeline_archive, 0, NULL, NULL, NULL};
