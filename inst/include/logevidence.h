/* The contract of a model: the functions for likelihood and prior that the estimators of the
 * package call. This header is public and needs nothing but GSL; src/core builds on it.
 *
 * A model is one constant table of functions (`le_model_ops`) and an opaque instance made by
 * `create`. An instance is read-only after that: every function may be called from several threads
 * at once, and writes only to its outputs and to the `scratch` that the caller passes, whose
 * content before the call is undefined.
 *
 * Conventions
 *   theta     a point in unconstrained space, `dim` doubles.  Particles are stored one after
 *             another: theta[i * dim + j] is coordinate j of particle i.
 *   rows      a block of observations, row-major: an observation is `width` contiguous doubles,
 *             covariates first, then the response if there is one.
 *   sums      likelihood functions ADD to their outputs, so that blocks accumulate without
 *             copies; the caller sets the outputs to zero first. The result of a particle
 *             must not depend on the other particles of the call.
 *   matrices  symmetric, dense, dim x dim, both triangles filled.
 */
#ifndef LOGEVIDENCE_H
#define LOGEVIDENCE_H

#include <stddef.h>
#include <string.h>
#include <gsl/gsl_rng.h>

#define LE_CONTRACT_VERSION 4

/* Every function that can fail returns one of these. The user reads the sentence when the function
 * that failed has written no more specific message. */
#define LE_STATUS_LIST(X)                                                                          \
  X(LE_OK, "No error.")                                                                            \
  X(LE_NO_MEMORY, "There is not enough memory for this run.")                                      \
  X(LE_BAD_ARGUMENT, "An argument is out of range.")                                               \
  X(LE_UNSUPPORTED, "The model does not offer what the method needs.")                             \
  X(LE_NOT_FINITE, "A density or gradient became infinite or not a number.")                       \
  X(LE_ALL_IMPOSSIBLE, "No particle gives the observations a positive probability.")               \
  X(LE_STALLED, "The annealing increment became too small.")                                       \
  X(LE_NOT_POSITIVE, "A matrix is not positive definite.")                                         \
  X(LE_INTERRUPTED, "The run was interrupted.")                                                    \
  X(LE_USER_ERROR, "The user's function raised an error.")                                         \
  X(LE_CORRUPT, "The saved state is damaged or belongs to another version.")

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

/* Named settings, as a constructor gets them: each is either numbers or one word. */
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

/* Traits of a model. */
enum {
  LE_MODEL_MULTIMODAL = 1u << 0, /* the posterior may have several modes */
  /* the log-likelihood is quadratic in theta: second-order expansions are exact */
  LE_MODEL_QUADRATIC = 1u << 1,
  LE_MODEL_ONE_THREAD = 1u << 2, /* no two calls at the same time */
  /* the likelihood depends on theta alone: there is one row, which has no information */
  LE_MODEL_NO_DATA = 1u << 3,
  LE_MODEL_CHECKED = 1u << 4, /* values are checked: NaN or +Inf at a point is an error */
  /* gradients are differences of densities; second derivatives are then made from densities, too */
  LE_MODEL_DIFFERENCES = 1u << 5,
  LE_MODEL_UNITS = 1u << 6 /* a row is a group of observations: a few rows may say much */
};

#define LE_MESSAGE_SIZE 512

/* A model with one latent variable per observation. Common parameters are either integrated out or
 * part of the state. A state is an array of `size(self, n)` doubles for up to n observations and
 * holds everything that a Markov chain changes: copying the array copies the chain. A state belongs
 * to the rows that were seen, and to a likelihood raised to the power lambda:
 *
 *     f(state; rows, lambda) = p(state) * p(rows | state)^lambda
 *
 * or the integral of this over the parameters that the state does not contain.
 *
 * A sweep updates latents and parameters in a fixed order, or in exactly the reverse order. Members
 * are REQUIRED unless marked. Only the package's own models have latent variables: compiled_model()
 * does not accept them. */
enum { LE_GRID_BITS = 36 };

