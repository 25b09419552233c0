/* The functions of a model with latent variables for one state, callable from R. bdmc() simulates
 * with them, and the tests check that every conditional is a ratio of joint densities. Also
 * predictive densities, for predict(). */
#include "bridge/bridge.h"

#include "base/rng.h"

typedef struct latent_call {
  SEXP type, args, rows, what, state, settings;
} latent_call;

static SEXP latent_body(void *data)
{
  const latent_call *c = data;
  SEXP pointer = PROTECT(model_new(c->type, c->args));
  const model_handle *handle = model_get(pointer);
  const le_latent_ops *ops = handle->ops->latent;
  if (!ops) Rf_error("This model has no latent variables.");
  const void *self = handle->self;
  const le_rows rows = rows_from_matrix(c->rows, handle->ops->width(self));
  const char *what = one_string(c->what, "what");
  const size_t seen = one_count(list_element(c->settings, "seen"), "seen"),
               size = ops->size(self, rows.n + 1);
  const int backwards = Rf_asLogical(list_element(c->settings, "backwards"));
  SEXP to = list_element(c->settings, "to");
  SEXP state = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)size)),
       simulated = PROTECT(Rf_duplicate(c->rows));
  memset(REAL(state), 0, size * sizeof(double));
  if (TYPEOF(c->state) == REALSXP && (size_t)XLENGTH(c->state) <= size)
    memcpy(REAL(state), REAL(c->state), (size_t)XLENGTH(c->state) * sizeof(double));
  double *s = REAL(state),
         *scratch = (double *)R_alloc(ops->scratch(self, rows.n + 1) + 1, sizeof(double)),
         value = 0;
  const double *wanted = TYPEOF(to) == REALSXP && (size_t)XLENGTH(to) == size ? REAL(to) : NULL;
  le_streams streams;
  const le_status status = le_streams_alloc(&streams, 1,
                                            seed_from_words(list_element(c->settings, "seed")), 0);
  if (status != LE_OK) raise_status(status, NULL);
  const int above = strcmp(what, "sweep_above") == 0;
  const le_chain chain = {.rows = {seen, rows.width, rows.values},
                          .lambda = Rf_asReal(list_element(c->settings, "lambda")),
                          .walled = above,
                          .floor = above ? Rf_asReal(list_element(c->settings, "floor")) : 0,
                          .tie = above ? Rf_asReal(list_element(c->settings, "tie")) : 0,
                          .rng = streams.rng[0],
                          .state = s,
                          .scratch = scratch};
  le_chain longer = chain, fixed = chain;
  longer.rows.n++;
  fixed.rng = NULL;
  longer.lambda = fixed.lambda = 1;
  int known = 1;
  if (strcmp(what, "start") == 0) ops->start(self, chain.rng, s);
  else if (strcmp(what, "extend_blind") == 0) ops->extend_blind(self, &longer);
  else if (strcmp(what, "extend") == 0) value = ops->extend(self, &longer);
  else if (strcmp(what, "last_given_latent") == 0) value = ops->last_given_latent(self, &fixed);
  else if (strcmp(what, "last_given_rest") == 0) value = ops->extend(self, &fixed);
  else if (strcmp(what, "log_prior") == 0) value = ops->log_prior(self, &chain);
  else if (strcmp(what, "log_lik") == 0) value = ops->log_lik(self, &chain);
  else if (strcmp(what, "sweep") == 0) value = ops->sweep(self, &chain, backwards, wanted);
  else if (above) ops->sweep(self, &chain, 0, NULL);
  else if (strcmp(what, "simulate") == 0) ops->simulate(self, &chain, REAL(simulated));
  else known = 0;
  le_streams_free(&streams);
  if (!known) Rf_error("A latent model has no `%s`.", what);
  static const char *const names[] = {"value", "state", "rows"};
  SEXP values[3] = {PROTECT(Rf_ScalarReal(value)), state, simulated};
  SEXP list = named_list(3, names, values);
  UNPROTECT(4);
  return list;
}

SEXP ffi_latent(SEXP type, SEXP args, SEXP rows, SEXP what, SEXP state, SEXP settings)
{
  latent_call call = {type, args, rows, what, state, settings};
  return guarded(latent_body, &call);
}

/* log p(row | rows seen, state) of new rows: one row of the result per row, one column per
 * state. */
typedef struct density_call {
  SEXP type, args, rows, states, fresh;
} density_call;

static SEXP density_body(void *data)
{
  const density_call *c = data;
  SEXP pointer = PROTECT(model_new(c->type, c->args));
  const model_handle *handle = model_get(pointer);
  const le_latent_ops *ops = handle->ops->latent;
  if (!ops) Rf_error("This model has no latent variables.");
  const void *self = handle->self;
  const size_t width = handle->ops->width(self);
  const le_rows seen = rows_from_matrix(c->rows, width), fresh = rows_from_matrix(c->fresh, width);
  const size_t size = ops->size(self, seen.n), n = seen.n + 1;
  const size_t m = (size_t)XLENGTH(c->states) / size;
  if (TYPEOF(c->states) != REALSXP || (size_t)XLENGTH(c->states) != m * size)
    Rf_error("The states must be those of as many rows as are given.");
  for (size_t s = 0; s < m && ops->possible; s++)
    if (!ops->possible(self, seen.n, REAL(c->states) + s * size))
      Rf_error("Draw %zu is not a state of this model: a label or code is out of range, or a "
               "variance is not positive.",
               s + 1);
  double *scratch = (double *)R_alloc(ops->scratch(self, n) + 1, sizeof(double));
  double *state = (double *)R_alloc(ops->size(self, n), sizeof(double));
  double *values = (double *)R_alloc(n * width, sizeof(double));
  memset(state, 0, ops->size(self, n) * sizeof(double));
  memcpy(values, seen.values, seen.n * width * sizeof(double));
  const le_chain chain = {
    .rows = {n, width, values}, .lambda = 1, .state = state, .scratch = scratch};
  SEXP density = PROTECT(Rf_allocMatrix(REALSXP, (int)fresh.n, (int)m));
  for (size_t i = 0; i < fresh.n; i++) {
    memcpy(values + seen.n * width, fresh.values + i * width, width * sizeof(double));
    for (size_t s = 0; s < m; s++) {
      memcpy(state, REAL(c->states) + s * size, size * sizeof(double));
      REAL(density)[i + s * fresh.n] = ops->extend(self, &chain);
    }
    R_CheckUserInterrupt();
  }
  UNPROTECT(2);
  return density;
}

SEXP ffi_latent_density(SEXP type, SEXP args, SEXP rows, SEXP states, SEXP fresh)
{
  density_call call = {type, args, rows, states, fresh};
  return guarded(density_body, &call);
}
