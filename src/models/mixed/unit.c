/* Units of rows (models/mixed/unit.h): their rows at given effects, and the mode of the effects. */
#include "models/mixed/unit.h"

#include "base/linalg.h"

#include <math.h>

/* ---- room ---- */

enum { OUT_COLUMNS = 4, NEWTON_MOST = 60, HALVINGS_MOST = 30 };

/* The climb ends when the squared length of a step, in standard deviations, is so small. */
static const double SETTLED = 1e-9;

/* Returns the numbers that are needed; without room nothing else. */
static size_t place(unit *u, const mixed *model, double *room)
{
  portion from = {room, 0};
  const size_t tiles = tiles_of(model->most) * TILE;
  u->model = model;
  u->y = take(&from, tiles);
  u->extra = take(&from, tiles);
  u->fixed = take(&from, tiles * MIXED_PREDICTORS);
  u->eta = take(&from, tiles * MIXED_PREDICTORS);
  u->load = take(&from, model->most * model->q);
  u->out = take(&from, tiles * OUT_COLUMNS);
  u->parts = take(&from, model->by_row ? tiles * GLM_SUMS : 0);
  u->point = take(&from, model->by_row ? tiles * POINT_NUMBERS : 0);
  u->root = take(&from, model->factors * EFFECTS_SQUARED);
  u->v = take(&from, model->dim);
  u->step = take(&from, model->dim);
  u->trial = take(&from, model->dim);
  u->grad = take(&from, model->dim);
  u->room = take(&from, le_arrow_size(model->factor[0].q, model->levels[0], model->rest));
  return from.used;
}

size_t le_unit_scratch(const mixed *model)
{
  unit u;
  return place(&u, model, NULL);
}

void le_unit_place(unit *u, const mixed *model, double *scratch) { place(u, model, scratch); }

/* ---- rows ---- */

static const double *row_of(const unit *u, size_t i) { return u->rows + i * u->model->row; }

/* Numbers of a row that are indices are never larger than the memory. */
static size_t within(double x, size_t least, size_t most)
{
  return x >= (double)least ? x < (double)most ? (size_t)x : most : least;
}

static size_t level_of(const unit *u, size_t i, size_t f)
{
  return within(row_of(u, i)[u->model->row - u->model->factors + f], 0, u->levels[f] - 1);
}

void le_unit_open(unit *u, const double *values)
{
  const mixed *model = u->model;
  const glm *base = model->base;
  u->n = within(values[0], 0, model->most);
  u->tiles = tiles_of(u->n);
  u->head = values;
  u->rows = values + model->head;
  u->dim = 0;
  for (size_t f = 0; f < model->factors; f++) {
    u->levels[f] = within(values[1 + f], 1, model->levels[f]);
    u->first[f] = u->dim;
    u->dim += u->levels[f] * model->factor[f].q;
  }
  const size_t own = u->levels[0] * model->factor[0].q;
  le_arrow_place(&u->h, model->factor[0].q, u->levels[0], u->dim - own, u->room);
  memset(u->y, 0, u->tiles * TILE * sizeof *u->y);
  for (size_t i = 0; i < u->tiles * TILE; i++) u->extra[i] = 1;
  for (size_t i = 0; i < u->n; i++) {
    const double *end = row_of(u, i) + base->width - 1;
    u->y[i] = end[0];
    if (base->extra) u->extra[i] = end[-1];
  }
  u->constant = 0;
  double constant[TILE];
  for (size_t t = 0; t < u->tiles; t++) {
    const size_t n = rows_in_tile(u->n, t);
    glm_kernels_of(base)->responses(n, u->extra + t * TILE, u->y + t * TILE, constant);
    for (size_t r = 0; r < n; r++) u->constant += constant[r];
  }
}

static void fixed_predictors(unit *u)
{
  const mixed *model = u->model;
  const glm *base = model->base;
  const size_t step = u->tiles * TILE;
  for (size_t i = 0; i < u->n; i++) {
    const double *row = row_of(u, i);
    u->fixed[i] = glm_predictor(row, base->covariates, base->offset, u->theta);
    if (!model->by_row) continue;
    for (size_t a = 0; a < base->family->further; a++) {
      const glm_part *part = &base->part[a];
      u->fixed[(a + 1) * step + i] =
        part->formula ? glm_predictor(row + part->at, part->columns, part->offset,
                                      u->theta + part->first)
                      : u->theta[part->first];
    }
  }
  for (size_t p = 0; p < (model->by_row ? 1 + base->family->further : 1); p++)
    for (size_t i = u->n; i < step; i++) u->fixed[p * step + i] = 0;
}

