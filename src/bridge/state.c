/* Saved runs: a header that identifies the problem, the state of the engine, and a checksum.
 *
 * The header has a magic word, the format version, the version of the package, and fingerprints of
 * the model (with its priors and the data it holds) and of the method (engine, settings, kernels,
 * number of rows), and the seed and replicate. A state that does not belong to the problem into
 * which it is read is refused with an error. */
#include "bridge/run.h"

enum { STATE_FORMAT = 12, VERSION_SIZE = 24 };
static const uint64_t MAGIC = 0x6c6f676576696421u; /* "logevid!" */

static const uint64_t EMPTY = 14695981039346656037u;

static uint64_t hash_text(uint64_t sum, SEXP text)
{
  return le_checksum(sum, CHAR(text), strlen(CHAR(text)) + 1);
}

/* The hash of an R value: numbers, strings, lists with their names, formulas by their calls and
 * names; functions as text. */
static uint64_t hash_value(uint64_t sum, SEXP value)
{
  const int type = TYPEOF(value);
  const double n = (double)Rf_xlength(value);
  sum = le_checksum(sum, &type, sizeof type);
  switch (type) {
  case REALSXP:
    sum = le_checksum(sum, &n, sizeof n);
    return le_checksum(sum, REAL(value), (size_t)XLENGTH(value) * sizeof(double));
  case INTSXP:
  case LGLSXP:
    sum = le_checksum(sum, &n, sizeof n);
    return le_checksum(sum, INTEGER(value), (size_t)XLENGTH(value) * sizeof(int));
  case STRSXP:
    for (R_xlen_t i = 0; i < XLENGTH(value); i++) sum = hash_text(sum, STRING_ELT(value, i));
    return sum;
  case VECSXP:
    sum = hash_value(sum, Rf_getAttrib(value, R_NamesSymbol));
    for (R_xlen_t i = 0; i < XLENGTH(value); i++) sum = hash_value(sum, VECTOR_ELT(value, i));
    return sum;
  case LISTSXP:
  case LANGSXP:
    sum = le_checksum(sum, &n, sizeof n);
    for (SEXP part = value; part != R_NilValue; part = CDR(part))
      sum = hash_value(hash_value(sum, TAG(part)), CAR(part));
    return sum;
  case SYMSXP: return hash_text(sum, PRINTNAME(value));
  case CLOSXP: {
    SEXP call =
      PROTECT(Rf_lang2(Rf_install("deparse"), PROTECT(Rf_lang2(Rf_install("quote"), value))));
    SEXP text = PROTECT(Rf_eval(call, R_BaseEnv));
    sum = hash_value(sum, text);
    UNPROTECT(3);
    return sum;
  }
  default: return sum;
  }
}

static uint64_t hash_of(SEXP problem, const char *const *parts, size_t n)
{
  uint64_t sum = EMPTY;
  for (size_t i = 0; i < n; i++) sum = hash_value(sum, list_element(problem, parts[i]));
  return sum;
}

/* Without gaps between its members, so that its bytes can be saved. */
typedef struct header {
  uint64_t magic, format;
  char version[VERSION_SIZE];
  uint64_t model, method, seed, replicate;
} header;

static uint64_t model_hash(SEXP problem)
{
  static const char *const parts[] = {"model_type", "model_args", "model"};
  return hash_of(problem, parts, 3);
}

static uint64_t method_hash(SEXP problem)
{
  static const char *const parts[] = {"estimator", "settings", "kernels", "total"};
  return hash_of(problem, parts, 4);
}

/* The model and the method of a problem, as text that is the same in every session. */
SEXP ffi_problem_id(SEXP problem)
{
  const uint64_t model = model_hash(problem), method = method_hash(problem);
  char text[64];
  snprintf(text, sizeof text, "%08x%08x-%08x%08x", (unsigned)(model >> 32), (unsigned)model,
           (unsigned)(method >> 32), (unsigned)method);
  return Rf_mkString(text);
}

static header header_of(const run_handle *run)
{
  header h = {MAGIC,
              STATE_FORMAT,
              "",
              model_hash(run->problem),
              method_hash(run->problem),
              seed_from_words(list_element(run->problem, "seed")),
              one_count(list_element(run->problem, "replicate"), "replicate")};
  SEXP version = PROTECT(call_package(Rf_install("PACKAGE_VERSION")));
  snprintf(h.version, sizeof h.version, "%s", one_string(version, "version"));
  UNPROTECT(1);
  return h;
}

