/* Vector types and functions for kernels that are written once and compiled for several instruction
 * sets. base/variants.h includes this file once for each set, with V_VARIANT. Numbers are doubles
 * (base/vector_double.h), or floats with V_SINGLE (base/vector_single.h), which has fewer
 * functions. The types are vectors of gcc and clang, which all platforms of R have.
 *
 *   vec           V_LANES numbers of type real; + - * / work lane by lane
 *   v_hold        the same vector, forced into a register: compilers may otherwise load it from
 *                 memory again at each use
 *   v_fma         a * b + c, rounded once if the processor can; v_fnma is c - a * b.  Sums of
 *                 products are always written with these: otherwise a compiler may fuse them in
 *                 one place and not in another, and the same value would differ in its last bits
 *   v_exp, v_log  relative error at most 2e-15 over the whole range, including infinities, NaN and
 *                 denormal numbers. v_exp_down is v_exp for arguments known to be at most 710.
 *                 v_exp_near is for arguments near 0: relative error 6e-15 + 3e-16 |x| for |x| up
 *                 to 1e12; beyond that the result may be infinite, of any sign, or NaN
 *   v_inverse     1 / x with relative error at most 3e-16; not for very large or very small x
 *   v_first       the first n lanes of one vector, the other lanes of another
 *   v_all_within  whether all lanes are nearer to 0 than a limit, and none is NaN
 *   v_load_first  n doubles, zeros in the other lanes; nothing beyond them is read.
 *                 v_store_first writes n doubles
 *
 *   v_bits        as many words of 64 bits.  v_product multiplies their lower halves; v_unit makes
 *                 a number in (0, 1) from their upper 52 bits; v_flip changes signs by the top bit;
 *                 v_choose selects whole lanes by masks of ones and zeros
 *   v_turn        the first V_SQUARE numbers of V_LANES rows, `step` apart, as V_SQUARE columns;
 *                 V_EACH_COLUMN(M) is M(0) M(1) ...
 *   v_add_sums    adds the sum over lanes of each of the first n of four vectors to n numbers
 *   V_GROUP       how many vectors in a row of sums leave room for their factors in registers, of
 *                 which there are 32 or 16
 *
 * V_KERNEL begins a function that is called by pointer, V_INLINE one that only kernels call,
 * V_TARGET one that kernels of other files also call. */

/* V_OP(fmadd) is _mm256_fmadd_pd and the like. */
#if V_VARIANT == 2
#define V_NAME avx512
#define V_BYTES 64
#define V_SQUARE 4
#define V_GROUP 4
#define V_PREFIX _mm512
#define V_INTEGERS __m512i
#define V_TARGET __attribute__((target("avx512f,avx512dq,avx2,fma")))
#define V_INLINE static inline __attribute__((target("avx512f,avx512dq,avx2,fma"), always_inline))
#elif V_VARIANT == 1
#define V_NAME avx2
#define V_BYTES 32
#define V_SQUARE 4
#define V_GROUP 2
#define V_PREFIX _mm256
#define V_INTEGERS __m256i
#define V_TARGET __attribute__((target("avx2,fma")))
#define V_INLINE static inline __attribute__((target("avx2,fma"), always_inline))
#else
#define V_NAME plain
#define V_BYTES 16
#define V_SQUARE 2
#define V_GROUP 2
#define V_PREFIX _mm
#define V_INTEGERS __m128i
#define V_TARGET
#define V_INLINE static inline __attribute__((always_inline))
#endif
#define V_KERNEL static V_TARGET
#define V_OP(name) V_JOIN(V_JOIN(V_PREFIX, name), V_TYPE)

/* If the sum of exponentials is between V_SMALLEST and V_LARGEST, dividing the exponentials by it
 * neither loses digits nor gives denormal numbers. */
#ifdef V_SINGLE
#define V_SUFFIX V_JOIN(V_NAME, single)
#define V_TYPE ps
#define V_MASK __mmask16
#define V_LANES (V_BYTES / 4)
#define V_SMALLEST 1e-20f
#define V_LARGEST 1e9f
#define V_MOST FLT_MAX
#else
#define V_SUFFIX V_NAME
#define V_TYPE pd
#define V_MASK __mmask8
#define V_LANES (V_BYTES / 8)
#define V_SMALLEST 1e-300
#define V_LARGEST 1e300
#define V_MOST DBL_MAX
#endif
#define V_ALL ((1 << V_LANES) - 1)

#if V_SQUARE == 4
#define V_EACH_COLUMN(M) M(0) M(1) M(2) M(3)
#else
#define V_EACH_COLUMN(M) M(0) M(1)
#endif

#ifndef LE_VECTOR_NAMES
#define LE_VECTOR_NAMES
#define real V(real)
#define vec V(vec)
#define v_bits V(v_bits)
#define v_word V(v_word)
#define v_loose V(v_loose)
#define v_load V(v_load)
#define v_hold V(v_hold)
#define v_store V(v_store)
#define v_load_first V(v_load_first)
#define v_store_first V(v_store_first)
#define v_set V(v_set)
#define v_fma V(v_fma)
#define v_fnma V(v_fnma)
#define v_max V(v_max)
#define v_min V(v_min)
#define v_sum V(v_sum)
#define v_first V(v_first)
#define v_if_equal V(v_if_equal)
#define v_if_less V(v_if_less)
#define v_choose V(v_choose)
#define v_power V(v_power)
#define v_scale V(v_scale)
#define v_turn V(v_turn)
#define v_all_within V(v_all_within)
#define v_inverse V(v_inverse)
#define v_exp V(v_exp)
#define v_exp_down V(v_exp_down)
#define v_exp_near V(v_exp_near)
#define v_table V(v_table)
#define v_add_sums V(v_add_sums)
#define v_log V(v_log)
#define v_sqrt V(v_sqrt)
#define v_load_bits V(v_load_bits)
#define v_words V(v_words)
#define v_product V(v_product)
#define v_unit V(v_unit)
#define v_flip V(v_flip)
#define v_narrow V(v_narrow)
/* 1.5 * 2^52: adding it rounds to a whole number, whose value is in the lowest bits of the
 * result. */