void le_unit_at(unit *u, const double *theta)
{
  const mixed *model = u->model;
  u->theta = theta;
  for (size_t f = 0; f < model->factors; f++)
    le_mixed_root(&model->factor[f], theta, u->root + f * EFFECTS_SQUARED);
  fixed_predictors(u);
  for (size_t i = 0; i < u->n; i++) {
    const double *row = row_of(u, i);
    double *load = u->load + i * model->q;
    for (size_t f = 0; f < model->factors; load += model->factor[f].q, f++) {
      const size_t q = model->factor[f].q;
      const double *root = u->root + f * EFFECTS_SQUARED;
      for (size_t k = 0; k < q; k++) {
        load[k] = 0;
        for (size_t l = k; l < q; l++) load[k] += row[model->column[f][l]] * root[l * q + k];
      }
    }
  }
  u->same = (glm_point){{0}, {0}};
  if (model->by_row || !model->base->family->point) return;
  double further[GLM_FURTHER] = {0};
  glm_further(model->base, theta, further);
  model->base->family->point(further, 1, &u->same);
}

/* Functions of the further parameters of each row. Rows that only fill a tile get those of the last
 * one. */
static void find_points(unit *u)
{
  const glm *base = u->model->base;
  const size_t step = u->tiles * TILE, known = base->family->further;
  for (size_t t = 0; t < u->tiles; t++) {
    double numbers[POINT_NUMBERS];
    for (size_t r = 0; r < TILE; r++) {
      if (r < rows_in_tile(u->n, t)) {
        glm_point point = {{0}, {0}};
        double further[GLM_FURTHER] = {0};
        for (size_t a = 0; a < known; a++)
          further[a] = exp(u->eta[(a + 1) * step + t * TILE + r]);
        if (known < GLM_FURTHER) further[known] = base->known;
        base->family->point(further, 1, &point);
        memcpy(numbers, point.setting, sizeof point.setting);
        memcpy(numbers + GLM_SETTINGS, point.row, sizeof point.row);
      }
      for (size_t k = 0; k < POINT_NUMBERS; k++)
        u->point[(t * POINT_NUMBERS + k) * TILE + r] = numbers[k];
    }
  }
}

static void predict(unit *u, const double *v)
{
  const mixed *model = u->model;
  const size_t step = u->tiles * TILE, parts = model->by_row ? 1 + model->base->family->further : 1;
  memcpy(u->eta, u->fixed, parts * step * sizeof *u->eta);
  for (size_t i = 0; i < u->n; i++) {
    const double *load = u->load + i * model->q;
    for (size_t f = 0; f < model->factors; f++) {
      const size_t q = model->factor[f].q;
      const double *own = v + u->first[f] + level_of(u, i, f) * q;
      for (size_t k = 0; k < q; k++) u->eta[model->part[f][k] * step + i] += *load++ * own[k];
    }
  }
}

double le_unit_rows(unit *u, const double *v, int wanted)
{
  const mixed *model = u->model;
  const glm *base = model->base;
  double sums[GLM_SUMS * LANES] = {0};
  predict(u, v);
  if (model->by_row) find_points(u);
  for (size_t t = 0; t < u->tiles; t++) {
    const glm_tile tile = {rows_in_tile(u->n, t), u->y + t * TILE, u->extra + t * TILE};
    double *out = u->out + t * OUT_COLUMNS * TILE;
    memcpy(out, u->eta + t * TILE, TILE * sizeof *out);
    glm_kernels_of(base)->rows(
      wanted | (model->by_row ? WANT_BY_ROW : 0), &tile,
      model->by_row ? u->point + t * POINT_NUMBERS * TILE : u->same.setting,
      &(glm_out){out, model->by_row ? u->parts + t * GLM_SUMS * TILE : NULL, sums});
  }
  for (size_t s = 0; s < GLM_SUMS; s++)
    u->sums[s] = sum_lanes(sums + s * LANES) + (model->by_row ? 0 : (double)u->n * u->same.row[s]);
  return u->sums[SUM_VALUE] + u->constant;
}

