/* The exact evidence of y ~ N(Xw + offset, sigma^2), w_j ~ N(m_j, s_j^2), with any prior of sigma
 * or known sigma.
 *
 * With A = X diag(s), b = y - offset - X m and the singular value decomposition A = U D V',
 *
 *     log p(y | sigma) = -n log sigma - n/2 log 2 pi - 1/2 sum_j log(1 + d_j^2 / sigma^2)
 *                        - 1/2 sum_j c_j^2 / (sigma^2 + d_j^2) - rest / (2 sigma^2),
 *
 * where c = U'b and `rest` is the sum of squares of b outside of U. The evidence is the integral of
 * this times the prior of log sigma. Given sigma, V'(w - m) / s has independent normal entries. */
#include "models/glm/exact.h"

#include "base/linalg.h"
#include "base/quadrature.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

typedef struct noise {
  const glm *model;
  size_t p, n;
  double rest, least, largest; /* sum of squares; singular values above rounding error */
  double *values, *c;          /* d and U'b */
  double *v;                   /* row-major; the columns are directions */
  int graded;                  /* whether d has numbers of very different sizes, all known */
  le_quadrature quadrature;
} noise;

/* A singular value below this share of the largest is rounding error, and so is the part of a
 * column that others do not explain, unless the columns are graded. */
static const double ROUNDING = 1e-14, UNEXPLAINED = 1e-13;
/* Below this share singular values lose digits in the decomposition of GSL. */
static const double FEW_DIGITS = 1e-9;
/* Logarithms of scales between which the density is not negligible, beyond those of the data. */
static const double BEYOND = 120, NEARER = 25;

/* How the integral over sigma is made: always right; without draws; and with draws, where the
 * density is not negligible only near the scales of the data. The last two fall back on the
 * first. */
typedef enum rule { ALWAYS, VALUE_ALONE, NEAR_SCALES } rule;

int le_fits_exactly(const le_reflections *fit)
{
  return fit->squares <= 1e-26 * fit->total;
}

/* ---- sufficient statistics ---- */

void le_glm_standardise(const glm *model, size_t n, const double *rows, double *columns)
{
  const size_t p = model->covariates;
  for (size_t r = 0; r < n; r++) {
    const double *row = rows + r * model->width, *x = glm_covariates(model, row);
    double response = row[model->width - 1] - (model->offset ? row[p] : 0);
    for (size_t j = 0; j < p; j++) {
      columns[j * n + r] = x[j] * model->priors.of[j].scale;
      response -= x[j] * model->priors.of[j].location;
    }
    columns[p * n + r] = response;
  }
}

le_status le_glm_reflect(const glm *model, const le_rows *rows, double ridge, le_reflections *fit)
{
  const size_t p = model->covariates;
  LE_TRY(le_reflections_alloc(fit, p));
  for (size_t j = 0; j < p; j++) fit->factor[j * (p + 1) + j] = ridge;
  for (size_t first = 0; first < rows->n; first += LE_REFLECTED) {
    const size_t n = rows->n - first < LE_REFLECTED ? rows->n - first : LE_REFLECTED;
    le_glm_standardise(model, n, rows->values + first * rows->width, fit->columns);
    le_reflect(fit, n);
  }
  return LE_OK;
}

/* The triangular factor becomes U; `work` has p numbers. */
static void decompose(noise *s, const double *factor, double *u, double *work)
{
  const size_t p = s->p;
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k < p; k++) u[j * p + k] = k < j ? 0 : factor[j * (p + 1) + k];
  gsl_matrix_view left = gsl_matrix_view_array(u, p, p), right = gsl_matrix_view_array(s->v, p, p);
  gsl_vector_view values = gsl_vector_view_array(s->values, p),
                  room = gsl_vector_view_array(work, p);
  gsl_linalg_SV_decomp(&left.matrix, &right.matrix, &values.vector, &room.vector);
  memset(s->c, 0, p * sizeof(double));
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k < p; k++) s->c[k] += u[j * p + k] * factor[j * (p + 1) + p];
}

/* Whether no column is a combination of those before it, but for rounding. */
static int is_independent(size_t p, const double *factor)
{
  for (size_t j = 0; j < p; j++) {
    double squares = 0;
    for (size_t i = 0; i <= j; i++) squares += factor[i * (p + 1) + j] * factor[i * (p + 1) + j];
    if (!(fabs(factor[j * (p + 1) + j]) > UNEXPLAINED * sqrt(squares))) return 0;
  }
  return 1;
}

