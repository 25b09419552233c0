/* Independent normal priors: theta_a ~ N(mean_j, sd_j^2) with j = a mod p, for p settings and any
 * number of copies of them (one per class). The models give their own functions the contract's
 * signatures and call these. */
#ifndef LE_MODELS_NORMAL_PRIOR_H
#define LE_MODELS_NORMAL_PRIOR_H

#include "logevidence.h"

typedef struct le_normal_prior {
  size_t p, d;
  const double *mean, *sd; /* p each; no mean: zero */
  double constant;         /* of the log density, summed over all d */
} le_normal_prior;

le_normal_prior le_normal_prior_of(size_t p, size_t copies, const double *mean, const double *sd);
void le_normal_prior_log(const le_normal_prior *prior, size_t m, const double *theta,
                         double *value);
void le_normal_prior_grad(const le_normal_prior *prior, size_t m, const double *theta,
                          double *grad);
void le_normal_prior_hess(const le_normal_prior *prior, double *hess);
void le_normal_prior_draw(const le_normal_prior *prior, const gsl_rng *rng, double *theta);

#endif
