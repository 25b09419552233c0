/* One-dimensional integrals by Gauss-Legendre rules on panels around the peaks. */
#include "base/quadrature.h"

#include <gsl/gsl_integration.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sort_double.h>
#include <math.h>
#include <stdlib.h>

enum { NODES = 20, MOST_PEAKS = 64, MOST_ENDS = 8192, GOLDEN_STEPS = 100, HALVINGS = 6 };
static const double GRID = 0.05;     /* between points at which peaks are looked for */
static const double LONGEST = 0.5;   /* panel */
static const double NEGLIGIBLE = 60; /* nats below the highest peak */
static const double GROWTH = 1.5;    /* of the panels with their distance from a peak */
static const double CONVERGED = 1e-12, ACCEPTED = 1e-9;

typedef struct peak {
  double at, value, width;
} peak;

static double value_at(const le_quadrature *q, double t)
{
  const double value = q->log_density(q->self, t);
  return isnan(value) ? -INFINITY : value;
}

/* ---- peaks ---- */

static double golden_section(const le_quadrature *q, double from, double to)
{
  const double ratio = 0.5 * (sqrt(5) - 1);
  double left = to - ratio * (to - from), right = from + ratio * (to - from);
  double at_left = value_at(q, left), at_right = value_at(q, right);
  for (int step = 0; step < GOLDEN_STEPS && right > left; step++) {
    if (at_left > at_right) {
      to = right, right = left, at_right = at_left;
      left = to - ratio * (to - from), at_left = value_at(q, left);
    } else {
      from = left, left = right, at_left = at_right;
      right = from + ratio * (to - from), at_right = value_at(q, right);
    }
  }
  return 0.5 * (from + to);
}

/* The distance at which the function is half a nat lower, on the nearer side. */
static double width_of(const le_quadrature *q, double at, double value)
{
  double width = 1e-8;
  while (width < LONGEST && value - value_at(q, at + width) < 0.5 &&
         value - value_at(q, at - width) < 0.5)
    width *= 2;
  return width;
}

static size_t find_peaks(const le_quadrature *q, double from, double to, peak *peaks, double *top)
{
  size_t n = 0;
  const size_t points = (size_t)((to - from) / GRID) + 2;
  double before = -INFINITY, here = value_at(q, from);
  *top = -INFINITY;
  for (size_t k = 0; k < points && n < MOST_PEAKS; k++) {
    const double t = from + (double)k * GRID, after = value_at(q, t + GRID);
    if (here > before && here >= after) {
      const double at = golden_section(q, t - GRID, t + GRID), value = value_at(q, at);
      const double width = width_of(q, at, value);
      peaks[n++] = (peak){at, value, width};
      *top = fmax(*top, value);
    }
    before = here, here = after;
  }
  return n;
}

/* ---- panels ---- */

/* Ends of panels from a peak in one direction, until the function is negligible. */
static size_t add_ends(const le_quadrature *q, const peak *peak, double direction, double limit,
                       double floor, double *end, size_t n)
{
  double length = 0.5 * peak->width, t = peak->at;
  while (n < MOST_ENDS && direction * (limit - t) > 0) {
    t += direction * length;
    end[n++] = t;
    if (value_at(q, t) < floor) break;
    length = fmin(length * GROWTH, LONGEST);
  }
  return n;
}

static size_t panel_ends(const le_quadrature *q, double from, double to, double *end, double *top)
{
  peak peaks[MOST_PEAKS];
  const size_t found = find_peaks(q, from, to, peaks, top);
  size_t n = 0;
  const double outside = fmax(value_at(q, from), value_at(q, to));
  if (!isfinite(*top) || outside > *top - NEGLIGIBLE) return 0;
  for (size_t i = 0; i < found; i++) {
    if (peaks[i].value < *top - NEGLIGIBLE || n >= MOST_ENDS) continue;
    end[n++] = peaks[i].at;
    n = add_ends(q, &peaks[i], 1, to, *top - NEGLIGIBLE, end, n);
    n = add_ends(q, &peaks[i], -1, from, *top - NEGLIGIBLE, end, n);
  }
  gsl_sort(end, 1, n);
  return n;
}

static double integrate_panel(const le_quadrature *q, const gsl_integration_glfixed_table *rule,
                              double top, double from, double to, double *most)
{
  double sum = 0;
  for (size_t i = 0; i < NODES; i++) {
    double t, weight;
    gsl_integration_glfixed_point(from, to, i, &t, &weight, rule);
    const double value = value_at(q, t);
    *most = fmax(*most, value);
    sum += weight * exp(value - top);
  }
  return sum;
}

/* The sum over all panels, each of them in `parts` parts; with `keep` the parts are stored. */
static double integrate_all(le_quadrature *q, const gsl_integration_glfixed_table *rule, double top,
                            const double *end, size_t ends, size_t parts, int keep)
{
  double sum = 0;
  q->n = 0;
  for (size_t i = 0; i + 1 < ends; i++)
    for (size_t k = 0; k < parts; k++) {
      const double step = (end[i + 1] - end[i]) / (double)parts,
                   from = end[i] + (double)k * step;
      double most = -INFINITY;
      if (step <= 0) continue;
      const double mass = integrate_panel(q, rule, top, from, from + step, &most);
      sum += mass;
      if (keep) q->panel[q->n++] = (le_panel){from, from + step, mass, most};
    }
  return sum;
}

