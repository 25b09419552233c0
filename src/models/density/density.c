/* Models whose log density of a row is an expression that the user has written (R/model-density.R).
 *
 * The expression is a function of columns of the data and of predictors. A predictor is either
 * x'w + offset or, if it is the same for all rows, a parameter. R differentiates the expression by
 * the predictors and writes programs (models/density/program.h) for its value, first and second
 * derivatives; the chain rule is here.
 *
 * A row is the covariates (and offset) of each predictor, then the columns of the expression.
 * Predictors may share covariates. theta is the coefficients of all predictors in turn, then
 * further parameters; the last `positive` of these are logarithms. */
#include "models/density/density.h"

#include "base/arrays.h"
#include "base/linalg.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- settings ---- */

static const double *read_numbers(const le_args *args, const char *name, size_t n, char *message)
{
  const le_arg *arg = le_args_find(args, name);
  if (arg && arg->values && arg->n == n) return arg->values;
  snprintf(message, LE_MESSAGE_SIZE, "`%s` must be %zu numbers.", name, n);
  return NULL;
}

static size_t count_of(const le_args *args, const char *name)
{
  const le_arg *arg = le_args_find(args, name);
  return arg && arg->values ? arg->n : 0;
}

static le_status refuse(const char *name, char *message)
{
  snprintf(message, LE_MESSAGE_SIZE, "`%s` must describe a density.", name);
  return LE_BAD_ARGUMENT;
}

static int read_predictor(const density *model, const double *number, density_predictor *p)
{
  for (int k = 0; k < 4; k++)
    if (!(number[k] >= 0 && number[k] <= MOST_COVARIATES && number[k] == floor(number[k])))
      return 0;
  p->covariates = (size_t)number[0];
  p->column = (size_t)number[1];
  p->offset = number[2] != 0;
  p->single = number[3] != 0;
  p->terms = p->covariates + (size_t)p->offset;
  return p->covariates > 0 && (p->single ? p->covariates == 1 && !p->offset
                                         : p->column + p->terms <= model->width);
}

static le_status read_predictors(const le_args *args, density *model, char *message)
{
  enum { NUMBERS = 4 };
  const size_t count = count_of(args, "predictors") / NUMBERS;
  const double *number = read_numbers(args, "predictors", count * NUMBERS, message);
  if (!number || count == 0 || count > DENSITY_PREDICTORS) return refuse("predictors", message);
  model->predictors = count;
  for (size_t k = 0; k < count; k++) {
    density_predictor *p = &model->predictor[k];
    if (!read_predictor(model, number + NUMBERS * k, p)) return refuse("predictors", message);
    p->first = model->d;
    model->d += p->covariates;
    if (p->single) p->column = model->width; /* the column of ones */
    model->most = p->covariates > model->most ? p->covariates : model->most;
  }
  return LE_OK;
}

static le_status read_outputs(const le_args *args, const char *name, size_t n, density *model,
                              size_t *out, char *message)
{
  const double *number = read_numbers(args, name, n, message);
  if (!number) return LE_BAD_ARGUMENT;
  for (size_t k = 0; k < n; k++) {
    if (!(number[k] >= 0 && number[k] < (double)model->registers)) return refuse(name, message);
    out[k] = (size_t)number[k];
  }
  return LE_OK;
}

/* The programs for one purpose, and the registers of their results. */
static le_status read_goal(const le_args *args, const char *name, size_t outputs, density *model,
                           density_goal *goal, char *message)
{
  char setting[64];
  snprintf(setting, sizeof setting, "%s_point", name);
  LE_TRY(le_program_read(args, setting, model->first_point, model->registers, &goal->point,
                         message));
  snprintf(setting, sizeof setting, "%s_row", name);
  LE_TRY(le_program_read(args, setting, model->first_free, model->registers, &goal->row, message));
  snprintf(setting, sizeof setting, "%s_out", name);
  goal->outputs = outputs;
  return read_outputs(args, setting, outputs, model, goal->out, message);
}

