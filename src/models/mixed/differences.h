/* Second derivatives of log-likelihoods of groups as central differences of gradients, whose exact
 * forms would take as long and have many more lines. */
#ifndef LE_MODELS_MIXED_DIFFERENCES_H
#define LE_MODELS_MIXED_DIFFERENCES_H

#include "logevidence.h"

/* le_model_ops.log_lik_grad of a model. */
typedef le_status (*mixed_gradient)(const void *self, size_t m, const double *theta,
                                    const le_rows *rows, double *value, double *grad,
                                    double *scratch);

/* Numbers of `room` for d parameters. */
size_t le_mixed_differences_room(size_t d);
/* Adds values and gradients of m points, as central differences of `log_lik`, a function as
 * le_model_ops.log_lik; `step` is the same for all points. */
le_status le_mixed_slopes(const void *self, size_t d,
                          le_status (*log_lik)(const void *self, size_t m, const double *theta,
                                               const le_rows *rows, double *value,
                                               double *scratch),
                          size_t m, const double *theta, const le_rows *rows, const double *step,
                          double *value, double *grad, double *room, double *scratch);

/* Adds the gradient and second derivatives. `step` has half the distance of the two points for each
 * parameter; `scratch` is that of the gradient at 2 d points. */
le_status le_mixed_differences(const void *self, size_t d, mixed_gradient gradient,
                               const double *theta, const le_rows *rows, const double *step,
                               double *grad, double *hess, double *room, double *scratch);

#endif