static void archive_run(const run_handle *run, header *h, le_archive *archive)
{
  le_archive_bytes(archive, h, sizeof *h);
  le_machine_archive(run->self, archive);
  user_model_archive(run->model, archive);
  if (archive->status != LE_OK) raise_status(archive->status, NULL);
}

SEXP ffi_run_save(SEXP pointer)
{
  const run_handle *run = run_get(pointer);
  header h = header_of(run);
  le_archive archive = le_archive_writer(NULL, SIZE_MAX);
  archive_run(run, &h, &archive);
  const size_t size = archive.position;
  SEXP state = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)(size + sizeof(uint64_t))));
  archive = le_archive_writer(RAW(state), size);
  archive_run(run, &h, &archive);
  le_release(archive.image);
  const uint64_t sum = le_checksum(EMPTY, RAW(state), size);
  memcpy(RAW(state) + size, &sum, sizeof sum);
  UNPROTECT(1);
  return state;
}

static le_status refuse(const header *own, const header *read, le_error *error)
{
  if (read->format != own->format || memcmp(read->version, own->version, VERSION_SIZE) != 0)
    return le_fail(
      error, LE_BAD_ARGUMENT,
      "The state was saved by version %.*s of the package and cannot be read by version %s.",
      VERSION_SIZE, read->version, own->version);
  const char *other = read->model != own->model     ? "another model, or to other priors"
                      : read->method != own->method ? "another method, other settings or another "
                                                      "number of rows"
                      : read->seed != own->seed     ? "a run with another seed"
                                                    : NULL;
  if (other) return le_fail(error, LE_BAD_ARGUMENT, "The state belongs to %s.", other);
  if (read->replicate != own->replicate)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "The state belongs to another replicate: %.0f, not %.0f.",
                   (double)read->replicate + 1, (double)own->replicate + 1);
  return LE_OK;
}

/* The same bytes with a right checksum in their last word, for tests of what else is checked. */
SEXP ffi_state_seal(SEXP state)
{
  uint64_t sum;
  if (TYPEOF(state) != RAWSXP || (size_t)XLENGTH(state) < sizeof sum)
    Rf_error("A saved state must be a raw vector.");
  const size_t size = (size_t)XLENGTH(state) - sizeof sum;
  SEXP sealed = PROTECT(Rf_duplicate(state));
  sum = le_checksum(EMPTY, RAW(sealed), size);
  memcpy(RAW(sealed) + size, &sum, sizeof sum);
  UNPROTECT(1);
  return sealed;
}

/* If a state is refused, the run is unusable and is ended. */
SEXP ffi_run_restore(SEXP pointer, SEXP state)
{
  run_handle *run = run_get(pointer);
  if (TYPEOF(state) != RAWSXP) Rf_error("A saved state must be a raw vector.");
  header own = header_of(run), read = own;
  uint64_t sum = 0;
  const size_t size = (size_t)XLENGTH(state) > sizeof sum ? (size_t)XLENGTH(state) - sizeof sum : 0;
  if (size) memcpy(&sum, RAW(state) + size, sizeof sum);
  le_archive archive = le_archive_reader(RAW(state), size);
  le_archive_bytes(&archive, &read, sizeof read);
  le_error error = {""};
  le_status status = archive.status;
  if (status == LE_OK && (read.magic != MAGIC || sum != le_checksum(EMPTY, RAW(state), size)))
    status = LE_CORRUPT;
  if (status == LE_OK) status = refuse(&own, &read, &error);
  if (status == LE_OK) {
    le_machine_archive(run->self, &archive);
    user_model_archive(run->model, &archive);
    status = archive.status;
  }
  if (status == LE_OK && archive.position != archive.size) status = LE_CORRUPT;
#ifdef LE_DEBUG
  archive = le_archive_writer((unsigned char *)R_alloc(size, 1), size);
  if (status == LE_OK) archive_run(run, &read, &archive);
  if (status == LE_OK && le_archive_differs(&archive, RAW(state), &error)) status = LE_CORRUPT;
#endif
  if (status == LE_OK) return R_NilValue;
  run_finalize(pointer);
  raise_status(status, &error);
  return R_NilValue;
}
