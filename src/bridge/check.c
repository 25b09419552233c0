/* The functions of a model, each called in memory that is exactly as large as the contract says,
 * with guards around it: check_model() compares what they return.  Guards are known numbers, which
 * nobody may change; those behind the rows are chosen by the caller, as a model that reads them
 * returns something else when they are others. */
#include "bridge/bridge.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"

#include <math.h>

enum { BEFORE = 65, BEHIND = 2048, MOST_WORDS = 8 };

/* Numbers between guards.  So many lie behind that a model with wrong strides does no harm. */
typedef struct pen {
  double *values, guard;
  size_t n, behind;
} pen;

static pen make_pen(size_t n, double guard)
{
  pen p = {NULL, guard, n, BEHIND + 2 * n};
  p.values = (double *)R_alloc(BEFORE + n + p.behind, sizeof(double)) + BEFORE;
  for (size_t i = 0; i < BEFORE; i++) p.values[i - BEFORE] = guard;
  for (size_t i = 0; i < p.behind; i++) p.values[n + i] = guard;
  return p;
}

static void fill(pen *p, double value)
{
  for (size_t i = 0; i < p->n; i++) p->values[i] = value;
}

static pen copy_pen(const double *from, size_t n, double guard)
{
  pen p = make_pen(n, guard);
  if (n) memcpy(p.values, from, n * sizeof(double));
  return p;
}

/* Bits, as guards may be NaN. */
static int same(const double *a, const double *b, size_t n)
{
  return n == 0 || memcmp(a, b, n * sizeof(double)) == 0;
}

static int whole(const pen *p)
{
  for (size_t i = 0; i < BEFORE; i++)
    if (!same(p->values + i - BEFORE, &p->guard, 1)) return 0;
  for (size_t i = 0; i < p->behind; i++)
    if (!same(p->values + p->n + i, &p->guard, 1)) return 0;
  return 1;
}

/* One call of one function, ready to be made as often as one likes, always with the same random
 * numbers; making it allocates nothing and asks nothing of R. */
typedef struct prepared {
  const struct function *function;
  const le_model_ops *ops;
  const void *self;
  size_t d, m, n, seen;
  const double *given_theta, *given_rows;
  pen theta, rows, first, second, scratch, extra;
  double prefill, soil; /* what is in outputs and in scratch before */
  double lambda, floor;
  int backwards, forced;
  const le_variational_ops *variational; /* or the table `maximum` */
  size_t factor;
  le_streams streams;
  le_chain chain;
  le_status status;
  double value;
} prepared;

/* What theta is: a point; a state, of a model with latent variables; or the numbers of q, of
 * variational Bayes. */
enum kind { OF_POINT, OF_STATE, OF_FACTORS };

typedef struct function {
  const char *name;
  enum kind kind;
  int rows;    /* does it get rows? */
  int changes; /* 1: theta, which it may change, is its answer */
  void (*sizes)(const prepared *p, size_t *first, size_t *second, size_t *scratch);
  int (*offered)(const le_model_ops *ops);
  void (*call)(prepared *p);
} function;

static size_t scratch_of(const prepared *p, size_t m)
{
  return p->ops->scratch ? p->ops->scratch(p->self, m, p->n) : 0;
}

static le_rows rows_of(const prepared *p)
{
  const le_rows rows = {p->n, p->ops->width(p->self), p->rows.values};
  return rows;
}

/* ---- what each writes */

