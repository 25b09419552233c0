/* The functions of a model by name: one table says what each gets and writes, and calls it. The
 * memory belongs to the caller, for R that of the answer (eval.c), for check_model() memory with
 * guards around it (check.c). */
#pragma once

#include "bridge/bridge.h"

/* What theta is: a point; a state, of a model with latent variables; or the numbers of q, of
 * variational Bayes. */
typedef enum point_kind { OF_POINT, OF_STATE, OF_FACTORS } point_kind;

/* Numbers of which outputs are products. A POINT is what q is a density of: a point or a state. */
typedef enum extent { NONE, ONE, POINTS, DIM, USERS, ROWS, WIDTH, A_POINT, EFFECTS_OF_ROWS } extent;

typedef struct output {
  const char *name;
  extent rows, columns; /* a vector if there is ONE column */
} output;

enum {
  NO_POINT = 1,    /* theta is only written, or not used */
  ONE_POINT = 2,
  GETS_ROWS = 4,
  BY_ROW = 8,      /* writes numbers of each row, so that blocks of rows are independent */
  ADDS = 16,       /* adds to its outputs, so that blocks of rows are added up */
  CHANGES = 32,    /* theta, which it may change, is its answer */
  GETS_OTHER = 64, /* it needs another point */
  MAY_GET_OTHER = 128
};

typedef enum function_id {
  LOG_PRIOR, LOG_PRIOR_GRAD, LOG_PRIOR_HESS, DRAW_PRIOR, LOG_LIK, LOG_LIK_GRAD,
  LOG_LIK_GRAD_ALONE, LOG_LIK_HESS, INFORMATION, LOG_LIK_EACH, EXACT, TO_USER, SIMULATE, EFFECTS,
  RELABEL, LOG_ORBIT, START, TO_NORMAL, FROM_NORMAL, STATE_START, EXTEND_BLIND, EXTEND,
  STATE_LOG_PRIOR, STATE_LOG_LIK, SWEEP, SWEEP_ABOVE, LAST_GIVEN_LATENT, LAST_GIVEN_REST, POSSIBLE,
  STATE_SIMULATE, Q_START, Q_UPDATE, Q_BOUND, Q_DRAW, Q_SYMMETRY
} function_id;

typedef struct model_function {
  function_id id;
  const char *name;
  point_kind of;
  size_t needs; /* offset of a member in the table of the model that must not be NULL */
  int uses;
  output first, second; /* if there are any */
} model_function;

/* One call of one function. */
typedef struct model_call {
  const model_function *function;
  const le_model_ops *ops;
  const le_variational_ops *factors; /* the table `variational` or `maximum` */
  const void *self;
  size_t d, m, seen, factor; /* d: numbers of a theta; m: number of them */
  double lambda, floor, tie;
  int backwards;
  le_rows rows;
  /* another point, or one for each point: a reference, a peak, the end of a sweep, a hint for q */
  const double *other;
  size_t others; /* numbers in it */
  double *theta, *first, *second, *scratch;
  gsl_rng *rng;
  le_status status;
  double value;
} model_call;

/* Reads a call: the function `what`, rows and points from R (points are given in `theta` and must
 * be copied if the function changes them), and a list of further arguments: `n` (number of points
 * that are drawn), `seed` (two words), `other`, `seen`, `lambda`, `backwards`, `floor`, `tie`,
 * `factor`, and `maximum`, whether the functions of q are those of the table `maximum`. Outputs and
 * scratch memory are still missing. */
model_call read_call(const model_handle *handle, const char *what, SEXP rows, SEXP theta,
                     SEXP more);
/* Makes a call. It may be made as often as one likes: it allocates nothing and, except for models
 * of R functions, asks nothing of R. */
void make_call(model_call *c);
/* The number of doubles of an output, and of scratch memory for so many rows. */
size_t call_output(const model_call *c, output of);
size_t call_scratch(const model_call *c, size_t rows);
/* An output as R shows it, filled with zeros. */
SEXP new_output(const model_call *c, output of);
/* Raises the error of a call, if there was one. */
void raise_call(const model_call *c, const model_handle *handle);
