/* Models whose log density of a row is an expression that the user has written
 * (R/spec-model-density.R).
 *
 * The expression is a function of columns of the data and of predictors. A predictor is either
 * x'w + offset or, if it is the same for all rows, a parameter. R differentiates the expression by
 * the predictors and writes programs (models/density/program.h) for its value, first and second
 * derivatives; the chain rule is here.
 *
 * A row is the covariates (and offset) of each predictor, then the columns of the expression.
 * Predictors may share covariates. theta is the coefficients of all predictors in turn, then
 * further parameters; the last `positive` of these are logarithms. */
#include "models/density/instance.h"

#include "base/arrays.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

/* ---- model ---- */

static void destroy(void *self)
{
  density *model = self;
  if (!model) return;
  le_program_free(&model->data);
  for (int k = 0; k < GOALS; k++) {
    le_program_free(&model->goal[k].point);
    le_program_free(&model->goal[k].row);
  }
  free(model->constant);
  free(model->priors.of);
  free(model);
}

extern const le_model_ops le_density_model;

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  density *model = calloc(1, sizeof *model);
  if (!model) return LE_NO_MEMORY;
  model->ops = &le_density_model;
  const le_status status = density_read(args, model, message);
  if (status == LE_OK) *self = model;
  else destroy(model);
  return status;
}

static size_t width(const void *self) { return ((const density *)self)->width; }

/* ---- likelihood ---- */

typedef struct workspace {
  size_t n;
  double *x;       /* tiles of all columns of the rows, then a column of ones */
  double *hoisted; /* tiles of results that depend on the data alone */
  /* In each tile COLUMNS_TOGETHER columns for each predictor: its values, then the derivatives by
   * it; then a column for each pair of predictors. */
  double *column;
  double *point;     /* for each particle: predictors that are parameters, and results */
  double *temporary; /* of one tile */
  double *weight;
  le_sums sums; /* of products with the covariates */
} workspace;

static size_t stored_columns(const density *model) { return model->width + 1; }

static size_t result_columns(const density *model)
{
  const size_t p = model->predictors;
  return p * COLUMNS_TOGETHER + p * (p + 1) / 2;
}

static size_t point_columns(const density *model) { return model->predictors + model->points; }

static size_t most_sums(const density *model)
{
  const size_t most = model->most > COLUMNS_TOGETHER ? model->most : COLUMNS_TOGETHER;
  return model->most * most;
}

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const density *model = self;
  (void)particles;
  const size_t each = stored_columns(model) + model->hoisted + result_columns(model);
  return LE_ALIGN_MORE +
         TILE * (tiles_of(rows) * each + COLUMNS_TOGETHER * point_columns(model) +
                 model->temporary + model->most) +
         COLUMNS_TOGETHER * (model->most + 1) + most_sums(model);
}

static double *stored(const density *model, const workspace *w, size_t t, size_t column)
{
  return w->x + (t * stored_columns(model) + column) * TILE;
}

static double *result(const density *model, const workspace *w, size_t t, size_t predictor,
                      size_t q)
{
  return w->column + (t * result_columns(model) + predictor * COLUMNS_TOGETHER + q) * TILE;
}

static void set_registers(double **reg, size_t n, double *tiles)
{
  for (size_t k = 0; k < n; k++) reg[k] = tiles + k * TILE;
}

/* Registers that are the same for all rows and all particles. */
static void begin_registers(const density *model, const workspace *w, double **reg)
{
  set_registers(reg, model->constants, le_aligned(model->constant));
  set_registers(reg + model->first_free, model->temporary, w->temporary);
}

static void set_data(const density *model, const workspace *w, size_t t, double **reg)
{
  set_registers(reg + model->first_data, model->columns,
                stored(model, w, t, model->width - model->columns));
  set_registers(reg + model->first_hoisted, model->hoisted,
                w->hoisted + t * model->hoisted * TILE);
}

static double *point_tile(const density *model, const workspace *w, size_t q, size_t column)
{
  return w->point + (q * point_columns(model) + column) * TILE;
}

static void set_point(const density *model, const workspace *w, size_t t, size_t q, double **reg)
{
  for (size_t k = 0; k < model->predictors; k++)
    reg[model->first_predictor + k] = model->predictor[k].single ? point_tile(model, w, q, k)
                                                                 : result(model, w, t, k, q);
  set_registers(reg + model->first_point, model->points,
                point_tile(model, w, q, model->predictors));
}

