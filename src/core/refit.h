/* A proposal that is refitted to its own weighted draws (adaptive mixture importance sampling).
 *
 * The first proposal is one component of a mixture. In each round draws of the present mixture are
 * weighted by the density over the mixture of all rounds' proposals; a t distribution is added
 * where the weights are largest, with the shape of the weighted draws around that place; and the
 * shares of all components are fitted to the weighted draws by EM. Components do not change once
 * they are there, so the density of a draw under each of them is computed once. The rounds end when
 * the effective sample size that the new proposal would have is large, or does not grow any more.
 * The estimate comes from fresh draws.
 *
 * Close to incremental mixture importance sampling (Raftery and Bao 2010, Biometrics 66), with the
 * weights of the deterministic mixture (Cornuet et al. 2012, Scandinavian Journal of Statistics
 * 39).
 */
#pragma once

#include "base/archive.h"
#include "core/component.h"

/* Degrees of freedom of the components added. */
#define LE_REFIT_FREEDOM 5.0
enum { LE_REFIT_PARTS_MOST = 16 };

typedef struct le_refit_mixture {
  size_t parts; /* components added */
  double share[LE_REFIT_PARTS_MOST + 1]; /* the first is that of the first proposal */
  double worth; /* effective draws of a draw */
} le_refit_mixture;

typedef struct le_refit {
  size_t d, room;      /* set once: dimension; draws in all */
  size_t lot, n, poor; /* draws of a round, and so far; rounds without a gain */
  int done;
  le_mode part[LE_REFIT_PARTS_MOST];
  le_refit_mixture now, best;            /* the best one is that of all rounds */
  double drawn[LE_REFIT_PARTS_MOST + 1]; /* sums of the shares over all draws */
  double *theta, *value; /* draws, and the log density there; one block with all that follows */
  double *column;        /* room x (LE_REFIT_PARTS_MOST + 1): log densities of the components */
  double *density, *top; /* scratch: densities relative to a draw's largest, and its log */
  double *weight, *work; /* scratch */
} le_refit;

/* Starts with lots of this size. Components stay in the arena, all other memory is released by
 * le_refit_free(). */
le_status le_refit_start(le_refit *refit, size_t d, size_t lot, le_arena *arena);
void le_refit_free(le_refit *refit);
/* After the caller has put a lot into `theta` and `value`, and its log density under the first
 * proposal into the first column: one round. Sets `done` after the last. Rounds also end if `least`
 * effective draws of a draw are out of reach. */
void le_refit_round(le_refit *refit, double least);
void le_refit_archive(le_refit *refit, size_t d, le_arena *arena, le_archive *archive);

/* The log densities of a draw under the components. */
static inline double *le_refit_column(const le_refit *refit, size_t draw)
{
  return refit->column + draw * (LE_REFIT_PARTS_MOST + 1);
}
