#include "base/simd.h"

#include <stdint.h>
#include <stdlib.h>

#define VECTOR_BODY "base/simd_body.h"
#include "base/variants.h"

static le_simd best, level; /* filled at load, never changed after */
static char wish[16];       /* filled at load, never changed after */

static le_simd detect(void)
{
#if LE_SIMD_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma"))
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

double *le_aligned(double *scratch) { return (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63); }

typedef struct functions {
  void (*exp_each)(size_t n, double scale, double shift, const double *x, double *out);
  void (*log_each)(size_t n, const double *x, double *out);
  void (*columns)(size_t n, size_t width, size_t columns, const double *rows, double *out, size_t stride);
  void (*gather)(size_t n, size_t width, size_t rows, const double *values, const size_t *picked, double *out);
  double (*multiply_add)(size_t rounds);
} functions;

#define FUNCTIONS(variant) {exp_each_##variant, log_each_##variant, columns_##variant, gather_##variant, multiply_add_##variant}
static const functions table[] = TABLES(FUNCTIONS);

void le_vector_exp(le_simd variant, size_t n, double scale, double shift, const double *x, double *out)
{
  table[variant].exp_each(n, scale, shift, x, out);
}

void le_vector_log(le_simd variant, size_t n, const double *x, double *out) { table[variant].log_each(n, x, out); }

void le_vector_columns(le_simd variant, size_t n, size_t width, size_t columns, const double *rows, double *out,
                       size_t stride)
{
  table[variant].columns(n, width, columns, rows, out, stride);
}

void le_vector_gather(size_t n, size_t width, size_t rows, const double *values, const size_t *picked, double *out)
{
  table[level].gather(n, width, rows, values, picked, out);
}

double le_vector_peak(le_simd variant, size_t rounds) { return table[variant].multiply_add(rounds); }
