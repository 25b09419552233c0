/* The contract of a model: what a likelihood and a prior must offer so that every estimator of the
 * package can use them.  This header is the public part of the package and needs nothing but GSL;
 * src/core builds on it.
 *
 * A model is one constant table of functions (`le_model_ops`) and an opaque instance that `create`
 * makes.  Instances are read-only once made: every function may be called from several threads at once,
 * and whatever it needs to write goes to the `scratch` that the caller passes.
 *
 * Conventions
 *   theta     a point in unconstrained space, `dim` doubles.  Several particles lie one behind another:
 *             theta[i * dim + j] is coordinate j of particle i.
 *   rows      a block of observations, row-major: an observation is `width` contiguous doubles, its
 *             covariates first and its response, where there is one, last.
 *   sums      likelihood functions ADD to their outputs, so that blocks accumulate without copies; the
 *             caller clears them.  A particle's sums never depend on which other particles share the call.
 *   matrices  symmetric, dense, dim x dim, both triangles filled.
 */
#ifndef LOGEVIDENCE_H
#define LOGEVIDENCE_H

#include <stddef.h>
#include <string.h>
#include <gsl/gsl_rng.h>

#define LE_CONTRACT_VERSION 1

/* Every function that can fail returns one of these; the sentence is what a user reads when the place
 * that failed left no better one. */
#define LE_STATUS_LIST(X)                                                                          \
  X(LE_OK, "all is well")                                                                          \
  X(LE_NO_MEMORY, "there is not enough memory for this run")                                       \
  X(LE_BAD_ARGUMENT, "an argument is out of range")                                                \
  X(LE_UNSUPPORTED, "the model does not offer what the method needs")                              \
  X(LE_NOT_FINITE, "a density or gradient became infinite or not a number")                        \
  X(LE_ALL_IMPOSSIBLE, "no particle gives the observations a positive probability")                \
  X(LE_STALLED, "the annealing increment became too small to move")                                \
  X(LE_NOT_POSITIVE, "a matrix that must be positive definite is not")                             \
  X(LE_INTERRUPTED, "the run was interrupted")                                                     \
  X(LE_USER_ERROR, "the user's function raised an error")                                          \
  X(LE_CORRUPT, "the saved state is damaged or of another version")

typedef enum le_status {
#define LE_STATUS_ENUM(name, sentence) name,
  LE_STATUS_LIST(LE_STATUS_ENUM)
#undef LE_STATUS_ENUM
} le_status;

/* A block of observations. */
typedef struct le_rows {
  size_t n;             /* observations */
  size_t width;         /* doubles per observation */
  const double *values; /* n * width */
} le_rows;

/* Named settings, as a constructor gets them: numbers or one word. */
typedef struct le_arg {
  const char *name;
  size_t n;
  const double *values; /* n numbers, NULL for a word */
  const char *word;     /* NULL for numbers */
} le_arg;

typedef struct le_args {
  size_t n;
  const le_arg *arg;
} le_args;

static inline const le_arg *le_args_find(const le_args *args, const char *name)
{
  for (size_t i = 0; i < args->n; i++)
    if (strcmp(args->arg[i].name, name) == 0) return &args->arg[i];
  return NULL;
}

/* The first number called `name`, or `fallback`. */
static inline double le_args_number(const le_args *args, const char *name, double fallback)
{
  const le_arg *a = le_args_find(args, name);
  return a && a->values && a->n > 0 ? a->values[0] : fallback;
}

/* The word called `name`, or `fallback`. */
static inline const char *le_args_word(const le_args *args, const char *name, const char *fallback)
{
  const le_arg *a = le_args_find(args, name);
  return a && a->word ? a->word : fallback;
}

/* What a model says of itself. */
enum {
  LE_MODEL_MULTIMODAL = 1u << 0, /* the posterior may have several modes */
  LE_MODEL_QUADRATIC = 1u << 1   /* the log-likelihood is quadratic in theta: second-order expansions are exact */
};

#define LE_MESSAGE_SIZE 512

/* A model with a latent variable for each observation, and parameters common to all that are integrated out or among the
 * state.  A state, `size(self, n)` doubles for up to n observations, is all that a Markov chain moves: copying it copies the
 * chain.  It stands for the first `seen` rows, which every call is given, and for a likelihood to the power lambda:
 *
 *     f(state; seen, lambda) = p(state) * p(rows | state)^lambda, or its integral over what the state leaves out
 *
 * Sweeps visit latents and parameters in a fixed order, or all in the opposite one.  All members
 * are REQUIRED but the last two.
 * The package's own models alone have them: compiled_model() does not take models with latent variables. */
enum { LE_GRID_BITS = 36 };

