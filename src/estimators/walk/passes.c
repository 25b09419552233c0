/* The check at the end of a run whose rows have left the memory (core/past.h): its rounds,
 * questions about all rows if these can be read again, and the error of what was carried. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"
#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* A mode of the sample lies about sqrt(n / k) posterior standard deviations from the mode of all n
 * rows. Within this many times that distance the two are taken for the same. */
static const double NEAR_SDS = 4;
/* The rows are read again if the sample adds more than SECOND_PASS nats to the standard error, and
 * once more if it still adds more than THIRD_PASS and more than the check has itself: the second
 * pass was then around a point too far from the mode. */
static const double SECOND_PASS = 0.01, THIRD_PASS = 0.02;
enum { PASSES_MOST = 3 };

/* ---- the error of the carried sums ---- */

le_status le_walk_past_error(walk *w)
{
  const le_audit *a = &w->audit;
  const int by_audit = le_walk_samples_importance(w) && a->phase == LE_AUDIT_DONE && !a->failed;
  const size_t most = w->m < ERROR_DRAWS ? w->m : ERROR_DRAWS;
  static const double level[ERROR_DRAWS] = {0}; /* the draws have equal weight */
  w->past_se = 0;
  if (le_rows_of(&w->target)->everywhere) return LE_OK;
  const size_t n = by_audit ? a->draws : w->m;
  const double *log_weight = by_audit ? a->log_weight : w->log_weight,
               *theta = by_audit ? a->theta : w->theta;
  LE_SCRATCH(own, w->target.stack, n);
  double *weight = by_audit ? own : w->weight;
  le_normalise(log_weight, n, weight);
  le_resample(LE_SYSTEMATIC, n, weight, most, w->machine.streams.rng[0], NULL, w->ancestor);
  LE_SCRATCH(some, w->target.stack, most * (w->d + LE_PAST_GROUPS + 1));
  for (size_t i = 0; i < most; i++)
    memcpy(some + i * w->d, theta + w->ancestor[i] * w->d, w->d * sizeof(double));
  return le_past_error(&w->past, &w->target, most, some, level, some + most * w->d, &w->past_se);
}

/* ---- the rounds of the check ---- */

static int is_near(walk *w, const le_mode *mode, const double *point)
{
  const size_t d = w->d;
  const le_store *store = &w->machine.store;
  LE_SCRATCH(shift, w->target.stack, 2 * d);
  double *product = shift + d;
  memcpy(shift, point, d * sizeof(double));
  if (w->target.ops->relabel) w->target.ops->relabel(w->target.model, mode->theta, shift);
  for (size_t j = 0; j < d; j++) shift[j] -= mode->theta[j];
  const double ratio = 1 + le_past_weight(store, store->kept);
  return le_quadratic_form(mode->precision, d, shift, product) <
         NEAR_SDS * NEAR_SDS * ratio * (double)d;
}

/* The sums say nothing about modes far from the anchor, and the sample may be wrong about their
 * masses by many nats. The largest of these relative to the first mode, with APART_ERRORS standard
 * errors of the difference. */
enum { APART_ERRORS = 4, APART_MODES = 32 };

static le_status look_at_others(walk *w)
{
  const le_audit *a = &w->audit;
  const size_t d = w->d, bytes = d * sizeof(double);
  w->apart = -INFINITY;
  LE_SCRATCH(pair, w->target.stack, 2 * d);
  memcpy(pair, a->mode[0].theta, bytes);
  for (size_t k = 1; k < a->modes && k < APART_MODES; k++) {
    double se;
    if (is_near(w, &a->mode[0], a->mode[k].theta)) continue;
    memcpy(pair + d, a->mode[k].theta, bytes);
    LE_TRY(le_past_apart(&w->target, pair, &se));
    const double mass = le_mode_mass(&a->mode[k]) - le_mode_mass(&a->mode[0]);
    w->apart = fmax(w->apart, mass + APART_ERRORS * se);
  }
  return LE_OK;
}

static void audit_from_centre(walk *w, audit_round round)
{
  w->audit_round = round;
  le_audit_start(&w->audit, 1, w->centre);
}

static le_status begin_question(walk *w, const double *anchor)
{
  memcpy(w->centre, anchor, w->d * sizeof(double));
  w->passes++;
  w->machine.phase = AGAIN;
  return LE_OK;
}

static int may_ask(const walk *w)
{
  return w->settings.again && !w->machine.once && w->past.order == 2 && w->check == CHECK_FINAL &&
         w->passes < PASSES_MOST;
}

/* Called when the climbs of an audit have ended: decides about the next round. */
le_status le_walk_next_round(walk *w)
{
  le_audit *a = &w->audit;
  if (w->audit_round != ROUND_AROUND) return LE_OK;
  w->unreached = a->failed ? 0 : a->unreached;
  if (!a->failed) LE_TRY(look_at_others(w));
  w->past.plain = 0;
  if (a->failed || is_near(w, &a->mode[0], w->past.anchor)) {
    le_walk_labelled_mean(w);
  } else {
    if (may_ask(w)) return begin_question(w, a->mode[0].theta);
    memcpy(w->centre, a->mode[0].theta, w->d * sizeof(double));
    LE_TRY(le_past_jump(&w->past, &w->target, w->centre));
  }
  audit_from_centre(w, ROUND_ANCHORED);
  return LE_OK;
}

/* At the end of the check. */
le_status le_walk_check_passes(walk *w)
{
  LE_TRY(le_walk_past_error(w));
  const le_audit *a = &w->audit;
  const int exact = w->audit_round == ROUND_EXACT;
  if (le_rows_of(&w->target)->everywhere || !may_ask(w) || (exact && a->failed)) return LE_OK;
  if (!a->failed && !(w->past_se > (exact ? fmax(THIRD_PASS, a->se) : SECOND_PASS))) return LE_OK;
  return begin_question(w, a->failed ? w->past.anchor : a->mode[0].theta);
}

/* ---- a question about all rows ---- */

le_status le_walk_ask_again(void *self)
{
  walk *w = self;
  const double *sums;
  LE_TRY(le_ask(&w->machine.asked, LE_CURVATURE_WANTED, 0, w->d, 1, w->centre, &sums));
  LE_TRY(le_past_replace(&w->past, &w->target, w->centre, sums));
  w->target.likelihoods += (double)w->target.seen;
  w->target.gradients += (double)w->target.seen;
  w->machine.phase = AUDIT;
  audit_from_centre(w, ROUND_EXACT);
  return LE_OK;
}
