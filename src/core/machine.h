/* The frame of an engine: rows are fed, then phases run one after another.  A phase is a piece of
 * work that is never left half-done, so a run can pause, be saved or be given up between any two.
 *
 * An engine's struct begins with a le_machine.  Its contract then takes feed and advance from here,
 * and its archive begins with le_machine_archive. */
#ifndef LE_CORE_MACHINE_H
#define LE_CORE_MACHINE_H

#include "base/rng.h"
#include "core/estimator.h"

typedef struct le_phase {
  const char *name;
  /* NULL: the end.  Sets `progress` to LE_NEEDS_ROWS where it can do nothing without more rows. */
  le_status (*run)(void *self, le_progress *progress);
  int waits; /* until all rows are there */
} le_phase;

typedef struct le_machine {
  const le_phase *table;
  int phases, phase;
  le_context *context;
  le_streams streams; /* 0: the run's */
  le_store store;
  int shuffle; /* rows, as they are fed */
  int closed;  /* no more rows will come */
  size_t feeds;
  double seconds;
} le_machine;

/* Phases are numbered as in the table, whose last is the end; the first is where a run begins. */
le_status le_machine_alloc(le_machine *machine, const le_phase *table, size_t phases,
                           const le_problem *problem, size_t streams, le_context *context);
void le_machine_free(le_machine *machine);

le_status le_machine_feed(void *self, const le_rows *rows, le_feed feed);
le_progress le_machine_advance(void *self, double seconds, le_status *status);
/* All rows so far. */
le_rows le_machine_rows(const le_machine *machine);
int le_machine_ended(const le_machine *machine);
/* Rows, random numbers, phase and time.  Numbers of the engine that its memory depends on come
 * before it. */
void le_machine_archive(le_machine *machine, le_archive *archive);

#endif
