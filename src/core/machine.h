/* The instance of an engine, and its state machine: rows are added, then phases run one after
 * another. A phase does one piece of work completely, so a run can pause, be saved or be stopped
 * between any two.
 *
 * A phase that needs sums over rows that are not in memory asks for them (core/question.h) and
 * ends. When they are there it runs again, so it must have changed nothing: it asks first, or, if
 * its rows are elsewhere, the caller undoes it.
 *
 * The struct of an engine begins with a le_machine. `self` is such a struct. */
#pragma once

#include "base/blocks.h"
#include "base/rng.h"
#include "core/answers.h"
#include "core/estimator.h"
#include "core/trace.h"

typedef struct le_machine {
  const le_estimator_ops *ops;
  le_problem problem;
  le_context *context; /* set once */
  le_arena arena;      /* derived */
  le_streams streams; /* stream 0 belongs to the run */
  le_store store;
  le_asked asked;
  le_target *target; /* set once, by engines that ask: it sums the rows of a pass */
  le_trace trace;
  int phase;            /* its number in the table: a run begins with the first */
  le_progress progress; /* of the present slice of time */
  int shuffle;          /* 1: shuffles rows as they are added */
  int closed;           /* 1: no more rows can be added */
  int once;             /* 1: some of the rows cannot be read again */
  int elsewhere;        /* 1: the rows are elsewhere, and the store has a sample of them */
  size_t feeds;
  double seconds;
} le_machine;

/* A new instance, or NULL. */
le_status le_machine_new(const le_estimator_ops *ops, const le_problem *problem,
                         le_context *context, void **self);
/* Accepts NULL. */
void le_machine_free(void *self);
/* Appends rows; no rows can be added after the last ones. If the first feed is also the last, its
 * rows must stay in memory during the run: they may be borrowed, and rows that belong to the run
 * may be reordered. */
le_status le_machine_feed(void *self, const le_rows *rows, le_feed feed);
/* Works for about `seconds` and returns the progress. On LE_FAILED, `status` and the error in the
 * context say why. */
le_progress le_machine_advance(void *self, double seconds, le_status *status);
/* Replaces the instance by one as it was when this archive was written. `keeps_answers`: questions
 * and answers stay, after LE_ASKS of a run whose rows are elsewhere. */
le_status le_machine_undo(void **self, le_archive *before, int keeps_answers);
/* The machine of the engine that works now: that itself, or part of it. */
le_machine *le_machine_at_work(void *self);
/* The results so far. */
le_status le_machine_result(void *self, le_result *result);
/* Writes the state, or reads it into a new instance of the same problem. */
void le_machine_archive(void *self, le_archive *archive);

/* ---- for engines ---- */

le_status le_machine_streams(le_machine *machine, size_t streams);
/* Adds rows to those of the machine: what le_machine_feed() does unless the engine has its own. */
le_status le_machine_take(le_machine *machine, const le_rows *rows, le_feed feed);
/* All rows so far. */
le_rows le_machine_rows(const le_machine *machine);
/* At the end of a phase that cannot go on without more rows. */
le_status le_machine_needs_rows(le_machine *machine);
