/* The number of threads of a run, and how they share work. Work is split over particles, or over a
 * fixed number of parts of the rows. Sums are always made in the same order, so results do not
 * depend on the number of threads. */
#pragma once

#include "base/arena.h"

/* The number requested, reduced to what the machine and OMP_THREAD_LIMIT allow. 1 without OpenMP,
 * and in a forked child, where the thread pool of the parent does not exist. */
int le_threads_usable(int requested);
/* Remembers the process and the thread that loaded the library; called once at load. */
void le_threads_init(void);
/* Whether the caller is the thread that loaded the library. */
int le_thread_loaded(void);
/* In a loop that threads share: how many they are, which may be fewer than were asked for. */
int le_threads_at_work(void);
/* Called at load in a forked child: OpenMP may have made its thread pool in the parent, by another
 * library, and would wait for it for ever. */
void le_threads_none(void);

/* Shares of work by measured speed. Processors that other programs also use differ in speed, and
 * all threads wait for the slowest share, so shares are proportional to each thread's measured
 * speed. If the threads together take longer than the fastest would need alone, work is done by one
 * thread for a while. Results do not depend on the shares. */
typedef struct le_pace {
  size_t n;       /* threads */
  size_t *first;  /* n + 1: where each share begins, and the end */
  double *share;  /* n: shares, with sum 1 */
  double *ended;  /* n: when each share was finished; the threads fill it in with le_now() */
  double begun;
  double lost;        /* seconds lost by using threads, minus seconds gained (bounded) */
  double rest, until; /* length of the next period with one thread; end of the current one */
} le_pace;

void le_pace_alloc(le_pace *pace, int threads, le_arena *arena);
/* Splits m pieces into shares and starts the clock. */
void le_pace_begin(le_pace *pace, size_t m);
/* Call when all shares are done, to update the speeds. le_pace_watch alone is for work that was not
 * split by le_pace_begin(); its shares are in `first`. */
void le_pace_watch(le_pace *pace);
void le_pace_end(le_pace *pace);
/* Whether one thread should do the next piece of work alone. */
int le_pace_rests(le_pace *pace);
