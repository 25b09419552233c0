/* Checks: search for posterior modes and importance sampling around them, before, during and at
 * the end of the run. */
#include "estimators/walk/parts.h"

#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* An interim check needs CHECK_GROWTH times as many rows as the last. Its draws are used if their
 * error is known by LE_AUDIT_LIMITS, though the particles that they would replace have missed most
 * of the posterior mass. The first check's draws become the particles on the same condition; their
 * standard error is multiplied if it is in doubt, as that of several modes is. */
static const double CHECK_GROWTH = 4;
/* The same for draws of a refitted proposal: if refitting leaves uneven weights, particles are to
 * say what is there. */
static const double REFITTED_EVEN = 0.5, REFITTED_TAIL = 0.5;

/* Draws that lack modes with more than this share of the mass do not become the particles, which
 * then come from the prior and are another opinion on these modes. */
static const double FIRST_MISSING = 0.02;
/* Draws are annealed from the proposal to the posterior if a power of at least TEMPERED_LEAST of
 * their weights is even enough. */
static const double TEMPERED_LEAST = 0.2;
/* A start from the search closer than this to a known mode (squared Mahalanobis distance / d, at
 * the precision for the search's rows) is taken to lead to that mode. */
static const double SEARCH_NEAR = 4;
/* Particles used to test whether the proposal covers them. */
enum { COVERED = 200 };

/* Two estimates that differ by less agree up to modes of small mass, which a repetition of the
 * run may find or miss. */
double le_walk_chance_of(size_t d)
{
  const double half = 0.5 * (double)d;
  return half + 5 * sqrt(half) + 5;
}

/* Interim checks test whether the particles have found the main modes: once when the first stage
 * is over, and again before a switch to exact densities, which is expensive. */
int le_walk_may_check(const walk *w)
{
  return w->settings.search && !w->settings.record &&
         (double)w->target.seen > CHECK_GROWTH * (double)w->rows_at_check;
}

le_status le_walk_begin_check(walk *w, walk_check kind)
{
  if (w->rows_at_check && w->settings.search) le_search_start(&w->search);
  w->rows_at_check = w->target.seen;
  w->check = kind;
  w->first_checked = 1;
  w->target.chunk = 0;
  w->step = 0;
  w->machine.phase = w->settings.search ? SEARCH : AUDIT;
  return LE_OK;
}

le_status le_walk_search(void *self)
{
  walk *w = self;
  const double before = w->target.likelihoods + w->target.gradients;
  LE_TRY(le_search_step(&w->search, &w->audit, &w->target, w->machine.streams.rng[0],
                        w->machine.streams.order));
  w->check_cost += w->target.likelihoods + w->target.gradients - before;
  if (w->search.done) w->machine.phase = AUDIT;
  return LE_OK;
}

/* Steps for numerical differences: the standard deviations of the particles. */
static void scale_by_particles(walk *w)
{
  const size_t d = w->d;
  LE_SCRATCH(scale, w->target.stack, d);
  le_walk_weighted_mean(w, w->centre);
  memset(scale, 0, d * sizeof(double));
  for (size_t i = 0; i < w->m; i++)
    for (size_t j = 0; j < d; j++)
      scale[j] += w->weight[i] * pow(w->theta[i * d + j] - w->centre[j], 2);
  for (size_t j = 0; j < d; j++)
    scale[j] = scale[j] > 0 && isfinite(scale[j]) ? sqrt(scale[j]) : sqrt(w->prior_variance[j]);
  le_audit_scale(&w->audit, scale);
}

/* The rounds of the check of a run that knows its rows around one anchor: first among all modes of
 * the sample, without the polynomial, which is wrong far from the anchor; then around one anchor
 * with it; and at last with exact sums over all rows. */
static void begin_rounds(walk *w)
{
  if (le_rows_of(&w->target)->everywhere) return;
  w->past.plain = w->settings.search > 0;
  w->audit_round = w->past.plain ? ROUND_AROUND : ROUND_ANCHORED;
}

/* Starts of the climbs: the particle of largest weight, others drawn by weight, then the starts
 * that the search chose; for a model with one mode, the mean of the particles. */
static void start_audit(walk *w)
{
  const size_t d = w->d;
  begin_rounds(w);
  if (w->check == CHECK_FIRST) {
    le_search_climbs(&w->search, &w->audit, 0);
  } else if (w->settings.search || w->target.ops->traits & LE_MODEL_MULTIMODAL) {
    le_walk_relabel_to_past(w);
    const size_t starts = w->m < le_walk_particle_climbs(w) ? w->m : le_walk_particle_climbs(w),
                 found = w->search.found;
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
    if (found && w->search.few.n)
      w->audit.near = SEARCH_NEAR * (double)w->target.seen / (double)w->search.few.n;
    /* the wide component reaches far */
    if (w->m > 2 * d && le_rows_of(&w->target)->everywhere) {
      le_walk_weighted_mean(w, w->centre);
      if (le_metric_set_particles(&w->wide, w->m, w->theta, w->weight, w->prior_variance) ==
          LE_OK)
        le_audit_widen(&w->audit, w->centre, w->wide.factor);
    }
  } else {
    le_walk_weighted_mean(w, w->centre);
    le_audit_start(&w->audit, 1, w->centre);
  }
  if (!w->target.ops->log_lik_hess) scale_by_particles(w);
  /* before any particle has moved, uneven weights are a reason to let them: they are another
   * opinion, which a proposal that fits its own draws is not. Draws that will be used are
   * refitted. */
  w->audit.refit_from = w->check == CHECK_FINAL   ? 0
                        : w->check == CHECK_FIRST ? LE_AUDIT_LIMITS.known_ess
                                                  : INFINITY;
}

