/* Functions for mean-field variational Bayes shared by all models: the factors of q, what each adds
 * to the bound, starting values, and the gain from relabelling.
 *
 * A `gain` is the expected log prior of a factor's unknowns plus the entropy of the factor, that is
 * minus its Kullback-Leibler divergence from the prior. */
#pragma once

#include "models/shared.h"

#include <gsl/gsl_rng.h>

/* ---- variances: inverse gamma, q[0] is the shape and q[1] the scale ---- */

typedef struct le_expected_variance {
  double precision, log; /* E[1 / x], E[log x] */
} le_expected_variance;

typedef struct le_inverse_gamma {
  double shape, scale;
} le_inverse_gamma;

le_expected_variance le_expect_variance(const double *q);
/* The update given n normal numbers around known means, where `squares` is the expected sum of
 * squares. */
void le_update_variance(le_inverse_gamma prior, double n, double squares, double *q);
double le_variance_gain(le_inverse_gamma prior, const double *q);
double le_draw_inverse_gamma(const double *q, const gsl_rng *rng);

/* ---- proportions: Dirichlet with k parameters, all equal in the prior; a probability has k = 2
 * ---- */

void le_expect_log_proportions(size_t k, const double *alpha, double *out);
double le_proportions_gain(size_t k, double prior, const double *alpha);
/* log of a gamma draw, which does not underflow for small shapes. Logs of proportions are
 * differences of these. */
double le_draw_log_gamma(const gsl_rng *rng, double shape);
void le_draw_proportions(size_t k, const double *alpha, const gsl_rng *rng, double *out);

/* ---- normal vectors with mean zero, n numbers in all; `squares` is the expected sum of squares,
 * half_log_det half the log determinant of the covariance of q ---- */

double le_normal_gain(double n, double squares, double half_log_det, le_expected_variance prior);

/* ---- categories ---- */

/* Converts log weights to weights, of which the largest is one, or to shares that sum to one;
 * returns the log of the sum of the weights. *total: the sum of those that are returned. */
double le_to_weights(size_t k, double *log_weight, double *total);
double le_to_shares(size_t k, double *weight);
/* -sum p log p */
double le_entropy(size_t n, const double *p);
/* An index with a probability in proportion to its weight; the weights sum to `total`. */
size_t le_draw_index(size_t k, const double *weight, double total, const gsl_rng *rng);

/* Assigns each row to the nearest of k seed rows. Seeds are chosen one after another; a row far
 * from the seeds so far is more likely (k-means++). Squared distances in column j are multiplied by
 * weight[j], if given. `nearest` has n doubles. */
void le_start_labels(const le_rows *rows, size_t k, const double *weight, const gsl_rng *rng,
                     double *label, double *nearest);
/* The shares of these labels. Writes 2 n doubles of scratch. */
void le_start_shares(const le_rows *rows, size_t k, const double *weight, const gsl_rng *rng,
                     double *share, double *scratch);
/* Shares of known labels. */
void le_label_shares(size_t n, size_t k, const double *label, double *share);

/* log of the number of permutations of k things that exchange only things of equal value. */
double le_log_exchanges(size_t k, const double *value);
/* The increase of the bound if q becomes the mixture of all its relabellings, that is of all
 * exchanges among k components with equal `value` (all components if NULL). It is computed as the
 * mutual information of the latents and the relabelling, a lower bound for that of all unknowns.
 * `share` (n x k) are the probabilities of the category of each row, or, with `bits`, of its
 * attributes. */
double le_relabelling_gain(size_t n, size_t k, const double *share, int bits, const double *value,
                           const gsl_rng *rng, double *scratch);
size_t le_relabelling_scratch(size_t n, size_t k);