#define V_ROUNDER 6755399441055744.0
#endif

#ifdef V_SINGLE
typedef float real;
typedef uint32_t v_word;
#else
typedef double real;
typedef uint64_t v_word;
#endif

typedef real vec __attribute__((vector_size(V_BYTES)));
typedef v_word v_bits __attribute__((vector_size(V_BYTES)));
typedef real v_loose __attribute__((vector_size(V_BYTES), aligned(sizeof(real)), may_alias));

V_INLINE vec v_load(const real *from) { return *(const v_loose *)from; }

V_INLINE void v_store(real *to, vec x) { *(v_loose *)to = x; }

V_INLINE vec v_hold(vec x)
{
#if LE_SIMD_X86
  __asm__("" : "+v"(x));
#endif
  return x;
}

V_INLINE vec v_choose(v_bits mask, vec x, vec y)
{
  return (vec)((mask & (v_bits)x) | (~mask & (v_bits)y));
}

V_INLINE vec v_set(real x) { return x - (vec){0}; }

#if V_VARIANT > 0
V_INLINE vec v_fma(vec a, vec b, vec c) { return V_OP(fmadd)(a, b, c); }
V_INLINE vec v_fnma(vec a, vec b, vec c) { return V_OP(fnmadd)(a, b, c); }
V_INLINE vec v_max(vec a, vec b) { return V_OP(max)(a, b); }
V_INLINE vec v_min(vec a, vec b) { return V_OP(min)(a, b); }
#else
V_INLINE vec v_fma(vec a, vec b, vec c) { return a * b + c; }
V_INLINE vec v_fnma(vec a, vec b, vec c) { return c - a * b; }
V_INLINE vec v_max(vec a, vec b) { return v_choose((v_bits)(a > b), a, b); }
V_INLINE vec v_min(vec a, vec b) { return v_choose((v_bits)(a < b), a, b); }
#endif

#if V_VARIANT == 2

#define V_FIRST(n) ((V_MASK)((n) >= V_LANES ? V_ALL : (1 << (n)) - 1))
#define V_COMPARE V_JOIN(V_OP(cmp), mask)

V_INLINE vec v_first(vec x, size_t n, vec y) { return V_OP(mask_mov)(y, V_FIRST(n), x); }
V_INLINE vec v_load_first(const real *from, size_t n)
{
  return V_OP(maskz_loadu)(V_FIRST(n), from);
}
V_INLINE void v_store_first(real *to, size_t n, vec x) { V_OP(mask_storeu)(to, V_FIRST(n), x); }

V_INLINE vec v_if_equal(vec a, vec b, vec x, vec y)
{
  return V_OP(mask_mov)(y, V_COMPARE(a, b, _CMP_EQ_OQ), x);
}

V_INLINE vec v_if_less(vec a, vec b, vec x, vec y)
{
  return V_OP(mask_mov)(y, V_COMPARE(a, b, _CMP_LT_OQ), x);
}

V_INLINE int v_all_within(vec x, real limit)
{
  return V_COMPARE(V_OP(abs)(x), v_set(limit), _CMP_LT_OQ) == V_ALL;
}

/* Newton steps from a 14-bit estimate; a division would occupy the units longer. */
V_INLINE vec v_inverse(vec x)
{
  const vec rough = V_OP(rcp14)(x), y = v_fma(v_fnma(x, rough, v_set(1)), rough, rough);
  return sizeof(real) == sizeof(float) ? y : v_fma(v_fnma(x, y, v_set(1)), y, y);
}

#undef V_FIRST
#undef V_COMPARE

#else

V_INLINE vec v_inverse(vec x) { return 1 / x; }
V_INLINE vec v_if_equal(vec a, vec b, vec x, vec y) { return v_choose((v_bits)(a == b), x, y); }
V_INLINE vec v_if_less(vec a, vec b, vec x, vec y) { return v_choose((v_bits)(a < b), x, y); }

V_INLINE vec v_first(vec x, size_t n, vec y)
{
  static const real lane[] = {0, 1, 2, 3, 4, 5, 6, 7};
  return v_if_less(v_load(lane), v_set((real)n), x, y);
}

V_INLINE vec v_load_first(const real *from, size_t n)
{
  if (n >= V_LANES) return v_load(from);
  real part[V_LANES] = {0};
  for (size_t l = 0; l < n; l++) part[l] = from[l];
  return v_load(part);
}

V_INLINE void v_store_first(real *to, size_t n, vec x)
{
  for (size_t l = 0; l < n && l < V_LANES; l++) to[l] = x[l];
}

#endif

#if V_VARIANT == 1
V_INLINE int v_all_within(vec x, real limit)
{
  const vec size = v_max(x, v_set(0) - x);
  return V_OP(movemask)(V_OP(cmp)(size, v_set(limit), _CMP_LT_OQ)) == V_ALL;
}
#endif

#ifdef V_SINGLE
#include "base/vector_single.h"
#else
#include "base/vector_double.h"
#endif

#if V_VARIANT != 2
V_INLINE void v_add_sums(double *to, size_t n, vec a, vec b, vec c, vec d)
{
  to[0] += v_sum(a);
  if (n > 1) to[1] += v_sum(b);
  if (n > 2) to[2] += v_sum(c);
  if (n > 3) to[3] += v_sum(d);
}
#endif
