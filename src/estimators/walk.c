/* One engine for every method that walks particles along a path of annealed distributions (math.md 1, restated):
 * reweight, maybe resample, move, and again.  It holds no policy of its own: chunks, schedule, resampling, gradients,
 * kernels and metric are the choices of walk_settings.h.
 *
 * A walk may record its path (core/path.h), and another follow it without adapting to anything: forwards, or in reverse
 * from an exact draw from the posterior, moving before each reciprocal weight, so that the mean weight estimates 1 / Z
 * without bias (reverse AIS; by rows, the sequential harmonic mean).  All particles then have one metric: were it their
 * place that decides how they move, resampling in order would bias them.
 *
 * The walk is a small state machine.  A phase is a piece of work that is never left half-done, so the run can pause,
 * be saved or be given up between any two of them. */
#include "base/linalg.h"
#include "base/logsum.h"
#include "core/bridging.h"
#include "core/genealogy.h"
#include "core/machine.h"
#include "core/path.h"
#include "core/renewal.h"
#include "core/schedule.h"
#include "core/search.h"
#include "core/trace.h"
#include "estimators/parts.h"
#include "estimators/walk_settings.h"

#include <math.h>
#include <string.h>

typedef enum walk_phase {
  OPEN_CHUNK,  /* choose the next rows, or end the walk */
  REWEIGHT,    /* choose lambda, weigh, resample, prepare the kernel */
  MOVE,        /* one kernel move of all particles */
  CLOSE_CHUNK, /* the chunk joins the rows seen */
  STEP_BACK,   /* in reverse: weigh by what the distribution before this one leaves away */
  COLLECT,     /* posterior draws and their likelihoods */
  BRIDGE,
  SEARCH,      /* for modes that the particles have missed */
  AUDIT,
  FINISHED
} walk_phase;

/* Rows from which a change of the law is looked for, how many times as many as at the last one, and how short a first step is. */
enum { CHANGE_ROWS = 200 };
/* By what factor curvature and particles may differ on the length of a step. */
static const double CURVATURE_OFF = 5;
/* What gradients and particles may be like before control variates are given up, and pairs of gradients that are compared. Noise heats:
 * the default kernel would lose noise x d / 10 nats whenever rows have grown by a factor e, and makes up for what is measured. */
enum { NOISE_PAIRS = LE_DRAWS_MOST / 2 };
static const double NOISE_GROWTH = 1.2, NOISE_MOST = 0.5, HEATED_MOST = 5, WIDE_MOST = 2;
/* By how much rows must have grown for another look around, and the share of an ideal proposal's draws from which importance
 * sampling is believed there: less than at the end, since what it would replace is worthless. */
static const double LOOK_GROWTH = 4, LOOK_EVEN = 0.1;
/* Rows for each parameter from which there is a first look: of fewer, particles from the prior see
 * small modes that climbs miss (with 12 rows and five parameters the first look alone was 0.055 nats
 * low, its standard error 0.011). */
static const double FIRST_ROWS = 5;
/* The share of an ideal effective size from which the draws of the first look are particles, and the
 * Pareto shape of their weights at the most; the share under which their standard error counts three
 * times: AUDIT_LEAST_ESS and AUDIT_DOUBT of R/result.R. */
static const double FIRST_EVEN = 0.1, FIRST_TAIL = 0.7, FIRST_DOUBTED = 0.6, FIRST_DOUBT = 3;
/* The least power of weights from which draws are led to the posterior, and how many times as many
 * moves as elsewhere a distribution on the way has. */
static const double LED_FROM = 0.2;
enum { LED_MOVES = 4 };
/* Where the first look's weights were uneven the genealogy misses more of the variance.  Five
 * overlapping components had errors 1.3 times the standard error without it in 22 of 23 runs on 10^4
 * rows (one was 9 nats low), 0.7 times in 10 on 10^5 and 1.0 times in 6 on 10^6; multiplied so, the
 * standard errors of these 38 are all more than half of the errors. */
static const double UNEVEN_UNSEEN = 1.7;
/* Share of the observed information in a metric, where there is that of the completed data too. */
static const double OBSERVED = 0.7;
static const double CHANGE_FACTOR = 1.5, CHANGE_STEP = 0.048;
/* Squared distance per dimension, at the precision of its rows, at which a peak of the search is taken for one that is known. */
static const double SEARCH_NEAR = 4;

enum { MOMENT_COLUMNS = 5, TRACE_COLUMNS = 18, STEPS_MOST = 20000, AUDIT_CLIMBS = 4, AUDIT_CLIMBS_UNKNOWN = 8, AUDIT_BATCH = 64, SEARCH_ROWS = 1000, COVERED = 200 };
static const char *const moment_names[MOMENT_COLUMNS] = {"lambda", "mean", "variance", "ess", "log_ratio"};
static const char *const trace_names[TRACE_COLUMNS] = {
    "n",          "lambda",    "log_evidence", "se",        "lambda_steps", "shortest",    "ess",
    "acceptance", "step_size", "particles",    "temperature", "noise",        "drift",       "restarts",    "moves",
    "renewal",    "evaluations", "seconds"};

/* Search and importance sampling before the end of the rows: before any particle has moved, or when they are on their way. */
typedef enum walk_look { LOOK_NOT, LOOK_FIRST, LOOK_AGAIN } walk_look;

typedef struct walk {
  le_machine machine; /* streams 1..most: particles */
  le_walk_settings settings;
  const le_model_ops *model;
  size_t d, most; /* dimension, most particles of any stage */
  size_t total;   /* rows expected, 0 unknown */
  uint64_t seed;
  uint32_t replicate;
  le_arena arena;
  le_target target;
  le_gradient gradient[LE_STAGES_MOST];
  le_expansion expansion;
  le_metric metric[LE_STAGES_MOST][2]; /* of each half of the particles */
  void *kernel[LE_STAGES_MOST];
  le_genealogy genealogy;
  le_audit audit;
  le_search search;
  le_bridging bridging;
  le_renewal renewal;

  size_t stage, m;
  int skip_moves;    /* at this distribution */
  size_t step;       /* moves made at this distribution, or rounds collected */
  size_t chunk_steps; /* distributions of this chunk */
  size_t fixed;      /* next entry of a fixed schedule */
  double chunk_ess;  /* smallest effective size in this chunk, as a share of the particles */
  size_t regained;   /* rows seen when the walk last started again: until it is there it leaves no trace */
  double restarts;
  double drift;      /* squared distance of the particles from the anchor at its beginning, in posterior variances per dimension */
  double shortest;   /* annealing step of this chunk */
  size_t noised;     /* rows seen when the gradients' noise was last measured */
  size_t refuge;     /* rows at which control variates get another chance, 0 while they have not failed */
  size_t looked;     /* rows seen when search and audit last looked around */
  int looking;       /* a walk_look */
  int first_looked;
  int uneven;        /* the first look's weights were: the posterior is far from normal around its peaks */
  int checked;       /* particles are importance sampling's, of all rows seen */
  size_t moves;      /* planned at this distribution, 0 before the first where they follow the renewal */
  size_t tried;      /* of them, when the renewal was first found too small, and that renewal */
  double tried_renewal, renewed;
  int settled;       /* distributions to come at which no second measurement is worth its moves */
  int resting;       /* distributions to come at which the renewal, last more than enough, is not measured */
  double heat;       /* temperature of particles whose kernel rejects nothing */
  double lost, lost_variance;     /* what it costs log Z while rows or lambda grow by a factor e */
  double heated, heated_variance; /* what it has cost so far */
  double eager;      /* what choosing steps by the particles that they weigh adds to log Z */
  double banked;     /* log Z of finished chunks, when weights are replaced by their mean */
  double banked_variance;
  double *twin; /* most x d */
  double *theta, *log_weight, *chunk_value, *weight, *swap, *work, *prior_variance;
  double *anchor_info, *chunk_info; /* information at the anchor, over rows seen and chunk */
  double *precision, *centre, *labels;
  size_t *ancestor;

  double *draw_theta, *draw_value; /* rounds x m draws */

  le_path path;      /* to follow; no points: none */
  size_t at;         /* points of it that are behind us; in reverse, left, the present one among them */

  le_trace trace, moments, recorded;
  double lambda_steps;
  double summary[14];
} walk;

static const le_stage *stage_of(const walk *w)
{
  return &w->settings.stage[w->stage];
}

static int follows(const walk *w)
{
  return w->path.points > 0;
}

/* What modes that hold less than all others may differ by, in nats: they say little for another
 * walk. */
static double chance_of(size_t d)
{
  const double half = 0.5 * (double)d;
  return half + 5 * sqrt(half) + 5;
}

/* Where the model has no starts of its own, the particles are the best there are. */
static size_t particle_climbs(const walk *w)
{
  return w->settings.search && !w->model->start ? AUDIT_CLIMBS_UNKNOWN : AUDIT_CLIMBS;
}

/* At the end, or with a search before it. */
static int samples_importance(const walk *w)
{
  return w->settings.audit || w->settings.search;
}

/* Is the renewal of the particles measured at any stage? */
static int renews(const walk *w)
{
  int any = 0;
  for (size_t s = 0; s < w->settings.stages; s++) any |= w->settings.stage[s].renew != 0;
  return any;
}

static size_t moves_wanted(const walk *w);
static le_status begin_moves(walk *w, int resampled);
static void add_lost(walk *w, double increment);

/* ---- memory ---- */

