/* Vector instructions: which of the compiled variants of a kernel this processor runs.
 *
 * A kernel is one body, written with the types and functions of base/vector.h and compiled once for each variant by
 * base/variants.h.  The environment variable LOGEVIDENCE_SIMD, read while the library loads, asks for a lower variant
 * than the best; so does the setting `simd` of a model, for one instance. */
#ifndef LE_BASE_SIMD_H
#define LE_BASE_SIMD_H

#include "logevidence.h"

/* Functions of one file for other instructions than the rest need an attribute that gcc and clang have.  gcc for
 * Windows keeps the stack aligned to 16 bytes only, which vectors of 32 that are put there do not survive. */
#if defined(__x86_64__) && defined(__GNUC__) && (!defined(_WIN32) || defined(__clang__))
#define LE_SIMD_X86 1
#else
#define LE_SIMD_X86 0
#endif

typedef enum le_simd { LE_SIMD_PLAIN, LE_SIMD_AVX2, LE_SIMD_AVX512, LE_SIMD_VARIANTS } le_simd;

/* Once, at load. */
void le_simd_init(void);
/* What this processor can do; what LOGEVIDENCE_SIMD asked for; what is used. */
le_simd le_simd_best(void);
const char *le_simd_wish(void);
le_simd le_simd_level(void);

/* "plain", "avx2", "avx512"; and back, LE_SIMD_VARIANTS for any other word. */
const char *le_simd_name(le_simd variant);
le_simd le_simd_named(const char *name);

/* The variant for an instance made from these settings: never above what the processor can do. */
le_simd le_simd_for(const le_args *args);

#endif
