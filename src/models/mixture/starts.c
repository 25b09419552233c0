/* Starting points from the rows, for finding posterior modes.
 *
 * Rows are divided into cells around seeds, chosen by k-means++ on columns of equal variance. One
 * quarter of the starts makes each cell a component. One quarter has fewer cells than components,
 * because with more components than clusters there are posterior modes with empty components. Half
 * have more cells and join some, because one component may have to cover several clusters: at
 * random, or cells that are close to each other. A few EM steps then move towards the mode.
 *
 * With fewer components than clusters there is a mode for each way of joining clusters, and their
 * masses differ by thousands of nats. Some starts are therefore improved: two components are
 * joined and a third is split, again and again, by a random walk among modes. */
#include "models/mixture/parts.h"

#include "core/rows.h"
#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>

static const double JOIN_NOISE = 2;
/* One start of IMPROVED is improved, by ATTEMPTS times the number of components. A step down is
 * accepted with probability exp(-step / heat), where the heat is HEAT times the square root of the
 * number of rows: the order of these modes among more rows may differ by such amounts. */
enum { IMPROVED = 8, ATTEMPTS = 8 };
/* A component is split at so many standard deviations from its mean, into two of this share of its
 * variance. */
static const double HEAT = 0.25, SPLIT_AT = 0.8, SPLIT_VARIANCE = 0.4;
enum { EM_STEPS = 15, CELLS_MOST = 2 * MOST_COMPONENTS + 2, MOST_COLUMNS = 32 };

size_t le_mixture_start_scratch(const void *self, size_t n)
{
  const mixture *model = self;
  const size_t seeds = 2 * n + model->dimensions,
               em = le_mixture_scratch(self, 1, n);
  return (seeds > em ? seeds : em) + dim(self);
}

/* `off` is the mean minus the location. */
static void set_column(const mixture *model, size_t a, double off, double variance, double *theta)
{
  theta[scales_at(model) + a] = log(variance);
  theta[offsets_at(model) + a] = off / (model->mean_scale * sqrt(variance));
}

/* Sets one component and column to its mode given its rows: the sum of their shares, and the sums
 * of their distances and squared distances from `centre`. */
static void set_component(const mixture *model, size_t a, double centre, double count, double first,
                          double second, double *theta)
{
  const double s2 = model->mean_scale * model->mean_scale,
               off = centre - model->location[a % model->dimensions];
  const double step = (first - off / s2) / (count + 1 / s2), mean = off + step;
  const double square = fmax(second - 2 * step * first + step * step * count, 0) + mean * mean / s2;
  set_column(model, a, mean, (0.5 * square + model->rate[a]) / (0.5 * count + model->shape), theta);
}

/* The weights are proportional to count + more. */
static void set_weights(const mixture *model, const double *count, double more, double *theta)
{
  const size_t last = model->components - 1;
  for (size_t k = 0; k < last; k++) theta[k] = log((count[k] + more) / (count[last] + more));
}

/* Chooses the number of cells, the component that each belongs to, and whether close cells are
 * joined instead. */
static size_t choose_cells(const mixture *model, size_t n, const gsl_rng *rng, size_t *owner,
                           int *close)
{
  const size_t K = model->components, kind = gsl_rng_uniform_int(rng, 4);
  *close = kind == 3;
  size_t cells = kind == 0   ? K
                 : kind == 1 ? 1 + gsl_rng_uniform_int(rng, K)
                             : K + 1 + gsl_rng_uniform_int(rng, kind == 2 ? K + 1 : 3 * K + 1);
  if (cells > CELLS_MOST) cells = CELLS_MOST;
  if (cells > n) cells = n;
  for (size_t c = 0; c < cells; c++) owner[c] = c < K ? c : gsl_rng_uniform_int(rng, K);
  return cells;
}

