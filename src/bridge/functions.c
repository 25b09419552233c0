/* The functions of a model by name: a table of all, and how each is called. */
#include "bridge/functions.h"

#include "base/threads.h"

static size_t user_dim_of(const le_model_ops *ops, const void *self)
{
  return ops->user_dim ? ops->user_dim(self) : ops->dim ? ops->dim(self) : 0;
}

static double log_symmetry_of(const le_model_ops *ops, const void *self)
{
  double (*const own)(const void *self) = ops->log_symmetry ? ops->log_symmetry
                                          : ops->latent     ? ops->latent->log_symmetry
                                                            : NULL;
  return own ? own(self) : 0;
}

/* Calls ---------------------------------------------------------------------------------------- */

/* Functions of one point: point i of the call. */
static void call_point(model_call *c, size_t i)
{
  const le_model_ops *ops = c->ops;
  const void *self = c->self;
  const size_t d = c->d, users = user_dim_of(ops, self);
  const double *other = c->others > d ? c->other + i * d : c->other;
  double *theta = c->theta ? c->theta + i * d : NULL, *first = c->first;
  switch (c->function->id) {
  case DRAW_PRIOR: ops->draw_prior(self, c->rng, first + i * d); break;
  case START: ops->start(self, &c->rows, c->rng, first + i * d, c->scratch); break;
  case EFFECTS:
    ops->effects(self, theta, &c->rows, c->rng,
                 first + i * c->rows.n * ops->effects_size(self), c->scratch);
    break;
  case RELABEL: first[i] = ops->relabel(self, other, theta); break;
  case TO_NORMAL: c->second[i] = ops->to_normal(self, other, theta, first + i * d); break;
  case FROM_NORMAL: first[i] = ops->from_normal(self, other, theta); break;
  case LOG_ORBIT:
    first[i] = ops->log_orbit ? ops->log_orbit(self, theta) : log_symmetry_of(ops, self);
    break;
  case TO_USER:
    if (ops->to_user)
      ops->to_user(self, theta, first + i * users);
    else
      memcpy(first + i * users, theta, d * sizeof(double));
    break;
  default: break;
  }
}

static void call_points(model_call *c)
{
  const le_model_ops *ops = c->ops;
  const void *self = c->self;
  const le_rows *rows = &c->rows;
  const size_t m = c->m;
  double *theta = c->theta, *first = c->first, *second = c->second, *scratch = c->scratch;
  le_status status = LE_OK;
  switch (c->function->id) {
  case LOG_PRIOR: ops->log_prior(self, m, theta, first); break;
  case LOG_PRIOR_GRAD: ops->log_prior_grad(self, m, theta, first); break;
  case LOG_PRIOR_HESS: ops->log_prior_hess(self, theta, first); break;
  case LOG_LIK: status = ops->log_lik(self, m, theta, rows, first, scratch); break;
  case LOG_LIK_GRAD:
    status = ops->log_lik_grad(self, m, theta, rows, first, second, scratch);
    break;
  case LOG_LIK_GRAD_ALONE:
    status = ops->log_lik_grad_alone(self, m, theta, rows, first, scratch);
    break;
  case LOG_LIK_HESS: status = ops->log_lik_hess(self, theta, rows, first, second, scratch); break;
  case INFORMATION: status = ops->information(self, theta, rows, first, scratch); break;
  case LOG_LIK_EACH: status = ops->log_lik_each(self, m, theta, rows, first, scratch); break;
  case EXACT: status = ops->exact(self, rows, first); break;
  case SIMULATE:
    memcpy(first, rows->values, rows->n * rows->width * sizeof(double));
    ops->simulate(self, theta, c->rng, rows->n, first);
    break;
  default:
    for (size_t i = 0; i < m; i++) call_point(c, i);
  }
  c->status = status;
}

