/* Bytes to lines, and text with separated values to columns. Records are lines, or several lines if
 * a quoted field contains line ends; a quote within a quoted field is doubled (RFC 4180). Numbers
 * are those of strtod(), which rounds correctly, so that 17 significant digits give back the same
 * double. */
#include "bridge/bridge.h"

#include <limits.h>
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

/* Goes to the next field of the record, if there is one. */
static int another_field(csv *c)
{
  const int more = *c->at == c->sep;
  c->at += more;
  return more;
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
  *column = 0;
  do {
    const R_xlen_t j = (*column)++;
    if (!next_field(c)) return NOT_CLOSED;
    const int problem = j < p ? store_field(c, kinds[j], VECTOR_ELT(columns, j), row) : FINE;
    if (problem) return problem;
  } while (another_field(c));
  return *column < p ? TOO_FEW : *column > p ? TOO_MANY : FINE;
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
  SEXP what = PROTECT(number_vector(2, (double[]){problem, (double)column}));
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
  SEXP fields = PROTECT(Rf_allocVector(STRSXP, 64));
  R_xlen_t n = 0;
  int more = 1, whole = 1;
  begin_line(&c);
  while (more && (whole = next_field(&c))) {
    if (n == XLENGTH(fields)) {
      SEXP longer = Rf_xlengthgets(fields, 2 * n);
      UNPROTECT(1);
      fields = PROTECT(longer);
    }
    SET_STRING_ELT(fields, n++, text_of(&c));
    more = another_field(&c);
  }
  SEXP count = PROTECT(Rf_ScalarReal((double)c.line + 1));
  SEXP names = PROTECT(Rf_xlengthgets(fields, n));
  static const char *const parts[] = {"fields", "used"};
  SEXP result = whole ? named_list(2, parts, (SEXP[]){names, count}) : R_NilValue;
  UNPROTECT(3);
  return result;
}

/* Kinds of values of a column, counted to find its type. */
enum { NO_VALUE, A_NUMBER, A_LOGICAL, A_TEXT, KINDS };

static int kind_of_field(csv *c)
{
  double number;
  int logical;
  if (is_na(c) || is_blank(c)) return NO_VALUE;
  if (take_number(c, &number) == FINE) return A_NUMBER;
  return take_logical(c, &logical) == FINE ? A_LOGICAL : A_TEXT;
}

/* Counts the values of one record. The first that is no number is kept, with its line. */
static void count_record(csv *c, SEXP count, SEXP value, SEXP line)
{
  const R_xlen_t p = XLENGTH(value), begin = c->line;
  begin_line(c);
  for (R_xlen_t j = 0; j < p && (j == 0 || another_field(c)); j++) {
    if (!next_field(c)) return;
    const int kind = kind_of_field(c);
    INTEGER(count)[KINDS * j + kind]++;
    if (kind > A_NUMBER && INTEGER(line)[j] == 0) {
      SET_STRING_ELT(value, j, text_of(c));
      INTEGER(line)[j] = (int)begin + 1;
    }
  }
}

/* The values of `columns` columns by kind (missing, numbers, logical, text): `count`, a row for
 * each kind; and of each column the first `value` that is no number, and its `line`, or 0. Records
 * that are not whole are counted as far as they go. */
SEXP ffi_csv_kinds(SEXP lines, SEXP columns, SEXP format, SEXP na)
{
  csv c = csv_of(lines, format, na);
  const int p = (int)one_count(columns, "columns");
  SEXP count = PROTECT(Rf_allocMatrix(INTSXP, KINDS, p)),
       value = PROTECT(Rf_allocVector(STRSXP, p)), line = PROTECT(Rf_allocVector(INTSXP, p));
  memset(INTEGER(count), 0, (size_t)XLENGTH(count) * sizeof(int));
  memset(INTEGER(line), 0, (size_t)p * sizeof(int));
  for (; c.line < c.n; c.line++)
    if (CHAR(STRING_ELT(lines, c.line))[0]) count_record(&c, count, value, line);
  static const char *const names[] = {"count", "value", "line"};
  SEXP result = named_list(3, names, (SEXP[]){count, value, line});
  UNPROTECT(3);
  return result;
}

/* Lines -------------------------------------------------------------------------------------- */

/* The number of lines that end in the bytes. */
static size_t lines_in(const unsigned char *bytes, size_t size)
{
  size_t n = 0;
  for (const unsigned char *at = bytes; (at = memchr(at, '\n', (size_t)(bytes + size - at))); at++)
    n++;
  return n;
}

static int has_high(const char *text, size_t length)
{
  unsigned char all = 0;
  for (size_t i = 0; i < length; i++) all |= (unsigned char)text[i];
  return all > 127;
}

/* Bytes as `lines`, whose ends are \n or \r\n, and the number of bytes `used`: a last line without
 * an end is taken only if `ended`. `nul` is the first line with a byte of zero, or 0; the lines end
 * before it. `high` says whether there are bytes that are not ASCII. */
SEXP ffi_csv_lines(SEXP raw, SEXP ended)
{
  if (TYPEOF(raw) != RAWSXP) Rf_error("Lines must be bytes.");
  const unsigned char *bytes = RAW(raw);
  const size_t size = (size_t)XLENGTH(raw);
  size_t n = lines_in(bytes, size), used = 0, line = 0, nul = 0;
  if (Rf_asLogical(ended) == TRUE && size && bytes[size - 1] != '\n') n++;
  SEXP lines = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)n));
  int high = 0;
  for (; line < n; line++) {
    const unsigned char *end = memchr(bytes + used, '\n', size - used);
    const char *text = (const char *)bytes + used;
    const size_t all = (end ? (size_t)(end - bytes) : size) - used;
    const size_t length = all && text[all - 1] == '\r' ? all - 1 : all;
    if (length > INT_MAX || memchr(text, 0, length)) break;
    const int own = has_high(text, length);
    high |= own;
    SET_STRING_ELT(lines, (R_xlen_t)line,
                   Rf_mkCharLenCE(text, (int)length, own ? CE_UTF8 : CE_NATIVE));
    used += all + (end != NULL);
  }
  if (line < n) nul = line + 1;
  SEXP whole = PROTECT(Rf_xlengthgets(lines, (R_xlen_t)line)),
       values[] = {whole, PROTECT(Rf_ScalarReal((double)used)), PROTECT(Rf_ScalarLogical(high)),
                   PROTECT(Rf_ScalarReal((double)nul))};
  static const char *const names[] = {"lines", "used", "high", "nul"};
  SEXP result = named_list(4, names, values);
  UNPROTECT(5);
  return result;
}

/* The checksum of gzip (CRC-32) of bytes that come after others, whose checksum is `before`. */
SEXP ffi_crc32(SEXP raw, SEXP before)
{
  if (TYPEOF(raw) != RAWSXP) Rf_error("A checksum is one of bytes.");
  uint32_t table[256], sum = ~(uint32_t)Rf_asReal(before);
  for (uint32_t k = 0; k < 256; k++) {
    uint32_t word = k;
    for (int bit = 0; bit < 8; bit++) word = word >> 1 ^ (word & 1 ? 0xedb88320u : 0);
    table[k] = word;
  }
  const unsigned char *bytes = RAW(raw);
  for (R_xlen_t i = 0; i < XLENGTH(raw); i++) sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 255];
  return Rf_ScalarReal((double)(uint32_t)~sum);
}
