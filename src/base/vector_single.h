/* Vectors of floats, where six or seven digits are enough. base/vector.h includes this file and
 * describes the functions. Sums are added to doubles (v_sum, v_add_sums); v_narrow takes V_LANES
 * doubles. v_exp_down and v_exp_near have a relative error of 3e-7, plus the rounding of large
 * exponents. Arguments below -64 are replaced by -64, so that no denormal numbers arise; these cost
 * a hundred times as much. */

#if V_VARIANT == 2

V_INLINE vec v_narrow(const double *from)
{
  const __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(from)),
               high = _mm512_cvtpd_ps(_mm512_loadu_pd(from + 8));
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

V_INLINE double v_sum(vec x)
{
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return (double)_mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

/* Adds neighbours first, so that the four sums are halved together. */
V_INLINE void v_add_sums(double *to, size_t n, vec a, vec b, vec c, vec d)
{
  const __m512 ab = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b),
               cd = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
  const __m512 all = _mm512_shuffle_ps(ab, cd, 0x44) + _mm512_shuffle_ps(ab, cd, 0xee);
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
  const __m256d sums =
    _mm256_cvtps_pd(_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
  double found[4];
  _mm256_storeu_pd(found, sums);
  for (size_t k = 0; k < n; k++) to[k] += found[k];
}

/* 2^(k / 32), k from the five lowest bits of each lane. */
V_INLINE vec v_table(vec k)
{
  static const float power[] = {1.000000000f, 1.021897149f, 1.044273782f, 1.067140401f,
                                1.090507733f, 1.114386743f, 1.138788635f, 1.163724862f,
                                1.189207115f, 1.215247360f, 1.241857812f, 1.269050957f,
                                1.296839555f, 1.325236643f, 1.354255547f, 1.383909882f,
                                1.414213562f, 1.445180807f, 1.476826146f, 1.509164428f,
                                1.542210825f, 1.575980845f, 1.610490332f, 1.645755478f,
                                1.681792831f, 1.718619298f, 1.756252160f, 1.794709075f,
                                1.834008086f, 1.874167633f, 1.915206561f, 1.957144124f};
  return _mm512_permutex2var_ps(v_load(power), (__m512i)k, v_load(power + 16));
}

/* With n the multiple of 1/32 nearest to x / log 2, e^x = 2^n e^r, r in [-log(2) / 64, log(2) /
 * 64]. The fractional part comes from a table in two registers; e^r = 1 + a r + b r^2 with error at
 * most 5.4e-8. */
V_INLINE vec v_exp_near(vec x)
{
  const vec rounder = v_set(393216.0f); /* 1.5 * 2^23 / 32 */
  x = v_max(v_set(-64), x);             /* NaN stays NaN */
  const vec rounded = v_fma(x, v_set(1.44269504f), rounder), n = rounded - rounder;
  const vec r = v_fnma(n, v_set(0.693147182f), x), power = v_table(rounded);
  return _mm512_scalef_ps(v_fma(power * r, v_fma(v_set(0.500000196f), r, v_set(1.0000146446f)),
                                power),
                          n);
}

V_INLINE vec v_exp_down(vec x) { return v_exp_near(x); }

#else

#if V_VARIANT == 1

V_INLINE vec v_narrow(const double *from)
{
  return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(from + 4)),
                         _mm256_cvtpd_ps(_mm256_loadu_pd(from)));
}

V_INLINE double v_sum(vec x)
{
  return (double)(((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])));
}

#else

V_INLINE vec v_narrow(const double *from)
{
  return (vec){(float)from[0], (float)from[1], (float)from[2], (float)from[3]};
}
V_INLINE double v_sum(vec x) { return (double)((x[0] + x[2]) + (x[1] + x[3])); }

V_INLINE int v_all_within(vec x, float limit)
{
  return fabsf(x[0]) < limit && fabsf(x[1]) < limit && fabsf(x[2]) < limit && fabsf(x[3]) < limit;
}

#endif

/* With n the whole number nearest to x / log 2, e^x = 2^n e^r, r in [-log(2) / 2, log(2) / 2], and
 * e^r = 1 + r + r^2 q(r), q of degree 3, with error at most 1.1e-7. log 2 is split into two parts
 * so that n times the first is exact. */
V_INLINE vec v_exp_down(vec x)
{
  const vec rounder = v_set(12582912.0f); /* 1.5 * 2^23 */
  x = v_max(v_set(-64), x);               /* NaN stays NaN */
  const vec rounded = v_fma(x, v_set(1.44269504f), rounder), n = rounded - rounder;
  const vec r = v_fnma(n, v_set(-2.12194440e-4f), v_fnma(n, v_set(0.693359375f), x));
  vec q = v_fma(v_set(0.00831252494583f), r, v_set(0.0418901132755f));
  q = v_fma(q, r, v_set(0.166671144649f));
  q = v_fma(q, r, v_set(0.499992317904f));
  const vec power = (vec)(((v_bits)rounded + 127) << 23);
  return (v_fma(q * r, r, r) + v_set(1)) * power;
}

V_INLINE vec v_exp_near(vec x) { return v_exp_down(v_min(v_set(88), x)); }

#endif
