/* Importance sampling in two steps, for posteriors that are near normal only given a few scales or
 * shapes (`scales` of the model), as in a regression with about as many coefficients as rows.
 *
 * First the scales b are drawn from a mixture of t distributions. Its centre and covariance come
 * from rounds of importance sampling in which the mass of the other parameters w given b is
 * Laplace's approximation. Then w is drawn from such a mixture around its mode given b, with the
 * curvature there, and annealed to its posterior given b by Hamiltonian Monte Carlo. The mean
 * weight is unbiased whatever the number of annealing steps. */
#pragma once

#include "core/component.h"

enum { LE_TWOSTEP_STEPS_MOST = 256 };

typedef struct le_twostep {
  size_t d, few, rest; /* set once: few scales come after the rest of theta */
  size_t batch;        /* set once: most draws at a time */
  le_component_peak of_scales, of_rest; /* set once: the proposals before they are shaped */
  size_t round, steps; /* rounds for the scales so far; annealing steps of w */
  int possible;        /* set once: the model has what is needed */
  int failed;          /* no mode of w was found for any scales */
  int fitted;          /* the rounds have ended */
  double *centre, *root; /* of the scales: few, and the Cholesky factor of their covariance */
  double *start;         /* d: climbs start here, with other scales */
  le_mode mode;          /* the mode of w given the scales */
  double *scales, *mass; /* scratch: of each draw of a round */
  double *peak, *factor, *half_log_det; /* scratch: of each draw: mode, factor of precision */
  double *z, *next, *momentum, *point, *grad, *slope; /* scratch */
  double *now, *before, *base, *weight, *work;        /* scratch */
} le_twostep;

void le_twostep_alloc(le_twostep *two, const le_target *target, size_t batch, le_arena *arena);
/* Whether so many draws with so many annealing steps take a moderate amount of work. */
int le_twostep_affordable(const le_twostep *two, const le_target *target, size_t draws,
                          size_t steps);
/* theta: the first guess. There is one annealing step of w, which is none, until the caller sets
 * another number. */
void le_twostep_start(le_twostep *two, const double *theta);
/* One round for the scales. */
le_status le_twostep_fit(le_twostep *two, le_target *target, double enough, const gsl_rng *rng);
/* The scales' proposal from their mean and covariance under these weights, where the scales of n
 * draws are `stride` numbers apart; 0 if the covariance is not positive definite. */
int le_twostep_refit(le_twostep *two, size_t n, size_t stride, const double *scales,
                     const double *weight);
/* n <= batch draws and their log weights. */
le_status le_twostep_draw(le_twostep *two, le_target *target, double enough, const gsl_rng *rng,
                          size_t n, double *theta, double *log_weight);
void le_twostep_archive(le_twostep *two, le_archive *archive);
