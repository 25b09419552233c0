/* The choice of vector instructions: each kernel is compiled in several variants, and this decides
 * which one runs.
 *
 * A kernel is one body, written with the types and functions of base/vector.h and compiled once for
 * each variant by base/variants.h. The environment variable LOGEVIDENCE_SIMD, read while the
 * library loads, can ask for a lower variant than the best; so can the setting `simd` of a model,
 * for one instance. */
#pragma once

#include "logevidence.h"

/* Functions in one file for different instruction sets need an attribute of gcc and clang. gcc for
 * Windows aligns the stack to 16 bytes only, and vectors of 32 bytes on it crash. */
#if defined(__x86_64__) && defined(__GNUC__) && (!defined(_WIN32) || defined(__clang__))
#define LE_SIMD_X86 1
#else
#define LE_SIMD_X86 0
#endif

typedef enum le_simd { LE_SIMD_PLAIN, LE_SIMD_AVX2, LE_SIMD_AVX512, LE_SIMD_VARIANTS } le_simd;

/* Called once, at load. */
void le_simd_init(void);
/* The best variant of this processor; the variant named in LOGEVIDENCE_SIMD; the variant in use. */
le_simd le_simd_best(void);
const char *le_simd_wish(void);
le_simd le_simd_level(void);

/* "plain", "avx2", "avx512"; and the inverse, which is LE_SIMD_VARIANTS for any other word. */
const char *le_simd_name(le_simd variant);
le_simd le_simd_named(const char *name);

/* The variant for an instance with these settings; never above what the processor supports. */
le_simd le_simd_for(const le_args *args);
