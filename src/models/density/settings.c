/* Reads what R/spec-model-density.R says of a density: predictors, registers, programs, priors. */
#include "models/density/instance.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

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
  if (!le_all_codes(number, 4, MOST_COVARIATES + 1)) return 0;
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
    p->first = model->priors.d;
    model->priors.d += p->covariates;
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
  if (!le_all_codes(number, n, model->registers)) return refuse(name, message);
  for (size_t k = 0; k < n; k++) out[k] = (size_t)number[k];
  return LE_OK;
}

/* The programs for one purpose, and the registers of their results. */
static le_status read_goal(const le_args *args, const char *name, density *model,
                           density_goal *goal, char *message)
{
  char setting[64];
  snprintf(setting, sizeof setting, "%s_point", name);
  LE_TRY(le_program_read(args, setting, model->first_point, model->registers, &goal->point,
                         message));
  snprintf(setting, sizeof setting, "%s_row", name);
  LE_TRY(le_program_read(args, setting, model->first_free, model->registers, &goal->row, message));
  snprintf(setting, sizeof setting, "%s_out", name);
  return read_outputs(args, setting, goal->value + goal->slopes + goal->pairs, model, goal->out,
                      message);
}

/* Registers in their order: see models/density/program.h. */
static le_status read_registers(const le_args *args, density *model, char *message)
{
  model->constants = count_of(args, "constants");
  if (!le_read_count(args, "hoisted", 0, DENSITY_REGISTERS, &model->hoisted, message) ||
      !le_read_count(args, "points", 0, DENSITY_REGISTERS, &model->points, message) ||
      !le_read_count(args, "temporary", 0, DENSITY_REGISTERS, &model->temporary, message))
    return LE_BAD_ARGUMENT;
  model->first_data = model->constants;
  model->first_hoisted = model->first_data + model->columns;
  model->first_predictor = model->first_hoisted + model->hoisted;
  model->first_point = model->first_predictor + model->predictors;
  model->first_free = model->first_point + model->points;
  model->registers = model->first_free + model->temporary;
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
  const size_t d = model->priors.d;
  size_t positive;
  if (!le_read_count(args, "positive", 0, DENSITY_PREDICTORS, &positive, message) ||
      positive > d)
    return LE_BAD_ARGUMENT;
  model->real = d - positive;
  model->priors.of = malloc(d * sizeof(le_prior));
  unsigned char *is_real = calloc(d, 1);
  if (is_real) memset(is_real, 1, model->real);
  const le_status status = !model->priors.of || !is_real ? LE_NO_MEMORY
                           : le_priors_read(args, d, is_real, model->priors.of, message)
                             ? LE_OK
                             : LE_BAD_ARGUMENT;
  free(is_real);
  return status;
}

le_status density_read(const le_args *args, density *model, char *message)
{
  static const char *const names[GOALS] = {"value", "slope", "both", "curve"};
  if (!le_read_count(args, "width", 1, 2 * MOST_COVARIATES, &model->width, message) ||
      !le_read_count(args, "columns", 1, model->width, &model->columns, message))
    return LE_BAD_ARGUMENT;
  model->simd = le_simd_for(args);
  model->products = le_products_for(model->simd);
  model->strict = le_args_number(args, "strict", 0) != 0;
  LE_TRY(read_predictors(args, model, message));
  LE_TRY(read_registers(args, model, message));
  LE_TRY(read_constants(args, model));
  LE_TRY(read_priors(args, model, message));
  const size_t p = model->predictors, pairs = p * (p + 1) / 2;
  LE_TRY(le_program_read(args, "data", model->first_hoisted, model->registers, &model->data,
                         message));
  model->goal[GOAL_VALUE] = (density_goal){.value = 1};
  model->goal[GOAL_SLOPE] = (density_goal){.slopes = p};
  model->goal[GOAL_BOTH] = (density_goal){.value = 1, .slopes = p};
  model->goal[GOAL_CURVE] = (density_goal){.slopes = p, .pairs = pairs};
  for (int k = 0; k < GOALS; k++)
    LE_TRY(read_goal(args, names[k], model, &model->goal[k], message));
  return LE_OK;
}