/* Registers in their order: see models/density/program.h. */
static le_status read_registers(const le_args *args, density *model, char *message)
{
  size_t hoisted, points, temporary;
  model->constants = count_of(args, "constants");
  if (!le_read_count(args, "hoisted", 0, DENSITY_REGISTERS, &hoisted, message) ||
      !le_read_count(args, "points", 0, DENSITY_REGISTERS, &points, message) ||
      !le_read_count(args, "temporary", 0, DENSITY_REGISTERS, &temporary, message))
    return LE_BAD_ARGUMENT;
  model->hoisted = hoisted;
  model->points = points;
  model->temporary = temporary;
  model->first_data = model->constants;
  model->first_hoisted = model->first_data + model->columns;
  model->first_predictor = model->first_hoisted + hoisted;
  model->first_point = model->first_predictor + model->predictors;
  model->first_free = model->first_point + points;
  model->registers = model->first_free + temporary;
  if (model->registers > DENSITY_REGISTERS) {
    snprintf(message, LE_MESSAGE_SIZE, "The expression is too long: it needs %zu registers.",
             model->registers);
    return LE_BAD_ARGUMENT;
  }
  return LE_OK;
}

static le_status read_constants(const le_args *args, density *model)
{
  const le_arg *arg = le_args_find(args, "constants");
  model->constant = malloc((model->constants * TILE + LE_ALIGN_MORE + 1) * sizeof(double));
  if (!model->constant) return LE_NO_MEMORY;
  double *tile = le_aligned(model->constant);
  for (size_t k = 0; k < model->constants; k++)
    for (size_t r = 0; r < TILE; r++) tile[k * TILE + r] = arg->values[k];
  return LE_OK;
}

static le_status read_priors(const le_args *args, density *model, char *message)
{
  size_t positive;
  if (!le_read_count(args, "positive", 0, DENSITY_PREDICTORS, &positive, message) ||
      positive > model->d)
    return LE_BAD_ARGUMENT;
  model->real = model->d - positive;
  model->prior = malloc(model->d * sizeof *model->prior);
  double *numbers = malloc(model->d * sizeof *numbers);
  unsigned char *is_real = calloc(model->d, 1);
  if (is_real) memset(is_real, 1, model->real);
  const le_status status = !model->prior || !numbers || !is_real ? LE_NO_MEMORY
                           : le_priors_read(args, model->d, is_real, model->prior, numbers,
                                            message)
                             ? LE_OK
                             : LE_BAD_ARGUMENT;
  free(is_real);
  free(numbers);
  return status;
}

static le_status read_all(const le_args *args, density *model, char *message)
{
  if (!le_read_count(args, "width", 1, 2 * MOST_COVARIATES, &model->width, message) ||
      !le_read_count(args, "columns", 1, model->width, &model->columns, message))
    return LE_BAD_ARGUMENT;
  model->simd = le_simd_for(args);
  model->strict = le_args_number(args, "strict", 0) != 0;
  LE_TRY(read_predictors(args, model, message));
  LE_TRY(read_registers(args, model, message));
  LE_TRY(read_constants(args, model));
  LE_TRY(read_priors(args, model, message));
  const size_t p = model->predictors, pairs = p * (p + 1) / 2;
  LE_TRY(le_program_read(args, "data", model->first_hoisted, model->registers, &model->data,
                         message));
  LE_TRY(read_goal(args, "value", 1, model, &model->value, message));
  LE_TRY(read_goal(args, "slope", p, model, &model->slope, message));
  LE_TRY(read_goal(args, "both", 1 + p, model, &model->both, message));
  return read_goal(args, "curve", p + pairs, model, &model->curve, message);
}

static void free_goal(density_goal *goal)
{
  le_program_free(&goal->point);
  le_program_free(&goal->row);
}

static void destroy(void *self)
{
  density *model = self;
  if (!model) return;
  le_program_free(&model->data);
  free_goal(&model->value);
  free_goal(&model->slope);
  free_goal(&model->both);
  free_goal(&model->curve);
  free(model->constant);
  free(model->prior);
  free(model);
}

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  density *model = calloc(1, sizeof *model);
  if (!model) return LE_NO_MEMORY;
  const le_status status = read_all(args, model, message);
  if (status == LE_OK) *self = model;
  else destroy(model);
  return status;
}

static size_t dim(const void *self) { return ((const density *)self)->d; }
static size_t width(const void *self) { return ((const density *)self)->width; }