double le_unit_slope(const unit *u, size_t i, size_t p)
{
  const size_t t = i / TILE, r = i % TILE;
  return p == 0 ? u->out[t * OUT_COLUMNS * TILE + r]
                : u->parts[(t * GLM_SUMS + SUM_A + p - 1) * TILE + r];
}

/* The second derivative by predictors p and o, p <= o. */
static double curve_of(const unit *u, size_t i, size_t p, size_t o)
{
  static const int sum[MIXED_PREDICTORS][MIXED_PREDICTORS] = {
    {0}, {0, SUM_AA, SUM_AB}, {0, SUM_AB, SUM_BB}};
  const size_t t = i / TILE, r = i % TILE;
  if (p == 0) return u->out[(t * OUT_COLUMNS + 1 + o) * TILE + r];
  return u->parts[(t * GLM_SUMS + (size_t)sum[p][o]) * TILE + r];
}

/* ---- the mode ---- */

/* Gradient and H at v, after le_unit_rows(). With `clipped` rows of positive curvature add
 * nothing. */
static void assemble(unit *u, const double *v, int clipped)
{
  const mixed *model = u->model;
  le_arrow_begin(&u->h, 1);
  for (size_t j = 0; j < u->dim; j++) u->grad[j] = -v[j];
  for (size_t i = 0; i < u->n; i++) {
    size_t at[MIXED_FACTORS_MOST * MIXED_EFFECTS_MOST], part[sizeof at / sizeof *at];
    const double *load = u->load + i * model->q;
    for (size_t f = 0, k = 0; f < model->factors; f++) {
      const size_t first = u->first[f] + level_of(u, i, f) * model->factor[f].q;
      for (size_t l = 0; l < model->factor[f].q; l++, k++) {
        at[k] = first + l;
        part[k] = model->part[f][l];
      }
    }
    for (size_t k = 0; k < model->q; k++) {
      if (load[k] == 0) continue;
      u->grad[at[k]] += load[k] * le_unit_slope(u, i, part[k]);
      for (size_t l = 0; l <= k; l++) {
        const int swap = part[l] > part[k];
        double curve = -curve_of(u, i, swap ? part[k] : part[l], swap ? part[l] : part[k]);
        if (clipped && (curve < 0 || part[k] != part[l])) curve = 0;
        if (load[l] != 0) le_arrow_add(&u->h, at[k], at[l], load[k] * load[l] * curve);
      }
    }
  }
}

static double objective(unit *u, const double *v)
{
  const double value = le_unit_rows(u, v, WANT_VALUE) - 0.5 * le_dot(v, v, u->dim);
  return isnan(value) ? -INFINITY : value;
}

/* The factor of H at v; returns the squared length of the step of Newton, which is in u->step. */
static double find_step(unit *u)
{
  le_unit_rows(u, u->v, WANT_SLOPE | WANT_CURVE);
  assemble(u, u->v, 0);
  if (!le_arrow_factorise(&u->h)) {
    assemble(u, u->v, 1);
    if (!le_arrow_factorise(&u->h)) return NAN;
  }
  memcpy(u->step, u->grad, u->dim * sizeof *u->step);
  le_arrow_gather(&u->h, u->step);
  const double length = le_dot(u->step, u->step, u->dim);
  le_arrow_spread(&u->h, u->step);
  return length;
}

void le_unit_climb(unit *u)
{
  const size_t d = u->dim;
  memset(u->v, 0, d * sizeof *u->v);
  double value = objective(u, u->v);
  for (size_t k = 0; k < NEWTON_MOST; k++) {
    const double length = find_step(u);
    if (!(length > SETTLED)) return;
    double share = 1, next = -INFINITY;
    size_t halvings = 0;
    for (; halvings < HALVINGS_MOST; halvings++, share *= 0.5) {
      for (size_t j = 0; j < d; j++) u->trial[j] = u->v[j] + share * u->step[j];
      next = objective(u, u->trial);
      if (next >= value + 1e-4 * share * length) break;
      if (length < 1e-4 && next >= value - 1e-10 * fabs(value)) break;
    }
    if (halvings == HALVINGS_MOST) return;
    memcpy(u->v, u->trial, d * sizeof *u->v);
    value = next;
    if (u->model->linear) return; /* H is the same everywhere */
  }
}
