/* Nested sampling for the first rows, where a sequential walk has its largest errors, and the walk from there on.
 * Kernel 1 is the nested sampler's, kernel 2 the walk's. */
#include "base/arena.h"
#include "estimators/parts.h"

#include <string.h>

/* Beside those of the two engines. */
static const le_setting settings[] = {LE_COUNT_SETTING("first", 100, 1), /* rows of nested sampling */
                                      {0}};

typedef struct hybrid {
  void *nested, *walk;
  size_t first, fed;
  int walking;
} hybrid;

static void hybrid_free(void *self)
{
  hybrid *h = self;
  if (!h) return;
  le_nested_estimator.free(h->nested);
  le_walk_estimator.free(h->walk);
  le_release(h);
}

static le_status hybrid_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  hybrid *h = le_resize(NULL, sizeof *h);
  if (!h) return LE_NO_MEMORY;
  memset(h, 0, sizeof *h);
  h->first = le_setting_count(&problem->settings, settings, "first");
  le_problem start = *problem;
  if (start.total > h->first) start.total = h->first;
  le_status status = le_nested_estimator.alloc(&start, context, &h->nested);
  if (status == LE_OK) status = le_walk_estimator.alloc(problem, context, &h->walk);
  if (status != LE_OK) {
    hybrid_free(h);
    return status;
  }
  *self = h;
  return LE_OK;
}

static le_status hybrid_start(void *self)
{
  hybrid *h = self;
  LE_TRY(le_nested_estimator.start(h->nested));
  return le_walk_estimator.start(h->walk);
}

static le_status hybrid_feed(void *self, const le_rows *rows, le_feed feed)
{
  hybrid *h = self;
  if (h->fed < h->first) {
    const size_t room = h->first - h->fed, taken = rows->n < room ? rows->n : room;
    const le_rows part = {taken, rows->width, rows->values}, none = {0, rows->width, rows->values};
    /* copied, not borrowed: for the caller the stream may not be over */
    LE_TRY(le_nested_estimator.feed(h->nested, &part, LE_ROWS));
    if (feed != LE_ROWS || taken == room) LE_TRY(le_nested_estimator.feed(h->nested, &none, LE_LAST_ROWS));
    h->fed += taken;
  }
  return le_walk_estimator.feed(h->walk, rows, feed);
}

static le_progress hybrid_advance(void *self, double seconds, le_status *status)
{
  hybrid *h = self;
  if (h->walking) return le_walk_estimator.advance(h->walk, seconds, status);
  const le_progress progress = le_nested_estimator.advance(h->nested, seconds, status);
  if (progress != LE_DONE) return progress;
  double log_evidence, variance;
  const double *theta = le_nested_particles(h->nested, &log_evidence, &variance);
  *status = le_walk_adopt(h->walk, h->fed, theta, log_evidence, variance);
  h->walking = 1;
  return *status == LE_OK ? LE_MORE : LE_FAILED;
}

static void hybrid_progress(const void *self, double *rows, double *share)
{
  const hybrid *h = self;
  const le_estimator_ops *ops = h->walking ? &le_walk_estimator : &le_nested_estimator;
  ops->progress(h->walking ? h->walk : h->nested, rows, share);
  if (!h->walking) *share = 0;
}

static le_status hybrid_result(void *self, le_result *result)
{
  hybrid *h = self;
  return h->walking ? le_walk_estimator.result(h->walk, result) : le_nested_estimator.result(h->nested, result);
}

static void hybrid_archive(void *self, le_archive *archive)
{
  hybrid *h = self;
  le_archive_size(archive, &h->fed);
  le_archive_int(archive, &h->walking);
  le_nested_estimator.archive(h->nested, archive);
  le_walk_estimator.archive(h->walk, archive);
}

const le_estimator_ops le_hybrid_estimator = {LE_CONTRACT_VERSION, sizeof(le_estimator_ops), "hybrid",
                                              {{settings, le_nested_table, le_walk_table}, le_stage_table},
                                              hybrid_alloc, hybrid_free, hybrid_start, hybrid_feed, hybrid_advance,
                                              hybrid_progress, hybrid_result, hybrid_archive, 0};