static workspace prepare(const density *model, const le_rows *rows, double *scratch)
{
  const size_t tiles = tiles_of(rows->n);
  workspace w = {.n = rows->n, .x = le_aligned(scratch)};
  w.hoisted = w.x + tiles * stored_columns(model) * TILE;
  w.column = w.hoisted + tiles * model->hoisted * TILE;
  w.point = w.column + tiles * result_columns(model) * TILE;
  w.temporary = w.point + COLUMNS_TOGETHER * point_columns(model) * TILE;
  double *weighted = w.temporary + model->temporary * TILE;
  w.weight = weighted + model->most * TILE;
  w.sums = (le_sums){model->products, rows->n, model->priors.d, weighted,
                     w.weight + COLUMNS_TOGETHER * (model->most + 1)};
  double *reg[DENSITY_REGISTERS] = {NULL};
  begin_registers(model, &w, reg);
  for (size_t t = 0; t < tiles; t++) {
    const size_t n = rows_in_tile(rows->n, t);
    le_arrays(model->simd)->columns(n, rows->width, rows->width,
                                    rows->values + t * TILE * rows->width, stored(model, &w, t, 0),
                                    TILE);
    double *ones = stored(model, &w, t, model->width);
    for (size_t r = 0; r < TILE; r++) ones[r] = r < n;
    set_data(model, &w, t, reg);
    le_program_run(model->simd, &model->data, n, reg);
  }
  return w;
}

static void predict(const density *model, size_t particles, const double *theta, workspace *w)
{
  for (size_t k = 0; k < model->predictors; k++) {
    const density_predictor *p = &model->predictor[k];
    if (p->single) continue;
    for (size_t q = 0; q < particles; q++) {
      double *weight = w->weight + q * p->terms;
      memcpy(weight, theta + q * model->priors.d + p->first, p->covariates * sizeof(double));
      if (p->offset) weight[p->covariates] = 1;
    }
    for (size_t t = 0; t < tiles_of(w->n); t++)
      model->products->combine(rows_in_tile(w->n, t), particles, p->terms, w->weight,
                              stored(model, w, t, p->column), result(model, w, t, k, 0));
  }
}

/* What depends on the parameters of particle q alone. */
static void run_point(const density *model, const density_goal *goal, size_t q,
                      const double *theta, const workspace *w, double **reg)
{
  for (size_t k = 0; k < model->predictors; k++)
    if (model->predictor[k].single)
      for (size_t r = 0; r < TILE; r++)
        point_tile(model, w, q, k)[r] = theta[model->predictor[k].first];
  set_point(model, w, 0, q, reg);
  le_program_run(model->simd, &goal->point, TILE, reg);
}

/* Copies n rows of a tile, zeros after them. */
static void copy_tile(size_t n, const double *from, double *to)
{
  memcpy(to, from, n * sizeof *to);
  memset(to + n, 0, (TILE - n) * sizeof *to);
}

/* Adds n rows of a tile to LANES partial sums. */
static void sum_tile(size_t n, const double *from, double *lanes)
{
  size_t r = 0;
  for (; r + LANES <= n; r += LANES)
    for (size_t lane = 0; lane < LANES; lane++) lanes[lane] += from[r + lane];
  for (size_t lane = 0; r + lane < n; lane++) lanes[lane] += from[r + lane];
}

/* What one tile of rows adds, for one particle. Derivatives replace the predictors, which one of
 * them may be: all are copied before any is stored. */
static void keep_results(const density *model, const density_goal *goal, const workspace *w,
                         size_t t, size_t q, double *const *reg, double *lanes)
{
  const size_t n = rows_in_tile(w->n, t), *slope = goal->out + goal->value,
               *pair = slope + goal->slopes;
  double held[DENSITY_PREDICTORS][TILE];
  if (goal->value) sum_tile(n, reg[goal->out[0]], lanes + q * LANES);
  for (size_t k = 0; k < goal->pairs; k++)
    copy_tile(n, reg[pair[k]], result(model, w, t, model->predictors, k));
  for (size_t k = 0; k < goal->slopes; k++) copy_tile(n, reg[slope[k]], held[k]);
  for (size_t k = 0; k < goal->slopes; k++)
    memcpy(result(model, w, t, k, q), held[k], sizeof held[k]);
}

/* The log density of each row of one tile. */
static void keep_each(const density *model, size_t n, const double *from, double *value)
{
  for (size_t r = 0; r < n; r++)
    value[r] = from[r] < INFINITY || model->strict ? from[r] : -INFINITY;
}

/* Runs a program for all rows. Values are added to `lanes` or, if `each` is not NULL, stored for
 * each row. */
