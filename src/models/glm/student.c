/* Numbers with outliers: y = eta + a t, where t has Student's distribution with b degrees of
 * freedom; a is unknown, and b is unknown or known. */
#include "models/glm/family.h"

#include "models/glm/special.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_psi.h>

#define FAMILY_FURTHER 2
#define FAMILY_RESPONSE plain
#define FAMILY_BODY "models/glm/student_body.h"
#include "models/glm/family_kernels.h"

/* Degrees of freedom beyond which differences of digamma functions lose digits. */
static const double MANY = 1000;

/* Where the parameters have left the range of doubles the density is zero. */
static void point(const double *further, int curves, glm_point *point)
{
  const double a = further[0], nu = further[1];
  point->setting[0] = 1 / a;
  point->setting[1] = nu;
  if (!(nu > 1e-100 && nu < 1e100)) {
    point->row[SUM_VALUE] = -INFINITY;
    return;
  }
  const int far = nu > MANY;
  const double first = far ? glm_digamma_step(0.5 * nu)
                           : 0.5 * nu * (gsl_sf_psi(0.5 * nu + 0.5) - gsl_sf_psi(0.5 * nu));
  point->row[SUM_VALUE] = glm_log_gamma_ratio(0.5 * nu, 0.5) - 0.5 * log(nu * M_PI) - log(a);
  point->row[SUM_A] = -1;
  point->row[SUM_B] = first - 0.5;
  if (!curves) return;
  const double second = far ? glm_trigamma_step(0.5 * nu)
                            : 0.25 * nu * nu *
                                (gsl_sf_psi_1(0.5 * nu + 0.5) - gsl_sf_psi_1(0.5 * nu));
  point->row[SUM_BB] = first + second;
}

static double draw(const gsl_rng *rng, double eta, const double *further, double *extra)
{
  (void)extra;
  const double y = eta + further[0] * gsl_ran_tdist(rng, further[1]);
  return fmin(fmax(y, -1e300), 1e300);
}

static glm_guess guess(double y, double extra)
{
  (void)extra;
  return (glm_guess){y, 1};
}

/* Outliers are part of the variance, so the scale is smaller. */
static void guess_further(double variance, double *further)
{
  further[0] = 0.7 * sqrt(variance);
  further[1] = 5;
}

const glm_family le_glm_student = {.name = "student",
                                   .further = 2,
                                   .several = 1,
                                   .kernels = kernels,
                                   .point = point,
                                   .draw = draw,
                                   .guess = guess,
                                   .guess_further = guess_further};

extern const glm_kernels le_glm_student_fixed_kernels[];

const glm_family le_glm_student_fixed = {.name = "student_fixed",
                                         .further = 1,
                                         .known = "df",
                                         .several = 1,
                                         .kernels = le_glm_student_fixed_kernels,
                                         .point = point,
                                         .draw = draw,
                                         .guess = guess,
                                         .guess_further = guess_further};
