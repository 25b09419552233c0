/* Regressions with a linear predictor: what all families share.
 *
 * A row is x_1 .. x_p, then an offset if there is one, then the covariates and the offset of each
 * further parameter that has a formula, then a second number of the response (the trials of a
 * binomial response; whether an event was observed) if the family has one, then the response. eta =
 * x'w + offset. theta is w and, for each further parameter of the family (family.h), its logarithm,
 * whose value is on the user's scale, or the coefficients of its logarithm (by_row.c). */
#include "models/glm/exact.h"

#include <math.h>

/* ---- parameters ---- */

static size_t width(const void *self) { return ((const glm *)self)->width; }

/* With heavy-tailed priors the coefficients have several modes given the scales. */
static size_t scales(const void *self)
{
  const glm *model = self;
  return le_priors_tails(self) > 0 ? model->priors.d : model->priors.d - model->covariates;
}

/* ---- likelihood ---- */

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const glm *model = self;
  const size_t p = model->most_terms, most = p > COLUMNS_TOGETHER ? p : COLUMNS_TOGETHER;
  (void)particles;
  return LE_ALIGN_MORE + tiles_of(rows) * (model->columns + 1 + COLUMNS_TOGETHER) * TILE +
         p * TILE + COLUMNS_TOGETHER * p + p * most + le_glm_row_scratch(model, rows);
}

/* Without `constants` these are not computed. Responses of normal densities stay as they are. */
static workspace prepare(const glm *model, const le_rows *rows, int constants, double *scratch)
{
  const size_t tiles = tiles_of(rows->n);
  workspace w = {.n = rows->n, .x = le_aligned(scratch)};
  w.constant = w.x + tiles * model->columns * TILE;
  w.column = w.constant + tiles * TILE;
  w.sums = (le_sums){model->products, rows->n, model->priors.d, w.column + tiles * COLUMN_STEP,
                     NULL};
  w.weight = w.sums.weighted + model->most_terms * TILE;
  w.by_row = w.weight + COLUMNS_TOGETHER * model->most_terms;
  w.sums.sums = w.by_row + le_glm_row_scratch(model, rows->n);
  for (size_t t = 0; t < tiles; t++) {
    const size_t here = rows_in_tile(rows->n, t);
    double *x = w.x + t * model->columns * TILE, *y = x + (model->columns - 1) * TILE;
    if (model->implicit) {
      memcpy(x, model->ones, here * sizeof(double));
      memset(x + here, 0, (TILE - here) * sizeof(double));
      x += TILE;
    }
    le_arrays(model->simd)->columns(here, rows->width, model->width,
                                    rows->values + t * TILE * rows->width, x, TILE);
    if (constants || !model->family->squares)
      glm_kernels_of(model)->responses(here, glm_second(model, y), y,
                                       constants ? w.constant + t * TILE : NULL);
  }
  return w;
}

static double sum_of_constants(const workspace *w)
{
  double sum = 0;
  for (size_t t = 0; t < tiles_of(w->n); t++)
    for (size_t r = 0; r < rows_in_tile(w->n, t); r++) sum += w->constant[t * TILE + r];
  return sum;
}

/* The point of a particle, in `room` unless it is the same for all particles. */
static const glm_point *point_at(const glm *model, const double *theta, int wanted, glm_point *room)
{
  if (!model->family->further) return &model->point;
  double further[GLM_FURTHER] = {0};
  *room = (glm_point){{0}, {0}};
  glm_further(model, theta, further);
  model->family->point(further, wanted & WANT_CURVE, room);
  return room;
}

static void copy_weights(const glm *model, size_t particles, const double *theta, workspace *w)
{
  for (size_t q = 0; q < particles; q++) {
    double *weight = w->weight + q * model->terms;
    memcpy(weight, theta + q * model->priors.d, model->covariates * sizeof(double));
    if (model->offset) weight[model->covariates] = 1;
  }
}

