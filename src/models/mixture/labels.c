/* Relabelling the components of a mixture.
 *
 * Theta is relabelled by the best matching of its components with those of the reference. The
 * distance of a component of theta and one of the reference depends only on these two, so the sum
 * over the best matching is the same for all relabellings of theta. Almost surely exactly one of
 * them has the best matching in the order of the reference. */
#include "models/mixture/parts.h"

#include <float.h>

double le_mixture_log_symmetry(const void *self)
{
  return lgamma((double)((const mixture *)self)->components + 1);
}

static double coordinate(const mixture *model, const double *theta, size_t k, size_t c)
{
  return c == 0 ? log_ratio(model, theta, k) : theta[place_of(model, k, c)];
}

/* Whether the coordinates of two components (weight, standardised means, log variances) are nearly
 * the same: Newton climbs end with an error of this size. */
static int are_alike(const mixture *model, const double *theta, size_t a, size_t b)
{
  const double near = 0.1;
  for (size_t c = 0; c < columns_of(model); c++)
    if (fabs(coordinate(model, theta, a, c) - coordinate(model, theta, b, c)) > near) return 0;
  return 1;
}

/* Groups of components that are nearly the same, by their first one. To be alike is not transitive,
 * so the number of relabellings and relabelling itself must use the same groups. */
static void find_groups(const mixture *model, const double *theta, size_t *group)
{
  for (size_t s = 0; s < model->components; s++)
    for (group[s] = 0; group[s] < s; group[s]++)
      if (group[group[s]] == group[s] && are_alike(model, theta, s, group[s])) break;
}

double le_mixture_log_orbit(const void *self, const double *theta)
{
  const mixture *model = self;
  size_t group[MOST_COMPONENTS], size[MOST_COMPONENTS] = {0};
  double orbit = le_mixture_log_symmetry(self);
  find_groups(model, theta, group);
  for (size_t s = 0; s < model->components; s++) orbit -= log((double)++size[group[s]]);
  return orbit;
}

/* For every pair of a component and one of the reference: the squared difference of the means
 * over the sum of the variances, plus the differences of u and, with a small weight, of the log
 * weights. */
static void distances(const mixture *model, const double *theta, const double *reference,
                      double (*sum)[MOST_COMPONENTS])
{
  const size_t components = model->components, p = model->dimensions, n = components * p;
  double weight[MOST_COMPONENTS], reference_weight[MOST_COMPONENTS]; /* logs */
  double t[TOGETHER], u[TOGETHER], apart[TOGETHER];
  le_mixture_log_weights(model, theta, weight);
  le_mixture_log_weights(model, reference, reference_weight);
  for (size_t k = 0; k < components; k++) {
    const double *own_t = theta + offsets_at(model) + k * p,
                 *own_u = theta + scales_at(model) + k * p;
    size_t slot = 0, j = 0, at = 0;
    for (size_t s = 0; s < components; s++)
      sum[k][s] = 0.1 * (weight[k] - reference_weight[s]) * (weight[k] - reference_weight[s]);
    for (size_t from = 0; from < n; from += TOGETHER) {
      const size_t here = n - from < TOGETHER ? n - from : TOGETHER;
      for (size_t a = 0; a < here; a++, j = j + 1 < p ? j + 1 : 0) {
        t[a] = own_t[j];
        u[a] = own_u[j];
      }
      le_mixture_kernels(model)->apart(here, model->mean_scale, t, u,
                                       reference + offsets_at(model) + from,
                                       reference + scales_at(model) + from, apart);
      for (size_t a = 0; a < here; a++) {
        sum[k][slot] += apart[a];
        if (++at == p) {
          at = 0;
          slot++;
        }
      }
    }
  }
}

/* Converts distances to the costs of the assignment. The logarithm prevents one distant component
 * from determining how all others are matched. */
static void cost_of_distances(const mixture *model, double (*cost)[MOST_COMPONENTS])
{
  for (size_t k = 0; k < model->components; k++)
    for (size_t s = 0; s < model->components; s++)
      cost[k][s] = fmin(log1p(cost[k][s]), 1e3); /* 1e3 if it is NaN */
}

/* The cheapest assignment by shortest augmenting paths (Hungarian method in the form of Jonker and
 * Volgenant): taken[slot] is the component assigned to the slot. Index K represents the component
 * not yet assigned. */
