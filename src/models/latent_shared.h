/* Functions shared by the models with a latent variable for each observation, and their Gaussian
 * settings. These are part of every state because they may be inferred; variances then have
 * inverse-gamma priors. */
#ifndef LE_MODELS_LATENT_SHARED_H
#define LE_MODELS_LATENT_SHARED_H

#include "models/variational_shared.h"

#include <gsl/gsl_rng.h>

typedef struct le_gaussian_prior {
  size_t width;              /* columns of the data */
  int infer;                 /* 1: variances and probabilities are unknown */
  double prior_sd, noise_sd; /* of parameters and of the noise, if they are known */
  double shape, scale;       /* of the inverse-gamma priors of both variances */
} le_gaussian_prior;

/* A model with k components or attributes, each of which has a known prior probability, unless
 * variances and probabilities are inferred. */
typedef struct le_grouped {
  le_gaussian_prior gaussian;
  size_t k;
  double probability[];
} le_grouped;

/* How the settings of such a model are called. */
typedef struct le_group_settings {
  const char *count, *probabilities;
  size_t most;   /* groups */
  int exclusive; /* a row has one group: probabilities sum to one */
} le_group_settings;

/* Reads the settings `width`, `infer`, `prior_sd`, `noise_sd`, `shape` and `scale`; if one is
 * wrong, returns 0 and writes a message. */
int le_gaussian_prior_read(const le_args *args, le_gaussian_prior *prior, char *message);
/* The column count of any model that begins with a le_gaussian_prior. */
size_t le_gaussian_width(const void *self);
le_status le_grouped_create(const le_group_settings *names, const le_args *args, void **self,
                            char *message);
/* log of the number of exchanges of groups with equal probabilities. */
double le_grouped_symmetry(const void *self);
/* The variance of a state for zero rows: drawn from the prior, or known. */
double le_start_variance(const le_gaussian_prior *prior, double sd, const gsl_rng *rng);
/* Draws a variance given `n` (not necessarily whole) normal numbers around known means with this
 * sum of squares. */
double le_draw_variance(const le_gaussian_prior *prior, const gsl_rng *rng, double n,
                        double squares);
/* Moves *x by slice sampling; `log_density` reads *x and need not be normalised. */
void le_slice(const gsl_rng *rng, double *x, double (*log_density)(void *context), void *context);
/* The likelihood used to move a variance of a state: to the power lambda, or under a likelihood
 * constraint. */
typedef struct le_view {
  double (*log_lik)(const void *self, size_t seen, const le_rows *rows, double lambda,
                    const double *state, double *scratch);
  const void *self;
  const le_gaussian_prior *prior;
  size_t seen;
  const le_rows *rows;
  double lambda;
  int walled; /* 1: under a constraint, with lambda = 1 */
  double floor, *state, *scratch;
} le_view;
void le_slice_variance(const le_view *view, const gsl_rng *rng, size_t which);
double le_log_variance_prior(const le_gaussian_prior *prior, double variance);
/* The variances for variational Bayes: the prior of both, and the expectation of one that is known
 * or has a factor in q. */
le_inverse_gamma le_variance_prior(const le_gaussian_prior *prior);
le_expected_variance le_q_variance(const le_gaussian_prior *prior, double sd, const double *q);
/* A factor to start from: centred on `*value`, as after n observations, or on the prior if NULL. */
void le_q_start_variance(const le_gaussian_prior *prior, double n, const double *value, double *q);
double le_q_draw_variance(const le_gaussian_prior *prior, double sd, const double *q,
                          const gsl_rng *rng);
/* Whether n numbers are all finite and positive; whether all are whole numbers from 0 to k - 1. */
int le_all_positive(const double *x, size_t n);
int le_all_codes(const double *x, size_t n, size_t k);
/* The log weight under the constraint that the likelihood exceeds `floor`: 0 above, -Inf below;
 * log(tie) if it equals `floor` up to rounding. */
double le_log_above(double log_lik, double floor, double tie);
/* Draws an index from unnormalised log weights (overwritten with weights), or takes the index
 * `forced` if it is not SIZE_MAX. *log_density is the log probability of the result; returns the
 * log of the sum of the weights. */
double le_draw_category(const gsl_rng *rng, size_t n, double *log_weight, size_t forced,
                        size_t *index, double *log_density);

#endif
