/* OpenMP where the compiler has it, and a process id to notice forks. */
#include "base/threads.h"

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
