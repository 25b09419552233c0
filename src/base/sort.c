/* A radix sort by the bytes of a key, the lowest byte first. Passes over a byte that all keys have
 * in common are left out. */
#include "base/sort.h"

#include <gsl/gsl_sort_double.h>
#include <stdint.h>
#include <string.h>

/* So few numbers are sorted faster by comparisons than by eight passes. */
enum { FEW = 48, BYTES = 8, VALUES = 256 };

static const uint64_t SIGN = (uint64_t)1 << 63;

/* Keys have the order of the numbers: the bits of a negative number, which grow with its size, are
 * turned over. */
static uint64_t key_of(const double *x)
{
  uint64_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits & SIGN ? ~bits : bits | SIGN;
}

static size_t byte_of(uint64_t key, int byte) { return key >> 8 * byte & (VALUES - 1); }

void le_sort(double *x, size_t n, double *work)
{
  if (n <= FEW) {
    gsl_sort(x, 1, n);
    return;
  }
  size_t place[BYTES][VALUES] = {{0}};
  for (size_t i = 0; i < n; i++) {
    const uint64_t key = key_of(x + i);
    for (int byte = 0; byte < BYTES; byte++) place[byte][byte_of(key, byte)]++;
  }
  double *from = x, *to = work;
  for (int byte = 0; byte < BYTES; byte++) {
    size_t *next = place[byte], before = 0;
    if (next[byte_of(key_of(x), byte)] == n) continue;
    for (size_t value = 0; value < VALUES; value++) {
      const size_t here = next[value];
      next[value] = before;
      before += here;
    }
    for (size_t i = 0; i < n; i++) to[next[byte_of(key_of(from + i), byte)]++] = from[i];
    double *const last = from;
    from = to;
    to = last;
  }
  if (from != x) memcpy(x, from, n * sizeof(double));
}
