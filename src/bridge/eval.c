/* The functions of a model with data, callable from R (model_functions()). */
#include "bridge/functions.h"

/* The block size that estimators use. */
enum { BLOCK = 512 };

/* Calls a function for one block of rows after the other. Values of single rows go to `part` first,
 * from where they are copied to their places. */
static void call_by_blocks(model_call *c)
{
  const le_rows all = c->rows;
  double *const first = c->first;
  const int each = c->function->uses & BY_ROW;
  double *part = each ? (double *)R_alloc(BLOCK * c->m, sizeof(double)) : first;
  c->first = part;
  for (size_t at = 0; at < all.n && c->status == LE_OK; at += BLOCK) {
    const size_t n = all.n - at < BLOCK ? all.n - at : BLOCK;
    c->rows = (le_rows){n, all.width, all.values + at * all.width};
    make_call(c);
    for (size_t i = 0; each && i < c->m; i++)
      memcpy(first + i * all.n + at, part + i * n, n * sizeof(double));
  }
}

/* A named list: what the function returned, its theta, and what it wrote. */
static SEXP changed(const model_call *c, SEXP theta, SEXP first)
{
  static const char *const names[] = {"value", "theta", "first"};
  SEXP values[] = {PROTECT(Rf_ScalarReal(c->value)), theta, first};
  SEXP list = named_list(3, names, values);
  UNPROTECT(1);
  return list;
}

/* What a function of a model writes: a vector or matrix, or a named list of two. Of functions of
 * states and of q, and of those that change their points, a list: `value` (what it returned),
 * `theta`, and `first` (what it wrote). `more`: see read_call(). */
SEXP ffi_model(SEXP type, SEXP args, SEXP rows, SEXP what, SEXP theta, SEXP more)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  model_call c = read_call(handle, one_string(what, "what"), rows, theta, more);
  const model_function *f = c.function;
  const int by_blocks = f->uses & (ADDS | BY_ROW);
  SEXP point = PROTECT(!(f->uses & CHANGES) ? theta
                       : c.theta            ? Rf_duplicate(theta)
                                            : zero_vector(c.d));
  if (f->uses & CHANGES) c.theta = REAL(point);
  SEXP part[] = {PROTECT(new_output(&c, f->first)), PROTECT(new_output(&c, f->second))};
  c.first = REAL(part[0]);
  c.second = REAL(part[1]);
  c.scratch = (double *)R_alloc(call_scratch(&c, by_blocks ? BLOCK : c.rows.n) + 1, sizeof(double));
  if (by_blocks)
    call_by_blocks(&c);
  else
    make_call(&c);
  raise_call(&c, handle);
  const char *const names[] = {f->first.name, f->second.name};
  SEXP answer = f->of != OF_POINT || f->uses & CHANGES ? changed(&c, point, part[0])
                : f->second.name                     ? named_list(2, names, part)
                                                     : part[0];
  UNPROTECT(4);
  return answer;
}

/* log p(row | rows seen, state) of new rows: one row of the result per row, one column per
 * state. */
SEXP ffi_latent_density(SEXP type, SEXP args, SEXP rows, SEXP states, SEXP fresh)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  const le_latent_ops *ops = handle->ops->latent;
  if (!ops) Rf_error("This model has no latent variables.");
  const void *self = handle->self;
  const size_t width = handle->ops->width(self);
  const le_rows seen = rows_from_matrix(rows, width), new = rows_from_matrix(fresh, width);
  const size_t size = ops->size(self, seen.n), n = seen.n + 1;
  const size_t m = (size_t)XLENGTH(states) / size;
  if (TYPEOF(states) != REALSXP || (size_t)XLENGTH(states) != m * size)
    Rf_error("The states must be those of as many rows as are given.");
  for (size_t s = 0; s < m && ops->possible; s++)
    if (!ops->possible(self, seen.n, REAL(states) + s * size))
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
  SEXP density = PROTECT(Rf_allocMatrix(REALSXP, (int)new.n, (int)m));
  for (size_t i = 0; i < new.n; i++) {
    memcpy(values + seen.n * width, new.values + i * width, width * sizeof(double));
    for (size_t s = 0; s < m; s++) {
      memcpy(state, REAL(states) + s * size, size * sizeof(double));
      REAL(density)[i + s * new.n] = ops->extend(self, &chain);
    }
    R_CheckUserInterrupt();
  }
  UNPROTECT(2);
  return density;
}
