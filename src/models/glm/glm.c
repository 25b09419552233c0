/* Regressions with a linear predictor: what all families share.
 *
 * A row is x_1 .. x_p, then an offset if there is one, then the covariates and the offset of each
 * further parameter that has a formula, then a second number of the response (the trials of a
 * binomial response; whether an event was observed) if the family has one, then the response. eta =
 * x'w + offset. theta is w and, for each further parameter of the family (family.h), its logarithm,
 * whose value is on the user's scale, or the coefficients of its logarithm (by_row.c). */
#include "models/glm/by_row.h"
#include "models/glm/exact.h"
#include "models/glm/families.h"
#include "models/glm/priors.h"
#include "models/glm/start.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const glm_family *const families[] = {
  &le_glm_poisson, &le_glm_binomial, &le_glm_probit, &le_glm_gaussian, &le_glm_negative_binomial,
  &le_glm_gamma, &le_glm_student, &le_glm_student_fixed, &le_glm_weibull};

/* ---- kernels ---- */

#define VECTOR_BODY "models/glm/glm_body.h"
#include "base/variants.h"

#define SHARED_KERNELS(variant) {predictors_##variant, products_##variant, le_cross_##variant}

static const shared_kernels *shared_for(le_simd simd)
{
  static const shared_kernels table[] = TABLES(SHARED_KERNELS);
  return &table[simd];
}

/* ---- settings ---- */

static const glm_family *family_named(const char *name)
{
  for (size_t k = 0; k < sizeof families / sizeof *families; k++)
    if (strcmp(families[k]->name, name) == 0) return families[k];
  return NULL;
}

static size_t dim(const void *self) { return ((const glm *)self)->d; }

static size_t width(const void *self) { return ((const glm *)self)->width; }

static double tails(const void *self)
{
  const glm *model = self;
  return le_priors_tails(model->prior, model->d);
}

/* With heavy-tailed priors the coefficients have several modes given the scales. */
static size_t scales(const void *self)
{
  const glm *model = self;
  return tails(self) > 0 ? model->d : model->d - model->covariates;
}

static int read_flag(const le_args *args, const char *name)
{
  return le_args_number(args, name, 0) != 0;
}

/* For families whose last further parameter may be a known number. */
static int read_known(const le_args *args, glm *model, char *message)
{
  return le_read_numbers(args, "df", 1, 0, 1, &model->known, message);
}

/* From coefficients of standardised columns to those of the columns as given: 3 d numbers, or NULL
 * if they are the same. */
static le_status read_user(const le_args *args, size_t d, double **user, char *message)
{
  *user = NULL;
  if (!le_args_find(args, "user_scale")) return LE_OK;
  double *numbers = malloc(3 * d * sizeof *numbers);
  if (!numbers) return LE_NO_MEMORY;
  *user = numbers;
  if (!le_read_numbers(args, "user_scale", 1, 0, d, numbers, message) ||
      !le_read_numbers(args, "user_centre", 0, -INFINITY, d, numbers + d, message) ||
      !le_read_numbers(args, "user_intercept", -1, -2, d, numbers + 2 * d, message))
    return LE_BAD_ARGUMENT;
  for (size_t j = 0; j < d; j++) {
    const double at = numbers[2 * d + j];
    if (at < (double)d && at == floor(at)) continue;
    snprintf(message, LE_MESSAGE_SIZE, "`user_intercept` must be a whole number below %zu, not %g.",
             d, at);
    return LE_BAD_ARGUMENT;
  }
  return LE_OK;
}

static void destroy(void *self)
{
  glm *model = self;
  if (!model) return;
  free(model->user);
  free(model->is_coefficient);
  free(model);
}

/* Number of columns and the offset of each further parameter; no columns if it has no formula.
 * Returns 0 if a setting is invalid. */
static int read_parts(const le_args *args, const glm_family *family, glm_part *part, char *message)
{
  double columns[GLM_FURTHER] = {0}, offset[GLM_FURTHER] = {0};
  if (family->further && (!le_read_numbers(args, "further_columns", 0, -1, family->further,
                                           columns, message) ||
                          !le_read_numbers(args, "further_offset", 0, -1, family->further, offset,
                                           message)))
    return 0;
  for (size_t a = 0; a < family->further; a++) {
    if (columns[a] > MOST_COVARIATES || columns[a] != floor(columns[a])) {
      snprintf(message, LE_MESSAGE_SIZE,
               "`further_columns` must be whole numbers up to %d, not %g.", MOST_COVARIATES,
               columns[a]);
      return 0;
    }
    part[a] = (glm_part){.formula = columns[a] > 0, .offset = columns[a] > 0 && offset[a] > 0};
    part[a].columns = part[a].formula ? (size_t)columns[a] : 1;
    part[a].terms = part[a].columns + (size_t)part[a].offset;
  }
  return 1;
}

