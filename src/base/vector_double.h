/* Vectors of doubles. base/vector.h includes this file and describes the functions. */

V_INLINE v_bits v_load_bits(const uint64_t *from) { return (v_bits)v_load((const double *)from); }
V_INLINE v_bits v_words(uint64_t x) { return (v_bits){0} + x; }
V_INLINE vec v_unit(v_bits x) { return (vec)(x >> 12 | 0x3ff0000000000000) - (1 - 0x1p-53); }
V_INLINE vec v_flip(vec x, v_bits sign) { return (vec)((v_bits)x ^ (sign & 0x8000000000000000)); }

#if LE_SIMD_X86
V_INLINE vec v_sqrt(vec x) { return V_OP(sqrt)(x); }
V_INLINE v_bits v_product(v_bits a, v_bits b)
{
  return (v_bits)V_JOIN(V_PREFIX, mul_epu32)((V_INTEGERS)a, (V_INTEGERS)b);
}
#else
V_INLINE vec v_sqrt(vec x) { return (vec){sqrt(x[0]), sqrt(x[1])}; }
V_INLINE v_bits v_product(v_bits a, v_bits b) { return (a & 0xffffffff) * (b & 0xffffffff); }
#endif

#if V_VARIANT == 2

V_INLINE vec v_scale(vec x, vec n) { return V_OP(scalef)(x, n); }

V_INLINE double v_sum(vec x)
{
  const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
  const __m128d quarter = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return _mm_cvtsd_f64(_mm_add_sd(quarter, _mm_unpackhi_pd(quarter, quarter)));
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

V_INLINE double v_sum(vec x) { return (x[0] + x[2]) + (x[1] + x[3]); }

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

#else

V_INLINE double v_sum(vec x) { return x[0] + x[1]; }
V_INLINE int v_all_within(vec x, double limit) { return fabs(x[0]) < limit && fabs(x[1]) < limit; }

V_INLINE void v_turn(const double *from, size_t step, vec *column)
{
  column[0] = (vec){from[0], from[step]};
  column[1] = (vec){from[1], from[step + 1]};
}

#endif

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
  static const double sixteenth[] = {1.0000000000000000, 1.0442737824274138, 1.0905077326652577,
                                     1.1387886347566916, 1.189207115002721, 1.241857812073484,
                                     1.2968395546510096, 1.3542555469368927, 1.4142135623730951,
                                     1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
                                     1.681792830507429, 1.7562521603732995, 1.8340080864093424,
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
