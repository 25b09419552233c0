/* Allocates and archives the arrays of a struct. */
#include "base/blocks.h"

static size_t length(le_shape shape, size_t m, size_t d)
{
  const size_t of_shape[] = {
    [LE_EACH] = m, [LE_POINT] = d, [LE_POINTS] = m * d, [LE_SQUARE] = d * d};
  return of_shape[shape];
}

void le_blocks_alloc(le_arena *arena, void *self, const le_block *blocks, size_t n, size_t m,
                     size_t d)
{
  for (size_t i = 0; i < n; i++) {
    const le_block *b = &blocks[i];
    void *at = (char *)self + b->offset;
    const size_t count = length(b->shape, m, d);
    if (b->indices) *(size_t **)at = le_arena_indices(arena, count);
    else *(double **)at = le_arena_doubles(arena, count);
  }
}

void le_blocks_archive(le_archive *archive, void *self, const le_block *blocks, size_t n, size_t m,
                       size_t d)
{
  for (size_t i = 0; i < n; i++) {
    const le_block *b = &blocks[i];
    void *at = (char *)self + b->offset;
    const size_t count = length(b->shape, m, d);
    if (b->kept && b->indices) le_archive_indices(archive, *(size_t **)at, count, m);
    else if (b->kept) le_archive_doubles(archive, *(double **)at, count);
  }
}
