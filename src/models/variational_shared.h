/* What mean-field variational Bayes has in common for all models: the factors that q is made of, what each adds to the bound,
 * starts, and what relabelling is worth.
 *
 * A `gain` is the expected log prior of a factor's unknowns plus the factor's entropy: minus its divergence from the prior. */
#ifndef LE_MODELS_VARIATIONAL_SHARED_H
#define LE_MODELS_VARIATIONAL_SHARED_H

#include "models/shared.h"

#include <gsl/gsl_rng.h>

/* ---- variances: inverse gamma, q[0] the shape and q[1] the scale ---- */

typedef struct le_expected_variance {
  double precision, log; /* E[1 / x], E[log x] */
} le_expected_variance;

typedef struct le_inverse_gamma {
  double shape, scale;
} le_inverse_gamma;

le_expected_variance le_known_variance(double sd);
le_expected_variance le_expect_variance(const double *q);
/* Given n normal numbers around known means, of which `squares` is the expected sum of squares. */
void le_update_variance(le_inverse_gamma prior, double n, double squares, double *q);
/* Around a number, as precise as n normal numbers make it. */
void le_point_variance(le_inverse_gamma prior, double n, double value, double *q);
double le_variance_gain(le_inverse_gamma prior, const double *q);
double le_draw_inverse_gamma(const double *q, const gsl_rng *rng);

/* ---- proportions: Dirichlet of k parameters, the prior's all the same; a probability is one of k = 2 ---- */

void le_expect_log_proportions(size_t k, const double *alpha, double *out);
double le_proportions_gain(size_t k, double prior, const double *alpha);
/* Their logs, up to a constant: the logs of gamma draws, of which small shapes leave something. */
double le_draw_log_gamma(const gsl_rng *rng, double shape);
void le_draw_proportions(size_t k, const double *alpha, const gsl_rng *rng, double *out);

/* ---- normal vectors around zero, of n numbers in all: E of the sum of squares, half the log determinant of q ---- */

double le_normal_gain(double n, double squares, double half_log_det, le_expected_variance prior);

/* ---- categories ---- */

/* Log weights to shares that sum to one. */
void le_to_shares(size_t k, double *weight);
/* -sum p log p */
double le_entropy(size_t n, const double *p);
size_t le_draw_share(size_t k, const double *share, const gsl_rng *rng);

/* Shares that give each row to the nearest of k rows, of which each is the likelier to be chosen the farther it is from those
 * before.  Squared distances in column j count by weight[j], or alike.  Writes n doubles of scratch. */
void le_start_shares(const le_rows *rows, size_t k, const double *weight, const gsl_rng *rng,
                     double *share, double *scratch);
/* Shares of labels that are known. */
void le_label_shares(size_t n, size_t k, const double *label, double *share);

/* log of the number of ways to exchange k things that can only change places with those of the same value. */
double le_log_exchanges(size_t k, const double *value);
/* What q gains when it is made the mixture of all its relabellings, that is of all ways to exchange those of k parts that have
 * the same value (all, if NULL): the mutual information of latents and labelling, which is at most that of everything.
 * `share` (n x k) are probabilities of each row's category, or with `bits` of its attributes. */
double le_relabelling_gain(size_t n, size_t k, const double *share, int bits, const double *value,
                           const gsl_rng *rng, double *scratch);
size_t le_relabelling_scratch(size_t n, size_t k);

#endif