static void walk_free(void *self)
{
  walk *w = self;
  if (!w) return;
  le_machine_free(&w->machine);
  le_search_free(&w->search);
  le_trace_free(&w->trace);
  le_trace_free(&w->moments);
  le_trace_free(&w->recorded);
  le_arena_free(&w->arena);
  le_release(w);
}

static le_status alloc_stage(walk *w, size_t s)
{
  const le_stage *stage = &w->settings.stage[s];
  for (size_t half = 0; half < 2; half++) le_metric_alloc(&w->metric[s][half], w->d, stage->metric_kind, &w->arena);
  le_gradient_alloc(&w->gradient[s], stage->gradient, stage->gradient == LE_GRADIENT_FULL ? 1 : stage->batch,
                    &w->target, &w->arena);
  if (w->arena.failed) return LE_NO_MEMORY;
  if (!stage->kernel) return LE_OK;
  return stage->kernel->ops->alloc(&stage->kernel->args, w->d, stage->particles, &w->arena, &w->kernel[s]);
}

static le_status alloc_all(walk *w, const le_problem *problem)
{
  const le_walk_settings *settings = &w->settings;
  const size_t d = w->d, most = w->most;
  le_target_alloc(&w->target, problem->ops, problem->model, most, w->machine.context, &w->arena);
  w->target.store = &w->machine.store;
  w->target.rng = w->machine.streams.rng[0];
  w->theta = le_arena_doubles(&w->arena, most * d);
  w->swap = le_arena_doubles(&w->arena, most * d);
  w->twin = le_arena_doubles(&w->arena, most * d);
  w->log_weight = le_arena_doubles(&w->arena, most);
  w->chunk_value = le_arena_doubles(&w->arena, most);
  w->weight = le_arena_doubles(&w->arena, most);
  w->work = le_arena_doubles(&w->arena, 2 * d * d + 4 * d + most);
  w->prior_variance = le_arena_doubles(&w->arena, d);
  w->anchor_info = le_arena_doubles(&w->arena, d * d);
  w->chunk_info = le_arena_doubles(&w->arena, d * d);
  w->precision = le_arena_doubles(&w->arena, d * d);
  w->centre = le_arena_doubles(&w->arena, d);
  w->labels = le_arena_doubles(&w->arena, d);
  w->ancestor = le_arena_indices(&w->arena, most);
  le_genealogy_alloc(&w->genealogy, settings->lag, most, &w->arena);
  if (renews(w)) le_renewal_alloc(&w->renewal, d, most, &w->arena);
  le_expansion_alloc(&w->expansion, &w->target, &w->arena);
  if (samples_importance(w)) {
    le_audit_alloc(&w->audit, &w->target, particle_climbs(w) + settings->search, settings->audit_draws, settings->audit_lots, AUDIT_BATCH, &w->arena);
    le_audit_by_part(&w->audit, &w->target, &w->expansion, settings->audit_part, settings->audit_least, settings->audit_work,
                     &w->arena);
  }
  if (settings->search) le_search_alloc(&w->search, &w->target, settings->search, SEARCH_ROWS, &w->arena);
  if (settings->rounds) {
    const size_t m = settings->stage[settings->stages - 1].particles;
    w->draw_theta = le_arena_doubles(&w->arena, settings->rounds * m * d);
    w->draw_value = le_arena_doubles(&w->arena, settings->rounds * m);
    if (settings->bridge) le_bridging_alloc(&w->bridging, &w->target, m, settings->rounds, 32, &w->arena);
  }
  if (w->arena.failed) return LE_NO_MEMORY;
  for (size_t s = 0; s < settings->stages; s++) LE_TRY(alloc_stage(w, s));
  return LE_OK;
}

static void enter_stage(walk *w, size_t s)
{
  w->stage = s;
  w->m = w->settings.stage[s].particles;
  w->target.gradient = &w->gradient[s];
  const int halves = w->settings.stage[s].metric == LE_METRIC_FROM_PARTICLES && !follows(w);
  w->target.metric[0] = &w->metric[s][0];
  w->target.metric[1] = &w->metric[s][halves];
  w->target.split = w->m / 2;
}

static le_status take_path(walk *w)
{
  const le_arg *follow = w->settings.follow;
  w->recorded.columns = w->path.columns = le_path_columns(&w->metric[0][0]);
  w->path.d = w->d;
  if (!follow) return LE_OK;
  w->path.values = follow->values;
  w->path.points = follow->n / w->path.columns;
  if (follow->values && follow->n > 0 && follow->n % w->path.columns == 0) return LE_OK;
  return le_fail(&w->machine.context->error, LE_BAD_ARGUMENT, "The path to follow must have %.0f numbers for each distribution.",
                 (double)w->path.columns);
}

/* Where all particles begin, and nothing is known. */
static void spread_out(walk *w)
{
  const size_t d = w->d;
  for (size_t i = 0; i < w->m; i++) {
    if (w->settings.reverse)
      memcpy(w->theta + i * d, w->settings.from + i % w->settings.starts * d, d * sizeof(double));
    else
      w->model->draw_prior(w->target.model, w->machine.streams.rng[i + 1], w->theta + i * d);
    w->log_weight[i] = 0;
    w->weight[i] = 1 / (double)w->m;
  }
  for (size_t j = 0; j < d; j++) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < w->m; i++) mean += w->theta[i * d + j] / (double)w->m;
    for (size_t i = 0; i < w->m; i++) square += pow(w->theta[i * d + j] - mean, 2) / (double)w->m;
    w->prior_variance[j] = square > 0 ? square : 1;
  }
  le_genealogy_start(&w->genealogy, w->m);
  w->machine.phase = OPEN_CHUNK;
}

static le_status walk_start(void *self)
{
  spread_out(self);
  return LE_OK;
}

/* ---- estimates ---- */

static double unseen(const walk *w)
{
  return w->uneven ? UNEVEN_UNSEEN * w->settings.unseen : w->settings.unseen;
}

static double current_variance(const walk *w)
{
  return w->banked_variance + unseen(w) * w->genealogy.variance + w->eager * w->eager;
}

static double current_log_evidence(const walk *w)
{
  const double plain = w->banked + le_logmeanexp(w->log_weight, w->m);
  if (w->settings.reverse) return -plain;
  return plain + (w->settings.correct ? 0.5 * current_variance(w) : 0);
}

/* P at (seen, lambda) from the sums at the anchor. */
static void observed_precision(const walk *w, double *precision)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  memset(precision, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, g->anchor, precision);
  for (size_t k = 0; k < d * d; k++)
    precision[k] = -precision[k] - g->hess[k] - w->target.lambda * g->chunk_hess[k];
}

/* How wide the particles lie against the curvature at the anchor: 1 when right. */
static double temperature(const walk *w)
{
  const size_t d = w->d;
  if (stage_of(w)->gradient != LE_GRADIENT_CONTROL || stage_of(w)->metric != LE_METRIC_FROM_CURVATURE ||
      !w->gradient[w->stage].anchored)
    return NAN;
  double *mean = w->work, *shift = w->work + d, *product = w->work + 2 * d, *precision = w->work + 3 * d, sum = 0, square = 0;
  observed_precision(w, precision);
  memset(mean, 0, d * sizeof(double));
  for (size_t i = 0; i < w->m; i++) {
    square += w->weight[i] * w->weight[i];
    for (size_t j = 0; j < d; j++) mean[j] += w->weight[i] * w->theta[i * d + j];
  }
  for (size_t i = 0; i < w->m; i++) {
    for (size_t j = 0; j < d; j++) shift[j] = w->theta[i * d + j] - mean[j];
    sum += w->weight[i] * le_quadratic_form(precision, d, shift, product);
  }
  return square < 1 ? sum / ((double)d * (1 - square)) : NAN;
}

static le_status add_trace(walk *w, double n, double lambda, double steps)
{
  const le_stage *stage = stage_of(w);
  le_kernel_report report = {NAN, NAN};
  if (stage->kernel) report = stage->kernel->ops->report(w->kernel[w->stage]);
  const double wide = temperature(w);
  const double row[TRACE_COLUMNS] = {n,
                                     lambda,
                                     current_log_evidence(w),
                                     sqrt(fmax(current_variance(w), 0)),
                                     steps,
                                     w->shortest,
                                     w->chunk_ess * (double)w->m,
                                     report.acceptance,
                                     report.step_size,
                                     (double)w->m,
                                     isnan(wide) ? w->heat : wide,
                                     w->target.noise,
                                     w->drift,
                                     w->restarts,
                                     w->skip_moves || !stage->kernel ? 0 : (double)w->step,
                                     w->renewed,
                                     w->target.likelihoods + w->target.gradients,
                                     w->machine.seconds};
  double *added = le_trace_add(&w->trace);
  if (!added) return LE_NO_MEMORY;
  memcpy(added, row, sizeof row);
  return LE_OK;
}

/* ---- opening a chunk ---- */

static size_t heaviest(const walk *w)
{
  size_t best = 0;
  for (size_t i = 1; i < w->m; i++)
    if (w->weight[i] > w->weight[best]) best = i;
  return best;
}

/* Labels of all particles as near to the reference as possible: their density does not change, and from now on they
 * keep to these labels. */