/* ---- prior ---- */

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const density *model = self;
  le_priors_log(model->prior, model->d, m, theta, value);
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const density *model = self;
  le_priors_grad(model->prior, model->d, m, theta, grad);
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  const density *model = self;
  le_priors_hess(model->prior, model->d, theta, hess);
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const density *model = self;
  le_priors_draw(model->prior, model->d, rng, theta);
}

static double tails(const void *self)
{
  const density *model = self;
  return le_priors_tails(model->prior, model->d);
}

static void to_user(const void *self, const double *theta, double *user)
{
  const density *model = self;
  for (size_t j = 0; j < model->d; j++)
    user[j] = j < model->real ? theta[j] : exp(theta[j]);
}

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
  double *weight, *weighted, *sums;
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

/* Registers that are the same for all rows and all particles. */
static void set_constants(const density *model, double **reg)
{
  double *tile = le_aligned(model->constant);
  for (size_t k = 0; k < model->constants; k++) reg[k] = tile + k * TILE;
}

static void set_data(const density *model, const workspace *w, size_t t, double **reg)
{
  const size_t from = model->width - model->columns;
  for (size_t k = 0; k < model->columns; k++)
    reg[model->first_data + k] = stored(model, w, t, from + k);
  for (size_t k = 0; k < model->hoisted; k++)
    reg[model->first_hoisted + k] = w->hoisted + (t * model->hoisted + k) * TILE;
}

static void set_temporary(const density *model, const workspace *w, double **reg)
{
  for (size_t k = 0; k < model->temporary; k++)
    reg[model->first_free + k] = w->temporary + k * TILE;
}

static double *point_tile(const density *model, const workspace *w, size_t q, size_t column)
{
  return w->point + (q * point_columns(model) + column) * TILE;
}

static void set_point(const density *model, const workspace *w, size_t q, double **reg)
{
  for (size_t k = 0; k < model->predictors; k++)
    if (model->predictor[k].single)
      reg[model->first_predictor + k] = point_tile(model, w, q, k);
  for (size_t k = 0; k < model->points; k++)
    reg[model->first_point + k] = point_tile(model, w, q, model->predictors + k);
}

static workspace prepare(const density *model, const le_rows *rows, double *scratch)
{
  const size_t tiles = tiles_of(rows->n);
  workspace w = {.n = rows->n, .x = le_aligned(scratch)};
  w.hoisted = w.x + tiles * stored_columns(model) * TILE;
  w.column = w.hoisted + tiles * model->hoisted * TILE;
  w.point = w.column + tiles * result_columns(model) * TILE;
  w.temporary = w.point + COLUMNS_TOGETHER * point_columns(model) * TILE;
  w.weighted = w.temporary + model->temporary * TILE;
  w.weight = w.weighted + model->most * TILE;
  w.sums = w.weight + COLUMNS_TOGETHER * (model->most + 1);
  double *reg[DENSITY_REGISTERS] = {NULL};
  set_constants(model, reg);
  set_temporary(model, &w, reg);
  for (size_t t = 0; t < tiles; t++) {
    const size_t n = rows_in_tile(rows->n, t);
    le_vector_columns(model->simd, n, rows->width, rows->width,
                      rows->values + t * TILE * rows->width, stored(model, &w, t, 0), TILE);
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
      memcpy(weight, theta + q * model->d + p->first, p->covariates * sizeof(double));
      if (p->offset) weight[p->covariates] = 1;
    }
    for (size_t t = 0; t < tiles_of(w->n); t++)
      le_tile_predict(model->simd, rows_in_tile(w->n, t), particles, p->terms, w->weight,
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
  set_point(model, w, q, reg);
  le_program_run(model->simd, &goal->point, TILE, reg);
}

/* What one tile of rows adds, for one particle. The first results may be its log density. */
typedef void (*tile_visitor)(const density *model, const density_goal *goal, const workspace *w,
                             size_t t, size_t q, double *const *reg, double *out);

static void visit(const density *model, const density_goal *goal, size_t particles,
                  const double *theta, workspace *w, tile_visitor see, double *out)
{
  double *reg[DENSITY_REGISTERS] = {NULL};
  set_constants(model, reg);
  set_temporary(model, w, reg);
  predict(model, particles, theta, w);
  for (size_t q = 0; q < particles; q++) run_point(model, goal, q, theta + q * model->d, w, reg);
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    set_data(model, w, t, reg);
    for (size_t q = 0; q < particles; q++) {
      set_point(model, w, q, reg);
      for (size_t k = 0; k < model->predictors; k++)
        if (!model->predictor[k].single)
          reg[model->first_predictor + k] = result(model, w, t, k, q);
      le_program_run(model->simd, &goal->row, rows_in_tile(w->n, t), reg);
      see(model, goal, w, t, q, reg, out);
    }
  }
}

