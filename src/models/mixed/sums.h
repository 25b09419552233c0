/* Linear regression with group-level effects of one factor, from sums over each group.
 *
 * The n rows of a group have y = X w + Z u + noise, u = L v. Let M hold the columns of Z, then
 * those of X that Z lacks, then y; and let M = Q R with R upper triangular. In the coordinates of Q
 * the residuals are R e, where e has -w_j at the column of covariate j and 1 at y, and Z is the
 * corner of R. The likelihood depends on the group by n and R alone; all rows of R after those of Z
 * have independent noise. Nothing is squared, so collinear columns lose no digits. */
#pragma once

#include "models/mixed/covariance.h"
#include "models/priors.h"

enum { SUMS_COLUMNS_MOST = 128, EFFECTS_SQUARED = MIXED_EFFECTS_MOST * MIXED_EFFECTS_MOST };

/* Where numbers of a particle are: -w by columns of M, 1 / sigma (its slope is by log sigma), log
 * sigma + log(2 pi) / 2 (its slope is the value), and L, q x q. */
typedef struct sums_shape {
  size_t q, columns;
  size_t rate, constant, root, numbers;
} sums_shape;
