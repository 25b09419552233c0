/* Registers the routines that R calls, and initialises the library. */
#include "bridge/bridge.h"

#include "base/simd.h"
#include "base/threads.h"

#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

#define ROUTINE(name, arguments) {#name, (DL_FUNC)(void (*)(void))(name), arguments},
static const R_CallMethodDef routines[] = {ROUTINES(ROUTINE){NULL, NULL, 0}};

void attribute_visible R_init_logevidence(DllInfo *dll)
{
  R_registerRoutines(dll, NULL, routines, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
  le_threads_init();
  le_simd_init();
}
