/* Wall-clock time in seconds, for slices of work. */
#ifndef LE_BASE_CLOCK_H
#define LE_BASE_CLOCK_H

#include <time.h>

static inline double le_now(void)
{
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
