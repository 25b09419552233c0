/* The standard error of log Z from who descends from whom.
 *
 * With weights W at step t grouped by the particles' ancestors at step s, V(s, t) = sum_a (sum_{i from a} W_i - 1/M_s)^2
 * estimates the relative variance of Z (Chan & Lai 2013, Lee & Whiteley 2018), but ancestors far back are soon the same
 * for all.  Looking back L steps only, Olsson & Douc (2019), and adding what each step contributes,
 *
 *     V = sum_t [ V(t - L, t) - V(t - L, t - 1) ],
 *
 * trades a little bias (kernels forget in about L steps) for a variance that does not blow up.  Without resampling it
 * is the relative variance of the weights, exactly.
 *
 * Random numbers of offspring N_a spread the groups even where all descendants are worth the same and Z is not changed
 * at all, so sum_a (N_a / M - W_a)^2 is taken off at each resampling by a scheme that draws offspring independently (1/M
 * on average for the multinomial one, as in the estimator of Lee & Whiteley). */
#ifndef LE_CORE_GENEALOGY_H
#define LE_CORE_GENEALOGY_H

#include "base/arena.h"
#include "base/archive.h"

enum { LE_LAGS_MOST = 16 };

typedef struct le_genealogy {
  size_t lag, most;                   /* L, capacity in particles */
  size_t steps;                       /* how far back the ancestors below reach, at most lag */
  size_t *ancestor[LE_LAGS_MOST + 1]; /* ancestor[l][i]: of particle i, l steps back */
  size_t size[LE_LAGS_MOST + 1];      /* particles there were then */
  double before;                      /* V(t - L, t - 1), waiting for step t */
  double variance;                    /* V so far */
  double excess;                      /* of offspring numbers since the last weighing */
  double *group;
  size_t *next;
} le_genealogy;

void le_genealogy_alloc(le_genealogy *genealogy, size_t lag, size_t most, le_arena *arena);
/* m particles of equal weight, related to nobody. */
void le_genealogy_start(le_genealogy *genealogy, size_t m);
/* Weights (normalised) have changed at a new step. */
void le_genealogy_weigh(le_genealogy *genealogy, size_t m, const double *weight);
/* n particles of these weights were replaced by m offspring, drawn independently or not; between two weighings. */
void le_genealogy_resample(le_genealogy *genealogy, size_t n, const double *weight, int independent,
                           size_t m, const size_t *ancestor);
void le_genealogy_archive(le_genealogy *genealogy, le_archive *archive);

#endif
