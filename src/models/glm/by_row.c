/* Regressions in which a further parameter has a linear predictor of its own: the family's
 * functions of the further parameters are computed for each row. A parameter without a formula has
 * a single covariate, one. Particles are processed one after another. */
#include "models/glm/by_row.h"

/* ---- room ---- */

typedef struct room {
  double *first, *second; /* tiles of COLUMNS_TOGETHER columns, as `column` of the workspace */
  double *further;        /* a tile for the linear predictor of each further parameter */
  double *setting, *row;  /* a tile for each number of a point */
} room;

enum { ROOM_TILES = GLM_FURTHER + GLM_SETTINGS + GLM_SUMS };

size_t le_glm_row_scratch(const glm *model, size_t rows)
{
  return model->by_row ? (2 * COLUMNS_TOGETHER * tiles_of(rows) + ROOM_TILES) * TILE : 0;
}

static room room_of(const workspace *w)
{
  room r = {.first = w->by_row};
  r.second = r.first + COLUMNS_TOGETHER * tiles_of(w->n) * TILE;
  r.further = r.second + COLUMNS_TOGETHER * tiles_of(w->n) * TILE;
  r.setting = r.further + GLM_FURTHER * TILE;
  r.row = r.setting + GLM_SETTINGS * TILE;
  return r;
}

/* ---- linear predictors ---- */

/* The columns of a linear predictor, and the step between their tiles. */
typedef struct columns {
  const double *x;
  size_t step;
} columns;

static columns columns_of_part(const glm *model, const workspace *w, size_t a)
{
  const glm_part *part = &model->part[a];
  if (!part->formula) return (columns){model->ones, 0};
  return (columns){w->x + part->at * TILE, model->width * TILE};
}

static const double *in_tile(columns c, size_t t) { return c.x + t * c.step; }

static void predict(const glm *model, const workspace *w, size_t n, size_t count, int offset,
                    const double *theta, const double *x, double *eta)
{
  memcpy(w->weight, theta, count * sizeof(double));
  if (offset) w->weight[count] = 1;
  model->shared->predictors(n, 1, count + (size_t)offset, w->weight, x, eta);
}

/* Functions of the further parameters for each row. Rows that only fill the tile get those of the
 * last one. */
static void find_points(const glm *model, size_t n, int curves, const room *r)
{
  const size_t known = model->family->further;
  for (size_t i = 0; i < TILE; i++) {
    const size_t from = i < n ? i : n - 1;
    glm_point point = {{0}, {0}};
    double further[GLM_FURTHER] = {0};
    if (i < n) {
      for (size_t a = 0; a < known; a++) further[a] = exp(r->further[a * TILE + i]);
      if (known < GLM_FURTHER) further[known] = model->known;
      model->family->point(further, curves, &point);
    }
    for (size_t k = 0; k < GLM_SETTINGS; k++)
      r->setting[k * TILE + i] = i < n ? point.setting[k] : r->setting[k * TILE + from];
    for (size_t k = 0; k < GLM_SUMS; k++)
      r->row[k * TILE + i] = i < n ? point.row[k] : r->row[k * TILE + from];
  }
}

/* ---- rows ---- */

/* Passes all rows to one kernel; returns the sum of the values, if the kernel adds them. */
static double run_rows(const glm *model, glm_row_kernel kernel, const double *theta, int curves,
                       const workspace *w)
{
  const room r = room_of(w);
  double lanes[GLM_SUMS * LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const glm_tile tile = glm_tile_of(model, w, t);
    const size_t at = t * COLUMNS_TOGETHER * TILE;
    predict(model, w, tile.n, model->covariates, model->offset, theta,
            w->x + t * model->width * TILE, w->column + at);
    for (size_t a = 0; a < model->family->further; a++) {
      const glm_part *part = &model->part[a];
      predict(model, w, tile.n, part->columns, part->offset, theta + part->first,
              in_tile(columns_of_part(model, w, a), t), r.further + a * TILE);
    }
    find_points(model, tile.n, curves, &r);
    kernel(&tile, &(glm_tile_points){r.setting, r.row},
           &(glm_tile_terms){w->column + at, r.first + at, r.second + at}, lanes);
  }
  return sum_lanes(lanes + SUM_VALUE * LANES);
}

static const glm_row_kernels *kernels_of(const glm *model)
{
  return &model->family->row_kernels[model->simd];
}

/* ---- derivatives ---- */

/* Adds one column of all tiles times `count` covariates. */
static void add_slopes(const glm *model, const workspace *w, const double *column, columns c,
                       size_t count, double *grad)
{
  memset(w->sums, 0, count * sizeof(double));
  model->shared->slopes(w->n, 1, column, count, c.x, c.step, w->sums);
  for (size_t j = 0; j < count; j++) add_finite(w->sums[j], &grad[j]);
}

static columns columns_of_mean(const glm *model, const workspace *w)
{
  return (columns){w->x, model->width * TILE};
}

static void add_gradient(const glm *model, const workspace *w, double *grad)
{
  const room r = room_of(w);
  add_slopes(model, w, w->column, columns_of_mean(model, w), model->covariates, grad);
  for (size_t a = 0; a < model->family->further; a++)
    add_slopes(model, w, r.first + a * TILE, columns_of_part(model, w, a), model->part[a].columns,
               grad + model->part[a].first);
}

/* Parameters with a linear predictor: their place in theta and their columns. */
typedef struct block {
  size_t first, count;
  columns c;
} block;

/* Adds the second derivatives of two blocks, whose weights of rows are one column of all tiles. */
static void add_block(const glm *model, const workspace *w, const double *column, block one,
                      block two, double *hess)
{
  memset(w->sums, 0, one.count * two.count * sizeof(double));
  for (size_t t = 0; t < tiles_of(w->n); t++)
    model->shared->products(rows_in_tile(w->n, t), one.count,
                            column + t * COLUMNS_TOGETHER * TILE, in_tile(one.c, t), two.count,
                            in_tile(two.c, t), w->weighted, w->sums);
  for (size_t j = 0; j < one.count; j++)
    for (size_t k = 0; k < two.count; k++)
      if (one.first != two.first || k <= j)
        glm_add_entry(hess, model->d, one.first + j, two.first + k, w->sums[j * two.count + k]);
}

void le_glm_row_evaluate(const glm *model, const double *theta, const workspace *w, double *value,
                         double *grad)
{
  const glm_row_kernels *k = kernels_of(model);
  const double sum = run_rows(model, grad ? k->slopes : k->values, theta, 0, w);
  if (value) add_value(sum, value);
  if (grad) add_gradient(model, w, grad);
}

void le_glm_row_hess(const glm *model, const double *theta, const workspace *w, double *grad,
                     double *hess)
{
  const room r = room_of(w);
  const block mean = {0, model->covariates, columns_of_mean(model, w)};
  block part[GLM_FURTHER];
  run_rows(model, kernels_of(model)->curves, theta, 1, w);
  add_gradient(model, w, grad);
  add_block(model, w, w->column + TILE, mean, mean, hess);
  for (size_t a = 0, pair = 0; a < model->family->further; a++) {
    part[a] = (block){model->part[a].first, model->part[a].columns, columns_of_part(model, w, a)};
    add_block(model, w, w->column + (2 + a) * TILE, part[a], mean, hess);
    for (size_t b = 0; b <= a; b++, pair++) /* aa, ab, bb */
      add_block(model, w, r.second + pair * TILE, part[a], part[b], hess);
  }
}

void le_glm_row_each(const glm *model, const double *theta, const workspace *w)
{
  run_rows(model, kernels_of(model)->each, theta, 0, w);
}
