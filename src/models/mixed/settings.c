/* Instances of regressions with group-level effects: their settings, and starting points. */
#include "models/mixed/differences.h"
#include "models/mixed/unit.h"

#include "base/linalg.h"

#include <gsl/gsl_integration.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES_MOST = 101, POINTS_MOST = 100000, ROWS_MOST = 100000000, BASE_ARGS = 32,
       START_ROWS = 5000 };

void le_mixed_destroy(void *self)
{
  mixed *model = self;
  if (!model) return;
  le_glm_destroy(model->base);
  free(model->size);
  free(model->node);
  free(model->log_weight);
  free(model->wide_node);
  free(model->wide_log_weight);
  free(model->priors.user);
  free(model->priors.mean);
  free(model->priors.of);
  free(model);
}

/* The regression without groups has the same settings, and the first `base` numbers of those that
 * all parameters have. */
static le_status read_base(const le_args *args, mixed *model, char *message)
{
  le_arg own[BASE_ARGS];
  le_args some = {0, own};
  size_t parameters;
  if (!le_read_count(args, "base", 0, MOST_COVARIATES, &parameters, message))
    return LE_BAD_ARGUMENT;
  for (size_t i = 0; i < args->n; i++) {
    const char *name = args->arg[i].name;
    const int all = strncmp(name, "prior_", 6) == 0;
    if (strncmp(name, "user_", 5) == 0 || strncmp(name, "mean_", 5) == 0) continue;
    if (some.n == BASE_ARGS) {
      snprintf(message, LE_MESSAGE_SIZE, "There must be at most %d settings.", BASE_ARGS);
      return LE_BAD_ARGUMENT;
    }
    own[some.n] = args->arg[i];
    if (all && own[some.n].n > parameters) own[some.n].n = parameters;
    some.n++;
  }
  void *base = NULL;
  const le_status status = le_glm_create(&some, &base, message);
  model->base = base;
  return status;
}

static int whole(double x, size_t least, size_t most)
{
  return x == floor(x) && x >= (double)least && x <= (double)most;
}

/* The columns of the effects and their predictors. */
static int read_effects(const le_args *args, mixed *model, char *message)
{
  const size_t extra = model->row - model->factors, further = model->base->family->further;
  size_t k = 0;
  for (size_t f = 0; f < model->factors; f++)
    for (size_t l = 0; l < model->factor[f].q; l++, k++) {
      double column, part;
      if (!le_read_number(args, "effect_column", 0, -1, model->q, k, &column, message) ||
          !le_read_number(args, "effect_part", 0, -1, model->q, k, &part, message))
        return 0;
      if (!whole(column, 0, extra - 1) || !whole(part, 0, further)) {
        snprintf(message, LE_MESSAGE_SIZE, "`effect_column` and `effect_part` must be within the "
                                           "row and the predictors, not %g and %g.",
                 column, part);
        return 0;
      }
      model->column[f][l] = (size_t)column;
      model->part[f][l] = (size_t)part;
      if (model->part[f][l]) model->by_row = 1;
    }
  return 1;
}

static int read_sizes(const le_args *args, mixed *model, char *message)
{
  size_t extra;
  if (!le_read_count(args, "rows", 1, ROWS_MOST, &model->most, message) ||
      !le_read_count(args, "extra_columns", 0, MOST_COVARIATES, &extra, message))
    return 0;
  model->row = model->base->width + extra + model->factors;
  model->head = 1 + model->factors + (size_t)(model->node == NULL && model->nodes > 1);
  model->width = model->head + model->most * model->row;
  for (size_t f = 0; f < model->factors; f++) {
    double levels;
    if (!le_read_number(args, "levels", 1, 0, model->factors, f, &levels, message)) return 0;
    if (!whole(levels, 1, model->most)) {
      snprintf(message, LE_MESSAGE_SIZE, "`levels` must be whole numbers up to %zu, not %g.",
               model->most, levels);
      return 0;
    }
    model->levels[f] = (size_t)levels;
    model->dim += model->levels[f] * model->factor[f].q;
  }
  model->rest = model->dim - model->levels[0] * model->factor[0].q;
  return 1;
}