/* The decomposition by rotations of pairs of columns (Jacobi), which finds small singular values of
 * independent columns far from zero, such as 1 and x, with as many digits as large ones. In place
 * of U, whose rows are columns here, and V. */
static void rotate(noise *s, const double *factor, double *u)
{
  enum { SWEEPS_MOST = 60 };
  const size_t p = s->p;
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k < p; k++) {
      u[j * p + k] = k > j ? 0 : factor[k * (p + 1) + j];
      s->v[j * p + k] = (double)(j == k);
    }
  for (int sweep = 0, turned = 1; turned && sweep < SWEEPS_MOST; sweep++) {
    turned = 0;
    for (size_t i = 0; i < p; i++)
      for (size_t j = i + 1; j < p; j++) {
        double *a = u + i * p, *b = u + j * p;
        const double aa = le_dot(a, a, p), bb = le_dot(b, b, p), ab = le_dot(a, b, p);
        if (!(fabs(ab) > 1e-15 * sqrt(aa) * sqrt(bb))) continue;
        turned = 1;
        const double zeta = (bb - aa) / (2 * ab),
                     t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(1, zeta)),
                     cosine = 1 / hypot(1, t), sine = t * cosine;
        for (size_t k = 0; k < p; k++) {
          const double x = a[k], y = s->v[k * p + i];
          a[k] = cosine * x - sine * b[k];
          b[k] = sine * x + cosine * b[k];
          s->v[k * p + i] = cosine * y - sine * s->v[k * p + j];
          s->v[k * p + j] = sine * y + cosine * s->v[k * p + j];
        }
      }
  }
  for (size_t j = 0; j < p; j++) {
    s->values[j] = sqrt(le_dot(u + j * p, u + j * p, p));
    s->c[j] = 0;
    for (size_t k = 0; k < p; k++)
      s->c[j] += u[j * p + k] / s->values[j] * factor[k * (p + 1) + p];
  }
}

static int has_few_digits(const noise *s)
{
  double most = 0, least = INFINITY;
  for (size_t j = 0; j < s->p; j++) {
    most = fmax(most, s->values[j]);
    least = fmin(least, s->values[j]);
  }
  return least < FEW_DIGITS * most;
}

/* The factor ends in the parts of b along the rows of the triangle; directions without covariates
 * belong to the rest. */
static void take_statistics(noise *s, const le_reflections *fit)
{
  const size_t p = s->p;
  s->largest = 0;
  for (size_t j = 0; j < p; j++) s->largest = fmax(s->largest, s->values[j]);
  s->least = s->largest;
  s->rest = le_fits_exactly(fit) ? 0 : fit->squares;
  for (size_t j = 0; j < p; j++) {
    if (s->graded || s->values[j] > ROUNDING * s->largest) {
      s->least = fmin(s->least, s->values[j]);
      continue;
    }
    s->rest += s->c[j] * s->c[j] > 1e-26 * fit->total ? s->c[j] * s->c[j] : 0;
    s->values[j] = s->c[j] = 0;
  }
}

/* ---- the density of log sigma ---- */

static double log_joint(const void *self, double t)
{
  const noise *s = self;
  const double variance = exp(2 * t);
  double value = le_prior_log(&s->model->priors.of[s->p], t) - (double)s->n * (t + HALF_LOG_2PI);
  if (s->rest > 0) value -= 0.5 * s->rest / variance;
  for (size_t j = 0; j < s->p; j++) {
    const double square = s->values[j] * s->values[j];
    if (square == 0) continue;
    value -= 0.5 * (log1p(square / variance) + s->c[j] * s->c[j] / (variance + square));
  }
  return value;
}

/* Rows that some coefficients fit exactly: the density of log sigma does not fall as sigma goes to
 * zero, unless its prior excludes small values. */
static int is_infinite(const noise *s)
{
  size_t rank = 0;
  for (size_t j = 0; j < s->p; j++) rank += s->values[j] > 0;
  return s->rest == 0 && s->n > rank && s->model->priors.of[s->p].kind != LE_PRIOR_INVERSE_GAMMA;
}

static void widen(double scale, double *from, double *to)
{
  if (!(scale > 0)) return;
  *from = fmin(*from, log(scale));
  *to = fmax(*to, log(scale));
}