static void relabel_to(walk *w, const double *reference)
{
  if (!w->model->relabel) return;
  memcpy(w->labels, reference, w->d * sizeof(double));
  w->target.labels = w->labels;
#ifdef _OPENMP
#pragma omp parallel for num_threads(le_target_threads(&w->target, w->m, w->d * w->d)) schedule(static)
#endif
  for (size_t i = 0; i < w->m; i++) w->model->relabel(w->target.model, reference, w->theta + i * w->d);
}

static void relabel_to_heaviest(walk *w)
{
  if (!w->model->relabel) return;
  memcpy(w->work, w->theta + heaviest(w) * w->d, w->d * sizeof(double));
  relabel_to(w, w->work);
}

static void weighted_mean(const walk *w, double *mean)
{
  memset(mean, 0, w->d * sizeof(double));
  for (size_t i = 0; i < w->m; i++) le_add_scaled(w->d, w->weight[i], w->theta + i * w->d, mean);
}

static void take_offspring(walk *w, size_t m)
{
  const size_t d = w->d;
  for (size_t j = 0; j < m; j++) memcpy(w->swap + j * d, w->theta + w->ancestor[j] * d, d * sizeof(double));
  double *old = w->theta;
  w->theta = w->swap;
  w->swap = old;
}

/* Replaces the particles by m equally weighted offspring of the same total weight. */
static void resample(walk *w, size_t m)
{
  const double level = le_logmeanexp(w->log_weight, w->m);
  le_resample(stage_of(w)->resampling, w->m, w->weight, m, w->machine.streams.rng[0], w->work, w->ancestor);
  take_offspring(w, m);
  const le_resampling scheme = stage_of(w)->resampling;
  le_genealogy_resample(&w->genealogy, w->m, w->weight, scheme == LE_MULTINOMIAL || scheme == LE_RESIDUAL, m,
                        w->ancestor);
  w->m = m;
  for (size_t i = 0; i < m; i++) {
    w->log_weight[i] = level;
    w->weight[i] = 1 / (double)m;
  }
}

static void next_stage(walk *w)
{
  const size_t to = w->settings.stage[w->stage + 1].particles;
  if (to != w->m) resample(w, to);
  enter_stage(w, w->stage + 1);
}

/* P at (seen, lambda) from the sums at the anchor; for models with several modes blended with the information of the
 * completed data, which is never indefinite. */
static le_status anchored_precision(walk *w, double *precision)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  const double lambda = w->target.lambda;
  observed_precision(w, precision);
  if (!w->model->information) return LE_OK;
  double *prior = w->work;
  memset(prior, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, g->anchor, prior);
  for (size_t k = 0; k < d * d; k++) {
    const double complete = w->anchor_info[k] + lambda * w->chunk_info[k] - prior[k];
    precision[k] = OBSERVED * precision[k] + (1 - OBSERVED) * complete;
  }
  memcpy(w->work, precision, d * d * sizeof(double));
  if (le_cholesky(w->work, d) == LE_OK) return LE_OK;
  memset(precision, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, g->anchor, precision);
  for (size_t k = 0; k < d * d; k++)
    precision[k] = -precision[k] + w->anchor_info[k] + lambda * w->chunk_info[k];
  return LE_OK;
}

/* The anchor of the control variates moves when the rows have doubled, or when the particles have left it. */
static int anchor_is_stale(walk *w)
{
  const le_gradient *g = &w->gradient[w->stage];
  if (!g->anchored) return 1;
  if (w->model->traits & LE_MODEL_QUADRATIC && g->second_order) return 0;
  double *shift = w->work, *product = w->work + w->d;
  weighted_mean(w, shift);
  for (size_t j = 0; j < w->d; j++) shift[j] -= g->anchor[j];
  w->drift = le_quadratic_form(w->precision, w->d, shift, product) / (double)w->d;
  return w->target.seen >= 2 * g->anchored_rows || w->drift > 1;
}

static le_status open_chunk_at_anchor(walk *w)
{
  const size_t d = w->d;
  le_gradient *g = &w->gradient[w->stage];
  if (g->anchored) relabel_to(w, g->anchor);
  if (anchor_is_stale(w)) {
    if (!g->anchored) relabel_to_heaviest(w);
    weighted_mean(w, w->centre);
    LE_TRY(le_gradient_set_anchor(g, &w->target, w->centre));
    relabel_to(w, g->anchor);
    memset(w->anchor_info, 0, d * d * sizeof(double));
    if (w->model->information)
      LE_TRY(le_target_information(&w->target, 0, w->target.seen, 1, g->anchor, w->anchor_info));
  }
  LE_TRY(le_gradient_open_chunk(g, &w->target));
  memset(w->chunk_info, 0, d * d * sizeof(double));
  if (w->model->information)
    LE_TRY(le_target_information(&w->target, w->target.seen, w->target.seen + w->target.chunk, 1, g->anchor,
                                 w->chunk_info));
  return LE_OK;
}

/* Of a pair of batches the squared size of what gradients by them differ by. */
typedef struct noise_pair {
  walk *walk;
  size_t pair;
} noise_pair;

static le_status some_noise(void *self, le_target *target, size_t first, size_t m)
{
  const noise_pair *pair = self;
  const walk *w = pair->walk;
  const size_t d = w->d;
  const double *theta = w->theta + first * d;
  double *one = w->swap + first * d, *other = w->twin + first * d;
  LE_TRY(le_gradient_estimate(&w->gradient[w->stage], 2 * pair->pair, target, m, theta, one));
  LE_TRY(le_gradient_estimate(&w->gradient[w->stage], 2 * pair->pair + 1, target, m, theta, other));
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < d; j++) other[i * d + j] -= one[i * d + j];
    le_metric_kick(&w->metric[w->stage][0], other + i * d, one + i * d);
    other[i * d] = le_dot(one + i * d, one + i * d, d);
  }
  return LE_OK;
}

/* How much variance the gradients of mini-batches have, from pairs of them, on the scale on which the posterior's own is 1. */
static le_status gradient_noise(walk *w)
{
  const size_t d = w->d, m = w->m;
  le_gradient *g = &w->gradient[w->stage];
  double sum = 0;
  w->target.noise = 0;
  w->noised = w->target.seen;
  if (w->model->traits & LE_MODEL_QUADRATIC && g->second_order) return LE_OK;
  LE_TRY(le_gradient_draw(g, &w->target, 2 * NOISE_PAIRS));
  for (size_t pair = 0; pair < NOISE_PAIRS; pair++) {
    noise_pair all = {w, pair};
    LE_TRY(le_target_share(&w->target, m, (double)(2 * le_gradient_rows(g, &w->target)), some_noise, &all));
    for (size_t i = 0; i < m; i++) sum += w->twin[i * d];
  }
  w->target.noise = sum / (2 * NOISE_PAIRS * (double)(m * d));
  return LE_OK;
}

/* Search and audit, on the rows so far, say whether particles are where the posterior is: once when the early phase is over, and
 * again before a refuge, which is dear.  Before the early phase they may make it unnecessary, see end_look(). */
static int may_look(const walk *w)
{
  return w->settings.search && !w->settings.record &&
         (double)w->target.seen > LOOK_GROWTH * (double)w->looked;
}

static int may_look_first(const walk *w)
{
  return w->settings.first_look && w->settings.search && !w->settings.record && w->settings.stages > 1 &&
         w->stage == 0 && w->target.seen == 0 && !w->first_looked;
}

static le_status look_around(walk *w, walk_look kind)
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

/* Control variates work where the posterior is close enough to normal around one anchor.  Where their gradients are all noise, or
 * particles do not lie as wide as the curvature says, a last stage of exact densities takes over, until rows have doubled. */
static le_status open_controlled_chunk(walk *w)
{
  LE_TRY(open_chunk_at_anchor(w));
  const size_t last = w->settings.stages - 1;
  if (stage_of(w)->metric != LE_METRIC_FROM_CURVATURE) return LE_OK;
  LE_TRY(anchored_precision(w, w->precision));
  const int definite = le_metric_set_precision(&w->metric[w->stage][0], w->precision) == LE_OK;
  if (definite && (double)w->target.seen >= NOISE_GROWTH * (double)w->noised) LE_TRY(gradient_noise(w));
  if (last < 2) return LE_OK;
  const double wide = temperature(w);
  if (definite && w->target.noise < fmin(NOISE_MOST, HEATED_MOST / (double)w->d) && !(wide > WIDE_MOST || wide < 1 / WIDE_MOST)) {
    if (w->m != stage_of(w)->particles) resample(w, stage_of(w)->particles);
    w->refuge = 0;
    return LE_OK;
  }
  w->gradient[w->stage].anchored = 0;
  w->refuge = 0;
  if (may_look(w)) return look_around(w, LOOK_AGAIN);
  w->refuge = 2 * w->target.seen;
  if (w->m != w->settings.stage[last].particles) resample(w, w->settings.stage[last].particles);
  enter_stage(w, last);
  return LE_OK;
}

/* The annealed distribution of a point of the path; before the first, the prior. */
static void take_place(walk *w, size_t points)
{
  const le_path_point point = le_path_at(&w->path, points > 0 ? points - 1 : 0);
  w->target.seen = points > 0 ? point.seen : 0;
  w->target.chunk = points > 0 ? point.chunk : 0;
  w->target.lambda = points > 0 ? point.lambda : 0;
}

static le_status set_out(walk *w, le_progress *progress)
{
  if (!w->machine.closed) {
    *progress = LE_NEEDS_ROWS;
    return LE_OK;
  }
  LE_TRY(le_path_check(&w->path, w->machine.store.n, &w->machine.context->error));
  if (!w->settings.reverse) return LE_OK;
  w->at = w->path.points;
  w->chunk_ess = 1;
  take_place(w, w->at);
  return begin_moves(w, 0);
}

