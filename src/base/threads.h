/* How many threads a run may use.  Work is split over particles, or over parts of the rows of which there are as many at any
 * number of threads, and sums are always made in the same order, so the answer does not depend on the number. */
#ifndef LE_BASE_THREADS_H
#define LE_BASE_THREADS_H

/* The request, cut to what the machine and OMP_THREAD_LIMIT allow; 1 without OpenMP and in a forked child,
 * where the parent's thread pool no longer exists. */
int le_threads_usable(int requested);
/* Remembers the process that loaded the library; called once at load. */
void le_threads_init(void);

#endif
