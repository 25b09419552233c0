/* Compiles the file VECTOR_BODY once for each variant. A function that it calls V(name) becomes
 * name_plain, name_avx2 and name_avx512. TABLES(M), with a macro M(variant), initialises an array,
 * indexed by le_simd, with M of the three. The optional file VECTOR_SINGLE_BODY is compiled with
 * vectors of floats; its functions become name_plain_single and so on. A source file includes this
 * header once. If the compiler cannot compile several variants in one file, all three are the plain
 * one. */
#include "base/simd.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#if LE_SIMD_X86
#include <immintrin.h>
#endif

/* How a model uses it (src/models/softmax.c is an example):
 *
 *     #define VECTOR_BODY "models/toy_body.h"
 *     #include "base/variants.h"                 gives slopes_plain, slopes_avx2, slopes_avx512
 *     typedef struct kernels { .. } kernels;     pointers to them
 *     #define KERNELS(variant) {slopes_##variant}
 *     static const kernels table[] = TABLES(KERNELS);
 *
 * Rows that only fill the last tile must add nothing: by zeros in a factor, or by v_first. */

#define V_JOIN_(name, suffix) name##_##suffix
#define V_JOIN(name, suffix) V_JOIN_(name, suffix)
#define V(name) V_JOIN(name, V_SUFFIX)

#define V_VARIANT 0
#include "base/variant.h"

#if LE_SIMD_X86

#define V_VARIANT 1
#include "base/variant.h"
#define V_VARIANT 2
#include "base/variant.h"

#define TABLES(M) {M(plain), M(avx2), M(avx512)}
#else
#define TABLES(M) {M(plain), M(plain), M(plain)}
#endif
