/* Covariance matrices of group-level effects.
 *
 * The effects of a group are u = L v with v standard normal; L L' is their covariance. L is block
 * diagonal: effects of different blocks are independent. The block of q effects is
 * diag(tau) C, where C C' is a matrix of correlations. theta has the logarithms of tau and, if the
 * effects may be correlated, q (q - 1) / 2 numbers y_ij, j < i, row by row: the partial
 * correlations of effects i and j given the effects before j are tanh(y_ij). */
#pragma once

#include "models/priors.h"
#include "models/shared.h"

/* The most effects of a group in one factor. */
enum { MIXED_EFFECTS_MOST = 8 };

typedef struct mixed_block {
  size_t q, column; /* effects, and the first of them among all effects of the factor */
  size_t sd, cor;   /* their first numbers in theta */
  int correlated;
} mixed_block;

/* The blocks of one factor. */
typedef struct mixed_covariance {
  size_t q; /* effects in all */
  size_t blocks;
  mixed_block block[MIXED_EFFECTS_MOST];
} mixed_covariance;

/* Reads `effects`, the effects of each block, `correlated`, a flag for each, and `factor`, the
 * number of its factor from 0: covariances of `factors` factors. theta has their numbers from
 * `first` on, all standard deviations before all correlations; `end` becomes the first number after
 * the standard deviations, and `d` that after all. Returns 0 and writes a message if a setting is
 * invalid. */
int le_mixed_read(const le_args *args, size_t first, size_t most, size_t *factors,
                  mixed_covariance *covariance, size_t *end, size_t *d, char *message);

/* Reads the priors of all d parameters. Those of n ranges, each the first of some parameters and
 * the end, are priors of positive numbers. */
le_status le_mixed_read_priors(const le_args *args, size_t n, const size_t (*positive)[2],
                               le_priors *priors, char *message);

/* L, q x q, lower triangular. */
void le_mixed_root(const mixed_covariance *covariance, const double *theta, double *root);
/* Adds to grad the derivatives by theta of a function whose derivatives by the entries of L are
 * `slope`, q x q. */
void le_mixed_chain(const mixed_covariance *covariance, const double *theta, const double *root,
                    const double *slope, double *grad);
/* A random start of the parameters from `first` to `d`, those of the covariances of some factors.
 * `unit` has the standard deviation of each effect at which it changes the linear predictor by
 * about as much as all rows vary; the start is below it. */
void le_mixed_start_scales(size_t factors, const mixed_covariance *covariance, size_t first,
                           size_t d, const double (*unit)[MIXED_EFFECTS_MOST], const gsl_rng *rng,
                           double *theta);
/* `sd` for a column of which n numbers have this sum of squares. */
double le_mixed_unit(double sd, double squares, double n);
/* Replaces the numbers of correlations, which are a copy of theta, by correlations. */
void le_mixed_correlations(const mixed_covariance *covariance, const double *theta, double *user);
/* Degrees of freedom of tails of the posterior (le_priors_tails). Where the likelihood of a
 * standard deviation has a peak, and is lower, but flat, near zero, the tail to the left has some
 * mass. */
double le_mixed_tails(const void *self);