/* The product of Gauss-Hermite rules of n points for each of d effects, for the standard normal
 * density. */
static le_status make_rule(mixed *model, size_t n, size_t d)
{
  size_t all = 1;
  for (size_t k = 0; k < d; k++) all *= n;
  model->nodes = all;
  model->node = calloc(all * d, sizeof *model->node);
  model->log_weight = calloc(all, sizeof *model->log_weight);
  gsl_integration_fixed_workspace *rule =
    gsl_integration_fixed_alloc(gsl_integration_fixed_hermite, n, 0, 0.5, 0, 0);
  if (!model->node || !model->log_weight || !rule) {
    if (rule) gsl_integration_fixed_free(rule);
    return LE_NO_MEMORY;
  }
  const double *x = gsl_integration_fixed_nodes(rule), *w = gsl_integration_fixed_weights(rule);
  for (size_t j = 0; j < all; j++)
    for (size_t k = 0, rest = j; k < d; k++, rest /= n) {
      model->node[j * d + k] = x[rest % n];
      model->log_weight[j] += log(w[rest % n]) - HALF_LOG_2PI;
    }
  gsl_integration_fixed_free(rule);
  return LE_OK;
}

/* A rule for densities with a tail far beyond the curvature at the mode, or with an edge, such as
 * that of a group of equal binary responses under a large standard deviation, which is nearly half
 * a normal density: the trapezoidal rule in t, with x = sinh(t). It reaches 200 standard deviations
 * at the mode, where the spacing is WIDE_STEP of them. */
enum { WIDE_NODES = 81 };
static const double WIDE_STEP = 0.15, OUTER_SHARE = 3e-4;

static le_status make_wide_rule(mixed *model, double outer_share)
{
  model->wide = WIDE_NODES;
  model->outer_share = outer_share;
  model->wide_node = calloc(WIDE_NODES, sizeof *model->wide_node);
  model->wide_log_weight = calloc(WIDE_NODES, sizeof *model->wide_log_weight);
  if (!model->wide_node || !model->wide_log_weight) return LE_NO_MEMORY;
  for (size_t j = 0; j < WIDE_NODES; j++) {
    const double t = WIDE_STEP * ((double)j - WIDE_NODES / 2), x = sinh(t);
    model->wide_node[j] = x;
    model->wide_log_weight[j] = log(WIDE_STEP * cosh(t)) - 0.5 * x * x - HALF_LOG_2PI;
  }
  return LE_OK;
}

static le_status read_rule(const le_args *args, mixed *model, char *message)
{
  size_t nodes, draws;
  double seed, share;
  if (!le_read_count(args, "nodes", 0, NODES_MOST, &nodes, message) ||
      !le_read_count(args, "draws", 1, POINTS_MOST, &draws, message) ||
      !le_read_numbers(args, "rule_seed", 1, -1, 1, &seed, message) ||
      !le_read_numbers(args, "outer_share", OUTER_SHARE, -1, 1, &share, message))
    return LE_BAD_ARGUMENT;
  model->seed = (uint64_t)seed;
  model->nodes = draws;
  if (nodes == 0) return LE_OK;
  if (model->factors > 1 || pow((double)nodes, (double)model->q) > POINTS_MOST) {
    snprintf(message, LE_MESSAGE_SIZE,
             "`nodes` must be 0 for several factors and many effects, not %zu.", nodes);
    return LE_BAD_ARGUMENT;
  }
  const le_status status = make_rule(model, nodes, model->q);
  if (status != LE_OK || model->q > 1 || model->linear) return status;
  return make_wide_rule(model, share);
}

/* Standard deviations of effects, and further parameters without a formula, are positive. */
static le_status read_priors(const le_args *args, size_t first, size_t end, mixed *model,
                             char *message)
{
  size_t positive[GLM_FURTHER + 1][2] = {{first, end}}, n = 1;
  for (size_t a = 0; a < model->base->family->further; a++) {
    const glm_part *part = &model->base->part[a];
    if (part->formula) continue;
    positive[n][0] = part->first;
    positive[n++][1] = part->first + 1;
  }
  return le_mixed_read_priors(args, n, (const size_t (*)[2])positive, &model->priors, message);
}

