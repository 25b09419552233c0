/* The state of a run of the annealing engine, and the functions that its files share.  walk.c
 * describes the method. */
#pragma once

#include "core/bridging.h"
#include "core/genealogy.h"
#include "core/machine.h"
#include "core/path.h"
#include "core/renewal.h"
#include "core/reservoir.h"
#include "core/schedule.h"
#include "core/search.h"
#include "estimators/parts.h"
#include "estimators/walk/settings.h"

typedef enum walk_phase {
  OPEN_CHUNK,  /* choose the next rows, or end the run */
  REWEIGHT,    /* choose lambda, weigh, resample, prepare the kernel */
  MOVE,        /* one kernel move of all particles */
  CLOSE_CHUNK, /* add the chunk to the rows seen */
  STEP_BACK,   /* reverse run: weigh by the ratio to the previous distribution */
  COLLECT,     /* posterior draws and their log-likelihoods */
  BRIDGE,      /* bridge sampling from these draws */
  SEARCH,      /* search for posterior modes without particles */
  AUDIT,       /* importance sampling around the posterior modes */
  AGAIN,       /* a question about all rows, of which some are no longer in memory */
  FINISHED
} walk_phase;

enum { MOMENT_COLUMNS = 5 };

/* Posterior draws from which the error of the sums that past rows left is computed. */
enum { ERROR_DRAWS = 64 };

/* When a check (mode search and importance sampling of the rows seen) is made: at the end of the
 * run, before any particle has moved, or between two chunks. */
typedef enum walk_check { CHECK_FINAL, CHECK_FIRST, CHECK_INTERIM } walk_check;

/* Rounds of the check of a run that knows its rows around one anchor (passes.c). */
typedef enum audit_round { ROUND_AROUND, ROUND_ANCHORED, ROUND_EXACT } audit_round;

typedef struct walk {
  le_machine machine; /* random streams 1 ... most belong to the particles */
  le_walk_settings settings;
  size_t d, most;     /* dimension; largest number of particles of any stage */
  le_target target;
  le_gradient gradient[LE_STAGES_MOST];
  le_expansion expansion; /* derived */
  le_metric metric[LE_STAGES_MOST][2]; /* one for each half of the particles */
  /* The covariance of the particles for the check. It is dense whatever the kernel's metric is,
   * and it is made anew for each check. */
  le_metric wide; /* derived */
  le_kernel *kernel[LE_STAGES_MOST];
  le_genealogy genealogy;
  le_audit audit;
  le_search search;
  le_bridging bridging;
  le_renewal renewal;

  size_t stage, m;    /* present stage and number of particles */
  int skip_moves;     /* particles are not moved at this distribution */
  size_t step;        /* moves made at this distribution; in COLLECT, rounds completed */
  size_t chunk_steps; /* annealing steps of this chunk so far */
  double chunk_ess;   /* smallest effective sample size in this chunk / number of particles */
  double shortest;    /* shortest annealing step of this chunk, its last one excepted */

  /* Restart from the prior after a change in the distribution of the rows.  Until `restart_rows`
   * rows are seen again, no chunk is added to the trace. */
  size_t restart_rows; /* rows seen at the last restart, 0 without one */
  double restarts;

  /* Control variates. */
  double drift;             /* squared distance of the particles' mean from the anchor when the
                             * chunk began, in posterior variances per dimension */
  size_t noise_measured_at; /* rows seen when the gradient noise was last measured */
  size_t retry_control_at;  /* rows seen at which control variates are tried again after a failure,
                             * 0 if they have not failed */

  /* Checks before the end of the rows. */
  size_t rows_at_check; /* rows seen at the last check */
  int check;            /* the check in progress, a walk_check */
  int first_checked;    /* the first check was made or ruled out */
  int uneven;           /* the first check had uneven importance weights: the posterior is far from
                         * normal around its modes */
  int from_importance;  /* the particles are importance-sampling draws for all rows seen */

  /* Number of moves, where it follows the renewal (core/renewal.h). */
  size_t moves;         /* planned at this distribution, 0 before the first */
  size_t tried;         /* moves made when the renewal was first measured below the goal, else 0 */
  double tried_renewal; /* the renewal measured then */
  double renewed;       /* the last renewal measured at this distribution */
  int skip_remeasure;   /* distributions to come at which a renewal below the goal is accepted,
                         * since within the modes it reached the goal before */
  int skip_measure;     /* distributions to come at which the renewal is not measured, because
                         * it was far above the goal */

  /* Bias of kernels without an accept-reject step, see measure_temperature(). */
  double temperature;   /* of the particles, 1 without bias */
  double bias_rate, bias_rate_variance;   /* loss of log Z per factor e of rows or lambda */
  double bias_total, bias_total_variance; /* loss of log Z so far */

  double step_bias;     /* bias of log Z from choosing steps by the particles that they weigh */
  double log_z_before;  /* log Z up to the point where the weights were last set equal */
  double variance_before; /* its variance */
  double *theta, *log_weight, *chunk_value, *weight, *prior_variance;
  double *swap; /* scratch of resampling */
  double *anchor_info, *chunk_info; /* information at the anchor: of the rows seen, of the chunk */
  double *precision, *centre, *labels;
  size_t *ancestor;

  double *draw_theta, *draw_value; /* posterior draws of COLLECT, rounds x m */

  /* Rows that are no longer in memory (past.c, passes.c). */
  le_past past;
  audit_round audit_round;
  size_t passes;       /* questions about all rows so far, each a pass through them */
  double check_cost;   /* evaluations of searches and importance sampling */
  double past_se;      /* what the carried sums add to the standard error */
  double unreached;    /* found by the search among all modes of the sample */
  double apart;        /* log mass of a mode far from the anchor, as large as the sample allows */
  int reopened;        /* further rows came after the end */
  double changed;      /* restarts from the sample */

  le_path path; /* the recorded path to follow; without points if there is none */
  size_t at;    /* points passed; in a reverse run, points left, with the present one */

  le_trace moments, recorded;
  double lambda_steps;
} walk;

