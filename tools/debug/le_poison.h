/* For src/base/arena.c in a debug build: scratch memory is NaN when it is taken and after it was
 * given back, and AddressSanitizer and valgrind report its use then. */
#include <math.h>
#include <sanitizer/asan_interface.h>
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(start, size) ((void)0)
#define VALGRIND_MAKE_MEM_NOACCESS(start, size) ((void)0)
#endif

static void poison(double *from, size_t count, int taken)
{
  ASAN_UNPOISON_MEMORY_REGION(from, count * sizeof *from);
  VALGRIND_MAKE_MEM_UNDEFINED(from, count * sizeof *from);
  for (size_t i = 0; i < count; i++) from[i] = NAN;
  VALGRIND_MAKE_MEM_UNDEFINED(from, count * sizeof *from);
  if (taken) return;
  ASAN_POISON_MEMORY_REGION(from, count * sizeof *from);
  VALGRIND_MAKE_MEM_NOACCESS(from, count * sizeof *from);
}

/* The room of a stack is enough for every test. */
#define LE_OVERFULL() __builtin_trap()
