/* Search for posterior modes and importance sampling around them: before, during and after the run. */
#include "estimators/walk/parts.h"

#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* By how much rows must have grown for another look around, and the share of an ideal proposal's draws from which importance
 * sampling is believed there: less than at the end, since what it would replace is worthless. */
static const double LOOK_GROWTH = 4, LOOK_EVEN = 0.1;
/* The share of an ideal effective size from which the draws of the first look are particles, and the
 * Pareto shape of their weights at the most; the share under which their standard error counts three
 * times: AUDIT_LEAST_ESS and AUDIT_DOUBT of R/result.R. */
static const double FIRST_EVEN = 0.1, FIRST_TAIL = 0.7, FIRST_DOUBTED = 0.6, FIRST_DOUBT = 3;
/* The least power of weights from which draws are led to the posterior, and how many times as many
 * moves as elsewhere a distribution on the way has. */
static const double LED_FROM = 0.2;
/* Squared distance per dimension, at the precision of its rows, at which a peak of the search is taken for one that is known. */
static const double SEARCH_NEAR = 4;
enum { COVERED = 200 };

static le_status end_look(walk *w);

/* What modes that hold less than all others may differ by, in nats: they say little for another
 * walk. */
double le_walk_chance_of(size_t d)
{
  const double half = 0.5 * (double)d;
  return half + 5 * sqrt(half) + 5;
}

/* Search and audit, on the rows so far, say whether particles are where the posterior is: once when the early phase is over, and
 * again before a refuge, which is dear.  Before the early phase they may make it unnecessary, see end_look(). */
int le_walk_may_look(const walk *w)
{
  return w->settings.search && !w->settings.record &&
         (double)w->target.seen > LOOK_GROWTH * (double)w->looked;
}

int le_walk_may_look_first(const walk *w)
{
  return w->settings.first_look && w->settings.search && !w->settings.record && w->settings.stages > 1 &&
         w->stage == 0 && w->target.seen == 0 && !w->first_looked;
}

le_status le_walk_look_around(walk *w, walk_look kind)
{
  if (w->looked) le_search_start(&w->search);
  w->looked = w->target.seen;
  w->looking = kind;
  w->first_looked = 1;
  w->target.chunk = 0;
  w->step = 0;
  w->machine.phase = SEARCH;
  return LE_OK;
}

le_status le_walk_search(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  LE_TRY(le_search_step(&w->search, &w->audit, &w->target, w->machine.streams.rng[0], w->machine.streams.order));
  if (w->search.done) w->machine.phase = AUDIT;
  return LE_OK;
}

/* Differences are as wide as the particles lie. */
static void scale_by_particles(walk *w)
{
  const size_t d = w->d;
  double *scale = w->work;
  le_walk_weighted_mean(w, w->centre);
  memset(scale, 0, d * sizeof(double));
  for (size_t i = 0; i < w->m; i++)
    for (size_t j = 0; j < d; j++) scale[j] += w->weight[i] * pow(w->theta[i * d + j] - w->centre[j], 2);
  for (size_t j = 0; j < d; j++) scale[j] = scale[j] > 0 && isfinite(scale[j]) ? sqrt(scale[j]) : sqrt(w->prior_variance[j]);
  le_audit_scale(&w->audit, scale);
}

/* Starts for the audit's climbs: the heaviest particle and others drawn by weight, then what the search has found; or the
 * particles' mean for one mode. */
static void start_audit(walk *w)
{
  const size_t d = w->d;
  if (w->looking == LOOK_FIRST) {
    le_search_climbs(&w->search, &w->audit, 0);
  } else if (w->settings.search || w->model->traits & LE_MODEL_MULTIMODAL) {
    le_walk_relabel_to_heaviest(w);
    const size_t starts = w->m < le_walk_particle_climbs(w) ? w->m : le_walk_particle_climbs(w), found = w->search.found;
    double *start = w->audit.start;
    memcpy(start, w->theta + le_walk_heaviest(w) * d, d * sizeof(double));
    for (size_t k = 1; k < starts; k++) {
      double point = gsl_rng_uniform(w->machine.streams.rng[0]);
      size_t i = 0;
      while (i + 1 < w->m && (point -= w->weight[i]) > 0) i++;
      memcpy(start + k * d, w->theta + i * d, d * sizeof(double));
    }
    if (found) memcpy(start + starts * d, w->search.start, found * d * sizeof(double));
    le_search_climbs(&w->search, &w->audit, starts);
    w->audit.native = starts;
    if (found && w->search.few.n) w->audit.near = SEARCH_NEAR * (double)w->target.seen / (double)w->search.few.n;
    if (w->m > 2 * d) {
      /* the walk is over: the last metric's memory serves for the particles' covariance */
      le_metric wide = w->metric[w->stage][0];
      wide.kind = LE_METRIC_DENSE;
      le_walk_weighted_mean(w, w->centre);
      if (le_metric_set_particles(&wide, w->m, w->theta, w->weight, w->prior_variance) == LE_OK)
        le_audit_widen(&w->audit, w->centre, wide.factor);
    }
  } else {
    le_walk_weighted_mean(w, w->centre);
    le_audit_start(&w->audit, 1, w->centre);
  }
  if (!w->model->log_lik_hess) scale_by_particles(w);
}