/* Derivatives replace the predictors, which one of them may be: all are copied before any is
 * stored. */
static void keep_slopes(const density *model, const size_t *out, const workspace *w, size_t t,
                        size_t q, double *const *reg)
{
  const size_t n = rows_in_tile(w->n, t);
  double held[DENSITY_PREDICTORS][TILE];
  for (size_t k = 0; k < model->predictors; k++) le_tile_copy(n, reg[out[k]], held[k]);
  for (size_t k = 0; k < model->predictors; k++)
    memcpy(result(model, w, t, k, q), held[k], sizeof held[k]);
}

static void see_value(const density *model, const density_goal *goal, const workspace *w, size_t t,
                      size_t q, double *const *reg, double *lanes)
{
  (void)model;
  le_tile_sum(rows_in_tile(w->n, t), reg[goal->out[0]], lanes + q * LANES);
}

static void see_slopes(const density *model, const density_goal *goal, const workspace *w,
                       size_t t, size_t q, double *const *reg, double *lanes)
{
  (void)lanes;
  keep_slopes(model, goal->out, w, t, q, reg);
}

static void see_both(const density *model, const density_goal *goal, const workspace *w, size_t t,
                     size_t q, double *const *reg, double *lanes)
{
  see_value(model, goal, w, t, q, reg, lanes);
  keep_slopes(model, goal->out + 1, w, t, q, reg);
}

static void see_curves(const density *model, const density_goal *goal, const workspace *w,
                       size_t t, size_t q, double *const *reg, double *lanes)
{
  const size_t p = model->predictors, n = rows_in_tile(w->n, t);
  double *pairs = result(model, w, t, p, 0);
  (void)lanes;
  for (size_t k = 0; k < p * (p + 1) / 2; k++)
    le_tile_copy(n, reg[goal->out[p + k]], pairs + k * TILE);
  keep_slopes(model, goal->out, w, t, q, reg);
}

/* Adds the gradients of particles whose slopes are in w->column. */
static void add_gradients(const density *model, size_t particles, const workspace *w, double *grad)
{
  for (size_t k = 0; k < model->predictors; k++) {
    const density_predictor *p = &model->predictor[k];
    memset(w->sums, 0, particles * p->covariates * sizeof(double));
    le_tile_products(model->simd, w->n, particles, result(model, w, 0, k, 0),
                     result_columns(model) * TILE, p->covariates, stored(model, w, 0, p->column),
                     stored_columns(model) * TILE, w->sums, p->covariates);
    for (size_t q = 0; q < particles; q++)
      for (size_t j = 0; j < p->covariates; j++)
        add_finite(w->sums[q * p->covariates + j], &grad[q * model->d + p->first + j]);
  }
}

/* `value` and `grad` may be NULL. */
static le_status evaluate(const density *model, size_t m, const double *theta, const le_rows *rows,
                          double *value, double *grad, double *scratch)
{
  const density_goal *goal = !grad ? &model->value : value ? &model->both : &model->slope;
  const tile_visitor see = !grad ? see_value : value ? see_both : see_slopes;
  workspace w = prepare(model, rows, scratch);
  for (size_t i = 0, together; i < m; i += together) {
    double lanes[COLUMNS_TOGETHER * LANES] = {0};
    together = m - i < COLUMNS_TOGETHER ? m - i : COLUMNS_TOGETHER;
    visit(model, goal, together, theta + i * model->d, &w, see, lanes);
    for (size_t q = 0; value && q < together; q++)
      add_value(sum_lanes(lanes + q * LANES), &value[i + q]);
    if (grad) add_gradients(model, together, &w, grad + i * model->d);
  }
  return LE_OK;
}