/* Functions of a state. */
static void call_state(model_call *c)
{
  const le_latent_ops *ops = c->ops->latent;
  const void *self = c->self;
  const int id = c->function->id;
  /* to draw the latent of the next row takes one row more */
  const size_t n = c->seen + (id == EXTEND || id == EXTEND_BLIND);
  const le_chain chain = {.rows = {n, c->rows.width, c->rows.values},
                          .lambda = id == STATE_LOG_LIK || id == SWEEP ? c->lambda : 1,
                          .walled = id == SWEEP_ABOVE,
                          .floor = c->floor,
                          .tie = c->tie,
                          .rng = id == LAST_GIVEN_REST ? NULL : c->rng,
                          .state = c->theta,
                          .scratch = c->scratch};
  double value = 0;
  switch (id) {
  case STATE_START: ops->start(self, c->rng, c->theta); break;
  case EXTEND_BLIND: ops->extend_blind(self, &chain); break;
  case EXTEND:
  case LAST_GIVEN_REST: value = ops->extend(self, &chain); break;
  case STATE_LOG_PRIOR: value = ops->log_prior(self, &chain); break;
  case STATE_LOG_LIK: value = ops->log_lik(self, &chain); break;
  case SWEEP: value = ops->sweep(self, &chain, c->backwards, c->other); break;
  case SWEEP_ABOVE: ops->sweep(self, &chain, 0, NULL); break;
  case LAST_GIVEN_LATENT: value = ops->last_given_latent(self, &chain); break;
  case POSSIBLE: value = ops->possible ? ops->possible(self, n, c->theta) : 1; break;
  case STATE_SIMULATE: ops->simulate(self, &chain, c->first); break;
  default: break;
  }
  c->value = value;
}

/* Functions of the numbers of q. */
static void call_factors(model_call *c)
{
  const le_variational_ops *ops = c->factors;
  const void *self = c->self;
  const le_rows *rows = &c->rows;
  double *q = c->theta, *scratch = c->scratch;
  switch (c->function->id) {
  case Q_START: c->status = ops->start(self, rows, c->other, c->rng, q, scratch); break;
  case Q_UPDATE: c->status = ops->update(self, rows, c->factor, q, scratch); break;
  case Q_BOUND: c->value = ops->bound(self, rows, q, scratch); break;
  case Q_DRAW: ops->draw(self, rows->n, q, c->rng, c->first, scratch); break;
  case Q_SYMMETRY:
    c->value = ops->symmetry ? ops->symmetry(self, rows->n, q, c->rng, scratch) : 0;
    break;
  default: break;
  }
}

void make_call(model_call *c)
{
  switch (c->function->of) {
  case OF_POINT: call_points(c); break;
  case OF_STATE: call_state(c); break;
  case OF_FACTORS: call_factors(c); break;
  }
}

/* The table ------------------------------------------------------------------------------------ */

/* The kind of theta, and a member that a table with this function has. */
#define POINT(member) .of = OF_POINT, .needs = offsetof(le_model_ops, member)
#define STATE(member) .of = OF_STATE, .needs = offsetof(le_latent_ops, member)
#define FACTORS(member) .of = OF_FACTORS, .needs = offsetof(le_variational_ops, member)