/* The sums over rows of one particle. Slopes in workspace.column are to be multiplied by rate^2. */
typedef struct totals {
  double sum[GLM_SUMS], rate;
} totals;

/* Passes all rows to the kernel of the family, for up to COLUMNS_TOGETHER particles. */
static void run_kernel(const glm *model, int wanted, size_t particles,
                       const glm_point *const *point, const workspace *w, totals *all)
{
  double lanes[COLUMNS_TOGETHER][GLM_SUMS * LANES] = {{0}};
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const glm_tile tile = glm_tile_of(model, w, t);
    model->products->combine(tile.n, particles, model->terms, w->weight,
                             w->x + t * model->columns * TILE, glm_columns(w, t));
    for (size_t q = 0; q < particles; q++)
      glm_kernels_of(model)->rows(wanted, &tile, point[q]->setting,
                                  &(glm_out){glm_columns(w, t) + q * TILE, NULL, lanes[q]});
  }
  for (size_t q = 0; q < particles; q++) {
    all[q].rate = 1;
    for (size_t s = 0; s < GLM_SUMS; s++)
      all[q].sum[s] = sum_lanes(lanes[q] + s * LANES) + (double)w->n * point[q]->row[s];
  }
}

/* The same for normal noise of one standard deviation, 1 / setting[0]: all sums follow from those
 * of squared residuals, and the residuals are the slopes. */
static void run_residuals(const glm *model, size_t particles,
                          const glm_point *const *point, const workspace *w, totals *all)
{
  double squares[COLUMNS_TOGETHER * LANES] = {0};
  model->products->residuals(w->n, particles, model->terms, w->weight, w->x,
                             glm_response(model, w, 0), model->columns * TILE, w->column, squares);
  for (size_t q = 0; q < particles; q++) {
    const double rate = point[q]->setting[0], n = (double)w->n,
                 sum = sum_lanes(squares + q * LANES) * rate * rate;
    all[q].rate = rate;
    all[q].sum[SUM_VALUE] = n * point[q]->row[SUM_VALUE] - 0.5 * sum;
    all[q].sum[SUM_A] = n * point[q]->row[SUM_A] + sum;
    all[q].sum[SUM_AA] = -2 * sum;
  }
}

static void run_rows(const glm *model, int wanted, size_t particles, const double *theta,
                     workspace *w, totals *all)
{
  const glm_point *point[COLUMNS_TOGETHER];
  glm_point room[COLUMNS_TOGETHER];
  copy_weights(model, particles, theta, w);
  for (size_t q = 0; q < particles; q++)
    point[q] = point_at(model, theta + q * model->priors.d, wanted, &room[q]);
  if (model->family->squares) run_residuals(model, particles, point, w, all);
  else run_kernel(model, wanted, particles, point, w, all);
}

/* Adds the gradients of particles whose slopes are in w->column. */
static void add_gradients(const glm *model, size_t particles, const workspace *w,
                          const totals *all, double *grad)
{
  double factor[COLUMNS_TOGETHER];
  for (size_t q = 0; q < particles; q++) factor[q] = all[q].rate * all[q].rate;
  le_add_slopes(&w->sums, particles, (le_columns){w->column, COLUMN_STEP}, glm_mean(model, w),
                factor, grad);
  for (size_t q = 0; q < particles; q++, grad += model->priors.d)
    for (size_t a = 0; a < model->family->further; a++)
      add_finite(all[q].sum[SUM_A + a], &grad[model->covariates + a]);
}