/* The number and the mean of the rows of each cell. */
static void centre_cells(const le_rows *rows, const double *cell, size_t cells, double *count,
                         double *centre)
{
  const size_t p = rows->width;
  for (size_t i = 0; i < rows->n; i++) {
    const size_t c = (size_t)cell[i];
    count[c]++;
    for (size_t j = 0; j < p; j++) centre[c * p + j] += rows->values[i * p + j];
  }
  for (size_t k = 0; k < cells * p; k++) centre[k] /= count[k / p] > 0 ? count[k / p] : 1;
}

/* Joins cells until there are as many as components. The cost of joining two is the increase of the
 * sum of squares, times a random factor, so that starts differ. Cell c becomes component
 * owner[c]. */
static void join_cells(const mixture *model, const le_rows *rows, const double *cell, size_t cells,
                       const double *weight, const gsl_rng *rng, size_t *owner)
{
  const size_t p = model->dimensions;
  double count[CELLS_MOST] = {0}, centre[CELLS_MOST * MOST_COLUMNS] = {0};
  centre_cells(rows, cell, cells, count, centre);
  for (size_t c = 0; c < cells; c++) owner[c] = c;
  for (size_t left = cells; left > model->components; left--) {
    double least = INFINITY;
    size_t one = 0, other = 1;
    for (size_t a = 0; a < left; a++)
      for (size_t b = 0; b < a; b++) {
        double cost = 0;
        for (size_t j = 0; j < p; j++)
          cost += weight[j] * pow(centre[a * p + j] - centre[b * p + j], 2);
        cost *= count[a] * count[b] / (count[a] + count[b] + 1e-300) *
                exp(JOIN_NOISE * gsl_ran_gaussian_ziggurat(rng, 1));
        if (!(cost < least)) continue;
        least = cost;
        one = b;
        other = a;
      }
    const double total = count[one] + count[other];
    for (size_t j = 0; j < p && total > 0; j++)
      centre[one * p + j] = (count[one] * centre[one * p + j] +
                             count[other] * centre[other * p + j]) / total;
    count[one] = total;
    const size_t later = left - other - 1;
    memmove(count + other, count + other + 1, later * sizeof(double));
    memmove(centre + other * p, centre + (other + 1) * p, later * p * sizeof(double));
    for (size_t c = 0; c < cells; c++)
      owner[c] = owner[c] == other ? one : owner[c] - (owner[c] > other);
  }
}

static void seed_components(const mixture *model, const le_rows *rows, const gsl_rng *rng,
                            double *theta, double *scratch)
{
  const size_t n = rows->n, p = model->dimensions;
  size_t owner[CELLS_MOST];
  int close;
  const size_t cells = choose_cells(model, n, rng, owner, &close);
  double *cell = scratch, *weight = cell + n, count[MOST_COMPONENTS] = {0};
  le_rows_precisions(rows, weight);
  le_start_labels(rows, cells, weight, rng, cell, weight + p);
  if (close && cells > model->components && p <= MOST_COLUMNS)
    join_cells(model, rows, cell, cells, weight, rng, owner);
  for (size_t i = 0; i < n; i++) { /* replace the cell by its component */
    cell[i] = (double)owner[(size_t)cell[i]];
    count[(size_t)cell[i]]++;
  }
  for (size_t a = 0; a < model->components * p; a++) {
    const size_t k = a / p, j = a % p;
    double mean = count[k] > 0 ? 0 : model->location[j], square = 0;
    for (size_t i = 0; i < n; i++)
      if (cell[i] == (double)k) mean += rows->values[i * p + j] / count[k];
    for (size_t i = 0; i < n; i++)
      if (cell[i] == (double)k) square += pow(rows->values[i * p + j] - mean, 2);
    set_component(model, a, mean, count[k], 0, square, theta);
  }
  set_weights(model, count, model->concentration, theta);
}