/* The settings of the present stage. */
static inline const le_stage *stage_of(const walk *w)
{
  return &w->settings.stage[w->stage];
}

/* Whether the run follows a recorded path. */
static inline int follows(const walk *w)
{
  return w->path.points > 0;
}

/* ---- stage.c ---- */

/* Number of particles from which the audit climbs to modes. */
size_t le_walk_particle_climbs(const walk *w);
/* Whether the run uses importance sampling, at its end or in a check. */
int le_walk_samples_importance(const walk *w);
/* Makes stage s the present one: its number of particles, gradient and metric. */
void le_walk_enter_stage(walk *w, size_t s);
/* Sets the target to the distribution at point number `points` of the path, 0 being the prior. */
void le_walk_go_to_point(walk *w, size_t points);
/* The negative second derivatives of the log prior. */
void le_walk_prior_precision(const walk *w, const double *theta, double *precision);
/* Posterior precision at the present (seen, lambda), from the curvature at the anchor. */
void le_walk_observed_precision(const walk *w, double *precision);
/* The same, made positive definite with the complete-data information where the model has it. */
void le_walk_anchored_precision(walk *w, double *precision);

/* ---- trace.c ---- */

/* Factor from the genealogy's variance to the variance of log Z. */
double le_walk_unseen(const walk *w);
/* Standard error of log Z at present. */
double le_walk_current_se(const walk *w);
/* log Z of the rows seen and of the chunk to the power lambda. */
double le_walk_current_log_evidence(const walk *w);
/* Variance of the particles relative to the curvature at the anchor, NaN without an anchor. */
double le_walk_temperature(const walk *w);
/* Adds a row to the trace: n rows, power lambda, and `steps` annealing steps. */
le_status le_walk_add_trace(walk *w, double n, double lambda, double steps);

/* ---- population.c ---- */

/* Draws the first particles: from the prior, or in a reverse run from the given posterior draws. */
le_status le_walk_start(void *self);
/* Index of the particle with the largest weight. */
size_t le_walk_heaviest(const walk *w);
/* Relabels all particles to match the reference, and keeps its labels from now on. */
void le_walk_relabel_to(walk *w, const double *reference);
/* The same with the particle of largest weight as reference. */
void le_walk_relabel_to_heaviest(walk *w);
/* The same with the anchor of the rows, if they are known around one. */
void le_walk_relabel_to_past(walk *w);
/* Weighted mean of the particles. */
void le_walk_weighted_mean(const walk *w, double *mean);
/* The same in `centre`, after le_walk_relabel_to_past(). */
void le_walk_labelled_mean(walk *w);
/* Replaces the particles by m equally weighted offspring of the same total weight. */
void le_walk_resample(walk *w, size_t m);
/* The same if their number is not m. */
void le_walk_resize(walk *w, size_t m);
/* Gives all particles equal weight, with this log Z and its variance for the rows seen. */
void le_walk_begin_from(walk *w, double log_evidence, double variance);
/* Replaces the particles by importance-sampling draws, resampled by these weights. */
void le_walk_draw_particles(walk *w, const double *weight);

