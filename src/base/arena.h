/* Memory that a run owns: taken at the start, given back all at once.  A request that cannot be met makes the
 * arena remember it (`failed`), so a constructor asks for everything and checks once. */
#ifndef LE_BASE_ARENA_H
#define LE_BASE_ARENA_H

#include <stddef.h>

typedef struct le_arena {
  struct le_arena_block *blocks;
  int failed;
} le_arena;

/* Zeroed, aligned to a cache line; NULL (and failed = 1) when there is no memory. */
void *le_arena_bytes(le_arena *arena, size_t count, size_t size);
double *le_arena_doubles(le_arena *arena, size_t count);
size_t *le_arena_indices(le_arena *arena, size_t count);
void le_arena_free(le_arena *arena);

/* Memory that must grow while rows arrive: the content is kept, NULL when there is none left (the old block
 * stays valid).  Freed with le_release(). */
void *le_resize(void *block, size_t bytes);
void le_release(void *block);
/* Says that a large block, not yet written to, may come in large pages: a page fault for every four thousand bytes costs as much as
 * filling them.  Nothing where the system knows no such thing. */
void le_advise_large(void *block, size_t bytes);

/* Numbers that will soon be read: where they are scattered, their ways from memory overlap. Always inlined: compilers take a function that
 * does nothing else for one without effect, and leave out its calls. */
#if defined(__GNUC__)
__attribute__((always_inline))
#endif
static inline void le_prefetch(const void *block, size_t bytes)
{
#if defined(__GNUC__)
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch((const char *)block + at);
  if (bytes) __builtin_prefetch((const char *)block + bytes - 1);
#else
  (void)block;
  (void)bytes;
#endif
}

#endif
