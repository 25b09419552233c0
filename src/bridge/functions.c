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

/* Functions of points -------------------------------------------------------------------------- */

static double *point(const model_call *c, size_t i) { return c->theta + i * c->d; }

/* The other point for point i. */
static const double *other(const model_call *c, size_t i)
{
  return c->other + (c->others > c->d ? i * c->d : 0);
}

static void call_log_prior(model_call *c)
{
  c->ops->log_prior(c->self, c->m, c->theta, c->first);
}
static void call_log_prior_grad(model_call *c)
{
  c->ops->log_prior_grad(c->self, c->m, c->theta, c->first);
}
static void call_log_prior_hess(model_call *c)
{
  c->ops->log_prior_hess(c->self, c->theta, c->first);
}
static void call_draw_prior(model_call *c)
{
  for (size_t i = 0; i < c->m; i++) c->ops->draw_prior(c->self, c->rng, c->first + i * c->d);
}
static void call_log_lik(model_call *c)
{
  c->status = c->ops->log_lik(c->self, c->m, c->theta, &c->rows, c->first, c->scratch);
}
static void call_log_lik_grad(model_call *c)
{
  c->status = c->ops->log_lik_grad(c->self, c->m, c->theta, &c->rows, c->first, c->second,
                                   c->scratch);
}
static void call_log_lik_grad_alone(model_call *c)
{
  c->status = c->ops->log_lik_grad_alone(c->self, c->m, c->theta, &c->rows, c->first, c->scratch);
}
static void call_log_lik_hess(model_call *c)
{
  c->status = c->ops->log_lik_hess(c->self, c->theta, &c->rows, c->first, c->second, c->scratch);
}
static void call_information(model_call *c)
{
  c->status = c->ops->information(c->self, c->theta, &c->rows, c->first, c->scratch);
}
static void call_log_lik_each(model_call *c)
{
  c->status = c->ops->log_lik_each(c->self, c->m, c->theta, &c->rows, c->first, c->scratch);
}
static void call_exact(model_call *c)
{
  c->status = c->ops->exact(c->self, &c->rows, c->first);
}
static void call_to_user(model_call *c)
{
  const size_t users = user_dim_of(c->ops, c->self);
  for (size_t i = 0; i < c->m; i++) {
    if (c->ops->to_user)
      c->ops->to_user(c->self, point(c, i), c->first + i * users);
    else
      memcpy(c->first + i * users, point(c, i), c->d * sizeof(double));
  }
}
static void call_simulate(model_call *c)
{
  memcpy(c->first, c->rows.values, c->rows.n * c->rows.width * sizeof(double));
  c->ops->simulate(c->self, c->theta, c->rng, c->rows.n, c->first);
}
static void call_relabel(model_call *c)
{
  for (size_t i = 0; i < c->m; i++)
    c->first[i] = c->ops->relabel(c->self, other(c, i), point(c, i));
}
static void call_log_orbit(model_call *c)
{
  for (size_t i = 0; i < c->m; i++)
    c->first[i] = c->ops->log_orbit ? c->ops->log_orbit(c->self, point(c, i))
                                    : log_symmetry_of(c->ops, c->self);
}
static void call_start(model_call *c)
{
  for (size_t i = 0; i < c->m; i++)
    c->ops->start(c->self, &c->rows, c->rng, c->first + i * c->d, c->scratch);
}
static void call_to_normal(model_call *c)
{
  for (size_t i = 0; i < c->m; i++)
    c->second[i] = c->ops->to_normal(c->self, other(c, i), point(c, i), c->first + i * c->d);
}
static void call_from_normal(model_call *c)
{
  for (size_t i = 0; i < c->m; i++)
    c->first[i] = c->ops->from_normal(c->self, other(c, i), point(c, i));
}

/* Functions of states -------------------------------------------------------------------------- */

static void call_state_start(model_call *c)
{
  c->ops->latent->start(c->self, c->rng, c->theta);
}

