/* Regressions of any family with group-level effects: likelihoods of units, whose effects are
 * integrated out around their mode (models/mixed/unit.h).
 *
 * With v = mode + R'^-1 x, points x_j and weights w_j for the standard normal distribution,
 *
 *     log L = -log det R + log sum_j w_j exp(log p(rows, v_j) + |x_j|^2 / 2 + d log(2 pi) / 2).
 *
 * The points are those of adaptive Gauss-Hermite quadrature (one factor), with another rule where
 * the outermost nodes are not negligible (make_wide_rule() in models/mixed/settings.c), or random
 * ones in pairs x and -x, which belong to the unit and are the same for all parameters (several
 * factors, or many effects), or the mode alone where the density is normal in the effects.
 * Gradients are means of those of log p(rows, v) under the weights of the points (Fisher's
 * identity). */
#include "models/mixed/differences.h"
#include "models/mixed/lanes.h"
#include "models/mixed/members.h"
#include "models/mixed/unit.h"

#include "base/linalg.h"
#include "base/rng.h"

#include <gsl/gsl_randist.h>
#include <math.h>

/* ---- settings and memory ---- */

typedef struct room {
  unit unit;
  double *random;  /* random points of a unit */
  double *point;   /* v of a point */
  double *slope;   /* weighted slopes of rows by each predictor, tiles; and the slopes by L */
  double *by_root; /* q x q */
} room;

static size_t random_size(const mixed *model)
{
  return model->node ? 0 : (model->nodes + 1) / 2 * model->dim;
}

static room place(const mixed *model, double *scratch)
{
  room r = {.random = NULL};
  le_unit_place(&r.unit, model, scratch);
  scratch += le_unit_scratch(model);
  r.random = scratch;
  r.point = r.random + random_size(model);
  r.slope = r.point + model->dim;
  r.by_root = r.slope + MIXED_PREDICTORS * tiles_of(model->most) * TILE;
  return r;
}

static size_t scratch_size(const void *self, size_t particles, size_t rows)
{
  const mixed *model = self;
  const size_t points = particles > 2 * model->priors.d + 1 ? particles : 2 * model->priors.d + 1;
  (void)rows;
  const size_t lanes = le_lanes_possible(model) ? points + le_lanes_scratch(model) : 0;
  return 2 * LE_ALIGN_MORE + lanes + le_unit_scratch(model) + random_size(model) + model->dim +
         MIXED_PREDICTORS * tiles_of(model->most) * TILE + EFFECTS_SQUARED + model->priors.d +
         le_mixed_differences_room(model->priors.d);
}

/* ---- points ---- */

/* Standard normal numbers that belong to the unit: half of the points. */
static le_status draw_points(const mixed *model, room *r)
{
  if (model->node || model->nodes < 2) return LE_OK;
  const uint32_t name = (uint32_t)r->unit.head[model->factors + 1];
  le_streams streams;
  const le_status status = le_streams_alloc(&streams, 1, model->seed, name);
  if (status == LE_OK)
    le_normals(&streams, 0, 1, (model->nodes + 1) / 2 * r->unit.dim, r->random);
  le_streams_free(&streams);
  return status;
}

/* Leaves v of point j in r->point; returns log w_j + |x_j|^2 / 2. */
static double point_at(const mixed *model, room *r, int wide, size_t j)
{
  const unit *u = &r->unit;
  const size_t d = u->dim;
  double log_weight = -log((double)model->nodes);
  if (wide) {
    r->point[0] = model->wide_node[j];
    log_weight = model->wide_log_weight[j];
  } else if (model->nodes == 1) {
    memset(r->point, 0, d * sizeof(double));
  } else if (model->node) {
    memcpy(r->point, model->node + j * d, d * sizeof(double));
    log_weight = model->log_weight[j];
  } else {
    const double sign = j % 2 ? -1 : 1;
    for (size_t k = 0; k < d; k++) r->point[k] = sign * r->random[j / 2 * d + k];
  }
  log_weight += 0.5 * le_dot(r->point, r->point, d);
  le_arrow_spread(&u->h, r->point);
  for (size_t k = 0; k < d; k++) r->point[k] += u->v[k];
  return log_weight;
}

/* ---- value and gradient of a unit ---- */

/* Adds the slopes of rows at the point, times `weight`. */
static void add_point(const mixed *model, room *r, double weight)
{
  unit *u = &r->unit;
  const size_t step = u->tiles * TILE, q = model->factor[0].q,
               parts = model->by_row ? 1 + model->base->family->further : 1;
  double along[MIXED_EFFECTS_MOST] = {0};
  for (size_t p = 0; p < parts; p++)
    for (size_t i = 0; i < u->n; i++) r->slope[p * step + i] += weight * le_unit_slope(u, i, p);
  if (!model->by_row)
    for (size_t a = 0; a < model->base->family->further; a++)
      r->slope[(a + 1) * step] += weight * u->sums[SUM_A + a];
  for (size_t i = 0; i < u->n; i++) {
    const double *row = u->rows + i * model->row;
    for (size_t l = 0; l < q; l++)
      along[l] += row[model->column[0][l]] * le_unit_slope(u, i, model->part[0][l]);
  }
  for (size_t l = 0; l < q; l++)
    for (size_t k = 0; k < q; k++) r->by_root[l * q + k] += weight * along[l] * r->point[k];
}

