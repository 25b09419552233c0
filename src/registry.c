/* One line for each model, kernel and estimator: the name of the table at the end of its file. */
#include "registry.h"

#define MODELS(TABLE)                                                                   \
  TABLE(le_gaussian_mean_model)                                                         \
  TABLE(le_linear_model)                                                                \
  TABLE(le_softmax_model)                                                               \
  TABLE(le_glm_model)                                                                   \
  TABLE(le_zellner_siow_model)                                                          \
  TABLE(le_grouped_sums_model)                                                          \
  TABLE(le_grouped_model)                                                               \
  TABLE(le_crossed_model)                                                               \
  TABLE(le_factor_priors_model)                                                        \
  TABLE(le_crossed_sums_model)                                                          \
  TABLE(le_density_model)                                                               \
  TABLE(le_poisson_rate_model)                                                          \
  TABLE(le_binomial_probability_model)                                                  \
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

/* The tables of a kind, and the functions that find them by position or name. */
#define REGISTRY(kind, TABLES)                                                          \
  TABLES(DECLARE_##kind)                                                                \
  static const le_##kind##_ops *const kind##_tables[] = {TABLES(ADDRESS)};              \
  const le_##kind##_ops *le_##kind##_at(size_t i)                                       \
  {                                                                                     \
    return i < sizeof kind##_tables / sizeof *kind##_tables ? kind##_tables[i] : NULL;  \
  }                                                                                     \
  const le_##kind##_ops *le_find_##kind(const char *name)                               \
  {                                                                                     \
    size_t i = 0;                                                                       \
    while (le_##kind##_at(i) && strcmp(le_##kind##_at(i)->name, name) != 0) i++;        \
    return le_##kind##_at(i);                                                           \
  }
#define ADDRESS(table) &table,
#define DECLARE_model(table) extern const le_model_ops table;
#define DECLARE_kernel(table) extern const le_kernel_ops table;
#define DECLARE_estimator(table) extern const le_estimator_ops table;

REGISTRY(model, MODELS)
REGISTRY(kernel, KERNELS)
REGISTRY(estimator, ESTIMATORS)
