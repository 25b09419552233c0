/* One line for each model, kernel and estimator: the name of the table at the end of its file. */
#include "registry.h"

#define MODELS(TABLE)                                                                   \
  TABLE(le_gaussian_mean_model)                                                         \
  TABLE(le_linear_model)                                                                \
  TABLE(le_softmax_model)                                                               \
  TABLE(le_glm_model)                                                                   \
  TABLE(le_zellner_siow_model)                                                          \
  TABLE(le_density_model)                                                               \
  TABLE(le_mixture_model)                                                               \
  TABLE(le_clustering_model)                                                            \
  TABLE(le_low_rank_model)                                                              \
  TABLE(le_binary_attributes_model)

#define KERNELS(TABLE)                                                                  \
  TABLE(le_rwm_kernel)                                                                  \
  TABLE(le_hmc_kernel)                                                                  \
  TABLE(le_sgld_kernel)                                                                 \
  TABLE(le_sghmc_kernel)                                                                \
  TABLE(le_baoab_kernel)                                                                \
  TABLE(le_slice_kernel)                                                                \
  TABLE(le_prior_kernel)                                                                \
  TABLE(le_sweeps_kernel)

#define ESTIMATORS(TABLE)                                                               \
  TABLE(le_walk_estimator)                                                              \
  TABLE(le_nested_estimator)                                                            \
  TABLE(le_laplace_estimator)                                                           \
  TABLE(le_hybrid_estimator)                                                            \
  TABLE(le_latent_estimator)                                                            \
  TABLE(le_chib_estimator)                                                              \
  TABLE(le_variational_estimator)                                                       \
  TABLE(le_partitions_estimator)

#define DECLARE_MODEL(table) extern const le_model_ops table;
#define DECLARE_KERNEL(table) extern const le_kernel_ops table;
#define DECLARE_ESTIMATOR(table) extern const le_estimator_ops table;
MODELS(DECLARE_MODEL)
KERNELS(DECLARE_KERNEL)
ESTIMATORS(DECLARE_ESTIMATOR)

#define ADDRESS(table) &table,
static const le_model_ops *const models[] = {MODELS(ADDRESS)};
static const le_kernel_ops *const kernels[] = {KERNELS(ADDRESS)};
static const le_estimator_ops *const estimators[] = {ESTIMATORS(ADDRESS)};

const le_model_ops *le_model_at(size_t i)
{
  return i < sizeof models / sizeof *models ? models[i] : NULL;
}

const le_kernel_ops *le_kernel_at(size_t i)
{
  return i < sizeof kernels / sizeof *kernels ? kernels[i] : NULL;
}

const le_estimator_ops *le_estimator_at(size_t i)
{
  return i < sizeof estimators / sizeof *estimators ? estimators[i] : NULL;
}

#define FIND(table, wanted)                                                             \
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)                             \
    if (strcmp(table[i]->name, wanted) == 0) return table[i];                           \
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
