/* Members of the tables of models of groups that are alike.
 *
 * EVALUATE is a function of a file (model, m, theta, rows, value, grad, each, scratch). For m
 * points it adds to values and gradients, and overwrites `each`, the values of single rows. Any of
 * these may be NULL. */
#pragma once

#include "models/mixed/covariance.h"
#include "models/priors.h"

#define LIKELIHOODS(EVALUATE)                                                                      \
  static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,   \
                           double *value, double *scratch)                                         \
  {                                                                                                \
    return EVALUATE(self, m, theta, rows, value, NULL, NULL, scratch);                             \
  }                                                                                                \
  static le_status log_lik_grad(const void *self, size_t m, const double *theta,                   \
                                const le_rows *rows, double *value, double *grad,                  \
                                double *scratch)                                                   \
  {                                                                                                \
    return EVALUATE(self, m, theta, rows, value, grad, NULL, scratch);                             \
  }                                                                                                \
  static le_status log_lik_each(const void *self, size_t m, const double *theta,                   \
                                const le_rows *rows, double *value, double *scratch)               \
  {                                                                                                \
    return EVALUATE(self, m, theta, rows, NULL, NULL, value, scratch);                             \
  }

/* A new instance by READ(args, model, message), which says what is wrong, and DESTROY. */
#define CREATE(TYPE, READ, DESTROY)                                                                \
  static le_status create(const le_args *args, void **self, char *message)                         \
  {                                                                                                \
    *self = NULL;                                                                                  \
    TYPE *model = calloc(1, sizeof *model);                                                        \
    if (!model) return LE_NO_MEMORY;                                                               \
    const le_status status = READ(args, model, message);                                           \
    if (status == LE_OK) *self = model;                                                            \
    else DESTROY(model);                                                                           \
    return status;                                                                                 \
  }

/* What all these tables have. */
#define UNITS                                                                                      \
  .version = LE_CONTRACT_VERSION,                                                                  \
  .size = sizeof(le_model_ops),                                                                    \
  .dim = le_priors_dim,                                                                            \
  .scratch = scratch_size,                                                                         \
  .log_prior = le_priors_log,                                                                      \
  .log_prior_grad = le_priors_grad,                                                                \
  .log_prior_hess = le_priors_hess,                                                                \
  .draw_prior = le_priors_draw,                                                                    \
  .log_lik = log_lik,                                                                              \
  .log_lik_each = log_lik_each,                                                                    \
  .user_dim = le_priors_dim,                                                                       \
  .tails = le_mixed_tails,                                                                         \
  .to_normal = le_priors_to_normal,                                                                \
  .from_normal = le_priors_from_normal

/* And those with effects. */
#define EFFECTS                                                                                    \
  UNITS,                                                                                           \
  .effects_size = effects_size,                                                                    \
  .effects = effects
