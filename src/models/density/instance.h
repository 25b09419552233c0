/* A model whose log density of a row is a program; see models/density/density.c. */
#pragma once

#include "models/density/program.h"
#include "models/priors.h"
#include "models/products.h"

enum { DENSITY_PREDICTORS = 8, DENSITY_REGISTERS = 2048 };
enum { DENSITY_OUTPUTS = DENSITY_PREDICTORS + DENSITY_PREDICTORS * (DENSITY_PREDICTORS + 1) / 2 };

typedef struct density_predictor {
  size_t first;      /* of its coefficients in theta */
  size_t covariates; /* number of coefficients */
  size_t terms;      /* with the offset */
  size_t column;     /* its first covariate in a row */
  int offset;
  int single; /* one parameter, the same for all rows */
} density_predictor;

/* Programs for one purpose: `point` runs once for each particle, `row` for each tile of rows. */
typedef struct density_goal {
  program point, row;
  /* results: the log density (or not: 0), its derivatives by predictors, and by pairs of them */
  size_t value, slopes, pairs;
  size_t out[DENSITY_OUTPUTS]; /* their registers */
} density_goal;

enum { GOAL_VALUE, GOAL_SLOPE, GOAL_BOTH, GOAL_CURVE, GOALS };

typedef struct density {
  le_priors priors; /* with the dimension */
  const le_model_ops *ops;
  le_simd simd;
  const le_products *products;
  int strict; /* log densities that are NaN are returned as such, for checks */
  size_t width, columns, predictors, real, most;
  density_predictor predictor[DENSITY_PREDICTORS];
  /* numbers of registers of each kind, and the first of each */
  size_t constants, hoisted, points, temporary, registers;
  size_t first_data, first_hoisted, first_predictor, first_point, first_free;
  double *constant;
  program data;
  density_goal goal[GOALS];
} density;

/* Reads all settings into a density of zeros; after a failure it must be destroyed, too. */
le_status density_read(const le_args *args, density *model, char *message);

/* Starting points of searches. */
size_t le_density_start_scratch(const void *self, size_t rows);
void le_density_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                      double *scratch);
