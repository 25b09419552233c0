/* Log-likelihoods of linear regressions with group-level effects, with their first and second
 * derivatives, from the covariance matrix of all responses, in numbers of 113 bits. Nothing here is
 * as in the package, which never forms this matrix.
 *
 *     cov(y) = sigma^2 + sum over components k of tau_k^2 z_k z_k' where groups agree
 *
 * and the effects of the first two components may have the correlation tanh(y). Parameters are the
 * coefficients, log sigma, the log tau and y. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef __float128 quad;

static quad power(double x) { return (quad)expl((long double)x); }
static quad log_of(quad x)
{
  const double near = (double)x;
  return (quad)logl((long double)near) + (x - near) / near;
}
static quad root_of(quad x)
{
  quad r = (quad)sqrtl((long double)x);
  for (int k = 0; k < 2; k++) r = (r + x / r) / 2;
  return r;
}

/* to += factor G, G[i, j] = z[i] u[j] in the same group, and its transpose, if they differ */
static void add_pairs(int n, const int *code, const double *z, const double *u, quad factor,
                      quad *to)
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (code[i] == code[j]) {
        to[i * n + j] += factor * z[i] * u[j];
        if (z != u) to[i * n + j] += factor * z[j] * u[i];
      }
}

/* Replaces a by its inverse; returns half the log determinant. */
static quad invert(int n, quad *a, quad *l)
{
  quad half = 0;
  memset(l, 0, sizeof *l * (size_t)(n * n));
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      quad sum = a[i * n + j];
      for (int k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? root_of(sum) : sum / l[j * n + j];
      if (i == j) half += log_of(l[i * n + i]);
    }
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < n; i++) {
      quad sum = i == j;
      for (int k = 0; k < i; k++) sum -= l[i * n + k] * a[k * n + j];
      a[i * n + j] = sum / l[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
      quad sum = a[i * n + j];
      for (int k = i + 1; k < n; k++) sum -= l[k * n + i] * a[k * n + j];
      a[i * n + j] = sum / l[i * n + i];
    }
  }
  return half;
}

static void multiply(int n, const quad *a, const quad *b, quad *to)
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      quad sum = 0;
      for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      to[i * n + j] = sum;
    }
}

static quad form(int n, const quad *x, const quad *a, const quad *y)
{
  quad sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) sum += x[i] * a[i * n + j] * y[j];
  return sum;
}

/* n rows, p covariates, m components: y[n], x[p][n], code[m][n], z[m][n]; `correlated` is
 * 0 or 1. hess is d x d. */
void precise_gaussian(const int *rows, const int *covariates, const int *components,
                      const double *y, const double *x, const int *code, const double *z,
                      const double *theta, const int *correlated, double *value, double *grad,
                      double *hess)
{
  const int n = *rows, p = *covariates, m = *components, s = 1 + m + *correlated, d = p + s;
  const size_t square = (size_t)(n * n);
  quad *sigma = calloc(square, sizeof *sigma), *room = calloc(square, sizeof *room),
       *by = calloc((size_t)s * square, sizeof *by),
       *times = calloc((size_t)s * square, sizeof *times),
       *second = calloc(square, sizeof *second), *e = calloc((size_t)n, sizeof *e),
       *a = calloc((size_t)n, sizeof *a);
  quad noise = power(2 * theta[p]), variance[8], both = 0, t = 0, steep = 0;
  for (int k = 0; k < m; k++) variance[k] = power(2 * theta[p + 1 + k]);
  if (*correlated) {
    t = (quad)tanhl((long double)theta[d - 1]);
    steep = 1 - t * t;
    both = power(theta[p + 1]) * power(theta[p + 2]);
  }
  for (int i = 0; i < n; i++) {
    sigma[i * n + i] += noise;
    by[i * n + i] += 2 * noise;
  }
  for (int k = 0; k < m; k++) {
    add_pairs(n, code + k * n, z + k * n, z + k * n, variance[k], sigma);
    add_pairs(n, code + k * n, z + k * n, z + k * n, 2 * variance[k], by + (1 + k) * (int)square);
  }
  if (*correlated) {
    add_pairs(n, code, z, z + n, both * t, sigma);
    for (int k = 0; k < 2; k++) add_pairs(n, code, z, z + n, both * t, by + (1 + k) * (int)square);
    add_pairs(n, code, z, z + n, both * steep, by + (s - 1) * (int)square);
  }
  const quad half = invert(n, sigma, room);
  for (int i = 0; i < n; i++) {
    e[i] = y[i];
    for (int j = 0; j < p; j++) e[i] -= (quad)x[j * n + i] * theta[j];
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) a[i] += sigma[i * n + j] * e[j];
  quad sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * e[i];
  const long double two_pi = 6.28318530717958647692528676655900577L;
  *value = (double)(-half - sum / 2 - n * (quad)(0.5L * logl(two_pi)));
  memset(hess, 0, sizeof *hess * (size_t)(d * d));
  for (int j = 0; j < p; j++) {
    quad slope = 0;
    for (int i = 0; i < n; i++) slope += (quad)x[j * n + i] * a[i];
    grad[j] = (double)slope;
    for (int k = 0; k < p; k++) {
      quad curve = 0;
      for (int i = 0; i < n; i++)
        for (int l = 0; l < n; l++)
          curve += (quad)x[j * n + i] * sigma[i * n + l] * (quad)x[k * n + l];
      hess[j * d + k] = (double)-curve;
    }
  }
  for (int b = 0; b < s; b++) multiply(n, sigma, by + b * (int)square, times + b * (int)square);
  for (int b = 0; b < s; b++) {
    const quad *own = by + b * (int)square, *with = times + b * (int)square;
    quad trace = 0;
    for (int i = 0; i < n; i++) trace += with[i * n + i];
    grad[p + b] = (double)(form(n, a, own, a) / 2 - trace / 2);
    for (int j = 0; j < p; j++) { /* - x' sigma^-1 own a */
      quad curve = 0;
      for (int i = 0; i < n; i++)
        for (int l = 0; l < n; l++) curve -= (quad)x[j * n + i] * with[i * n + l] * a[l];
      hess[j * d + p + b] = hess[(p + b) * d + j] = (double)curve;
    }
    for (int c = 0; c < s; c++) {
      const quad *others = times + c * (int)square;
      quad traces = 0, along = 0;
      for (int i = 0; i < n; i++)
        for (int l = 0; l < n; l++) traces += with[i * n + l] * others[l * n + i];
      multiply(n, own, others, room);
      along = form(n, a, room, a);
      memset(second, 0, square * sizeof *second);
      if (b == c && b == 0)
        for (int i = 0; i < n; i++) second[i * n + i] = 4 * noise;
      if (b == c && b > 0 && b <= m)
        add_pairs(n, code + (b - 1) * n, z + (b - 1) * n, z + (b - 1) * n, 4 * variance[b - 1],
                  second);
      if (*correlated && b > 0 && c > 0 && (b < 3 || b == s - 1) && (c < 3 || c == s - 1)) {
        const int last = (b == s - 1) + (c == s - 1);
        add_pairs(n, code, z, z + n,
                  both * (last == 0 ? t : last == 1 ? steep : -2 * t * steep), second);
      }
      quad more = 0;
      for (int i = 0; i < n; i++)
        for (int l = 0; l < n; l++) more += sigma[i * n + l] * second[l * n + i];
      hess[(p + b) * d + p + c] =
        (double)(traces / 2 - more / 2 - along + form(n, a, second, a) / 2);
    }
  }
  free(sigma);
  free(room);
  free(by);
  free(times);
  free(second);
  free(e);
  free(a);
}