/* Sets theta by EM steps; returns the log-likelihood before the last of them. */
static double em(const mixture *model, workspace *w, double *theta)
{
  const size_t K = model->components, p = model->dimensions;
  double log_lik = -INFINITY;
  for (int step = 0; step < EM_STEPS; step++) {
    double count[MOST_COMPONENTS];
    log_lik = le_mixture_moments(model, theta, w);
    if (!isfinite(log_lik)) return -INFINITY;
    for (size_t k = 0; k < K; k++) count[k] = w->moments[k * columns_of(model)];
    for (size_t a = 0; a < K * p; a++) {
      const double *moments = w->moments + a / p * columns_of(model) + 1 + 2 * (a % p),
                   sd = exp(0.5 * theta[scales_at(model) + a]);
      set_component(model, a, model->location[a % p] + w->st[a] * sd, count[a / p],
                    sd * moments[0], sd * sd * moments[1], theta);
    }
    set_weights(model, count, model->concentration, theta);
  }
  return log_lik;
}

typedef struct normal {
  double mean, variance;
} normal;

static normal column_of(const mixture *model, const double *theta, size_t a)
{
  const double variance = exp(theta[scales_at(model) + a]);
  return (normal){model->location[a % model->dimensions] +
                    theta[offsets_at(model) + a] * model->mean_scale * sqrt(variance),
                  variance};
}

/* Two components become one, and another becomes two. */
static void join_and_split(const mixture *model, const gsl_rng *rng, double *theta)
{
  const size_t K = model->components, p = model->dimensions;
  const size_t one = gsl_rng_uniform_int(rng, K),
               other = (one + 1 + gsl_rng_uniform_int(rng, K - 1)) % K;
  size_t split = gsl_rng_uniform_int(rng, K);
  while (split == one || split == other) split = (split + 1) % K;
  double weight[MOST_COMPONENTS];
  le_mixture_weights(model, theta, weight);
  const double sum = weight[one] + weight[other], share = sum > 0 ? weight[one] / sum : 0.5;
  for (size_t j = 0; j < p; j++) {
    const normal a = column_of(model, theta, one * p + j),
                 b = column_of(model, theta, other * p + j),
                 whole = column_of(model, theta, split * p + j);
    const double away = a.mean - b.mean, location = model->location[j],
                 step = SPLIT_AT * sqrt(whole.variance) * (gsl_rng_uniform(rng) < 0.5 ? -1 : 1),
                 variance = SPLIT_VARIANCE * whole.variance;
    set_column(model, one * p + j, share * a.mean + (1 - share) * b.mean - location,
               share * a.variance + (1 - share) * b.variance + share * (1 - share) * away * away,
               theta);
    set_column(model, split * p + j, whole.mean + step - location, variance, theta);
    set_column(model, other * p + j, whole.mean - step - location, variance, theta);
  }
  weight[one] = sum;
  weight[split] /= 2;
  weight[other] = weight[split];
  set_weights(model, weight, 1e-6, theta);
}

static void improve(const mixture *model, workspace *w, const gsl_rng *rng, double level,
                    double *theta, double *trial)
{
  const double heat = HEAT * sqrt((double)w->n);
  for (size_t attempt = 0; attempt < ATTEMPTS * model->components; attempt++) {
    memcpy(trial, theta, dim(model) * sizeof(double));
    join_and_split(model, rng, trial);
    const double log_lik = em(model, w, trial);
    if (!(log_lik > level + heat * log(gsl_rng_uniform_pos(rng)))) continue;
    level = log_lik;
    memcpy(theta, trial, dim(model) * sizeof(double));
  }
}

void le_mixture_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                      double *scratch)
{
  const mixture *model = self;
  const int improved = model->components > 2 && gsl_rng_uniform_int(rng, IMPROVED) == 0;
  seed_components(model, rows, rng, theta, scratch + dim(model));
  workspace w = le_mixture_divide(model, rows, scratch + dim(model));
  const double log_lik = em(model, &w, theta);
  if (improved) improve(model, &w, rng, log_lik, theta, scratch);
}
