/* Groups with one effect, many particles side by side (models/mixed/lanes.h). */
#include "models/mixed/lanes.h"

#include "base/arrays.h"

#include <math.h>

/* Particles at once, and pairs of rows and particles, unless a group has more rows. */
enum { NEWTON_MOST = 50, OUT_COLUMNS = 4, TOGETHER = 64, PAIRS = 1024 };
/* The last step of the climb in standard deviations, whose end is then nearer by its square. */
static const double SETTLED = 3e-3;

/* Pair i * n + r is row i and particle r. */
typedef struct lanes {
  const mixed *model;
  const glm *base;
  size_t n, rows, tiles; /* particles, rows of the group, tiles of pairs */
  const double *data, *theta;
  int by_particle; /* whether functions of further parameters differ */
  glm_point same;
  double *response, *second, constant; /* of rows, as the family needs them */
  /* tiles of pairs: both columns of the response, the linear predictor without the effect, its
   * derivative by v; what kernels write; functions of further parameters */
  double *y, *extra, *fixed, *load, *out, *parts, *point;
  /* of particles */
  double *root, *v, *low, *high, *slope, *curve, *done, *sd, *top, *sum, *along, *by_root, *at,
    *moved;
  double *weight;     /* of nodes, TOGETHER numbers for each */
  int wide;           /* whether they are those of the wide rule */
  double *again, *again_grad; /* parameters of particles that need it, and their gradients */
  double *row_slopes; /* weighted slopes by each predictor: pairs */
} lanes;

int le_lanes_possible(const mixed *model)
{
  return model->factors == 1 && model->q == 1 && model->node && model->part[0][0] == 0 &&
         !model->base->family->several;
}

static size_t tiles_most(const mixed *model)
{
  return tiles_of(model->most > PAIRS ? model->most : PAIRS);
}

/* Returns the numbers that are needed; without room nothing else. */
static size_t place(lanes *l, const mixed *model, double *room)
{
  portion from = {room, 0};
  const size_t tiles = tiles_most(model), further = model->base->family->further;
  double **pairs[] = {&l->y, &l->extra, &l->fixed, &l->load};
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
    *pairs[k] = take(&from, tiles * TILE);
  l->out = take(&from, tiles * OUT_COLUMNS * TILE);
  l->parts = take(&from, further ? tiles * GLM_SUMS * TILE : 0);
  l->point = take(&from, further ? tiles * POINT_NUMBERS * TILE : 0);
  l->row_slopes = take(&from, tiles * TILE * (1 + further));
  l->response = take(&from, model->most);
  l->second = take(&from, model->most);
  double **one[] = {&l->root, &l->v, &l->low, &l->high, &l->slope, &l->curve, &l->done,
                    &l->sd, &l->top, &l->sum, &l->along, &l->by_root, &l->at, &l->moved};
  for (size_t k = 0; k < sizeof one / sizeof *one; k++) *one[k] = take(&from, TOGETHER);
  const size_t nodes = model->wide > model->nodes ? model->wide : model->nodes;
  l->weight = take(&from, nodes * TOGETHER);
  l->again = take(&from, TOGETHER * model->priors.d);
  l->again_grad = take(&from, TOGETHER * model->priors.d);
  return from.used;
}

size_t le_lanes_scratch(const mixed *model)
{
  lanes l;
  return place(&l, model, NULL);
}

/* ---- the group and the particles ---- */

static const double *row_of(const lanes *l, size_t i) { return l->data + i * l->model->row; }

static double effect_of(const lanes *l, size_t i) { return row_of(l, i)[l->model->column[0][0]]; }

static void open(lanes *l, const double *values)
{
  const glm *base = l->base;
  const double n = values[0], most = (double)l->model->most;
  l->rows = (size_t)(n >= 0 ? n < most ? n : most : 0);
  l->data = values + l->model->head;
  l->constant = 0;
  for (size_t i = 0; i < l->rows; i += LANES) {
    double y[LANES] = {0}, extra[LANES] = {0}, constant[LANES] = {0};
    const size_t some = l->rows - i < LANES ? l->rows - i : LANES;
    for (size_t r = 0; r < some; r++) {
      const double *end = row_of(l, i + r) + base->width - 1;
      y[r] = end[0];
      extra[r] = base->extra ? end[-1] : 1;
    }
    glm_kernels_of(base)->responses(some, extra, y, constant);
    memcpy(l->response + i, y, some * sizeof *y);
    memcpy(l->second + i, extra, some * sizeof *y);
    for (size_t r = 0; r < some; r++) l->constant += constant[r];
  }
}

