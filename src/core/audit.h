/* Importance sampling of the whole posterior, as a second estimate of the evidence (the audit).
 *
 * Newton iterations from several starting points climb to the posterior modes. The proposal is a
 * mixture of multivariate t distributions (20 degrees of freedom) with the curvatures of the modes
 * and weights from their Laplace masses; where a posterior may have mass away from its modes, it
 * has one wider component with the mean and covariance of the particles.
 *
 * Where a model has label symmetry, only draws inside the fundamental domain of the first mode
 * have weight (also those under other labellings that leave this mode as it is, as with empty
 * components). The result is multiplied by the number of the other labellings, which is exact
 * even where the relabelled modes overlap.
 *
 * If the weights are uneven, or there is no mode, draws are made in two steps where the model
 * allows it (core/twostep.h). */
#pragma once

#include "base/rng.h"
#include "core/expansion.h"
#include "core/refit.h"
#include "core/result.h"
#include "core/twostep.h"

/* Draws a further start for a climb. */
typedef le_status (*le_audit_another)(void *self, le_target *target, const gsl_rng *rng,
                                      double *theta);

/* Limits of weights, which R takes from here (bridge/tables.c). Effective sample sizes are shares
 * of the ideal one. */
typedef struct le_audit_limits {
  double known_ess;            /* below this share the error is not known */
  double uneven_ess;           /* below this share there is a warning */
  double one_ess, several_ess; /* below these the error is in doubt: with one mode, or several */
  double most_k;               /* Pareto shape above which the error is not known */
  double doubted;              /* what an error in doubt is multiplied by */
  double thin_share, thin_ess; /* a part of the proposal with more than this share of the estimate
                                  is thin if its draws are effectively fewer than this */
} le_audit_limits;
static const le_audit_limits LE_AUDIT_LIMITS = {
  /* with several modes the proposal may miss a part of the posterior, which the weights show only
   * if a draw happens to fall there, so the limit is stricter */
  .known_ess = 0.1, .uneven_ess = 0.15, .one_ess = 0.25, .several_ess = 0.6, .most_k = 0.7,
  .doubted = 3, .thin_share = 0.05, .thin_ess = 5};

typedef enum le_audit_phase {
  LE_AUDIT_CLIMB,
  LE_AUDIT_DRAW,
  LE_AUDIT_DONE,
  LE_AUDIT_SCALES, /* before draws in two steps */
  LE_AUDIT_REFIT   /* before draws from a refitted proposal */
} le_audit_phase;

typedef struct le_audit {
  size_t draws, room;     /* draws in all; those that fit in the memory */
  size_t d, batch;        /* set once: the dimension; draws per call of the likelihood */
  size_t first_lot;       /* set once: draws requested; fewer are made of very many rows */
  size_t lot;             /* draws made at a time; another lot follows if weights are uneven */
  size_t part, least;     /* set once: rows that may stand for all (0 all), else the fewest draws */
  size_t taken;           /* rows that do stand for all */
  double work_least;      /* set once: up to so many draws x rows all are used, if readable */
  le_expansion *expansion; /* set once */
  int by_part, planned;   /* weights use part of the rows; the number of draws is chosen */
  int in_two_steps;       /* the draws are those of `two` */
  le_twostep two;         /* only if le_audit_in_two_steps was called */
  double refit_from; /* share of the ideal effective size above which a refit is allowed */
  double refit_least; /* set once: refitting ends where this share of it is out of reach */
  int refitted;      /* the proposal was refitted, or this was tried */
  le_refit refit;
  double *lik_sums; /* scratch: at a mode: log-likelihood, gradient and d x d second derivatives */
  double *prior;    /* scratch: log prior of the batch */
  size_t room_of_modes;     /* modes for which there is memory now */
  size_t most, starts_most; /* set once: most distinct modes kept, and most starts given */
  le_arena *arena;          /* set once: where modes are; it must exist as long as the audit */
  size_t starts;            /* climbs to make */
  size_t native;            /* the first `native` climbs start at particles: all by default */
  size_t climbs_least;      /* after so many, climbs stop once they agree: all by default */
  double refused;           /* log Laplace mass of the heaviest mode dropped for lack of room */
  double enough;            /* distance from the mode at which a climb ends, see core/mode.h */
  const double *prior_variance; /* set once: d, or NULL if it is not known */
  double near;              /* with very many rows, a start closer than this to a known mode
                             * (squared Mahalanobis distance / d) is taken to lead to it */
  size_t climbed, modes, drawn; /* climbs, modes and draws so far */
  /* Further starts after those given: their source, how many were climbed from, and the work of all
   * climbs. */
  le_audit_another another; /* set once */
  void *source;             /* set once */
  size_t further;
  double climbed_work;
  size_t imaged; /* modes whose images (core/audit/images.c) were climbed from */
  double *image; /* scratch: images of a mode */
  size_t found;             /* distinct modes, heaviest first, also those not in the proposal */
  le_audit_phase phase;
  int anchored;             /* the first mode stays the first: the proposal has images */
  int failed;               /* no mode with definite curvature was found */
  le_mode *mode, trial, wide; /* room for most + 1: one more for the wide component */
  double *share, *term; /* shares of the components; 2 (room + 1) numbers behind them */
  double *logs;         /* scratch: logarithms of each component, see core/audit/proposal.c */
  int has_wide;
  le_component_peak of_modes; /* set once: with tails if the posterior may have them */
  le_component_t of_wide;     /* set once */
  double *start;      /* starts x d */
  double *scale;      /* d: rough standard deviations with which climbs begin */
  le_proposal density; /* set once: density of the proposal */
  size_t parts;       /* components of the proposal: the modes, and the wide one if there is one */
  double *theta;      /* draws x d */
  double *log_weight; /* draws */
  double *value, *work; /* scratch */
  double ideal_sum, ideal_squares; /* of weights if the posterior were normal around its modes */
  double unreached;   /* increase of log Z (Laplace) by modes not reached from a particle */
  double log_evidence, se, laplace, effective_size, ideal_size, pareto_k;
  double unseen; /* the part of `se` from the tail of the weights (le_pareto) */
  double thin;   /* share of the estimate in parts of the proposal that are thin, see above */
  double *listed; /* scratch: the table of modes of the last result */
} le_audit;

