/* The state machine of an engine: rows are added, then phases run one after another. A phase does
 * one piece of work completely, so a run can pause, be saved or be stopped between any two.
 *
 * The struct of an engine begins with a le_machine. The engine's table uses `feed` and `advance`
 * from here, and its archive begins with le_machine_archive. */
#ifndef LE_CORE_MACHINE_H
#define LE_CORE_MACHINE_H

#include "base/rng.h"
#include "core/estimator.h"

typedef struct le_phase {
  const char *name;
  /* NULL marks the end. Sets `progress` to LE_NEEDS_ROWS if it cannot work without more rows. */
  le_status (*run)(void *self, le_progress *progress);
  int waits; /* 1: waits until all rows are there */
} le_phase;

typedef struct le_machine {
  const le_phase *table;
  int phases, phase;
  le_context *context;
  le_streams streams; /* stream 0 belongs to the run */
  le_store store;
  int shuffle; /* 1: shuffles rows as they are added */
  int closed;  /* 1: no more rows can be added */
  size_t feeds;
  double seconds;
} le_machine;

/* Phases are numbered as in the table. A run begins with the first; the last entry is the end. */
le_status le_machine_alloc(le_machine *machine, const le_phase *table, size_t phases,
                           const le_problem *problem, size_t streams, le_context *context);
void le_machine_free(le_machine *machine);

le_status le_machine_feed(void *self, const le_rows *rows, le_feed feed);
le_progress le_machine_advance(void *self, double seconds, le_status *status);
/* All rows so far. */
le_rows le_machine_rows(const le_machine *machine);
int le_machine_ended(const le_machine *machine);
/* Rows, random numbers, phase and time. Numbers of the engine that determine the size of its memory
 * must be archived before. */
void le_machine_archive(le_machine *machine, le_archive *archive);

#endif
