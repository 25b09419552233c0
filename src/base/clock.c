/* The monotonic clock and the processor time of POSIX, or those of Windows. */
#if defined(_WIN32)
#include <windows.h>
#else
#define _POSIX_C_SOURCE 200112L
#include <time.h>
#endif

#include "base/clock.h"

#include <math.h>

double le_now(void)
{
#if defined(_WIN32)
  LARGE_INTEGER ticks, rate;
  QueryPerformanceFrequency(&rate);
  QueryPerformanceCounter(&ticks);
  return (double)ticks.QuadPart / (double)rate.QuadPart;
#else
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

double le_processor_time(void)
{
#if defined(_WIN32)
  FILETIME made, ended, kernel, user;
  if (!GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user)) return 0;
  const double high = 4294967296.0;
  return 1e-7 * (high * kernel.dwHighDateTime + kernel.dwLowDateTime + high * user.dwHighDateTime +
                 user.dwLowDateTime);
#else
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

void le_wait(double seconds)
{
#if defined(_WIN32)
  Sleep((DWORD)(1000 * seconds));
#else
  const double whole = floor(seconds);
  const struct timespec t = {(time_t)whole, (long)(1e9 * (seconds - whole))};
  nanosleep(&t, NULL);
#endif
}
