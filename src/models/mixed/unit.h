/* Regressions of any family with group-level effects.
 *
 * A row of the engine is a unit: rows of the data whose effects are independent of those of other
 * units given the parameters. It is a group if there is one factor, a group of the outermost one if
 * factors are nested, and all rows if factors are crossed. A unit is
 *
 *     n, the number of levels of each factor in the unit, a number that names the unit if points
 *     are random,
 *     and n rows: a row of the regression without groups (models/glm/glm.c), further columns of
 *     effects, and for each factor the level, from zero.
 *
 * The factors' effects are u = L v, with L by models/mixed/covariance.h and v standard normal. In v
 * the log density of a unit has the curvature H = 1 + sum of a a' c over its rows, where a = L'z
 * and c is minus the second derivative of a row's log density, so it is well-behaved for standard
 * deviations near zero. */
#pragma once

#include "models/glm/instance.h"
#include "models/mixed/arrow.h"
#include "models/mixed/covariance.h"

#include <stdint.h>

enum {
  MIXED_FACTORS_MOST = 6,
  EFFECTS_SQUARED = MIXED_EFFECTS_MOST * MIXED_EFFECTS_MOST,
  MIXED_PREDICTORS = 1 + GLM_FURTHER,
  POINT_NUMBERS = GLM_SETTINGS + GLM_SUMS
};

/* The wide rule is used from this change of a linear predictor by one standard deviation at the
 * mode. */
static const double MIXED_EDGE = 2.5;

typedef struct mixed {
  le_priors priors;
  glm *base; /* the regression without groups */
  size_t factors;
  mixed_covariance factor[MIXED_FACTORS_MOST];
  /* of each effect of a factor: its column in a row, and its predictor (0 is the mean) */
  size_t column[MIXED_FACTORS_MOST][MIXED_EFFECTS_MOST];
  size_t part[MIXED_FACTORS_MOST][MIXED_EFFECTS_MOST];
  size_t levels[MIXED_FACTORS_MOST]; /* the most of a unit */
  size_t q;                          /* effects of a row */
  size_t most;                       /* rows of a unit */
  size_t dim, rest;                  /* the most effects of a unit; and of factors but the first */
  size_t width, row, head;           /* of a unit, of a row, and numbers before the rows */
  size_t scales;                     /* the first number of theta after the coefficients */
  double *size;                      /* of the column of each parameter, for differences */
  int by_row;                        /* whether further parameters differ between rows */
  int linear;                        /* whether the density is normal in the effects */
  size_t nodes;                      /* points of the rule of integration */
  double *node, *log_weight;         /* of a fixed rule; NULL if points are random */
  size_t wide;                       /* points of the rule for groups of one effect whose outermost
                                        nodes have more than `outer_share` of the mass; or 0 */
  double outer_share, *wide_node, *wide_log_weight;
  uint64_t seed;                     /* of random points */
} mixed;

/* Memory that is handed out in parts, each of whole cache lines; without room only its size is
 * counted. */
typedef struct portion {
  double *room;
  size_t used;
} portion;

static inline double *take(portion *from, size_t n)
{
  double *taken = from->room ? from->room + from->used : NULL;
  from->used += (n + 7) / 8 * 8;
  return taken;
}

/* A unit and a particle, with room for what is computed of them. Arrays of tiles have TILE numbers
 * for each tile of rows. */
typedef struct unit {
  const mixed *model;
  size_t n, tiles;
  const double *head, *rows;
  size_t levels[MIXED_FACTORS_MOST], first[MIXED_FACTORS_MOST]; /* first effect of each factor */
  size_t dim; /* effects in all */
  const double *theta;
  double *root;            /* L of each factor */
  double *y, *extra;       /* tiles of responses as the family needs them */
  double constant;         /* of the log densities */
  double *fixed;           /* tiles of each predictor without effects */
  double *load;            /* a of each row, q numbers */
  double *eta;             /* tiles of each predictor */
  double *out;             /* 4 columns of tiles: see glm_out */
  double *parts, *point;   /* tiles of each sum, and of each number of a point */
  glm_point same;          /* if further parameters are the same for all rows */
  double sums[GLM_SUMS];
  double *v, *step, *trial, *grad; /* the mode of v */
  double *room;
  arrow h; /* the root of H there */
} unit;

/* Reads settings; and the members of a table of functions that all these models share. */
le_status le_mixed_create(const le_args *args, void **self, char *message);
void le_mixed_destroy(void *self);
size_t le_mixed_width(const void *self);
void le_mixed_to_user(const void *self, const double *theta, double *user);
void le_mixed_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                    double *scratch);
size_t le_mixed_start_scratch(const void *self, size_t rows);

/* Room for a unit. */
size_t le_unit_scratch(const mixed *model);
void le_unit_place(unit *u, const mixed *model, double *scratch);
/* Reads a unit, and sets a particle. */
void le_unit_open(unit *u, const double *values);
void le_unit_at(unit *u, const double *theta);
/* Evaluates the rows at effects v: the sum of their log densities with WANT_VALUE; derivatives are
 * left in u->out, u->parts and u->sums. */
double le_unit_rows(unit *u, const double *v, int wanted);
/* The derivative of row i by predictor p, after WANT_SLOPE. */
double le_unit_slope(const unit *u, size_t i, size_t p);
/* Finds the mode of the log density of rows and v, and the root R of H = R R' there. */
void le_unit_climb(unit *u);