static void no_size(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  (void)p;
  *first = *second = *scratch = 0;
}
static void size_prior(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m;
  *second = *scratch = 0;
}
static void size_points(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m * p->d;
  *second = *scratch = 0;
}
static void size_matrix(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->d * p->d;
  *second = *scratch = 0;
}
static void size_lik(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m;
  *second = 0;
  *scratch = scratch_of(p, p->m);
}
static void size_lik_grad(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m;
  *second = p->m * p->d;
  *scratch = scratch_of(p, p->m);
}
static void size_grad(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m * p->d;
  *second = 0;
  *scratch = scratch_of(p, p->m);
}
static void size_hess(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->d;
  *second = p->d * p->d;
  *scratch = scratch_of(p, 1);
}
static void size_information(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->d * p->d;
  *second = 0;
  *scratch = scratch_of(p, 1);
}
static void size_each(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m * p->n;
  *second = 0;
  *scratch = scratch_of(p, p->m);
}
static size_t user_dim_of(const prepared *p)
{
  return p->ops->user_dim ? p->ops->user_dim(p->self) : p->d;
}
static void size_user(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m * user_dim_of(p);
  *second = *scratch = 0;
}
static void size_rows(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->n * p->ops->width(p->self);
  *second = *scratch = 0;
}
/* The answer of relabel() besides the points. */
static void size_codes(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m;
  *second = *scratch = 0;
}
static void size_start(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->d;
  *second = 0;
  *scratch = p->ops->start_scratch(p->self, p->n);
}
static void size_state(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = *second = 0;
  *scratch = p->ops->latent->scratch(p->self, p->n);
}
/* The coordinates, and the log determinants. */
static void size_to_normal(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = p->m * p->d;
  *second = p->m;
  *scratch = 0;
}
static void size_factors(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  *first = *second = 0;
  *scratch = p->variational->scratch(p->self, p->n);
}
/* A draw from q: a state or a point. */
static void size_q_draw(const prepared *p, size_t *first, size_t *second, size_t *scratch)
{
  size_factors(p, first, second, scratch);
  *first = p->ops->latent ? p->ops->latent->size(p->self, p->n) : p->ops->dim(p->self);
}

/* ---- the calls */

#define OUT p->first.values
#define RNG p->streams.rng[0]
#define LIK_ARGS p->self, p->m, p->theta.values, &rows

static void call_log_prior(prepared *p) { p->ops->log_prior(p->self, p->m, p->theta.values, OUT); }
static void call_log_prior_grad(prepared *p)
{
  p->ops->log_prior_grad(p->self, p->m, p->theta.values, OUT);
}
static void call_log_prior_hess(prepared *p)
{
  p->ops->log_prior_hess(p->self, p->theta.values, OUT);
}
static void call_draw_prior(prepared *p)
{
  for (size_t i = 0; i < p->m; i++) p->ops->draw_prior(p->self, RNG, OUT + i * p->d);
}
static void call_log_lik(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->ops->log_lik(LIK_ARGS, OUT, p->scratch.values);
}
static void call_log_lik_grad(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->ops->log_lik_grad(LIK_ARGS, OUT, p->second.values, p->scratch.values);
}
static void call_log_lik_grad_alone(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->ops->log_lik_grad_alone(LIK_ARGS, OUT, p->scratch.values);
}
static void call_log_lik_hess(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->ops->log_lik_hess(p->self, p->theta.values, &rows, OUT, p->second.values,
                                   p->scratch.values);
}
static void call_information(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->ops->information(p->self, p->theta.values, &rows, OUT, p->scratch.values);
}
static void call_log_lik_each(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->ops->log_lik_each(LIK_ARGS, OUT, p->scratch.values);
}
static void call_to_user(prepared *p)
{
  const size_t users = user_dim_of(p);
  for (size_t i = 0; i < p->m; i++) {
    if (p->ops->to_user)
      p->ops->to_user(p->self, p->theta.values + i * p->d, OUT + i * users);
    else
      memcpy(OUT + i * users, p->theta.values + i * p->d, p->d * sizeof(double));
  }
}
static void call_simulate(prepared *p)
{
  memcpy(OUT, p->given_rows, p->first.n * sizeof(double));
  p->ops->simulate(p->self, p->theta.values, RNG, p->n, OUT);
}
static void call_relabel(prepared *p)
{
  for (size_t i = 0; i < p->m; i++)
    OUT[i] = p->ops->relabel(p->self, p->extra.values + (p->extra.n > p->d ? i * p->d : 0),
                             p->theta.values + i * p->d);
}
static void call_log_orbit(prepared *p)
{
  for (size_t i = 0; i < p->m; i++)
    OUT[i] = p->ops->log_orbit      ? p->ops->log_orbit(p->self, p->theta.values + i * p->d)
             : p->ops->log_symmetry ? p->ops->log_symmetry(p->self)
                                    : 0;
}
static void call_start(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->ops->start(p->self, &rows, RNG, OUT, p->scratch.values);
}