static void scale_sums(const mixed *model, room *r, double factor)
{
  const size_t n = MIXED_PREDICTORS * r->unit.tiles * TILE, q = model->factor[0].q;
  for (size_t i = 0; i < n; i++) r->slope[i] *= factor;
  for (size_t k = 0; k < q * q; k++) r->by_root[k] *= factor;
}

static void add_gradient(const mixed *model, const room *r, double *grad)
{
  const unit *u = &r->unit;
  const glm *base = model->base;
  const size_t step = u->tiles * TILE;
  for (size_t i = 0; i < u->n; i++) {
    const double *row = u->rows + i * model->row;
    for (size_t j = 0; j < base->covariates; j++) grad[j] += r->slope[i] * row[j];
  }
  for (size_t a = 0; a < base->family->further; a++) {
    const glm_part *part = &base->part[a];
    const double *slope = r->slope + (a + 1) * step;
    if (!model->by_row) grad[part->first] += slope[0];
    else
      for (size_t i = 0; i < u->n; i++)
        for (size_t j = 0; j < part->columns; j++)
          grad[part->first + j] +=
            slope[i] * (part->formula ? (u->rows + i * model->row)[part->at + j] : 1);
  }
  le_mixed_chain(&model->factor[0], u->theta, u->root, r->by_root, grad);
}

/* Sums of a unit over the points of a rule: exp(top) times `sum`, and the larger of the first and
 * the last point's share of it. */
typedef struct points_sum {
  double top, sum, outer;
} points_sum;

/* Slopes are summed with weights relative to the largest so far. */
static points_sum add_points(const mixed *model, room *r, int wide, int slopes)
{
  unit *u = &r->unit;
  const size_t n = wide ? model->wide : model->nodes;
  points_sum s = {-INFINITY, 0, -INFINITY};
  if (slopes) {
    memset(r->slope, 0, MIXED_PREDICTORS * u->tiles * TILE * sizeof(double));
    memset(r->by_root, 0, EFFECTS_SQUARED * sizeof(double));
  }
  for (size_t j = 0; j < n; j++) {
    const double log_weight = point_at(model, r, wide, j);
    const double value = log_weight - 0.5 * le_dot(r->point, r->point, u->dim) +
                         le_unit_rows(u, r->point, WANT_VALUE | (slopes ? WANT_SLOPE : 0));
    if (!(value > -INFINITY)) continue;
    if ((j == 0 || j == n - 1) && value > s.outer) s.outer = value;
    double weight = exp(value - s.top);
    if (value > s.top) {
      const double factor = exp(s.top - value);
      s.sum *= factor;
      if (slopes) scale_sums(model, r, factor);
      s.top = value;
      weight = 1;
    }
    /* far from the mode slopes may be infinite */
    if (!(weight > 0)) continue;
    s.sum += weight;
    if (slopes) add_point(model, r, weight);
  }
  s.outer = exp(s.outer - s.top) / s.sum;
  return s;
}

/* The log-likelihood of the open unit; its gradient is added if it is not NULL. */
static double evaluate(const mixed *model, room *r, const double *theta, double *grad)
{
  unit *u = &r->unit;
  le_unit_at(u, theta);
  le_unit_climb(u);
  points_sum s = add_points(model, r, 0, grad != NULL);
  if (model->wide && !(s.outer <= model->outer_share)) s = add_points(model, r, 1, grad != NULL);
  if (!(s.sum > 0)) return -INFINITY;
  if (grad) {
    scale_sums(model, r, 1 / s.sum);
    add_gradient(model, r, grad);
  }
  return s.top + log(s.sum) - u->h.half_log_det;
}

/* ---- members of the tables ---- */

/* Groups with one effect. */
static void all_groups(const mixed *model, size_t m, const double *theta, const le_rows *rows,
                       double *value, double *grad, double *each, double *scratch)
{
  double *room = le_aligned(scratch), *found = room + le_lanes_scratch(model);
  for (size_t g = 0; g < rows->n; g++) {
    le_lanes_evaluate(model, rows->values + g * rows->width, m, theta, found, grad, room);
    for (size_t i = 0; i < m; i++) {
      if (value) add_value(found[i], &value[i]);
      if (each) each[i * rows->n + g] = found[i] < INFINITY ? found[i] : -INFINITY;
    }
  }
}

