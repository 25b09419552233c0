/* What a walk is made of: every preset of R/method-*.R is a list of these choices, and the engine has no others. */
#ifndef LE_ESTIMATORS_WALK_SETTINGS_H
#define LE_ESTIMATORS_WALK_SETTINGS_H

#include "core/estimator.h"
#include "core/gradient.h"
#include "core/resample.h"
#include "estimators/parts.h"

typedef enum le_schedule_rule {
  LE_ONE_STEP,       /* lambda from 0 to 1 at once */
  LE_FIXED_STEPS,    /* a list given beforehand */
  LE_ADAPTIVE_STEPS, /* by the effective size of the particles' own increments */
  LE_CURVATURE_STEPS /* by the variance that a Gaussian approximation predicts: blind to the particles */
} le_schedule_rule;

typedef enum le_metric_rule { LE_METRIC_FROM_CURVATURE, LE_METRIC_FROM_PARTICLES, LE_METRIC_FIXED } le_metric_rule;

/* A stretch of the walk with one set of choices. */
typedef struct le_stage {
  size_t particles;
  double until;          /* rows seen at which the next stage takes over */
  int whole;             /* one chunk: all the data */
  double chunk_least, chunk_fraction, chunk_most; /* rows: fraction * seen, within these */
  le_schedule_rule schedule;
  double ess;            /* goal, in particles */
  const double *lambda;  /* LE_FIXED_STEPS: lambda_1 ... lambda_lambdas = 1 */
  size_t lambdas;
  le_resampling resampling;
  double anneal;         /* the same within a chunk that one step would leave fewer than `ess`; 0: no other */
  double threshold;      /* resample when the effective size falls under this share of the particles; 0 never */
  le_gradient_rule gradient;
  size_t batch;
  size_t part;           /* rows by which a chunk may be weighed where there are control variates; 0 all */
  const le_kernel_spec *kernel; /* NULL: particles are never moved */
  size_t steps;          /* moves per distribution, at the least */
  double renew;          /* renewal (core/renewal.h) that more moves than `steps` are to reach; below 0 only measured, 0 not at all */
  double work;           /* rows times moves per distribution, at the least: few rows are moved more often */
  int move_resampled;    /* only after resampling */
  le_metric_rule metric;
  le_metric_kind metric_kind;
} le_stage;

typedef struct le_walk_settings {
  size_t stages;
  le_stage stage[LE_STAGES_MOST];
  int shuffle;       /* walk the rows in random order */
  int mean_weights;  /* replace the weights by their mean after each chunk */
  int correct;       /* add half the variance to log Z */
  size_t lag;        /* of the standard error */
  double unseen;     /* variance for each unit that the genealogy sees */
  int audit;         /* importance sampling at the end, as a second opinion */
  size_t audit_draws, audit_lots; /* draws, and how many times as many where weights are uneven */
  size_t audit_part, audit_least; /* rows by which draws may be weighed, 0 all; draws where they cannot */
  double audit_work;              /* draws x rows that are too few to do so */
  size_t search;     /* climbs from the prior, for modes that the particles have missed */
  int first_look;    /* search and importance sampling before the first particle moves, which may make the early phase unnecessary */
  size_t rounds;     /* of posterior draws after the walk, for the harmonic mean */
  int bridge;        /* or for a bridge to a normal density */
  int restarts;      /* walk again from the prior, through rows in random order, where the law of a stream seems to have changed */
  int moments;       /* mean and variance of the log-likelihood at every lambda, for power posteriors */
  int record;        /* keep the path (core/path.h) */
  const le_arg *follow; /* NULL, or a path to follow and nothing to adapt */
  int reverse;       /* follow it backwards, from `from`, draws from the posterior taken in turn */
  const double *from;
  size_t starts;     /* how many they are */
} le_walk_settings;

/* Reads the settings and matches the kernels' needs with what the model and the gradient rule offer. */
le_status le_walk_settings_read(const le_problem *problem, le_walk_settings *settings, le_error *error);

#endif
