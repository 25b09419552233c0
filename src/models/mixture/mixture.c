/* A mixture of K Gaussians with diagonal covariance in p dimensions:
 *
 *   weights ~ Dirichlet(concentration, ..),  sigma_kj^2 ~ InvGamma(shape, rate),
 *   mu_kj | sigma_kj^2 ~ N(location_j, mean_scale^2 sigma_kj^2).
 *
 * The parameters are non-centred: theta is
 *
 *   K - 1 log-ratios  eta_k = log(weight_k / weight_K)
 *   K * p offsets     t_kj = (mu_kj - location_j) / (mean_scale sigma_kj),  at k * p + j
 *   K * p log-scales  u_kj = log sigma_kj^2,                                at k * p + j.
 *
 * In the prior t is standard normal and independent of u, so for a component without observations t
 * and u are independent, where a centred mean would form a funnel. With v = exp(-u/2) and s =
 * mean_scale
 *
 *   z = v (y - location) - s t,   log f_k(y) = sum_j (-log(2 pi)/2 - u/2 - z^2/2),
 *   dz/dt = -s,   dz/du = -v (y - location)/2 = -(z + s t)/2,
 *
 * and all derivatives are polynomials in z. */

#include "models/mixture/parts.h"

#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIMENSIONS 100000

/* ---- settings ---- */

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  size_t components, p;
  if (!le_read_count(args, "components", 1, MOST_COMPONENTS, &components, message) ||
      !le_read_count(args, "dimensions", 1, MOST_DIMENSIONS, &p, message))
    return LE_BAD_ARGUMENT;
  mixture *model = malloc(sizeof *model + (1 + components) * p * sizeof(double));
  if (!model) return LE_NO_MEMORY;
  model->components = components;
  model->dimensions = p;
  model->simd = le_simd_for(args);
  model->rate = model->location + p;
  if (!le_read_numbers(args, "location", 0, -INFINITY, p, model->location, message) ||
      !le_read_numbers(args, "mean_scale", 2, 0, 1, &model->mean_scale, message) ||
      !le_read_numbers(args, "shape", 1, 0, 1, &model->shape, message) ||
      !le_read_numbers(args, "rate", 1, 0, p, model->rate, message) ||
      !le_read_numbers(args, "concentration", 1, 0, 1, &model->concentration, message)) {
    free(model);
    return LE_BAD_ARGUMENT;
  }
  double count = (double)components;
  model->weight_constant = lgamma(count * model->concentration) -
                           count * lgamma(model->concentration);
  double log_rate = 0;
  for (size_t j = 0; j < p; j++) log_rate += (log(model->rate[j]) - log_rate) / (double)(j + 1);
  model->scale_constant = model->shape * log_rate - lgamma(model->shape);
  for (size_t k = 1; k < components; k++)
    memcpy(model->rate + k * p, model->rate, p * sizeof(double));
  *self = model;
  return LE_OK;
}

static size_t width(const void *self) { return ((const mixture *)self)->dimensions; }

/* ---- simulation ---- */

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  const mixture *model = self;
  size_t p = model->dimensions;
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
  double weight[MOST_COMPONENTS];
  le_mixture_weights(model, theta, weight);
  for (size_t r = 0; r < n; r++) {
    const size_t k = le_draw_index(model->components, weight, 1, rng);
    for (size_t j = 0; j < p; j++) {
      double sd = exp(0.5 * u[k * p + j]);
      rows[r * p + j] = model->location[j] +
                        sd * (model->mean_scale * t[k * p + j] + gsl_ran_gaussian_ziggurat(rng, 1));
    }
  }
}

/* ---- the user's scale: weights, means and standard deviations, one component after another
 * ---- */

static size_t user_dim(const void *self)
{
  const mixture *model = self;
  return model->components * (1 + 2 * model->dimensions);
}

static void to_user(const void *self, const double *theta, double *user)
{
  const mixture *model = self;
  size_t components = model->components, n = components * model->dimensions;
  const double *t = theta + offsets_at(model), *u = theta + scales_at(model);
  double *mean = user + components, *sd = mean + n;
  le_mixture_weights(model, theta, user);
  for (size_t a = 0; a < n; a++) {
    sd[a] = exp(0.5 * u[a]);
    mean[a] = model->location[a % model->dimensions] + model->mean_scale * sd[a] * t[a];
  }
}

/* For one component: its rows are one block. */
static le_status exact(const void *self, const le_rows *rows, double *log_evidence)
{
  const le_partition_ops *ops = &le_mixture_partitions;
  *log_evidence = NAN;
  if (((const mixture *)self)->components > 1) return LE_OK;
  double *tables = malloc((ops->tables(self, rows->n) + ops->size(self)) * sizeof *tables);
  if (!tables) return LE_NO_MEMORY;
  double *block = tables + ops->tables(self, rows->n);
  ops->prepare(self, rows, tables);
  ops->clear(self, tables, block);
  for (size_t i = 0; i < rows->n; i++)
    ops->add(self, tables, rows->values + i * rows->width, 1, block);
  *log_evidence = ops->log_evidence(self, tables, block);
  free(tables);
  return LE_OK;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  return le_mixture_log_lik_grad(self, m, theta, rows, value, NULL, scratch);
}

static le_status log_lik_grad_alone(const void *self, size_t m, const double *theta,
                                    const le_rows *rows, double *grad, double *scratch)
{
  return le_mixture_log_lik_grad(self, m, theta, rows, NULL, grad, scratch);
}

const le_model_ops le_mixture_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "gaussian_mixture",
  .traits = LE_MODEL_MULTIMODAL,
  .create = create,
  .destroy = free,
  .dim = dim,
  .width = width,
  .scratch = le_mixture_scratch,
  .log_prior = le_mixture_log_prior,
  .log_prior_grad = le_mixture_log_prior_grad,
  .log_prior_hess = le_mixture_log_prior_hess,
  .draw_prior = le_mixture_draw_prior,
  .log_lik = log_lik,
  .log_lik_grad = le_mixture_log_lik_grad,
  .log_lik_grad_alone = log_lik_grad_alone,
  .log_lik_hess = le_mixture_log_lik_hess,
  .information = le_mixture_information,
  .log_lik_each = le_mixture_log_lik_each,
  .simulate = simulate,
  .exact = exact,
  .log_symmetry = le_mixture_log_symmetry,
  .log_orbit = le_mixture_log_orbit,
  .relabel = le_mixture_relabel,
  .user_dim = user_dim,
  .to_user = to_user,
  .variational = &le_mixture_variational,
  .start = le_mixture_start,
  .start_scratch = le_mixture_start_scratch,
  .to_normal = le_mixture_to_normal,
  .from_normal = le_mixture_from_normal,
  .partitions = &le_mixture_partitions,
};
