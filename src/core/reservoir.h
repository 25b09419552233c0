/* Lets rows go: keeps the sums and the sample of core/past.h up to date. */
#pragma once

#include "core/gradient.h"
#include "core/past.h"

void le_past_alloc(le_past *past, const le_target *target, size_t keep, le_arena *arena);
/* Whether the rows seen are more than may stay in memory. */
int le_past_due(const le_past *past, const le_target *target);
/* How well could `keep` of the rows seen, drawn at random, and sums over all of them at this anchor
 * stand for them? The largest error of the log-likelihood, up to a constant, at m points; infinite
 * if the model has no gradients. All rows stay in memory. `work` holds 2 m numbers. */
le_status le_past_try(le_past *past, le_target *target, const le_store *store, const double *anchor,
                      size_t m, const double *theta, const gsl_rng *rng, double *work,
                      double *error);
/* The first time that rows must go: sums at this anchor over all rows seen, which are computed
 * unless they are known, and a sample of the rows. */
le_status le_past_begin(le_past *past, le_target *target, le_store *store, const double *anchor,
                        const double *known, const gsl_rng *rng);
/* Adds the last `chunk` of the rows seen, which are still in memory, to the sums and the sample. If
 * `gradient` has sums over the chunk at the same anchor they are not computed again; it may be
 * NULL. */
le_status le_past_add(le_past *past, le_target *target, le_store *store, size_t chunk,
                      const le_gradient *gradient, const gsl_rng *rng);
/* Carries the sums to another anchor, if there are any. */
le_status le_past_move(le_past *past, le_target *target, const double *anchor);
/* The same to a point so far away that the sums say nothing about it: only the sample does. */
le_status le_past_jump(le_past *past, le_target *target, const double *anchor);
/* Replaces the anchor and the sums there by exact ones, computed elsewhere. */
le_status le_past_replace(le_past *past, le_target *target, const double *anchor,
                          const double *sums);
/* When `chunk` rows have joined those seen and these are too many: whichever of the above is due.
 * The sums are at the anchor of the control variates, which moves by itself, or, if `anchored` is
 * NULL, move to `centre` if the anchor is stale. */
int le_past_is_stale(const le_past *past, const le_target *target);
le_status le_past_let_go(le_past *past, le_target *target, le_store *store, size_t chunk,
                         const le_gradient *anchored, const double *centre, const gsl_rng *rng);
/* Standard error of the difference of the log-likelihoods of all rows at two points, one after the
 * other in `theta`, if only the sample stands for them: points so far apart that sums at an anchor
 * say nothing about both. */
le_status le_past_apart(le_target *target, const double *theta, double *se);
/* Standard error that the sample and the carried sums add to log Z, from weighted posterior draws;
 * `work` holds (LE_PAST_GROUPS + 1) x m numbers. */
le_status le_past_error(const le_past *past, le_target *target, size_t m, const double *theta,
                        const double *log_weight, double *work, double *se);
