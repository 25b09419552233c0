/* Regression families. A family gives the log density of one response as a function of its linear
 * predictor eta and of at most two further parameters, a and b, which are positive: theta has their
 * logarithms, and all derivatives are by these. The rest is shared (models/glm/glm.c).
 *
 * A family is two files: its kernels (for base/variants.h) are made from one function of a vector
 * of rows, V(row), by models/glm/family_body.h; the rest is this table. */
#ifndef LE_MODELS_GLM_FAMILY_H
#define LE_MODELS_GLM_FAMILY_H

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

/* `column` holds eta of the rows and is replaced by the slopes (derivatives of the log density by
 * eta); in `curves` also, TILE numbers further on, by the second derivatives, and by the mixed
 * derivatives by a and by b. In `each` it is replaced by the log densities. Log densities are
 * without the constants of `responses` and glm_point. */
typedef void (*glm_kernel)(const glm_tile *tile, const double *setting, double *column,
                           double *lanes);

typedef struct glm_kernels {
  glm_kernel values, slopes, values_and_slopes, curves, each;
  /* Replaces responses by what the other kernels need; `constant` (may be NULL) gets the part of
   * each log density that depends on the response only. */
  void (*responses)(size_t n, const double *extra, double *y, double *constant);
} glm_kernels;

#define GLM_KERNELS(variant)                                                                       \
  {                                                                                                \
    values_##variant, slopes_##variant, values_and_slopes_##variant, curves_##variant,             \
      each_##variant, responses_##variant                                                          \
  }

/* The same where a and b have linear predictors of their own. For each row of a tile: its point, as
 * GLM_SETTINGS and GLM_SUMS columns. */
typedef struct glm_tile_points {
  const double *setting, *row;
} glm_tile_points;

/* What kernels write: `column` as above; `first` has the derivatives by a and b, `second` those by
 * aa, ab and bb. Rows that only fill the tile get zeros. */
typedef struct glm_tile_terms {
  double *column, *first, *second;
} glm_tile_terms;

typedef void (*glm_row_kernel)(const glm_tile *tile, const glm_tile_points *points,
                               const glm_tile_terms *out, double *lanes);

typedef struct glm_row_kernels {
  glm_row_kernel values, slopes, curves, each; /* `slopes` adds the values, too */
} glm_row_kernels;

#define GLM_ROW_KERNELS(variant)                                                                   \
  {                                                                                                \
    row_values_##variant, row_slopes_##variant, row_curves_##variant, row_each_##variant           \
  }

/* A guess from the response alone: eta and the weight of the row in least squares. */
typedef struct glm_guess {
  double eta, weight;
} glm_guess;

typedef struct glm_family {
  const char *name;
  size_t further; /* number of further parameters */
  int several;    /* whether the likelihood may have several modes in the coefficients */
  int extra;      /* whether rows may have a second column for the response; without it, it is 1 */
  const glm_kernels *kernels;
  const glm_row_kernels *row_kernels; /* REQUIRED with further parameters */
  /* REQUIRED with further parameters. From their values (not logarithms); with `curves` including
   * the second derivatives. */
  void (*point)(const double *further, int curves, glm_point *point);
  double (*draw)(const gsl_rng *rng, double eta, const double *further, double *extra);
  glm_guess (*guess)(double y, double extra);
  /* REQUIRED with further parameters. Values for the variance of the residuals of guesses. */
  void (*guess_further)(double variance, double *further);
} glm_family;

#endif
