/* A model of a user's library whose likelihood is no sum over rows: all its rows are one row here,
 * so that no run can cut them. The functions are those of the model, which get all rows at once. */
#include "bridge/bridge.h"

#include <string.h>

typedef struct joined_model {
  le_model_ops own; /* the table of the library */
  void *self;       /* the instance of the library */
  size_t rows;      /* so many are one row */
} joined_model;

static const joined_model *joined(const void *self) { return self; }

/* The rows as the library has them. */
static le_rows apart(const joined_model *j, const le_rows *rows)
{
  const le_rows all = {rows->n * j->rows, rows->width / j->rows, rows->values};
  return all;
}

/* Functions without rows: the same call of the library's own instance. */
#define SAME(type, name, parameters, ...)           \
  static type joined_##name parameters              \
  {                                                 \
    return joined(self)->own.name(__VA_ARGS__);     \
  }
#define OWN joined(self)->self

SAME(size_t, dim, (const void *self), OWN)
SAME(void, log_prior, (const void *self, size_t m, const double *theta, double *value), OWN, m,
     theta, value)
SAME(void, log_prior_grad, (const void *self, size_t m, const double *theta, double *grad), OWN, m,
     theta, grad)
SAME(void, log_prior_hess, (const void *self, const double *theta, double *hess), OWN, theta, hess)
SAME(void, draw_prior, (const void *self, const gsl_rng *rng, double *theta), OWN, rng, theta)
SAME(double, log_symmetry, (const void *self), OWN)
SAME(double, log_orbit, (const void *self, const double *theta), OWN, theta)
SAME(int, relabel, (const void *self, const double *reference, double *theta), OWN, reference,
     theta)
SAME(size_t, user_dim, (const void *self), OWN)
SAME(void, to_user, (const void *self, const double *theta, double *user), OWN, theta, user)
SAME(double, to_normal,
     (const void *self, const double *peak, const double *theta, double *out), OWN, peak, theta,
     out)
SAME(int, from_normal, (const void *self, const double *peak, double *point), OWN, peak, point)
SAME(size_t, scales, (const void *self), OWN)
SAME(double, tails, (const void *self), OWN)
SAME(size_t, discrete, (const void *self, size_t j, const double **values), OWN, j, values)

static void joined_destroy(void *self)
{
  if (self) joined(self)->own.destroy(OWN);
}

static size_t joined_width(const void *self)
{
  return joined(self)->rows * joined(self)->own.width(OWN);
}

static size_t joined_scratch(const void *self, size_t particles, size_t rows)
{
  return joined(self)->own.scratch(OWN, particles, rows * joined(self)->rows);
}

static le_status joined_log_lik(const void *self, size_t m, const double *theta,
                                const le_rows *rows, double *value, double *scratch)
{
  const le_rows all = apart(self, rows);
  return joined(self)->own.log_lik(OWN, m, theta, &all, value, scratch);
}

static le_status joined_log_lik_grad(const void *self, size_t m, const double *theta,
                                     const le_rows *rows, double *value, double *grad,
                                     double *scratch)
{
  const le_rows all = apart(self, rows);
  return joined(self)->own.log_lik_grad(OWN, m, theta, &all, value, grad, scratch);
}

static le_status joined_log_lik_grad_alone(const void *self, size_t m, const double *theta,
                                           const le_rows *rows, double *grad, double *scratch)
{
  const le_rows all = apart(self, rows);
  return joined(self)->own.log_lik_grad_alone(OWN, m, theta, &all, grad, scratch);
}

static le_status joined_log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                                     double *grad, double *hess, double *scratch)
{
  const le_rows all = apart(self, rows);
  return joined(self)->own.log_lik_hess(OWN, theta, &all, grad, hess, scratch);
}

static le_status joined_information(const void *self, const double *theta, const le_rows *rows,
                                    double *info, double *scratch)
{
  const le_rows all = apart(self, rows);
  return joined(self)->own.information(OWN, theta, &all, info, scratch);
}

/* The log-likelihood of the one row is that of all. */
static le_status joined_log_lik_each(const void *self, size_t m, const double *theta,
                                     const le_rows *rows, double *value, double *scratch)
{
  for (size_t r = 0; r < rows->n; r++) {
    const le_rows one = {1, rows->width, rows->values + r * rows->width};
    for (size_t i = 0; i < m; i++) {
      double *at = value + i * rows->n + r;
      *at = 0;
      LE_TRY(joined_log_lik(self, 1, theta + i * joined_dim(self), &one, at, scratch));
    }
  }
  return LE_OK;
}

static void joined_simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                            double *rows)
{
  joined(self)->own.simulate(OWN, theta, rng, n * joined(self)->rows, rows);
}

static le_status joined_exact(const void *self, const le_rows *rows, double *log_evidence)
{
  const le_rows all = apart(self, rows);
  return joined(self)->own.exact(OWN, &all, log_evidence);
}

static le_status joined_exact_draws(const void *self, const le_rows *rows, const gsl_rng *rng,
                                    size_t m, double *theta)
{
  const le_rows all = apart(self, rows);
  return joined(self)->own.exact_draws(OWN, &all, rng, m, theta);
}

static void joined_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                         double *scratch)
{
  const le_rows all = apart(self, rows);
  joined(self)->own.start(OWN, &all, rng, theta, scratch);
}

static size_t joined_start_scratch(const void *self, size_t rows)
{
  return joined(self)->own.start_scratch(OWN, rows * joined(self)->rows);
}

void join_rows(model_handle *handle, SEXP args)
{
  SEXP given = maybe_element(args, ".together");
  if (Rf_isNull(given)) return;
  joined_model *j = le_arena_bytes(&handle->arena, 1, sizeof *j);
  if (!j) raise_status(LE_NO_MEMORY, NULL);
  j->own = handle->own;
  j->self = handle->self;
  j->rows = one_count(given, ".together");
  handle->self = j;
  le_model_ops *ops = &handle->own;
#define JOIN(name) \
  if (ops->name) ops->name = joined_##name
  JOIN(destroy);
  JOIN(dim);
  JOIN(width);
  JOIN(scratch);
  JOIN(log_prior);
  JOIN(log_prior_grad);
  JOIN(log_prior_hess);
  JOIN(draw_prior);
  JOIN(log_lik);
  JOIN(log_lik_grad);
  JOIN(log_lik_grad_alone);
  JOIN(log_lik_hess);
  JOIN(information);
  JOIN(log_lik_each);
  JOIN(simulate);
  JOIN(exact);
  JOIN(log_symmetry);
  JOIN(log_orbit);
  JOIN(relabel);
  JOIN(user_dim);
  JOIN(to_user);
  JOIN(start);
  JOIN(start_scratch);
  JOIN(to_normal);
  JOIN(from_normal);
  JOIN(exact_draws);
  JOIN(scales);
  JOIN(tails);
  JOIN(discrete);
#undef JOIN
  /* of single rows */
  ops->partitions = NULL;
  ops->variational = ops->maximum = NULL;
  ops->effects_size = NULL;
  ops->effects = NULL;
}
