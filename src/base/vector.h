/* Vector types and functions for kernels that are written once and compiled for several instruction
 * sets. base/variants.h includes this file once for each set, with V_VARIANT. Numbers are doubles,
 * or floats with V_SINGLE (base/vector_single.h), which has fewer functions.
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
 *
 * V_KERNEL begins a function that is called by pointer, V_INLINE one that only kernels call,
 * V_TARGET one that kernels of other files also call. */

#if defined(__GNUC__)
#define V_GNU 1
#else
#define V_GNU 0
#endif

#if V_VARIANT == 2
#define V_BYTES 64
#define V_SQUARE 4
#define V_REGISTERS 32
#define V_TARGET __attribute__((target("avx512f,avx512dq,avx2,fma")))
#define V_INLINE static inline __attribute__((target("avx512f,avx512dq,avx2,fma"), always_inline))
#elif V_VARIANT == 1
#define V_BYTES 32
#define V_SQUARE 4
#define V_REGISTERS 16
#define V_TARGET __attribute__((target("avx2,fma")))
#define V_INLINE static inline __attribute__((target("avx2,fma"), always_inline))
#elif V_GNU
#define V_BYTES 16
#define V_SQUARE 2
#define V_REGISTERS 16
#define V_TARGET
#define V_INLINE static inline __attribute__((always_inline))
#else
#define V_BYTES 0 /* one lane */
#define V_SQUARE 1
#define V_REGISTERS 16
#define V_TARGET
#define V_INLINE static inline
#endif
#define V_KERNEL static V_TARGET

/* If the sum of exponentials is between V_SMALLEST and V_LARGEST, dividing the exponentials by it
 * neither loses digits nor gives denormal numbers. */
#ifdef V_SINGLE
#define V_LANES (V_GNU ? V_BYTES / 4 : 1)
#define V_SMALLEST 1e-20f
#define V_LARGEST 1e9f
#define V_MOST FLT_MAX
#else
#define V_LANES (V_GNU ? V_BYTES / 8 : 1)
#define V_SMALLEST 1e-300
#define V_LARGEST 1e300
#define V_MOST DBL_MAX
#endif

#if V_SQUARE == 4
#define V_EACH_COLUMN(M) M(0) M(1) M(2) M(3)
#elif V_SQUARE == 2
#define V_EACH_COLUMN(M) M(0) M(1)
#else
#define V_EACH_COLUMN(M) M(0)
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

#if V_GNU

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

#if V_VARIANT != 2
V_INLINE vec v_inverse(vec x) { return 1 / x; }
V_INLINE vec v_if_equal(vec a, vec b, vec x, vec y) { return v_choose((v_bits)(a == b), x, y); }
V_INLINE vec v_if_less(vec a, vec b, vec x, vec y) { return v_choose((v_bits)(a < b), x, y); }
#endif

#if V_VARIANT == 0
V_INLINE vec v_fma(vec a, vec b, vec c) { return a * b + c; }
V_INLINE vec v_fnma(vec a, vec b, vec c) { return c - a * b; }
V_INLINE vec v_max(vec a, vec b) { return v_choose((v_bits)(a > b), a, b); }
V_INLINE vec v_min(vec a, vec b) { return v_choose((v_bits)(a < b), a, b); }
#endif

#ifdef V_SINGLE
#include "base/vector_single.h"
#else

V_INLINE v_bits v_load_bits(const uint64_t *from) { return (v_bits)v_load((const double *)from); }
V_INLINE v_bits v_words(uint64_t x) { return (v_bits){0} + x; }
V_INLINE vec v_unit(v_bits x) { return (vec)(x >> 12 | 0x3ff0000000000000) - (1 - 0x1p-53); }
V_INLINE vec v_flip(vec x, v_bits sign) { return (vec)((v_bits)x ^ (sign & 0x8000000000000000)); }

#if V_VARIANT == 2

V_INLINE vec v_set(double x) { return _mm512_set1_pd(x); }
V_INLINE vec v_fma(vec a, vec b, vec c) { return _mm512_fmadd_pd(a, b, c); }
V_INLINE vec v_fnma(vec a, vec b, vec c) { return _mm512_fnmadd_pd(a, b, c); }
V_INLINE vec v_max(vec a, vec b) { return _mm512_max_pd(a, b); }
V_INLINE vec v_min(vec a, vec b) { return _mm512_min_pd(a, b); }