/* The chain of the state for so many rows. To draw the latent of the next row takes one more. */
static le_chain *chain_of(model_call *c, size_t rows, double lambda)
{
  c->chain = (le_chain){.rows = {rows, c->rows.width, c->rows.values},
                        .lambda = lambda,
                        .floor = c->floor,
                        .tie = c->tie,
                        .rng = c->rng,
                        .state = c->theta,
                        .scratch = c->scratch};
  return &c->chain;
}
static void call_state_extend_blind(model_call *c)
{
  c->ops->latent->extend_blind(c->self, chain_of(c, c->seen + 1, 1));
}
static void call_state_extend(model_call *c)
{
  c->value = c->ops->latent->extend(c->self, chain_of(c, c->seen + 1, 1));
}
static void call_state_log_prior(model_call *c)
{
  c->value = c->ops->latent->log_prior(c->self, chain_of(c, c->seen, 1));
}
static void call_state_log_lik(model_call *c)
{
  c->value = c->ops->latent->log_lik(c->self, chain_of(c, c->seen, c->lambda));
}
static void call_state_sweep(model_call *c)
{
  c->value = c->ops->latent->sweep(c->self, chain_of(c, c->seen, c->lambda), c->backwards,
                                   c->other);
}
static void call_state_sweep_above(model_call *c)
{
  chain_of(c, c->seen, 1)->walled = 1;
  c->ops->latent->sweep(c->self, &c->chain, 0, NULL);
}
static void call_state_last_given_latent(model_call *c)
{
  c->value = c->ops->latent->last_given_latent(c->self, chain_of(c, c->seen, 1));
}
static void call_state_last_given_rest(model_call *c)
{
  chain_of(c, c->seen, 1)->rng = NULL;
  c->value = c->ops->latent->extend(c->self, &c->chain);
}
static void call_state_possible(model_call *c)
{
  c->value = c->ops->latent->possible ? c->ops->latent->possible(c->self, c->seen, c->theta) : 1;
}
static void call_state_simulate(model_call *c)
{
  c->ops->latent->simulate(c->self, chain_of(c, c->seen, 1), c->first);
}

/* Functions of q ------------------------------------------------------------------------------- */

static void call_q_start(model_call *c)
{
  c->status = c->factors->start(c->self, &c->rows, c->other, c->rng, c->theta, c->scratch);
}
static void call_q_update(model_call *c)
{
  c->status = c->factors->update(c->self, &c->rows, c->factor, c->theta, c->scratch);
}
static void call_q_bound(model_call *c)
{
  c->value = c->factors->bound(c->self, &c->rows, c->theta, c->scratch);
}
static void call_q_draw(model_call *c)
{
  c->factors->draw(c->self, c->rows.n, c->theta, c->rng, c->first, c->scratch);
}
static void call_q_symmetry(model_call *c)
{
  c->value = c->factors->symmetry
               ? c->factors->symmetry(c->self, c->rows.n, c->theta, c->rng, c->scratch)
               : 0;
}

/* The table ------------------------------------------------------------------------------------ */

/* The function, and a member that a table with this function has. */
#define POINT(what, member)                                                                        \
  .name = #what, .of = OF_POINT, .needs = offsetof(le_model_ops, member), .call = call_##what
#define STATE(what, member)                                                                        \
  .name = "state_" #what, .of = OF_STATE, .needs = offsetof(le_latent_ops, member),                \
  .call = call_state_##what
#define FACTORS(what, member)                                                                      \
  .name = "q_" #what, .of = OF_FACTORS, .needs = offsetof(le_variational_ops, member),             \
  .call = call_q_##what

