/* Segments of rows and sums over their boundaries (change_points()). */
#include "bridge/bridge.h"

#include "core/segments.h"

/* Numbers of an object that a user holds and may have altered: `n` doubles. R checks their ranges
 * and says what to do (alarm_parts()). */
static double *numbers_of(SEXP numbers, size_t n, const char *name)
{
  if (TYPEOF(numbers) != REALSXP || (size_t)XLENGTH(numbers) != n) {
    le_error error = {""};
    le_fail(&error, LE_BAD_ARGUMENT, "`%s` must be as it was made, of length %.0f.", name,
            (double)n);
    raise_status(LE_BAD_ARGUMENT, &error);
  }
  return REAL(numbers);
}

/* The tables of a model in closed form. Those whose length depends on the rows begin with the
 * number of rows for which they were made. */
static double *tables_of(const model_handle *handle, SEXP tables)
{
  if (!le_segments_closed(handle->ops, handle->self)) Rf_error("This model has no closed form.");
  const le_partition_ops *ops = handle->ops->partitions;
  const int depends = ops->tables(handle->self, 0) != ops->tables(handle->self, 1),
            numbers = TYPEOF(tables) == REALSXP && XLENGTH(tables) > 0;
  const double rows = depends && numbers ? REAL(tables)[0] : 0;
  return numbers_of(tables, ops->tables(handle->self, rows >= 0 && rows < 1e15 ? (size_t)rows : 0),
                    "tables");
}

/* The block of a matrix of them to which row or block i belongs. */
static double *cell_of(SEXP sums, SEXP cells, R_xlen_t i)
{
  const double cell = REAL(cells)[i];
  if (!(cell >= 1 && cell <= (double)Rf_ncols(sums))) Rf_error("A row belongs to no block.");
  return REAL(sums) + (size_t)(cell - 1) * (size_t)Rf_nrows(sums);
}

/* A matrix of `count` blocks, of which the first are those of `sums`, the others without rows. */
static SEXP blocks_from(const model_handle *handle, SEXP tables, SEXP sums, SEXP count)
{
  const double *shared = tables_of(handle, tables);
  const le_partition_ops *ops = handle->ops->partitions;
  const size_t size = ops->size(handle->self), known = (size_t)XLENGTH(sums) / size,
               blocks = one_count(count, "count");
  if (known > blocks || (size_t)XLENGTH(sums) != known * size)
    Rf_error("The blocks do not fit the model.");
  const double *first = numbers_of(sums, known * size, "sums");
  SEXP value = PROTECT(zeros(size, blocks));
  memcpy(REAL(value), first, known * size * sizeof(double));
  for (size_t b = known; b < blocks; b++)
    ops->clear(handle->self, shared, REAL(value) + b * size);
  UNPROTECT(1);
  return value;
}

/* Segments between boundaries in closed form, if `sums` are given, else of rows. */
static le_segments segments_of(const model_handle *handle, SEXP rows, SEXP tables, SEXP sums,
                               SEXP bound, double least, le_context *context)
{
  const int closed = !Rf_isNull(sums);
  const size_t width = handle->ops->width(handle->self), bounds = (size_t)XLENGTH(bound),
               m = bounds ? bounds - 1 : 0;
  const le_segments s = {.ops = handle->ops,
                         .self = handle->self,
                         .rows = closed ? (le_rows){0, width, NULL} : rows_from_matrix(rows, width),
                         .tables = closed ? tables_of(handle, tables) : NULL,
                         .sums = closed ? REAL(sums) : NULL,
                         .m = m,
                         .bound = REAL(bound),
                         .least = least,
                         .context = context};
  if (closed && (size_t)XLENGTH(sums) != m * handle->ops->partitions->size(handle->self))
    Rf_error("There must be sums of each block.");
  for (size_t j = 0; j < m; j++)
    if (!(s.bound[j] >= 0 && s.bound[j] < s.bound[j + 1] &&
          (closed || s.bound[j + 1] <= (double)s.rows.n)))
      Rf_error("Boundaries must be increasing numbers of rows.");
  return s;
}