static le_status read(const le_args *args, mixed *model, char *message)
{
  size_t end, first;
  le_status status = read_base(args, model, message);
  if (status != LE_OK) return status;
  model->by_row = model->base->by_row;
  model->scales = model->base->covariates;
  first = model->base->priors.d;
  if (!le_mixed_read(args, first, MIXED_FACTORS_MOST, &model->factors, model->factor, &end,
                     &model->priors.d, message))
    return LE_BAD_ARGUMENT;
  if (model->factors < 1) {
    snprintf(message, LE_MESSAGE_SIZE, "There must be effects.");
    return LE_BAD_ARGUMENT;
  }
  for (size_t f = 0; f < model->factors; f++) model->q += model->factor[f].q;
  status = read_rule(args, model, message);
  if (status != LE_OK) return status;
  model->size = calloc(first + 1, sizeof *model->size);
  if (!model->size) return LE_NO_MEMORY;
  if (!read_sizes(args, model, message) || !read_effects(args, model, message) ||
      !le_mixed_read_sizes(args, first, model->size, message))
    return LE_BAD_ARGUMENT;
  model->linear = model->base->family->squares;
  for (size_t f = 0; f < model->factors; f++)
    for (size_t l = 0; l < model->factor[f].q; l++)
      if (model->part[f][l]) model->linear = 0;
  return read_priors(args, first, end, model, message);
}

le_status le_mixed_create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  mixed *model = calloc(1, sizeof *model);
  if (!model) return LE_NO_MEMORY;
  const le_status status = read(args, model, message);
  if (status == LE_OK) *self = model;
  else le_mixed_destroy(model);
  return status;
}

size_t le_mixed_width(const void *self) { return ((const mixed *)self)->width; }

void le_mixed_to_user(const void *self, const double *theta, double *user)
{
  const mixed *model = self;
  le_priors_to_user(self, theta, user);
  for (size_t f = 0; f < model->factors; f++)
    le_mixed_correlations(&model->factor[f], theta, user);
}

/* ---- starting points ---- */

size_t le_mixed_start_scratch(const void *self, size_t rows)
{
  const mixed *model = self;
  (void)rows;
  return (START_ROWS + model->most) * model->base->width +
         le_glm_start_scratch(model->base, START_ROWS + model->most);
}

/* That of the regression without groups; standard deviations that change the linear predictor by
 * about one, or less. */
void le_mixed_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                    double *scratch)
{
  const mixed *model = self;
  const size_t width = model->base->width, many = START_ROWS + model->most;
  double size[MIXED_FACTORS_MOST][MIXED_EFFECTS_MOST] = {{0}};
  size_t n = 0, from = rows->n ? gsl_rng_uniform_int(rng, rows->n) : 0;
  for (size_t g = 0; g < rows->n && n < START_ROWS; g++, from = (from + 1) % rows->n) {
    const double *values = rows->values + from * rows->width;
    const size_t own = values[0] < (double)model->most ? (size_t)fmax(values[0], 0) : model->most;
    for (size_t i = 0; i < own && n < many; i++, n++) {
      const double *row = values + model->head + i * model->row;
      memcpy(scratch + n * width, row, width * sizeof *scratch);
      for (size_t f = 0; f < model->factors; f++)
        for (size_t l = 0; l < model->factor[f].q; l++)
          size[f][l] += row[model->column[f][l]] * row[model->column[f][l]];
    }
  }
  le_glm_start(model->base, &(le_rows){n, width, scratch}, rng, theta, scratch + many * width);
  const double noise = model->base->family->squares && model->base->family->further
                         ? exp(fmin(theta[model->scales], 300)) : 1;
  for (size_t f = 0; f < model->factors; f++)
    for (size_t l = 0; l < model->factor[f].q; l++)
      size[f][l] = le_mixed_unit(model->part[f][l] ? 1 : noise, size[f][l], (double)n);
  le_mixed_start_scales(model->factors, model->factor, model->base->priors.d, model->priors.d,
                        (const double (*)[MIXED_EFFECTS_MOST])size, rng, theta);
}
