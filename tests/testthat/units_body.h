/* Multiply-adds in registers, at the peak speed with which bench/kernels.R compares models.
 * Included by base/variants.h. */

#define EACH_CHAIN(M) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12)
#define START_CHAIN(k) vec chain##k = v_set(k);
#define NEXT_IN_CHAIN(k) chain##k = v_fma(chain##k, factor, term);
#define ADD_CHAIN(k) sum = sum + chain##k;

/* Twelve independent chains hide the latency of an instruction. Returns a number that depends on
 * all of them. */
V_KERNEL double V(multiply_adds)(size_t rounds)
{
  const vec factor = v_set(0.999999), term = v_set(1e-6);
  vec sum = v_set(0);
  EACH_CHAIN(START_CHAIN)
  const size_t steps = rounds * (8u << 20) / V_LANES / 12;
  for (size_t s = 0; s < steps; s++) { EACH_CHAIN(NEXT_IN_CHAIN) }
  EACH_CHAIN(ADD_CHAIN)
  return v_sum(sum);
}