/* Functions of the further parameters of each pair. */
static void find_points(lanes *l)
{
  const glm *base = l->base;
  const size_t d = l->model->priors.d, known = base->family->further, all = l->rows * l->n;
  double numbers[POINT_NUMBERS] = {0};
  for (size_t k = 0; k < l->tiles * TILE; k++) {
    const size_t i = k / l->n;
    double *to = l->point + k / TILE * POINT_NUMBERS * TILE + k % TILE;
    if (k < all && (l->model->by_row || i == 0)) {
      const double *theta = l->theta + k % l->n * d, *row = row_of(l, i);
      double further[GLM_FURTHER] = {0};
      glm_point point = {{0}, {0}};
      glm_further_of_row(base, row, theta, further);
      if (known < GLM_FURTHER) further[known] = base->known;
      base->family->point(further, 1, &point);
      memcpy(numbers, point.setting, sizeof point.setting);
      memcpy(numbers + GLM_SETTINGS, point.row, sizeof point.row);
    } else if (k < all) { /* as in the first row */
      const size_t first = k % l->n;
      const double *from = l->point + first / TILE * POINT_NUMBERS * TILE + first % TILE;
      for (size_t a = 0; a < POINT_NUMBERS; a++) numbers[a] = from[a * TILE];
    }
    for (size_t a = 0; a < POINT_NUMBERS; a++) to[a * TILE] = numbers[a];
  }
}

static void set_particles(lanes *l)
{
  const mixed *model = l->model;
  const glm *base = l->base;
  const size_t d = model->priors.d, sd = model->factor[0].block[0].sd;
  for (size_t r = 0; r < l->n; r++) l->root[r] = exp(l->theta[r * d + sd]);
  for (size_t i = 0, k = 0; i < l->rows; i++) {
    const double *row = row_of(l, i), z = effect_of(l, i);
    for (size_t r = 0; r < l->n; r++, k++) {
      l->y[k] = l->response[i];
      l->extra[k] = l->second[i];
      l->fixed[k] = glm_predictor(row, base->covariates, base->offset, l->theta + r * d);
      l->load[k] = z * l->root[r];
    }
  }
  for (size_t k = l->rows * l->n; k < l->tiles * TILE; k++)
    l->y[k] = l->extra[k] = l->fixed[k] = l->load[k] = 0;
  if (l->by_particle) find_points(l);
  else if (base->family->point) l->same = base->point;
}

static size_t pairs_in(const lanes *l, size_t t) { return rows_in_tile(l->rows * l->n, t); }

static double *out_of(const lanes *l, size_t t) { return l->out + t * OUT_COLUMNS * TILE; }

/* Runs the kernel on all pairs at effects `v`. */
static void run(lanes *l, const double *v, int wanted)
{
  double unused[GLM_SUMS * LANES] = {0};
  for (size_t t = 0, r = 0; t < l->tiles; t++) {
    const size_t here = pairs_in(l, t);
    const double *fixed = l->fixed + t * TILE, *load = l->load + t * TILE;
    double *out = out_of(l, t);
    for (size_t k = 0; k < here; k++) {
      out[k] = fixed[k] + load[k] * v[r];
      r = r + 1 == l->n ? 0 : r + 1;
    }
    for (size_t k = here; k < TILE; k++) out[k] = 0;
    glm_kernels_of(l->base)->rows(
      wanted | (l->by_particle ? WANT_BY_ROW : 0),
      &(glm_tile){here, l->y + t * TILE, l->extra + t * TILE},
      l->by_particle ? l->point + t * POINT_NUMBERS * TILE : l->same.setting,
      &(glm_out){out, l->by_particle ? l->parts + t * GLM_SUMS * TILE : NULL, unused});
  }
}

/* ---- the mode ---- */

/* The slope of the log density of rows and effect at v, and minus its curvature. */
static void slopes_at(lanes *l, const double *v)
{
  run(l, v, WANT_SLOPE | WANT_CURVE);
  for (size_t r = 0; r < l->n; r++) {
    l->slope[r] = -v[r];
    l->curve[r] = 1;
  }
  for (size_t t = 0, r = 0; t < l->tiles; t++) {
    const double *out = out_of(l, t), *load = l->load + t * TILE;
    for (size_t k = 0; k < pairs_in(l, t); k++) {
      l->slope[r] += load[k] * out[k];
      l->curve[r] -= load[k] * load[k] * out[TILE + k];
      r = r + 1 == l->n ? 0 : r + 1;
    }
  }
}

/* Newton's method within the bracket that slopes have left: the density is log-concave. The bracket
 * is halved where a step is more than half as long as the last one: beyond the mode of a Poisson
 * density Newton's steps change the linear predictor by one only. A particle that has arrived stays
 * where it is, so that it does not depend on the others. */
