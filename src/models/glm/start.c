/* Starting points of a regression from its rows: one step of iteratively reweighted least squares.
 *
 * Each response alone gives a guess of its linear predictor, as in glm(). A weighted least-squares
 * fit of these guesses, with the prior's scales as ridge, is close enough to the posterior mode for
 * Newton's method. The rows have random weights (the Bayesian bootstrap), so that starts differ.
 *
 * A posterior may have one mode near the prior and another one where the rows are, if the prior has
 * heavy tails or the noise is unknown, and so for each coefficient. So a third of the starts have
 * almost no ridge, and a third have it for random coefficients. If the likelihood itself may have
 * several modes, every second start fits a few rows, as many as there are coefficients or one more,
 * and its noise is that of the half of the rows that are nearest to this fit. */
#include "models/glm/instance.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sort_double.h>
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

static const double WEAK_RIDGE = 1e-8, WEAK_DIAGONAL = 1e-10;
/* Weights of the other rows if a few are fitted. */
static const double OTHER_ROWS = 1e-9;

/* A ridge of one prior scale for each coefficient; almost none with probability `weak`. */
static void begin_squares(size_t p, const le_prior *prior, double weak, const gsl_rng *rng,
                          double *square, double *right)
{
  memset(square, 0, p * p * sizeof(double));
  for (size_t j = 0; j < p; j++) {
    const double share = weak > 0 && gsl_rng_uniform(rng) < weak ? WEAK_RIDGE : 1,
                 precision = share * pow(prior[j].scale, -2);
    square[j * p + j] = precision;
    right[j] = precision * prior[j].location;
  }
}

static void solve(size_t p, const le_prior *prior, double *square, double *right, double *theta)
{
  for (size_t j = 0; j < p; j++) {
    for (size_t k = 0; k < j; k++) square[k * p + j] = square[j * p + k];
    square[j * p + j] *= 1 + WEAK_DIAGONAL; /* of collinear columns */
  }
  const int solved = le_cholesky(square, p) == LE_OK;
  if (solved) le_cholesky_solve(square, p, right);
  for (size_t j = 0; j < p; j++)
    theta[j] = solved && isfinite(right[j]) ? right[j] : prior[j].location;
}

static double square_of_residual(const glm *model, const double *x, const double *theta)
{
  double residual = guess_of(model, x).eta;
  for (size_t j = 0; j < model->covariates; j++) residual -= theta[j] * x[j];
  return residual * residual;
}

static double variance_of_residuals(const glm *model, const le_rows *rows, const double *random,
                                    const double *theta)
{
  double squares = 0, all = 0;
  for (size_t i = 0; i < rows->n; i++) {
    squares += random[i] * square_of_residual(model, rows->values + i * rows->width, theta);
    all += random[i];
  }
  return all > 0 ? squares / all : 1;
}

/* The mean square of the residuals of the half of the rows that are nearest. */
static double variance_of_nearest(const glm *model, const le_rows *rows, const double *theta,
                                  double *square)
{
  const size_t half = (rows->n + 1) / 2;
  double sum = 0;
  for (size_t i = 0; i < rows->n; i++)
    square[i] = square_of_residual(model, rows->values + i * rows->width, theta);
  gsl_sort(square, 1, rows->n);
  for (size_t i = 0; i < half; i++) sum += square[i];
  return sum / (double)half;
}

/* Coefficients for which a further parameter is about the same number in all rows. */
static void start_part(const glm *model, const glm_part *part, const le_rows *rows, double further,
                       double *square, double *right, double *theta)
{
  const le_prior *prior = model->priors.of + part->first;
  const size_t p = part->columns;
  if (!part->formula) {
    theta[part->first] = log(further);
    return;
  }
  begin_squares(p, prior, 0, NULL, square, right);
  for (size_t i = 0; i < rows->n; i++) {
    const double *z = rows->values + i * rows->width + part->at;
    add_row(p, z, 1, log(further) - (part->offset ? z[p] : 0), square, right);
  }
  solve(p, prior, square, right, theta + part->first);
}

/* All rows but `few` random ones have practically no weight. */
static void take_few(size_t n, size_t few, const gsl_rng *rng, double *random)
{
  for (size_t i = 0; i < n; i++) random[i] = OTHER_ROWS;
  for (size_t k = 0; k < few && n > 0; k++) random[gsl_rng_uniform_int(rng, n)] = 1;
}

void le_glm_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                  double *scratch)
{
  const glm *model = self;
  const size_t p = model->covariates, most = model->most_terms;
  double *square = scratch, *right = square + most * most, *random = right + most;
  double further[GLM_FURTHER] = {1, 1};
  const double weak = 0.5 * (double)gsl_rng_uniform_int(rng, 3);
  const int few = model->family->several && gsl_rng_uniform(rng) < 0.5;
  for (size_t i = 0; i < rows->n; i++) random[i] = gsl_ran_exponential(rng, 1);
  if (few) take_few(rows->n, p + gsl_rng_uniform_int(rng, 2), rng, random);
  begin_squares(p, model->priors.of, few ? 1 : weak, rng, square, right);
  for (size_t i = 0; i < rows->n; i++) {
    const double *x = rows->values + i * rows->width;
    const glm_guess guess = guess_of(model, x);
    add_row(p, x, random[i] * guess.weight, guess.eta, square, right);
  }
  solve(p, model->priors.of, square, right, theta);
  if (!model->family->further) return;
  const double variance = few ? variance_of_nearest(model, rows, theta, random)
                              : variance_of_residuals(model, rows, random, theta);
  model->family->guess_further(isfinite(variance) ? fmax(variance, 1e-12) : 1, further);
  for (size_t a = 0; a < model->family->further; a++)
    start_part(model, &model->part[a], rows, further[a], square, right, theta);
}