V_INLINE double v_sum(vec x)
{
  const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
  const __m128d quarter = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return _mm_cvtsd_f64(_mm_add_sd(quarter, _mm_unpackhi_pd(quarter, quarter)));
}

V_INLINE vec v_first(vec x, size_t n, vec y)
{
  return _mm512_mask_mov_pd(y, (__mmask8)(n >= 8 ? 0xff : (1u << n) - 1), x);
}

V_INLINE vec v_load_first(const double *from, size_t n)
{
  return _mm512_maskz_loadu_pd((__mmask8)(n >= 8 ? 0xff : (1u << n) - 1), from);
}

V_INLINE void v_store_first(double *to, size_t n, vec x)
{
  _mm512_mask_storeu_pd(to, (__mmask8)(n >= 8 ? 0xff : (1u << n) - 1), x);
}

V_INLINE vec v_if_equal(vec a, vec b, vec x, vec y)
{
  return _mm512_mask_mov_pd(y, _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), x);
}

V_INLINE vec v_if_less(vec a, vec b, vec x, vec y)
{
  return _mm512_mask_mov_pd(y, _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), x);
}

/* Newton steps from a 14-bit estimate; a division would occupy the units longer. */
V_INLINE vec v_inverse(vec x)
{
  vec y = _mm512_rcp14_pd(x);
  y = v_fma(v_fnma(x, y, v_set(1)), y, y);
  return v_fma(v_fnma(x, y, v_set(1)), y, y);
}

V_INLINE vec v_scale(vec x, vec n) { return _mm512_scalef_pd(x, n); }
V_INLINE vec v_sqrt(vec x) { return _mm512_sqrt_pd(x); }
V_INLINE v_bits v_product(v_bits a, v_bits b)
{
  return (v_bits)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}
V_INLINE int v_all_within(vec x, double limit)
{
  return _mm512_cmp_pd_mask(_mm512_abs_pd(x), v_set(limit), _CMP_LT_OQ) == 0xff;
}

/* Rows l and l + 4 side by side. */
#define V_ROWS(l)                                                                                  \
  _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(from + (l)*step)),                     \
                     _mm256_loadu_pd(from + ((l) + 4) * step), 1)

V_INLINE void v_turn(const double *from, size_t step, vec *column)
{
  const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  const __m512d a = V_ROWS(0), b = V_ROWS(1), c = V_ROWS(2), d = V_ROWS(3);
  const __m512d ab = _mm512_unpacklo_pd(a, b), cd = _mm512_unpacklo_pd(c, d);
  const __m512d ba = _mm512_unpackhi_pd(a, b), dc = _mm512_unpackhi_pd(c, d);
  column[0] = _mm512_permutex2var_pd(ab, even, cd);
  column[1] = _mm512_permutex2var_pd(ba, even, dc);
  column[2] = _mm512_permutex2var_pd(ab, odd, cd);
  column[3] = _mm512_permutex2var_pd(ba, odd, dc);
}

#undef V_ROWS

/* Adds neighbours first, so that the four sums are halved together. */
V_INLINE void v_add_sums(double *to, size_t n, vec a, vec b, vec c, vec d)
{
  const __m512d ab = _mm512_unpacklo_pd(a, b) + _mm512_unpackhi_pd(a, b),
                cd = _mm512_unpacklo_pd(c, d) + _mm512_unpackhi_pd(c, d);
  const __m512d half = _mm512_shuffle_f64x2(ab, cd, 0x88) + _mm512_shuffle_f64x2(ab, cd, 0xdd);
  const __m512d sums = _mm512_shuffle_f64x2(half, half, 0x88) +
                       _mm512_shuffle_f64x2(half, half, 0xdd);
  v_store_first(to, n, v_load_first(to, n) + sums);
}

#else

#if V_VARIANT == 1

V_INLINE vec v_set(double x) { return _mm256_set1_pd(x); }
V_INLINE vec v_fma(vec a, vec b, vec c) { return _mm256_fmadd_pd(a, b, c); }
V_INLINE vec v_fnma(vec a, vec b, vec c) { return _mm256_fnmadd_pd(a, b, c); }
V_INLINE vec v_max(vec a, vec b) { return _mm256_max_pd(a, b); }
V_INLINE vec v_min(vec a, vec b) { return _mm256_min_pd(a, b); }
V_INLINE double v_sum(vec x) { return (x[0] + x[2]) + (x[1] + x[3]); }
V_INLINE vec v_sqrt(vec x) { return _mm256_sqrt_pd(x); }
V_INLINE int v_all_within(vec x, double limit)
{
  return _mm256_movemask_pd(_mm256_cmp_pd(v_max(x, v_set(0) - x), v_set(limit), _CMP_LT_OQ)) == 0xf;
}
V_INLINE v_bits v_product(v_bits a, v_bits b)
{
  return (v_bits)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}

