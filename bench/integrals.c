/* Two integrals over a uniform prior on a box, for bench/nested.R: a correlated normal density and
 * two shells. As compiled_model() wants them; settings: d, half (of the box), and the density's
 * own. */
#define HAVE_INLINE
#include <math.h>
#include <stdlib.h>
#include <logevidence.h>

typedef struct integral {
  size_t d;
  double half, a, b, c, constant;
} integral;

static const double half_log_2pi = 0.918938533204672741780;

static le_status create(const le_args *args, void **self, char *message)
{
  (void)message;
  integral *it = malloc(sizeof *it);
  *self = it;
  if (!it) return LE_NO_MEMORY;
  it->d = (size_t)le_args_number(args, "d", 10);
  it->half = le_args_number(args, "half", 10);
  return LE_OK;
}

static le_status create_normal(const le_args *args, void **self, char *message)
{
  if (create(args, self, message) != LE_OK) return LE_NO_MEMORY;
  integral *it = *self;
  const double d = (double)it->d, correlation = le_args_number(args, "correlation", 0.95);
  it->a = correlation / (1 + (d - 1) * correlation);
  it->b = 1 / (1 - correlation);
  it->constant =
      -d * half_log_2pi - 0.5 * ((d - 1) * log(1 - correlation) + log(1 + (d - 1) * correlation));
  return LE_OK;
}

static le_status create_shells(const le_args *args, void **self, char *message)
{
  if (create(args, self, message) != LE_OK) return LE_NO_MEMORY;
  integral *it = *self;
  it->a = le_args_number(args, "radius", 2);
  it->b = le_args_number(args, "width", 0.1);
  it->c = le_args_number(args, "centre", 3.5);
  it->constant = -half_log_2pi - log(it->b);
  return LE_OK;
}

static void destroy(void *self) { free(self); }
static size_t dim(const void *self) { return ((const integral *)self)->d; }

static size_t none(const void *self)
{
  (void)self;
  return 0;
}

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const integral *it = self;
  const double inside = -(double)it->d * log(2 * it->half);
  for (size_t i = 0; i < m; i++, theta += it->d) {
    value[i] = inside;
    for (size_t j = 0; j < it->d; j++)
      if (!(fabs(theta[j]) <= it->half)) value[i] = -INFINITY;
  }
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  (void)theta;
  memset(grad, 0, m * dim(self) * sizeof(double));
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const integral *it = self;
  for (size_t j = 0; j < it->d; j++) theta[j] = it->half * (2 * gsl_rng_uniform(rng) - 1);
}

static double normal(const integral *it, const double *theta, double *grad)
{
  double sum = 0, squares = 0;
  for (size_t j = 0; j < it->d; j++) {
    sum += theta[j];
    squares += theta[j] * theta[j];
  }
  if (grad)
    for (size_t j = 0; j < it->d; j++) grad[j] += it->b * (it->a * sum - theta[j]);
  return it->constant - 0.5 * it->b * (squares - it->a * sum * sum);
}

/* Distances and log densities of both shells; their gradients weighted by what each contributes. */
static double shells(const integral *it, const double *theta, double *grad)
{
  double squares = it->c * it->c, z[2], log_density[2], distance[2];
  for (size_t j = 0; j < it->d; j++) squares += theta[j] * theta[j];
  for (int s = 0; s < 2; s++) {
    distance[s] = sqrt(squares + (s ? -2 : 2) * it->c * theta[0]);
    z[s] = (distance[s] - it->a) / it->b;
    log_density[s] = it->constant - 0.5 * z[s] * z[s];
  }
  const double top = fmax(log_density[0], log_density[1]),
               low = fmin(log_density[0], log_density[1]);
  const double value = top + log1p(exp(low - top));
  for (int s = 0; grad && s < 2; s++) {
    const double slope = -exp(log_density[s] - value) * z[s] / it->b / distance[s];
    for (size_t j = 0; j < it->d; j++) grad[j] += slope * theta[j];
    grad[0] += slope * (s ? -it->c : it->c);
  }
  return value;
}

#define LIKELIHOODS(which)                                                                         \
  static le_status which##_log_lik(const void *self, size_t m, const double *theta,                \
                                   const le_rows *rows, double *value, double *scratch)            \
  {                                                                                                \
    (void)rows;                                                                                    \
    (void)scratch;                                                                                 \
    for (size_t i = 0; i < m; i++) value[i] += which(self, theta + i * dim(self), NULL);           \
    return LE_OK;                                                                                  \
  }                                                                                                \
  static le_status which##_log_lik_grad(const void *self, size_t m, const double *theta,           \
                                        const le_rows *rows, double *value, double *grad,          \
                                        double *scratch)                                           \
  {                                                                                                \
    (void)rows;                                                                                    \
    (void)scratch;                                                                                 \
    for (size_t i = 0; i < m; i++)                                                                 \
      value[i] += which(self, theta + i * dim(self), grad + i * dim(self));                        \
    return LE_OK;                                                                                  \
  }                                                                                                \
  static le_status which##_log_lik_each(const void *self, size_t m, const double *theta,           \
                                        const le_rows *rows, double *value, double *scratch)       \
  {                                                                                                \
    memset(value, 0, m * sizeof(double));                                                          \
    return which##_log_lik(self, m, theta, rows, value, scratch);                                  \
  }                                                                                                \
  static const le_model_ops which##_ops = {                                                        \
      .version = LE_CONTRACT_VERSION,                                                              \
      .size = sizeof(le_model_ops),                                                                \
      .name = #which,                                                                              \
      .create = create_##which,                                                                    \
      .destroy = destroy,                                                                          \
      .dim = dim,                                                                                  \
      .width = none,                                                                               \
      .log_prior = log_prior,                                                                      \
      .log_prior_grad = log_prior_grad,                                                            \
      .draw_prior = draw_prior,                                                                    \
      .log_lik = which##_log_lik,                                                                  \
      .log_lik_grad = which##_log_lik_grad,                                                        \
      .log_lik_each = which##_log_lik_each,                                                        \
  };                                                                                               \
  const le_model_ops *which##_table(void);                                                         \
  const le_model_ops *which##_table(void) { return &which##_ops; }

LIKELIHOODS(normal)
LIKELIHOODS(shells)