static void assign(size_t n, double (*cost)[MOST_COMPONENTS], size_t *taken)
{
  double by_component[MOST_COMPONENTS] = {0}, by_slot[MOST_COMPONENTS + 1] = {0};
  size_t owner[MOST_COMPONENTS + 1], came_from[MOST_COMPONENTS + 1] = {0};
  for (size_t slot = 0; slot <= n; slot++) owner[slot] = n;
  for (size_t k = 0; k < n; k++) {
    double shortest[MOST_COMPONENTS];
    char reached[MOST_COMPONENTS + 1] = {0};
    size_t slot = n;
    owner[n] = k;
    for (size_t s = 0; s < n; s++) shortest[s] = INFINITY;
    do {
      double step = INFINITY;
      size_t component = owner[slot], next = 0;
      reached[slot] = 1;
      for (size_t s = 0; s < n; s++) {
        if (reached[s]) continue;
        double reduced = cost[component][s] - by_component[component] - by_slot[s];
        if (reduced < shortest[s]) {
          shortest[s] = reduced;
          came_from[s] = slot;
        }
        if (shortest[s] < step) {
          step = shortest[s];
          next = s;
        }
      }
      for (size_t s = 0; s <= n; s++)
        if (reached[s]) {
          by_component[owner[s]] += step;
          by_slot[s] -= step;
        } else if (s < n) {
          shortest[s] -= step;
        }
      slot = next;
    } while (owner[slot] != n);
    while (slot != n) {
      owner[slot] = owner[came_from[slot]];
      slot = came_from[slot];
    }
  }
  memcpy(taken, owner, n * sizeof *taken);
}

/* Whether the identity costs the same up to rounding; only slots that would change are compared. */
static int identity_is_best(size_t n, double (*cost)[MOST_COMPONENTS], const size_t *taken)
{
  double gain = 0, size = 0;
  for (size_t s = 0; s < n; s++) {
    gain += cost[s][s] - cost[taken[s]][s];
    size += taken[s] == s ? 0 : cost[s][s] + cost[taken[s]][s];
  }
  return gain <= 4 * DBL_EPSILON * size;
}

static int nearest_are_own(size_t n, double (*cost)[MOST_COMPONENTS])
{
  for (size_t k = 0; k < n; k++)
    for (size_t s = 0; s < n; s++)
      if (!(cost[k][s] >= cost[k][k])) return 0;
  return 1;
}

/* Whether component k comes before l: the first coordinate in which they differ decides, and the
 * weights come last. */
static int comes_before(const mixture *model, const double *theta, size_t k, size_t l)
{
  const size_t columns = columns_of(model);
  for (size_t c = 1; c <= columns; c++) {
    const double one = coordinate(model, theta, k, c % columns),
                 other = coordinate(model, theta, l, c % columns);
    if (one != other) return one < other;
  }
  return 0;
}

/* If components of the reference are equal, for example all without observations, the order of the
 * components matched to them is arbitrary; sorting makes it unique. Returns whether nothing else
 * has to be done. */
static int settle_alike(const mixture *model, const double *reference, const double *theta,
                        size_t *taken)
{
  const size_t K = model->components;
  size_t group[MOST_COMPONENTS];
  int alone = 1;
  find_groups(model, reference, group);
  for (size_t s = 0; s < K; s++) alone = alone && group[taken[s]] == group[s];
  for (size_t s = 0; s < K; s++)
    for (size_t later = s + 1; later < K; later++)
      if (group[s] == group[later] && comes_before(model, theta, taken[later], taken[s])) {
        size_t swap = taken[s];
        taken[s] = taken[later];
        taken[later] = swap;
      }
  return alone;
}

static void permute(const mixture *model, const size_t *taken, double *theta)
{
  const size_t K = model->components;
  double old[MOST_COMPONENTS];
  for (size_t c = 0; c < columns_of(model); c++) {
    for (size_t k = 0; k < K; k++) old[k] = coordinate(model, theta, k, c);
    const double level = c == 0 ? old[taken[K - 1]] : 0;
    for (size_t s = 0; s < (c == 0 ? K - 1 : K); s++)
      theta[place_of(model, s, c)] = old[taken[s]] - level;
  }
}

int le_mixture_relabel(const void *self, const double *reference, double *theta)
{
  const mixture *model = self;
  size_t components = model->components, taken[MOST_COMPONENTS];
  double cost[MOST_COMPONENTS][MOST_COMPONENTS];
  distances(model, theta, reference, cost);
  /* usually each component is nearest to its own counterpart, and no assignment is needed */
  const int settled = nearest_are_own(components, cost);
  if (!settled) {
    cost_of_distances(model, cost);
    assign(components, cost, taken);
  }
  if (settled || identity_is_best(components, cost, taken))
    for (size_t s = 0; s < components; s++) taken[s] = s;
  const int alike = settle_alike(model, reference, theta, taken);
  for (size_t s = 0; s < components; s++)
    if (taken[s] != s) {
      permute(model, taken, theta);
      return alike ? 2 : 1;
    }
  return 0;
}
