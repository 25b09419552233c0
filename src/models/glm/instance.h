/* The instance of a regression, and what it works on. */
#pragma once

#include "models/glm/family.h"
#include "models/priors.h"
#include "models/products.h"

/* A further parameter: one number, or with `formula` a linear predictor of its logarithm. */
typedef struct glm_part {
  int formula, offset;
  size_t first;   /* its first number in theta */
  size_t columns; /* its numbers in theta */
  size_t terms;   /* columns and offset */
  size_t at;      /* the first of its terms in a row, if it has a formula */
} glm_part;

typedef struct glm {
  le_priors priors; /* of all d parameters */
  const glm_family *family;
  const le_products *products;
  le_simd simd;
  size_t covariates;
  size_t width, columns;      /* of a row; of a tile, which has the covariate that rows lack */
  size_t terms;               /* covariates and the offset */
  size_t most_terms;          /* of any linear predictor */
  int implicit;               /* whether the only covariate is one, and is not in the rows */
  int offset, extra;          /* whether rows have these columns */
  int by_row;                 /* whether a further parameter has a formula */
  glm_part part[GLM_FURTHER]; /* further parameters */
  double known;               /* the value of a further parameter that is not unknown */
  glm_point point;            /* if no further parameter is unknown */
  size_t flat;                /* of the prior of Zellner and Siow: whether there is an intercept */
  double scale;               /* and the scale of the others */
  double ones[TILE];          /* in place of `extra` if rows do not have it */
} glm;

/* The model of any family, and linear regression with known noise. */
le_status le_glm_create(const le_args *args, void **self, char *message);
le_status le_glm_create_linear(const le_args *args, void **self, char *message);
le_status le_glm_create_mean(const le_args *args, void **self, char *message);
void le_glm_destroy(void *self);

typedef struct workspace {
  size_t n;
  double *x;        /* tiles of all columns, the response last; zeros fill the last tile */
  double *constant; /* the part of each row's log density that depends on the response only */
  double *column;   /* tiles of COLUMNS_TOGETHER columns: eta, then what the kernels make of it */
  double *weight;   /* coefficients of COLUMNS_TOGETHER particles, each with 1 for the offset */
  le_sums sums;     /* of products with the covariates */
  double *by_row;   /* further room if a further parameter has a formula (by_row.c) */
} workspace;

/* From one tile of workspace.column to the next. */
enum { COLUMN_STEP = COLUMNS_TOGETHER * TILE };

/* The values of the further parameters where they are the same for all rows. */
static inline void glm_further(const glm *model, const double *theta, double *further)
{
  for (size_t a = 0; a < model->family->further; a++) further[a] = exp(theta[model->part[a].first]);
  if (model->family->further < GLM_FURTHER) further[model->family->further] = model->known;
}

/* eta of a row, or of a further parameter. */
static inline double glm_predictor(const double *row, size_t columns, int offset,
                                   const double *theta)
{
  double eta = offset ? row[columns] : 0;
  for (size_t j = 0; j < columns; j++) eta += theta[j] * row[j];
  return eta;
}

/* The same of one row. */
static inline void glm_further_of_row(const glm *model, const double *row, const double *theta,
                                      double *further)
{
  glm_further(model, theta, further);
  for (size_t a = 0; a < model->family->further; a++) {
    const glm_part *part = &model->part[a];
    if (part->formula)
      further[a] = exp(glm_predictor(row + part->at, part->columns, part->offset,
                                     theta + part->first));
  }
}

/* The covariates of a row. */
static inline const double *glm_covariates(const glm *model, const double *row)
{
  return model->implicit ? model->ones : row;
}

static inline const double *glm_response(const glm *model, const workspace *w, size_t t)
{
  return w->x + (t * model->columns + model->columns - 1) * TILE;
}

/* The second column of the response, one tile before the first. */
static inline const double *glm_second(const glm *model, const double *y)
{
  return model->extra ? y - TILE : model->ones;
}

static inline glm_tile glm_tile_of(const glm *model, const workspace *w, size_t t)
{
  const double *y = glm_response(model, w, t);
  return (glm_tile){rows_in_tile(w->n, t), y, glm_second(model, y)};
}

static inline const glm_kernels *glm_kernels_of(const glm *model)
{
  return &model->family->kernels[model->simd];
}

static inline double *glm_columns(const workspace *w, size_t t)
{
  return w->column + t * COLUMN_STEP;
}

/* The coefficients of the mean. */
static inline le_block glm_mean(const glm *model, const workspace *w)
{
  return (le_block){0, model->covariates, {w->x, model->columns * TILE}};
}

/* ---- regressions in which a further parameter has a formula (by_row.c) ---- */

/* Room for workspace.by_row. */
size_t le_glm_row_scratch(const glm *model, size_t rows);
/* Adds values (may be NULL) and gradients (may be NULL) of one particle. */
void le_glm_row_evaluate(const glm *model, const double *theta, const workspace *w, double *value,
                         double *grad);
void le_glm_row_hess(const glm *model, const double *theta, const workspace *w, double *grad,
                     double *hess);
/* Leaves the log density of each row, without the constants of responses, in w->column. */
void le_glm_row_each(const glm *model, const double *theta, const workspace *w);

/* ---- starting points for finding posterior modes (start.c) ---- */

size_t le_glm_start_scratch(const void *self, size_t rows);
void le_glm_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch);
