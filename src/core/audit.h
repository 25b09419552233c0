/* Importance sampling of the whole posterior at the end of a run (the audit): a second estimate of
 * the evidence.
 *
 * Newton's method starts from a few particles and finds the distinct posterior modes. The proposal
 * is a mixture of multivariate t distributions (20 degrees of freedom) with the curvatures of the
 * modes, weighted by their masses in Laplace's approximation. Where the posterior may have mass
 * away from its modes, one wide component with the mean and covariance of the particles is added.
 * If the model has label symmetry, only draws in the fundamental domain of the first mode have
 * positive weight, or in the domains of labellings under which this mode is the same (empty
 * components); the result is multiplied by the number of the other labellings. This is exact even
 * if the labelled modes overlap. */
#ifndef LE_CORE_AUDIT_H
#define LE_CORE_AUDIT_H

#include "base/rng.h"
#include "core/expansion.h"
#include "core/mode.h"

enum { LE_AUDIT_MODES_MOST = 16 };

typedef enum le_audit_phase { LE_AUDIT_CLIMB, LE_AUDIT_DRAW, LE_AUDIT_DONE } le_audit_phase;

typedef struct le_audit {
  size_t d, draws, batch; /* draws in all, and per likelihood call */
  size_t room;            /* number of draws that fit in memory */
  size_t first_lot;       /* draws asked for; fewer are made if there are very many rows */
  size_t lot; /* draws made at a time; repeated if weights are uneven and memory allows */
  /* rows in a subsample for weighing draws, 0 for all; draws if a subsample cannot be used */
  size_t part, least;
  size_t taken;           /* rows used to weigh the draws */
  double work_least;      /* a subsample is used only if draws x rows exceed this */
  le_expansion *expansion;
  int by_part, planned;
  double *lik_grad, *lik_hess, *prior; /* at a mode: d and d x d; `prior`: of the batch */
  size_t most, starts_most; /* distinct modes kept; largest number of Newton climbs */
  size_t starts;            /* Newton climbs to make */
  size_t native; /* the first `native` climbs start from particles: all, unless set otherwise */
  size_t climbs_least; /* after this many climbs, stop once they agree: all, unless set otherwise */
  double refused;           /* the largest mass of a mode that found no place in `mode` */
  double enough;            /* how near to the top a climb ends, see core/mode.h */
  /* with very many rows, a start this near to a known mode (squared distance / d) is not climbed
   * from */
  double near;
  size_t climbed, modes, drawn;
  size_t found; /* distinct modes, heaviest first, including those too light for the proposal */
  le_audit_phase phase;
  int failed; /* no mode with positive definite curvature was found */
  /* one extra place for the wide component, after the modes */
  le_mode mode[LE_AUDIT_MODES_MOST + 1], trial, wide;
  int has_wide;
  double *start;      /* starts x d */
  double *share;      /* of each component of the proposal */
  /* of each component: the mode, or its place in the model's coordinates around it (`to_normal`) */
  double *centre;
  le_proposal density; /* of the proposal */
  size_t parts;        /* components of the proposal: the modes, and the wide one if any */
  double *theta;       /* draws x d */
  double *log_weight;  /* draws */
  double *value;       /* batch */
  double *work;
  /* of the weights if the posterior were exactly normal around its modes */
  double ideal_sum, ideal_squares;
  /* increase of log Z by modes that no climb from a particle found, in Laplace's approximation */
  double unreached;
  double log_evidence, se, laplace, effective_size, ideal_size, pareto_k;
} le_audit;

/* Makes at most `starts` climbs and keeps the LE_AUDIT_MODES_MOST heaviest modes. With zero draws
 * the result is the Laplace approximation. Uneven weights increase the number of draws up to `lots`
 * times. */
void le_audit_alloc(le_audit *audit, const le_target *target, size_t starts, size_t draws,
                    size_t lots, size_t batch, le_arena *arena);
/* Weighs draws by a subsample of `part` rows around the modes if draws x rows exceed `work` and a
 * trial agrees with the sum over all rows; if the trial does not agree, `least` draws are made. */
void le_audit_by_part(le_audit *audit, const le_target *target, le_expansion *expansion,
                      size_t part, size_t least, double work, le_arena *arena);
/* Copies the starting points (unless they already are in audit->start), most important first. */
void le_audit_start(le_audit *audit, size_t starts, const double *start);
/* Adds the wide component, given by its centre and the Cholesky factor of its precision. */
void le_audit_widen(le_audit *audit, const double *centre, const double *factor);
/* Scales for numerical differences if the model has no derivatives: d numbers. */
void le_audit_scale(le_audit *audit, const double *scale);
/* One climb or one batch of draws; at the end audit->phase is LE_AUDIT_DONE. */
le_status le_audit_step(le_audit *audit, le_target *target, const gsl_rng *rng);
/* Call after the climbs. Looks for particles whose posterior density is much larger than that of
 * the proposal, and climbs from the worst of them until there are none. Reorders theta. */
le_status le_audit_cover(le_audit *audit, le_target *target, size_t n, double *theta);
/* Share of the evidence, in Laplace's approximation, of modes that only one climb found, and of the
 * heaviest mode that was not kept. */
double le_audit_once(const le_audit *audit);
double le_audit_refused(const le_audit *audit);
/* Draws from the normal approximation; modes in proportion to their masses, labels as in the first
 * mode. */
le_status le_audit_normal_draws(const le_audit *audit, const le_target *target, const gsl_rng *rng,
                                size_t n, double *theta);
/* For a finished sample: finds the power lambda of the weights (at most a half) at which the
 * effective sample size is half of the ideal one; the log of the integral of q^(1 - lambda)
 * f^lambda over all labellings; and its relative variance. audit->work holds the normalised
 * weights. Returns 0 if there is no such power, if there are several modes (a few draws would
 * decide between them), or if parts of the mode are equal. */
int le_audit_temper(le_audit *audit, const le_target *target, double *lambda, double *log_integral,
                    double *variance);
void le_audit_archive(le_audit *audit, le_archive *archive);

#endif