static le_status all_units(const mixed *model, size_t m, const double *theta, const le_rows *rows,
                           double *value, double *grad, double *each, double *scratch)
{
  const size_t d = model->priors.d;
  if (le_lanes_possible(model)) {
    all_groups(model, m, theta, rows, value, grad, each, scratch);
    return LE_OK;
  }
  room r = place(model, le_aligned(scratch));
  for (size_t g = 0; g < rows->n; g++) {
    le_unit_open(&r.unit, rows->values + g * rows->width);
    const le_status status = draw_points(model, &r);
    if (status != LE_OK) return status;
    for (size_t i = 0; i < m; i++) {
      const double x = evaluate(model, &r, theta + i * d, grad ? grad + i * d : NULL);
      if (value) add_value(x, &value[i]);
      if (each) each[i * rows->n + g] = x < INFINITY ? x : -INFINITY;
    }
  }
  return LE_OK;
}

LIKELIHOODS(all_units)

/* ---- effects ---- */

/* Draws of a proposal from which one is chosen by its weight. */
enum { CANDIDATES = 8 };

static size_t effects_size(const void *self) { return ((const mixed *)self)->dim; }

/* A draw of v: one of several of the normal density at the mode, chosen by their weights. */
static void draw_effects(room *r, const gsl_rng *rng, double *v)
{
  unit *u = &r->unit;
  double top = 0, total = 0;
  for (int k = 0; k < CANDIDATES; k++) {
    for (size_t j = 0; j < u->dim; j++) r->point[j] = gsl_ran_gaussian_ziggurat(rng, 1);
    double value = 0.5 * le_dot(r->point, r->point, u->dim);
    le_arrow_spread(&u->h, r->point);
    for (size_t j = 0; j < u->dim; j++) r->point[j] += u->v[j];
    value += le_unit_rows(u, r->point, WANT_VALUE) - 0.5 * le_dot(r->point, r->point, u->dim);
    if (k == 0) top = value;
    const double weight = exp(fmin(value - top, 700));
    total += weight;
    if (k == 0 || gsl_rng_uniform(rng) * total < weight)
      memcpy(v, r->point, u->dim * sizeof *v);
  }
}

static void effects(const void *self, const double *theta, const le_rows *rows, const gsl_rng *rng,
                    double *out, double *scratch)
{
  const mixed *model = self;
  room r = place(model, le_aligned(scratch));
  unit *u = &r.unit;
  for (size_t g = 0; g < rows->n; g++, out += model->dim) {
    le_unit_open(u, rows->values + g * rows->width);
    le_unit_at(u, theta);
    le_unit_climb(u);
    if (rng) draw_effects(&r, rng, u->trial);
    const double *v = rng ? u->trial : u->v;
    for (size_t f = 0; f < model->factors; f++)
      for (size_t l = 0; l < u->levels[f]; l++)
        le_lower_matvec(u->root + f * EFFECTS_SQUARED, model->factor[f].q,
                        v + u->first[f] + l * model->factor[f].q,
                        out + u->first[f] + l * model->factor[f].q);
  }
}

/* A normal density is quadratic in its coefficients. */
static void find_steps(const mixed *model, const double *theta, double *step)
{
  const glm *base = model->base;
  const double unit = base->family->squares && !model->by_row
                        ? base->family->further ? exp(theta[model->scales]) : base->known : 1;
  le_mixed_steps(base->priors.d, model->priors.d, model->size, unit, step);
}

static le_status log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                              double *grad, double *hess, double *scratch)
{
  const size_t d = ((const mixed *)self)->priors.d;
  double *step = scratch, *room = step + d;
  find_steps(self, theta, step);
  return le_mixed_differences(self, d, log_lik_grad, theta, rows, step, grad, hess, room,
                              room + le_mixed_differences_room(d));
}

/* Of several factors: points of the rule depend on all parameters. */
static le_status crossed_grad(const void *self, size_t m, const double *theta, const le_rows *rows,
                              double *value, double *grad, double *scratch)
{
  const size_t d = ((const mixed *)self)->priors.d;
  double *step = scratch, *room = step + d;
  find_steps(self, theta, step);
  return le_mixed_slopes(self, d, log_lik, m, theta, rows, step, value, grad, room,
                         room + le_mixed_differences_room(d));
}

#define SHARED                                                                                     \
  EFFECTS,                                                                                         \
  .create = le_mixed_create,                                                                       \
  .destroy = le_mixed_destroy,                                                                     \
  .width = le_mixed_width,                                                                         \
  .to_user = le_mixed_to_user,                                                                     \
  .start = le_mixed_start,                                                                         \
  .start_scratch = le_mixed_start_scratch

/* One factor. */
const le_model_ops le_grouped_model = {
  SHARED,
  .name = "grouped_regression",
  .traits = LE_MODEL_UNITS,
  .log_lik_grad = log_lik_grad,
  .log_lik_hess = log_lik_hess,
};
/* Units of several factors. */
const le_model_ops le_crossed_model = {
  SHARED,
  .name = "crossed_regression",
  .traits = LE_MODEL_UNITS | LE_MODEL_DIFFERENCES,
  .log_lik_grad = crossed_grad,
};
