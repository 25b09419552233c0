/* Independent priors of the parameters of a regression: each has a kind and up to three numbers.
 *
 * Coefficients are real numbers. Further parameters of a family, such as a standard deviation, are
 * positive; theta is their logarithm, and the densities include the Jacobian, exp(theta). */
#ifndef LE_MODELS_GLM_PRIORS_H
#define LE_MODELS_GLM_PRIORS_H

#include "logevidence.h"

/* The words of R/priors.R, in the same order. */
typedef enum le_prior_kind {
  LE_PRIOR_NORMAL,        /* location, scale */
  LE_PRIOR_STUDENT,       /* location, scale, degrees of freedom */
  LE_PRIOR_HALF_NORMAL,   /* -, scale */
  LE_PRIOR_HALF_STUDENT,  /* -, scale, degrees of freedom */
  LE_PRIOR_INVERSE_GAMMA, /* -, scale, shape */
  LE_PRIOR_EXPONENTIAL,   /* -, scale (one over the rate) */
  LE_PRIOR_KINDS
} le_prior_kind;

typedef struct le_prior {
  le_prior_kind kind;
  double location, scale, shape;
  double constant; /* of the log density */
} le_prior;

/* Reads `prior_kind`, `prior_location`, `prior_scale` and `prior_shape`: n numbers each. Parameters
 * with `real` must have priors on the real line, the others on positive numbers. `numbers` is room
 * for n doubles. Returns 0 and writes a message if a setting is invalid. */
int le_priors_read(const le_args *args, size_t n, const unsigned char *real, le_prior *prior,
                   double *numbers, char *message);

/* The log density of one parameter. */
double le_prior_log(const le_prior *prior, double theta);
/* The operations of a model whose d parameters have these priors. */
void le_priors_log(const le_prior *prior, size_t d, size_t m, const double *theta, double *value);
void le_priors_grad(const le_prior *prior, size_t d, size_t m, const double *theta, double *grad);
void le_priors_hess(const le_prior *prior, size_t d, const double *theta, double *hess);
void le_priors_draw(const le_prior *prior, size_t d, const gsl_rng *rng, double *theta);

/* The smallest degrees of freedom of Student t priors among them, or 0. */
double le_priors_tails(const le_prior *prior, size_t d);

#endif
