/* Importance sampling of the whole posterior at the end of a run, as a second opinion on its evidence.
 *
 * From a few particles Newton climbs to the distinct peaks; the proposal is a mixture of
 * multivariate t distributions (20 degrees of freedom) with the peaks' curvatures, weighted by
 * their Laplace masses, and, where a posterior may have mass away from its peaks, of a wider one
 * with the mean and covariance of the particles.  Where a model has label symmetry, only draws
 * inside the fundamental domain of the first peak have weights, or in those of labellings under
 * which the peak is the same (empty components), and the result is multiplied by the number of the
 * other labellings: exact even where the
 * labelled modes overlap. */
#ifndef LE_CORE_AUDIT_H
#define LE_CORE_AUDIT_H

#include "base/rng.h"
#include "core/expansion.h"
#include "core/mode.h"

enum { LE_AUDIT_MODES_MOST = 16 };

typedef enum le_audit_phase { LE_AUDIT_CLIMB, LE_AUDIT_DRAW, LE_AUDIT_DONE } le_audit_phase;

typedef struct le_audit {
  size_t d, draws, batch; /* draws in all, and per call of the likelihood */
  size_t room;            /* draws that there is memory for */
  size_t first_lot;       /* draws asked for, of which there may be fewer for very many rows */
  size_t lot;             /* draws made at a time: again where weights are uneven and there is room */
  size_t part, least;     /* rows by which draws may be weighed, 0 all; draws where they cannot */
  size_t taken;           /* rows by which they are */
  double work_least;      /* draws x rows that are too few to do so */
  le_expansion *expansion;
  int by_part, planned;
  double *lik_grad, *lik_hess, *prior; /* at a mode: d and d x d; of the batch */
  size_t most, starts_most; /* distinct modes kept, climbs */
  size_t starts;            /* climbs to make */
  size_t native;            /* how many of them, the first ones, are of particles: all, unless said otherwise */
  size_t climbs_least;      /* from so many on, no more climbs are made once they agree: all, unless said otherwise */
  double refused;           /* the most mass of a peak for which there was no room among the modes */
  double enough;            /* how near to its top a climb ends, see core/mode.h */
  double near;              /* on very many rows a start this near to a peak, squared and per dimension, is taken to lead there */
  size_t climbed, modes, drawn;
  size_t found;             /* distinct modes, those too light for a part in the proposal among them, heaviest first */
  le_audit_phase phase;
  int failed; /* no peak with definite curvature was found */
  le_mode mode[LE_AUDIT_MODES_MOST + 1], trial, wide; /* room for the wide one behind the modes */
  int has_wide;
  double *start;      /* starts x d */
  double *share;      /* of each part in the proposal */
  double *centre;     /* of each part: the peak, or where it is in the model's own coordinates around it (`to_normal`) */
  le_proposal density; /* of the proposal */
  size_t parts;       /* of the proposal: the modes, maybe the wide one */
  double *theta;      /* draws x d */
  double *log_weight; /* draws */
  double *value;      /* batch */
  double *work;
  double ideal_sum, ideal_squares; /* of the weights that a posterior normal around its peaks would have */
  double unreached; /* by how much modes that no particle's climb led to make log Z larger, by Laplace's approximation */
  double log_evidence, se, laplace, effective_size, ideal_size, pareto_k;
} le_audit;

/* At most `starts` climbs, whose LE_AUDIT_MODES_MOST heaviest modes are kept; with no draws it ends with the Laplace approximation.
 * Where weights are uneven there are up to `lots` times as many draws. */
void le_audit_alloc(le_audit *audit, const le_target *target, size_t starts, size_t draws,
                    size_t lots, size_t batch, le_arena *arena);
/* From now on: if draws x rows are more than `work`, draws are weighed by `part` of the rows around the peaks where a trial agrees with all rows,
 * and else there are `least` of them. */
void le_audit_by_part(le_audit *audit, const le_target *target, le_expansion *expansion,
                      size_t part, size_t least, double work, le_arena *arena);
/* Copies the starting points (unless they are audit->start), the first being the most important. */
void le_audit_start(le_audit *audit, size_t starts, const double *start);
/* Adds the wide part: its centre, and the Cholesky factor of its precision. */
void le_audit_widen(le_audit *audit, const double *centre, const double *factor);
/* Scales for the differences of a model without derivatives: d numbers. */
void le_audit_scale(le_audit *audit, const double *scale);
/* One climb or one batch of draws; LE_AUDIT_DONE in audit->phase at the end. */
le_status le_audit_step(le_audit *audit, le_target *target, const gsl_rng *rng);
/* After the climbs: are there particles that the proposal hardly ever draws, for what the posterior is worth there? Climbs from the
 * worst of them, until there is none.  Changes the order of theta. */
le_status le_audit_cover(le_audit *audit, le_target *target, size_t n, double *theta);
/* Shares of the evidence, by Laplace's approximation: of peaks that only one climb has led to, and of the heaviest peak for which there
 * was no room, against all that have some. */
double le_audit_once(const le_audit *audit);
double le_audit_refused(const le_audit *audit);
/* Draws from the normal approximation, the modes in proportion to their masses, under the labels of the first. */
le_status le_audit_normal_draws(const le_audit *audit, const le_target *target, const gsl_rng *rng,
                                size_t n, double *theta);
/* Of a finished sample: the power lambda of its weights (at most a half) at which they are even, half
 * of the ideal effective size, the log of the integral of q^(1 - lambda) f^lambda in all labellings,
 * and its relative variance; audit->work has the normalised weights.  Returns 0 where there is no such
 * power, where there are several peaks, between which few draws would have to decide, and where parts
 * of the peak are alike. */
int le_audit_temper(le_audit *audit, const le_target *target, double *lambda, double *log_integral,
                    double *variance);
void le_audit_archive(le_audit *audit, le_archive *archive);

#endif
