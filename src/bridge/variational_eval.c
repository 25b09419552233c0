/* The functions of variational Bayes of one model, callable from R: the tests check that each
 * update is optimal. */
#include "bridge/bridge.h"

#include "base/rng.h"

typedef struct variational_call {
  SEXP type, args, rows, what, q, settings;
} variational_call;

static SEXP variational_body(void *data)
{
  const variational_call *c = data;
  SEXP pointer = PROTECT(model_new(c->type, c->args));
  const model_handle *handle = model_get(pointer);
  const le_variational_ops *ops = handle->ops->variational;
  if (!ops) Rf_error("This model does not support variational Bayes.");
  const void *self = handle->self;
  const le_rows rows = rows_from_matrix(c->rows, handle->ops->width(self));
  const size_t size = ops->size(self, rows.n),
               factor = one_count(list_element(c->settings, "factor"), "factor"),
               point_size = handle->ops->latent ? handle->ops->latent->size(self, rows.n)
                                                : handle->ops->dim(self);
  const char *what = one_string(c->what, "what");
  SEXP hint = list_element(c->settings, "hint");
  const double *around = TYPEOF(hint) == REALSXP && (size_t)XLENGTH(hint) == point_size ? REAL(hint)
                                                                                        : NULL;
  SEXP q = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)size)),
       point = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)point_size));
  memset(REAL(q), 0, size * sizeof(double));
  memset(REAL(point), 0, point_size * sizeof(double));
  if (TYPEOF(c->q) == REALSXP && (size_t)XLENGTH(c->q) == size)
    memcpy(REAL(q), REAL(c->q), size * sizeof(double));
  double *scratch = (double *)R_alloc(ops->scratch(self, rows.n) + 1, sizeof(double)), value = 0;
  le_streams streams;
  le_status status = le_streams_alloc(&streams, 1,
                                      seed_from_words(list_element(c->settings, "seed")), 0);
  if (status != LE_OK) raise_status(status, NULL);
  const gsl_rng *rng = streams.rng[0];
  int known = 1;
  if (strcmp(what, "factors") == 0) value = (double)ops->factors(self);
  else if (strcmp(what, "start") == 0)
    status = ops->start(self, &rows, around, rng, REAL(q), scratch);
  else if (strcmp(what, "update") == 0) status = ops->update(self, &rows, factor, REAL(q), scratch);
  else if (strcmp(what, "bound") == 0) value = ops->bound(self, &rows, REAL(q), scratch);
  else if (strcmp(what, "draw") == 0) ops->draw(self, rows.n, REAL(q), rng, REAL(point), scratch);
  else if (strcmp(what, "symmetry") == 0)
    value = ops->symmetry ? ops->symmetry(self, rows.n, REAL(q), rng, scratch) : 0;
  else known = 0;
  le_streams_free(&streams);
  if (!known) Rf_error("A variational model has no `%s`.", what);
  if (status != LE_OK) raise_status(status, NULL);
  static const char *const names[] = {"value", "q", "point"};
  SEXP values[3] = {PROTECT(Rf_ScalarReal(value)), q, point};
  SEXP list = named_list(3, names, values);
  UNPROTECT(4);
  return list;
}

SEXP ffi_variational(SEXP type, SEXP args, SEXP rows, SEXP what, SEXP q, SEXP settings)
{
  variational_call call = {type, args, rows, what, q, settings};
  return guarded(variational_body, &call);
}