static le_status log_lik(const void *self, size_t m, const double *theta, const le_rows *rows,
                         double *value, double *scratch)
{
  return evaluate(self, m, theta, rows, value, NULL, scratch);
}

static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  return evaluate(self, m, theta, rows, value, grad, scratch);
}

static le_status log_lik_grad_alone(const void *self, size_t m, const double *theta,
                                    const le_rows *rows, double *grad, double *scratch)
{
  return evaluate(self, m, theta, rows, NULL, grad, scratch);
}

/* ---- second derivatives ---- */

/* Adds the block of predictors a and b, a >= b. Its column has the second derivatives of the
 * rows. */
static void add_block(const density *model, const workspace *w, size_t a, size_t b, double *hess)
{
  const density_predictor *one = &model->predictor[a], *other = &model->predictor[b];
  const size_t p = one->covariates, others = other->covariates, d = model->d;
  memset(w->sums, 0, p * others * sizeof(double));
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const double *weight = result(model, w, t, model->predictors, a * (a + 1) / 2 + b);
    const double *x = stored(model, w, t, one->column);
    for (size_t j = 0; j < p; j++)
      for (size_t r = 0; r < TILE; r++)
        w->weighted[j * TILE + r] = weight[r] * x[j * TILE + r];
    le_tile_products(model->simd, rows_in_tile(w->n, t), p, w->weighted, 0, others,
                     stored(model, w, t, other->column), 0, w->sums, others);
  }
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k < others; k++) {
      const double sum = w->sums[a == b && k > j ? k * others + j : j * others + k];
      add_finite(sum, &hess[(one->first + j) * d + other->first + k]);
      if (a != b) add_finite(sum, &hess[(other->first + k) * d + one->first + j]);
    }
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const density *model = self;
  workspace w = prepare(model, rows, scratch);
  visit(model, &model->curve, 1, theta, &w, see_curves, NULL);
  add_gradients(model, 1, &w, grad);
  for (size_t a = 0; a < model->predictors; a++)
    for (size_t b = 0; b <= a; b++) add_block(model, &w, a, b, hess);
  return LE_OK;
}

/* ---- each row ---- */

static void see_each(const density *model, const density_goal *goal, const workspace *w, size_t t,
                     size_t q, double *const *reg, double *value)
{
  const double *each = reg[goal->out[0]];
  (void)q;
  for (size_t r = 0; r < rows_in_tile(w->n, t); r++) {
    const double x = each[r];
    value[t * TILE + r] = x < INFINITY || model->strict ? x : -INFINITY;
  }
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const density *model = self;
  workspace w = prepare(model, rows, scratch);
  for (size_t i = 0; i < m; i++)
    visit(model, &model->value, 1, theta + i * model->d, &w, see_each, value + i * rows->n);
  return LE_OK;
}

/* ---- starting points ---- */

/* Rows that a start reads. */
enum { START_ROWS = 2000, START_STEPS = 30 };
/* A start is the best of up to BEST_OF draws of the prior; with few rows of up to BEST_OF_FEW_ROWS,
 * as long as the draws read at most BEST_ROWS rows together. */
enum { BEST_OF = 32, BEST_OF_FEW_ROWS = 1000, BEST_ROWS = 40000 };

static size_t start_rows(size_t rows) { return rows < START_ROWS ? rows : START_ROWS; }

static size_t start_scratch(const void *self, size_t rows)
{
  const size_t d = ((const density *)self)->d;
  return 2 * d * d + 3 * d + scratch_size(self, 1, start_rows(rows));
}

/* The log density of the posterior, and its derivatives if `grad` is not NULL. */
static double posterior(const density *model, const double *theta, const le_rows *rows,
                        double *grad, double *hess, double *scratch)
{
  const size_t d = model->d;
  double value, likelihood = 0;
  log_prior(model, 1, theta, &value);
  log_lik(model, 1, theta, rows, &likelihood, scratch);
  if (!grad) return value + likelihood;
  log_prior_grad(model, 1, theta, grad);
  memset(hess, 0, d * d * sizeof *hess);
  log_prior_hess(model, theta, hess);
  log_lik_hess(model, theta, rows, grad, hess, scratch);
  return value + likelihood;
}

