/* Memory owned by a run: allocated at the start, freed all at once. A failed request is remembered
 * (`failed`), so a constructor asks for everything and checks once. */
#pragma once

#include <stddef.h>

typedef struct le_arena {
  struct le_arena_block *blocks;
  int failed;
} le_arena;

/* Zeroed, aligned to a cache line; NULL (and failed = 1) if there is no memory. */
void *le_arena_bytes(le_arena *arena, size_t count, size_t size);
double *le_arena_doubles(le_arena *arena, size_t count);
/* The same, but not zeroed: for buffers that are written before they are read, of which most runs
 * use little. A debug build fills them with NaN. */
void *le_arena_scratch(le_arena *arena, size_t count, size_t size);
size_t *le_arena_indices(le_arena *arena, size_t count);
void le_arena_free(le_arena *arena);

/* Scratch memory of a run, for one thread. What a function takes belongs to it until its block of
 * code ends, so no other function can use it meanwhile. A debug build fills it with NaN before and
 * after, and AddressSanitizer and valgrind report its use after. */
typedef struct le_stack {
  double *block;
  size_t used, room;
  le_arena *arena;
} le_stack;
/* NULL (and failed = 1) if there is no memory. */
le_stack *le_stack_alloc(le_arena *arena, size_t room);
/* Declares `name`, that many numbers, aligned to a cache line; beyond the room they are of the
 * arena. */
#define LE_SCRATCH(name, stack, count)                                                             \
  __attribute__((cleanup(le_give_back), unused)) le_hold name##_held = {stack, (stack)->used};     \
  double *name = le_take(stack, count)
typedef struct le_hold {
  le_stack *stack;
  size_t used; /* before */
} le_hold;
double *le_take(le_stack *stack, size_t count);
void le_give_back(const le_hold *hold);

/* Memory that grows as rows are added: the content is kept. NULL if memory is short; the old block
 * then stays valid. Free it with le_release(). */
void *le_resize(void *block, size_t bytes);
void le_release(void *block);
/* Allows large pages for a large block that is not yet written to: a page fault for every 4096
 * bytes costs as much as filling them. Does nothing on systems without large pages. */
void le_advise_large(void *block, size_t bytes);

/* Prefetches numbers that will soon be read: the loads of scattered rows then overlap. Always
 * inlined, because compilers treat a function that does nothing else as one without effect and
 * remove its calls. */
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