static le_status open_chunk(void *self, le_progress *progress)
{
  walk *w = self;
  if (follows(w) && w->at == 0) {
    LE_TRY(set_out(w, progress));
    if (*progress == LE_NEEDS_ROWS || w->machine.phase != OPEN_CHUNK) return LE_OK;
  }
  const size_t seen = w->target.seen, there = w->machine.store.n - seen;
  while (w->stage + 1 < w->settings.stages && (double)seen >= stage_of(w)->until) next_stage(w);
  if (w->refuge && seen >= w->refuge) {
    /* particles stay as many as they are until it is known whether they go on like this */
    const size_t m = w->m;
    enter_stage(w, w->stage - 1);
    w->m = m;
  }
  const le_stage *stage = stage_of(w);
  if (may_look_first(w) && w->machine.closed && (double)w->machine.store.n < FIRST_ROWS * (double)w->d) w->first_looked = 1;
  if (may_look_first(w) && (w->machine.store.n >= stage->until || (w->machine.closed && there > 0))) {
    w->target.seen = (size_t)fmin(stage->until, (double)(w->regained ? w->regained : w->machine.store.n));
    return look_around(w, LOOK_FIRST);
  }
  if (may_look_first(w) && !w->machine.closed) {
    *progress = LE_NEEDS_ROWS;
    return LE_OK;
  }
  if (there == 0 && w->machine.closed && w->checked) {
    w->machine.phase = FINISHED;
    return LE_OK;
  }
  if (there == 0 && w->machine.closed) {
    w->machine.phase = w->settings.rounds ? COLLECT : w->settings.audit && seen > 0 ? (w->settings.search ? SEARCH : AUDIT) : FINISHED;
    w->step = 0;
    w->target.chunk = 0;
    w->target.lambda = 0;
    return LE_OK;
  }
  double wanted = floor(stage->chunk_fraction * (double)seen);
  wanted = fmin(fmax(wanted, stage->chunk_least), stage->chunk_most);
  if (stage->whole) wanted = INFINITY;
  if (seen < w->regained) wanted = fmin(wanted, (double)(w->regained - seen));
  if ((double)there < wanted && !w->machine.closed) {
    *progress = LE_NEEDS_ROWS;
    return LE_OK;
  }
  if (stage->gradient == LE_GRADIENT_CONTROL && !w->looked && may_look(w)) return look_around(w, LOOK_AGAIN);
  w->target.chunk = (double)there < wanted ? there : (size_t)wanted;
  if (follows(w)) w->target.chunk = le_path_at(&w->path, w->at).chunk;
  w->target.lambda = 0;
  w->chunk_steps = w->fixed = 0;
  w->checked = 0;
  w->chunk_ess = 1;
  w->drift = NAN;
  if (stage->gradient != LE_GRADIENT_CONTROL) w->target.noise = NAN;
  w->shortest = 1;
  w->machine.phase = REWEIGHT;
  return stage->gradient == LE_GRADIENT_CONTROL ? open_controlled_chunk(w) : LE_OK;
}

/* ---- reweighting ---- */

/* The number, in the user's order, of the first row of the chunk that no particle can explain. */
static le_status impossible_row(walk *w)
{
  const size_t seen = w->target.seen;
  size_t found = seen;
  for (size_t r = seen; r < seen + w->target.chunk; r++) {
    LE_TRY(le_target_log_lik(&w->target, r, r + 1, w->m, w->theta, w->chunk_value));
    int possible = 0;
    for (size_t i = 0; i < w->m; i++) possible |= w->chunk_value[i] > -INFINITY;
    found = r;
    if (!possible) break;
  }
  le_streams again;
  if (w->regained || (w->settings.shuffle && w->machine.feeds > 1))
    return le_fail(&w->machine.context->error, LE_ALL_IMPOSSIBLE,
                   "An observation has zero likelihood (or one that is not a number) under every particle.");
  if (w->settings.shuffle &&
      le_streams_alloc(&again, 0, w->seed, w->replicate) == LE_OK) {
    found = le_store_origin(w->machine.store.n, found, again.order);
    le_streams_free(&again);
  }
  return le_fail(&w->machine.context->error, LE_ALL_IMPOSSIBLE,
                 "Observation %.0f has zero likelihood (or one that is not a number) under every particle.",
                 (double)found + 1);
}

/* Does the next chunk contradict the rows seen?  A first step this short, against what the rule for steps makes of a chunk like
 * those before, says so: the law of the stream has changed, and particles that are led from the old posterior to the new one
 * cross between modes too late to keep their shares. */
static int law_has_changed(const walk *w, double increment)
{
  const le_stage *stage = stage_of(w);
  const double seen = (double)w->target.seen, usual = sqrt(-log(stage->ess / (double)w->m));
  return w->settings.restarts && w->target.lambda == 0 && stage->schedule != LE_FIXED_STEPS && seen >= CHANGE_ROWS &&
         seen >= CHANGE_FACTOR * (double)w->regained && increment < CHANGE_STEP * usual;
}

/* All rows so far, the chunk among them, in random order from the prior on. */
static le_status start_again(walk *w)
{
  w->regained = w->target.seen + w->target.chunk;
  w->restarts++;
  LE_TRY(le_store_shuffle(&w->machine.store, 0, w->regained, w->machine.streams.order));
  w->target.seen = w->target.chunk = 0;
  w->target.lambda = 0;
  w->target.labels = NULL;
  w->refuge = w->noised = 0;
  w->looked = 0;
  w->first_looked = w->uneven = 0;
  le_search_start(&w->search);
  w->banked = w->banked_variance = w->eager = w->heated = w->heated_variance = 0;
  w->lost = NAN;
  for (size_t s = 0; s < w->settings.stages; s++) w->gradient[s].anchored = w->gradient[s].exact_until = 0;
  enter_stage(w, 0);
  spread_out(w);
  return LE_OK;
}

/* The step at which a Gaussian posterior's effective sample size would fall to the goal: the chunk's log-likelihood
 * has variance v = g' P^-1 g + tr((P^-1 H)^2) / 2 there, and exp(-step^2 v) is the share that is left. */
static double curvature_step(walk *w)
{
  const size_t d = w->d;
  const le_gradient *g = &w->gradient[w->stage];
  const double lambda = w->target.lambda;
  double *factor = w->work, *grad = w->work + d * d, *mean = grad + d;
  memcpy(factor, w->precision, d * d * sizeof(double));
  if (le_cholesky(factor, d) != LE_OK) return NAN;
  /* the mean of the annealed posterior, by one Newton step from the anchor, and the chunk's gradient there */
  w->model->log_prior_grad(w->target.model, 1, g->anchor, mean);
  for (size_t j = 0; j < d; j++) mean[j] += g->grad[j] + lambda * g->chunk_grad[j];
  le_cholesky_solve(factor, d, mean);
  memcpy(grad, g->chunk_grad, d * sizeof(double));
  le_add_symmetric_matvec(g->chunk_hess, d, mean, grad);
  memcpy(mean, grad, d * sizeof(double));
  le_cholesky_solve(factor, d, mean);
  double variance = le_dot(grad, mean, d);
  /* tr((P^-1 H)^2) = sum of squares of L^-1 H L^-T */
  double *inverse = w->metric[w->stage][0].work, *across = inverse + d * d;
  le_lower_inverse(factor, d, inverse);
  le_transpose(inverse, d, across);
  for (size_t i = 0; i < d; i++) {
    memset(grad, 0, d * sizeof(double));
    le_add_symmetric_matvec(g->chunk_hess, d, inverse + i * d, grad);
    le_upper_transpose_matvec(across, d, grad, mean);
    variance += 0.5 * le_dot(mean, mean, d);
  }
  return sqrt(-log(stage_of(w)->ess / (double)w->m) / variance);
}

/* Where the particles happen to have high likelihoods they also happen to spread less, and choose a longer step: one of length
 * c / s adds -c cov(mean, s) / s to log Z, with cov(mean, s) = third central moment / (2 s m). */
static double eagerness(const walk *w, double increment)
{
  double mean = 0, square = 0, cube = 0, squares = 0;
  for (size_t i = 0; i < w->m; i++) {
    if (!(w->weight[i] > 0)) continue;
    if (!isfinite(w->chunk_value[i])) return 0;
    mean += w->weight[i] * w->chunk_value[i];
    squares += w->weight[i] * w->weight[i];
  }
  for (size_t i = 0; i < w->m; i++) {
    if (!(w->weight[i] > 0)) continue;
    const double away = w->chunk_value[i] - mean;
    square += w->weight[i] * away * away;
    cube += w->weight[i] * away * away * away;
  }
  return square > 0 ? -increment * cube / (2 * square) * squares : 0;
}

