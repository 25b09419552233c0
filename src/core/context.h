/* What a run shares with its parts: the number of threads, the test for an interrupt by the user,
 * how much work a row is, and the message of a failure. */
#pragma once

#include "base/status.h"

typedef struct le_context {
  int threads;
  int (*interrupted)(void *payload); /* NULL: interrupts are not tested */
  void *payload;
  /* 1: a log density that is NaN or Inf counts as -Inf, without an error (climbs go to points of
   * which the prior has none) */
  int lenient;
  /* how many times as long the likelihood of a row takes as that of an observation of a regression,
   * where this is known and above 1: work is counted in these */
  double row_work;
  le_error error;
} le_context;

enum { LE_ROWS_UNWATCHED = 50000 };

static inline int le_interrupted(const le_context *context)
{
  return context->interrupted && context->interrupted(context->payload);
}

/* In long loops, in any thread: adds to the work `done` since the last test, in rows of one
 * particle of a regression, and tests for an interrupt after some tenths of a millisecond of it. */
static inline int le_work_interrupted(const le_context *context, double *done, double work)
{
  *done += work;
  if (*done < LE_ROWS_UNWATCHED) return 0;
  *done = 0;
  return le_interrupted(context);
}

static inline double le_row_work(const le_context *context)
{
  return context->row_work > 1 ? context->row_work : 1;
}