static const model_function functions[] = {
  {LOG_PRIOR, "log_prior", POINT(log_prior), .first = {"value", POINTS, ONE}},
  {LOG_PRIOR_GRAD, "log_prior_grad", POINT(log_prior_grad), .first = {"gradient", DIM, POINTS}},
  {LOG_PRIOR_HESS, "log_prior_hess", POINT(log_prior_hess), .uses = ONE_POINT,
   .first = {"hessian", DIM, DIM}},
  {DRAW_PRIOR, "draw_prior", POINT(draw_prior), .uses = NO_POINT, .first = {"draws", DIM, POINTS}},
  {LOG_LIK, "log_lik", POINT(log_lik), .uses = ADDS, .first = {"value", POINTS, ONE}},
  {LOG_LIK_GRAD, "log_lik_grad", POINT(log_lik_grad), .uses = ADDS, .first = {"value", POINTS, ONE},
   .second = {"gradient", DIM, POINTS}},
  {LOG_LIK_GRAD_ALONE, "log_lik_grad_alone", POINT(log_lik_grad_alone), .uses = ADDS,
   .first = {"gradient", DIM, POINTS}},
  {LOG_LIK_HESS, "log_lik_hess", POINT(log_lik_hess), .uses = ONE_POINT | ADDS,
   .first = {"gradient", DIM, ONE}, .second = {"hessian", DIM, DIM}},
  {INFORMATION, "information", POINT(information), .uses = ONE_POINT | ADDS,
   .first = {"information", DIM, DIM}},
  {LOG_LIK_EACH, "log_lik_each", POINT(log_lik_each), .uses = BY_ROW,
   .first = {"value", ROWS, POINTS}},
  {EXACT, "exact", POINT(exact), .uses = NO_POINT | GETS_ROWS, .first = {"log_evidence", ONE, ONE}},
  {TO_USER, "to_user", POINT(log_prior), .first = {"user", USERS, POINTS}},
  {SIMULATE, "simulate", POINT(simulate), .uses = ONE_POINT | GETS_ROWS,
   .first = {"rows", WIDTH, ROWS}},
  {EFFECTS, "effects", POINT(effects), .uses = GETS_ROWS,
   .first = {"effects", EFFECTS_OF_ROWS, POINTS}},
  {RELABEL, "relabel", POINT(relabel), .uses = CHANGES | GETS_OTHER,
   .first = {"code", POINTS, ONE}},
  {LOG_ORBIT, "log_orbit", POINT(log_prior), .first = {"value", POINTS, ONE}},
  {START, "start", POINT(start), .uses = NO_POINT | GETS_ROWS, .first = {"starts", DIM, POINTS}},
  {TO_NORMAL, "to_normal", POINT(to_normal), .uses = GETS_OTHER, .first = {"point", DIM, POINTS},
   .second = {"log_det", POINTS, ONE}},
  {FROM_NORMAL, "from_normal", POINT(to_normal), .uses = CHANGES | GETS_OTHER,
   .first = {"legal", POINTS, ONE}},
  {STATE_START, "state_start", STATE(start), .uses = NO_POINT | CHANGES},
  {EXTEND_BLIND, "state_extend_blind", STATE(extend_blind), .uses = GETS_ROWS | CHANGES},
  {EXTEND, "state_extend", STATE(extend), .uses = GETS_ROWS | CHANGES},
  {STATE_LOG_PRIOR, "state_log_prior", STATE(log_prior)},
  {STATE_LOG_LIK, "state_log_lik", STATE(log_lik), .uses = GETS_ROWS},
  {SWEEP, "state_sweep", STATE(sweep), .uses = GETS_ROWS | CHANGES | MAY_GET_OTHER},
  {SWEEP_ABOVE, "state_sweep_above", STATE(sweep), .uses = GETS_ROWS | CHANGES},
  {LAST_GIVEN_LATENT, "state_last_given_latent", STATE(last_given_latent),
   .uses = GETS_ROWS | CHANGES},
  {LAST_GIVEN_REST, "state_last_given_rest", STATE(extend), .uses = GETS_ROWS | CHANGES},
  {POSSIBLE, "state_possible", STATE(size)},
  {STATE_SIMULATE, "state_simulate", STATE(simulate), .first = {"rows", WIDTH, ROWS}},
  {Q_START, "q_start", FACTORS(start), .uses = NO_POINT | GETS_ROWS | CHANGES | MAY_GET_OTHER},
  {Q_UPDATE, "q_update", FACTORS(update), .uses = GETS_ROWS | CHANGES},
  {Q_BOUND, "q_bound", FACTORS(bound), .uses = GETS_ROWS},
  {Q_DRAW, "q_draw", FACTORS(draw), .uses = GETS_ROWS, .first = {"point", A_POINT, ONE}},
  {Q_SYMMETRY, "q_symmetry", FACTORS(size), .uses = GETS_ROWS},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Reading calls -------------------------------------------------------------------------------- */

/* A model with latent variables has functions of states instead of points. */
static int offered(const model_function *f, const le_model_ops *ops,
                   const le_variational_ops *factors)
{
  switch (f->of) {
  case OF_POINT: return !ops->latent && has_member(ops, f->needs);
  case OF_STATE: return has_member(ops->latent, f->needs);
  case OF_FACTORS: return has_member(factors, f->needs);
  }
  return 0;
}

static const model_function *function_named(const char *what)
{
  for (size_t f = 0; f < FUNCTIONS; f++)
    if (strcmp(functions[f].name, what) == 0) return &functions[f];
  Rf_error("A model has no `%s`.", what);
  return NULL;
}

/* Numbers of a state or of a point. */
static size_t point_size(const model_call *c)
{
  return c->ops->latent ? c->ops->latent->size(c->self, c->rows.n) : c->ops->dim(c->self);
}

static void read_points(model_call *c, SEXP theta)
{
  const int uses = c->function->uses;
  if (uses & NO_POINT) return;
  const size_t n = TYPEOF(theta) == REALSXP ? (size_t)XLENGTH(theta) : 0;
  if (n == 0 || c->d == 0 || n % c->d ||
      (Rf_isMatrix(theta) && (size_t)Rf_nrows(theta) != c->d))
    Rf_error("`theta` must be a numeric matrix of %d rows.", (int)c->d);
  c->theta = REAL(theta);
  c->m = n / c->d;
  if (c->m != 1 && (uses & ONE_POINT || c->function->of != OF_POINT))
    Rf_error("`theta` must be one point, not %d.", (int)c->m);
}

static void read_other(model_call *c, SEXP from)
{
  const int uses = c->function->uses;
  if (!(uses & GETS_OTHER) && (!(uses & MAY_GET_OTHER) || Rf_isNull(from))) return;
  const size_t size = point_size(c), n = TYPEOF(from) == REALSXP ? (size_t)XLENGTH(from) : 0;
  if (n != size && n != c->m * size) Rf_error("`other` must be %d numbers.", (int)size);
  c->other = REAL(from);
  c->others = n;
}

static size_t count_element(SEXP list, const char *name, size_t otherwise)
{
  SEXP value = maybe_element(list, name);
  return Rf_isNull(value) ? otherwise : one_count(value, name);
}

model_call read_call(const model_handle *handle, const char *what, SEXP rows, SEXP theta, SEXP more)
{
  const le_model_ops *ops = handle->ops;
  const model_function *f = function_named(what);
  model_call c = {.function = f, .ops = ops, .self = handle->self};
  c.factors = number_element(more, "maximum", 0) != 0 ? ops->maximum : ops->variational;
  if (!offered(f, ops, c.factors)) Rf_error("This model offers no `%s`.", what);
  if (f->of != OF_POINT || f->uses & (GETS_ROWS | BY_ROW | ADDS))
    c.rows = rows_from_matrix(rows, ops->width(c.self));
  c.d = f->of == OF_FACTORS ? c.factors->size(c.self, c.rows.n) : point_size(&c);
  c.m = count_element(more, "n", 1);
  read_points(&c, theta);
  read_other(&c, maybe_element(more, "other"));
  c.rng = new_stream(maybe_element(more, "seed"));
  c.seen = count_element(more, "seen", c.rows.n);
  c.lambda = number_element(more, "lambda", 1);
  c.floor = number_element(more, "floor", 0);
  c.tie = number_element(more, "tie", 0.5);
  c.factor = count_element(more, "factor", 0);
  c.backwards = number_element(more, "backwards", 0) != 0;
  return c;
}

static size_t extent_of(const model_call *c, extent of)
{
  switch (of) {
  case NONE: return 0;
  case ONE: return 1;
  case POINTS: return c->m;
  case DIM: return c->d;
  case USERS: return user_dim_of(c->ops, c->self);
  case ROWS: return c->rows.n;
  case WIDTH: return c->rows.width;
  case A_POINT: return point_size(c);
  case EFFECTS_OF_ROWS: return c->rows.n * c->ops->effects_size(c->self);
  }
  return 0;
}

size_t call_output(const model_call *c, output of)
{
  return extent_of(c, of.rows) * extent_of(c, of.columns);
}

size_t call_scratch(const model_call *c, size_t rows)
{
  const le_model_ops *ops = c->ops;
  if (c->function->of == OF_STATE) return ops->latent->scratch(c->self, rows);
  if (c->function->of == OF_FACTORS) return c->factors->scratch(c->self, rows);
  if (c->function->id == START) return ops->start_scratch(c->self, rows);
  if (c->function->id == EFFECTS) return ops->scratch ? ops->scratch(c->self, 1, 1) : 0;
  const int likelihood = c->function->uses & (BY_ROW | ADDS);
  return likelihood && ops->scratch ? ops->scratch(c->self, c->m, rows) : 0;
}

SEXP new_output(const model_call *c, output of)
{
  const size_t rows = extent_of(c, of.rows);
  return of.columns == ONE ? zero_vector(rows) : zeros(rows, extent_of(c, of.columns));
}

void raise_call(const model_call *c, const model_handle *handle)
{
  user_model_raise(handle);
  if (c->status != LE_OK) raise_status(c->status, NULL);
}

/* What a model has ----------------------------------------------------------------------------- */

static double factors_of(const le_variational_ops *table, const void *self)
{
  if (!table) return 0;
  return table->factors ? (double)table->factors(self) : 1;
}

/* The values of each coordinate, none for a real number; NULL if all are. */
static SEXP discrete_values(const le_model_ops *ops, const void *self)
{
  const size_t d = ops->discrete ? ops->dim(self) : 0;
  if (!d) return R_NilValue;
  SEXP list = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t)d));
  for (size_t j = 0; j < d; j++) {
    const double *values = NULL;
    const size_t n = ops->discrete(self, j, &values);
    SET_VECTOR_ELT(list, (R_xlen_t)j, number_vector(n, values));
  }
  UNPROTECT(1);
  return list;
}

