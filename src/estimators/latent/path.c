/* The path of an annealed run of states: the next lambda or row, weights, and resampling. */
#include "estimators/latent/parts.h"

#include "base/logsum.h"

enum { STEPS_MOST = 100000, TRIALS = 60 };
/* The first trial of a step's length; how many times the allowed variance a step may have. */
static const double FIRST_LENGTH = 1e-3, RETRY = 3;
/* Resampling from a smaller effective sample size than this share makes copies of few particles. */
static const double FEW = 0.6;

le_chain le_latent_chain(const latent *w, size_t i, size_t seen, double lambda)
{
  const le_store *store = &w->machine.store;
  return (le_chain){.rows = {seen, store->width, store->values},
                    .lambda = lambda,
                    .rng = w->machine.streams.rng[i + 1],
                    .state = state_of(w, i),
                    .scratch = w->scratch};
}

le_status le_latent_each(latent *w, size_t seen, double lambda,
                         double (*what)(latent *w, const le_chain *chain), double *value)
{
  for (size_t i = 0; i < w->m; i++) {
    if (le_interrupted(w->machine.context)) return LE_INTERRUPTED;
    const le_chain chain = le_latent_chain(w, i, seen, lambda);
    value[i] = what(w, &chain);
  }
  return LE_OK;
}

double le_latent_log_evidence(const latent *w)
{
  const double mean = le_logmeanexp(w->log_weight, w->m);
  return w->reverse ? -mean : mean;
}

static le_status add_trace(latent *w)
{
  const double row[] = {(double)w->seen,
                        w->lambda,
                        le_latent_log_evidence(w),
                        sqrt(fmax(le_genealogy_variance(&w->genealogy), 0)),
                        le_effective_size(w->log_weight, w->m, 1, NULL, 0),
                        w->work,
                        w->machine.seconds};
  return le_trace_add(&w->machine.trace, row);
}

void le_latent_resample(latent *w)
{
  const double level = le_logmeanexp(w->log_weight, w->m);
  const le_resampling scheme = stage_of(w)->resampling;
  le_resample(scheme, w->m, w->weight, w->m, w->machine.streams.rng[0], w->spare, w->ancestor);
  for (size_t i = 0; i < w->m; i++)
    memcpy(w->swap + i * w->size, state_of(w, w->ancestor[i]), w->size * sizeof(double));
  double *old = w->state;
  w->state = w->swap;
  w->swap = old;
  le_genealogy_resample(&w->genealogy, w->m, w->weight,
                        scheme == LE_MULTINOMIAL || scheme == LE_RESIDUAL, w->m, w->ancestor);
  for (size_t i = 0; i < w->m; i++) {
    w->log_weight[i] = level;
    w->weight[i] = 1 / (double)w->m;
  }
}

/* Adds `after - before` to the log weights. */
static le_status weigh(latent *w)
{
  int possible = 0;
  for (size_t i = 0; i < w->m; i++) {
    const double gain = w->after[i] - w->before[i];
    w->log_weight[i] += isnan(gain) ? -INFINITY : gain;
    possible |= w->log_weight[i] > -INFINITY;
  }
  if (!possible)
    return le_fail(&w->machine.context->error, LE_ALL_IMPOSSIBLE,
                   "No particle gives the observations a positive probability.");
  le_normalise(w->log_weight, w->m, w->weight);
  le_genealogy_weigh(&w->genealogy, w->m, w->weight);
  return LE_OK;
}

static double log_lik(latent *w, const le_chain *chain) { return w->ops->log_lik(w->self, chain); }

le_status le_latent_log_liks(latent *w, double lambda, double *value)
{
  LE_TRY(le_latent_each(w, w->seen, lambda, log_lik, value));
  w->work += (double)(w->m * w->seen);
  return LE_OK;
}

/* 1 / ESS - 1 per particle of a step to this lambda: the relative variance of the step's weights.
 * For short steps it is proportional to the square of their length. */
static le_status step_variance(latent *w, double lambda, double *variance)
{
  LE_TRY(le_latent_log_liks(w, lambda, w->after));
  for (size_t i = 0; i < w->m; i++) w->spare[i] = w->after[i] - w->before[i];
  *variance = (double)w->m / le_effective_size(w->spare, w->m, 1, NULL, 0) - 1;
  return LE_OK;
}

static le_status too_short(latent *w)
{
  return le_fail(&w->machine.context->error, LE_STALLED,
                 "The annealing increment became too small: the particles' "
                 "likelihoods differ too much. More `particles` or a smaller `ess` may help.");
}

