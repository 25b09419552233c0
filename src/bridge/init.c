/* Registers the routines that R calls, and initialises the library. */
#include "bridge/bridge.h"

#include "base/simd.h"
#include "base/threads.h"

#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

/* R calls a guarded routine by another one, with the same arguments. */
#define NAME(k) a##k
#define ELEMENT(k) a[k]
#define GUARD(name, arguments)                                                                     \
  static SEXP name##_body(void *data)                                                              \
  {                                                                                                \
    SEXP *a = data;                                                                                \
    return name(EACH_##arguments(ELEMENT));                                                        \
  }                                                                                                \
  static SEXP name##_guarded(EACH_##arguments(PARAMETER))                                          \
  {                                                                                                \
    return guarded(name##_body, (SEXP[]){EACH_##arguments(NAME)});                                 \
  }
GUARDED_ROUTINES(GUARD)

#define ROUTINE(name, arguments) {#name, (DL_FUNC)(void (*)(void))(name), arguments},
#define GUARDED(name, arguments) {#name, (DL_FUNC)(void (*)(void))(name##_guarded), arguments},
static const R_CallMethodDef routines[] = {
  GUARDED_ROUTINES(GUARDED) OTHER_ROUTINES(ROUTINE){NULL, NULL, 0}};

void attribute_visible R_init_logevidence(DllInfo *dll)
{
  R_registerRoutines(dll, NULL, routines, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
  le_threads_init();
  le_simd_init();
}
