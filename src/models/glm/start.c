/* Starting points of a regression from its rows: one step of iteratively reweighted least squares.
 *
 * Each response alone gives a guess of its linear predictor, as in glm(). A weighted least-squares
 * fit of these guesses, with the prior's scales as ridge, is close enough to the posterior mode for
 * Newton's method. The rows have random weights (the Bayesian bootstrap), so that starts differ. */
#include "models/glm/start.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <math.h>

size_t le_glm_start_scratch(const void *self, size_t rows)
{
  const size_t p = ((const glm *)self)->most_terms;
  return p * p + p + rows;
}

static glm_guess guess_of(const glm *model, const double *row)
{
  const double *y = row + model->width - 1;
  glm_guess guess = model->family->guess(*y, model->extra ? y[-1] : 1);
  if (model->offset) guess.eta -= row[model->covariates];
  return guess;
}

static void add_row(size_t p, const double *x, double weight, double eta, double *square,
                    double *right)
{
  for (size_t j = 0; j < p; j++) {
    const double weighted = weight * x[j];
    right[j] += weighted * eta;
    for (size_t k = 0; k <= j; k++) square[j * p + k] += weighted * x[k];
  }
}

/* A ridge of one prior scale for each coefficient. */
static void begin_squares(size_t p, const le_prior *prior, double *square, double *right)
{
  memset(square, 0, p * p * sizeof(double));
  for (size_t j = 0; j < p; j++) {
    const double precision = pow(prior[j].scale, -2);
    square[j * p + j] = precision;
    right[j] = precision * prior[j].location;
  }
}

static void solve(size_t p, const le_prior *prior, double *square, double *right, double *theta)
{
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k < j; k++) square[k * p + j] = square[j * p + k];
  const int solved = le_cholesky(square, p) == LE_OK;
  if (solved) le_cholesky_solve(square, p, right);
  for (size_t j = 0; j < p; j++)
    theta[j] = solved && isfinite(right[j]) ? right[j] : prior[j].location;
}

static double variance_of_residuals(const glm *model, const le_rows *rows, const double *random,
                                    const double *theta)
{
  double squares = 0, all = 0;
  for (size_t i = 0; i < rows->n; i++) {
    const double *x = rows->values + i * rows->width;
    double residual = guess_of(model, x).eta;
    for (size_t j = 0; j < model->covariates; j++) residual -= theta[j] * x[j];
    squares += random[i] * residual * residual;
    all += random[i];
  }
  return all > 0 ? squares / all : 1;
}

/* Coefficients for which a further parameter is about the same number in all rows. */
static void start_part(const glm *model, const glm_part *part, const le_rows *rows, double further,
                       double *square, double *right, double *theta)
{
  const le_prior *prior = model->prior + part->first;
  const size_t p = part->columns;
  if (!part->formula) {
    theta[part->first] = log(further);
    return;
  }
  begin_squares(p, prior, square, right);
  for (size_t i = 0; i < rows->n; i++) {
    const double *z = rows->values + i * rows->width + part->at;
    add_row(p, z, 1, log(further) - (part->offset ? z[p] : 0), square, right);
  }
  solve(p, prior, square, right, theta + part->first);
}

void le_glm_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch)
{
  const glm *model = self;
  const size_t p = model->covariates, most = model->most_terms;
  double *square = scratch, *right = square + most * most, *random = right + most;
  double further[GLM_FURTHER] = {1, 1};
  for (size_t i = 0; i < rows->n; i++) random[i] = gsl_ran_exponential(rng, 1);
  begin_squares(p, model->prior, square, right);
  for (size_t i = 0; i < rows->n; i++) {
    const double *x = rows->values + i * rows->width;
    const glm_guess guess = guess_of(model, x);
    add_row(p, x, random[i] * guess.weight, guess.eta, square, right);
  }
  solve(p, model->prior, square, right, theta);
  if (!model->family->further) return;
  const double variance = variance_of_residuals(model, rows, random, theta);
  model->family->guess_further(isfinite(variance) ? fmax(variance, 1e-12) : 1, further);
  for (size_t a = 0; a < model->family->further; a++)
    start_part(model, &model->part[a], rows, further[a], square, right, theta);
}