typedef struct le_latent_ops {
  size_t (*size)(const void *self, size_t n);
  /* Doubles of scratch that any of the calls may write. */
  size_t (*scratch)(const void *self, size_t n);
  /* A state of no rows: parameters, where they are part of it, are drawn from the prior. */
  void (*start)(const void *self, const gsl_rng *rng, double *state);
  /* Draws the next row's latent from its prior, whatever the row is; `seen` counts it afterwards. */
  void (*extend_blind)(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                       double *state, double *scratch);
  /* The same from its conditional, given the row and the rest at lambda = 1.  Returns log p(row | rest): the sum over what
   * it might have drawn. */
  double (*extend)(const void *self, size_t seen, const le_rows *rows, const gsl_rng *rng,
                   double *state, double *scratch);
  /* log p(row | rest, its own latent): the weight of a blind extension to `seen` rows; and log p(row | rest), which a state
   * that knows the row's latent may forget.  Both of the last row seen. */
  double (*last_given_latent)(const void *self, size_t seen, const le_rows *rows, double *state,
                              double *scratch);
  double (*last_given_rest)(const void *self, size_t seen, const le_rows *rows, double *state,
                            double *scratch);
  /* log p(state), and the log-likelihood of the rows at lambda, the integral included: log f is their sum. */
  double (*log_prior)(const void *self, size_t seen, const double *state);
  double (*log_lik)(const void *self, size_t seen, const le_rows *rows, double lambda,
                    const double *state, double *scratch);
  /* One sweep at lambda, backwards if so asked.  With `to` not NULL it is not free: latents and parameters become those of that
   * state, and the return value is the log density of that (unknown variances and probabilities move on their own); otherwise
   * 0 is returned. */
  double (*sweep)(const void *self, size_t seen, const le_rows *rows, double lambda, int backwards,
                  const double *to, const gsl_rng *rng, double *state, double *scratch);
  /* One sweep that leaves p(state) invariant where log_lik at lambda = 1 exceeds `floor`; states just there, but for a
   * relative difference of 2^-LE_GRID_BITS, count with the weight `tie`. */
  void (*sweep_above)(const void *self, size_t seen, const le_rows *rows, double floor, double tie,
                      const gsl_rng *rng, double *state, double *scratch);
  /* Rows given a state that knows all their latents, and the parameters that they were made from forgotten again. */
  void (*simulate)(const void *self, size_t n, const double *state, const gsl_rng *rng,
                   double *rows, double *scratch);
  /* OPTIONAL (0).  The log of the number of relabellings that leave every density unchanged. */
  double (*log_symmetry)(const void *self);
  /* OPTIONAL (always).  Are these numbers a state of so many rows: labels within range, variances positive?  Asked of states that
   * come from outside; the other functions trust them. */
  int (*possible)(const void *self, size_t seen, const double *state);
  /* OPTIONAL.  Turns a state into another of the same density that sweeps hardly ever reach: of a product of two matrices, both with a
   * column's signs changed. */
  void (*mirror)(const void *self, size_t seen, double *state);
} le_latent_ops;

/* Mean-field variational Bayes: densities q, a product of factors, of all that the model does not integrate out by itself, and
 * the bound  E_q[log p(rows, unknowns) - log q] <= log evidence.  q is an array of `size(self, n)` doubles for n rows, which
 * are all there at once.  Members are REQUIRED unless marked. */
typedef struct le_variational_ops {
  size_t (*size)(const void *self, size_t n);
  /* Doubles of scratch that any of the calls may write. */
  size_t (*scratch)(const void *self, size_t n);
  /* OPTIONAL (1).  The number of factors that are updated, one by one, in this order. */
  size_t (*factors)(const void *self);
  /* A q whose bound is finite: at random, or with `hint` not NULL around that state (of a model with latent variables) or
   * theta. */
  le_status (*start)(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng,
                     double *q, double *scratch);
  /* Makes one factor the best that it can be while the others stay as they are; one of several parts, each part in turn.
   * Never lowers the bound. */
  le_status (*update)(const void *self, const le_rows *rows, size_t factor, double *q,
                      double *scratch);
  /* The bound, all constants included; not a number where q is no density. */
  double (*bound)(const void *self, const le_rows *rows, const double *q, double *scratch);
  /* A draw from q: a state, or theta. */
  void (*draw)(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
               double *scratch);
  /* OPTIONAL (0).  What all relabellings of q together add to the bound of one: at most log_symmetry, less where they
   * overlap. */
  double (*symmetry)(const void *self, size_t n, const double *q, const gsl_rng *rng,
                     double *scratch);
} le_variational_ops;

