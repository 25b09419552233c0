/* The standard error of log Z from the ancestors of the particles.
 *
 * Let W be the weights at step t, grouped by the ancestors of the particles at step s. Then V(s, t)
 * = sum_a (sum_{i from a} W_i - 1/M_s)^2 estimates the relative variance of Z (Chan & Lai 2013, Lee
 * & Whiteley 2018). After many steps all particles have the same ancestor and the estimate breaks
 * down. Olsson & Douc (2019) therefore look back only L steps, and we add the contribution of each
 * step:
 *
 *     V = sum_t [ V(t - L, t) - V(t - L, t - 1) ].
 *
 * This has a small bias (kernels forget within about L steps) but its variance stays bounded.
 * Without resampling V is exactly the relative variance of the weights.
 *
 * Random offspring numbers N_a make the groups uneven even if all descendants have the same weight
 * and Z does not change. So sum_a (N_a / M - W_a)^2 is subtracted at each resampling by a scheme
 * with independent offspring (1/M on average for multinomial resampling, as in the estimator of Lee
 * & Whiteley). This difference is noisy and can be negative: then the result is at least the sum of
 * the relative variances of the weights at each resampling and at the end, which is what remains if
 * moves forget all. */
#pragma once

#include "base/arena.h"
#include "base/archive.h"

enum { LE_LAGS_MOST = 16 };

typedef struct le_genealogy {
  size_t lag, most;                   /* set once: L; number of particles that fit */
  size_t steps;                       /* how many steps back ancestors are known, at most lag */
  size_t *ancestor[LE_LAGS_MOST + 1]; /* ancestor[l][i]: the ancestor of particle i, l steps back */
  size_t size[LE_LAGS_MOST + 1];      /* number of particles l steps back */
  double before;                      /* V(t - L, t - 1), to be subtracted at step t */
  double variance;                    /* sum so far */
  double excess; /* excess variance from random offspring numbers since the last weighing */
  double own, least; /* relative variance of the weights now, and the sum at resamplings */
  int subtracted;    /* whether offspring were drawn independently */
  double *group; /* scratch */
  size_t *next;  /* scratch */
} le_genealogy;

void le_genealogy_alloc(le_genealogy *genealogy, size_t lag, size_t most, le_arena *arena);
/* Starts with m unrelated particles of equal weight. */
void le_genealogy_start(le_genealogy *genealogy, size_t m);
/* Call at each new step with the new normalised weights. */
void le_genealogy_weigh(le_genealogy *genealogy, size_t m, const double *weight);
/* n particles of these weights were replaced by m offspring. `independent`: whether offspring were
 * drawn independently. Call between two weighings. */
void le_genealogy_resample(le_genealogy *genealogy, size_t n, const double *weight, int independent,
                           size_t m, const size_t *ancestor);
/* The relative variance of Z. */
double le_genealogy_variance(const le_genealogy *genealogy);
void le_genealogy_archive(le_genealogy *genealogy, le_archive *archive);
