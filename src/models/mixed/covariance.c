/* Covariance matrices of group-level effects: from theta and back. */
#include "models/mixed/covariance.h"

#include "base/linalg.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- settings ---- */

static int read_block(const le_args *args, size_t n, size_t k, mixed_block *block, size_t *factor,
                      char *message)
{
  double effects, correlated, of;
  if (!le_read_number(args, "effects", 1, 0, n, k, &effects, message) ||
      !le_read_number(args, "correlated", 0, -1, n, k, &correlated, message) ||
      !le_read_number(args, "factor", 0, -1, n, k, &of, message))
    return 0;
  if (effects != floor(effects) || effects > MIXED_EFFECTS_MOST || of != floor(of)) {
    snprintf(message, LE_MESSAGE_SIZE, "`effects` must be whole numbers up to %d, not %g.",
             MIXED_EFFECTS_MOST, effects);
    return 0;
  }
  *block = (mixed_block){.q = (size_t)effects, .correlated = correlated > 0 && effects > 1};
  *factor = (size_t)of;
  return 1;
}

int le_mixed_read(const le_args *args, size_t first, size_t most, size_t *factors,
                  mixed_covariance *covariance, size_t *end, size_t *d, char *message)
{
  const le_arg *given = le_args_find(args, "effects");
  const size_t n = given ? given->n : 0;
  size_t factor = 0;
  memset(covariance, 0, most * sizeof *covariance);
  *factors = 0;
  *end = first;
  for (size_t k = 0; k < n; k++) {
    mixed_block block;
    if (!read_block(args, n, k, &block, &factor, message)) return 0;
    if (factor > *factors || factor >= most) {
      snprintf(message, LE_MESSAGE_SIZE, "`factor` must count up from 0 to at most %zu.", most - 1);
      return 0;
    }
    if (factor == *factors) (*factors)++;
    mixed_covariance *c = &covariance[factor];
    if (c->q + block.q > MIXED_EFFECTS_MOST) {
      snprintf(message, LE_MESSAGE_SIZE, "A group must have at most %d effects, not %zu.",
               MIXED_EFFECTS_MOST, c->q + block.q);
      return 0;
    }
    block.column = c->q;
    block.sd = *end;
    c->q += block.q;
    c->block[c->blocks++] = block;
    *end += block.q;
  }
  *d = *end;
  /* the blocks in the order in which they were given */
  for (size_t k = 0, used[16] = {0}; k < n; k++) {
    mixed_block block;
    if (!read_block(args, n, k, &block, &factor, message)) return 0;
    mixed_block *own = &covariance[factor].block[used[factor]++];
    own->cor = *d;
    if (own->correlated) *d += own->q * (own->q - 1) / 2;
  }
  return 1;
}

le_status le_mixed_read_priors(const le_args *args, size_t n, const size_t (*positive)[2],
                               le_priors *priors, char *message)
{
  const size_t d = priors->d;
  unsigned char *real = malloc(d + 1);
  priors->of = calloc(d + 1, sizeof *priors->of);
  if (!real || !priors->of) {
    free(real);
    return LE_NO_MEMORY;
  }
  memset(real, 1, d);
  for (size_t k = 0; k < n; k++) memset(real + positive[k][0], 0, positive[k][1] - positive[k][0]);
  const int read = le_priors_read(args, d, real, priors->of, message);
  free(real);
  if (!read) return LE_BAD_ARGUMENT;
  LE_TRY(le_user_read(args, d, &priors->user, message));
  return le_means_read(args, d, &priors->mean, message);
}

/* ---- starts ---- */

double le_mixed_unit(double sd, double squares, double n)
{
  const double rms = sqrt(squares / fmax(n, 1));
  return sd / (rms > 0 ? rms : 1);
}

void le_mixed_start_scales(size_t factors, const mixed_covariance *covariance, size_t first,
                           size_t d, const double (*unit)[MIXED_EFFECTS_MOST], const gsl_rng *rng,
                           double *theta)
{
  for (size_t j = first; j < d; j++) theta[j] = gsl_ran_gaussian_ziggurat(rng, 0.5);
  for (size_t f = 0; f < factors; f++)
    for (size_t b = 0; b < covariance[f].blocks; b++) {
      const mixed_block *block = &covariance[f].block[b];
      for (size_t i = 0; i < block->q; i++)
        theta[block->sd + i] = log(unit[f][block->column + i]) - gsl_ran_exponential(rng, 1);
    }
}

/* ---- the root of the covariance ---- */

void le_mixed_root(const mixed_covariance *covariance, const double *theta, double *root)
{
  const size_t q = covariance->q;
  memset(root, 0, q * q * sizeof *root);
  for (size_t b = 0; b < covariance->blocks; b++) {
    const mixed_block *block = &covariance->block[b];
    const double *y = theta + block->cor;
    for (size_t i = 0; i < block->q; i++) {
      double *row = root + (block->column + i) * q + block->column;
      const double sd = exp(theta[block->sd + i]);
      double left = sd;
      if (block->correlated)
        for (size_t j = 0; j < i; j++, y++) {
          row[j] = left * tanh(*y);
          left /= cosh(*y);
        }
      row[i] = left;
    }
  }
}

void le_mixed_chain(const mixed_covariance *covariance, const double *theta, const double *root,
                    const double *slope, double *grad)
{
  const size_t q = covariance->q;
  for (size_t b = 0; b < covariance->blocks; b++) {
    const mixed_block *block = &covariance->block[b];
    size_t at = block->cor;
    for (size_t i = 0; i < block->q; i++) {
      const size_t first = (block->column + i) * q + block->column;
      const double *row = root + first, *by = slope + first;
      for (size_t j = 0; j <= i; j++) grad[block->sd + i] += by[j] * row[j];
      if (!block->correlated) continue;
      double left = exp(theta[block->sd + i]);
      for (size_t j = 0; j < i; j++, at++) {
        const double t = tanh(theta[at]), s = 1 / cosh(theta[at]);
        double sum = by[j] * left * s * s;
        for (size_t k = j + 1; k <= i; k++) sum -= t * by[k] * row[k];
        grad[at] += sum;
        left *= s;
      }
    }
  }
}

void le_mixed_correlations(const mixed_covariance *covariance, const double *theta, double *user)
{
  for (size_t b = 0; b < covariance->blocks; b++) {
    const mixed_block *block = &covariance->block[b];
    if (!block->correlated) continue;
    double root[MIXED_EFFECTS_MOST][MIXED_EFFECTS_MOST] = {{0}};
    size_t at = block->cor;
    for (size_t i = 0; i < block->q; i++) {
      double left = 1;
      for (size_t j = 0; j < i; j++, at++) {
        root[i][j] = left * tanh(theta[at]);
        left /= cosh(theta[at]);
      }
      root[i][i] = left;
    }
    at = block->cor;
    for (size_t i = 0; i < block->q; i++)
      for (size_t j = 0; j < i; j++, at++) user[at] = le_dot(root[i], root[j], j + 1);
  }
}

static const double TAILS = 3;

double le_mixed_tails(const void *self)
{
  const double tails = le_priors_tails(self);
  return tails > 0 && tails < TAILS ? tails : TAILS;
}
