/* What clustering and binary_attributes share: k groups with Gaussian parameters, of which a row
 * has one (`exclusive`), or any number. The parameters are integrated out of states.
 *
 * State: variance of the parameters, variance of the noise, probabilities (K), and the latents:
 * the group of each row (N), or whether it has each group (N x K). */
#ifndef LE_MODELS_GROUPED_H
#define LE_MODELS_GROUPED_H

#include "models/latent_shared.h"

enum { SPREAD, NOISE, PROBABILITIES };

/* Each group has a known prior probability, unless variances and probabilities are inferred. */
typedef struct le_grouped {
  le_gaussian_prior gaussian;
  int exclusive;
  size_t k;
  double probability[];
} le_grouped;

/* How the settings of such a model are called. */
typedef struct le_group_settings {
  const char *count, *probabilities;
  size_t most;   /* groups */
  int exclusive; /* a row has one group: probabilities sum to one */
} le_group_settings;

le_status le_grouped_create(const le_group_settings *names, const le_args *args, void **self,
                            char *message);
/* The functions of a le_latent_ops that do not depend on the kind of groups. */
size_t le_grouped_size(const void *self, size_t n);
double le_grouped_symmetry(const void *self);
int le_grouped_possible(const void *self, size_t n, const double *state);

static inline double *latents_of(const le_grouped *model, double *state)
{
  return state + PROBABILITIES + model->k;
}

/* q: probabilities of the groups of each row (N x K), means of the parameters (K x D), their
 * covariance common to all columns (its diagonal if groups are exclusive), and with `infer` both
 * variances and the probabilities, with parameters of a Dirichlet (K), or of a Beta for each
 * (K x 2). */
typedef struct le_grouped_q {
  const le_grouped *model;
  int infer;
  size_t n, k, d;
  double *share, *mean, *covariance, *alpha;
  le_q_variances variances;
} le_grouped_q;

enum { Q_LATENTS, Q_PARAMETERS, Q_SPREAD, Q_NOISE, Q_PROBABILITIES, Q_FACTORS };

le_grouped_q le_grouped_divide(const le_grouped *model, size_t n, const double *q);
/* The functions of a le_variational_ops. */
size_t le_grouped_q_size(const void *self, size_t n);
size_t le_grouped_q_factors(const void *self);
double le_grouped_q_symmetry(const void *self, size_t n, const double *q, const gsl_rng *rng,
                             double *scratch);

/* Maximum likelihood: variance of the noise, probabilities (K), parameters (K x D). */
enum { M_NOISE, M_PROBABILITIES };
size_t le_grouped_m_size(const void *self, size_t n);

extern const le_variational_ops le_clustering_variational, le_clustering_maximum,
  le_binary_attributes_variational, le_binary_attributes_maximum;

#endif
