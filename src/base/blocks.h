/* The arrays of a struct, from a table. For m points in d dimensions an array has as many numbers
 * as its shape says:
 *   static const le_block blocks[] = {
 *     LE_BLOCK(rwm, noise, LE_POINTS), LE_KEPT(rwm, value, LE_EACH)};
 *   le_blocks_alloc(arena, k, LE_TABLE(blocks), m, d);
 * Arrays that are kept belong to the saved state; kept indices are those of points. */
#pragma once

#include "base/arena.h"
#include "base/archive.h"

/* m; d; m x d; d x d */
typedef enum le_shape { LE_EACH, LE_POINT, LE_POINTS, LE_SQUARE } le_shape;

typedef struct le_block {
  size_t offset;
  le_shape shape;
  int indices; /* 1: the member is a size_t *, 0: a double * */
  int kept;
} le_block;

#define LE_BLOCK_KEPT(type, member, shape, kept)                                                   \
  {offsetof(type, member), shape, _Generic(((type *)0)->member, double *: 0, size_t *: 1), kept}
#define LE_BLOCK(type, member, shape) LE_BLOCK_KEPT(type, member, shape, 0)
#define LE_KEPT(type, member, shape) LE_BLOCK_KEPT(type, member, shape, 1)

void le_blocks_alloc(le_arena *arena, void *self, const le_block *blocks, size_t n, size_t m,
                     size_t d);
/* m may be smaller than for le_blocks_alloc(). */
void le_blocks_archive(le_archive *archive, void *self, const le_block *blocks, size_t n, size_t m,
                       size_t d);
