/* R as a part of a program that is built with ThreadSanitizer, whose library must be in the program
 * itself: runs the script that is its first argument. */
#define CSTACK_DEFNS /* of R_CStackLimit */
#define R_NO_REMAP
#include <stdint.h>
#include <Rembedded.h>
#include <Rinterface.h>
#include <Rinternals.h>

int main(int argc, char **argv)
{
  if (argc < 2) return 2;
  char *own[] = {"R", "--no-echo", "--no-restore", "--no-save"};
  R_SignalHandlers = 0;
  Rf_initEmbeddedR(4, own);
  R_CStackLimit = (uintptr_t)-1;
  int failed = 0;
  SEXP call = PROTECT(Rf_lang2(Rf_install("source"), PROTECT(Rf_mkString(argv[1]))));
  R_tryEval(call, R_GlobalEnv, &failed);
  UNPROTECT(2);
  return failed;
}