typedef struct le_model_ops {
  unsigned version; /* LE_CONTRACT_VERSION */
  size_t size;      /* sizeof(le_model_ops) */
  const char *name;
  unsigned traits;

  /* REQUIRED.  Makes an instance from its settings; on failure leaves *self NULL and a sentence in
   * `message` (LE_MESSAGE_SIZE bytes). */
  le_status (*create)(const le_args *args, void **self, char *message);
  /* REQUIRED.  Accepts NULL. */
  void (*destroy)(void *self);
  /* REQUIRED.  Number of unconstrained parameters. */
  size_t (*dim)(const void *self);
  /* REQUIRED.  Doubles per observation. */
  size_t (*width)(const void *self);
  /* OPTIONAL (0).  Doubles of scratch that a likelihood call with so many particles and rows may write. */
  size_t (*scratch)(const void *self, size_t particles, size_t rows);

  /* REQUIRED.  Normalised log prior density of each particle, Jacobian included; overwrites value[m]. */
  void (*log_prior)(const void *self, size_t m, const double *theta, double *value);
  /* OPTIONAL, needed by gradient kernels.  Overwrites grad[m * dim]. */
  void (*log_prior_grad)(const void *self, size_t m, const double *theta, double *grad);
  /* OPTIONAL, with log_lik_hess.  Adds the matrix of second derivatives of the log prior at one point. */
  void (*log_prior_hess)(const void *self, const double *theta, double *hess);
  /* REQUIRED.  One draw from the prior. */
  void (*draw_prior)(const void *self, const gsl_rng *rng, double *theta);

  /* REQUIRED.  Adds the log-likelihood of the block to value[m]; -Inf is a legal value, NaN is not. */
  le_status (*log_lik)(const void *self, size_t m, const double *theta, const le_rows *rows,
                       double *value, double *scratch);
  /* OPTIONAL, needed by gradient kernels.  Adds to value[m] and to grad[m * dim]. */
  le_status (*log_lik_grad)(const void *self, size_t m, const double *theta, const le_rows *rows,
                            double *value, double *grad, double *scratch);
  /* OPTIONAL (log_lik_grad, its values dropped).  Adds to grad alone, for the many who ask for no value: mini-batches, and trajectories
   * between their ends. It may be faster, and of single precision: six digits, of entries that are not tiny beside others. What is added
   * for a particle depends on it and the block alone. */
  le_status (*log_lik_grad_alone)(const void *self, size_t m, const double *theta,
                                  const le_rows *rows, double *grad, double *scratch);
  /* OPTIONAL, needed for second-order control variates and for curvature metrics.  At one point, adds the
   * gradient to grad[dim] and the second derivatives (of the log-likelihood: negative at a peak) to hess. */
  le_status (*log_lik_hess)(const void *self, const double *theta, const le_rows *rows,
                            double *grad, double *hess, double *scratch);
  /* OPTIONAL (minus the second derivatives).  Adds a positive semi-definite information matrix at one point:
   * for mixtures the information of the completed data, which stays sensible where the observed one is not. */
  le_status (*information)(const void *self, const double *theta, const le_rows *rows, double *info,
                           double *scratch);
  /* REQUIRED.  Overwrites value[m * rows->n] with the log-likelihood of each row: value[i * rows->n + r]. */
  le_status (*log_lik_each)(const void *self, size_t m, const double *theta, const le_rows *rows,
                            double *value, double *scratch);

  /* OPTIONAL.  Draws the responses of n rows (row-major, covariates already there) given theta. */
  void (*simulate)(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                   double *rows);
  /* OPTIONAL.  The exact log evidence of the rows; NaN where these settings leave no closed form. */
  le_status (*exact)(const void *self, const le_rows *rows, double *log_evidence);

  /* OPTIONAL (0).  log of the number of relabellings that leave every density unchanged. */
  double (*log_symmetry)(const void *self);
  /* OPTIONAL (log_symmetry).  log of the number of distinct points that the relabellings make of theta: fewer where
   * parts of it are alike. */
  double (*log_orbit)(const void *self, const double *theta);
  /* OPTIONAL, required when log_symmetry is positive.  Among the relabellings of theta picks the one nearest to
   * `reference`, in place; the points it leaves alone form a fundamental domain.  Returns 0 if
   * theta is left alone, 2 if it was
   * enough to exchange parts for which the reference has parts that are alike (as counted by log_orbit), 1 otherwise. */
  int (*relabel)(const void *self, const double *reference, double *theta);

  /* OPTIONAL (dim).  Number of parameters on the user's scale. */
  size_t (*user_dim)(const void *self);
  /* OPTIONAL (a copy).  theta on the user's scale. */
  void (*to_user)(const void *self, const double *theta, double *user);

  /* OPTIONAL.  Of a model with latent variables, which needs only `create`, `destroy` and `width` besides. */
  const le_latent_ops *latent;
  /* OPTIONAL.  For variational(), which compiled models do without. */
  const le_variational_ops *variational;
  /* OPTIONAL.  The same for a model with latent variables when parameters are points: a `q` is then the parameters, an update a
   * step of EM, the bound their log-likelihood with latents summed out, and there is no symmetry.  For bic(). */
  const le_variational_ops *maximum;

  /* OPTIONAL.  A point from which to climb to a peak of the posterior, made from these rows and random numbers, however the
   * columns are located and scaled.  `scratch` holds start_scratch(self, rows->n) doubles. */
  void (*start)(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                double *scratch);
  /* REQUIRED with `start`. */
  size_t (*start_scratch)(const void *self, size_t rows);

  /* OPTIONAL.  Coordinates in which the posterior around `peak` is nearer to normal, and which agree with theta to first order
   * there: `out` is theta in them, and the return value the log determinant of their derivatives by
   * theta.  For proposals of
   * importance sampling. */
  double (*to_normal)(const void *self, const double *peak, const double *theta, double *out);
  /* REQUIRED with `to_normal`.  Its inverse, in place; 0 if no theta has these coordinates, 1 otherwise. */
  int (*from_normal)(const void *self, const double *peak, double *point);
} le_model_ops;

#endif