#define STATE p->theta.values
/* The chain of the state for so many rows. To draw the latent of the next row takes one more. */
static le_chain *chain_of(prepared *p, size_t rows, double lambda)
{
  p->chain = (le_chain){.rows = {rows, p->ops->width(p->self), p->rows.values},
                        .lambda = lambda,
                        .floor = p->floor,
                        .tie = 0.5,
                        .rng = RNG,
                        .state = STATE,
                        .scratch = p->scratch.values};
  return &p->chain;
}
static void call_state_start(prepared *p) { p->ops->latent->start(p->self, RNG, STATE); }
static void call_state_extend_blind(prepared *p)
{
  p->ops->latent->extend_blind(p->self, chain_of(p, p->seen + 1, 1));
}
static void call_state_extend(prepared *p)
{
  p->value = p->ops->latent->extend(p->self, chain_of(p, p->seen + 1, 1));
}
static void call_state_log_prior(prepared *p)
{
  p->value = p->ops->latent->log_prior(p->self, chain_of(p, p->seen, 1));
}
static void call_state_log_lik(prepared *p)
{
  p->value = p->ops->latent->log_lik(p->self, chain_of(p, p->seen, p->lambda));
}
static void call_state_sweep(prepared *p)
{
  p->value = p->ops->latent->sweep(p->self, chain_of(p, p->seen, p->lambda), p->backwards,
                                   p->forced ? p->extra.values : NULL);
}
static void call_state_sweep_above(prepared *p)
{
  chain_of(p, p->seen, 1)->walled = 1;
  p->ops->latent->sweep(p->self, &p->chain, 0, NULL);
}
static void call_state_last_given_latent(prepared *p)
{
  p->value = p->ops->latent->last_given_latent(p->self, chain_of(p, p->seen, 1));
}
static void call_state_last_given_rest(prepared *p)
{
  chain_of(p, p->seen, 1)->rng = NULL;
  p->value = p->ops->latent->extend(p->self, &p->chain);
}
static void call_state_possible(prepared *p)
{
  p->value = p->ops->latent->possible ? p->ops->latent->possible(p->self, p->seen, STATE) : 1;
}

/* Around one peak, or around one for each point. */
static const double *peak_of(const prepared *p, size_t i)
{
  return p->extra.values + (p->extra.n > p->d ? i * p->d : 0);
}
static void call_to_normal(prepared *p)
{
  for (size_t i = 0; i < p->m; i++)
    p->second.values[i] =
      p->ops->to_normal(p->self, peak_of(p, i), p->theta.values + i * p->d, OUT + i * p->d);
}
static void call_from_normal(prepared *p)
{
  for (size_t i = 0; i < p->m; i++)
    OUT[i] = p->ops->from_normal(p->self, peak_of(p, i), p->theta.values + i * p->d);
}

#define Q p->theta.values
static void call_q_start(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->variational->start(p->self, &rows, p->forced ? p->extra.values : NULL, RNG, Q,
                                    p->scratch.values);
}
static void call_q_update(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->status = p->variational->update(p->self, &rows, p->factor, Q, p->scratch.values);
}
static void call_q_bound(prepared *p)
{
  const le_rows rows = rows_of(p);
  p->value = p->variational->bound(p->self, &rows, Q, p->scratch.values);
}
static void call_q_draw(prepared *p)
{
  p->variational->draw(p->self, p->n, Q, RNG, OUT, p->scratch.values);
}
static void call_q_symmetry(prepared *p)
{
  p->value = p->variational->symmetry
               ? p->variational->symmetry(p->self, p->n, Q, RNG, p->scratch.values)
               : 0;
}

static int always(const le_model_ops *ops)
{
  (void)ops;
  return 1;
}
#define OFFERED(member) \
  static int has_##member(const le_model_ops *ops) { return ops->member != NULL; }
OFFERED(log_prior_grad)
OFFERED(log_prior_hess)
OFFERED(log_lik_grad)
OFFERED(log_lik_grad_alone)
OFFERED(log_lik_hess)
OFFERED(information)
OFFERED(simulate)
OFFERED(relabel)
OFFERED(start)
OFFERED(to_normal)
OFFERED(from_normal)
static int has_bound(const le_model_ops *ops) { return ops->variational || ops->maximum; }