static void visit(const density *model, const density_goal *goal, size_t particles,
                  const double *theta, workspace *w, double *lanes, double *each)
{
  double *reg[DENSITY_REGISTERS] = {NULL};
  begin_registers(model, w, reg);
  predict(model, particles, theta, w);
  const size_t d = model->priors.d;
  for (size_t q = 0; q < particles; q++) run_point(model, goal, q, theta + q * d, w, reg);
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const size_t n = rows_in_tile(w->n, t);
    set_data(model, w, t, reg);
    for (size_t q = 0; q < particles; q++) {
      set_point(model, w, t, q, reg);
      le_program_run(model->simd, &goal->row, n, reg);
      if (each) keep_each(model, n, reg[goal->out[0]], each + t * TILE);
      else keep_results(model, goal, w, t, q, reg, lanes);
    }
  }
}

/* The coefficients of predictor k. */
static le_block block_of(const density *model, const workspace *w, size_t k)
{
  const density_predictor *p = &model->predictor[k];
  return (le_block){
    p->first, p->covariates, {stored(model, w, 0, p->column), stored_columns(model) * TILE}};
}

/* A stored column of all tiles. */
static le_columns results(const density *model, const workspace *w, size_t predictor, size_t q)
{
  return (le_columns){result(model, w, 0, predictor, q), result_columns(model) * TILE};
}

/* Adds the gradients of particles whose slopes are in w->column. */
static void add_gradients(const density *model, size_t particles, const workspace *w, double *grad)
{
  for (size_t k = 0; k < model->predictors; k++)
    le_add_slopes(&w->sums, particles, results(model, w, k, 0), block_of(model, w, k), NULL, grad);
}

/* `value` and `grad` may be NULL. */
static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const density *model = self;
  const density_goal *goal = &model->goal[!grad ? GOAL_VALUE : value ? GOAL_BOTH : GOAL_SLOPE];
  workspace w = prepare(model, rows, scratch);
  for (size_t i = 0, together; i < m; i += together) {
    double lanes[COLUMNS_TOGETHER * LANES] = {0};
    together = m - i < COLUMNS_TOGETHER ? m - i : COLUMNS_TOGETHER;
    visit(model, goal, together, theta + i * model->priors.d, &w, lanes, NULL);
    for (size_t q = 0; value && q < together; q++)
      add_value(sum_lanes(lanes + q * LANES), &value[i + q]);
    if (grad) add_gradients(model, together, &w, grad + i * model->priors.d);
  }
  return LE_OK;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  return log_lik_grad(self, m, theta, rows, value, NULL, scratch);
}

static le_status log_lik_grad_alone(const void *self, size_t m, const double *theta,
                                    const le_rows *rows, double *grad, double *scratch)
{
  return log_lik_grad(self, m, theta, rows, NULL, grad, scratch);
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const density *model = self;
  workspace w = prepare(model, rows, scratch);
  const size_t d = model->priors.d;
  for (size_t i = 0; i < m; i++)
    visit(model, &model->goal[GOAL_VALUE], 1, theta + i * d, &w, NULL, value + i * rows->n);
  return LE_OK;
}

/* ---- second derivatives ---- */

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const density *model = self;
  workspace w = prepare(model, rows, scratch);
  visit(model, &model->goal[GOAL_CURVE], 1, theta, &w, NULL, NULL);
  add_gradients(model, 1, &w, grad);
  for (size_t a = 0, pair = 0; a < model->predictors; a++)
    for (size_t b = 0; b <= a; b++, pair++)
      le_add_block(&w.sums, results(model, &w, model->predictors, pair), block_of(model, &w, a),
                   block_of(model, &w, b), hess);
  return LE_OK;
}

const le_model_ops le_density_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "density",
  .traits = 0,
  .create = create,
  .destroy = destroy,
  .dim = le_priors_dim,
  .width = width,
  .scratch = scratch_size,
  .log_prior = le_priors_log,
  .log_prior_grad = le_priors_grad,
  .log_prior_hess = le_priors_hess,
  .draw_prior = le_priors_draw,
  .log_lik = log_lik,
  .log_lik_grad = log_lik_grad,
  .log_lik_grad_alone = log_lik_grad_alone,
  .log_lik_hess = log_lik_hess,
  .log_lik_each = log_lik_each,
  .user_dim = le_priors_dim,
  .to_user = le_priors_to_user,
  .tails = le_priors_tails,
  .start = le_density_start,
  .start_scratch = le_density_start_scratch,
};
