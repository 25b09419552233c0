/* The parts of the annealed distribution: sums of the log-likelihood and its derivatives over rows,
 * and the prior. All evaluations are counted. The distribution itself is in core/target. */
#pragma once

#include "base/threads.h"
#include "core/context.h"
#include "core/metric.h"
#include "core/rows.h"

struct le_asked;
struct le_gradient;
struct le_past;
struct le_target;

/* The likelihood constraint of nested sampling: the density is zero unless the chunk's
 * log-likelihood is above `value`. A point that equals `value` is inside with probability 1 - tie
 * (by a fresh uniform label), which puts points of equal likelihood in random order. */
typedef struct le_floor {
  double value, tie;
} le_floor;

/* A normalised density that approximates the posterior of the rows seen; `work` holds 2 d
 * doubles. */
typedef struct le_proposal {
  double (*log_density)(const void *self, const struct le_target *target, const double *theta,
                        double *work);
  const void *self;
} le_proposal;

/* Rows are divided into this many parts for sums at one or a few points. This is also the largest
 * number of sums computed at a time. */
enum { LE_TARGET_PARTS = 16 };

typedef struct le_target {
  const le_model_ops *ops;
  const void *model;
  size_t d;            /* set once */
  const int *held;     /* set once; NULL, or 1 for coordinates of Gibbs steps (core/gibbs.h) */
  le_context *context; /* set once */
  const le_store *store;
  const struct le_past *past; /* represents rows that are not in the store any more */
  size_t seen, chunk;
  double lambda;
  struct le_gradient *gradient; /* derived from the stage; NULL: gradients from all data */
  /* variance of the gradient noise on the scale of the metric, where the density has variance 1;
   * NaN if gradients are exact */
  double noise;
  /* One metric for the particles before `split`, one for those from `split` on. Each half moves by
   * the metric made from the other half: a metric made from the particles that it moves biases
   * them, because a particle far outside widens the metric and so returns more easily than others
   * leave. */
  const le_metric *metric[2];
  size_t split;
  const gsl_rng *rng; /* the run's stream: mini-batches, jitter */
  /* NULL, or a reference: all particles were relabelled to be nearest to it. The target is then f
   * restricted to the fundamental domain of this reference. Without the restriction, particles
   * could move to other labellings, for which the metric does not fit, and would no longer
   * represent all of f. */
  const double *labels;
  size_t thread; /* scratch; of the part of the memory that belongs to a thread */
  int flat; /* scratch; 1: use the likelihood only, as if the prior were constant */
  /* NULL, or a lower limit of the chunk's log-likelihood; then lambda is 0 */
  const le_floor *floor;
  /* If not NULL the density is q^(1 - lambda) f^lambda, where q is this proposal and f the density
   * of the rows seen, without a chunk. Gradients are those of f, which q approximates; acceptance
   * uses the exact density. */
  const le_proposal *proposal;

  size_t block;        /* set once: rows per likelihood call */
  size_t m;            /* set once: largest number of particles */
  le_stack *stack;     /* scratch, for everything outside of threads */
  double *scratch;     /* scratch of every thread, one after another */
  size_t scratch_size; /* set once */
  double *work;    /* scratch; 2 m */
  double *grad;    /* scratch; m x d, for the second of two sums that are added */
  double *part; /* scratch: sums at one point for each part of the rows, d x d + d for each */
  double *few;        /* scratch: the same at a few points; NULL if threads do not share rows */
  double *relabelled; /* scratch; 2 d of every thread, one after another */
  le_pace *pace;                 /* derived */
  double *packed;                /* scratch; m x d: the points for which a likelihood is computed */
  size_t *chosen;                /* scratch; m: their indices */
  double likelihoods, gradients; /* number of evaluations of single observations so far */
} le_target;

/* Sets up everything except the rows: `seen`, `chunk` and `lambda` are zero. `more`: numbers that
 * fit on the stack besides four arrays of m points and four of d x d. */
void le_target_alloc(le_target *target, const le_model_ops *ops, const void *model, size_t m,
                     size_t more, le_context *context, le_arena *arena);

/* Overwrites value[m] with the log-likelihood of these rows and grad with its gradients; either may
 * be NULL. */
le_status le_target_sums(le_target *target, const le_rows *rows, size_t m, const double *theta,
                         double *value, double *grad);
/* The contract of the rows seen. Engines, searches and checks ask it and need not know where rows
 * are: their number is target->seen, a sample le_store_rows(store, 0, seen), and sums over all of
 * them are these. There are rows in memory, rows that have left it (core/past.h), and rows that are
 * elsewhere, of which sums are asked (core/question.h). */
