/* What clustering and binary_attributes share: k groups with Gaussian parameters, of which a row
 * has one (`exclusive`), or any number. The parameters are integrated out of states.
 *
 * State: variance of the parameters, variance of the noise, probabilities (K), and the latents:
 * the group of each row (N), or whether it has each group (N x K). */
#pragma once

#include "models/latent_shared.h"

enum { SPREAD, NOISE, PROBABILITIES };

typedef struct le_grouped_kind le_grouped_kind;

/* Each group has a known prior probability, unless variances and probabilities are inferred. */
typedef struct le_grouped {
  le_gaussian_prior gaussian;
  const le_grouped_kind *kind;
  int exclusive;
  size_t k;
  double probability[];
} le_grouped;

le_status le_grouped_create(const le_grouped_kind *kind, const le_args *args, void **self,
                            char *message);
/* The functions of a le_latent_ops that do not depend on the kind of groups. */
size_t le_grouped_size(const void *self, size_t n);
void le_grouped_start(const void *self, const gsl_rng *rng, double *state);
double le_grouped_log_prior(const void *self, const le_chain *chain);
void le_grouped_simulate(const void *self, const le_chain *chain, double *rows);
double le_grouped_symmetry(const void *self);
int le_grouped_possible(const void *self, size_t n, const double *state);
size_t le_grouped_parts(const void *self);
double le_grouped_part_kind(const void *self, size_t part);
void le_grouped_renumber(const void *self, size_t n, const size_t *image, const double *state,
                         double *out);
void le_grouped_likeness(const void *self, size_t n, const double *one, const double *other,
                         double *likeness);

static inline double *latents_of(const le_grouped *model, double *state)
{
  return state + PROBABILITIES + model->k;
}

/* The log probability of attribute a, or of its absence. */
static inline double log_bit(const double *state, size_t a, double bit)
{
  return bit != 0 ? log(state[PROBABILITIES + a]) : log1p(-state[PROBABILITIES + a]);
}

/* Draws the probabilities, on which the likelihood does not depend given the latents, and the
 * variances. */
void le_grouped_sweep_settings(const le_grouped *model,
                               double (*log_lik)(const void *self, const le_chain *chain),
                               const le_chain *chain);

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

/* What these models do not share. */
struct le_grouped_kind {
  const char *count, *probabilities; /* names of settings */
  size_t most;                       /* groups */
  int exclusive;                     /* a row has one group: probabilities sum to one */
  /* Updates of q; log_p has the expected logs of the probabilities, or for each its own and that of
   * its complement. */
  void (*update_latents)(const le_grouped_q *f, const le_rows *rows, const double *log_p,
                         double *scratch);
  le_status (*update_parameters)(const le_grouped_q *f, const le_rows *rows, double *scratch);
  /* The expected sum of squares of rows minus their means. */
  double (*residuals)(const le_grouped_q *f, const le_rows *rows, double *scratch);
};

extern const le_grouped_kind le_clustering_kind, le_binary_attributes_kind;

/* Maximum likelihood: variance of the noise, probabilities (K), parameters (K x D). */
enum { M_NOISE, M_PROBABILITIES };
size_t le_grouped_m_size(const void *self, size_t n);

extern const le_variational_ops le_grouped_variational, le_clustering_maximum,
  le_binary_attributes_maximum;