/* Where each part is in theta and in a row, from the `covariates` and the offset on. */
static void place_parts(glm *model)
{
  size_t first = model->covariates, at = model->terms;
  model->most_terms = model->terms;
  for (size_t a = 0; a < model->family->further; a++) {
    glm_part *part = &model->part[a];
    part->first = first;
    part->at = at;
    first += part->columns;
    if (!part->formula) continue;
    model->by_row = 1;
    memset(model->is_coefficient + part->first, 1, part->columns);
    at += part->terms;
    if (part->terms > model->most_terms) model->most_terms = part->terms;
  }
  model->width = at + (size_t)model->extra + 1;
}

static le_status create(const le_args *args, void **self, char *message)
{
  *self = NULL;
  size_t p;
  const char *word = le_args_word(args, "family", "");
  const glm_family *family = family_named(word);
  if (!family) {
    snprintf(message, LE_MESSAGE_SIZE, "`family` must be a known family, not \"%s\".", word);
    return LE_BAD_ARGUMENT;
  }
  if (!le_read_count(args, "covariates", family->further == 0, MOST_COVARIATES, &p, message))
    return LE_BAD_ARGUMENT;
  glm_part part[GLM_FURTHER];
  if (!read_parts(args, family, part, message)) return LE_BAD_ARGUMENT;
  size_t d = p;
  for (size_t a = 0; a < family->further; a++) d += part[a].columns;
  glm *model = malloc(sizeof *model + d * sizeof(le_prior));
  if (!model) return LE_NO_MEMORY;
  *model = (glm){.family = family, .simd = le_simd_for(args), .covariates = p, .d = d};
  model->shared = shared_for(model->simd);
  model->offset = read_flag(args, "offset");
  model->extra = read_flag(args, "extra") && family->extra;
  model->terms = p + (size_t)model->offset;
  for (size_t r = 0; r < TILE; r++) model->ones[r] = 1;
  for (size_t a = 0; a < family->further; a++) model->part[a] = part[a];
  model->is_coefficient = calloc(d, 1);
  double *numbers = malloc(d * sizeof *numbers);
  le_status status = model->is_coefficient && numbers ? LE_OK : LE_NO_MEMORY;
  if (status == LE_OK) {
    memset(model->is_coefficient, 1, p);
    place_parts(model);
    if (!read_known(args, model, message) ||
        !le_priors_read(args, d, model->is_coefficient, model->prior, numbers, message))
      status = LE_BAD_ARGUMENT;
    else
      status = read_user(args, d, &model->user, message);
  }
  free(numbers);
  if (status != LE_OK) {
    destroy(model);
    return status;
  }
  *self = model;
  return LE_OK;
}

/* ---- prior ---- */

static void log_prior(const void *self, size_t m, const double *theta, double *value)
{
  const glm *model = self;
  le_priors_log(model->prior, model->d, m, theta, value);
}

static void log_prior_grad(const void *self, size_t m, const double *theta, double *grad)
{
  const glm *model = self;
  le_priors_grad(model->prior, model->d, m, theta, grad);
}

static void log_prior_hess(const void *self, const double *theta, double *hess)
{
  const glm *model = self;
  le_priors_hess(model->prior, model->d, theta, hess);
}

static void draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const glm *model = self;
  le_priors_draw(model->prior, model->d, rng, theta);
}

static size_t user_dim(const void *self) { return ((const glm *)self)->d; }

static void to_user(const void *self, const double *theta, double *user)
{
  const glm *model = self;
  const size_t d = model->d;
  for (size_t j = 0; j < d; j++) user[j] = model->is_coefficient[j] ? theta[j] : exp(theta[j]);
  if (!model->user) return;
  const double *scale = model->user, *centre = scale + d, *intercept = centre + d;
  for (size_t j = 0; j < d; j++) user[j] /= scale[j];
  for (size_t j = 0; j < d; j++)
    if (intercept[j] >= 0) user[(size_t)intercept[j]] -= centre[j] * user[j];
}

