/* Reads batches of an Arrow stream. Numeric columns become rows without vectors in R. The streams,
 * schemas and arrays are external pointers made by the R package nanoarrow, which also releases
 * them; their addresses are those of the structs, by its documentation. */
#include "bridge/arrow.h"

#include "bridge/columns.h"

static void *address_of(SEXP pointer, const char *class)
{
  if (TYPEOF(pointer) != EXTPTRSXP || !Rf_inherits(pointer, class) || !R_ExternalPtrAddr(pointer))
    Rf_error("An object of class %s was expected.", class);
  return R_ExternalPtrAddr(pointer);
}

/* The shortest column of a batch, or -1 if there is a column that is none. */
static int64_t shortest_column(const struct ArrowArray *batch)
{
  int64_t shortest = INT64_MAX;
  for (int64_t k = 0; k < batch->n_children; k++) {
    const struct ArrowArray *child = batch->children[k];
    if (!child || !child->release || child->offset < 0) return -1;
    if (child->length < shortest) shortest = child->length;
  }
  return shortest;
}

/* A producer may say that a batch has more rows than its columns. To read these would be to read
 * beyond the columns. */
static void check_batch(const struct ArrowArray *batch)
{
  const int64_t columns = shortest_column(batch);
  if (batch->length >= 0 && batch->offset >= 0 && columns >= batch->offset &&
      batch->length <= columns - batch->offset)
    return;
  le_error error = {""};
  le_fail(&error, LE_BAD_ARGUMENT,
          "The stream has a batch of %.0f rows from row %.0f of columns that have %.0f.",
          (double)batch->length, (double)batch->offset + 1, (double)(columns < 0 ? 0 : columns));
  raise_status(LE_BAD_ARGUMENT, &error);
}

/* Moves the next batch into `array`. Returns its number of rows, or NULL at the end. */
SEXP ffi_arrow_next(SEXP stream, SEXP array)
{
  struct ArrowArrayStream *from = address_of(stream, "nanoarrow_array_stream");
  struct ArrowArray *to = address_of(array, "nanoarrow_array");
  if (!from->release) Rf_error("The stream was released before its end.");
  const int code = from->get_next(from, to);
  if (code) {
    const char *message = from->get_last_error ? from->get_last_error(from) : NULL;
    Rf_error("%s", message && message[0] ? message : "The stream has failed without a message.");
  }
  if (to->release) check_batch(to);
  return to->release ? Rf_ScalarReal((double)to->length) : R_NilValue;
}

#define FORMAT(kind, type, format) {format, kind},
static const struct {
  char format;
  column_kind kind;
} kinds[] = {COLUMN_NUMBERS(FORMAT){'b', COLUMN_BIT}};

/* Whether a child of a batch is a column of plain numbers; then `to` describes it. */
static int is_plain(const struct ArrowSchema *schema, const struct ArrowArray *child, size_t offset,
                    column *to)
{
  if (!schema->format || strlen(schema->format) != 1 || schema->dictionary ||
      child->n_buffers != 2 || (!child->buffers[1] && child->length > 0))
    return 0;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    if (kinds[k].format == schema->format[0]) {
      const uint8_t *valid = child->null_count == 0 ? NULL : child->buffers[0];
      *to = (column){kinds[k].kind, child->buffers[1], valid, offset + (size_t)child->offset};
      return 1;
    }
  return 0;
}

static int64_t child_named(const struct ArrowSchema *schema, const char *name)
{
  for (int64_t k = 0; k < schema->n_children; k++)
    if (schema->children[k]->name && strcmp(schema->children[k]->name, name) == 0) return k;
  return -1;
}

/* The named columns of a batch as rows; see rows_from_columns(). NULL if one of them is not there,
 * or has other values than plain numbers. */
SEXP ffi_arrow_rows(SEXP array, SEXP schema, SEXP names, SEXP intercept)
{
  const struct ArrowArray *batch = address_of(array, "nanoarrow_array");
  const struct ArrowSchema *types = address_of(schema, "nanoarrow_schema");
  if (!batch->release || !types->release) Rf_error("The batch was released before it was read.");
  if (TYPEOF(names) != STRSXP || strcmp(types->format, "+s") != 0 || batch->null_count > 0 ||
      batch->n_children != types->n_children)
    return R_NilValue;
  const size_t p = (size_t)XLENGTH(names), offset = (size_t)batch->offset;
  column *columns = (column *)R_alloc(p, sizeof *columns);
  for (size_t j = 0; j < p; j++) {
    const int64_t k = child_named(types, Rf_translateCharUTF8(STRING_ELT(names, (R_xlen_t)j)));
    if (k < 0 || !is_plain(types->children[k], batch->children[k], offset, &columns[j]))
      return R_NilValue;
  }
  return rows_from_columns((size_t)batch->length, p, columns, Rf_asLogical(intercept) == 1);
}
