/* The settings of the annealing engine; each method in R/run-method-*.R is a list of them. */
#pragma once

#include "core/estimator.h"
#include "core/gradient.h"
#include "core/resample.h"
#include "estimators/parts.h"

typedef enum le_schedule_rule {
  LE_ONE_STEP,       /* lambda from 0 to 1 in one step */
  LE_FIXED_STEPS,    /* a given list */
  LE_ADAPTIVE_STEPS, /* by the effective sample size of the particles' incremental weights */
  LE_CURVATURE_STEPS /* by the variance that a normal approximation predicts, within bounds that the
                      * particles set */
} le_schedule_rule;

typedef enum le_metric_rule {
  LE_METRIC_FROM_CURVATURE,
  LE_METRIC_FROM_PARTICLES,
  LE_METRIC_FIXED
} le_metric_rule;

/* A part of the run with one set of choices. */
typedef struct le_stage {
  size_t particles;
  double until; /* rows seen at which the next stage begins */
  int whole;    /* one chunk: all the data */
  double chunk_least, chunk_fraction, chunk_most; /* rows: fraction * seen, within these bounds */
  le_schedule_rule schedule;
  double ess;           /* effective sample size to keep, in particles */
  const double *lambda; /* LE_FIXED_STEPS: lambda_1 ... lambda_lambdas = 1 */
  size_t lambdas;
  le_resampling resampling;
  double anneal;        /* the same for each step of a chunk that one step would reduce below `ess`;
                         * 0: `ess` */
  double threshold;     /* resample below this effective sample size / particles; 0 never */
  le_gradient_rule gradient;
  size_t batch;         /* rows of a mini-batch */
  int own_batches;      /* each particle has mini-batches of its own */
  size_t part;          /* with control variates, rows that may stand for a chunk; 0 all */
  const le_kernel_spec *kernel; /* NULL: particles are never moved */
  size_t steps;         /* fewest moves per distribution */
  double renew;         /* goal for the renewal (core/renewal.h), for which more than `steps` moves
                         * are made; below 0 the renewal is only measured, 0 not at all */
  double work;          /* fewest rows x moves per distribution: more moves with few rows */
  int move_resampled;   /* move only after resampling */
  le_metric_rule metric;
  le_metric_kind metric_kind;
} le_stage;

typedef struct le_walk_settings {
  size_t stages;
  le_stage stage[LE_STAGES_MOST];
  int shuffle;      /* use the rows in random order */
  int mean_weights; /* replace the weights by their mean after each chunk */
  int correct;      /* add half the variance to log Z */
  size_t lag;       /* of the genealogy (core/genealogy.h) */
  double unseen;    /* factor from the genealogy's variance to that of log Z */
  int audit;        /* importance sampling at the end, as a second estimate */
  size_t audit_draws, audit_lots; /* draws; how many times as many if weights are uneven */
  size_t audit_part, audit_least; /* rows that may stand for all in weights, 0 all; fewest draws if
                                   * they cannot */
  double audit_work; /* up to so many draws x rows all rows are used */
  size_t keep;       /* most rows kept in memory after they were used; 0 all */
  int keep_all;      /* rows go only when the run is reopened after its end */
  int again;         /* the rows can be read a second time */
  size_t search;     /* climbs that do not start at particles, for modes these have missed */
  int first_look;    /* mode search and importance sampling before the first particle moves: may
                      * make the first stage unnecessary */
  size_t rounds;     /* of posterior draws after the run, for the harmonic mean */
  int bridge;        /* or for bridge sampling with a normal density */
  int restarts;      /* restart from the prior, with the rows in random order, if the
                      * distribution of the rows seems to have changed */
  int moments;       /* mean and variance of the log-likelihood at each lambda */
  int record;        /* keep the path (core/path.h) */
  const le_arg *follow; /* NULL, or a path to follow without adaptation */
  int reverse;       /* follow it in reverse, from posterior draws `from`, used in turn */
  const double *from;
  size_t starts;     /* number of these draws */
} le_walk_settings;

/* Reads the settings and tests that kernels, model and gradient rules fit together. */
le_status le_walk_settings_read(const le_problem *problem, le_walk_settings *settings,
                                le_error *error);