/* ---- likelihood ---- */

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const glm *model = self;
  const size_t p = model->most_terms, most = p > COLUMNS_TOGETHER ? p : COLUMNS_TOGETHER;
  (void)particles;
  return LE_ALIGN_MORE + tiles_of(rows) * (model->width + 1 + COLUMNS_TOGETHER) * TILE + p * TILE +
         COLUMNS_TOGETHER * p + p * most + le_glm_row_scratch(model, rows);
}

/* Without `constants` these are not computed. */
static workspace prepare(const glm *model, const le_rows *rows, int constants, double *scratch)
{
  const size_t tiles = tiles_of(rows->n);
  workspace w = {.n = rows->n, .x = le_aligned(scratch)};
  w.constant = w.x + tiles * model->width * TILE;
  w.column = w.constant + tiles * TILE;
  w.weighted = w.column + tiles * COLUMNS_TOGETHER * TILE;
  w.weight = w.weighted + model->most_terms * TILE;
  w.by_row = w.weight + COLUMNS_TOGETHER * model->most_terms;
  w.sums = w.by_row + le_glm_row_scratch(model, rows->n);
  fill_tiles(model->simd, rows, model->width, w.x);
  for (size_t t = 0; t < tiles; t++) {
    double *y = w.x + (t * model->width + model->width - 1) * TILE;
    glm_kernels_of(model)->responses(rows_in_tile(rows->n, t), glm_second(model, y), y,
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

static glm_point point_at(const glm *model, const double *theta, int wanted)
{
  glm_point point = {{0}, {0}};
  double further[GLM_FURTHER] = {0};
  glm_further(model, theta, further);
  if (model->family->further) model->family->point(further, wanted & WANT_CURVE, &point);
  return point;
}

static void copy_weights(const glm *model, size_t particles, const double *theta, workspace *w)
{
  for (size_t q = 0; q < particles; q++) {
    double *weight = w->weight + q * model->terms;
    memcpy(weight, theta + q * model->d, model->covariates * sizeof(double));
    if (model->offset) weight[model->covariates] = 1;
  }
}

static void predict_tile(const glm *model, const workspace *w, size_t particles, size_t t)
{
  model->shared->predictors(rows_in_tile(w->n, t), particles, model->terms, w->weight,
                               w->x + t * model->width * TILE, glm_columns(w, t));
}

/* The sums of one particle, from partial sums and from what all rows have in common. */
static void finish_sums(const workspace *w, const glm_point *point, const double *lanes,
                        double *sum)
{
  for (size_t s = 0; s < GLM_SUMS; s++)
    sum[s] = sum_lanes(lanes + s * LANES) + (double)w->n * point->row[s];
}

/* Passes all rows to the kernel of the family, for up to COLUMNS_TOGETHER particles; sum[q] are the
 * sums of particle q. */
static void run_kernel(const glm *model, int wanted, size_t particles, const double *theta,
                       workspace *w, double sum[][GLM_SUMS])
{
  glm_point point[COLUMNS_TOGETHER];
  double lanes[COLUMNS_TOGETHER][GLM_SUMS * LANES] = {{0}};
  copy_weights(model, particles, theta, w);
  for (size_t q = 0; q < particles; q++) point[q] = point_at(model, theta + q * model->d, wanted);
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const glm_tile tile = glm_tile_of(model, w, t);
    predict_tile(model, w, particles, t);
    for (size_t q = 0; q < particles; q++)
      glm_kernels_of(model)->rows(wanted, &tile, point[q].setting,
                                  &(glm_out){glm_columns(w, t) + q * TILE, NULL, lanes[q]});
  }
  for (size_t q = 0; q < particles; q++) finish_sums(w, &point[q], lanes[q], sum[q]);
}

/* Adds the gradients of particles whose slopes are in w->column. */
static void add_gradients(const glm *model, size_t particles, const workspace *w,
                          double sum[][GLM_SUMS], double *grad)
{
  const size_t p = model->covariates;
  memset(w->sums, 0, particles * p * sizeof(double));
  model->shared->cross(w->n, particles, w->column, COLUMN_STEP, p, w->x, model->width * TILE,
                       w->sums, p);
  for (size_t q = 0; q < particles; q++, grad += model->d) {
    for (size_t j = 0; j < p; j++) add_finite(w->sums[q * p + j], &grad[j]);
    for (size_t a = 0; a < model->family->further; a++) add_finite(sum[q][SUM_A + a], &grad[p + a]);
  }
}

/* `value` and `grad` may be NULL. */
static le_status evaluate(const glm *model, size_t m, const double *theta, const le_rows *rows,
                          double *value, double *grad, double *scratch)
{
  const int wanted = (value ? WANT_VALUE : 0) | (grad ? WANT_SLOPE : 0);
  workspace w = prepare(model, rows, value != NULL, scratch);
  const double constant = value ? sum_of_constants(&w) : 0;
  if (model->by_row) {
    for (size_t i = 0; i < m; i++) {
      le_glm_row_evaluate(model, theta + i * model->d, &w, value ? &value[i] : NULL,
                          grad ? grad + i * model->d : NULL);
      if (value) add_value(constant, &value[i]);
    }
    return LE_OK;
  }
  for (size_t i = 0, together; i < m; i += together) {
    double sum[COLUMNS_TOGETHER][GLM_SUMS];
    together = m - i < COLUMNS_TOGETHER ? m - i : COLUMNS_TOGETHER;
    run_kernel(model, wanted, together, theta + i * model->d, &w, sum);
    for (size_t q = 0; value && q < together; q++)
      add_value(sum[q][SUM_VALUE] + constant, &value[i + q]);
    if (grad) add_gradients(model, together, &w, sum, grad + i * model->d);
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

/* The part of the coefficients. */
static void add_squares(const glm *model, const workspace *w, double *hess)
{
  const size_t p = model->covariates;
  memset(w->sums, 0, p * p * sizeof(double));
  for (size_t t = 0; t < tiles_of(w->n); t++)
    model->shared->products(rows_in_tile(w->n, t), p, glm_columns(w, t) + TILE,
                            w->x + t * model->width * TILE, p, w->x + t * model->width * TILE,
                            w->weighted, w->sums);
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k <= j; k++) glm_add_entry(hess, model->d, j, k, w->sums[j * p + k]);
}

/* The parts with the further parameters. */
static void add_further(const glm *model, const workspace *w, const double *sum, double *hess)
{
  const size_t p = model->covariates, d = model->d, further = model->family->further;
  memset(w->sums, 0, further * p * sizeof(double));
  model->shared->cross(w->n, further, w->column + 2 * TILE, COLUMN_STEP, p, w->x,
                       model->width * TILE, w->sums, p);
  for (size_t a = 0; a < further; a++)
    for (size_t j = 0; j < p; j++) glm_add_entry(hess, d, p + a, j, w->sums[a * p + j]);
  if (further > 0) glm_add_entry(hess, d, p, p, sum[SUM_AA]);
  if (further > 1) {
    glm_add_entry(hess, d, p + 1, p, sum[SUM_AB]);
    glm_add_entry(hess, d, p + 1, p + 1, sum[SUM_BB]);
  }
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const glm *model = self;
  double sum[1][GLM_SUMS];
  workspace w = prepare(model, rows, 0, scratch);
  if (model->by_row) {
    le_glm_row_hess(model, theta, &w, grad, hess);
    return LE_OK;
  }
  run_kernel(model, WANT_SLOPE | WANT_CURVE, 1, theta, &w, sum);
  add_gradients(model, 1, &w, sum, grad);
  add_squares(model, &w, hess);
  if (model->family->further) add_further(model, &w, sum[0], hess);
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
  const glm_point point = point_at(model, theta, 0);
  copy_weights(model, 1, theta, w);
  for (size_t t = 0; t < tiles_of(w->n); t++) {
    const glm_tile tile = glm_tile_of(model, w, t);
    predict_tile(model, w, 1, t);
    glm_kernels_of(model)->rows(WANT_VALUE | WANT_EACH, &tile, point.setting,
                                &(glm_out){glm_columns(w, t), NULL, NULL});
  }
  return point.row[SUM_VALUE];
}

static le_status log_lik_each(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *scratch)
{
  const glm *model = self;
  const size_t n = rows->n;
  workspace w = prepare(model, rows, 1, scratch);
  for (size_t i = 0; i < m; i++) {
    const double common = densities(model, theta + i * model->d, &w);
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
    const double eta = glm_predictor(row, model->covariates, model->offset, theta);
    glm_further_of_row(model, row, theta, further);
    *y = model->family->draw(rng, eta, further, model->extra ? y - 1 : NULL);
  }
}

const le_model_ops le_glm_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "regression",
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
  .simulate = simulate,
  .exact = le_glm_exact,
  .exact_draws = le_glm_exact_draws,
  .user_dim = user_dim,
  .to_user = to_user,
  .start = le_glm_start,
  .start_scratch = le_glm_start_scratch,
  .scales = scales,
  .tails = tails,
};