static le_status integrate(noise *s, double total, rule rule)
{
  const le_prior *prior = &s->model->priors.of[s->p];
  double from = log(prior->scale), to = from;
  widen(sqrt(s->rest / (double)s->n), &from, &to);
  widen(sqrt(total), &from, &to);
  widen(s->least, &from, &to);
  widen(s->largest, &from, &to);
  s->quadrature = (le_quadrature){.log_density = log_joint, .self = s};
  if (rule == VALUE_ALONE && le_quadrature_quick(&s->quadrature, from, to)) return LE_OK;
  if (rule == NEAR_SCALES &&
      le_quadrature_run(&s->quadrature, fmax(from - NEARER, -345), fmin(to + NEARER, 345)) == LE_OK)
    return LE_OK;
  return le_quadrature_run(&s->quadrature, fmax(from - BEYOND, -345), fmin(to + BEYOND, 345));
}

/* ---- the functions of the contract ---- */

int le_glm_closed(const glm *model)
{
  if (!model->family->squares || model->by_row) return 0;
  for (size_t j = 0; j < model->covariates; j++)
    if (model->priors.of[j].kind != LE_PRIOR_NORMAL) return 0;
  return 1;
}

static void noise_free(noise *s)
{
  free(s->values);
  le_quadrature_free(&s->quadrature);
}

/* The statistics of n rows, from their reflections. */
static le_status noise_alloc(const glm *model, size_t n, const le_reflections *fit, noise *s)
{
  const size_t p = model->covariates;
  *s = (noise){.model = model, .p = p, .n = n};
  s->values = malloc((2 * p + 2 * p * p + p) * sizeof *s->values);
  if (!s->values) return LE_NO_MEMORY;
  s->c = s->values + p;
  s->v = s->c + p;
  double *u = s->v + p * p;
  for (size_t i = 0; i < p * (p + 1); i++)
    if (!isfinite(fit->factor[i])) return LE_NOT_FINITE; /* the decomposition would not end */
  decompose(s, fit->factor, u, u + p * p);
  s->graded = has_few_digits(s) && is_independent(p, fit->factor);
  if (s->graded) rotate(s, fit->factor, u);
  take_statistics(s, fit);
  return LE_OK;
}

/* `infinite` is set instead of an integral that does not exist. */
static le_status noise_run(const glm *model, size_t n, const le_reflections *fit, noise *s,
                           rule rule, int *infinite)
{
  le_status status = noise_alloc(model, n, fit, s);
  *infinite = status == LE_OK && is_infinite(s);
  return status == LE_OK && !*infinite ? integrate(s, fit->total, rule) : status;
}

/* With known sigma the factor R of the stacked matrix [sigma I; A] is the Cholesky factor of
 * sigma^2 I + A'A, and what remains of b is min_z (|b - A z|^2 + sigma^2 |z|^2), so that
 *
 *     log p(y | sigma) = -n log sigma - n/2 log 2 pi - log |R / sigma| - remains / (2 sigma^2). */
static double known_noise(const glm *model, size_t n, const le_reflections *ridged)
{
  const size_t p = model->covariates;
  const double sigma = model->known;
  double log_ratio = 0;
  for (size_t j = 0; j < p; j++) log_ratio += log(fabs(ridged->factor[j * (p + 1) + j]) / sigma);
  return -(double)n * (log(sigma) + HALF_LOG_2PI) - log_ratio -
         0.5 * ridged->squares / sigma / sigma;
}

le_status le_glm_exact_fit(const glm *model, size_t n, const le_reflections *fit, double *value)
{
  if (model->family->further == 0) {
    *value = known_noise(model, n, fit);
    return LE_OK;
  }
  noise s;
  int infinite;
  const le_status status = noise_run(model, n, fit, &s, VALUE_ALONE, &infinite);
  *value = infinite ? INFINITY : s.quadrature.log_integral;
  noise_free(&s);
  return status;
}

le_status le_glm_exact(const void *self, const le_rows *rows, double *log_evidence)
{
  const glm *model = self;
  *log_evidence = le_glm_closed(model) ? 0 : NAN;
  if (!le_glm_closed(model) || rows->n == 0) return LE_OK;
  const int known = model->family->further == 0;
  le_reflections fit;
  noise s = {0};
  int infinite = 0;
  LE_TRY(le_glm_reflect(model, rows, known ? model->known : 0, &fit));
  le_status status = known ? LE_OK : noise_run(model, rows->n, &fit, &s, ALWAYS, &infinite);
  *log_evidence = known      ? known_noise(model, rows->n, &fit)
                  : infinite ? INFINITY
                             : s.quadrature.log_integral;
  if (known && !isfinite(*log_evidence)) status = LE_NOT_FINITE;
  noise_free(&s);
  le_reflections_free(&fit);
  return status;
}

