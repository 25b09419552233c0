/* What the models with a latent variable for each observation share: their Gaussian settings, part of every state because
 * they may be inferred.  Variances then have inverse-gamma priors. */
#ifndef LE_MODELS_LATENT_SHARED_H
#define LE_MODELS_LATENT_SHARED_H

#include "models/variational_shared.h"

#include <gsl/gsl_rng.h>

typedef struct le_gaussian_prior {
  size_t width;              /* columns of the data */
  int infer;                 /* hyper-parameters are unknown */
  double prior_sd, noise_sd; /* of parameters and of the noise, where they are known */
  double shape, scale;       /* of the inverse-gamma priors of both variances */
} le_gaussian_prior;

/* Settings `width`, `infer`, `prior_sd`, `noise_sd`, `shape`, `scale`; 0 and a sentence where one is wrong. */
int le_gaussian_prior_read(const le_args *args, le_gaussian_prior *prior, char *message);
/* A variance given `n` (perhaps a fraction) normal numbers around known means, of which `squares` is the sum of squares. */
double le_draw_variance(const le_gaussian_prior *prior, const gsl_rng *rng, double n,
                        double squares);
/* Moves a number by slice sampling; `log_density`, which looks at *x, need not be normalised. */
void le_slice(const gsl_rng *rng, double *x, double (*log_density)(void *context), void *context);
/* The likelihood by which a variance of a state is moved: to the power lambda, or inside a wall. */
typedef struct le_view {
  double (*log_lik)(const void *self, size_t seen, const le_rows *rows, double lambda,
                    const double *state, double *scratch);
  const void *self;
  const le_gaussian_prior *prior;
  size_t seen;
  const le_rows *rows;
  double lambda;
  int walled; /* lambda being 1 */
  double floor, *state, *scratch;
} le_view;
void le_slice_variance(const le_view *view, const gsl_rng *rng, size_t which);
double le_log_variance_prior(const le_gaussian_prior *prior, double variance);
/* What they are to variational Bayes: the prior of both, and one that is known or that q has a factor of. */
le_inverse_gamma le_variance_prior(const le_gaussian_prior *prior);
le_expected_variance le_q_variance(const le_gaussian_prior *prior, double sd, const double *q);
/* Are n numbers all finite and positive; all whole numbers of at least 0 and below k? */
int le_all_positive(const double *x, size_t n);
int le_all_codes(const double *x, size_t n, size_t k);
/* The log of the weight of a likelihood that must exceed `floor`; one just there, but for rounding, counts `tie`. */
double le_log_above(double log_lik, double floor, double tie);
/* An index drawn by unnormalised log weights (which it overwrites with weights), or with `forced` not SIZE_MAX that one;
 * *log_density gets the log probability of what came out, and the log of the sum of the weights is returned. */
double le_draw_category(const gsl_rng *rng, size_t n, double *log_weight, size_t forced,
                        size_t *index, double *log_density);

#endif