static const function functions[] = {
    {"log_prior", OF_POINT, 0, 0, size_prior, always, call_log_prior},
    {"log_prior_grad", OF_POINT, 0, 0, size_points, has_log_prior_grad, call_log_prior_grad},
    {"log_prior_hess", OF_POINT, 0, 0, size_matrix, has_log_prior_hess, call_log_prior_hess},
    {"draw_prior", OF_POINT, 0, 0, size_points, always, call_draw_prior},
    {"log_lik", OF_POINT, 1, 0, size_lik, always, call_log_lik},
    {"log_lik_grad", OF_POINT, 1, 0, size_lik_grad, has_log_lik_grad, call_log_lik_grad},
    {"log_lik_grad_alone", OF_POINT, 1, 0, size_grad, has_log_lik_grad_alone,
     call_log_lik_grad_alone},
    {"log_lik_hess", OF_POINT, 1, 0, size_hess, has_log_lik_hess, call_log_lik_hess},
    {"information", OF_POINT, 1, 0, size_information, has_information, call_information},
    {"log_lik_each", OF_POINT, 1, 0, size_each, always, call_log_lik_each},
    {"to_user", OF_POINT, 0, 0, size_user, always, call_to_user},
    {"simulate", OF_POINT, 1, 0, size_rows, has_simulate, call_simulate},
    {"relabel", OF_POINT, 0, 1, size_codes, has_relabel, call_relabel},
    {"log_orbit", OF_POINT, 0, 0, size_prior, always, call_log_orbit},
    {"start", OF_POINT, 1, 0, size_start, has_start, call_start},
    {"state_start", OF_STATE, 0, 1, no_size, always, call_state_start},
    {"state_extend_blind", OF_STATE, 1, 1, size_state, always, call_state_extend_blind},
    {"state_extend", OF_STATE, 1, 1, size_state, always, call_state_extend},
    {"state_log_prior", OF_STATE, 0, 0, no_size, always, call_state_log_prior},
    {"state_log_lik", OF_STATE, 1, 0, size_state, always, call_state_log_lik},
    {"state_sweep", OF_STATE, 1, 1, size_state, always, call_state_sweep},
    {"state_sweep_above", OF_STATE, 1, 1, size_state, always, call_state_sweep_above},
    {"state_last_given_latent", OF_STATE, 1, 1, size_state, always, call_state_last_given_latent},
    {"state_last_given_rest", OF_STATE, 1, 1, size_state, always, call_state_last_given_rest},
    {"state_possible", OF_STATE, 0, 0, no_size, always, call_state_possible},
    {"to_normal", OF_POINT, 0, 0, size_to_normal, has_to_normal, call_to_normal},
    {"from_normal", OF_POINT, 0, 1, size_codes, has_from_normal, call_from_normal},
    {"q_start", OF_FACTORS, 1, 1, size_factors, has_bound, call_q_start},
    {"q_update", OF_FACTORS, 1, 1, size_factors, has_bound, call_q_update},
    {"q_bound", OF_FACTORS, 1, 0, size_factors, has_bound, call_q_bound},
    {"q_draw", OF_FACTORS, 1, 0, size_q_draw, has_bound, call_q_draw},
    {"q_symmetry", OF_FACTORS, 1, 0, size_factors, has_bound, call_q_symmetry},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* ---- from R and back */

/* An element that may be missing. */
static SEXP maybe(SEXP list, const char *name)
{
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  for (R_xlen_t i = 0; TYPEOF(names) == STRSXP && i < XLENGTH(list); i++)
    if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0) return VECTOR_ELT(list, i);
  return R_NilValue;
}

static double number(SEXP list, const char *name, double otherwise)
{
  SEXP value = maybe(list, name);
  return Rf_isNull(value) ? otherwise : Rf_asReal(value);
}

/* Does a model have this function, given what its points are? */
static int fits(const function *f, const le_model_ops *ops)
{
  return f->offered(ops) &&
         (f->kind == OF_FACTORS || (f->kind == OF_STATE) == (ops->latent != NULL));
}

/* How many numbers one theta has. */
static size_t theta_size(const prepared *p)
{
  if (p->function->kind == OF_FACTORS) return p->variational->size(p->self, p->n);
  return p->function->kind == OF_STATE ? p->ops->latent->size(p->self, p->n) : p->ops->dim(p->self);
}