/* A draw of the coefficients given sigma, which was the ridge of `fit`: the posterior of R z - c is
 * sigma^2 I. */
static void draw_solution(const glm *model, const le_reflections *fit, double sigma,
                          const gsl_rng *rng, double *theta)
{
  const size_t p = model->covariates;
  for (size_t j = p; j-- > 0;) {
    const double *row = fit->factor + j * (p + 1);
    double rest = row[p] + gsl_ran_gaussian_ziggurat(rng, sigma);
    for (size_t k = j + 1; k < p; k++) rest -= row[k] * theta[k];
    theta[j] = rest / row[j];
  }
  for (size_t j = 0; j < p; j++)
    theta[j] = model->priors.of[j].location + model->priors.of[j].scale * theta[j];
}

/* A draw where directions have very different sizes: in the sum over them digits would be lost.
 * `own` becomes the reflections with sigma as ridge. */
static void draw_graded(const noise *s, const le_reflections *fit, const gsl_rng *rng,
                        le_reflections *own, double *theta)
{
  const size_t p = s->p;
  theta[p] = le_quadrature_draw(&s->quadrature, rng);
  memcpy(own->factor, fit->factor, p * (p + 1) * sizeof *own->factor);
  memset(own->columns, 0, (p + 1) * p * sizeof *own->columns);
  for (size_t j = 0; j < p; j++) own->columns[j * p + j] = exp(theta[p]);
  le_reflect(own, p);
  draw_solution(s->model, own, exp(theta[p]), rng, theta);
}

static void draw_point(const noise *s, const gsl_rng *rng, double *work, double *theta)
{
  const size_t p = s->p;
  const double t = le_quadrature_draw(&s->quadrature, rng), variance = exp(2 * t);
  for (size_t k = 0; k < p; k++) {
    const double precision = s->values[k] * s->values[k] + variance;
    work[k] = s->values[k] * s->c[k] / precision +
              gsl_ran_gaussian_ziggurat(rng, sqrt(variance / precision));
  }
  for (size_t j = 0; j < p; j++)
    theta[j] = s->model->priors.of[j].location +
               s->model->priors.of[j].scale * le_dot(s->v + j * p, work, p);
  theta[p] = t;
}

static le_status draw_points(const glm *model, size_t n, const le_reflections *fit, rule rule,
                             const gsl_rng *rng, size_t m, double *theta)
{
  noise s;
  int infinite;
  le_status status = noise_run(model, n, fit, &s, rule, &infinite);
  double *work = malloc((model->covariates + 1) * sizeof *work);
  le_reflections own = {0};
  if (status == LE_OK && infinite) status = LE_NOT_FINITE;
  if (status == LE_OK && !work) status = LE_NO_MEMORY;
  const int graded = status == LE_OK && s.graded && model->covariates <= LE_REFLECTED;
  if (graded) status = le_reflections_alloc(&own, model->covariates);
  for (size_t i = 0; status == LE_OK && i < m; i++)
    if (graded) draw_graded(&s, fit, rng, &own, theta + i * model->priors.d);
    else draw_point(&s, rng, work, theta + i * model->priors.d);
  le_reflections_free(&own);
  free(work);
  noise_free(&s);
  return status;
}

le_status le_glm_exact_draws(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                             double *theta)
{
  const glm *model = self;
  const int known = model->family->further == 0;
  le_reflections fit;
  le_status status = LE_OK;
  LE_TRY(le_glm_reflect(model, rows, known ? model->known : 0, &fit));
  if (!known) status = draw_points(model, rows->n, &fit, ALWAYS, rng, m, theta);
  for (size_t i = 0; known && i < m; i++)
    draw_solution(model, &fit, model->known, rng, theta + i * model->priors.d);
  le_reflections_free(&fit);
  return status;
}

le_status le_glm_exact_point(const glm *model, size_t n, const le_reflections *fit,
                             const gsl_rng *rng, double *theta)
{
  if (model->family->further) return draw_points(model, n, fit, NEAR_SCALES, rng, 1, theta);
  draw_solution(model, fit, model->known, rng, theta);
  return LE_OK;
}