/* Allocates for at most `starts` starts and `draws` draws, up to `lots` times as many if weights
 * are uneven. As many modes are kept as fit in the memory allowed. Without draws the audit ends
 * with the Laplace approximation. */
void le_audit_alloc(le_audit *audit, const le_target *target, size_t starts, size_t draws,
                    size_t lots, size_t batch, le_arena *arena);
void le_audit_free(le_audit *audit);
/* If draws x rows are more than `work`: weighs draws by `part` of the rows around the modes if this
 * agrees with all rows in a trial, otherwise makes fewer draws, at least `least`. */
void le_audit_by_part(le_audit *audit, const le_target *target, le_expansion *expansion,
                      size_t part, size_t least, double work, le_arena *arena);
/* Draws are made in two steps if weights are uneven. */
void le_audit_in_two_steps(le_audit *audit, const le_target *target, le_arena *arena);
/* Starts an audit; copies the starting points (unless they are audit->start), the first being the
 * most important. */
void le_audit_start(le_audit *audit, size_t starts, const double *start);
/* Adds the wide component: its centre, and the Cholesky factor of its precision. */
void le_audit_widen(le_audit *audit, const double *centre, const double *factor);
/* Sets the d scales of the numerical differences for a model without derivatives. */
void le_audit_scale(le_audit *audit, const double *scale);
/* Makes one climb or one batch of draws; audit->phase is LE_AUDIT_DONE at the end. */
le_status le_audit_step(le_audit *audit, le_target *target, const gsl_rng *rng);
/* After the climbs: climbs from the particle whose posterior density is highest relative to the
 * proposal, until no particle is far above.  Changes the order of theta. */
le_status le_audit_cover(le_audit *audit, le_target *target, size_t n, double *theta);
/* Share of the evidence (Laplace) in modes that at most `few` climbs have reached; if more than
 * one, also in those that far fewer have reached than others. */
enum { LE_FEW_HITS = 3 };
double le_audit_rarely(const le_audit *audit, size_t few);
/* Evidence (Laplace) of the heaviest mode dropped for lack of room, relative to all modes kept. */
double le_audit_refused(const le_audit *audit);
/* Draws from the normal approximation, the modes in proportion to their masses, under the labels of
 * the first mode. */
le_status le_audit_normal_draws(const le_audit *audit, const le_target *target, const gsl_rng *rng,
                                size_t n, double *theta);
/* For a finished audit: the power lambda of its weights, at most a half, whose effective sample
 * size is half the ideal one; the log of the integral of q^(1 - lambda) f^lambda over all
 * labellings, and its relative variance. `weight` receives the normalised weights. Returns 0
 * if there is no such power, if there are several modes (few draws would decide their shares),
 * or if relabellings leave the mode as it is. */
int le_audit_temper(le_audit *audit, const le_target *target, double *lambda, double *log_integral,
                    double *variance, double *weight);
/* Sums over the rows seen at the heaviest mode, from its climb: the log-likelihood, its gradient
 * and second derivatives. For audits by part (le_audit_by_part). */
const double *le_audit_sums(le_audit *audit, const le_target *target);
/* Adds a table of the modes to a result, a column for each: the log of its mass (Laplace), its log
 * density, the number of climbs that ended there, and the point. */
void le_audit_list_modes(le_audit *audit, le_result *result);
/* Saves or restores the state. */
void le_audit_archive(le_audit *audit, le_archive *archive);