static prepared prepare(const model_handle *handle, SEXP call)
{
  prepared p;
  memset(&p, 0, sizeof p);
  p.ops = handle->ops;
  p.self = handle->self;
  const char *name = one_string(list_element(call, "what"), "what");
  for (size_t f = 0; f < FUNCTIONS; f++)
    if (strcmp(functions[f].name, name) == 0) p.function = &functions[f];
  p.variational = number(call, "maximum", 0) != 0 ? p.ops->maximum : p.ops->variational;
  if (!p.function || !fits(p.function, p.ops) ||
      (p.function->kind == OF_FACTORS && !p.variational) ||
      (p.function->call == call_q_draw && !p.variational->draw))
    Rf_error("This model offers no `%s`.", name);
  SEXP rows = maybe(call, "rows"), theta = maybe(call, "theta"), extra = maybe(call, "extra");
  if (!Rf_isNull(rows)) {
    const le_rows given = rows_from_matrix(rows, p.ops->width(p.self));
    p.n = given.n;
    p.given_rows = given.values;
  }
  p.d = theta_size(&p);
  p.m = p.function->kind == OF_POINT ? (size_t)number(call, "m", 1) : 1;
  if (!Rf_isNull(theta)) {
    if (TYPEOF(theta) != REALSXP || p.d == 0 || (size_t)XLENGTH(theta) % p.d)
      Rf_error("Points must have %d numbers.", (int)p.d);
    p.m = (size_t)XLENGTH(theta) / p.d;
    p.given_theta = REAL(theta);
  }
  p.seen = (size_t)number(call, "seen", (double)p.n);
  p.lambda = number(call, "lambda", 1);
  p.floor = number(call, "floor", 0);
  p.factor = (size_t)number(call, "factor", 0);
  p.backwards = number(call, "backwards", 0) != 0;
  p.prefill = number(call, "prefill", 0);
  p.soil = number(call, "soil", 0);
  p.forced = TYPEOF(extra) == REALSXP;
  size_t first, second, scratch;
  p.function->sizes(&p, &first, &second, &scratch);
  p.theta = make_pen(p.m * p.d, NAN);
  p.rows = make_pen(p.function->rows ? p.n * p.ops->width(p.self) : 0, number(call, "behind", 0));
  p.first = make_pen(first, -1.25);
  p.second = make_pen(second, -1.25);
  p.scratch = make_pen(scratch, -1.25);
  p.extra = copy_pen(p.forced ? REAL(extra) : NULL, p.forced ? (size_t)XLENGTH(extra) : 0, NAN);
  const le_status status = le_streams_alloc(&p.streams, 2, (uint64_t)number(call, "seed", 1), 0);
  if (status != LE_OK) raise_status(status, NULL);
  return p;
}

static void perform(prepared *p)
{
  if (p->given_theta)
    memcpy(p->theta.values, p->given_theta, p->theta.n * sizeof(double));
  else
    fill(&p->theta, p->function->kind == OF_FACTORS ? p->soil : 0);
  if (p->rows.n) memcpy(p->rows.values, p->given_rows, p->rows.n * sizeof(double));
  fill(&p->first, p->prefill);
  fill(&p->second, p->prefill);
  fill(&p->scratch, p->soil);
  gsl_rng_memcpy(p->streams.rng[0], p->streams.rng[1]);
  p->status = LE_OK;
  p->value = 0;
  p->function->call(p);
}

static SEXP vector_of(const pen *p)
{
  SEXP vector = Rf_allocVector(REALSXP, (R_xlen_t)p->n);
  if (p->n) memcpy(REAL(vector), p->values, p->n * sizeof(double));
  return vector;
}

/* What was written that must not be. */
static SEXP broken_in(const prepared *p)
{
  const char *words[MOST_WORDS];
  size_t n = 0;
  if (!whole(&p->theta)) words[n++] = p->function->kind == OF_POINT ? "theta" : "state";
  if (!p->function->changes && p->given_theta && !same(p->theta.values, p->given_theta, p->theta.n))
    words[n++] = "theta";
  if (!whole(&p->rows) || (p->rows.n && !same(p->rows.values, p->given_rows, p->rows.n)))
    words[n++] = "rows";
  if (!whole(&p->first) || !whole(&p->second)) words[n++] = "outputs";
  if (!whole(&p->scratch)) words[n++] = "scratch";
  if (!whole(&p->extra)) words[n++] = "theta";
  SEXP broken = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)n));
  for (size_t i = 0; i < n; i++) SET_STRING_ELT(broken, (R_xlen_t)i, Rf_mkChar(words[i]));
  UNPROTECT(1);
  return broken;
}

/* Two calls at once, again and again for so many seconds: how many of their answers are not those
 * of one alone. */
