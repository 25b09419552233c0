/* What the annealed distribution is made of, with sums of its log-likelihood and derivatives over rows, and its prior.
 *
 * Every evaluation is counted. core/target has the distribution itself. */
#ifndef LE_CORE_SUMS_H
#define LE_CORE_SUMS_H

#include "base/threads.h"
#include "core/context.h"
#include "core/metric.h"
#include "core/rows.h"

struct le_gradient;
struct le_target;

/* A wall, for nested sampling: no density where the chunk's log-likelihood is not above `value`.  A point that equals it
 * is above if its label, uniform and drawn afresh, exceeds `tie`: so plateaus are ordered at random. */
typedef struct le_floor {
  double value, tie;
} le_floor;

/* A trait, beside those of the public header: values of such a model are checked, as nobody has tested it. */
enum { LE_TARGET_CHECKED = 1 << 30 };

/* A normalised density near that of the rows seen; `work` holds 2 d doubles. */
typedef struct le_proposal {
  double (*log_density)(const void *self, const struct le_target *target, const double *theta,
                        double *work);
  const void *self;
} le_proposal;

/* Into so many parts rows are divided for sums at one point or a few; at the most so many sums are made at a time. */
enum { LE_TARGET_PARTS = 16 };

typedef struct le_target {
  const le_model_ops *ops;
  const void *model;
  size_t d;
  le_context *context;
  const le_store *store;
  size_t seen, chunk;
  double lambda;
  struct le_gradient *gradient; /* NULL: the full data */
  double noise; /* variance of its gradients' own noise, where the metric makes that of the density 1; NaN while they are exact */
  /* Two, for particles before and from `split` on: a metric made from the particles that it moves would bias them
   * (whoever strays widens it, and so gets back more easily than others get out), so each half moves by the other's. */
  const le_metric *metric[2];
  size_t split;
  const gsl_rng *rng; /* of the run: mini-batches, jitter */
  /* NULL, or the reference to whose labels all particles were brought.  The target is then f on the fundamental domain
   * of that reference only: a metric made for one labelling does not treat all alike, and particles that wandered into
   * another would no longer stand for the whole of f. */
  const double *labels;
  int flat;              /* 1: the likelihood alone, as if the prior were constant */
  const le_floor *floor; /* NULL, or a wall in the chunk's log-likelihood, lambda being 0 */
  /* NULL, or the density is q^(1 - lambda) f^lambda, where q is this proposal and f the
   * density of the rows seen, without a chunk.  Gradients are those of f, which q resembles: the density
   * decides what is accepted. */
  const le_proposal *proposal;

  size_t block;   /* rows per likelihood call */
  size_t m;       /* largest number of particles */
  double *scratch; /* of every thread, one behind another */
  size_t scratch_size;
  double *work;    /* 2 m */
  double *grad;    /* m x d, for the second of two sums */
  double *part;       /* LE_TARGET_PARTS x (d x d + d): sums at one point of each part of the rows */
  double *few;        /* the same of each part at a few points; NULL where rows are not to be shared out */
  double *relabelled; /* of every thread, 2 d each, one behind another */
  le_pace *pace;
  double *packed;     /* m x d, for the points worth a likelihood */
  size_t *chosen;     /* m: which they are */
  double likelihoods, gradients; /* observation evaluations so far */
} le_target;

/* Sets up everything but the rows: `seen`, `chunk`, `lambda` start at zero. */
void le_target_alloc(le_target *target, const le_model_ops *ops, const void *model, size_t m,
                     le_context *context, le_arena *arena);

/* Overwrites value[m] with the log-likelihood of these rows, and grad with its gradients; one of them may be NULL. */
le_status le_target_sums(le_target *target, const le_rows *rows, size_t m, const double *theta,
                         double *value, double *grad);
/* Overwrites value[m] with the log-likelihood of rows [from, to). */
le_status le_target_log_lik(le_target *target, size_t from, size_t to, size_t m,
                            const double *theta, double *value);
/* The same with gradients, or with `value` NULL these alone. */
le_status le_target_log_lik_grad(le_target *target, size_t from, size_t to, size_t m,
                                 const double *theta, double *value, double *grad);
/* Sums of gradient and second derivatives over these rows, or over [from, to), at one point; overwrites both. */
le_status le_target_curvature(le_target *target, const le_rows *rows, const double *theta,
                              double *grad, double *hess);
le_status le_target_log_lik_hess(le_target *target, size_t from, size_t to, const double *theta,
                                 double *grad, double *hess);
/* The same by one of several threads: adds to both, or without `grad` the information to `matrix`, and counts nothing. */
le_status le_target_add_curvature(const le_target *target, const le_rows *rows, const double *theta,
                                  double *grad, double *matrix, double *scratch);
/* LE_NOT_FINITE, and a sentence, where values of a model that is to be checked are NaN or Inf. */
le_status le_target_check(const le_target *target, const char *what, size_t m, const double *theta,
                          const double *value);
/* Adds `weight` times the information matrix of rows [from, to) at one point. */
le_status le_target_information(le_target *target, size_t from, size_t to, double weight,
                                const double *theta, double *info);

/* Of the prior: log density and gradient, of which one may be NULL; zeros where the target is without. */
void le_target_prior(const le_target *target, size_t m, const double *theta, double *value,
                     double *grad);

/* Tasks 0..n-1, whoever is free taking the next; workers are numbered from zero and have scratch memory of their own. */
typedef le_status (*le_target_task)(void *self, const le_target *target, size_t task,
                                    size_t worker);
le_status le_target_tasks(const le_target *target, size_t n, int threads, le_target_task task,
                          void *self);

/* Particles x multiplications below which threads cost more than they save: waking them takes about as long as this. */
enum { LE_TARGET_THREADS_LEAST = 40000 };
/* Of a particle, whatever the rows, in rows. */
enum { LE_TARGET_PARTICLE_COST = 20 };

/* As many as a loop over m particles is worth, none of which waits for another. */
static inline int le_target_threads(const le_target *target, size_t m, size_t multiplications)
{
  if (m * multiplications < LE_TARGET_THREADS_LEAST || target->context->threads <= 1 ||
      le_pace_rests(target->pace))
    return 1;
  return target->context->threads;
}

static inline double *le_target_scratch(const le_target *target, size_t worker)
{
  return target->scratch + worker * target->scratch_size;
}

/* Observations in the annealed distribution, the chunk's counted lambda times. */
static inline double le_target_size(const le_target *target)
{
  return (double)target->seen + target->lambda * (double)target->chunk;
}

#endif