static void climb(lanes *l)
{
  for (size_t r = 0; r < l->n; r++) {
    l->v[r] = l->done[r] = 0;
    l->low[r] = -INFINITY;
    l->high[r] = INFINITY;
    l->sd[r] = 1;
    l->moved[r] = INFINITY;
  }
  for (size_t k = 0, left = l->n; k < NEWTON_MOST && left > 0; k++) {
    slopes_at(l, l->v);
    for (size_t r = 0; r < l->n; r++) {
      if (l->done[r]) continue;
      const double curve = l->curve[r] > 1 ? l->curve[r] : 1;
      double next = l->v[r] + l->slope[r] / curve;
      l->sd[r] = 1 / sqrt(curve);
      if (l->slope[r] > 0) l->low[r] = l->v[r];
      else l->high[r] = l->v[r];
      const double step = fabs(next - l->v[r]);
      const int slow = step > 0.5 * l->moved[r] && step > SETTLED * l->sd[r] &&
                       isfinite(l->low[r]) && isfinite(l->high[r]);
      if (slow || !(next > l->low[r] && next < l->high[r])) {
        /* the slope falls by at least one for each unit */
        const double far = l->v[r] + l->slope[r];
        next = 0.5 * ((isfinite(l->low[r]) ? l->low[r] : far) +
                      (isfinite(l->high[r]) ? l->high[r] : far));
      }
      if (!isfinite(next) || fabs(next - l->v[r]) <= SETTLED * l->sd[r]) {
        l->done[r] = 1;
        left--;
      }
      l->moved[r] = fabs(next - l->v[r]);
      if (isfinite(next)) l->v[r] = next;
    }
  }
}

/* ---- value and gradient ---- */

static size_t nodes_of(const lanes *l) { return l->wide ? l->model->wide : l->model->nodes; }

static double node_of(const lanes *l, size_t j)
{
  return l->wide ? l->model->wide_node[j] : l->model->node[j];
}

/* Particles without weight there stay at their modes: far from it slopes may be infinite. */
static void go_to_node(const lanes *l, size_t j, const double *weight)
{
  const double node = node_of(l, j);
  for (size_t r = 0; r < l->n; r++)
    l->at[r] = !weight || weight[r] > 0 ? l->v[r] + l->sd[r] * node : l->v[r];
}

static void weigh_nodes(lanes *l, double *value)
{
  const mixed *model = l->model;
  const size_t n = l->n, nodes = nodes_of(l);
  for (size_t r = 0; r < n; r++) l->top[r] = -INFINITY, l->sum[r] = 0;
  for (size_t j = 0; j < nodes; j++) {
    double *weight = l->weight + j * TOGETHER;
    const double node = node_of(l, j),
                 own = 0.5 * node * node +
                       (l->wide ? model->wide_log_weight[j] : model->log_weight[j]);
    go_to_node(l, j, NULL);
    run(l, l->at, WANT_VALUE | WANT_EACH);
    for (size_t r = 0; r < n; r++) weight[r] = own - 0.5 * l->at[r] * l->at[r];
    for (size_t t = 0, r = 0; t < l->tiles; t++)
      for (size_t k = 0; k < pairs_in(l, t); k++) {
        weight[r] += out_of(l, t)[k];
        r = r + 1 == n ? 0 : r + 1;
      }
    for (size_t r = 0; r < n; r++)
      if (weight[r] > l->top[r]) l->top[r] = weight[r];
  }
  for (size_t j = 0; j < nodes; j++) {
    double *weight = l->weight + j * TOGETHER;
    for (size_t r = 0; r < n; r++) weight[r] = weight[r] > -INFINITY ? weight[r] - l->top[r] : -750;
    le_arrays(model->base->simd)->exp(n, 1, 0, weight, weight);
    for (size_t r = 0; r < n; r++) l->sum[r] += weight[r];
  }
  const double constant = l->constant +
                          (l->by_particle ? 0 : (double)l->rows * l->same.row[SUM_VALUE]);
  for (size_t r = 0; r < n; r++)
    value[r] = l->top[r] > -INFINITY ? constant + l->top[r] + log(l->sum[r] * l->sd[r])
                                     : -INFINITY;
}

/* Whether the outermost nodes of a particle have a share that is not negligible, or its linear
 * predictors change by so much between nodes that a density may have an edge there. */
static int needs_wide(const lanes *l, size_t r)
{
  if (!l->model->wide) return 0;
  for (size_t i = 0; i < l->rows; i++)
    if (l->sd[r] * fabs(l->load[i * l->n + r]) > MIXED_EDGE) return 1;
  const double outer = fmax(l->weight[r], l->weight[(l->model->nodes - 1) * TOGETHER + r]);
  return !(outer <= l->model->outer_share * l->sum[r]);
}

