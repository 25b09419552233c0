/* What the files of the audit share. The modes that climbs find (modes.c, climbs.c, images.c)
 * become components of the proposal (proposal.c), those under other labels too (labels.c); draws
 * are weighed by all rows (importance.c) or by part of them (by_part.c). If weights are uneven,
 * other proposals follow (uneven.c). */
#pragma once

#include "core/audit.h"

/* Two modes closer than this (squared Mahalanobis distance / d) are the same mode. */
#define LE_AUDIT_KNOWN 0.01
/* The effective sample size relative to an ideal proposal's below which weights are uneven. */
#define LE_AUDIT_UNEVEN 0.5
/* What a refitted proposal of t distributions reaches on posteriors that are not normal. */
#define LE_AUDIT_REFIT_IDEAL 0.5
/* Images of a mode whose densities are computed in one call. */
enum { LE_AUDIT_IMAGES_AT_ONCE = 64 };

/* Numbers that proposal.c keeps of each component in d dimensions. */
#define LE_AUDIT_LOGS(d) ((d) + 3)

/* ---- modes.c ---- */

/* Most modes kept in this dimension. */
size_t le_audit_modes_most(size_t d);
/* Sees to it that there is memory for n modes. The number of modes is not known before the climbs,
 * so this memory grows as they are found. */
le_status le_audit_reserve(le_audit *a, size_t n);
/* Log number of all relabellings, and of those that move the mode to another point; these are fewer
 * if some of its components are equal. */
double le_audit_symmetry(const le_target *target);
double le_audit_orbit(const le_target *target, const le_mode *mode);
/* Whether theta was outside the fundamental domain of the first mode; then it is moved into it. */
int le_audit_relabel(const le_audit *a, const le_target *target, double *theta);
/* The mass of the heaviest mode, -Inf without modes. */
double le_audit_best_mass(const le_audit *a);
/* The known mode within this squared Mahalanobis distance / d of the point, or NULL. */
le_mode *le_audit_known(le_audit *a, const double *theta, double within);
/* Adds a mode, or replaces the lightest one if there is no room. */
le_status le_audit_keep(le_audit *a, le_mode *found);
/* After the climbs: sorts modes by mass and sets shares from the Laplace masses; modes with a
 * share below 1e-4 get no draws. The audit has failed if there is none. */
le_status le_audit_weigh_modes(le_audit *a, const le_target *target);
/* Finds out whether a mode that a climb has just found is wider than the prior, and if it is a
 * point of a level ridge, makes it narrower. */
void le_audit_judge_level(le_audit *a, le_mode *mode);
/* Undoes this so that more modes can be added. */
void le_audit_unweigh_modes(le_audit *a);

/* ---- images.c ---- */

/* The number of images of one of n modes. */
size_t le_audit_images_count(size_t n, size_t d);
/* Writes image number `image` of mode number k of n to `theta`. Returns 0 if it is the mode
 * itself. */
int le_audit_make_image(const le_mode *mode, size_t n, size_t d, size_t k, size_t image,
                        double *theta);

/* ---- climbs.c ---- */

/* The next climb, or a few of them. */
le_status le_audit_climb(le_audit *a, le_target *target, const gsl_rng *rng);

/* ---- proposal.c ---- */

/* Log density of the proposal, `self` being the audit; and in `normal`, that of the posterior if it
 * were normal around its modes. */
double le_audit_log_proposal(const void *self, const le_target *target, const double *theta,
                             double *work);
double le_audit_log_densities(const le_audit *a, const le_target *target, const double *theta,
                              double *normal, double *work);
/* The degrees of freedom of a draw from a component; and this draw. Infinitely many make a draw
 * from its normal approximation. Returns 0 and the mode itself if the draw has coordinates that
 * belong to no theta: the posterior is zero there. */
double le_audit_freedom(const le_audit *a, size_t part, const gsl_rng *rng);
int le_audit_draw_from(const le_audit *a, const le_target *target, size_t part, double nu,
                       const gsl_rng *rng, double *theta);

/* ---- labels.c ---- */

/* Adds images of the modes at the edge of the fundamental domain to the proposal. */
le_status le_audit_add_images(le_audit *a, le_target *target, const gsl_rng *rng);

/* ---- by_part.c ---- */

/* Chooses the number of draws, and whether part of the rows weighs them. */
le_status le_audit_plan(le_audit *a, le_target *target, const gsl_rng *rng);
/* Log densities of draws from one component, by part of the rows, or by all rows where needed. */
le_status le_audit_densities_by_part(le_audit *a, le_target *target, size_t part, size_t n,
                                     const double *theta, double *value);

/* ---- importance.c ---- */

/* A batch of draws; the estimate after the last one. */
le_status le_audit_draw(le_audit *a, le_target *target, const gsl_rng *rng);
/* The estimate from all weights. */
void le_audit_finish(le_audit *a, const le_target *target);

/* ---- uneven.c ---- */

/* Chooses what follows after all draws. */
le_status le_audit_follow_up(le_audit *a, const le_target *target);
/* Rounds for the scales before draws in two steps, and a batch of these draws. */
le_status le_audit_fit_scales(le_audit *a, le_target *target, const gsl_rng *rng);
le_status le_audit_draw_in_two_steps(le_audit *a, le_target *target, const gsl_rng *rng);
/* One round of the refitted proposal: a lot of draws, weights, a further component. */
le_status le_audit_refit(le_audit *a, le_target *target, const gsl_rng *rng);