typedef struct le_rows_ops {
  int readable;   /* 1: every row can be read here; 0: only the sample */
  int everywhere; /* 1: sums are right at all points; 0: around one anchor */
  /* At m points; with second derivatives if `hess` is not NULL, then without values at one. */
  le_status (*sums)(le_target *target, size_t from, size_t to, size_t m, const double *theta,
                    double *value, double *grad, double *hess);
} le_rows_ops;
const le_rows_ops *le_rows_of(const le_target *target);

/* Overwrites value[m] with the log-likelihood of rows [from, to). Here and below: unless all rows
 * are readable, `from` is 0 and `to` the number of rows seen, or the rows are later ones. */
le_status le_target_log_lik(le_target *target, size_t from, size_t to, size_t m,
                            const double *theta, double *value);
/* The same with gradients; if `value` is NULL, gradients only. */
le_status le_target_log_lik_grad(le_target *target, size_t from, size_t to, size_t m,
                                 const double *theta, double *value, double *grad);
/* Sums of gradients and second derivatives over these rows, or over [from, to), at one point;
 * overwrites both. Without `grad` the first one gives the information instead. */
le_status le_target_curvature(le_target *target, const le_rows *rows, const double *theta,
                              double *grad, double *matrix);
le_status le_target_log_lik_hess(le_target *target, size_t from, size_t to, const double *theta,
                                 double *grad, double *hess);
/* Overwrites `sums` with the value over these rows at one point, the gradient, and, if `order` is
 * 2, the second derivatives. */
le_status le_target_expand(le_target *target, const le_rows *rows, int order, const double *theta,
                           double *sums);
/* The same for use within a thread: adds to both; if `grad` is NULL, adds the information to
 * `matrix`. Evaluations are not counted here. */
le_status le_target_add_curvature(const le_target *target, const le_rows *rows, const double *theta,
                                  double *grad, double *matrix, double *scratch);
/* LE_NOT_FINITE and an error sentence if values of a model that must be checked are NaN or Inf. */
le_status le_target_check(const le_target *target, const char *what, size_t m, const double *theta,
                          const double *value);
/* Adds `weight` times the information matrix of rows [from, to) at one point. */
le_status le_target_information(le_target *target, size_t from, size_t to, double weight,
                                const double *theta, double *info);

/* Log density and gradient of the prior; either may be NULL. Zeros if the target has no prior
 * (`flat`). */
void le_target_prior(const le_target *target, size_t m, const double *theta, double *value,
                     double *grad);

/* Runs tasks 0..n-1; each idle thread takes the next one. Workers are numbered from zero and have
 * their own scratch memory. */
typedef le_status (*le_target_task)(void *self, const le_target *target, size_t task,
                                    size_t worker);
le_status le_target_tasks(const le_target *target, size_t n, int threads, le_target_task task,
                          void *self);

/* Below this number of particles x multiplications, threads cost more than they save: waking them
 * takes about as long. */
enum { LE_TARGET_THREADS_LEAST = 40000 };
/* Fixed cost of a particle, expressed in rows. */
enum { LE_TARGET_PARTICLE_COST = 20 };

/* The number of threads for a loop over m independent particles. */
static inline int le_target_threads(const le_target *target, size_t m, size_t multiplications)
{
  if (m * multiplications < LE_TARGET_THREADS_LEAST || target->context->threads <= 1 ||
      le_pace_rests(target->pace))
    return 1;
  return target->context->threads;
}

/* The largest work that is divided among threads by particles, in particles x rows: about a tenth
 * of a second. */
#define LE_TARGET_SHARED_MOST 8e6

/* A job for particles [first, first + m), independent of all other particles; it gets its own part
 * of the target's memory. */
typedef le_status (*le_target_job)(void *self, le_target *target, size_t first, size_t m);
/* Splits m particles among threads by each thread's measured speed. `rows` is the number of rows
 * that the job visits per particle. There is only one share if the work is too small for threads,
 * or so large that the user could not interrupt it; in the second case threads divide the sums over
 * rows. */
le_status le_target_share(le_target *target, size_t m, double rows, le_target_job job, void *self);

static inline double *le_target_scratch(const le_target *target, size_t worker)
{
  return target->scratch + worker * target->scratch_size;
}

/* Number of observations in the annealed distribution; the chunk's rows are multiplied by
 * lambda. */
static inline double le_target_size(const le_target *target)
{
  return (double)target->seen + target->lambda * (double)target->chunk;
}