static void take_draws_of_check(walk *w, double doubt)
{
  const le_audit *a = &w->audit;
  le_normalise(a->log_weight, a->draws, a->work);
  le_walk_draw_particles(w);
  const double variance = pow(doubt * a->se, 2);
  le_walk_begin_from(w, a->log_evidence - (w->settings.correct ? 0.5 * variance : 0), variance);
}

/* Where importance sampling is too uneven, a power of its weights is not: its draws are then annealed
 * from there to the posterior, which is a shorter way than from the prior.  Only where other rows
 * follow: two clusters that have merged (300 rows) came out 0.27 nats low so, by six runs each of
 * standard deviation 0.1, which is little against what the later rows add. */
static int leads_to_posterior(walk *w)
{
  const le_stage *stage = stage_of(w);
  const int exact = stage->kernel && stage->gradient == LE_GRADIENT_FULL && (stage->kernel->ops->needs & LE_NEEDS_DENSITY);
  double lambda, log_integral, variance;
  if (!exact || (w->machine.closed && w->target.seen == w->machine.store.n) || !le_audit_temper(&w->audit, &w->target, &lambda, &log_integral, &variance)) return 0;
  if (lambda < LED_FROM) return 0;
  le_walk_draw_particles(w);
  le_walk_begin_from(w, log_integral, variance);
  w->target.proposal = &w->audit.density;
  w->target.lambda = lambda;
  le_walk_relabel_to(w, w->audit.mode[0].theta);
  w->chunk_steps = 0;
  w->chunk_ess = w->shortest = 1;
  w->drift = w->target.noise = NAN;
  w->machine.phase = REWEIGHT;
  return 1;
}

/* The first look: where importance sampling around the peaks is good, its draws are the particles, and annealing from the prior is
 * not needed.  Elsewhere it begins. */
static le_status end_first_look(walk *w)
{
  le_audit *a = &w->audit;
  w->uneven = !a->failed && a->effective_size < FIRST_DOUBTED * a->ideal_size;
  if (a->failed || !(a->effective_size > FIRST_EVEN * a->ideal_size) || !(a->pareto_k < FIRST_TAIL)) {
    if (leads_to_posterior(w)) return LE_OK;
    w->target.seen = w->looked = 0;
    w->uneven = 0;
    return LE_OK;
  }
  take_draws_of_check(w, w->uneven ? FIRST_DOUBT : 1);
  a->unreached = 0;
  w->checked = 1;
  w->chunk_ess = 1;
  return w->target.seen < w->regained ? LE_OK : le_walk_add_trace(w, (double)w->target.seen, 1, 0);
}

/* Importance sampling whose weights are even has the posterior of these rows: where it has found far more than the particles, its
 * draws take their place. */
static le_status end_look(walk *w)
{
  const le_audit *a = &w->audit;
  const double chance = le_walk_chance_of(w->d);
  const int first = w->looking == LOOK_FIRST;
  w->looking = LOOK_NOT;
  w->machine.phase = OPEN_CHUNK;
  /* of rows in random order the first are as good as any: the search at the end goes on from here */
  if (!w->settings.shuffle) le_search_start(&w->search);
  if (first) return end_first_look(w);
  if (a->failed || !(a->effective_size > LOOK_EVEN * a->ideal_size) ||
      !(a->log_evidence - le_walk_current_log_evidence(w) > chance))
    return LE_OK;
  take_draws_of_check(w, 1);
  w->restarts++;
  w->noised = 0;
  return LE_OK;
}

/* Of models of unknown form particles see more than climbs. */
static le_status cover_particles(walk *w)
{
  if (!w->settings.search || w->model->start || w->looking == LOOK_FIRST) return LE_OK;
  const size_t n = w->m < COVERED ? w->m : COVERED;
  double *some = w->swap;
  for (size_t k = 0; k < n; k++) memcpy(some + k * w->d, w->theta + (k * w->m / n) * w->d, w->d * sizeof(double));
  return le_audit_cover(&w->audit, &w->target, n, some);
}

le_status le_walk_audit(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  if (w->step++ == 0) start_audit(w);
  const int climbing = w->audit.phase == LE_AUDIT_CLIMB;
  LE_TRY(le_audit_step(&w->audit, &w->target, w->machine.streams.rng[0]));
  if (climbing && w->audit.phase == LE_AUDIT_DRAW) LE_TRY(cover_particles(w));
  if (w->audit.phase != LE_AUDIT_DONE) return LE_OK;
  w->machine.phase = FINISHED;
  return w->looking ? end_look(w) : LE_OK;
}
