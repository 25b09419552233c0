/* Regressions in which a further parameter has a linear predictor of its own: the family's
 * functions of the further parameters are computed for each row. A parameter without a formula has
 * a single covariate, one. Particles are processed one after another. */
#include "models/glm/instance.h"

/* ---- room ---- */

typedef struct room {
  double *parts;   /* of kernels (family.h), for each tile */
  double *further; /* a tile for the linear predictor of each further parameter */
  double *point;   /* a tile for each number of a point */
} room;

enum { PARTS_STEP = GLM_SUMS * TILE, NUMBERS = GLM_SETTINGS + GLM_SUMS };

size_t le_glm_row_scratch(const glm *model, size_t rows)
{
  return model->by_row ? tiles_of(rows) * PARTS_STEP + (GLM_FURTHER + NUMBERS) * TILE : 0;
}

static room room_of(const workspace *w)
{
  room r = {.parts = w->by_row};
  r.further = r.parts + tiles_of(w->n) * PARTS_STEP;
  r.point = r.further + GLM_FURTHER * TILE;
  return r;
}

/* ---- linear predictors ---- */

static le_block block_of_part(const glm *model, const workspace *w, size_t a)
{
  const glm_part *part = &model->part[a];
  if (!part->formula) return (le_block){part->first, part->columns, {model->ones, 0}};
  return (le_block){part->first, part->columns, {w->x + part->at * TILE, model->columns * TILE}};
}

static void predict(const glm *model, const workspace *w, size_t n, size_t count, int offset,
                    const double *theta, const double *x, double *eta)
{
  memcpy(w->weight, theta, count * sizeof(double));
  if (offset) w->weight[count] = 1;
  model->products->combine(n, 1, count + (size_t)offset, w->weight, x, eta);
}

/* Functions of the further parameters for each row. Rows that only fill the tile get those of the
 * last one. */
static void find_points(const glm *model, size_t n, int wanted, const room *r)
{
  const size_t known = model->family->further;
  double numbers[NUMBERS] = {0};
  for (size_t i = 0; i < TILE; i++) {
    if (i < n) {
      glm_point point = {{0}, {0}};
      double further[GLM_FURTHER] = {0};
      for (size_t a = 0; a < known; a++) further[a] = exp(r->further[a * TILE + i]);
      if (known < GLM_FURTHER) further[known] = model->known;
      model->family->point(further, wanted & WANT_CURVE, &point);
      memcpy(numbers, &point, sizeof numbers);
    }
    for (size_t k = 0; k < NUMBERS; k++) r->point[k * TILE + i] = numbers[k];
  }
}

/* ---- rows ---- */

/* Passes all rows to the kernel; returns the sum of the values, if it adds them. */
static double run_rows(const glm *model, int wanted, const double *theta, const workspace *w)
{
  const room r = room_of(w);
  double sums[GLM_SUMS * LANES] = {0};
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const glm_tile tile = glm_tile_of(model, w, t);
    predict(model, w, tile.n, model->covariates, model->offset, theta,
            w->x + t * model->columns * TILE, glm_columns(w, t));
    for (size_t a = 0; a < model->family->further; a++) {
      const glm_part *part = &model->part[a];
      predict(model, w, tile.n, part->columns, part->offset, theta + part->first,
              le_in_tile(block_of_part(model, w, a).columns, t), r.further + a * TILE);
    }
    find_points(model, tile.n, wanted, &r);
    glm_kernels_of(model)->rows(wanted | WANT_BY_ROW, &tile, r.point,
                                &(glm_out){glm_columns(w, t), r.parts + t * PARTS_STEP, sums});
  }
  return sum_lanes(sums + SUM_VALUE * LANES);
}

/* ---- derivatives ---- */

/* What kernels have stored: one of the columns, and the part of one of the sums. */
static le_columns stored_column(const workspace *w, size_t k)
{
  return (le_columns){w->column + k * TILE, COLUMN_STEP};
}

static le_columns stored_part(const workspace *w, size_t sum)
{
  return (le_columns){room_of(w).parts + sum * TILE, PARTS_STEP};
}

static void add_gradient(const glm *model, const workspace *w, double *grad)
{
  le_add_slopes(&w->sums, 1, stored_column(w, 0), glm_mean(model, w), NULL, grad);
  for (size_t a = 0; a < model->family->further; a++)
    le_add_slopes(&w->sums, 1, stored_part(w, SUM_A + a), block_of_part(model, w, a), NULL, grad);
}

void le_glm_row_evaluate(const glm *model, const double *theta, const workspace *w, double *value,
                         double *grad)
{
  const double sum = run_rows(model, WANT_VALUE | (grad ? WANT_SLOPE : 0), theta, w);
  if (value) add_value(sum, value);
  if (grad) add_gradient(model, w, grad);
}

void le_glm_row_hess(const glm *model, const double *theta, const workspace *w, double *grad,
                     double *hess)
{
  const le_block mean = glm_mean(model, w);
  le_block part[GLM_FURTHER];
  run_rows(model, WANT_SLOPE | WANT_CURVE, theta, w);
  add_gradient(model, w, grad);
  le_add_block(&w->sums, stored_column(w, 1), mean, mean, hess);
  for (size_t a = 0, pair = SUM_AA; a < model->family->further; a++) {
    part[a] = block_of_part(model, w, a);
    le_add_block(&w->sums, stored_column(w, 2 + a), part[a], mean, hess);
    for (size_t b = 0; b <= a; b++, pair++)
      le_add_block(&w->sums, stored_part(w, pair), part[a], part[b], hess);
  }
}

void le_glm_row_each(const glm *model, const double *theta, const workspace *w)
{
  run_rows(model, WANT_VALUE | WANT_EACH, theta, w);
}
