/* Linear regression with the prior of Zellner and Siow (1980), as in Liang et al. (2008), Journal
 * of the American Statistical Association 103, 410-423: given g and sigma the q coefficients are
 * N(0, g sigma^2 (X'X)^-1), g is inverse gamma(1/2, n scale^2 / 2), and the density of sigma^2 is
 * 1 / sigma^2. With `flat`, the first covariate is an intercept whose density is one, and X are the
 * other covariates minus their means.
 *
 * With nu = n - flat, S the sum of squares of the response (minus its mean, if flat) and R^2 the
 * part of it that X explains, the evidence is the integral over g of
 *
 *     Gamma(nu / 2) (pi S)^(-nu / 2) n^(-flat / 2)
 *       (1 + g)^((nu - q) / 2) (1 + g (1 - R^2))^(-nu / 2) p(g).
 *
 * The likelihood is that of the gaussian family. The prior is improper, so it has no density and no
 * draws: only the exact evidence and draws from the posterior are defined. */
#include "base/quadrature.h"
#include "models/glm/exact.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

/* The instance is that of a regression of the gaussian family. Its own priors of coefficients are
 * made standard normal, so that le_glm_reflect leaves rows as they are. */
le_status le_zellner_siow_create(const le_args *args, void **self, char *message)
{
  LE_TRY(le_glm_create(args, self, message));
  glm *model = *self;
  for (size_t j = 0; j < model->covariates; j++) model->priors.of[j] = (le_prior){.scale = 1};
  if (le_read_count(args, "flat", 0, 1, &model->flat, message) &&
      le_read_numbers(args, "scale", 1, 0, 1, &model->scale, message))
    return LE_OK;
  le_glm_destroy(model);
  *self = NULL;
  return LE_BAD_ARGUMENT;
}

/* ---- prior ---- */

void le_zellner_siow_log_prior(const void *self, size_t m, const double *theta, double *value)
{
  (void)self, (void)theta;
  for (size_t i = 0; i < m; i++) value[i] = NAN;
}

void le_zellner_siow_draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  (void)rng;
  for (size_t j = 0; j < le_priors_dim(self); j++) theta[j] = NAN;
}

/* ---- sufficient statistics ---- */

typedef struct fit {
  size_t n, p, flat;
  double explained, rest; /* sums of squares of the response */
  double rate;            /* of the inverse gamma distribution of g */
  le_reflections reflections;
  le_quadrature quadrature;
} fit;

static double freedom(const fit *s) { return (double)(s->n - s->flat); }

/* Linearly dependent covariates leave a diagonal entry that is rounding error. */
static int is_dependent(const fit *s)
{
  const size_t columns = s->p + 1;
  for (size_t j = 0; j < s->p; j++) {
    double square = 0;
    for (size_t i = 0; i <= j; i++) square += pow(s->reflections.factor[i * columns + j], 2);
    if (!(fabs(s->reflections.factor[j * columns + j]) > 1e-11 * sqrt(square))) return 1;
  }
  return 0;
}

static double log_joint(const void *self, double t)
{
  const fit *s = self;
  const double g = exp(t), q = (double)(s->p - s->flat), nu = freedom(s);
  return 0.5 * (nu - q) * log1p(g) -
         0.5 * nu * log1p(g * s->rest / (s->rest + s->explained)) +
         0.5 * (log(s->rate) - log(M_PI) - t) - s->rate / g;
}

static le_status integrate(fit *s)
{
  const double from = log(s->rate), ratio = log((s->rest + s->explained) / s->rest);
  s->quadrature = (le_quadrature){.log_density = log_joint, .self = s};
  return le_quadrature_run(&s->quadrature, from - 10, fmax(from, ratio) + 150);
}

static void fit_free(fit *s)
{
  le_reflections_free(&s->reflections);
  le_quadrature_free(&s->quadrature);
}

/* `infinite` is set instead of an integral that does not exist. */
static le_status fit_run(const glm *model, const le_rows *rows, fit *s, int *infinite)
{
  const size_t p = model->covariates;
  *s = (fit){.n = rows->n, .p = p, .flat = model->flat};
  LE_TRY(le_glm_reflect(model, rows, 0, &s->reflections));
  for (size_t j = s->flat; j < p; j++)
    s->explained += pow(s->reflections.factor[j * (p + 1) + p], 2);
  s->rest = s->reflections.squares;
  s->rate = 0.5 * (double)s->n * model->scale * model->scale;
  *infinite = s->n <= p || le_fits_exactly(&s->reflections);
  if (*infinite) return LE_OK;
  if (is_dependent(s)) return LE_NOT_POSITIVE;
  return p > s->flat ? integrate(s) : LE_OK;
}

/* ---- the exact evidence, and draws ---- */

le_status le_zellner_siow_exact(const void *self, const le_rows *rows, double *log_evidence)
{
  fit s;
  int infinite;
  *log_evidence = 0;
  if (rows->n == 0) return LE_OK;
  const le_status status = fit_run(self, rows, &s, &infinite);
  *log_evidence = INFINITY;
  if (status == LE_OK && !infinite)
    *log_evidence = gsl_sf_lngamma(0.5 * freedom(&s)) -
                    0.5 * freedom(&s) * log(M_PI * (s.rest + s.explained)) -
                    0.5 * (double)s.flat * log((double)s.n) + s.quadrature.log_integral;
  fit_free(&s);
  return status;
}

/* Given g and sigma the product of the triangular factor with the coefficients has independent
 * normal entries. */
static void draw_point(const fit *s, const gsl_rng *rng, double *theta)
{
  const size_t p = s->p, columns = p + 1;
  const double *factor = s->reflections.factor;
  const double g = p > s->flat ? exp(le_quadrature_draw(&s->quadrature, rng)) : INFINITY;
  const double rest = s->rest + s->explained / (1 + g), shrink = 1 / (1 + 1 / g);
  const double sigma = sqrt(0.5 * rest / gsl_ran_gamma(rng, 0.5 * freedom(s), 1));
  for (size_t j = p; j-- > 0;) {
    const double share = j < s->flat ? 1 : shrink;
    double value = share * factor[j * columns + p] +
                   gsl_ran_gaussian_ziggurat(rng, sigma * sqrt(share));
    for (size_t k = j + 1; k < p; k++) value -= factor[j * columns + k] * theta[k];
    theta[j] = value / factor[j * columns + j];
  }
  theta[p] = log(sigma);
}

le_status le_zellner_siow_draws(const void *self, const le_rows *rows, const gsl_rng *rng, size_t m,
                                double *theta)
{
  fit s;
  int infinite;
  le_status status = fit_run(self, rows, &s, &infinite);
  if (status == LE_OK && infinite) status = LE_NOT_FINITE;
  for (size_t i = 0; status == LE_OK && i < m; i++) 
    draw_point(&s, rng, theta + i * le_priors_dim(self));
  fit_free(&s);
  return status;
}