static le_status integrate(le_quadrature *q, const gsl_integration_glfixed_table *rule, double top,
                           const double *end, size_t ends)
{
  double before = integrate_all(q, rule, top, end, ends, 1, 0), sum = before;
  size_t parts = 1;
  q->error = INFINITY;
  for (int halving = 0; halving < HALVINGS && !(q->error < CONVERGED); halving++) {
    parts *= 2;
    sum = integrate_all(q, rule, top, end, ends, parts, 0);
    q->error = fabs(sum / before - 1);
    before = sum;
  }
  if (!(q->error < ACCEPTED)) return LE_NOT_FINITE;
  q->panel = malloc(parts * ends * sizeof *q->panel);
  if (!q->panel) return LE_NO_MEMORY;
  integrate_all(q, rule, top, end, ends, parts, 1);
  for (size_t i = 0; i < q->n; i++) q->panel[i].mass /= sum;
  q->log_integral = top + log(sum);
  return LE_OK;
}

le_status le_quadrature_run(le_quadrature *quadrature, double from, double to)
{
  double top;
  quadrature->panel = NULL;
  quadrature->n = 0;
  double *end = malloc((MOST_ENDS + 1) * sizeof *end);
  gsl_integration_glfixed_table *rule = gsl_integration_glfixed_table_alloc(NODES);
  le_status status = end && rule ? LE_OK : LE_NO_MEMORY;
  if (status == LE_OK) {
    const size_t ends = panel_ends(quadrature, from, to, end, &top);
    status = ends > 1 ? integrate(quadrature, rule, top, end, ends) : LE_NOT_FINITE;
  }
  if (rule) gsl_integration_glfixed_table_free(rule);
  free(end);
  return status;
}

/* ---- one peak ---- */

/* Points at which peaks are looked for, beyond the scales of the density too, and the longest step
 * of the trapezoidal rule, whose error falls exponentially with its inverse. */
static const double COARSE = 0.5, MARGIN = 4, STEP = 0.125, QUICK_NEGLIGIBLE = 38;

/* The maximum near t by Newton's method with differences; its curvature, or 0 if it fails. */
static double climb(const le_quadrature *q, double *t)
{
  const double delta = 1e-3, start = *t;
  for (int k = 0; k < 20; k++) {
    const double here = value_at(q, *t), after = value_at(q, *t + delta),
                 before = value_at(q, *t - delta);
    const double curve = (after - 2 * here + before) / delta / delta,
                 step = -(after - before) / (2 * delta) / curve;
    if (!(curve < -1e-3) || !(fabs(*t + step - start) < 2 * COARSE)) return 0;
    *t += step;
    if (fabs(step) < 0.01 / sqrt(-curve)) return curve;
  }
  return 0;
}

/* The trapezoidal rule from t in one direction, without the first point. */
static double tail(const le_quadrature *q, double t, double step, double top)
{
  double sum = 0;
  for (int k = 1; k < 4000; k++) {
    const double below = value_at(q, t + k * step) - top;
    if (below < -QUICK_NEGLIGIBLE) return sum;
    sum += exp(below);
  }
  return NAN;
}

int le_quadrature_quick(le_quadrature *q, double from, double to)
{
  double best = -INFINITY, at = from, here = -INFINITY, before = -INFINITY;
  int peaks = 0;
  q->panel = NULL;
  q->n = 0;
  for (double t = from - MARGIN; t < to + MARGIN + COARSE; t += COARSE) {
    const double after = value_at(q, t);
    if (here > before && here >= after) peaks++;
    if (after > best) best = after, at = t;
    before = here, here = after;
  }
  const double curve = peaks == 1 ? climb(q, &at) : 0;
  if (curve == 0) return 0;
  const double step = fmin(0.4 / sqrt(-curve), STEP), top = value_at(q, at);
  const double sum = 1 + tail(q, at, step, top) + tail(q, at, -step, top);
  q->log_integral = top + log(step * sum);
  return isfinite(q->log_integral);
}

void le_quadrature_free(le_quadrature *quadrature)
{
  free(quadrature->panel);
  quadrature->panel = NULL;
}

/* ---- draws ---- */

/* Rejection in a panel. In panels this short the function exceeds its value at the nodes by much
 * less than a hundredth. */
double le_quadrature_draw(const le_quadrature *q, const gsl_rng *rng)
{
  double rest = gsl_rng_uniform(rng);
  size_t i = 0;
  while (i + 1 < q->n && rest >= q->panel[i].mass) rest -= q->panel[i++].mass;
  const le_panel *panel = &q->panel[i];
  for (;;) {
    const double t = gsl_ran_flat(rng, panel->from, panel->to);
    if (log(gsl_rng_uniform_pos(rng)) < value_at(q, t) - panel->most - 0.01) return t;
  }
}
