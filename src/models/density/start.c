/* Starting points of searches for the modes of a density. */
#include "models/density/instance.h"

#include "base/linalg.h"

/* Rows that a start reads. */
enum { START_ROWS = 2000, START_STEPS = 30 };
/* A start is the best of up to BEST_OF draws of the prior; with few rows of up to BEST_OF_FEW_ROWS,
 * as long as the draws read at most BEST_ROWS rows together. */
enum { BEST_OF = 32, BEST_OF_FEW_ROWS = 1000, BEST_ROWS = 40000 };

static size_t start_rows(size_t rows) { return rows < START_ROWS ? rows : START_ROWS; }

size_t le_density_start_scratch(const void *self, size_t rows)
{
  const density *model = self;
  const size_t d = model->priors.d;
  return 2 * d * d + 3 * d + model->ops->scratch(self, 1, start_rows(rows));
}

/* The log density of the posterior, and its derivatives if `grad` is not NULL. */
static double posterior(const density *model, const double *theta, const le_rows *rows,
                        double *grad, double *hess, double *scratch)
{
  const size_t d = model->priors.d;
  const le_model_ops *ops = model->ops;
  double value, likelihood = 0;
  ops->log_prior(model, 1, theta, &value);
  ops->log_lik(model, 1, theta, rows, &likelihood, scratch);
  if (!grad) return value + likelihood;
  ops->log_prior_grad(model, 1, theta, grad);
  memset(hess, 0, d * d * sizeof *hess);
  ops->log_prior_hess(model, theta, hess);
  ops->log_lik_hess(model, theta, rows, grad, hess, scratch);
  return value + likelihood;
}

/* The step of Newton's method with a ridge, relative to the diagonal; 0 if there is none. */
static int ridge_step(size_t d, double ridge, const double *grad, const double *hess,
                      double *factor, double *step)
{
  for (size_t a = 0; a < d * d; a++) factor[a] = -hess[a];
  for (size_t j = 0; j < d; j++) {
    factor[j * d + j] += ridge * (fabs(hess[j * d + j]) + 1e-8);
    step[j] = grad[j];
  }
  if (le_cholesky(factor, d) != LE_OK) return 0;
  le_cholesky_solve(factor, d, step);
  return 1;
}

/* The draw of highest posterior density among some draws of the prior; `next` holds the others.
 * Their number is random, with a uniform logarithm: among many draws the best is near the main
 * mode, and among few draws it may be near any mode. */
static void best_draw(const density *model, const le_rows *rows, const gsl_rng *rng, double *theta,
                      double *next, double *scratch)
{
  const double most = fmax(BEST_OF, fmin(BEST_OF_FEW_ROWS, BEST_ROWS / (double)(rows->n + 1)));
  const size_t draws = (size_t)pow(most, gsl_rng_uniform(rng));
  model->ops->draw_prior(model, rng, theta);
  double best = posterior(model, theta, rows, NULL, NULL, scratch);
  for (size_t k = 1; k < draws; k++) {
    model->ops->draw_prior(model, rng, next);
    const double value = posterior(model, next, rows, NULL, NULL, scratch);
    if (!(value > best || (isnan(best) && !isnan(value)))) continue;
    best = value;
    memcpy(theta, next, model->priors.d * sizeof *theta);
  }
}

/* Climbs from the best of some draws of the prior, or from the centre of the prior moved by a part
 * of a draw, by Newton's method with a ridge that adapts (Levenberg and Marquardt). Iterations end
 * when the gain is small: a search goes on from here. */
void le_density_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                      double *scratch)
{
  const density *model = self;
  const size_t d = model->priors.d;
  double *grad = scratch, *step = grad + d, *next = step + d, *hess = next + d,
         *factor = hess + d * d, *rest = factor + d * d;
  const le_rows some = {start_rows(rows->n), rows->width, rows->values};
  const int near = gsl_rng_uniform(rng) < 0.5;
  if (near) model->ops->draw_prior(model, rng, theta);
  else best_draw(model, &some, rng, theta, next, rest);
  for (size_t j = 0; j < d && near; j++) {
    const le_prior *prior = &model->priors.of[j];
    const double centre = j < model->real ? prior->location : log(prior->scale);
    const double away = fmax(-1, fmin(1, theta[j] - centre));
    theta[j] = centre + 0.1 * (isfinite(away) ? away : 0);
  }
  double ridge = 0.1, value = posterior(model, theta, &some, grad, hess, rest);
  for (int k = 0; k < START_STEPS && ridge < 1e8; k++) {
    double better = -INFINITY;
    if (ridge_step(d, ridge, grad, hess, factor, step)) {
      for (size_t j = 0; j < d; j++) next[j] = theta[j] + step[j];
      better = posterior(model, next, &some, NULL, NULL, rest);
    }
    if (!(better > value || (value == -INFINITY && better > -INFINITY))) {
      ridge *= 8;
      continue;
    }
    const double gain = better - value;
    memcpy(theta, next, d * sizeof *theta);
    value = posterior(model, theta, &some, grad, hess, rest);
    ridge = fmax(ridge / 8, 1e-6);
    if (gain < 1e-3) break;
  }
}