typedef struct le_chain {
  le_rows rows; /* those seen, in order: the state has a latent for each */
  double lambda;
  /* 1: lambda is 1, and sweeps leave p(state) invariant on the set where the log-likelihood is
   * above `floor`. States whose log-likelihood equals `floor` up to a relative difference of
   * 2^-LE_GRID_BITS have weight `tie`. */
  int walled;
  double floor, tie;
  const gsl_rng *rng;
  double *state, *scratch;
} le_chain;

typedef struct le_latent_ops {
  size_t (*size)(const void *self, size_t n);
  /* Number of doubles of scratch that any of the calls may write. */
  size_t (*scratch)(const void *self, size_t n);
  /* A state for zero rows: parameters that are part of the state are drawn from the prior. */
  void (*start)(const void *self, const gsl_rng *rng, double *state);
  /* Draws the latent of the last row from its prior, without looking at the row. */
  void (*extend_blind)(const void *self, const le_chain *chain);
  /* The same, but draws the latent from its conditional distribution given the row and the rest of
   * the state, at lambda = 1; with rng = NULL it draws nothing. Returns log p(row | rest), summed
   * over the values of the latent. */
  double (*extend)(const void *self, const le_chain *chain);
  /* log p(row | rest, its latent) of the last row, which is the weight of an extension from the
   * prior. */
  double (*last_given_latent)(const void *self, const le_chain *chain);
  /* log p(state), and the log-likelihood of the rows at lambda, including the integral if there is
   * one. log f is their sum. */
  double (*log_prior)(const void *self, const le_chain *chain);
  double (*log_lik)(const void *self, const le_chain *chain);
  /* One sweep, in reverse order if `backwards`. If `to` is not NULL nothing is drawn for latents
   * and parameters: they become those of `to`, and the return value is the log density of this
   * transition; unknown variances and probabilities are drawn as usual. Without `to` the return
   * value is 0. A chain under a constraint has neither. */
  double (*sweep)(const void *self, const le_chain *chain, int backwards, const double *to);
  /* Draws rows given a state that contains all their latents; those of the chain are not read.
   * Parameters drawn on the way are discarded. */
  void (*simulate)(const void *self, const le_chain *chain, double *rows);
  /* OPTIONAL (0). The log of the number of relabellings that leave every density unchanged. */
  double (*log_symmetry)(const void *self);
  /* OPTIONAL (always 1). Whether these numbers are a valid state for n rows: labels within range,
   * variances positive. Called for states from outside the run; the other functions do not
   * check. */
  int (*possible)(const void *self, size_t n, const double *state);
  /* OPTIONAL, all or none: relabellings that leave every density unchanged. A state has so many
   * parts (components, attributes, columns of a factor). Parts of equal `kind` may be exchanged,
   * and with `signs` the sign of each may be reversed. */
  size_t (*parts)(const void *self);
  double (*kind)(const void *self, size_t part);
  int signs;
  /* Of states for n rows: part c of `out` becomes part image[c] / 2 of `state`, with its sign
   * reversed if image[c] is odd. */
  void (*renumber)(const void *self, size_t n, const size_t *image, const double *state,
                   double *out);
  /* likeness[c * parts + j]: how alike part c of one state is to part j of another one. A guess of
   * how much a sweep prefers to give part j the place c, in nats; with its sign reversed, minus
   * that. */
  void (*likeness)(const void *self, size_t n, const double *one, const double *other,
                   double *likeness);
} le_latent_ops;

/* Mean-field variational Bayes. q is a product of densities for all unknowns that the model does
 * not integrate out analytically, with the bound
 *
 *     E_q[log p(rows, unknowns) - log q] <= log evidence.
 *
 * q is an array of `size(self, n)` doubles for all n rows. Members are REQUIRED unless marked. */
