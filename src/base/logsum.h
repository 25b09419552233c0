/* Sums of exponentials, computed in logs. */
#pragma once

#include <stddef.h>

/* log sum exp(x_i); -Inf for an empty or all -Inf set. */
double le_logsumexp(const double *x, size_t n);
/* log of the mean of exp(x_i). */
double le_logmeanexp(const double *x, size_t n);
/* Normalised weights exp(x_i - logsumexp); returns the logsumexp. */
double le_normalise(const double *x, size_t n, double *weight);
/* (sum w)^2 / sum w^2 with w_i = exp(scale * x_i), of the entries whose weight is at least `least`;
 * of all if `weight` is NULL. Entries of -Inf have weight zero; 0 if all are -Inf. */
double le_effective_size(const double *x, size_t n, double scale, const double *weight,
                         double least);
/* log of the harmonic mean of exp(x); each round has one value per chain. *se is the standard error
 * of the log, from the spread of the chains' means. */
double le_logharmonic(const double *x, size_t chains, size_t rounds, double *se);
