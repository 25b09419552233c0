/* Segments of rows and sums over their boundaries (change_points()). */
#include "bridge/bridge.h"

#include "core/segments.h"

/* R is asked for interrupts; what it says is raised at the end. */
static le_context watched(r_watch *watch)
{
  *watch = (r_watch){.kept = Rf_allocVector(VECSXP, 1)};
  return (le_context){.threads = 1, .interrupted = user_interrupts, .payload = watch};
}

static void finish(le_status status, const r_watch *watch, const le_context *context)
{
  if (VECTOR_ELT(watch->kept, 0) != R_NilValue) raise_condition(VECTOR_ELT(watch->kept, 0));
  if (status != LE_OK) raise_status(status, &context->error);
}

static le_segments segments_of(const model_handle *handle, SEXP rows, SEXP bound, double least,
                               le_context *context)
{
  const le_segments s = {.ops = handle->ops,
                         .self = handle->self,
                         .rows = rows_from_matrix(rows, handle->ops->width(handle->self)),
                         .m = (size_t)XLENGTH(bound) - 1,
                         .bound = REAL(bound),
                         .least = least,
                         .context = context};
  for (size_t j = 0; j < s.m; j++)
    if (!(s.bound[j] >= 0 && s.bound[j] < s.bound[j + 1] && s.bound[j + 1] <= (double)s.rows.n))
      Rf_error("Boundaries must be increasing numbers of rows.");
  return s;
}

/* The log evidences of all segments between these boundaries, by their closed form (`closed`) or
 * Laplace's approximation. */
SEXP ffi_segments(SEXP type, SEXP args, SEXP rows, SEXP bound, SEXP least, SEXP closed)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  const le_segments s = segments_of(handle, rows, bound, Rf_asReal(least), &context);
  SEXP value = PROTECT(zero_vector(s.m * (s.m + 1) / 2));
  finish(Rf_asLogical(closed) == 1 ? le_segments_evidence(&s, REAL(value))
                                   : le_segments_laplace(&s, REAL(value)),
         &watch, &context);
  UNPROTECT(3);
  return value;
}

SEXP ffi_segments_closed(SEXP type, SEXP args)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  SEXP value = Rf_ScalarLogical(le_segments_closed(handle->ops, handle->self));
  UNPROTECT(1);
  return value;
}

/* Parameters of segments, a column for each, which by Laplace's approximation ends in the log
 * density of the draw. */
SEXP ffi_segments_draw(SEXP type, SEXP args, SEXP rows, SEXP bound, SEXP ends, SEXP seed,
                       SEXP closed)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const model_handle *handle = model_get(pointer);
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  const size_t k = (size_t)Rf_nrows(ends), d = handle->ops->dim(handle->self);
  const double *from = REAL(ends), *to = from + k;
  const le_segments s = segments_of(handle, rows, bound, 0, &context);
  for (size_t i = 0; i < k; i++)
    if (!(from[i] >= 0 && from[i] < to[i] && to[i] <= (double)s.m))
      Rf_error("Segments must be between boundaries.");
  const int forms = Rf_asLogical(closed) == 1;
  SEXP theta = PROTECT(zeros(d + !forms, k));
  finish((forms ? le_segments_draw : le_segments_laplace_draw)(&s, k, from, to, new_stream(seed),
                                                               REAL(theta)),
         &watch, &context);
  UNPROTECT(3);
  return theta;
}

/* Sums over segmentations: matrices with a column for each number of changes. */
SEXP ffi_segments_sums(SEXP log_evidence, SEXP log_weight, SEXP most, SEXP flat)
{
  const size_t m = (size_t)XLENGTH(log_weight) - 1, changes = one_count(most, "most");
  if ((size_t)XLENGTH(log_evidence) != m * (m + 1) / 2) Rf_error("Segments are missing.");
  r_watch watch;
  le_context context = watched(&watch);
  PROTECT(watch.kept);
  static const char *const names[] = {"first", "last"};
  SEXP part[] = {PROTECT(zeros(m + 1, changes + 1)), PROTECT(zeros(m + 1, changes + 1))};
  finish(le_segments_sums(m, changes, REAL(log_evidence), REAL(log_weight),
                          Rf_asLogical(flat) == 1, &context, REAL(part[0]), REAL(part[1])),
         &watch, &context);
  SEXP list = named_list(2, names, part);
  UNPROTECT(3);
  return list;
}

/* The run lengths of a stream after these rows: a list of `numbers` (rows seen, share lost),
 * `tables`, and of each start `block` (a column), `log_evidence`, `log_weight` and `start`. It is
 * what the next call gets as `state`, NULL for the first rows. `settings`: hazard, most, step. */
SEXP ffi_runs(SEXP type, SEXP args, SEXP rows, SEXP state, SEXP settings)
{
  static const char *const names[] = {"numbers",      "tables",     "block",
                                      "log_evidence", "log_weight", "start"};
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
  const size_t size = ops->size(s.self), most = (size_t)REAL(settings)[1];
  SEXP tables = first ? zero_vector(ops->tables(s.self, s.rows.n)) : list_element(state, "tables");
  PROTECT(tables);
  if (first) ops->prepare(s.self, &s.rows, REAL(tables));
  double *room[4];
  for (size_t k = 0; k < 4; k++)
    room[k] = (double *)R_alloc((most + 1) * (k ? 1 : size), sizeof(double));
  le_runs runs = {.hazard = REAL(settings)[0], .most = (double)most, .step = REAL(settings)[2],
                  .block = room[0], .log_evidence = room[1], .log_weight = room[2],
                  .start = room[3]};
  if (!first) {
    runs.seen = REAL(list_element(state, "numbers"))[0];
    runs.lost = REAL(list_element(state, "numbers"))[1];
    runs.n = (size_t)XLENGTH(list_element(state, "start"));
    if (runs.n > most || (size_t)XLENGTH(list_element(state, "block")) != runs.n * size)
      Rf_error("The state belongs to other settings.");
    for (size_t k = 0; k < 4; k++)
      memcpy(room[k], REAL(list_element(state, names[2 + k])),
             runs.n * (k ? 1 : size) * sizeof(double));
  }
  finish(le_runs_extend(&s, REAL(tables), &runs), &watch, &context);
  SEXP part[6] = {PROTECT(number_vector(2, (double[]){runs.seen, runs.lost})), tables};
  for (size_t k = 0; k < 4; k++)
    part[2 + k] = PROTECT(number_vector(runs.n * (k ? 1 : size), room[k]));
  SEXP list = named_list(6, names, part);
  UNPROTECT(8);
  return list;
}
