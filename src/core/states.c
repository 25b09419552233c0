/* Models with latent variables, presented as models of points. */
#include "core/states.h"

#include <math.h>
#include <string.h>

static size_t states_dim(const void *self)
{
  const le_states *s = self;
  return s->ops->size(s->self, s->n);
}

static size_t states_width(const void *self) { return ((const le_states *)self)->width; }

static size_t states_scratch(const void *self, size_t particles, size_t rows)
{
  const le_states *s = self;
  (void)particles;
  (void)rows;
  return s->ops->scratch(s->self, s->n);
}

void le_draw_state(const le_latent_ops *ops, const void *self, const le_chain *chain)
{
  le_chain seen = *chain;
  ops->start(self, chain->rng, chain->state);
  for (seen.rows.n = 1; seen.rows.n <= chain->rows.n; seen.rows.n++) ops->extend_blind(self, &seen);
}

void le_states_require(const le_latent_ops *ops, const void *self, size_t n, size_t states,
                       const double *state, le_archive *archive)
{
  if (!ops || !ops->possible || archive->status != LE_OK) return;
  const size_t size = ops->size(self, n);
  for (size_t i = 0; i < states; i++)
    le_archive_require(archive, ops->possible(self, n, state + i * size));
}

/* The prior draw of a latent does not depend on the rows. */
static void states_draw_prior(const void *self, const gsl_rng *rng, double *theta)
{
  const le_states *s = self;
  const le_chain chain = {
    .rows = {s->n, s->width, NULL}, .rng = rng, .state = theta, .scratch = s->scratch};
  memset(theta, 0, states_dim(self) * sizeof(double));
  le_draw_state(s->ops, s->self, &chain);
}

/* Relabelled states have the same likelihood except for the order of summation. Rounding it to a
 * grid makes these values equal, so that nested sampling treats them as a plateau. See le_log_above
 * in models/latent_shared. */
static double on_grid(double log_lik)
{
  if (!isfinite(log_lik)) return log_lik;
  int exponent;
  frexp(log_lik, &exponent);
  const double grid = ldexp(1, exponent - LE_GRID_BITS);
  return round(log_lik / grid) * grid;
}

static le_status states_log_lik(const void *self, size_t m, const double *theta,
                                const le_rows *rows, double *value, double *scratch)
{
  const le_states *s = self;
  const size_t d = states_dim(self);
  for (size_t i = 0; i < m; i++) {
    const le_chain chain = {
      .rows = *rows, .lambda = 1, .state = (double *)(size_t)(theta + i * d), .scratch = scratch};
    value[i] += on_grid(s->ops->log_lik(s->self, &chain));
  }
  return LE_OK;
}

const le_model_ops le_states_model = {
  .version = LE_CONTRACT_VERSION,
  .size = sizeof(le_model_ops),
  .name = "states",
  .traits = LE_MODEL_MULTIMODAL,
  .dim = states_dim,
  .width = states_width,
  .scratch = states_scratch,
  .draw_prior = states_draw_prior,
  .log_lik = states_log_lik,
};