/* What all blocks of a model in closed form share; NULL if it has none. */
SEXP ffi_segment_tables(SEXP type, SEXP args, SEXP rows)
{
  SEXP pointer = PROTECT(model_new(type, args)), value = R_NilValue;
  const model_handle *handle = model_get(pointer);
  const int closed = le_segments_closed(handle->ops, handle->self);
  if (closed) {
    const le_partition_ops *ops = handle->ops->partitions;
    const le_rows all = rows_from_matrix(rows, handle->ops->width(handle->self));
    value = PROTECT(zero_vector(ops->tables(handle->self, all.n)));
    ops->prepare(handle->self, &all, REAL(value));
  }
  UNPROTECT(1 + closed);
  return value;
}

/* The sums of `count` blocks, a column for each, with further rows; `cells` says to which block
 * each row belongs. `sums` are those of the first blocks so far. */
SEXP ffi_segment_add(SEXP type, SEXP args, SEXP tables, SEXP rows, SEXP cells, SEXP sums,
                     SEXP count)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  const le_rows all = rows_from_matrix(rows, handle->ops->width(handle->self));
  if ((size_t)XLENGTH(cells) != all.n) Rf_error("Each row must have a block.");
  SEXP value = PROTECT(blocks_from(handle, tables, sums, count));
  const double *shared = tables_of(handle, tables);
  for (size_t r = 0; r < all.n; r++)
    handle->ops->partitions->add(handle->self, shared, all.values + r * all.width, 1,
                                 cell_of(value, cells, (R_xlen_t)r));
  UNPROTECT(2);
  return value;
}

/* Blocks joined: `cells` says to which block of the result each belongs. */
SEXP ffi_segment_join(SEXP type, SEXP args, SEXP tables, SEXP sums, SEXP cells, SEXP count)
{
  SEXP pointer = PROTECT(model_new(type, args)), none = PROTECT(zero_vector(0));
  const model_handle *handle = model_get(pointer);
  if (XLENGTH(cells) != Rf_ncols(sums)) Rf_error("Each block must have another one.");
  SEXP value = PROTECT(blocks_from(handle, tables, none, count));
  const double *shared = tables_of(handle, tables);
  if (TYPEOF(sums) != REALSXP || Rf_nrows(sums) != Rf_nrows(value))
    Rf_error("The blocks do not fit the model.");
  for (R_xlen_t b = 0; b < XLENGTH(cells); b++)
    handle->ops->partitions->join(handle->self, shared,
                                  REAL(sums) + (size_t)b * (size_t)Rf_nrows(sums),
                                  cell_of(value, cells, b));
  UNPROTECT(3);
  return value;
}

/* The log evidences of all segments between these boundaries, in closed form. */
SEXP ffi_segments(SEXP type, SEXP args, SEXP tables, SEXP sums, SEXP bound, SEXP least)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  const le_segments s =
    segments_of(handle, R_NilValue, tables, sums, bound, Rf_asReal(least), &context);
  SEXP value = PROTECT(zero_vector(s.m * (s.m + 1) / 2));
  finish_watched(le_segments_evidence(&s, REAL(value)), &watch, &context);
  UNPROTECT(3);
  return value;
}

/* The same of `wanted` segments by Laplace's approximation. */
SEXP ffi_segments_laplace(SEXP type, SEXP args, SEXP rows, SEXP bound, SEXP least, SEXP wanted)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  le_segments s =
    segments_of(handle, rows, R_NilValue, R_NilValue, bound, Rf_asReal(least), &context);
  SEXP value = PROTECT(zero_vector(s.m * (s.m + 1) / 2));
  if (XLENGTH(wanted) != XLENGTH(value)) Rf_error("`wanted` must say so of each segment.");
  s.wanted = LOGICAL(wanted);
  finish_watched(le_segments_laplace(&s, REAL(value)), &watch, &context);
  UNPROTECT(3);
  return value;
}

/* Parameters of segments, a column for each: in closed form from a list of `tables` and `sums`, or
 * by Laplace's approximation if it is NULL. */
