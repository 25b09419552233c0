/* Small parts of the core that R calls directly: random numbers, the vector instructions in use. */
#include "bridge/bridge.h"

#include "base/rng.h"
#include "base/simd.h"

/* One at a time, or all at once if `together`. */
SEXP ffi_uniforms(SEXP seed, SEXP replicate, SEXP stream, SEXP n, SEXP together)
{
  const size_t which = one_count(stream, "stream"), count = one_count(n, "n");
  const uint32_t repeat = (uint32_t)one_count(replicate, "replicate");
  const gsl_rng *rng = new_streams(which + 1, seed, repeat).rng[which];
  SEXP value = PROTECT(zero_vector(count));
  if (Rf_asLogical(together) == 1)
    le_uniforms(rng, count, REAL(value));
  else
    for (size_t i = 0; i < count; i++) REAL(value)[i] = gsl_rng_uniform(rng);
  UNPROTECT(1);
  return value;
}

/* Which vector instructions this processor has, which were requested, and which are used. */
SEXP ffi_simd(void)
{
  static const char *const names[] = {"best", "wish", "used"};
  SEXP part[3] = {PROTECT(Rf_mkString(le_simd_name(le_simd_best()))),
                  PROTECT(Rf_mkString(le_simd_wish())),
                  PROTECT(Rf_mkString(le_simd_name(le_simd_level())))};
  SEXP list = named_list(3, names, part);
  UNPROTECT(3);
  return list;
}
