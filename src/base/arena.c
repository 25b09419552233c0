/* An arena is a list of aligned blocks. posix_memalign is not available everywhere, so blocks are
 * over-allocated and aligned here. */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#ifdef LE_DEBUG
#include <le_poison.h>
#else
#define poison(from, count, taken) ((void)0)
#define LE_OVERFULL() ((void)0)
#endif

enum { LE_ALIGNMENT = 64, LARGE_PAGE = 1 << 21 };

struct le_arena_block {
  struct le_arena_block *next;
};

static void *zeroed(size_t bytes)
{
  return calloc(1, bytes);
}

static void *take(le_arena *arena, size_t count, size_t size, void *(*allocate)(size_t))
{
  if (count == 0) count = 1;
  if (size == 0) size = 1;
  struct le_arena_block *block = NULL;
  if (count <= (SIZE_MAX / 2) / size)
    block = allocate(sizeof *block + LE_ALIGNMENT + count * size);
  if (!block) {
    arena->failed = 1;
    return NULL;
  }
  block->next = arena->blocks;
  arena->blocks = block;
  uintptr_t start = (uintptr_t)(block + 1);
  return (void *)((start + LE_ALIGNMENT - 1) & ~(uintptr_t)(LE_ALIGNMENT - 1));
}

void *le_arena_bytes(le_arena *arena, size_t count, size_t size)
{
  return take(arena, count, size, zeroed);
}

void *le_arena_scratch(le_arena *arena, size_t count, size_t size)
{
  void *block = take(arena, count, size, malloc);
  if (block) poison(block, count * size / sizeof(double), 1);
  return block;
}

double *le_arena_doubles(le_arena *arena, size_t count)
{
  return le_arena_bytes(arena, count, sizeof(double));
}

size_t *le_arena_indices(le_arena *arena, size_t count)
{
  return le_arena_bytes(arena, count, sizeof(size_t));
}

le_stack *le_stack_alloc(le_arena *arena, size_t room)
{
  le_stack *stack = le_arena_bytes(arena, 1, sizeof *stack);
  if (stack) *stack = (le_stack){le_arena_scratch(arena, room, sizeof(double)), 0, room, arena};
  if (stack && stack->block) poison(stack->block, room, 0);
  return stack;
}

double *le_take(le_stack *stack, size_t count)
{
  const size_t line = LE_ALIGNMENT / sizeof(double), n = (count + line - 1) / line * line;
  double *from = stack->block + stack->used;
  if (n > stack->room - stack->used) {
    LE_OVERFULL();
    return le_arena_doubles(stack->arena, n);
  }
  stack->used += n;
  poison(from, n, 1);
  return from;
}

void le_give_back(const le_hold *hold)
{
  le_stack *stack = hold->stack;
  poison(stack->block + hold->used, stack->used - hold->used, 0);
  stack->used = hold->used;
}

void le_arena_free(le_arena *arena)
{
  while (arena->blocks) {
    struct le_arena_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  arena->failed = 0;
}

void *le_resize(void *block, size_t bytes)
{
  void *resized = realloc(block, bytes ? bytes : 1);
  if (resized) le_advise_large(resized, bytes);
  return resized;
}

void le_release(void *block)
{
  free(block);
}

void le_advise_large(void *block, size_t bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const uintptr_t page = (uintptr_t)LARGE_PAGE, start = ((uintptr_t)block + page - 1) & ~(page - 1);
  const uintptr_t end = ((uintptr_t)block + bytes) & ~(page - 1);
  if (bytes >= 4 * LARGE_PAGE && end > start)
    (void)madvise((void *)start, end - start, MADV_HUGEPAGE); /* failure is harmless */
#else
  (void)block;
  (void)bytes;
#endif
}