static const model_function functions[] = {
  {POINT(log_prior, log_prior), .first = {"value", POINTS, ONE}},
  {POINT(log_prior_grad, log_prior_grad), .first = {"gradient", DIM, POINTS}},
  {POINT(log_prior_hess, log_prior_hess), .uses = ONE_POINT, .first = {"hessian", DIM, DIM}},
  {POINT(draw_prior, draw_prior), .uses = NO_POINT, .first = {"draws", DIM, POINTS}},
  {POINT(log_lik, log_lik), .uses = ADDS, .first = {"value", POINTS, ONE}},
  {POINT(log_lik_grad, log_lik_grad), .uses = ADDS, .first = {"value", POINTS, ONE},
   .second = {"gradient", DIM, POINTS}},
  {POINT(log_lik_grad_alone, log_lik_grad_alone), .uses = ADDS,
   .first = {"gradient", DIM, POINTS}},
  {POINT(log_lik_hess, log_lik_hess), .uses = ONE_POINT | ADDS, .first = {"gradient", DIM, ONE},
   .second = {"hessian", DIM, DIM}},
  {POINT(information, information), .uses = ONE_POINT | ADDS, .first = {"information", DIM, DIM}},
  {POINT(log_lik_each, log_lik_each), .uses = BY_ROW, .first = {"value", ROWS, POINTS}},
  {POINT(exact, exact), .uses = NO_POINT | GETS_ROWS, .first = {"log_evidence", ONE, ONE}},
  {POINT(to_user, create), .first = {"user", USERS, POINTS}},
  {POINT(simulate, simulate), .uses = ONE_POINT | GETS_ROWS, .first = {"rows", WIDTH, ROWS}},
  {POINT(relabel, relabel), .uses = CHANGES | GETS_OTHER, .first = {"code", POINTS, ONE}},
  {POINT(log_orbit, create), .first = {"value", POINTS, ONE}},
  {POINT(start, start), .uses = NO_POINT | GETS_ROWS, .first = {"starts", DIM, POINTS}},
  {POINT(to_normal, to_normal), .uses = GETS_OTHER, .first = {"point", DIM, POINTS},
   .second = {"log_det", POINTS, ONE}},
  {POINT(from_normal, to_normal), .uses = CHANGES | GETS_OTHER, .first = {"legal", POINTS, ONE}},
  {STATE(start, start), .uses = NO_POINT | CHANGES},
  {STATE(extend_blind, extend_blind), .uses = GETS_ROWS | CHANGES},
  {STATE(extend, extend), .uses = GETS_ROWS | CHANGES},
  {STATE(log_prior, log_prior)},
  {STATE(log_lik, log_lik), .uses = GETS_ROWS},
  {STATE(sweep, sweep), .uses = GETS_ROWS | CHANGES | MAY_GET_OTHER},
  {STATE(sweep_above, sweep), .uses = GETS_ROWS | CHANGES},
  {STATE(last_given_latent, last_given_latent), .uses = GETS_ROWS | CHANGES},
  {STATE(last_given_rest, extend), .uses = GETS_ROWS | CHANGES},
  {STATE(possible, size)},
  {STATE(simulate, simulate), .first = {"rows", WIDTH, ROWS}},
  {FACTORS(start, start), .uses = NO_POINT | GETS_ROWS | CHANGES | MAY_GET_OTHER},
  {FACTORS(update, update), .uses = GETS_ROWS | CHANGES},
  {FACTORS(bound, bound), .uses = GETS_ROWS},
  {FACTORS(draw, draw), .uses = GETS_ROWS, .first = {"point", A_POINT, ONE}},
  {FACTORS(symmetry, size), .uses = GETS_ROWS},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Reading calls -------------------------------------------------------------------------------- */

/* Whether a table has the function that is a member at this offset. */
static int has_member(const void *table, size_t offset)
{
  void (*member)(void);
  if (!table) return 0;
  memcpy(&member, (const char *)table + offset, sizeof member);
  return member != NULL;
}

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
  if (c->function->call == call_start) return ops->start_scratch(c->self, rows);
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

static SEXP facts_body(void *data)
{
  const SEXP *model = data;
  SEXP pointer = PROTECT(model_new(model[0], model[1]));
  const model_handle *handle = model_get(pointer);
  const le_model_ops *ops = handle->ops;
  const void *self = handle->self;
  const char *has[FUNCTIONS];
  size_t n = 0;
  for (size_t f = 0; f < FUNCTIONS; f++)
    if (offered(&functions[f], ops, ops->variational ? ops->variational : ops->maximum))
      has[n++] = functions[f].name;
  static const char *const names[] = {"dim",    "user_dim", "width",   "log_symmetry",
                                      "traits", "offered",  "factors", "threads"};
  const double factors[] = {factors_of(ops->variational, self), factors_of(ops->maximum, self)};
  SEXP values[] = {PROTECT(Rf_ScalarReal(ops->dim ? (double)ops->dim(self) : 0)),
                   PROTECT(Rf_ScalarReal((double)user_dim_of(ops, self))),
                   PROTECT(Rf_ScalarReal((double)ops->width(self))),
                   PROTECT(Rf_ScalarReal(log_symmetry_of(ops, self))),
                   PROTECT(traits_of(ops)),
                   PROTECT(string_vector(n, has)),
                   PROTECT(number_vector(2, factors)),
                   PROTECT(Rf_ScalarReal(user_model_made(handle) ? 1 : le_threads_usable(2)))};
  SEXP list = named_list(8, names, values);
  UNPROTECT(9);
  return list;
}

/* A named list of properties of a model: its dimensions, traits, the functions that it offers, the
 * number of factors of `variational` and `maximum`, and how many threads may call it here. */
SEXP ffi_model_facts(SEXP type, SEXP args)
{
  SEXP model[] = {type, args};
  return guarded(facts_body, model);
}
