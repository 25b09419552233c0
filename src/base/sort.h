/* Sorting of numbers, faster than by comparisons, which a processor cannot predict. */
#pragma once

#include <stddef.h>

/* Sorts n numbers, the smallest first. `work` holds n doubles. */
void le_sort(double *x, size_t n, double *work);
