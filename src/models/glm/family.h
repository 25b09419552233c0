/* Regression families. A family gives the log density of one response as a function of its linear
 * predictor eta and of at most two further parameters, a and b, which are positive: theta has their
 * logarithms, and all derivatives are by these. The rest is shared (models/glm/glm.c).
 *
 * A family is two files: its kernels (for base/variants.h) are made from one function of a vector
 * of rows, V(row), by models/glm/family_body.h; the rest is this table. */
#pragma once

#include "models/shared.h"

enum { GLM_SETTINGS = 10, GLM_FURTHER = 2 };

/* The sums over rows that kernels make, besides those of slopes times covariates. Each is LANES
 * partial sums. */
enum { SUM_VALUE, SUM_A, SUM_B, SUM_AA, SUM_AB, SUM_BB, GLM_SUMS };

/* A particle, as kernels need it. */
typedef struct glm_point {
  double setting[GLM_SETTINGS]; /* functions of a and b */
  double row[GLM_SUMS];         /* what each row adds to the sums, the same for all rows */
} glm_point;

/* What kernels work on: up to TILE rows. */
typedef struct glm_tile {
  size_t n;
  const double *y, *extra; /* responses as `responses` left them, and the second column */
} glm_tile;

/* What a kernel computes. With WANT_EACH it leaves the log densities in `column`; with WANT_BY_ROW
 * a and b have linear predictors of their own. */
enum { WANT_VALUE = 1, WANT_SLOPE = 2, WANT_CURVE = 4, WANT_EACH = 8, WANT_BY_ROW = 16 };

/* What kernels write. `column` holds eta of the rows and is replaced by the slopes (derivatives of
 * the log density by eta); with WANT_CURVE also, TILE numbers further on, by the second
 * derivatives, and by the mixed derivatives by a and by b. `sums` are added to; with WANT_BY_ROW
 * only the value is, and what each row would add to the others is in `parts`, TILE numbers for each
 * sum. Log densities are without the constants of `responses`, and without those of glm_point
 * unless WANT_BY_ROW. */
typedef struct glm_out {
  double *column, *parts, *sums;
} glm_out;

typedef struct glm_kernels {
  /* `point` is a glm_point, or with WANT_BY_ROW one for each row: TILE numbers for each of its
   * members. Stored derivatives of rows that only fill the tile are then zero. */
  void (*rows)(int wanted, const glm_tile *tile, const double *point, const glm_out *out);
  /* Replaces responses by what `rows` needs; `constant` (may be NULL) gets the part of each log
   * density that depends on the response only. */
  void (*responses)(size_t n, const double *extra, double *y, double *constant);
} glm_kernels;

/* A guess from the response alone: eta and the weight of the row in least squares. */
typedef struct glm_guess {
  double eta, weight;
} glm_guess;

typedef struct glm_family {
  const char *name;
  size_t further; /* number of further parameters */
  const char *known; /* OPTIONAL. The setting with the value of a further parameter that is known */
  int squares;       /* whether the density is normal with setting[0] = 1 / a */
  int several;    /* whether the likelihood may have several modes in the coefficients */
  int extra;      /* whether rows may have a second column for the response; without it, it is 1 */
  const glm_kernels *kernels;
  /* REQUIRED with further parameters, known or not. From their values (not logarithms); with
   * `curves` including the second derivatives. */
  void (*point)(const double *further, int curves, glm_point *point);
  double (*draw)(const gsl_rng *rng, double eta, const double *further, double *extra);
  glm_guess (*guess)(double y, double extra);
  /* REQUIRED with further parameters. Values for the variance of the residuals of guesses. */
  void (*guess_further)(double variance, double *further);
} glm_family;
