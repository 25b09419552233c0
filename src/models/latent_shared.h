/* Functions shared by the models with a latent variable for each observation, and their Gaussian
 * settings. Variances are at the front of every state because they may be inferred; they then have
 * inverse-gamma priors. */
#pragma once

#include "models/variational_shared.h"

#include <gsl/gsl_rng.h>

enum { VARIANCES_MOST = 3 };

/* Every such model begins with it. */
typedef struct le_gaussian_prior {
  size_t width;              /* columns of the data */
  int infer;                 /* 1: variances and probabilities are unknown */
  size_t variances;          /* of parameters, and the last of the noise */
  double sd[VARIANCES_MOST]; /* their square roots, if they are known */
  le_inverse_gamma prior;    /* of each, if not */
} le_gaussian_prior;

/* Reads the settings `width`, `infer`, `prior_sd`, `noise_sd`, `shape` and `scale`; if one is
 * wrong, returns 0 and writes a message. With three variances, sd[0] is not set. */
int le_gaussian_prior_read(const le_args *args, size_t variances, le_gaussian_prior *prior,
                           char *message);
/* The column count of a model. */
size_t le_gaussian_width(const void *self);

/* ---- variances of a state ---- */

/* Those of a state for zero rows: drawn from the prior, or known. */
void le_start_variances(const le_gaussian_prior *prior, const gsl_rng *rng, double *state);
/* Draws a variance given `n` (not necessarily whole) normal numbers around known means with this
 * sum of squares. */
double le_draw_variance(const le_gaussian_prior *prior, const gsl_rng *rng, double n,
                        double squares);
/* Adds their log prior densities if they are unknown. */
void le_add_variance_priors(const le_gaussian_prior *prior, const double *state, double *sum);
/* Moves *x by slice sampling; `log_density` reads *x and need not be normalised. */
void le_slice(const gsl_rng *rng, double *x, double (*log_density)(void *context), void *context);
/* Moves a variance by slice sampling given this likelihood. */
void le_slice_variance(const void *self, double (*log_lik)(const void *self, const le_chain *chain),
                       const le_chain *chain, size_t which);

/* ---- variances for variational Bayes ---- */

/* Each has two numbers of q. */
typedef struct le_q_variances {
  const le_gaussian_prior *prior;
  double *q;
  double count[VARIANCES_MOST]; /* of normal numbers that have this variance */
  le_expected_variance expect[VARIANCES_MOST];
} le_q_variances;

le_q_variances le_q_variances_at(const le_gaussian_prior *prior, double *q, const double *count);
/* Factors to start from: centred on those of a state, as after all rows, or on the prior if
 * NULL. */
void le_q_start_variances(const le_q_variances *v, const double *state);
/* The update given the expected sum of squares. */
void le_q_update_variance(const le_q_variances *v, size_t which, double squares);
/* Adds the gains of those that are unknown. */
void le_q_add_variance_gains(const le_q_variances *v, double *bound);
void le_q_draw_variances(const le_q_variances *v, const gsl_rng *rng, double *state);
/* Updates the factors of q from `first` on. */
le_status le_q_update_from(const le_variational_ops *ops, size_t first, const void *self,
                           const le_rows *rows, double *q, double *scratch);

/* ---- chains and their states ---- */

static inline const double *row_of(const le_rows *rows, size_t i)
{
  return rows->values + i * rows->width;
}

/* The chain before its last row was added. */
static inline le_chain le_without_last(const le_chain *chain)
{
  le_chain rest = *chain;
  rest.rows.n--;
  return rest;
}

/* The log weight of a state with this log-likelihood under the constraint of the chain: 0 above
 * `floor`, -Inf below; log(tie) if it equals `floor` up to rounding. */
double le_log_above(const le_chain *chain, double log_lik);
/* Whether n numbers are all finite and positive. */
int le_all_positive(const double *x, size_t n);

/* ---- linear algebra of k regressors ---- */

/* The inverse of the matrix with this Cholesky factor. */
void le_inverse(const double *factor, size_t k, double *inverse);
/* Replaces the k x d matrix B by P^-1 B, where P has this Cholesky factor, and returns the trace of
 * B' P^-1 B. `work` has 2 k doubles. */
double le_solve_columns(const double *factor, size_t k, size_t d, double *b, double *work);

/* Adds weight z z' to the k x k moments, and weight z y' to the k x d ones unless y is NULL. */
void le_add_moments(size_t k, size_t d, const double *z, const double *y, double weight,
                    double *moments, double *cross);
/* A step of EM: the coefficients of k latents for each column, given the sums over rows of their
 * second moments, which become a Cholesky factor, and of their products with the rows (k x d). Also
 * the variance of the residuals, unless it is NULL. `work` has 2 k doubles. */
le_status le_maximise_regression(size_t k, const le_rows *rows, double *moments,
                                 const double *cross, double *coefficient, double *variance,
                                 double *work);
/* Half the log determinant of a covariance; NaN if it is not positive definite. */
double le_half_log_det(const double *covariance, size_t k, double *scratch);
