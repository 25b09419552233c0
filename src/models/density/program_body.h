/* The operations of a program, for base/variants.h. Gamma functions are for positive arguments. */
#include "models/glm/functions_body.h"

V_INLINE vec V(positive_only)(vec z, vec value)
{
  return v_if_less(v_set(0), z, value, v_if_equal(z, v_set(0), v_set(INFINITY), v_set(NAN)));
}

/* log(1 + x) for x >= -1. */
V_INLINE vec V(log_1p_any)(vec x)
{
  const vec u = v_set(1) + x;
  const vec value = v_log(u) + (x - (u - v_set(1))) / u;
  return v_if_less(v_set(0), u, v_if_less(u, v_set(INFINITY), value, u), v_log(u));
}

V_INLINE vec V(exp_size)(vec x) { return v_exp_down(v_set(0) - V(size_of)(x)); }

/* Large arguments need no recurrence, and its product would overflow. */
V_INLINE vec V(log_gamma)(vec z)
{
  const vec large = v_set(1e15), far = v_if_less(z, large, z + v_set(8), z),
            factors = v_if_less(z, large, V(eight_factors)(z), v_set(1));
  return V(positive_only)(z, (far - v_set(0.5)) * v_log(far) - far + v_set(HALF_LOG_2PI) +
                               V(stirling)(far) - v_log(factors));
}

V_INLINE vec V(digamma)(vec z)
{
  const vec far = z + v_set(8), near = v_min(z, v_set(1e30));
  const vec value = v_log(far) - v_set(0.5) / far + V(digamma_rest)(far) - V(eight_inverses)(near);
  return v_if_less(v_set(0), z, value, v_set(NAN));
}

V_INLINE vec V(trigamma)(vec z)
{
  const vec near = v_min(z, v_set(1e30));
  return V(positive_only)(z, V(trigamma_far)(z + v_set(8)) + V(eight_squares)(near));
}

/* log Gamma(z + x) - log Gamma(z) for z > 0 and x >= 0, without cancellation for large z. */
V_INLINE vec V(log_gamma_ratio)(vec z, vec x)
{
  const vec far = z + v_set(8), farther = far + x;
  const vec rest = (farther - v_set(0.5)) * V(log_1p)(x / far) - x +
                   (V(stirling)(farther) - V(stirling)(far));
  const vec large = v_set(1e30), one = v_set(1);
  const vec above = v_if_less(z + x, large, V(eight_factors)(z + x), one),
            below = v_if_less(z + x, large, V(eight_factors)(z), one);
  return v_if_less(v_set(0), z, x * v_log(far) + rest - v_log(above / below), v_set(NAN));
}

/* Operations with fewer arguments have the others, too: they are repeated. */
#define STEP_VECTOR(name, value)                                                                   \
  case OPERATION_##name:                                                                           \
    for (size_t at = 0; at < n; at += V_LANES) {                                                   \
      const vec x = v_load(a + at), y = v_load(b + at), z = v_load(c + at);                        \
      (void)y, (void)z;                                                                            \
      v_store(out + at, value);                                                                    \
    }                                                                                              \
    break;
#define STEP_NUMBER(name, value)                                                                   \
  case OPERATION_##name:                                                                           \
    for (size_t r = 0; r < n; r++) out[r] = value;                                                 \
    break;

V_KERNEL void V(run)(const program *p, size_t n, double *const *reg)
{
  const vec zero = v_set(0), one = v_set(1);
  for (size_t k = 0; k < p->n; k++) {
    const program_step *step = &p->step[k];
    double *out = reg[step->out];
    const double *a = reg[step->in[0]], *b = reg[step->in[1]], *c = reg[step->in[2]];
    switch (step->operation) {
      STEP_VECTOR(ADD, x + y)
      STEP_VECTOR(SUB, x - y)
      STEP_VECTOR(MUL, x * y)
      STEP_VECTOR(DIV, x / y)
      STEP_VECTOR(NEG, zero - x)
      STEP_VECTOR(EXP, v_exp(x))
      STEP_VECTOR(LOG, v_log(x))
      STEP_VECTOR(LOG1P, V(log_1p_any)(x))
      STEP_VECTOR(SQRT, v_sqrt(x))
      STEP_VECTOR(ABS, V(size_of)(x))
      STEP_VECTOR(LOGISTIC, V(logistic)(x, V(exp_size)(x)))
      STEP_VECTOR(SOFTPLUS, V(log_1p_exp)(x, V(exp_size)(x)))
      STEP_VECTOR(LGAMMA, V(log_gamma)(x))
      STEP_VECTOR(DIGAMMA, V(digamma)(x))
      STEP_VECTOR(TRIGAMMA, V(trigamma)(x))
      STEP_VECTOR(LGAMMA_RATIO, V(log_gamma_ratio)(x, y))
      STEP_VECTOR(LESS, v_if_less(x, y, one, zero))
      STEP_VECTOR(AT_MOST, v_if_less(x, y, one, v_if_equal(x, y, one, zero)))
      STEP_VECTOR(EQUAL, v_if_equal(x, y, one, zero))
      STEP_VECTOR(SELECT, v_if_equal(x, zero, z, y))
      STEP_NUMBER(EXPM1, expm1(a[r]))
      STEP_NUMBER(TETRAGAMMA, tetragamma(a[r]))
      STEP_NUMBER(PNORM, normal_probability(a[r]))
      STEP_NUMBER(LOG_PNORM, log_normal_probability(a[r]))
      STEP_NUMBER(SIN, sin(a[r]))
      STEP_NUMBER(COS, cos(a[r]))
      STEP_NUMBER(TANH, tanh(a[r]))
      STEP_NUMBER(ATAN, atan(a[r]))
      STEP_NUMBER(POW, pow(a[r], b[r]))
    case OPERATIONS: break;
    }
  }
}

#undef STEP_VECTOR
#undef STEP_NUMBER
