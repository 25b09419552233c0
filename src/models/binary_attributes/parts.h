/* Functions shared by the files of binary_attributes. */
#pragma once

#include "models/grouped.h"

enum { MOST_ENUMERATED = 16 };

/* All attribute vectors, in the order of a Gray code: the bits of the c-th, and which of them
 * differs from the one before. */
static inline void gray_bits(size_t k, size_t c, double *bit)
{
  for (size_t a = 0; a < k; a++) bit[a] = (double)(((c ^ (c >> 1)) >> a) & 1);
}

static inline size_t gray_change(size_t c)
{
  size_t a = 0;
  while (!((c >> a) & 1)) a++;
  return a;
}
