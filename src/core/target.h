/* The annealed distribution that a kernel is asked to leave invariant (math.md 1, restated):
 *
 *     f(theta) = prior(theta) * prod_{k < seen} p(y_k | theta) * [ prod_{seen <= k < seen + chunk} p(y_k | theta) ]^lambda
 *
 * It is all a kernel may see: densities and gradients by the run's gradient rule, every evaluation counted. */
#ifndef LE_CORE_TARGET_H
#define LE_CORE_TARGET_H

#include "base/threads.h"
#include "core/context.h"
#include "core/metric.h"
#include "core/rows.h"

struct le_gradient;
struct le_audit;

/* A wall, for nested sampling: no density where the chunk's log-likelihood is not above `value`.  A point that equals it
 * is above if its label, uniform and drawn afresh, exceeds `tie`: so plateaus are ordered at random. */
typedef struct le_floor {
  double value, tie;
} le_floor;

/* A trait, beside those of the public header: values of such a model are checked, as nobody has tested it. */
enum { LE_TARGET_CHECKED = 1 << 30 };

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
  /* NULL, or the density is q^(1 - lambda) f^lambda, where q is the proposal of this importance
   * sampling and f the density of the rows seen, without a chunk.  Gradients are those of f, which q
   * resembles: the density decides what is accepted. */
  const struct le_audit *proposal;

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
void le_target_alloc(le_target *target, const le_model_ops *ops, const void *model, size_t m, le_context *context,
                     le_arena *arena);

/* Overwrites value[m] with the log-likelihood of these rows, and grad with its gradients; one of them may be NULL. */
le_status le_target_sums(le_target *target, const le_rows *rows, size_t m, const double *theta, double *value, double *grad);
/* Overwrites value[m] with the log-likelihood of rows [from, to). */
le_status le_target_log_lik(le_target *target, size_t from, size_t to, size_t m, const double *theta, double *value);
/* The same with gradients, or with `value` NULL these alone. */
le_status le_target_log_lik_grad(le_target *target, size_t from, size_t to, size_t m, const double *theta,
                                 double *value, double *grad);
/* Sums of gradient and second derivatives over these rows, or over [from, to), at one point; overwrites both. */
le_status le_target_curvature(le_target *target, const le_rows *rows, const double *theta, double *grad, double *hess);
le_status le_target_log_lik_hess(le_target *target, size_t from, size_t to, const double *theta, double *grad,
                                 double *hess);
/* The same by one of several threads: adds to both, or without `grad` the information to `matrix`, and counts nothing. */
le_status le_target_add_curvature(const le_target *target, const le_rows *rows, const double *theta, double *grad, double *matrix,
                                  double *scratch);
/* Adds `weight` times the information matrix of rows [from, to) at one point. */
le_status le_target_information(le_target *target, size_t from, size_t to, double weight, const double *theta,
                                double *info);

/* Of the prior: log density and gradient, of which one may be NULL; zeros where the target is without. */
void le_target_prior(const le_target *target, size_t m, const double *theta, double *value, double *grad);
/* log f, exactly; -Inf where the model gives no number. */
le_status le_target_density(le_target *target, size_t m, const double *theta, double *value);
/* The same for a caller who only wants to know values above level[m]: others may come back as -Inf, and then have cost
 * less. */
le_status le_target_density_above(le_target *target, size_t m, const double *theta, const double *level,
                                  double *value);
/* Is a point of this log-likelihood inside the wall? */
int le_target_above_floor(const le_target *target, double log_lik);
/* `value` may be NULL. */
le_status le_target_density_grad(le_target *target, size_t m, const double *theta, double *value, double *grad);
/* The gradient of log f by the run's rule, exact or from a mini-batch; new ones of these, of which an exact one needs none; and for how
 * many moves of m particles they may be drawn at once. */
size_t le_target_ahead(const le_target *target, size_t m);
le_status le_target_draw(le_target *target, size_t n);
le_status le_target_gradient(le_target *target, size_t draw, size_t m, const double *theta, double *grad);
/* How many rows that costs a particle. */
size_t le_target_rows(const le_target *target);

/* What is to be done with particles [first, first + m), none of which waits for another; of the target's memory it is given its own. */
typedef le_status (*le_target_job)(void *self, le_target *target, size_t first, size_t m);
/* Threads take shares of m particles, as large as they have been fast; all is one share where `rows`, which the job visits with each, are so
 * few that threads cost more than they save, or so many that the user could not interrupt it: threads then share the sums over rows. */
le_status le_target_share(le_target *target, size_t m, double rows, le_target_job job, void *self);

/* Tasks 0..n-1, whoever is free taking the next; workers are numbered from zero and have scratch memory of their own. */
typedef le_status (*le_target_task)(void *self, const le_target *target, size_t task, size_t worker);
le_status le_target_tasks(const le_target *target, size_t n, int threads, le_target_task task, void *self);

/* Particles x multiplications below which threads cost more than they save: waking them takes about as long as this. */
enum { LE_TARGET_THREADS_LEAST = 40000 };

/* As many as a loop over m particles is worth, none of which waits for another. */
static inline int le_target_threads(const le_target *target, size_t m, size_t multiplications)
{
  if (m * multiplications < LE_TARGET_THREADS_LEAST || target->context->threads <= 1 || le_pace_rests(target->pace)) return 1;
  return target->context->threads;
}

static inline double *le_target_scratch(const le_target *target, size_t worker) { return target->scratch + worker * target->scratch_size; }

static inline const le_metric *le_target_metric(const le_target *target, size_t particle)
{
  return target->metric[particle >= target->split];
}

/* Does theta carry other labels than the particles' common ones? */
int le_target_outside(const le_target *target, const double *theta);

/* Observations in the annealed distribution, the chunk's counted lambda times. */
static inline double le_target_size(const le_target *target)
{
  return (double)target->seen + target->lambda * (double)target->chunk;
}

/* Observations that a rate per observation is divided by; at least one. */
static inline double le_target_count(const le_target *target, int tempered)
{
  const double n = tempered ? le_target_size(target) : (double)(target->seen + target->chunk);
  return n > 1 ? n : 1;
}

#endif
