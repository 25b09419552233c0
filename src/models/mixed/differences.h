/* Second derivatives of log-likelihoods of groups as central differences of gradients, whose exact
 * forms would take as long and have many more lines. */
#pragma once

#include "logevidence.h"

/* le_model_ops.log_lik_grad of a model. */
typedef le_status (*mixed_gradient)(const void *self, size_t m, const double *theta,
                                    const le_rows *rows, double *value, double *grad,
                                    double *scratch);

/* Reads `size`, the largest absolute value of the column of each of the first n parameters, or zero
 * for logarithms; returns 0 and writes a message if they are invalid. */
int le_mixed_read_sizes(const le_args *args, size_t n, double *size, char *message);
/* Half the distance of two points for a difference, of d parameters of which the first n are those
 * with sizes: such that the linear predictor changes by a little times `unit`. It does not depend
 * on rows, which may come in blocks. */
void le_mixed_steps(size_t n, size_t d, const double *size, double unit, double *step);

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
