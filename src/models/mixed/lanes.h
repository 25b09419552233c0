/* Groups with one effect and a log-concave density, for many particles side by side. Groups are
 * often small: the numbers of a tile are pairs of a row and a particle. */
#pragma once

#include "models/mixed/unit.h"

/* Whether this model can be evaluated in this way, and the scratch that it needs. */
int le_lanes_possible(const mixed *model);
size_t le_lanes_scratch(const mixed *model);
/* Overwrites `value` with the log-likelihood of the group at `values` for m particles; gradients
 * are added to `grad` if it is not NULL. */
void le_lanes_evaluate(const mixed *model, const double *values, size_t m, const double *theta,
                       double *value, double *grad, double *scratch);
