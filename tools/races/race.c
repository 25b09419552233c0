/* A data race, which the sanitizer must find: otherwise its silence says nothing. */
#include <Rinternals.h>

static long counter;

SEXP race(void)
{
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 100000; i++) counter++;
  return Rf_ScalarReal((double)counter);
}