typedef struct le_variational_ops {
  size_t (*size)(const void *self, size_t n);
  /* Number of doubles of scratch that any of the calls may write. */
  size_t (*scratch)(const void *self, size_t n);
  /* OPTIONAL (1). Number of factors; they are updated one after another, in this order. */
  size_t (*factors)(const void *self);
  /* A q with a finite bound: random if `hint` is NULL, otherwise centred on `hint`, which is a
   * state (of a model with latent variables) or a theta. */
  le_status (*start)(const void *self, const le_rows *rows, const double *hint, const gsl_rng *rng,
                     double *q, double *scratch);
  /* Sets one factor to its optimum given the other factors; a factor of several parts is updated
   * part by part. Never lowers the bound. */
  le_status (*update)(const void *self, const le_rows *rows, size_t factor, double *q,
                      double *scratch);
  /* The bound including all constants; NaN if q is not a density. */
  double (*bound)(const void *self, const le_rows *rows, const double *q, double *scratch);
  /* Draws from q: a state or a theta. */
  void (*draw)(const void *self, size_t n, const double *q, const gsl_rng *rng, double *point,
               double *scratch);
  /* OPTIONAL (0). How much the bound of the mixture of all relabellings of q exceeds the bound of q
   * alone: at most log_symmetry, less if the relabellings overlap. */
  double (*symmetry)(const void *self, size_t n, const double *q, const gsl_rng *rng,
                     double *scratch);
} le_variational_ops;

/* Partitions of the rows, for a mixture of K exchangeable components with conjugate priors. Weights
 * and parameters are integrated out: n rows whose labels divide them into t blocks have the joint
 * density
 *
 *     prod_b s(n_b) m(rows of b),     summed over labellings  c(K, t) prod_b s(n_b) m(rows of b),
 *
 * where m is the evidence of one block alone, s(n_b) its factor in the prior of the labels, and
 * c(K, t) the number of ways to give t blocks K labels, times what is left of that prior. Neither s
 * nor m depends on K.
 *
 * A block is an array of `size(self)` doubles that stands for its rows in any order; zeros are
 * replaced by `clear`.
 *
 * A model of one component, of any kind whose parameters can be integrated out, describes with the
 * same table segments of rows, for change points. It needs neither `log_densities`, `log_size` nor
 * `log_labellings`, and only adds rows. Otherwise members are REQUIRED. */
typedef struct le_partition_ops {
  size_t (*size)(const void *self);
  /* Numbers that all blocks of these rows share, `tables(self, rows->n)` doubles. */
  size_t (*tables)(const void *self, size_t n);
  void (*prepare)(const void *self, const le_rows *rows, double *tables);
  /* The block without rows; with one row more (sign 1) or less (sign -1). */
  void (*clear)(const void *self, const double *tables, double *block);
  void (*add)(const void *self, const double *tables, const double *row, double sign,
              double *block);
  /* Adds the rows of the other block. */
  void (*join)(const void *self, const double *tables, const double *other, double *block);
  /* log m; and the log densities of a further row given the rows of each of n blocks, which lie
   * one after another. */
  double (*log_evidence)(const void *self, const double *tables, const double *block);
  void (*log_densities)(const void *self, const double *tables, const double *row, size_t n,
                        const double *blocks, double *out);
  /* log s of a block of that many rows, and log c: -Inf if t exceeds K. */
  double (*log_size)(const void *self, size_t rows);
  double (*log_labellings)(const void *self, size_t components, size_t n, size_t t);
  /* Number of unconstrained parameters of a mixture of so many components; 0 if these settings
   * have no closed form. */
  size_t (*dim)(const void *self, size_t components);
  /* Draws its parameters given the blocks, one for each of the first t components; the others have
   * no rows. `scratch` has a double for each component. With rng = NULL a typical point instead. */
  void (*draw)(const void *self, const double *tables, size_t components, size_t t,
               const double *const *block, const gsl_rng *rng, double *theta, double *scratch);
  /* OPTIONAL, all or none: for importance sampling from the posteriors given partitions.
   * Log densities as dot products of `terms(self)` numbers: those of the components of theta, one
   * component after another, with those of a row give the log of a component's weight times its
   * density of the row; with those of a block the log of its posterior density given the rows of
   * the block, times weight^(n_b + exponent of the prior) / s(n_b), relative to any measure. */
  size_t (*terms)(const void *self);
  void (*component_terms)(const void *self, const double *tables, size_t components,
                          const double *theta, double *out);
  void (*row_terms)(const void *self, const double *tables, const double *row, double *out);
  void (*block_terms)(const void *self, const double *block, double *out);
} le_partition_ops;