/* ---- chunk.c ---- */

/* Phase OPEN_CHUNK: chooses the next chunk, starts a check, or ends the run. */
le_status le_walk_open_chunk(void *self);
/* Phase CLOSE_CHUNK: adds the chunk to the rows seen. */
le_status le_walk_close_chunk(void *self);

/* ---- control.c ---- */

/* Opens a chunk of a stage with control variates, or leaves that stage if they do not work. */
le_status le_walk_open_controlled_chunk(walk *w);

/* ---- past.c ---- */

/* After a chunk was added to the rows seen: keeps only a sample of them if they are too many. */
le_status le_walk_let_rows_go(walk *w, size_t chunk);
/* Forgets all anchors, the noise measured at them, and the search. */
void le_walk_forget_anchors(walk *w);
/* Makes a run that has ended ready for further rows. */
le_status le_walk_reopen(void *self);
/* The restart of a run that cannot read all its rows. */
le_status le_walk_restart_from_sample(walk *w);

/* ---- passes.c ---- */

/* After the climbs of a check: whether it goes on, starts another round or asks about all rows. */
le_status le_walk_next_round(walk *w);
/* The standard error that the sample and the carried sums add to log Z; zero if all rows are in
 * memory. */
le_status le_walk_past_error(walk *w);
/* At the end of a check: the error that the carried sums add to log Z, and whether this needs a
 * question about all rows. */
le_status le_walk_check_passes(walk *w);
/* Phase AGAIN: sums at the mode over all rows. */
le_status le_walk_ask_again(void *self);

/* ---- lambda.c ---- */

/* The next increment of lambda, by the schedule of the stage or as recorded. */
le_status le_walk_choose_increment(walk *w, double *increment);
/* Whether this first increment of a chunk shows that the distribution of the rows has changed. */
int le_walk_law_has_changed(const walk *w, double increment);
/* Restarts from the prior, with all rows so far (the chunk included) in random order. */
le_status le_walk_restart(walk *w);

/* ---- weigh.c ---- */

/* Adds a row of moments of the chunk's log-likelihood, before a step of this increment. */
le_status le_walk_add_moments(walk *w, double increment);
/* Phase REWEIGHT: one annealing step. */
le_status le_walk_reweight(void *self);
/* Phase STEP_BACK: one annealing step of a reverse run. */
le_status le_walk_step_back(void *self);

/* ---- moves.c ---- */

/* Updates the metric for moves at the present distribution; keeps the old one if that fails. */
le_status le_walk_update_metric(walk *w);
/* Prepares the kernel for moves at the present distribution and enters phase MOVE. */
le_status le_walk_begin_moves(walk *w, int resampled);
/* Phase MOVE: kernel moves of all particles, as many as are needed. */
le_status le_walk_move(void *self);

/* ---- look.c ---- */

/* Nats by which the evidence found by the audit may exceed that of the particles by chance. */
double le_walk_chance_of(size_t d);
/* Whether an interim check is due. */
int le_walk_may_check(const walk *w);
/* Starts a check of the rows seen. */
le_status le_walk_begin_check(walk *w, walk_check kind);
/* Phase SEARCH: one step of the mode search. */
le_status le_walk_search(void *self);
/* Phase AUDIT: one step of importance sampling; acts on its result in a check. */
le_status le_walk_audit(void *self);

/* ---- result.c ---- */

/* Phase COLLECT: one round of posterior draws. */
le_status le_walk_collect(void *self);
/* Phase BRIDGE: one step of bridge sampling. */
le_status le_walk_bridge(void *self);
/* The columns of the trace. */
extern const char *const le_walk_columns[];
/* Reports the figures, draws and audit of the run. */
le_status le_walk_result(void *self, le_result *result);
