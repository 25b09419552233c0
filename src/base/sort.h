/* Sorting of numbers, faster than by comparisons, which a processor cannot predict. */
#ifndef LE_BASE_SORT_H
#define LE_BASE_SORT_H

#include <stddef.h>

/* Sorts n numbers, the smallest first. `work` holds n doubles. */
void le_sort(double *x, size_t n, double *work);

#endif