static double differing(prepared *pair, double seconds)
{
  double *alone[2][3], value[2];
  int wrong[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    perform(&pair[k]);
    alone[k][0] = copy_pen(pair[k].first.values, pair[k].first.n, 0).values;
    alone[k][1] = copy_pen(pair[k].second.values, pair[k].second.n, 0).values;
    alone[k][2] = copy_pen(pair[k].theta.values, pair[k].theta.n, 0).values;
    value[k] = pair[k].value;
  }
  const double until = le_now() + seconds;
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(2)
#endif
  for (int k = 0; k < 2; k++) {
    do {
      perform(&pair[k]);
      wrong[k] += !same(pair[k].first.values, alone[k][0], pair[k].first.n) ||
                  !same(pair[k].second.values, alone[k][1], pair[k].second.n) ||
                  !same(pair[k].theta.values, alone[k][2], pair[k].theta.n) ||
                  !same(&pair[k].value, &value[k], 1);
    } while (le_now() < until);
  }
  return wrong[0] + wrong[1];
}

typedef struct check_call {
  SEXP type, args, calls;
} check_call;

/* What a model has, for an empty list of calls. */
static SEXP what_there_is(const model_handle *handle)
{
  const le_model_ops *ops = handle->ops;
  size_t n = 0;
  SEXP offered = PROTECT(Rf_allocVector(STRSXP, FUNCTIONS));
  for (size_t f = 0; f < FUNCTIONS; f++)
    if (fits(&functions[f], ops))
      SET_STRING_ELT(offered, (R_xlen_t)n++, Rf_mkChar(functions[f].name));
  offered = PROTECT(Rf_lengthgets(offered, (R_xlen_t)n));
  const le_variational_ops *const table[] = {ops->variational, ops->maximum};
  SEXP factors = PROTECT(Rf_allocVector(REALSXP, 2));
  for (int t = 0; t < 2; t++)
    REAL(factors)[t] = !table[t]            ? 0
                       : table[t]->factors ? (double)table[t]->factors(handle->self)
                                           : 1;
  static const char *const names[] = {"offered", "width", "reads_data", "threads", "factors"};
  SEXP values[5] = {offered, PROTECT(Rf_ScalarReal((double)ops->width(handle->self))),
                    PROTECT(Rf_ScalarLogical(!(ops->traits & LE_MODEL_NO_DATA))),
                    PROTECT(Rf_ScalarReal(user_model_made(handle) ? 1 : le_threads_usable(2))),
                    factors};
  SEXP list = named_list(5, names, values);
  UNPROTECT(6);
  return list;
}

static SEXP check_body(void *data)
{
  const check_call *c = data;
  SEXP pointer = PROTECT(model_new(c->type, c->args));
  const model_handle *handle = model_get(pointer);
  const R_xlen_t n = XLENGTH(c->calls);
  if (n == 0) {
    SEXP list = what_there_is(handle);
    UNPROTECT(1);
    return list;
  }
  SEXP answers = PROTECT(Rf_allocVector(VECSXP, n));
  for (R_xlen_t i = 0; i < n; i++) {
    const void *top = vmaxget();
    SEXP call = VECTOR_ELT(c->calls, i), with = maybe(call, "with");
    prepared pair[2] = {prepare(handle, call), {0}};
    double value = 0;
    if (!Rf_isNull(with)) {
      pair[1] = prepare(handle, with);
      value = differing(pair, number(call, "seconds", 0.05));
      le_streams_free(&pair[1].streams);
    } else {
      perform(&pair[0]);
      value = pair[0].value;
    }
    le_streams_free(&pair[0].streams);
    user_model_raise(handle);
    if (pair[0].status != LE_OK) raise_status(pair[0].status, NULL);
    static const char *const names[] = {"first", "second", "theta", "value", "broken"};
    SEXP values[5] = {PROTECT(vector_of(&pair[0].first)), PROTECT(vector_of(&pair[0].second)),
                      PROTECT(vector_of(&pair[0].theta)), PROTECT(Rf_ScalarReal(value)),
                      PROTECT(broken_in(&pair[0]))};
    SET_VECTOR_ELT(answers, i, named_list(5, names, values));
    UNPROTECT(5);
    vmaxset(top);
    R_CheckUserInterrupt();
  }
  UNPROTECT(2);
  return answers;
}

SEXP ffi_check_model(SEXP type, SEXP args, SEXP calls)
{
  check_call call = {type, args, calls};
  return guarded(check_body, &call);
}
