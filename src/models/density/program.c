/* Reads and runs programs, see models/density/program.h. */
#include "models/density/program.h"

#include <gsl/gsl_sf_erf.h>
#include <gsl/gsl_sf_psi.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS_OF_STEP = 5 };

/* ---- operations on single numbers ---- */

static double tetragamma(double x)
{
  gsl_sf_result result;
  if (!(x > 0) || gsl_sf_psi_n_e(2, x, &result)) return NAN;
  return result.val;
}

static double normal_probability(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }

static double log_normal_probability(double x)
{
  gsl_sf_result result;
  if (x > 0) return log1p(-0.5 * erfc(x * M_SQRT1_2));
  if (x > -1) return log(normal_probability(x));
  /* from 1e6 the series of log erfc has one term */
  if (x < -1e6) return -0.5 * x * x - log(-x) - HALF_LOG_2PI;
  if (gsl_sf_log_erfc_e(-x * M_SQRT1_2, &result)) return NAN;
  return result.val - M_LN2;
}

#define VECTOR_BODY "models/density/program_body.h"
#include "base/variants.h"

/* ---- steps ---- */

static le_status refuse_step(const char *name, char *message)
{
  snprintf(message, LE_MESSAGE_SIZE, "`%s` must hold steps of a program.", name);
  return LE_BAD_ARGUMENT;
}

static int read_step(const double *number, size_t first, size_t registers, program_step *step)
{
  if (!le_all_codes(number, 1, OPERATIONS) || !le_all_codes(number + 1, 4, registers)) return 0;
  step->operation = (operation)number[0];
  step->out = (size_t)number[1];
  for (size_t k = 0; k < 3; k++) step->in[k] = (size_t)number[2 + k];
  return step->out >= first;
}

le_status le_program_read(const le_args *args, const char *name, size_t first, size_t registers,
                          program *out, char *message)
{
  const le_arg *arg = le_args_find(args, name);
  *out = (program){0, NULL};
  if (!arg || arg->word || arg->n % NUMBERS_OF_STEP) return refuse_step(name, message);
  const size_t n = arg->n / NUMBERS_OF_STEP;
  out->step = malloc((n + 1) * sizeof *out->step);
  if (!out->step) return LE_NO_MEMORY;
  for (; out->n < n; out->n++)
    if (!read_step(arg->values + out->n * NUMBERS_OF_STEP, first, registers, &out->step[out->n]))
      return refuse_step(name, message);
  return LE_OK;
}

void le_program_free(program *p)
{
  free(p->step);
  *p = (program){0, NULL};
}

#define RUN(variant) run_##variant

void le_program_run(le_simd simd, const program *p, size_t n, double *const *reg)
{
  static void (*const table[])(const program *p, size_t n, double *const *reg) = TABLES(RUN);
  table[simd](p, n, reg);
}