V_INLINE void v_turn(const double *from, size_t step, vec *column)
{
  const __m256d a = v_load(from), b = v_load(from + step), c = v_load(from + 2 * step),
                d = v_load(from + 3 * step);
  const __m256d ab = _mm256_unpacklo_pd(a, b), cd = _mm256_unpacklo_pd(c, d);
  const __m256d ba = _mm256_unpackhi_pd(a, b), dc = _mm256_unpackhi_pd(c, d);
  column[0] = _mm256_permute2f128_pd(ab, cd, 0x20);
  column[1] = _mm256_permute2f128_pd(ba, dc, 0x20);
  column[2] = _mm256_permute2f128_pd(ab, cd, 0x31);
  column[3] = _mm256_permute2f128_pd(ba, dc, 0x31);
}

V_INLINE vec v_first(vec x, size_t n, vec y)
{
  const vec lane = {0, 1, 2, 3};
  return v_choose((v_bits)(lane < v_set((double)n)), x, y);
}

#else

V_INLINE vec v_set(double x) { return (vec){x, x}; }
V_INLINE double v_sum(vec x) { return x[0] + x[1]; }
V_INLINE int v_all_within(vec x, double limit) { return fabs(x[0]) < limit && fabs(x[1]) < limit; }
#if LE_SIMD_X86
V_INLINE vec v_sqrt(vec x) { return _mm_sqrt_pd(x); }
V_INLINE v_bits v_product(v_bits a, v_bits b)
{
  return (v_bits)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
#else
V_INLINE vec v_sqrt(vec x) { return (vec){sqrt(x[0]), sqrt(x[1])}; }
V_INLINE v_bits v_product(v_bits a, v_bits b) { return (a & 0xffffffff) * (b & 0xffffffff); }
#endif

V_INLINE void v_turn(const double *from, size_t step, vec *column)
{
  column[0] = (vec){from[0], from[step]};
  column[1] = (vec){from[1], from[step + 1]};
}

V_INLINE vec v_first(vec x, size_t n, vec y)
{
  const vec lane = {0, 1};
  return v_choose((v_bits)(lane < v_set((double)n)), x, y);
}

#endif

V_INLINE vec v_load_first(const double *from, size_t n)
{
  if (n >= V_LANES) return v_load(from);
  double part[V_LANES] = {0};
  for (size_t l = 0; l < n; l++) part[l] = from[l];
  return v_load(part);
}

V_INLINE void v_store_first(double *to, size_t n, vec x)
{
  for (size_t l = 0; l < n && l < V_LANES; l++) to[l] = x[l];
}

/* 2^n for whole n from -1022 to 1023; the argument is n + V_ROUNDER. */
V_INLINE vec v_power(vec rounded) { return (vec)(((v_bits)rounded + 1023) << 52); }

/* x 2^n in two steps, so that neither power leaves the range. */
V_INLINE vec v_scale(vec x, vec n)
{
  const vec half = n * 0.5 + V_ROUNDER, rest = n - (half - V_ROUNDER);
  return x * v_power(half) * v_power(rest + V_ROUNDER);
}

#endif

#if V_VARIANT == 2

/* 2^(k / 16), k from the four lowest bits of each lane. */
V_INLINE vec v_table(vec k)
{
  static const double sixteenth[] = {1,
                                     1.0442737824274138,
                                     1.0905077326652577,
                                     1.1387886347566916,
                                     1.189207115002721,
                                     1.241857812073484,
                                     1.2968395546510096,
                                     1.3542555469368927,
                                     1.4142135623730951,
                                     1.4768261459394993,
                                     1.5422108254079407,
                                     1.6104903319492543,
                                     1.681792830507429,
                                     1.7562521603732995,
                                     1.8340080864093424,
                                     1.9152065613971474};
  return _mm512_permutex2var_pd(v_load(sixteenth), (__m512i)k, v_load(sixteenth + 8));
}

/* With n the multiple of 1/16 nearest to x / log 2, e^x = 2^n e^r, where r = x - n log 2 is in
 * [-log(2) / 32, log(2) / 32]. The fractional part of 2^n comes from a table in two registers.
 * e^r = 1 + r + r^2 q(r), where q has degree 4 and interpolates at the zeros of a Chebyshev
 * polynomial; the error is at most 3e-17 e^r. log 2 is split into two parts so that n times the
 * first is exact. */
V_INLINE vec v_exp_down(vec x)
{
  const vec rounder = v_set(V_ROUNDER / 16);
  x = v_max(v_set(-750), x); /* NaN stays NaN */
  const vec rounded = v_fma(x, v_set(1.4426950408889634), rounder), n = rounded - rounder;
  const vec r = v_fnma(n, v_set(1.90821492927058770002e-10),
                       v_fnma(n, v_set(6.93147180369123816490e-01), x));
  const vec power = v_table(rounded), square = r * r;
  vec high = v_fma(v_set(0.008333449724528355), r, v_set(0.041666666664959766));
  const vec low = v_fma(v_set(0.16666666665301144), r, v_set(0.5));
  high = v_fma(v_set(0.0013889034377693012), square, high);
  /* it uses the whole part of n */
  return v_scale(v_fma(power, v_fma(v_fma(high, square, low), square, r), power), n);
}

/* The same with log 2 in one piece and q of degree 3 (error at most 5.7e-15 e^r), without treatment
 * of large arguments: a quarter fewer operations. */
V_INLINE vec v_exp_near(vec x)
{
  const vec rounder = v_set(V_ROUNDER / 16);
  const vec rounded = v_fma(x, v_set(1.4426950408889634), rounder), n = rounded - rounder;
  const vec r = v_fnma(n, v_set(0.6931471805599453), x), power = v_table(rounded), square = r * r;
  const vec high = v_fma(v_set(0.00833346294909859), r, v_set(0.041667573978852804));
  const vec low = v_fma(v_set(0.1666666666478505), r, v_set(0.4999999998682864));
  return v_scale(v_fma(power, v_fma(v_fma(high, square, low), square, r), power), n);
}

#else

/* With n the whole number nearest to x / log 2, e^x = 2^n e^r, where r = x - n log 2 is in [-log(2)
 * / 2, log(2) / 2]. e^r = 1 + r + r^2 q(r), where q has degree 8 and interpolates at the zeros of a
 * Chebyshev polynomial; the error is at most 1.3e-15 e^r. log 2 is split into two parts so that n
 * times the first is exact. */
V_INLINE vec v_exp_down(vec x)
{
  x = v_max(v_set(-750), x); /* NaN stays NaN */
  const vec rounded = v_fma(x, v_set(1.4426950408889634), v_set(V_ROUNDER)),
            n = rounded - v_set(V_ROUNDER);
  const vec r = v_fnma(n, v_set(1.90821492927058770002e-10),
                       v_fnma(n, v_set(6.93147180369123816490e-01), x));
  const vec square = r * r;
  vec odd = v_fma(v_set(2.7625112348132093e-06), square, v_set(0.0001984120873835699));
  vec even = v_fma(v_set(2.761380417063004e-07), square, v_set(2.4801536393539694e-05));
  odd = v_fma(odd, square, v_set(0.008333333353726484));
  even = v_fma(even, square, v_set(0.0013888888905879116));
  odd = v_fma(odd, square, v_set(0.16666666666648292));
  even = v_fma(even, square, v_set(0.04166666666665136));
  even = v_fma(even, square, v_set(0.5));
  return v_scale(v_fma(v_fma(odd, r, even), square, r) + v_set(1), n);
}

#endif

/* Beyond the limits the result is infinite or zero. */
V_INLINE vec v_exp(vec x) { return v_exp_down(v_min(v_set(710), x)); }
#if V_VARIANT != 2
V_INLINE vec v_exp_near(vec x) { return v_exp(x); }
#endif

/* x = 2^n m with m in [sqrt(1/2), sqrt(2)). With f = m - 1 and s = f / (2 + f), log m = 2 artanh
 * s = f - f^2 / 2 + s (f^2 / 2 + R(s^2)). Approximation and order of operations are those of
 * fdlibm. */
V_INLINE vec v_log(vec x)
{
  const vec least = v_set(2.2250738585072014e-308), zero = v_set(0), infinity = v_set(INFINITY);
  const vec normal = v_if_less(x, least, x * v_set(18014398509481984.0), x); /* 2^54 */
  const v_bits shifted = (v_bits)normal + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  const vec exponent = (vec)((shifted >> 52 & 0x7ff) | 0x4330000000000000) -
                       v_set(4503599627370496.0 + 1023);
  const vec n = exponent - v_if_less(x, least, v_set(54), zero);
  const vec f = (vec)((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd) - v_set(1);
  const vec s = f / (f + v_set(2)), z = s * s, half = f * f * v_set(0.5);
  vec r = v_fma(z, v_set(1.479819860511658591e-01), v_set(1.531383769920937332e-01));
  r = v_fma(r, z, v_set(1.818357216161805012e-01));
  r = v_fma(r, z, v_set(2.222219843214978396e-01));
  r = v_fma(r, z, v_set(2.857142874366239149e-01));
  r = v_fma(r, z, v_set(3.999999999940941908e-01));
  r = v_fma(r, z, v_set(6.666666666666735130e-01)) * z;
  const vec low = v_fma(s, half + r, n * v_set(1.90821492927058770002e-10));
  vec result = v_fma(n, v_set(6.93147180369123816490e-01), f - (half - low));
  result = v_if_less(x, infinity, result, x); /* infinity and NaN */
  return v_if_less(zero, x, result,
                   v_if_equal(x, zero, v_set(-INFINITY), v_if_less(x, zero, v_set(NAN), x)));
}

#endif /* V_SINGLE */

#else /* any other compiler: one lane */

typedef real vec;
typedef v_word v_bits;

V_INLINE vec v_load(const real *from) { return *from; }
V_INLINE void v_store(real *to, vec x) { *to = x; }
V_INLINE vec v_hold(vec x) { return x; }
V_INLINE vec v_load_first(const real *from, size_t n) { return n > 0 ? *from : 0; }
V_INLINE void v_store_first(real *to, size_t n, vec x)
{
  if (n > 0) *to = x;
}
V_INLINE vec v_set(real x) { return x; }
V_INLINE vec v_fma(vec a, vec b, vec c) { return a * b + c; }
V_INLINE vec v_fnma(vec a, vec b, vec c) { return c - a * b; }
V_INLINE vec v_max(vec a, vec b) { return a > b ? a : b; }
V_INLINE vec v_min(vec a, vec b) { return a < b ? a : b; }
V_INLINE double v_sum(vec x) { return x; }
V_INLINE int v_all_within(vec x, real limit) { return fabs(x) < limit; }
V_INLINE vec v_first(vec x, size_t n, vec y) { return n > 0 ? x : y; }
V_INLINE vec v_if_equal(vec a, vec b, vec x, vec y) { return a == b ? x : y; }
V_INLINE vec v_if_less(vec a, vec b, vec x, vec y) { return a < b ? x : y; }
V_INLINE vec v_inverse(vec x) { return 1 / x; }
#ifdef V_SINGLE
V_INLINE vec v_narrow(const double *from) { return (float)*from; }
V_INLINE vec v_exp_down(vec x) { return expf(v_max(-64, x)); }
V_INLINE vec v_exp_near(vec x) { return v_exp_down(x); }
#else
V_INLINE void v_turn(const double *from, size_t step, vec *column)
{
  (void)step;
  *column = *from;
}
V_INLINE vec v_exp(vec x) { return exp(x); }
V_INLINE vec v_exp_down(vec x) { return exp(x); }
V_INLINE vec v_exp_near(vec x) { return exp(x); }
V_INLINE vec v_log(vec x) { return log(x); }
V_INLINE vec v_sqrt(vec x) { return sqrt(x); }
V_INLINE v_bits v_load_bits(const uint64_t *from) { return *from; }
V_INLINE v_bits v_words(uint64_t x) { return x; }
V_INLINE v_bits v_product(v_bits a, v_bits b) { return (a & 0xffffffff) * (b & 0xffffffff); }
V_INLINE vec v_unit(v_bits x) { return ((double)(x >> 12) + 0.5) * (1.0 / 4503599627370496.0); }
V_INLINE vec v_flip(vec x, v_bits sign) { return sign >> 63 ? -x : x; }
V_INLINE vec v_choose(v_bits mask, vec x, vec y) { return mask ? x : y; }
#endif

#endif

#if !(V_GNU && V_VARIANT == 2)
V_INLINE void v_add_sums(double *to, size_t n, vec a, vec b, vec c, vec d)
{
  to[0] += v_sum(a);
  if (n > 1) to[1] += v_sum(b);
  if (n > 2) to[2] += v_sum(c);
  if (n > 3) to[3] += v_sum(d);
}
#endif