SEXP ffi_segments_draw(SEXP type, SEXP args, SEXP rows, SEXP closed, SEXP bound, SEXP ends,
                       SEXP seed)
{
  SEXP tables = Rf_isNull(closed) ? closed : list_element(closed, "tables"),
       sums = Rf_isNull(closed) ? closed : list_element(closed, "sums");
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  const size_t k = (size_t)Rf_nrows(ends), d = handle->ops->dim(handle->self);
  const double *from = REAL(ends), *to = from + k;
  const le_segments s = segments_of(handle, rows, tables, sums, bound, 0, &context);
  for (size_t i = 0; i < k; i++)
    if (!(from[i] >= 0 && from[i] < to[i] && to[i] <= (double)s.m))
      Rf_error("Segments must be between boundaries.");
  SEXP theta = PROTECT(zeros(d, k));
  finish_watched((s.sums ? le_segments_draw : le_segments_laplace_draw)(&s, k, from, to,
                                                                        new_stream(seed),
                                                                        REAL(theta)),
                 &watch, &context);
  UNPROTECT(3);
  return theta;
}

/* Sums over segmentations: matrices with a column for each number of changes, `last` only if the
 * sums are wanted `whole`. */
SEXP ffi_segments_sums(SEXP log_evidence, SEXP log_weight, SEXP most, SEXP whole)
{
  const size_t n = (size_t)XLENGTH(log_weight), m = n ? n - 1 : 0,
               changes = one_count(most, "most");
  const double *evidence = numbers_of(log_evidence, m * (m + 1) / 2, "log_evidence"),
               *weight = numbers_of(log_weight, m + 1, "log_weight");
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  static const char *const names[] = {"first", "last"};
  const int both = Rf_asLogical(whole) == TRUE;
  SEXP part[] = {PROTECT(zeros(m + 1, changes + 1)),
                 PROTECT(both ? zeros(m + 1, changes + 1) : R_NilValue)};
  finish_watched(le_segments_sums(m, changes, evidence, weight, &context, REAL(part[0]),
                                  both ? REAL(part[1]) : NULL),
                 &watch, &context);
  SEXP list = named_list(2, names, part);
  UNPROTECT(3);
  return list;
}

/* The run lengths of a stream after these rows: a list of `numbers` (rows seen, share lost), and of
 * each start `block` (a column), `log_evidence`, `log_weight` and `start`. It is what the next call
 * gets as `state`, NULL for the first rows. `settings`: hazard, most, step. */
SEXP ffi_runs(SEXP type, SEXP args, SEXP tables, SEXP rows, SEXP state, SEXP settings)
{
  static const char *const names[] = {"numbers", "block", "log_evidence", "log_weight", "start"};
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  const le_partition_ops *ops = handle->ops->partitions;
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  const le_segments s = {.ops = handle->ops,
                         .self = handle->self,
                         .rows = rows_from_matrix(rows, handle->ops->width(handle->self)),
                         .context = &context};
  const int first = Rf_isNull(state);
  const double *setting = numbers_of(settings, 3, "settings"), *shared = tables_of(handle, tables);
  if (!(setting[1] >= 1 && setting[1] < 1e9 && setting[2] >= 1 && setting[2] < 1e9))
    Rf_error("`settings` must have a step and a number of starts of at least 1.");
  const size_t size = ops->size(s.self), most = (size_t)setting[1];
  double *room[4];
  for (size_t k = 0; k < 4; k++)
    room[k] = (double *)R_alloc((most + 1) * (k ? 1 : size), sizeof(double));
  le_runs runs = {.hazard = setting[0], .most = (double)most, .step = setting[2],
                  .block = room[0], .log_evidence = room[1], .log_weight = room[2],
                  .start = room[3]};
  if (!first) {
    const double *seen = numbers_of(list_element(state, "numbers"), 2, "numbers");
    runs.seen = seen[0];
    runs.lost = seen[1];
    runs.n = (size_t)XLENGTH(list_element(state, "start"));
    if (runs.n > most) Rf_error("The state belongs to other settings.");
    for (size_t k = 0; k < 4; k++) {
      const size_t n = runs.n * (k ? 1 : size);
      memcpy(room[k], numbers_of(list_element(state, names[1 + k]), n, names[1 + k]),
             n * sizeof(double));
    }
  }
  finish_watched(le_runs_extend(&s, shared, &runs), &watch, &context);
  SEXP part[5] = {PROTECT(number_vector(2, (double[]){runs.seen, runs.lost}))};
  for (size_t k = 0; k < 4; k++)
    part[1 + k] = PROTECT(number_vector(runs.n * (k ? 1 : size), room[k]));
  SEXP list = named_list(5, names, part);
  UNPROTECT(7);
  return list;
}
