/* Text with separated values to columns. Records are lines, or several lines if a quoted field
 * contains line ends; a quote within a quoted field is doubled (RFC 4180). Numbers are those of
 * strtod(), which rounds correctly, so that 17 significant digits give back the same double. */
#include "bridge/bridge.h"

#include <stdlib.h>
#include <string.h>

enum { FIELD_TEXT, FIELD_NUMBER, FIELD_LOGICAL };

/* What is wrong with a record. */
enum { FINE, TOO_FEW, TOO_MANY, NOT_A_NUMBER, NOT_LOGICAL, NOT_CLOSED };

typedef struct csv {
  SEXP lines, na;
  R_xlen_t n, line; /* number of lines, and the present one */
  const char *at;   /* the next character */
  cetype_t encoding;
  char sep, quote, decimal; /* without quotes `quote` is 0 */
  const char *text; /* the present field, not terminated, of this length */
  size_t length;
  char *buffer;
  size_t room;
} csv;

static csv csv_of(SEXP lines, SEXP format, SEXP na)
{
  if (TYPEOF(lines) != STRSXP || TYPEOF(format) != STRSXP || XLENGTH(format) != 3 ||
      TYPEOF(na) != STRSXP)
    Rf_error("Lines, format and `na` must be strings.");
  return (csv){.lines = lines,
               .na = na,
               .n = XLENGTH(lines),
               .sep = CHAR(STRING_ELT(format, 0))[0],
               .quote = CHAR(STRING_ELT(format, 1))[0],
               .decimal = CHAR(STRING_ELT(format, 2))[0]};
}

static void begin_line(csv *c)
{
  SEXP line = STRING_ELT(c->lines, c->line);
  c->at = CHAR(line);
  c->encoding = Rf_getCharCE(line);
}

/* Makes the buffer larger than `length`; R frees it when the call ends. */
static void need_room(csv *c, size_t length)
{
  if (length < c->room) return;
  char *larger = R_alloc(2 * length + 256, 1);
  if (c->length > 0 && c->buffer) memcpy(larger, c->buffer, c->length);
  c->buffer = larger;
  c->room = 2 * length + 256;
}

static void append(csv *c, char letter)
{
  need_room(c, c->length + 1);
  c->buffer[c->length++] = letter;
}

/* A field that begins with a quote. Returns 0 if the lines end before the field does. */
static int quoted_field(csv *c)
{
  c->length = 0;
  c->at++;
  for (;;) {
    if (*c->at == '\0') {
      if (c->line + 1 == c->n) return 0;
      append(c, '\n');
      c->line++;
      begin_line(c);
    } else if (*c->at != c->quote) {
      append(c, *c->at++);
    } else if (c->at[1] == c->quote) {
      append(c, c->quote);
      c->at += 2;
    } else {
      break;
    }
  }
  c->at++;
  while (*c->at && *c->at != c->sep) append(c, *c->at++);
  need_room(c, c->length);
  c->text = c->buffer;
  return 1;
}

/* Reads a field up to the separator or the end of the record. */
static int next_field(csv *c)
{
  if (c->quote && *c->at == c->quote) return quoted_field(c);
  c->text = c->at;
  while (*c->at && *c->at != c->sep) c->at++;
  c->length = (size_t)(c->at - c->text);
  return 1;
}

static int is_na(const csv *c)
{
  for (R_xlen_t k = 0; k < XLENGTH(c->na); k++) {
    SEXP word = STRING_ELT(c->na, k);
    if ((size_t)LENGTH(word) == c->length && memcmp(CHAR(word), c->text, c->length) == 0) return 1;
  }
  return 0;
}

static int is_blank(const csv *c)
{
  for (size_t i = 0; i < c->length; i++)
    if (c->text[i] != ' ' && c->text[i] != '\t') return 0;
  return 1;
}

/* Puts the field into the buffer, with a terminating zero. */
static void copy_field(csv *c)
{
  const char *from = c->text;
  const size_t length = c->length;
  if (from != c->buffer) {
    c->length = 0;
    need_room(c, length);
    memcpy(c->buffer, from, length);
    c->length = length;
    c->text = c->buffer;
  }
  c->buffer[length] = '\0';
}

static void exchange(char *text, char from, char to)
{
  for (; *text; text++)
    if (*text == from) *text = to;
}

/* strtod() stops at the separator or the end of the line, so most fields need no copy. */
static int take_number(csv *c, double *value)
{
  *value = NA_REAL;
  if (is_na(c) || is_blank(c)) return FINE;
  const int exchanged = c->decimal != '.';
  if (exchanged || c->text == c->buffer) copy_field(c);
  if (exchanged && strchr(c->text, '.')) return NOT_A_NUMBER;
  if (exchanged) exchange(c->buffer, c->decimal, '.');
  char *end;
  *value = strtod(c->text, &end);
  const char *last = c->text + c->length;
  if (end == c->text) last = NULL;
  while (end < last && (*end == ' ' || *end == '\t')) end++;
  if (exchanged) exchange(c->buffer, '.', c->decimal);
  return end == last ? FINE : NOT_A_NUMBER;
}