/* `value` and `grad` may be NULL. */
static le_status log_lik_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const glm *model = self;
  const int wanted = (value ? WANT_VALUE : 0) | (grad ? WANT_SLOPE : 0);
  const int constants = value && !model->family->squares; /* otherwise they are zero */
  workspace w = prepare(model, rows, constants, scratch);
  const double constant = constants ? sum_of_constants(&w) : 0;
  if (model->by_row) {
    for (size_t i = 0; i < m; i++) {
      le_glm_row_evaluate(model, theta + i * model->priors.d, &w, value ? &value[i] : NULL,
                          grad ? grad + i * model->priors.d : NULL);
      if (value) add_value(constant, &value[i]);
    }
    return LE_OK;
  }
  for (size_t i = 0, together; i < m; i += together) {
    totals all[COLUMNS_TOGETHER];
    together = m - i < COLUMNS_TOGETHER ? m - i : COLUMNS_TOGETHER;
    run_rows(model, wanted, together, theta + i * model->priors.d, &w, all);
    for (size_t q = 0; value && q < together; q++)
      add_value(all[q].sum[SUM_VALUE] + constant, &value[i + q]);
    if (grad) add_gradients(model, together, &w, all, grad + i * model->priors.d);
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

/* ---- second derivatives ---- */

/* The part of the coefficients if the second derivatives are those of run_residuals. */
static void add_squares(const glm *model, const workspace *w, double rate, double *hess)
{
  const size_t p = model->covariates, step = model->columns * TILE;
  double *sums = w->sums.sums;
  memset(sums, 0, p * p * sizeof(double));
  for (size_t j = 0; j < p; j += COLUMNS_TOGETHER) {
    const size_t columns = p - j < COLUMNS_TOGETHER ? p - j : COLUMNS_TOGETHER;
    model->products->cross(w->n, columns, w->x + j * TILE, step, j + columns, w->x, step,
                           sums + j * p, p);
  }
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k <= j; k++)
      le_add_entry(hess, model->priors.d, j, k, -sums[j * p + k] * rate * rate);
}

/* The parts with the further parameters. */
static void add_further(const glm *model, const workspace *w, const totals *all, double *hess)
{
  const size_t p = model->covariates, d = model->priors.d, further = model->family->further;
  const int residuals = model->family->squares;
  const double factor = residuals ? -2 * all->rate : 1;
  double *sums = w->sums.sums;
  memset(sums, 0, further * p * sizeof(double));
  model->products->cross(w->n, further, w->column + (residuals ? 0 : 2 * TILE), COLUMN_STEP, p,
                         w->x, model->columns * TILE, sums, p);
  for (size_t a = 0; a < further; a++)
    for (size_t j = 0; j < p; j++)
      le_add_entry(hess, d, p + a, j, factor * sums[a * p + j] * all->rate);
  if (further > 0) le_add_entry(hess, d, p, p, all->sum[SUM_AA]);
  if (further > 1) {
    le_add_entry(hess, d, p + 1, p, all->sum[SUM_AB]);
    le_add_entry(hess, d, p + 1, p + 1, all->sum[SUM_BB]);
  }
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const glm *model = self;
  totals all;
  workspace w = prepare(model, rows, 0, scratch);
  if (model->by_row) {
    le_glm_row_hess(model, theta, &w, grad, hess);
    return LE_OK;
  }
  run_rows(model, WANT_SLOPE | WANT_CURVE, 1, theta, &w, &all);
  const le_block mean = glm_mean(model, &w);
  add_gradients(model, 1, &w, &all, grad);
  if (model->family->squares) add_squares(model, &w, all.rate, hess);
  else le_add_block(&w.sums, (le_columns){w.column + TILE, COLUMN_STEP}, mean, mean, hess);
  if (model->family->further) add_further(model, &w, &all, hess);
  return LE_OK;
}

/* Leaves the log density of each row in w->column, without the constants of the rows' responses;
 * returns what all rows have in common. */