static le_status choose_increment(walk *w, double *increment)
{
  const le_stage *stage = stage_of(w);
  const double lambda = w->target.lambda, rest = 1 - lambda;
  if (follows(w)) {
    *increment = le_path_at(&w->path, w->at).lambda - lambda;
    return LE_OK;
  }
  switch (stage->schedule) {
  case LE_ONE_STEP:
    *increment = rest;
    return LE_OK;
  case LE_FIXED_STEPS:
    *increment = w->fixed + 1 < stage->lambdas ? stage->lambda[w->fixed] - lambda : rest;
    w->fixed++;
    return LE_OK;
  case LE_CURVATURE_STEPS: {
    if (stage->gradient == LE_GRADIENT_CONTROL) {
      LE_TRY(anchored_precision(w, w->precision));
      double step = curvature_step(w), seen;
      if (isfinite(step) && step > 0) {
        /* where the posterior is nothing like what its curvature says, the particles know better */
        if (le_schedule_adaptive(w->chunk_value, w->m, stage->ess, lambda, &seen) == LE_OK)
          step = fmin(fmax(step, seen / CURVATURE_OFF), seen * CURVATURE_OFF);
        /* steps of equal length: the last one is not a crumb */
        *increment = rest / ceil(rest / step);
        return lambda + *increment > lambda ? LE_OK : LE_STALLED;
      }
    }
  } /* fall through: no curvature to go by */
  case LE_ADAPTIVE_STEPS:
    break;
  }
  LE_TRY(le_schedule_adaptive(w->chunk_value, w->m, stage->ess, lambda, increment));
  /* a chunk that one step cannot take up moves the posterior: particles must keep up with it */
  if (stage->anneal > stage->ess && (lambda > 0 || *increment < rest))
    return le_schedule_adaptive(w->chunk_value, w->m, stage->anneal, lambda, increment);
  if (stage->whole && *increment < rest) w->eager += eagerness(w, *increment);
  return LE_OK;
}

/* From the particles [from, to), which others will move by. */
static void metric_of_other_half(walk *w, le_metric *metric, size_t from, size_t to)
{
  double total = 0;
  for (size_t i = from; i < to; i++) total += w->weight[i];
  if (!(total > 0)) return;
  for (size_t i = from; i < to; i++) w->work[i] = w->weight[i] / total;
  le_metric_set_particles(metric, to - from, w->theta + from * w->d, w->work + from, w->prior_variance);
}

/* Labels, metric and step size as they were when the path was recorded.  The density is the same under all labels, so
 * that particles may change theirs from one distribution to the next. */
static le_status tune_as_recorded(walk *w, const le_path_point *point)
{
  w->target.labels = NULL;
  if (point->labels) relabel_to(w, point->labels);
  stage_of(w)->kernel->ops->fix(w->kernel[w->stage], point->step);
  return le_metric_read(&w->metric[w->stage][0], point->metric);
}

/* The metric for moves at the new distribution; an indefinite or missing one leaves the old. */
static le_status update_metric(walk *w)
{
  const le_stage *stage = stage_of(w);
  le_metric *metric = w->metric[w->stage];
  const size_t d = w->d;
  if (stage->metric == LE_METRIC_FIXED) return LE_OK;
  if (stage->gradient == LE_GRADIENT_CONTROL && stage->metric == LE_METRIC_FROM_CURVATURE) {
    LE_TRY(anchored_precision(w, w->precision));
    relabel_to(w, w->gradient[w->stage].anchor);
    le_metric_set_precision(&metric[0], w->precision);
    return LE_OK;
  }
  if (w->target.proposal)
    relabel_to(w, w->audit.mode[0].theta); /* the labels of its draws */
  else
    relabel_to_heaviest(w);
  if (stage->metric == LE_METRIC_FROM_PARTICLES) {
    metric_of_other_half(w, &metric[0], w->target.split, w->m);
    metric_of_other_half(w, &metric[1], 0, w->target.split);
    return LE_OK;
  }
  weighted_mean(w, w->centre);
  memset(w->precision, 0, d * d * sizeof(double));
  w->model->log_prior_hess(w->target.model, w->centre, w->precision);
  for (size_t k = 0; k < d * d; k++) w->precision[k] = -w->precision[k];
  LE_TRY(le_target_information(&w->target, 0, w->target.seen, 1, w->centre, w->precision));
  LE_TRY(le_target_information(&w->target, w->target.seen, w->target.seen + w->target.chunk, w->target.lambda,
                               w->centre, w->precision));
  le_metric_set_precision(&metric[0], w->precision);
  return LE_OK;
}

/* Mean and variance of the chunk's log-likelihood as the particles have it now, and the ratio of evidences that a step of
 * this size makes. */
static le_status add_moments(walk *w, double increment)
{
  double mean = 0, square = 0, total = 0, squares = 0;
  double *term = w->work;
  for (size_t i = 0; i < w->m; i++) {
    term[i] = log(w->weight[i]) + increment * w->chunk_value[i];
    if (w->weight[i] > 0) mean += w->weight[i] * w->chunk_value[i];
    squares += w->weight[i] * w->weight[i];
    total += w->weight[i];
  }
  for (size_t i = 0; i < w->m; i++)
    if (w->weight[i] > 0) square += w->weight[i] * pow(w->chunk_value[i] - mean, 2);
  const double row[MOMENT_COLUMNS] = {w->target.lambda, mean, square, total * total / squares, le_logsumexp(term, w->m)};
  double *added = le_trace_add(&w->moments);
  if (!added) return LE_NO_MEMORY;
  memcpy(added, row, sizeof row);
  return LE_OK;
}

static int measures_renewal(const walk *w)
{
  return stage_of(w)->renew != 0 && !follows(w) && !w->skip_moves && w->resting == 0;
}

static int follows_renewal(const walk *w)
{
  return stage_of(w)->renew > 0 && measures_renewal(w);
}

static le_status record(walk *w)
{
  double *row = le_trace_add(&w->recorded);
  if (!row) return LE_NO_MEMORY;
  const double step = stage_of(w)->kernel->ops->report(w->kernel[w->stage]).step_size;
  le_path_write(&w->target, &w->metric[w->stage][0], w->skip_moves ? 0 : moves_wanted(w), step, row);
  return LE_OK;
}

/* The kernel made ready for moves at this distribution, if there are to be any. */
static le_status begin_moves(walk *w, int resampled)
{
  const le_stage *stage = stage_of(w);
  le_target *target = &w->target;
  w->step = w->tried = 0;
  w->tried_renewal = w->renewed = w->heat = NAN;
  w->machine.phase = MOVE;
  if (follows(w)) {
    const le_path_point point = le_path_at(&w->path, w->settings.reverse ? w->at - 1 : w->at);
    w->skip_moves = point.moves == 0;
    if (!w->skip_moves) LE_TRY(tune_as_recorded(w, &point));
  } else {
    /* whoever walks a path back will want moves at its end, to leave the draw where it starts */
    const int end = w->settings.record && w->machine.closed && target->lambda >= 1 && target->seen + target->chunk == w->machine.store.n;
    const int annealed = stage->anneal > stage->ess && (target->lambda < 1 || w->chunk_steps > 1);
    w->skip_moves = stage->steps == 0 || (stage->move_resampled && !resampled && !end && !annealed);
    if (!w->skip_moves) LE_TRY(update_metric(w));
  }
  if (!w->skip_moves && stage->kernel->ops->begin)
    LE_TRY(stage->kernel->ops->begin(w->kernel[w->stage], target, w->m, w->theta, &w->machine.streams));
  if (measures_renewal(w)) le_renewal_start(&w->renewal, w->m, w->theta);
  return w->settings.record ? record(w) : LE_OK;
}

static int has_closed_form(const walk *w)
{
  const int several = w->model->log_symmetry && w->model->log_symmetry(w->target.model) > 0;
  return w->model->exact != NULL && !several;
}

/* Adds increment times the chunk's log-likelihood to the weights, and maybe resamples. */
static le_status weigh(walk *w, double increment)
{
  const le_stage *stage = stage_of(w);
  for (size_t i = 0; i < w->m; i++) w->log_weight[i] += increment * w->chunk_value[i];
  le_normalise(w->log_weight, w->m, w->weight);
  le_genealogy_weigh(&w->genealogy, w->m, w->weight);
  w->chunk_steps++;
  w->lambda_steps++;
  const double share = le_effective_size(w->log_weight, w->m, 1) / (double)w->m;
  if (share < w->chunk_ess) w->chunk_ess = share;
  if (w->settings.reverse && w->at == 0) {
    w->machine.phase = FINISHED;
    return add_trace(w, 0, 0, 1);
  }
  int resampled = 0;
  if (le_resampling_due(share, stage->threshold)) {
    resample(w, w->m);
    resampled = 1;
  }
  return begin_moves(w, resampled);
}

/* Nats from which steps of a kernel that rejects nothing are the cause where a walk goes no further:
 * so far, or at the present distribution (minus, by more than particles can be too narrow, is
 * rounding of numbers that have exploded). The first sentence is the one that counts. */
static const double HEATED_TO_DEATH = 10;
static void blame_kernel(walk *w)
{
  const int exploded = fabs(w->lost) > HEATED_TO_DEATH + 0.5 * (double)w->d;
  if (isnan(w->lost) || (w->heated < HEATED_TO_DEATH && !exploded)) return;
  le_fail(&w->machine.context->error, LE_STALLED,
          "The walk stopped at lambda = %.2g because the steps of %s() are too long for these data: its particles lie many "
          "times too wide. Use hmc(), which accepts or rejects, a smaller %s, or scaled columns.",
          w->target.lambda, stage_of(w)->kernel->ops->name,
          strcmp(stage_of(w)->kernel->ops->name, "baoab") == 0 ? "`step_size`" : "`rate`");
}