/* A named list of properties of a model: its dimensions, traits, the functions that it offers, the
 * number of factors of `variational` and `maximum`, how many threads may call it here, and the
 * values of discrete coordinates. */
SEXP ffi_model_facts(SEXP type, SEXP args)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  const le_model_ops *ops = handle->ops;
  const void *self = handle->self;
  const char *has[FUNCTIONS];
  size_t n = 0;
  for (size_t f = 0; f < FUNCTIONS; f++)
    if (offered(&functions[f], ops, ops->variational ? ops->variational : ops->maximum))
      has[n++] = functions[f].name;
  static const char *const names[] = {"dim",     "user_dim", "width",   "log_symmetry", "traits",
                                      "offered", "factors",  "threads", "discrete"};
  const double factors[] = {factors_of(ops->variational, self), factors_of(ops->maximum, self)};
  const int threads = ops->traits & LE_MODEL_ONE_THREAD ? 1 : le_threads_usable(2);
  SEXP values[] = {PROTECT(Rf_ScalarReal(ops->dim ? (double)ops->dim(self) : 0)),
                   PROTECT(Rf_ScalarReal((double)user_dim_of(ops, self))),
                   PROTECT(Rf_ScalarReal((double)ops->width(self))),
                   PROTECT(Rf_ScalarReal(log_symmetry_of(ops, self))),
                   PROTECT(traits_of(ops)),
                   PROTECT(string_vector(n, has)),
                   PROTECT(number_vector(2, factors)),
                   PROTECT(Rf_ScalarReal(threads)),
                   PROTECT(discrete_values(ops, self))};
  SEXP list = named_list(9, names, values);
  UNPROTECT(10);
  return list;
}