static double densities(const glm *model, const double *theta, workspace *w)
{
  if (model->by_row) {
    le_glm_row_each(model, theta, w);
    return 0;
  }
  glm_point room;
  totals all;
  const glm_point *point = point_at(model, theta, 0, &room);
  copy_weights(model, 1, theta, w);
  run_kernel(model, WANT_VALUE | WANT_EACH, 1, &point, w, &all);
  return point->row[SUM_VALUE];
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const glm *model = self;
  const size_t n = rows->n;
  workspace w = prepare(model, rows, 1, scratch);
  for (size_t i = 0; i < m; i++) {
    const double common = densities(model, theta + i * model->priors.d, &w);
    for (size_t r = 0; r < n; r++) {
      const double density = glm_columns(&w, r / TILE)[r % TILE] + w.constant[r] + common;
      value[i * n + r] = density < INFINITY ? density : -INFINITY;
    }
  }
  return LE_OK;
}

/* ---- simulation ---- */

static void simulate(const void *self, const double *theta, const gsl_rng *rng, size_t n,
                     double *rows)
{
  const glm *model = self;
  double further[GLM_FURTHER] = {0};
  for (size_t r = 0; r < n; r++) {
    double *row = rows + r * model->width, *y = row + model->width - 1;
    const double eta = glm_predictor(glm_covariates(model, row), model->covariates, model->offset,
                                     theta);
    glm_further_of_row(model, row, theta, further);
    *y = model->family->draw(rng, eta, further, model->extra ? y - 1 : NULL);
  }
}

/* ---- the tables ---- */

/* What all have in common, and what those with a proper prior have. */
#define LIKELIHOOD                                                                                 \
  .version = LE_CONTRACT_VERSION,                                                                  \
  .size = sizeof(le_model_ops),                                                                    \
  .destroy = le_glm_destroy,                                                                       \
  .dim = le_priors_dim,                                                                            \
  .width = width,                                                                                  \
  .scratch = scratch_size,                                                                         \
  .log_lik = log_lik,                                                                              \
  .log_lik_grad = log_lik_grad,                                                                    \
  .log_lik_grad_alone = log_lik_grad_alone,                                                        \
  .log_lik_hess = log_lik_hess,                                                                    \
  .log_lik_each = log_lik_each,                                                                    \
  .simulate = simulate,                                                                            \
  .user_dim = le_priors_dim,                                                                       \
  .to_user = le_priors_to_user
#define PRIOR                                                                                      \
  .log_prior = le_priors_log,                                                                      \
  .log_prior_grad = le_priors_grad,                                                                \
  .log_prior_hess = le_priors_hess,                                                                \
  .draw_prior = le_priors_draw,                                                                    \
  .exact = le_glm_exact,                                                                           \
  .partitions = &le_glm_blocks

const le_model_ops le_glm_model = {
  LIKELIHOOD,
  PRIOR,
  .name = "regression",
  .create = le_glm_create,
  .exact_draws = le_glm_exact_draws,
  .start = le_glm_start,
  .start_scratch = le_glm_start_scratch,
  .scales = scales,
  .tails = le_priors_tails,
};

/* y ~ N(x'w, sigma^2), sigma known, w_j ~ N(prior_mean_j, prior_sd_j^2). The evidence and the
 * posterior have closed forms, so estimators are tested on these two first. */
const le_model_ops le_linear_model = {
  LIKELIHOOD,
  PRIOR,
  .name = "linear_regression",
  .traits = LE_MODEL_QUADRATIC,
  .create = le_glm_create_linear,
  .exact_draws = le_glm_exact_draws,
};

/* The same with a single covariate that is one. */
const le_model_ops le_gaussian_mean_model = {
  LIKELIHOOD,
  PRIOR,
  .name = "gaussian_mean",
  .traits = LE_MODEL_QUADRATIC,
  .create = le_glm_create_mean,
};

const le_model_ops le_zellner_siow_model = {
  LIKELIHOOD,
  .name = "zellner_siow",
  .create = le_zellner_siow_create,
  .log_prior = le_zellner_siow_log_prior,
  .draw_prior = le_zellner_siow_draw_prior,
  .exact = le_zellner_siow_exact,
  .exact_draws = le_zellner_siow_draws,
};