/* A step of lambda whose weights have about the relative variance that `ess` allows; leaves log f
 * there in `after`. Its length follows from the length and the variance of the step before. If the
 * weights of this step itself chose it, a step would be the longer the more of the upper tail of
 * its weights the particles happen to miss, and few particles would give too low an evidence. Only
 * if the variance is far too large (and at the first step, whose length is a guess, if it is far
 * from what is allowed) a step is tried again with another length. log f is not linear in lambda,
 * so a trial costs a pass over the rows, as much as a sweep. */
static le_status adapt_lambda(latent *w, double *next)
{
  const double most = (double)w->m / stage_of(w)->ess - 1, rest = 1 - w->lambda;
  const int first = !(w->length > 0);
  double length = first ? FIRST_LENGTH : w->length, variance = 0, ratio = 1;
  if (w->step > STEPS_MOST) return too_short(w);
  for (int trial = 0; trial < TRIALS; trial++) {
    if (length > rest * (1 - 1e-9)) length = rest;
    *next = length == rest ? 1 : w->lambda + length;
    if (!(*next > w->lambda)) return too_short(w);
    LE_TRY(step_variance(w, *next, &variance));
    ratio = sqrt(most / fmax(variance, 1e-12));
    if (!isfinite(ratio)) ratio = 0.1;
    if (variance <= RETRY * most && (!first || ratio < 2 || length == rest)) break;
    length *= fmin(fmax(ratio, 0.1), 10);
  }
  w->length = length * fmin(fmax(sqrt(ratio), 0.5), 2);
  return LE_OK;
}

/* Fixed temperatures in reverse: from lambda[count - 1] = 1 downwards, to 0 below the first. */
static le_status choose_lambda(latent *w, double *next)
{
  const le_stage *stage = stage_of(w);
  const size_t count = stage->schedule == LE_FIXED_STEPS ? stage->lambdas : 1;
  if (w->reverse) *next = w->step + 1 < count ? stage->lambda[count - 2 - w->step] : 0;
  else if (stage->schedule == LE_ADAPTIVE_STEPS) return adapt_lambda(w, next);
  else *next = stage->schedule == LE_FIXED_STEPS ? stage->lambda[w->step] : 1;
  return le_latent_log_liks(w, *next, w->after);
}

/* Whether the next step adds a row instead of raising lambda. */
static int row_is_next(const latent *w) { return w->by_rows && w->lambda >= 1; }

static double add_row(latent *w, const le_chain *chain)
{
  if (!w->blind) return w->ops->extend(w->self, chain);
  w->ops->extend_blind(w->self, chain);
  return w->ops->last_given_latent(w->self, chain);
}

static double drop_row(latent *w, const le_chain *chain)
{
  le_chain fixed = *chain;
  fixed.rng = NULL;
  return w->blind ? w->ops->last_given_latent(w->self, chain) : w->ops->extend(w->self, &fixed);
}

/* Adds a row, or in reverse drops one: the logs of its densities go to `after` or `before`. */
static le_status change_rows(latent *w)
{
  memset(w->reverse ? w->after : w->before, 0, w->m * sizeof(double));
  if (w->reverse) LE_TRY(le_latent_each(w, w->seen, 1, drop_row, w->before));
  else LE_TRY(le_latent_each(w, w->seen + 1, 1, add_row, w->after));
  w->seen = w->reverse ? w->seen - 1 : w->seen + 1;
  w->work += (double)w->m;
  return LE_OK;
}

le_status le_latent_step(void *self)
{
  latent *w = self;
  if (row_is_next(w)) {
    LE_TRY(change_rows(w));
  } else {
    double next = w->lambda;
    LE_TRY(le_latent_log_liks(w, w->lambda, w->before));
    LE_TRY(choose_lambda(w, &next));
    w->lambda = next;
  }
  LE_TRY(weigh(w));
  w->step++;
  LE_TRY(add_trace(w));
  const double share = le_effective_size(w->log_weight, w->m, 1, NULL, 0) / (double)w->m;
  w->copied = 0;
  if (le_resampling_due(share, stage_of(w)->threshold) && !(w->reverse && done(w))) {
    le_latent_resample(w);
    w->copied = !w->reverse;
    /* latents from the prior leave one state where the rows determine it: that is no fault */
    if (share < FEW && !w->blind && ++w->still > w->still_most) w->still_most = w->still;
  }
  w->swept = 0;
  w->machine.phase = SWEEPING;
  if (w->reverse && done(w)) w->machine.phase = FINISHED;
  return LE_OK;
}