typedef struct le_model_ops {
  unsigned version; /* LE_CONTRACT_VERSION */
  size_t size;      /* sizeof(le_model_ops) */
  const char *name;
  unsigned traits;

  /* REQUIRED. Makes an instance from its settings; on failure leaves *self NULL and a sentence in
   * `message` (LE_MESSAGE_SIZE bytes). */
  le_status (*create)(const le_args *args, void **self, char *message);
  /* REQUIRED. Accepts NULL. */
  void (*destroy)(void *self);
  /* REQUIRED. Number of unconstrained parameters. */
  size_t (*dim)(const void *self);
  /* REQUIRED. Doubles per observation. */
  size_t (*width)(const void *self);
  /* OPTIONAL (0). Number of doubles of scratch that a likelihood call with this many particles and
   * rows may write. */
  size_t (*scratch)(const void *self, size_t particles, size_t rows);

  /* REQUIRED. Normalised log prior density of each particle, including the Jacobian; overwrites
   * value[m]. */
  void (*log_prior)(const void *self, size_t m, const double *theta, double *value);
  /* OPTIONAL, needed by gradient kernels. Overwrites grad[m * dim]. */
  void (*log_prior_grad)(const void *self, size_t m, const double *theta, double *grad);
  /* OPTIONAL, with log_lik_hess. Adds the matrix of second derivatives of the log prior at one
   * point. */
  void (*log_prior_hess)(const void *self, const double *theta, double *hess);
  /* REQUIRED. One draw from the prior. */
  void (*draw_prior)(const void *self, const gsl_rng *rng, double *theta);

  /* REQUIRED. Adds the log-likelihood of the block to value[m]; -Inf is a legal value, NaN is
   * not. */
  le_status (*log_lik)(const void *self, size_t m, const double *theta, const le_rows *rows,
                       double *value, double *scratch);
  /* OPTIONAL, needed by gradient kernels. Adds to value[m] and to grad[m * dim]. */
  le_status (*log_lik_grad)(const void *self, size_t m, const double *theta, const le_rows *rows,
                            double *value, double *grad, double *scratch);
  /* OPTIONAL (log_lik_grad, values dropped). Adds to grad only, for callers that do not need the
   * value: mini-batches, and inner points of trajectories. May use single precision (six digits for
   * entries that are not tiny compared with the others). The result of a particle must depend only
   * on this particle and the block. */
  le_status (*log_lik_grad_alone)(const void *self, size_t m, const double *theta,
                                  const le_rows *rows, double *grad, double *scratch);
  /* OPTIONAL, needed for second-order control variates and for curvature metrics. At one point,
   * adds the gradient to grad[dim] and the second derivatives of the log-likelihood (negative
   * definite at a mode) to hess. */
  le_status (*log_lik_hess)(const void *self, const double *theta, const le_rows *rows,
                            double *grad, double *hess, double *scratch);
  /* OPTIONAL (minus the second derivatives). Adds a positive semi-definite information matrix at
   * one point. Mixtures return the information of the completed data, because the observed
   * information may be indefinite. */
  le_status (*information)(const void *self, const double *theta, const le_rows *rows, double *info,
                           double *scratch);
  /* REQUIRED. Overwrites value[m * rows->n] with the log-likelihood of each row; row r of particle
   * i is value[i * rows->n + r]. */
  le_status (*log_lik_each)(const void *self, size_t m, const double *theta, const le_rows *rows,
                            double *value, double *scratch);

  /* OPTIONAL. Draws the responses of n rows (row-major, covariates already filled in) given
   * theta. */
  void (*simulate)(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                   double *rows);
  /* OPTIONAL. The exact log evidence of the rows; NaN if these settings have no closed form (also
   * for no rows), infinite if the rows determine parameters without error. */
  le_status (*exact)(const void *self, const le_rows *rows, double *log_evidence);

  /* OPTIONAL (0). log of the number of relabellings that leave every density unchanged. */
  double (*log_symmetry)(const void *self);
  /* OPTIONAL (log_symmetry). log of the number of distinct points among all relabellings of theta:
   * fewer if parts of theta are equal. */
  double (*log_orbit)(const void *self, const double *theta);
  /* OPTIONAL, required if log_symmetry is positive. Replaces theta by its relabelling nearest to
   * `reference`; the points that it leaves unchanged form a fundamental domain. Returns 0 if theta
   * is unchanged, 2 if only parts were exchanged whose counterparts in the reference are equal (see
   * log_orbit), 1 otherwise. */
  int (*relabel)(const void *self, const double *reference, double *theta);

  /* OPTIONAL (dim). Number of parameters on the user's scale. */
  size_t (*user_dim)(const void *self);
  /* OPTIONAL (a copy). theta on the user's scale. */
  void (*to_user)(const void *self, const double *theta, double *user);

  /* OPTIONAL. For a model with latent variables; such a model needs only `create`, `destroy` and
   * `width` besides. */
  const le_latent_ops *latent;
  /* OPTIONAL. For variational(); compiled models cannot have it. */
  const le_variational_ops *variational;
  /* OPTIONAL, for bic(). The same table for the maximum likelihood of a model with latent
   * variables: q holds the parameters, an update is a step of EM, the bound is the log-likelihood
   * with latents summed out, and `symmetry` is absent. */
  const le_variational_ops *maximum;

  /* OPTIONAL. A random starting point, made from the rows, for finding a posterior mode; it must
   * work for any location and scale of the columns. `scratch` holds start_scratch(self, rows->n)
   * doubles. */
  void (*start)(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                double *scratch);
  /* REQUIRED with `start`. */
  size_t (*start_scratch)(const void *self, size_t rows);

  /* OPTIONAL. Coordinates in which the posterior around the mode `peak` is closer to normal; to
   * first order they agree with theta at `peak`. Writes the coordinates of theta to `out` and
   * returns the log determinant of their derivatives by theta. Used by proposals of importance
   * sampling. */
  double (*to_normal)(const void *self, const double *peak, const double *theta, double *out);
  /* REQUIRED with `to_normal`. Its inverse, in place; returns 0 if no theta has these coordinates,
   * else 1. */
  int (*from_normal)(const void *self, const double *peak, double *point);

  /* OPTIONAL (the normal density at the mode). With `exact`: m independent draws from the
   * posterior, theta[m * dim]. */
  le_status (*exact_draws)(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                           double *theta);

  /* OPTIONAL. Says that, given so many of the last coordinates (logarithms of scales or shapes, or
   * none), the posterior of the others has one mode. Importance sampling then draws these first
   * where the posterior is far from normal. Needs first and second derivatives. */
  size_t (*scales)(const void *self);

  /* OPTIONAL (0). The smallest degrees of freedom of Student t priors of coordinates, if there are
   * any: where the rows say little the posterior has such tails, and so have some of the draws of
   * importance sampling. */
  double (*tails)(const void *self);

  /* OPTIONAL. For partitions(), which finds the evidence for all numbers of components, and for
   * change points. */
  const le_partition_ops *partitions;

  /* OPTIONAL. For models whose rows are groups: a draw of the effects of each row given theta, or
   * their mean if rng is NULL; `effects_size(self)` numbers for each row, of which it may use
   * fewer. `scratch` is that of one particle. */
  size_t (*effects_size)(const void *self);
  void (*effects)(const void *self, const double *theta, const le_rows *rows, const gsl_rng *rng,
                  double *out, double *scratch);

  /* OPTIONAL. The names of the settings that `create` reads, ended by NULL. compiled_model() then
   * refuses all others, such as misspelt ones. */
  const char *const *settings;

  /* OPTIONAL (every coordinate is a real number). The number of values that coordinate j can take,
   * and these values; 0 for a real number. draw_prior gives nothing else, and log_prior is the log
   * density of the real numbers times the probability of these values. Runs of smc() and ais() draw
   * each of these coordinates from its conditional distribution given all others (Gibbs steps),
   * after each move of the others. Gradients by them are not used, but must be finite. */
  size_t (*discrete)(const void *self, size_t j, const double **values);
} le_model_ops;

#endif