static void take_draws_of_check(walk *w, double doubt)
{
  const le_audit *a = &w->audit;
  LE_SCRATCH(weight, w->target.stack, a->draws);
  le_normalise(a->log_weight, a->draws, weight);
  le_walk_draw_particles(w, weight);
  const double variance = pow(doubt * a->se, 2) + w->past_se * w->past_se;
  le_walk_begin_from(w, a->log_evidence - (w->settings.correct ? 0.5 * variance : 0), variance);
}

/* If the importance weights are too uneven, a power of them is not: the draws are then annealed
 * from that power to the posterior, a shorter path than from the prior. Only if more rows
 * follow: with two clusters that had merged (300 rows), log Z was 0.27 nats too low (six runs,
 * standard deviation 0.1 each), which is small only against the errors that later rows add. */
static int anneal_from_proposal(walk *w)
{
  const le_stage *stage = stage_of(w);
  const int exact = stage->kernel && stage->gradient == LE_GRADIENT_FULL &&
                    (stage->kernel->ops->needs & LE_NEEDS_DENSITY);
  double lambda, log_integral, variance;
  if (!exact || (w->machine.closed && w->target.seen == w->machine.store.n)) return 0;
  LE_SCRATCH(weight, w->target.stack, w->audit.draws);
  if (!le_audit_temper(&w->audit, &w->target, &lambda, &log_integral, &variance, weight) ||
      lambda < TEMPERED_LEAST)
    return 0;
  le_walk_draw_particles(w, weight);
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

/* If importance sampling around the modes is good enough, its draws become the particles and
 * annealing from the prior is not needed; otherwise annealing begins. */
static le_status end_first_check(walk *w)
{
  le_audit *a = &w->audit;
  w->uneven = !a->failed && a->effective_size < LE_AUDIT_LIMITS.several_ess * a->ideal_size;
  if (a->failed ||
      !(a->effective_size > (a->refitted ? REFITTED_EVEN : LE_AUDIT_LIMITS.known_ess) *
                             a->ideal_size) ||
      !(a->pareto_k < (a->refitted ? REFITTED_TAIL : LE_AUDIT_LIMITS.most_k)) ||
      (w->settings.search && le_search_unseen(&w->search, a, 1) > FIRST_MISSING)) {
    if (anneal_from_proposal(w)) return LE_OK;
    w->target.seen = w->rows_at_check = 0;
    w->uneven = 0;
    return LE_OK;
  }
  take_draws_of_check(w, w->uneven ? LE_AUDIT_LIMITS.doubted : 1);
  a->unreached = 0;
  w->from_importance = 1;
  w->chunk_ess = 1;
  return w->target.seen < w->restart_rows ? LE_OK
                                          : le_walk_add_trace(w, (double)w->target.seen, 1, 0);
}

/* If importance sampling is even enough and finds far more evidence than the particles, its
 * draws replace them. */
static le_status end_interim_check(walk *w)
{
  const le_audit *a = &w->audit;
  const double chance = le_walk_chance_of(w->d);
  const int first = w->check == CHECK_FIRST;
  w->check = CHECK_FINAL;
  w->machine.phase = OPEN_CHUNK;
  /* in random order the first rows represent the others, and the final search can continue from
   * this one */
  if (!w->settings.shuffle) le_search_start(&w->search);
  if (first) return end_first_check(w);
  /* after a change of the distribution the particles cannot follow */
  const int changed = !le_rows_of(&w->target)->readable && w->restart_rows == w->target.seen;
  if (a->failed || (!changed && (!(a->effective_size > LE_AUDIT_LIMITS.known_ess * a->ideal_size) ||
                                 !(a->log_evidence - le_walk_current_log_evidence(w) > chance))))
    return LE_OK;
  take_draws_of_check(w, 1);
  w->restarts++;
  w->noise_measured_at = 0;
  return LE_OK;
}

/* For a model without starts of its own, particles can lie in modes that no climb has reached:
 * the proposal is tested on them. */
static le_status cover_particles(walk *w)
{
  if (!w->settings.search || w->target.ops->start || w->check == CHECK_FIRST) return LE_OK;
  const size_t n = w->m < COVERED ? w->m : COVERED;
  LE_SCRATCH(some, w->target.stack, n * w->d);
  for (size_t k = 0; k < n; k++)
    memcpy(some + k * w->d, w->theta + (k * w->m / n) * w->d, w->d * sizeof(double));
  return le_audit_cover(&w->audit, &w->target, n, some);
}

le_status le_walk_audit(void *self)
{
  walk *w = self;
  if (w->step++ == 0) start_audit(w);
  const int climbing = w->audit.phase == LE_AUDIT_CLIMB;
  const double before = w->target.likelihoods + w->target.gradients;
  LE_TRY(le_audit_step(&w->audit, &w->target, w->machine.streams.rng[0]));
  w->check_cost += w->target.likelihoods + w->target.gradients - before;
  const int rose = climbing && w->audit.phase != LE_AUDIT_CLIMB,
            anchored = !le_rows_of(&w->target)->everywhere;
  if (rose && anchored) LE_TRY(le_walk_next_round(w));
  else if (rose && w->audit.phase == LE_AUDIT_DRAW) LE_TRY(cover_particles(w));
  if (w->audit.phase != LE_AUDIT_DONE || w->machine.phase != AUDIT) return LE_OK;
  if (anchored && w->settings.search) w->audit.unreached = w->unreached;
  LE_TRY(le_walk_check_passes(w));
  if (w->machine.phase == AGAIN) return LE_OK;
  w->machine.phase = FINISHED;
  return w->check ? end_interim_check(w) : LE_OK;
}