/* The step of Newton's method with a ridge, relative to the diagonal; 0 if there is none. */
static int ridge_step(size_t d, double ridge, const double *grad, const double *hess,
                      double *factor, double *step)
{
  for (size_t a = 0; a < d * d; a++) factor[a] = -hess[a];
  for (size_t j = 0; j < d; j++) {
    factor[j * d + j] += ridge * (fabs(hess[j * d + j]) + 1e-8);
    step[j] = grad[j];
  }
  if (le_cholesky(factor, d) != LE_OK) return 0;
  le_cholesky_solve(factor, d, step);
  return 1;
}

/* The draw of highest posterior density among some draws of the prior; `next` holds the others.
 * Their number is random, with a uniform logarithm: among many draws the best is near the main
 * mode, and among few draws it may be near any mode. */
static void best_draw(const density *model, const le_rows *rows, const gsl_rng *rng,
                      double *theta, double *next, double *scratch)
{
  const double most = fmax(BEST_OF, fmin(BEST_OF_FEW_ROWS, BEST_ROWS / (double)(rows->n + 1)));
  const size_t draws = (size_t)pow(most, gsl_rng_uniform(rng));
  draw_prior(model, rng, theta);
  double best = posterior(model, theta, rows, NULL, NULL, scratch);
  for (size_t k = 1; k < draws; k++) {
    draw_prior(model, rng, next);
    const double value = posterior(model, next, rows, NULL, NULL, scratch);
    if (!(value > best || (isnan(best) && !isnan(value)))) continue;
    best = value;
    memcpy(theta, next, model->d * sizeof *theta);
  }
}

/* Climbs from the best of some draws of the prior, or from the centre of the prior moved by a part
 * of a draw, by Newton's method with a ridge that adapts (Levenberg and Marquardt). Iterations end
 * when the gain is small: a search goes on from here. */
static void start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch)
{
  const density *model = self;
  const size_t d = model->d;
  double *grad = scratch, *step = grad + d, *next = step + d, *hess = next + d,
         *factor = hess + d * d, *rest = factor + d * d;
  const le_rows some = {start_rows(rows->n), rows->width, rows->values};
  const int near = gsl_rng_uniform(rng) < 0.5;
  if (near) draw_prior(self, rng, theta);
  else best_draw(model, &some, rng, theta, next, rest);
  for (size_t j = 0; j < d && near; j++) {
    const le_prior *prior = &model->prior[j];
    const double centre = j < model->real ? prior->location : log(prior->scale);
    const double away = fmax(-1, fmin(1, theta[j] - centre));
    theta[j] = centre + 0.1 * (isfinite(away) ? away : 0);
  }
  double ridge = 0.1, value = posterior(model, theta, &some, grad, hess, rest);
  for (int k = 0; k < START_STEPS && ridge < 1e8; k++) {
    double better = -INFINITY;
    if (ridge_step(d, ridge, grad, hess, factor, step)) {
      for (size_t j = 0; j < d; j++) next[j] = theta[j] + step[j];
      better = posterior(model, next, &some, NULL, NULL, rest);
    }
    if (!(better > value || (value == -INFINITY && better > -INFINITY))) {
      ridge *= 8;
      continue;
    }
    const double gain = better - value;
    memcpy(theta, next, d * sizeof *theta);
    value = posterior(model, theta, &some, grad, hess, rest);
    ridge = fmax(ridge / 8, 1e-6);
    if (gain < 1e-3) break;
  }
}

const le_model_ops le_density_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "density",
  .traits = 0,
  .create = create,
  .destroy = destroy,
  .dim = dim,
  .width = width,
  .scratch = scratch_size,
  .log_prior = log_prior,
  .log_prior_grad = log_prior_grad,
  .log_prior_hess = log_prior_hess,
  .draw_prior = draw_prior,
  .log_lik = log_lik,
  .log_lik_grad = log_lik_grad,
  .log_lik_grad_alone = log_lik_grad_alone,
  .log_lik_hess = log_lik_hess,
  .log_lik_each = log_lik_each,
  .user_dim = dim,
  .to_user = to_user,
  .tails = tails,
  .start = start,
  .start_scratch = start_scratch,
};