/* Adds the slopes of pairs at a node. */
static void add_node(lanes *l, const double *weight)
{
  const size_t further = l->base->family->further, step = l->tiles * TILE;
  run(l, l->at, l->by_particle ? WANT_VALUE | WANT_SLOPE : WANT_SLOPE);
  for (size_t r = 0; r < l->n; r++) l->along[r] = 0;
  for (size_t t = 0, r = 0; t < l->tiles; t++) {
    const double *out = out_of(l, t), *parts = l->parts + t * GLM_SUMS * TILE;
    double *to = l->row_slopes + t * TILE;
    for (size_t k = 0; k < pairs_in(l, t); k++) {
      to[k] += weight[r] * out[k];
      l->along[r] += l->load[t * TILE + k] * out[k];
      for (size_t a = 0; a < further; a++)
        to[(a + 1) * step + k] += weight[r] * parts[(SUM_A + a) * TILE + k];
      r = r + 1 == l->n ? 0 : r + 1;
    }
  }
  for (size_t r = 0; r < l->n; r++) l->by_root[r] += weight[r] * l->along[r] * l->at[r];
}

static void add_gradients(lanes *l, double *grad)
{
  const mixed *model = l->model;
  const glm *base = l->base;
  const size_t d = model->priors.d, further = base->family->further, step = l->tiles * TILE;
  memset(l->row_slopes, 0, step * (1 + further) * sizeof *l->row_slopes);
  memset(l->by_root, 0, l->n * sizeof *l->by_root);
  for (size_t j = 0; j < nodes_of(l); j++) {
    double *weight = l->weight + j * TOGETHER;
    for (size_t r = 0; r < l->n; r++) weight[r] /= l->sum[r];
    go_to_node(l, j, weight);
    add_node(l, weight);
  }
  for (size_t i = 0, k = 0; i < l->rows; i++) {
    const double *row = row_of(l, i);
    for (size_t r = 0; r < l->n; r++, k++) {
      double *to = grad + r * d;
      for (size_t j = 0; j < base->covariates; j++) add_finite(l->row_slopes[k] * row[j], &to[j]);
      for (size_t a = 0; a < further; a++) {
        const glm_part *part = &base->part[a];
        const double slope = l->row_slopes[(a + 1) * step + k];
        for (size_t j = 0; j < part->columns; j++)
          add_finite(slope * (part->formula ? row[part->at + j] : 1), &to[part->first + j]);
      }
    }
  }
  for (size_t r = 0; r < l->n; r++)
    add_finite(l->by_root[r], &grad[r * d + model->factor[0].block[0].sd]);
}

static void begin(lanes *l, size_t n, const double *theta, int wide)
{
  l->n = n;
  l->theta = theta;
  l->wide = wide;
  l->tiles = tiles_of(l->rows * n);
  set_particles(l);
  climb(l);
}

/* At most TOGETHER particles: those that need it once more by the wide rule. */
static void evaluate(lanes *l, size_t n, const double *theta, double *value, double *grad)
{
  const size_t d = l->model->priors.d;
  size_t which[TOGETHER], some = 0;
  double found[TOGETHER];
  begin(l, n, theta, 0);
  weigh_nodes(l, value);
  for (size_t r = 0; r < n; r++)
    if (needs_wide(l, r)) which[some++] = r;
  for (size_t k = 0; k < some; k++) {
    memcpy(l->again + k * d, theta + which[k] * d, d * sizeof *theta);
    for (size_t j = 0; j < nodes_of(l); j++) l->weight[j * TOGETHER + which[k]] = 0;
  }
  if (grad && some < n) add_gradients(l, grad);
  if (some == 0) return;
  begin(l, some, l->again, 1);
  weigh_nodes(l, found);
  for (size_t k = 0; k < some; k++) value[which[k]] = found[k];
  if (!grad) return;
  memset(l->again_grad, 0, some * d * sizeof *grad);
  add_gradients(l, l->again_grad);
  for (size_t k = 0; k < some; k++)
    for (size_t j = 0; j < d; j++) grad[which[k] * d + j] += l->again_grad[k * d + j];
}

void le_lanes_evaluate(const mixed *model, const double *values, size_t m, const double *theta,
                       double *value, double *grad, double *scratch)
{
  const size_t d = model->priors.d;
  lanes l = {.model = model, .base = model->base,
             .by_particle = model->base->family->further > 0};
  place(&l, model, scratch);
  open(&l, values);
  size_t most = l.rows > 0 && l.rows < PAIRS ? PAIRS / l.rows : 1;
  if (most > TOGETHER) most = TOGETHER;
  for (size_t i = 0; i < m; i += most) {
    evaluate(&l, m - i < most ? m - i : most, theta + i * d, value + i, grad ? grad + i * d : NULL);
  }
}
