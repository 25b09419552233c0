/* The tables of models, kernels and estimators; one line for each. */
#include "registry.h"

extern const le_model_ops le_gaussian_mean_model, le_linear_model, le_softmax_model,
  le_mixture_model, le_clustering_model, le_low_rank_model, le_binary_attributes_model;
extern const le_kernel_ops le_rwm_kernel, le_hmc_kernel, le_sgld_kernel, le_sghmc_kernel,
  le_baoab_kernel, le_slice_kernel, le_prior_kernel, le_sweeps_kernel;
extern const le_estimator_ops le_walk_estimator, le_nested_estimator, le_laplace_estimator,
  le_hybrid_estimator, le_latent_estimator, le_chib_estimator, le_variational_estimator;

static const le_model_ops *const models[] = {&le_gaussian_mean_model,    &le_linear_model,
                                             &le_softmax_model,          &le_mixture_model,
                                             &le_clustering_model,       &le_low_rank_model,
                                             &le_binary_attributes_model};
static const le_kernel_ops *const kernels[] = {&le_rwm_kernel,   &le_hmc_kernel,   &le_sgld_kernel,
                                               &le_sghmc_kernel, &le_baoab_kernel, &le_slice_kernel,
                                               &le_prior_kernel, &le_sweeps_kernel};
static const le_estimator_ops *const estimators[] = {&le_walk_estimator,       &le_nested_estimator,
                                                     &le_laplace_estimator,    &le_hybrid_estimator,
                                                     &le_latent_estimator,     &le_chib_estimator,
                                                     &le_variational_estimator};

const le_kernel_ops *le_kernel_at(size_t i)
{
  return i < sizeof kernels / sizeof *kernels ? kernels[i] : NULL;
}

const le_estimator_ops *le_estimator_at(size_t i)
{
  return i < sizeof estimators / sizeof *estimators ? estimators[i] : NULL;
}

#define FIND(table, wanted)                                                                        \
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)                                        \
    if (strcmp(table[i]->name, wanted) == 0) return table[i];                                      \
  return NULL

const le_model_ops *le_find_model(const char *name)
{
  FIND(models, name);
}

const le_kernel_ops *le_find_kernel(const char *name)
{
  FIND(kernels, name);
}

const le_estimator_ops *le_find_estimator(const char *name)
{
  FIND(estimators, name);
}
