/* How many threads a run may use.  Work is split over particles, or over parts of the rows of which there are as many at any
 * number of threads, and sums are always made in the same order, so the answer does not depend on the number. */
#ifndef LE_BASE_THREADS_H
#define LE_BASE_THREADS_H

#include "base/arena.h"

/* The request, cut to what the machine and OMP_THREAD_LIMIT allow; 1 without OpenMP and in a forked child,
 * where the parent's thread pool no longer exists. */
int le_threads_usable(int requested);
/* Remembers the process that loaded the library; called once at load. */
void le_threads_init(void);

/* Processors that others use too are not equally fast, and the slowest share of some work is what all wait for. So shares are as large as
 * threads have been fast, and where all threads have taken longer than the fastest would have needed alone, they rest for a time; whose
 * share something is in changes nothing. */
typedef struct le_pace {
  size_t n;       /* threads */
  size_t *first;  /* n + 1: of what is shared, where each share begins, and the end */
  double *share;  /* n, in all 1 */
  double *ended;  /* n: when each share was done, for the threads to fill in by le_now() */
  double begun;
  double lost;        /* seconds of late by threads, less what they have gained, of which not much counts */
  double rest, until; /* how long they rest the next time, and till when they do */
} le_pace;

void le_pace_alloc(le_pace *pace, int threads, le_arena *arena);
/* Shares m pieces, and remembers the time. */
void le_pace_begin(le_pace *pace, size_t m);
/* All shares are done: what that says of their threads. The first for shares that were not as le_pace_begin() had them, but are now in
 * `first`. */
void le_pace_watch(le_pace *pace);
void le_pace_end(le_pace *pace);
/* Had one thread better do the next piece of work alone? */
int le_pace_rests(le_pace *pace);

#endif
