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
 * threads have been fast; whose share something is in changes nothing. */
typedef struct le_pace {
  size_t n;       /* threads */
  size_t *first;  /* n + 1: of what is shared, where each share begins, and the end */
  double *share;  /* n, in all 1 */
  double *ended;  /* n: when each share was done, for the threads to fill in by le_now() */
  double begun;
} le_pace;

void le_pace_alloc(le_pace *pace, int threads, le_arena *arena);
/* Shares m pieces, and remembers the time. */
void le_pace_begin(le_pace *pace, size_t m);
/* All shares are done: what that says of their threads. */
void le_pace_end(le_pace *pace);

#endif