/* What a step of lambda multiplies: the chunk's log-likelihood, or the density over its proposal's. */
static le_status values_to_weigh(walk *w)
{
  le_target *target = &w->target;
  const double lambda = target->lambda;
  if (!target->proposal)
    return le_gradient_log_lik(&w->gradient[w->stage], &w->expansion, target, stage_of(w)->part, w->m, w->theta, w->chunk_value);
  target->lambda = 1;
  const le_status status = le_target_density(target, w->m, w->theta, w->chunk_value);
  target->lambda = lambda;
  for (size_t i = 0; i < w->m; i++)
    w->chunk_value[i] -= target->proposal->log_density(target->proposal->self, target, w->theta + i * w->d, w->work);
  return status;
}

static le_status reweight(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  const le_stage *stage = stage_of(w);
  le_target *target = &w->target;
  const size_t seen = target->seen;
  LE_TRY(values_to_weigh(w));
  int possible = 0;
  for (size_t i = 0; i < w->m; i++) {
    if (isnan(w->chunk_value[i])) w->chunk_value[i] = -INFINITY;
    possible |= w->chunk_value[i] > -INFINITY && w->log_weight[i] > -INFINITY;
  }
  if (!possible) blame_kernel(w);
  if (!possible) return impossible_row(w);
  double increment;
  const le_status status = choose_increment(w, &increment);
  const int endless = status == LE_OK && stage->schedule != LE_FIXED_STEPS && !follows(w) && w->chunk_steps >= STEPS_MOST;
  if (endless || status != LE_OK) blame_kernel(w);
  if (endless)
    return le_fail(&w->machine.context->error, LE_STALLED,
                   "After %d annealing steps lambda is still %.2g at observation %.0f: the likelihood is too sharp for the "
                   "prior (are the columns scaled?), or `ess` too near the number of particles.%s",
                   STEPS_MOST, w->target.lambda, (double)seen + 1, has_closed_form(w) ? " exact() needs no annealing here." : "");
  if (status == LE_STALLED)
    return le_fail(&w->machine.context->error, status,
                   "The annealing increment became too small to move at observation %.0f: the particles' likelihoods "
                   "differ too much.  A smaller `chunk`, more `particles` or a wider prior may help.",
                   (double)seen + 1);
  LE_TRY(status);
  if (law_has_changed(w, increment)) return start_again(w);
  if (w->settings.moments) LE_TRY(add_moments(w, increment));
  if (increment < 1 - target->lambda) w->shortest = fmin(w->shortest, increment); /* the last may be a crumb */
  target->lambda = 1 - target->lambda <= increment ? 1 : target->lambda + increment;
  add_lost(w, increment);
  return weigh(w, increment);
}

/* From this distribution back to the one before it. */
static le_status step_back(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  const le_target *target = &w->target;
  const size_t seen = target->seen, chunk = target->chunk;
  const double before = w->at > 1 ? le_path_at(&w->path, w->at - 2).lambda : 1;
  LE_TRY(le_target_log_lik(&w->target, seen, seen + chunk, w->m, w->theta, w->chunk_value));
  for (size_t i = 0; i < w->m; i++)
    if (!isfinite(w->chunk_value[i]))
      return le_fail(&w->machine.context->error, LE_NOT_FINITE,
                     "The draw that the data were made from gives them no likelihood: the model simulates other data than "
                     "those of its likelihood.");
  const double increment = (before < 1 ? before : 0) - target->lambda;
  w->at--;
  take_place(w, w->at);
  return weigh(w, increment);
}

/* ---- moving and closing ---- */

enum { MOVES_MOST = 200, SETTLED_FOR = 4, RESTS = 3 };
static const double AMPLE = 0.1;

/* Where rows are few, moves are cheap and the posterior is at its least regular. */
static size_t least_moves(const walk *w)
{
  const le_stage *stage = stage_of(w);
  const double wanted = fmin(ceil(stage->work / (double)(w->target.seen + w->target.chunk)), MOVES_MOST);
  const size_t moves = wanted > (double)stage->steps ? (size_t)wanted : stage->steps;
  return w->target.proposal ? LED_MOVES * moves : moves;
}

/* Moves at this distribution. */
static size_t moves_wanted(const walk *w)
{
  if (follows(w)) return le_path_at(&w->path, w->settings.reverse ? w->at - 1 : w->at).moves;
  const size_t least = least_moves(w);
  return follows_renewal(w) && w->moves > least ? w->moves : least;
}

/* Beyond so many, more moves are no answer: a trajectory goes a long way, a random walk needs about two for each dimension, and
 * errors of the step size, where nothing is rejected, stay as they are. */
static double moves_most(const walk *w)
{
  const unsigned needs = stage_of(w)->kernel->ops->needs;
  const double further = !(needs & LE_NEEDS_DENSITY) ? 8 : needs & LE_NEEDS_GRADIENT ? 20 : 40 + 5 * (double)w->d;
  return further + (double)least_moves(w);
}

/* The moves planned are made. Are they enough? If not, as many again or what else it takes are planned. What is planned at the
 * end is the next distribution's. The whole population decides, so that no particle stops where it likes to be. */
static int plan_more(walk *w)
{
  const le_stage *stage = stage_of(w);
  const double goal = stage->renew, most = moves_most(w);
  double reached = le_renewal_measure(&w->renewal, w->m, w->theta, w->weight, &w->metric[w->stage][0]);
  if (w->tried && w->step >= 2 * w->tried) {
    const double within = le_renewal_within(w->tried_renewal, reached);
    if (within >= goal && reached < goal) w->settled = SETTLED_FOR;
    reached = within;
    w->tried = 0;
  }
  w->renewed = reached;
  if (isnan(reached) || !follows_renewal(w)) return 0;
  if (reached >= goal) {
    if (w->step == least_moves(w) && reached >= goal + AMPLE) w->resting = RESTS;
    w->moves = (size_t)fmax(0.7 * (double)w->step, fmin((double)w->step, ceil(le_renewal_moves((double)w->step, reached, goal + 0.05))));
    return 0;
  }
  if (w->settled > 0) {
    w->settled--;
    w->renewed = NAN;
    w->moves = w->step;
    return 0;
  }
  if ((double)w->step >= most) {
    w->moves = w->step;
    return 0;
  }
  const double further = le_renewal_moves((double)w->step, reached, goal + 0.05);
  w->tried = w->step;
  w->tried_renewal = reached;
  w->moves = (size_t)fmin(fmin(2 * (double)w->step, most), fmax(ceil(further), (double)w->step + 1));
  return 1;
}

/* What a path says of the moves at its last point, where more were made than were planned. */
static void record_moves(walk *w)
{
  if (!w->settings.record || w->skip_moves) return;
  double *row = w->recorded.values + (w->recorded.rows - 1) * w->recorded.columns;
  row[LE_PATH_MOVES] = (double)w->step;
}

/* Particles whose kernel rejects nothing may lie too wide, because its steps are too long, or too
 * narrow, because they are too few. For any smooth density f, coordinate j and constant c,
 * E[(theta - c)_j d/dtheta_j log f] = -1; T_j, minus the same mean over the particles, is their
 * temperature in this coordinate. Where the likelihood has the share s_j of T_j, which is 1 where it
 * decides and 0 where the prior does, the mean of lambda times the log-likelihood is off by
 * -sum_j s_j (T_j - 1) / 2: exactly so of normal densities whose coordinates are independent, or
 * whose prior is flat. This is what log Z loses when the rows, or lambda, grow by a factor e. */
static le_status measure_heat(walk *w)
{
  const le_stage *stage = stage_of(w);
  const size_t d = w->d, m = w->m;
  double *grad = w->swap, *of_prior = w->twin, *centre = w->work, *wide = centre + d, *share = wide + d;
  double squares = 0, mean = 0, variance = 0;
  w->heat = NAN;
  if (w->skip_moves || !stage->kernel || (stage->kernel->ops->needs & LE_NEEDS_DENSITY) || stage->gradient != LE_GRADIENT_FULL ||
      w->settings.stages > 1 || w->settings.reverse)
    return LE_OK;
  for (size_t i = 0; i < m; i++) squares += w->weight[i] * w->weight[i];
  if (squares > 0.5) return LE_OK;
  LE_TRY(le_target_density_grad(&w->target, m, w->theta, NULL, grad));
  le_target_prior(&w->target, m, w->theta, NULL, of_prior);
  weighted_mean(w, centre);
  memset(wide, 0, 2 * d * sizeof(double));
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < d; j++) {
      const double away = w->weight[i] * (w->theta[i * d + j] - centre[j]) / (1 - squares);
      wide[j] -= away * grad[i * d + j];
      share[j] -= away * (grad[i * d + j] - of_prior[i * d + j]);
    }
  w->heat = w->lost = 0;
  for (size_t j = 0; j < d; j++) {
    share[j] = wide[j] > 0 ? fmax(-1, fmin(share[j] / wide[j], 1)) : 1;
    w->heat += wide[j] / (double)d;
    w->lost += 0.5 * share[j] * (wide[j] - 1);
  }
  if (!isfinite(w->heat) || !isfinite(w->lost)) w->heat = w->lost = INFINITY;
  for (int second = 0; second < 2; second++)
    for (size_t i = 0; i < m; i++) {
      double term = 0;
      for (size_t j = 0; j < d; j++) term -= 0.5 * share[j] * (w->theta[i * d + j] - centre[j]) * grad[i * d + j];
      if (second) variance += pow(w->weight[i] * (term - mean), 2);
      else mean += w->weight[i] * term;
    }
  w->lost_variance = variance;
  return LE_OK;
}

