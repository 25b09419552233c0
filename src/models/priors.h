/* Independent priors of the parameters of a model: each has a kind and up to three numbers.
 *
 * Coefficients, and the inverse hyperbolic tangents of partial correlations, are real numbers.
 * Further parameters of a family, such as a standard deviation, are
 * positive; theta is their logarithm, and the densities include the Jacobian, exp(theta). */
#pragma once

#include "logevidence.h"

/* The words of R/spec-priors.R, in the same order. */
typedef enum le_prior_kind {
  LE_PRIOR_NORMAL,        /* location, scale */
  LE_PRIOR_STUDENT,       /* location, scale, degrees of freedom */
  LE_PRIOR_HALF_NORMAL,   /* -, scale */
  LE_PRIOR_HALF_STUDENT,  /* -, scale, degrees of freedom */
  LE_PRIOR_INVERSE_GAMMA, /* -, scale, shape */
  LE_PRIOR_EXPONENTIAL,   /* -, scale (one over the rate) */
  LE_PRIOR_CORRELATION,   /* -, -, shape: tanh(theta) is 2 x - 1 with x ~ beta(shape, shape) */
  LE_PRIOR_KINDS
} le_prior_kind;

typedef struct le_prior {
  le_prior_kind kind;
  double location, scale, shape;
  double precision; /* 1 / scale^2 */
  double constant;  /* of the log density */
} le_prior;

typedef struct le_priors {
  size_t d;
  le_prior *of;
  double *user; /* scale, centre and intercept of each parameter, or NULL; see le_user_read() */
  double *mean; /* of each parameter: `mean_of` and `mean_share`, or NULL; see le_means_read() */
} le_priors;

/* Reads `prior_kind`, `prior_location`, `prior_scale` and `prior_shape`: n numbers each. Without
 * them priors are normal; models that have no others say `prior_mean` and `prior_sd` instead.
 * Parameters with `real` (NULL: all) must have priors on the real line, the others on positive
 * numbers. Returns 0 and writes a message if a setting is invalid. */
int le_priors_read(const le_args *args, size_t n, const unsigned char *real, le_prior *prior,
                   char *message);
int le_prior_is_real(const le_prior *prior);

/* From coefficients of standardised columns to those of the columns as given: 3 d numbers to be
 * freed by the caller, or NULL if they are the same. `user_scale` divides a coefficient;
 * `user_centre` times the result is taken from the parameter number `user_intercept`, if that is
 * not -1. */
le_status le_user_read(const le_args *args, size_t d, double **user, char *message);

/* Parameters that are the logarithm of a standard deviation of effects: the coefficient that is the
 * mean of these effects, or -1 (`mean_of`), and one over their number (`mean_share`). 2 d numbers
 * to be freed by the caller, or NULL if there are none. */
le_status le_means_read(const le_args *args, size_t d, double **mean, char *message);

/* The log density of one parameter. */
double le_prior_log(const le_prior *prior, double theta);

/* Members of the table of a model whose instance begins with le_priors. `tails`: the smallest
 * degrees of freedom of Student t priors, or 0. */
size_t le_priors_dim(const void *self);
void le_priors_log(const void *self, size_t m, const double *theta, double *value);
void le_priors_grad(const void *self, size_t m, const double *theta, double *grad);
void le_priors_hess(const void *self, const double *theta, double *hess);
void le_priors_draw(const void *self, const gsl_rng *rng, double *theta);
void le_priors_to_user(const void *self, const double *theta, double *user);
double le_priors_tails(const void *self);
/* Coordinates for scales that may be near zero, where the likelihood is flat and the density of
 * theta falls as exp(theta), slowly, to the left; and for means of effects, which vary more where
 * the effects do. */
double le_priors_to_normal(const void *self, const double *peak, const double *theta, double *out);
int le_priors_from_normal(const void *self, const double *peak, double *point);
