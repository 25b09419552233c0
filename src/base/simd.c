/* Detects the vector instructions of the processor, and reads LOGEVIDENCE_SIMD. */
#include "base/simd.h"

#include <stdlib.h>

static le_simd best, level; /* filled at load, never changed after */
static char wish[16];       /* filled at load, never changed after */

static le_simd detect(void)
{
#if LE_SIMD_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("fma"))
    return LE_SIMD_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return LE_SIMD_AVX2;
#endif
  return LE_SIMD_PLAIN;
}

void le_simd_init(void)
{
  const char *asked = getenv("LOGEVIDENCE_SIMD");
  best = level = detect();
  if (!asked) return;
  for (size_t i = 0; i + 1 < sizeof wish && asked[i]; i++) wish[i] = asked[i];
  const le_simd wanted = le_simd_named(wish);
  if (wanted < best) level = wanted;
}

le_simd le_simd_best(void) { return best; }

const char *le_simd_wish(void) { return wish; }

le_simd le_simd_level(void) { return level; }

static const char *const names[] = {"plain", "avx2", "avx512"};

const char *le_simd_name(le_simd variant) { return names[variant]; }

le_simd le_simd_named(const char *name)
{
  int variant = LE_SIMD_PLAIN;
  while (variant < LE_SIMD_VARIANTS && strcmp(name, names[variant]) != 0) variant++;
  return (le_simd)variant;
}

le_simd le_simd_for(const le_args *args)
{
  const char *word = le_args_word(args, "simd", NULL);
  if (!word) return level;
  const le_simd wanted = le_simd_named(word);
  return wanted < best ? wanted : best;
}