/* The particles' present temperature costs so much on the way to the next distribution. */
static void add_lost(walk *w, double increment)
{
  const double grown = increment * (double)w->target.chunk / fmax(le_target_size(&w->target), 1);
  if (isnan(w->lost)) return;
  w->heated += grown * w->lost;
  w->heated_variance += grown * grown * w->lost_variance;
}

static le_status move(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  const le_stage *stage = stage_of(w);
  size_t moves = w->skip_moves ? 0 : moves_wanted(w);
  if (w->step < moves) {
    size_t made;
    LE_TRY(le_kernel_moves(stage->kernel->ops, w->kernel[w->stage], &w->target, w->m, w->theta, &w->machine.streams, moves - w->step, &made));
    w->step += made;
    if (w->step < moves) return LE_OK;
    if (w->resting > 0)
      w->resting--;
    else if (measures_renewal(w) && plan_more(w))
      return LE_OK;
    if (stage->kernel->ops->tune) stage->kernel->ops->tune(w->kernel[w->stage]);
    record_moves(w);
  }
  LE_TRY(measure_heat(w));
  if (stage->whole || w->settings.reverse) {
    LE_TRY(add_trace(w, (double)(w->target.seen + w->target.chunk), w->target.lambda, 1));
    w->chunk_ess = 1;
  }
  if (follows(w) && !w->settings.reverse) w->at++;
  w->machine.phase = w->settings.reverse ? STEP_BACK : w->target.lambda < 1 ? REWEIGHT : CLOSE_CHUNK;
  return LE_OK;
}

static le_status close_chunk(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  const le_stage *stage = stage_of(w);
  if (stage->gradient == LE_GRADIENT_CONTROL) {
    le_gradient_close_chunk(&w->gradient[w->stage], &w->target);
    for (size_t k = 0; k < w->d * w->d; k++) w->anchor_info[k] += w->chunk_info[k];
  }
  if (w->settings.moments) {
    LE_TRY(le_target_log_lik(&w->target, w->target.seen, w->target.seen + w->target.chunk, w->m, w->theta,
                             w->chunk_value));
    LE_TRY(add_moments(w, 0));
  }
  w->target.seen += w->target.chunk;
  w->target.chunk = 0;
  w->target.lambda = 0;
  w->target.proposal = NULL;
  /* mini-batches of rows seen are then stretches of them, in whatever order they came */
  if (stage->gradient == LE_GRADIENT_BATCH && w->machine.store.mixed < w->target.seen)
    LE_TRY(le_store_shuffle(&w->machine.store, w->machine.store.mixed, w->target.seen, w->machine.streams.order));
  if (!stage->whole && w->target.seen >= w->regained)
    LE_TRY(add_trace(w, (double)w->target.seen, 1, (double)w->chunk_steps));
  if (w->settings.mean_weights) {
    /* each chunk's mean predictive density stands for itself: particles start the next one with equal weight */
    w->banked += le_logmeanexp(w->log_weight, w->m);
    w->banked_variance += unseen(w) * w->genealogy.variance;
    for (size_t i = 0; i < w->m; i++) {
      w->log_weight[i] = 0;
      w->weight[i] = 1 / (double)w->m;
    }
    le_genealogy_start(&w->genealogy, w->m);
    w->chunk_steps = 0;
  }
  w->machine.phase = OPEN_CHUNK;
  return LE_OK;
}

/* ---- after the walk ---- */

/* One round of posterior draws for the harmonic mean: resampled once to equal weight, then chains of their own. */
static le_status collect(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  const le_stage *stage = stage_of(w);
  if (w->step == 0) {
    resample(w, w->m);
    LE_TRY(update_metric(w));
  }
  if (stage->kernel->ops->begin)
    LE_TRY(stage->kernel->ops->begin(w->kernel[w->stage], &w->target, w->m, w->theta, &w->machine.streams));
  const size_t moves = w->moves > stage->steps ? w->moves : stage->steps;
  for (size_t s = 0; s < moves; s++)
    LE_TRY(stage->kernel->ops->move(w->kernel[w->stage], &w->target, w->m, w->theta, &w->machine.streams));
  LE_TRY(le_target_log_lik(&w->target, 0, w->target.seen, w->m, w->theta, w->draw_value + w->step * w->m));
  memcpy(w->draw_theta + w->step * w->m * w->d, w->theta, w->m * w->d * sizeof(double));
  if (++w->step < w->settings.rounds) return LE_OK;
  w->machine.phase = w->settings.bridge ? BRIDGE : FINISHED;
  return w->settings.bridge ? le_bridging_start(&w->bridging, &w->target, w->draw_theta, w->draw_value) : LE_OK;
}

static le_status bridge(void *self, le_progress *progress)
{
  walk *w = self;
  (void)progress;
  LE_TRY(le_bridging_step(&w->bridging, &w->target, w->machine.streams.rng[0]));
  if (w->bridging.done) w->machine.phase = FINISHED;
  return LE_OK;
}

static le_status search(void *self, le_progress *progress)
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
  weighted_mean(w, w->centre);
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
    relabel_to_heaviest(w);
    const size_t starts = w->m < particle_climbs(w) ? w->m : particle_climbs(w), found = w->search.found;
    double *start = w->audit.start;
    memcpy(start, w->theta + heaviest(w) * d, d * sizeof(double));
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
      weighted_mean(w, w->centre);
      if (le_metric_set_particles(&wide, w->m, w->theta, w->weight, w->prior_variance) == LE_OK)
        le_audit_widen(&w->audit, w->centre, wide.factor);
    }
  } else {
    weighted_mean(w, w->centre);
    le_audit_start(&w->audit, 1, w->centre);
  }
  if (!w->model->log_lik_hess) scale_by_particles(w);
}

/* The particles stand for the posterior of the rows seen, whose log evidence this is. */
static void begin_from(walk *w, double log_evidence, double variance)
{
  w->banked = log_evidence;
  w->banked_variance = variance;
  for (size_t i = 0; i < w->m; i++) {
    w->log_weight[i] = 0;
    w->weight[i] = 1 / (double)w->m;
  }
  le_genealogy_start(&w->genealogy, w->m);
}

/* Draws of importance sampling in proportion to the weights in audit->work. */
static void draw_particles(walk *w)
{
  const le_audit *a = &w->audit;
  const size_t m = stage_of(w)->particles, d = w->d;
  le_resample(LE_SYSTEMATIC, a->draws, a->work, m, w->machine.streams.rng[0], w->work, w->ancestor);
  for (size_t j = 0; j < m; j++) memcpy(w->theta + j * d, a->theta + w->ancestor[j] * d, d * sizeof(double));
  w->m = m;
}

static void take_draws_of_check(walk *w, double doubt)
{
  const le_audit *a = &w->audit;
  le_normalise(a->log_weight, a->draws, a->work);
  draw_particles(w);
  const double variance = pow(doubt * a->se, 2);
  begin_from(w, a->log_evidence - (w->settings.correct ? 0.5 * variance : 0), variance);
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
  draw_particles(w);
  begin_from(w, log_integral, variance);
  w->target.proposal = &w->audit.density;
  w->target.lambda = lambda;
  relabel_to(w, w->audit.mode[0].theta);
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
  return w->target.seen < w->regained ? LE_OK : add_trace(w, (double)w->target.seen, 1, 0);
}

/* Importance sampling whose weights are even has the posterior of these rows: where it has found far more than the particles, its
 * draws take their place. */
