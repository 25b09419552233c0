/* OpenMP where the compiler has it, and a process id to notice forks. */
#include "base/threads.h"

#include "base/clock.h"

#include <math.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifndef _WIN32
#include <unistd.h>
#endif

#ifndef _WIN32
static long loading_process; /* filled at load, never changed after */
#endif

void le_threads_init(void)
{
#ifndef _WIN32
  loading_process = (long)getpid();
#endif
}

int le_threads_usable(int requested)
{
#ifdef _OPENMP
#ifndef _WIN32
  if ((long)getpid() != loading_process) return 1;
#endif
  const int processors = omp_get_num_procs(), limit = omp_get_thread_limit();
  int n = requested < processors ? requested : processors;
  if (n > limit) n = limit;
  return n < 1 ? 1 : n;
#else
  (void)requested;
  return 1;
#endif
}

/* What is learned from one time, and the least share, of an even one. */
static const double PACE_RATE = 0.1, PACE_LEAST = 0.5;

void le_pace_alloc(le_pace *pace, int threads, le_arena *arena)
{
  pace->n = threads < 1 ? 1 : (size_t)threads;
  pace->first = le_arena_indices(arena, pace->n + 1);
  pace->share = le_arena_doubles(arena, pace->n);
  pace->ended = le_arena_doubles(arena, pace->n);
  for (size_t t = 0; t < pace->n && !arena->failed; t++) pace->share[t] = 1 / (double)pace->n;
}

void le_pace_begin(le_pace *pace, size_t m)
{
  double before = 0;
  for (size_t t = 0; t < pace->n; t++) {
    pace->first[t] = (size_t)((double)m * before + 0.5);
    before += pace->share[t];
  }
  pace->first[pace->n] = m;
  pace->begun = le_now();
}

void le_pace_end(le_pace *pace)
{
  double speed = 0, all = 0;
  for (size_t t = 0; t < pace->n; t++) {
    const double spent = pace->ended[t] - pace->begun, done = (double)(pace->first[t + 1] - pace->first[t]);
    if (!(spent > 0 && done > 0)) return; /* clocks may be set */
    pace->ended[t] = done / spent;
    speed += pace->ended[t];
  }
  for (size_t t = 0; t < pace->n; t++) {
    pace->share[t] += PACE_RATE * (pace->ended[t] / speed - pace->share[t]);
    pace->share[t] = fmax(pace->share[t], PACE_LEAST / (double)pace->n);
    all += pace->share[t];
  }
  for (size_t t = 0; t < pace->n; t++) pace->share[t] /= all;
}