static int take_logical(const csv *c, int *value)
{
  static const char *const words[2][4] = {{"FALSE", "false", "False", "F"},
                                          {"TRUE", "true", "True", "T"}};
  *value = NA_LOGICAL;
  if (is_na(c) || is_blank(c)) return FINE;
  for (int truth = 0; truth < 2; truth++)
    for (int k = 0; k < 4; k++)
      if (strlen(words[truth][k]) == c->length &&
          memcmp(words[truth][k], c->text, c->length) == 0) {
        *value = truth;
        return FINE;
      }
  return NOT_LOGICAL;
}

static SEXP text_of(const csv *c)
{
  return Rf_mkCharLenCE(c->text, (int)c->length, c->encoding);
}

static int store_field(csv *c, int kind, SEXP column, R_xlen_t row)
{
  if (kind == FIELD_NUMBER) return take_number(c, &REAL(column)[row]);
  if (kind == FIELD_LOGICAL) return take_logical(c, &LOGICAL(column)[row]);
  SET_STRING_ELT(column, row, is_na(c) ? NA_STRING : text_of(c));
  return FINE;
}

/* Reads one record. `column` becomes the number of the field with a problem, or of fields. */
static int read_record(csv *c, const int *kinds, SEXP columns, R_xlen_t row, R_xlen_t *column)
{
  const R_xlen_t p = XLENGTH(columns);
  begin_line(c);
  for (R_xlen_t j = 0; j < p; j++) {
    *column = j + 1;
    if (!next_field(c)) return NOT_CLOSED;
    const int problem = store_field(c, kinds[j], VECTOR_ELT(columns, j), row);
    if (problem) return problem;
    if (j + 1 == p) break;
    if (*c->at != c->sep) return TOO_FEW;
    c->at++;
  }
  while (*c->at == c->sep) {
    c->at++;
    ++*column;
    if (!next_field(c)) return NOT_CLOSED;
  }
  return *column == p ? FINE : TOO_MANY;
}

static SEXP new_columns(const int *kinds, R_xlen_t p, R_xlen_t n)
{
  SEXP columns = PROTECT(Rf_allocVector(VECSXP, p));
  for (R_xlen_t j = 0; j < p; j++) {
    const SEXPTYPE type = kinds[j] == FIELD_NUMBER  ? REALSXP
                          : kinds[j] == FIELD_LOGICAL ? LGLSXP
                                                      : STRSXP;
    SET_VECTOR_ELT(columns, j, Rf_allocVector(type, n));
  }
  UNPROTECT(1);
  return columns;
}

static void shorten(SEXP columns, R_xlen_t rows)
{
  for (R_xlen_t j = 0; j < XLENGTH(columns); j++)
    SET_VECTOR_ELT(columns, j, Rf_xlengthgets(VECTOR_ELT(columns, j), rows));
}

/* Lines as columns of these kinds (0 text, 1 numbers, 2 logical). Stops at a record that has a
 * problem, or that goes on after the last line. Returns the `columns`, the number of lines `used`,
 * and the `problem`: what, in which column, and the text there. Empty lines are skipped. */
SEXP ffi_csv(SEXP lines, SEXP kinds, SEXP format, SEXP na)
{
  if (TYPEOF(kinds) != INTSXP) Rf_error("Kinds must be integers.");
  csv c = csv_of(lines, format, na);
  SEXP columns = PROTECT(new_columns(INTEGER(kinds), XLENGTH(kinds), c.n));
  R_xlen_t row = 0, used = 0, column = 0;
  int problem = FINE;
  for (; c.line < c.n; used = ++c.line) {
    if (CHAR(STRING_ELT(lines, c.line))[0] == '\0') continue;
    problem = read_record(&c, INTEGER(kinds), columns, row, &column);
    if (problem) break;
    row++;
  }
  if (row < c.n) shorten(columns, row);
  SEXP what = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(what)[0] = problem;
  REAL(what)[1] = (double)column;
  const int shown = problem == NOT_A_NUMBER || problem == NOT_LOGICAL;
  SEXP value = PROTECT(shown ? Rf_ScalarString(text_of(&c)) : R_NilValue);
  SEXP count = PROTECT(Rf_ScalarReal((double)used));
  static const char *const names[] = {"columns", "used", "problem", "value"};
  SEXP result = named_list(4, names, (SEXP[]){columns, count, what, value});
  UNPROTECT(4);
  return result;
}

/* The fields of the first record, and the number of lines that it takes; NULL if it goes on after
 * the last line. */
SEXP ffi_csv_fields(SEXP lines, SEXP format)
{
  csv c = csv_of(lines, format, lines);
  if (c.n == 0) return R_NilValue;
  SEXP fields = PROTECT(Rf_allocVector(VECSXP, 0));
  int more = 1, whole = 1;
  begin_line(&c);
  while (more && (whole = next_field(&c))) {
    const R_xlen_t k = XLENGTH(fields);
    SEXP longer = Rf_xlengthgets(fields, k + 1);
    UNPROTECT(1);
    fields = PROTECT(longer);
    SET_VECTOR_ELT(fields, k, Rf_ScalarString(text_of(&c)));
    more = *c.at == c.sep;
    c.at += more;
  }
  SEXP count = PROTECT(Rf_ScalarReal((double)c.line + 1));
  static const char *const names[] = {"fields", "used"};
  SEXP result = whole ? named_list(2, names, (SEXP[]){fields, count}) : R_NilValue;
  UNPROTECT(2);
  return result;
}