static le_status end_look(walk *w)
{
  const le_audit *a = &w->audit;
  const double chance = chance_of(w->d);
  const int first = w->looking == LOOK_FIRST;
  w->looking = LOOK_NOT;
  w->machine.phase = OPEN_CHUNK;
  /* of rows in random order the first are as good as any: the search at the end goes on from here */
  if (!w->settings.shuffle) le_search_start(&w->search);
  if (first) return end_first_look(w);
  if (a->failed || !(a->effective_size > LOOK_EVEN * a->ideal_size) ||
      !(a->log_evidence - current_log_evidence(w) > chance))
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

static le_status audit(void *self, le_progress *progress)
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

le_status le_walk_adopt(void *self, size_t seen, const double *theta, double log_evidence, double variance)
{
  walk *w = self;
  memcpy(w->theta, theta, w->m * w->d * sizeof(double));
  w->target.seen = seen;
  begin_from(w, log_evidence, variance);
  w->chunk_ess = 1;
  return add_trace(w, (double)seen, 1, 0);
}

static void walk_progress(const void *self, double *rows, double *share)
{
  const walk *w = self;
  const double total = w->total ? (double)w->total : (double)w->machine.store.n;
  *rows = (double)w->target.seen;
  double done = total > 0 ? ((double)w->target.seen + w->target.lambda * (double)w->target.chunk) / total : 0;
  if (w->settings.reverse && w->machine.phase != OPEN_CHUNK) done = 1 - done;
  if (w->machine.phase == COLLECT) done = (double)w->step / (double)w->settings.rounds;
  *share = done;
}

/* ---- result ---- */

static le_status walk_result(void *self, le_result *result)
{
  walk *w = self;
  double *s = w->summary;
  s[0] = current_log_evidence(w);
  s[1] = sqrt(fmax(current_variance(w), 0));
  if (w->settings.rounds && w->machine.phase == FINISHED) {
    if (w->settings.bridge) {
      s[0] = w->bridging.log_evidence;
      s[1] = w->bridging.se;
    } else {
      s[0] = le_logharmonic(w->draw_value, w->m, w->settings.rounds, &s[1]);
    }
  }
  s[2] = (double)w->target.seen;
  s[3] = w->lambda_steps;
  s[4] = w->target.likelihoods;
  s[5] = w->target.gradients;
  s[6] = w->machine.seconds;
  static const char *const names[] = {"log_evidence", "se",        "n",      "lambda_steps",
                                      "likelihoods",  "gradients", "seconds"};
  le_result_figures(result, sizeof names / sizeof *names, names, s);

  if (w->settings.rounds && w->machine.phase == FINISHED) {
    le_result_array(result, "draws", w->d, w->m * w->settings.rounds, w->draw_theta);
  } else {
    le_result_array(result, "draws", w->d, w->m, w->theta);
    le_result_array(result, "log_weights", 1, w->m, w->log_weight);
  }
  if (!isnan(w->lost)) {
    s[10] = w->heated;
    s[11] = sqrt(w->heated_variance);
    le_result_figure(result, "heated", &s[10]);
    le_result_figure(result, "heated_noise", &s[11]);
  }
  LE_TRY(le_trace_output(&w->trace, trace_names, result));
  if (w->settings.moments) le_result_table(result, "moments", MOMENT_COLUMNS, moment_names, MOMENT_COLUMNS, w->moments.rows, w->moments.values);
  if (w->settings.record) le_result_table(result, "path", LE_PATH_LABELLED, le_path_names, w->recorded.columns, w->recorded.rows, w->recorded.values);
  if (w->settings.audit && w->machine.phase == FINISHED && w->target.seen > 0) {
    const le_audit *a = &w->audit;
    s[7] = (double)a->failed;
    s[8] = (double)a->modes;
    s[9] = (double)w->checked;
    s[12] = chance_of(w->d);
    le_result_figure(result, "audit_chance", &s[12]);
    le_result_figure(result, "audit_first", &s[9]);
    le_result_figure(result, "audit_failed", &s[7]);
    le_result_figure(result, "audit_modes", &s[8]);
    le_result_figure(result, "audit_log_evidence", &a->log_evidence);
    le_result_figure(result, "audit_se", &a->se);
    le_result_figure(result, "audit_unreached", &a->unreached);
    le_result_figure(result, "audit_laplace", &a->laplace);
    le_result_figure(result, "audit_ess", &a->effective_size);
    le_result_figure(result, "audit_ideal", &a->ideal_size);
    le_result_figure(result, "audit_pareto_k", &a->pareto_k);
    if (!a->failed) {
      le_result_array(result, "audit_draws", w->d, a->draws, a->theta);
      le_result_array(result, "audit_log_weights", 1, a->draws, a->log_weight);
    }
  }
  return LE_OK;
}

static void walk_archive(void *self, le_archive *archive)
{
  walk *w = self;
  size_t stage = w->stage, m = w->m;
  le_archive_expect(archive, w->d);
  le_archive_expect(archive, w->most);
  le_archive_expect(archive, w->path.points);
  le_archive_expect(archive, (uint64_t)w->settings.reverse);
  le_machine_archive(&w->machine, archive);
  le_archive_size(archive, &stage);
  le_archive_size(archive, &m);
  if (archive->status != LE_OK) return;
  if (stage >= w->settings.stages || m > w->most) {
    archive->status = LE_CORRUPT;
    return;
  }
  if (!archive->writing) enter_stage(w, stage);
  w->m = m;
  le_archive_size(archive, &w->target.seen);
  le_archive_size(archive, &w->target.chunk);
  le_archive_double(archive, &w->target.lambda);
  le_archive_double(archive, &w->target.likelihoods);
  le_archive_double(archive, &w->target.gradients);
  le_archive_int(archive, &w->skip_moves);
  le_archive_int(archive, &w->looking);
  le_archive_int(archive, &w->first_looked);
  le_archive_int(archive, &w->checked);
  le_archive_int(archive, &w->uneven);
  le_archive_int(archive, &w->settled);
  le_archive_int(archive, &w->resting);
  size_t *const count[] = {&w->step, &w->chunk_steps, &w->fixed, &w->at, &w->regained, &w->refuge, &w->noised, &w->looked,
                           &w->moves, &w->tried};
  for (size_t i = 0; i < sizeof count / sizeof *count; i++) le_archive_size(archive, count[i]);
  double *const figure[] = {&w->chunk_ess, &w->banked, &w->banked_variance, &w->lambda_steps,
                            &w->restarts, &w->target.noise, &w->drift, &w->shortest,
                            &w->tried_renewal, &w->renewed, &w->eager, &w->lost, &w->lost_variance, &w->heated,
                            &w->heated_variance};
  for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) le_archive_double(archive, figure[i]);
  le_archive_doubles(archive, w->theta, m * w->d);
  le_archive_doubles(archive, w->log_weight, m);
  le_archive_doubles(archive, w->chunk_value, m);
  le_archive_doubles(archive, w->weight, m);
  le_archive_doubles(archive, w->prior_variance, w->d);
  le_archive_doubles(archive, w->anchor_info, w->d * w->d);
  le_archive_doubles(archive, w->chunk_info, w->d * w->d);
  le_archive_doubles(archive, w->precision, w->d * w->d);
  le_archive_doubles(archive, w->centre, w->d);
  le_archive_doubles(archive, w->labels, w->d);
  int labelled = w->target.labels != NULL;
  le_archive_int(archive, &labelled);
  w->target.labels = labelled ? w->labels : NULL;
  int led = w->target.proposal != NULL;
  le_archive_int(archive, &led);
  w->target.proposal = led && samples_importance(w) ? &w->audit.density : NULL;
  for (size_t s = 0; s < w->settings.stages; s++) {
    const le_stage *settings = &w->settings.stage[s];
    le_gradient_archive(&w->gradient[s], &w->target, archive);
    for (size_t half = 0; half < 2; half++) le_metric_archive(&w->metric[s][half], archive);
    if (settings->kernel) settings->kernel->ops->archive(w->kernel[s], settings->particles, archive);
  }
  le_genealogy_archive(&w->genealogy, archive);
  if (renews(w)) le_renewal_archive(&w->renewal, m, archive);
  if (w->settings.search) le_search_archive(&w->search, archive);
  if (samples_importance(w)) le_audit_archive(&w->audit, archive);
  if (w->settings.rounds) {
    const size_t kept = w->settings.stage[w->settings.stages - 1].particles * w->settings.rounds;
    le_archive_doubles(archive, w->draw_theta, kept * w->d);
    le_archive_doubles(archive, w->draw_value, kept);
    if (w->settings.bridge) le_bridging_archive(&w->bridging, archive);
  }
  le_trace_archive(&w->trace, archive);
  le_trace_archive(&w->moments, archive);
  le_trace_archive(&w->recorded, archive);
  const walk_phase phase = (walk_phase)w->machine.phase;
  const int between = phase == REWEIGHT || phase == MOVE || phase == STEP_BACK;
  const size_t end = w->settings.reverse ? 0 : w->path.points;
  if (w->at > w->path.points || (follows(w) && between && w->at == end)) archive->status = LE_CORRUPT;
}

static const le_phase phases[] = {
  [OPEN_CHUNK] = {"open chunk", open_chunk, 0},
  [REWEIGHT] = {"reweight", reweight, 0},
  [MOVE] = {"move", move, 0},
  [CLOSE_CHUNK] = {"close chunk", close_chunk, 0},
  [STEP_BACK] = {"step back", step_back, 0},
  [COLLECT] = {"collect", collect, 0},
  [BRIDGE] = {"bridge", bridge, 0},
  [SEARCH] = {"search", search, 0},
  [AUDIT] = {"audit", audit, 0},
  [FINISHED] = {"finished", NULL, 0}};

static le_status walk_alloc(const le_problem *problem, le_context *context, void **self)
{
  *self = NULL;
  walk *w = le_resize(NULL, sizeof *w);
  if (!w) return LE_NO_MEMORY;
  memset(w, 0, sizeof *w);
  w->trace.columns = TRACE_COLUMNS;
  w->moments.columns = MOMENT_COLUMNS;
  w->model = problem->ops;
  w->d = problem->ops->dim(problem->model);
  w->heat = w->lost = w->renewed = w->tried_renewal = NAN;
  w->total = problem->total;
  w->seed = problem->seed;
  w->replicate = problem->replicate;
  le_status status = le_walk_settings_read(problem, &w->settings, &context->error);
  for (size_t s = 0; s < w->settings.stages; s++)
    if (w->settings.stage[s].particles > w->most) w->most = w->settings.stage[s].particles;
  w->machine.shuffle = w->settings.shuffle;
  if (status == LE_OK)
    status = le_machine_alloc(&w->machine, phases, FINISHED + 1, problem, w->most + 1, context);
  if (status == LE_OK) status = alloc_all(w, problem);
  if (status == LE_OK) status = take_path(w);
  if (status != LE_OK) {
    walk_free(w);
    return status;
  }
  enter_stage(w, 0);
  *self = w;
  return LE_OK;
}

const le_estimator_ops le_walk_estimator = {LE_CONTRACT_VERSION, sizeof(le_estimator_ops), "walk",
                                            {{le_walk_table}, le_stage_table}, walk_alloc, walk_free, walk_start,
                                            le_machine_feed, le_machine_advance, walk_progress, walk_result,
                                            walk_archive, 0};
