/* Log densities of a response by the family of a regression, with their first and second
 * derivatives by the linear predictor and by the logarithms of two further parameters, in numbers
 * of 113 bits: the densities are those of textbooks, the derivatives five-point differences. */
#include <quadmath.h>
#include <string.h>

typedef __float128 quad;

enum { GAUSSIAN, POISSON, BINOMIAL, PROBIT, NEGATIVE_BINOMIAL, GAMMA, WEIBULL, STUDENT };

static quad log_1p_exp(quad x) { return x > 0 ? x + log1pq(expq(-x)) : log1pq(expq(x)); }

/* log of the normal distribution function; far in the tail by its continued fraction */
static quad log_normal_cdf(quad x)
{
  if (x > 0) return log1pq(-erfcq(x / sqrtq(2)) / 2);
  if (x > -30) return logq(erfcq(-x / sqrtq(2)) / 2);
  quad fraction = -x;
  for (int k = 200; k > 0; k--) fraction = -x + k / fraction;
  return -x * x / 2 - logq(2 * M_PIq) / 2 - logq(fraction);
}

static quad log_choose(quad n, quad k)
{
  return lgammaq(n + 1) - lgammaq(k + 1) - lgammaq(n - k + 1);
}

/* log Gamma(z + x) - log Gamma(z); for large z by Stirling's series, without cancellation */
static quad log_gamma_ratio(quad z, quad x)
{
  if (z < 1e4Q) return lgammaq(z + x) - lgammaq(z);
  const quad c[] = {1 / 12.Q, -1 / 360.Q, 1 / 1260.Q, -1 / 1680.Q, 1 / 1188.Q};
  quad sum = x * logq(z) + (z + x - 0.5Q) * log1pq(x / z) - x, to = 1 / (z + x), from = 1 / z;
  for (int k = 0; k < 5; k++, to /= (z + x) * (z + x), from /= z * z) sum += c[k] * (to - from);
  return sum;
}

static quad density(int family, quad y, quad extra, quad eta, quad log_a, quad log_b)
{
  const quad a = expq(log_a), b = expq(log_b);
  switch (family) {
  case GAUSSIAN: return -logq(2 * M_PIq) / 2 - log_a - (y - eta) * (y - eta) / (2 * a * a);
  case POISSON: return y * eta - expq(eta) - lgammaq(y + 1);
  case BINOMIAL:
    return log_choose(extra, y) - y * log_1p_exp(-eta) - (extra - y) * log_1p_exp(eta);
  case PROBIT:
    return log_choose(extra, y) + (y > 0 ? y * log_normal_cdf(eta) : 0) +
           (extra > y ? (extra - y) * log_normal_cdf(-eta) : 0);
  case NEGATIVE_BINOMIAL:
    return log_gamma_ratio(a, y) - lgammaq(y + 1) - y * log_1p_exp(log_a - eta) -
           a * log_1p_exp(eta - log_a);
  case GAMMA:
    return a * (log_a - eta) + (a - 1) * logq(y) - a * y * expq(-eta) - lgammaq(a);
  case WEIBULL:
    return extra * (log_a + (a - 1) * logq(y) - a * eta) - expq(a * (logq(y) - eta));
  default: {
    const quad z = (y - eta) / a;
    return log_gamma_ratio(b / 2, 0.5Q) - logq(b * M_PIq) / 2 - log_a -
           (b + 1) / 2 * log1pq(z * z / b);
  }
  }
}

/* value; slopes by eta, log a, log b; curves, 3 x 3. `unit`: a change of eta that is small. */
void precise_family(const int *family, const double *y, const double *extra, const double *at,
                    const double *unit, double *value, double *slope, double *curve)
{
  static const double weight[] = {1, -8, 0, 8, -1};
  *value = (double)density(*family, *y, *extra, at[0], at[1], at[2]);
  for (int i = 0; i < 3; i++) {
    quad sum = 0, h = 1e-4Q * (i ? 1 : *unit);
    for (int k = 0; k < 5; k++) {
      quad x[3] = {at[0], at[1], at[2]};
      x[i] += (k - 2) * h;
      if (weight[k] != 0) sum += weight[k] * density(*family, *y, *extra, x[0], x[1], x[2]);
    }
    slope[i] = (double)(sum / (12 * h));
    h = 1e-3Q * (i ? 1 : *unit);
    for (int j = 0; j < 3; j++) {
      const quad step = 1e-3Q * (j ? 1 : *unit);
      sum = 0;
      for (int k = 0; k < 5; k++)
        for (int l = 0; l < 5; l++) {
          if (weight[k] == 0 || weight[l] == 0) continue;
          quad x[3] = {at[0], at[1], at[2]};
          x[i] += (k - 2) * h;
          x[j] += (l - 2) * step;
          sum += weight[k] * weight[l] * density(*family, *y, *extra, x[0], x[1], x[2]);
        }
      curve[i * 3 + j] = (double)(sum / (144 * h * step));
    }
  }
}
