/* Threads by OpenMP if the compiler has it; the process id detects forks. */
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

static _Thread_local int loaded_here; /* filled at load, never changed after */

void le_threads_init(void)
{
  loaded_here = 1;
#ifndef _WIN32
  loading_process = (long)getpid();
#endif
}

void le_threads_none(void)
{
#ifndef _WIN32
  loading_process = -1;
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

int le_thread_loaded(void)
{
  return loaded_here;
}

int le_threads_at_work(void)
{
#ifdef _OPENMP
  return omp_get_num_threads();
#else
  return 1;
#endif
}

/* Rate of learning from one measurement; the smallest share relative to equal shares. */
static const double PACE_RATE = 0.1, PACE_LEAST = 0.5;
/* Seconds lost before threads pause; the largest gain that is credited against losses; the shortest
 * and longest pause (each pause is twice as long as the one before). OpenMP threads wait in a busy
 * loop, which takes a busy processor away from the threads that they wait for. */
static const double LOST_MOST = 0.004, GAINED_MOST = 0.008, REST_LEAST = 0.05, REST_MOST = 0.8;

void le_pace_alloc(le_pace *pace, int threads, le_arena *arena)
{
  pace->n = threads < 1 ? 1 : (size_t)threads;
  pace->first = le_arena_indices(arena, pace->n + 1);
  pace->share = le_arena_doubles(arena, pace->n);
  pace->ended = le_arena_doubles(arena, pace->n);
  for (size_t t = 0; t < pace->n && !arena->failed; t++) pace->share[t] = 1 / (double)pace->n;
  pace->lost = pace->until = 0;
  pace->rest = REST_LEAST;
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

/* Pieces per second of a thread. Returns 0 if the clock was changed or the share was empty. */
static int speed_of(const le_pace *pace, size_t t, double *speed)
{
  const double spent = pace->ended[t] - pace->begun,
               done = (double)(pace->first[t + 1] - pace->first[t]);
  *speed = done / spent;
  return spent > 0 && done > 0;
}

void le_pace_watch(le_pace *pace)
{
  double fastest = 0, last = pace->begun;
  for (size_t t = 0; t < pace->n; t++) {
    double speed;
    last = fmax(last, pace->ended[t]);
    if (speed_of(pace, t, &speed)) fastest = fmax(fastest, speed);
  }
  if (!(fastest > 0)) return;
  pace->lost += last - pace->begun - (double)pace->first[pace->n] / fastest;
  if (pace->lost > LOST_MOST) {
    pace->until = last + pace->rest;
    pace->rest = fmin(2 * pace->rest, REST_MOST);
    pace->lost = 0;
  } else if (pace->lost < -GAINED_MOST) {
    pace->lost = -GAINED_MOST;
    pace->rest = REST_LEAST;
  }
}

int le_pace_rests(le_pace *pace)
{
  if (!(pace->until > 0)) return 0;
  const double left = pace->until - le_now();
  if (left > 0 && left <= REST_MOST) return 1; /* the clock may have been changed */
  pace->until = 0;
  return 0;
}

void le_pace_end(le_pace *pace)
{
  double speed, sum = 0, all = 0;
  le_pace_watch(pace);
  for (size_t t = 0; t < pace->n; t++) {
    if (!speed_of(pace, t, &speed)) return;
    sum += speed;
  }
  for (size_t t = 0; t < pace->n; t++) {
    speed_of(pace, t, &speed);
    pace->share[t] += PACE_RATE * (speed / sum - pace->share[t]);
    pace->share[t] = fmax(pace->share[t], PACE_LEAST / (double)pace->n);
    all += pace->share[t];
  }
  for (size_t t = 0; t < pace->n; t++) pace->share[t] /= all;
}
