/* Philox blocks, one in each lane, and the uniform and normal numbers made from them. Included by
 * base/variants.h. */

/* The four words of a counter are the lower halves of four lanes. The upper halves may hold
 * anything until the end, because products ignore them. */
V_INLINE void V(philox)(const uint64_t *counter, size_t stride, uint64_t key, v_bits *high,
                        v_bits *low)
{
  const v_bits half = v_words(0xffffffffu), first = v_words(0xD2511F53u),
               second = v_words(0xCD9E8D57u);
  v_bits c0 = v_load_bits(counter), c1 = v_load_bits(counter + stride);
  v_bits c2 = v_load_bits(counter + 2 * stride), c3 = v_load_bits(counter + 3 * stride);
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    const v_bits p0 = v_product(first, c0), p1 = v_product(second, c2);
    c0 = (p1 >> 32) ^ c1 ^ v_words(k0);
    c2 = (p0 >> 32) ^ c3 ^ v_words(k1);
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  *high = c0 << 32 | (c1 & half);
  *low = c2 << 32 | (c3 & half);
}

/* Two uniforms of each block. */
V_KERNEL void V(uniform_pairs)(size_t n, const uint64_t *counter, size_t stride, uint64_t key,
                               double *one, double *two)
{
  for (size_t k = 0; k < n; k += V_LANES) {
    v_bits high, low;
    V(philox)(counter + k, stride, key, &high, &low);
    v_store(one + k, v_unit(high));
    v_store(two + k, v_unit(low));
  }
}

/* Two normals of each block by the method of Box and Muller (1958). The angle is within an eighth
 * of a turn of zero; other bits choose one of four quarters. The polynomials for sine and cosine
 * are those of fdlibm. */
V_KERNEL void V(normal_pairs)(size_t n, const uint64_t *counter, size_t stride, uint64_t key,
                              double *one, double *two)
{
  for (size_t k = 0; k < n; k += V_LANES) {
    v_bits high, low;
    V(philox)(counter + k, stride, key, &high, &low);
    const vec radius = v_sqrt(v_set(-2) * v_log(v_unit(high)));
    const vec angle = (v_unit(low) - v_set(0.5)) * v_set(1.5707963267948966),
              square = angle * angle;
    vec sine = v_fma(square, v_set(1.58969099521155010221e-10), v_set(-2.50507602534068634195e-08));
    vec cosine = v_fma(square, v_set(-1.13596475577881948265e-11),
                       v_set(2.08757232129817482790e-09));
    sine = v_fma(sine, square, v_set(2.75573137070700676789e-06));
    cosine = v_fma(cosine, square, v_set(-2.75573143513906633035e-07));
    sine = v_fma(sine, square, v_set(-1.98412698298579493134e-04));
    cosine = v_fma(cosine, square, v_set(2.48015872894767294178e-05));
    sine = v_fma(sine, square, v_set(8.33333333332248946124e-03));
    cosine = v_fma(cosine, square, v_set(-1.38888888888741095749e-03));
    sine = v_fma(sine, square, v_set(-1.66666666666666324348e-01));
    cosine = v_fma(cosine, square, v_set(4.16666666666666019037e-02));
    sine = v_fma(sine * square, angle, angle);
    cosine = v_fma(cosine * square, square, v_fma(square, v_set(-0.5), v_set(1)));
    const v_bits turned = v_words(0) - (low & v_words(1)), sign = (low >> 1) << 63;
    v_store(one + k, v_flip(v_choose(turned, sine, cosine) * radius, sign));
    v_store(two + k, v_flip(v_choose(turned, cosine, sine) * radius, sign));
  }
}
