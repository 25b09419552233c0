/* A fuzzer of libFuzzer around R: each input is given to an R function of raw bytes, which calls
 * the C code of the package. The package's library is built with the same sanitizers and counts
 * which parts of it have run, so that inputs that reach new parts are kept and altered again. R
 * itself is not watched. See tools/fuzz-c.sh. */
#define CSTACK_DEFNS /* of R_CStackLimit */
#define R_NO_REMAP
#include <stdint.h>
#include <Rembedded.h>
#include <Rinterface.h>
#include <Rinternals.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static SEXP target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  const char *file = getenv("FUZZ_TARGET");
  if (file == NULL) abort();
  char *own[] = {"R", "--no-echo", "--no-restore", "--no-save"};
  /* signals belong to the fuzzer */
  R_SignalHandlers = 0;
  Rf_initEmbeddedR(4, own);
  R_CStackLimit = (uintptr_t)-1;
  int failed = 0;
  SEXP name = PROTECT(Rf_mkString(file));
  SEXP call = PROTECT(Rf_lang2(Rf_install("source"), name));
  SEXP got = PROTECT(R_tryEval(call, R_GlobalEnv, &failed));
  if (failed) exit(2);
  /* source() gives a list of value and visible */
  target = VECTOR_ELT(got, 0);
  R_PreserveObject(target);
  UNPROTECT(3);
  return 0;
}

/* An error in R's sense is an outcome like others: the target itself decides what is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  SEXP bytes = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)size));
  if (size > 0) memcpy(RAW(bytes), data, size);
  SEXP call = PROTECT(Rf_lang2(target, bytes));
  int failed = 0;
  SEXP wrong = R_tryEvalSilent(call, R_GlobalEnv, &failed);
  const int is_wrong = failed || Rf_asLogical(wrong) == 1;
  UNPROTECT(2);
  if (is_wrong) abort();
  return 0;
}
