/* The check at the end of a run whose rows are gone (core/past.h): its rounds, further passes
 * through rows that can be read again, and the error of what was carried. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"
#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* A mode of the sample lies about sqrt(n / k) posterior standard deviations from the mode of all n
 * rows. Within this many times that distance the two are taken for the same. */
static const double NEAR_SDS = 4;
/* Rows of which the second pass adds up sums at a time, whatever the size of the blocks read. */
enum { PORTION = 16384 };
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
  if (!w->machine.store.gone) return LE_OK;
  const size_t n = by_audit ? a->draws : w->m;
  const double *log_weight = by_audit ? a->log_weight : w->log_weight,
               *theta = by_audit ? a->theta : w->theta;
  double *weight = by_audit ? a->work : w->weight;
  le_normalise(log_weight, n, weight);
  le_resample(LE_SYSTEMATIC, n, weight, most, w->machine.streams.rng[0], w->work, w->ancestor);
  for (size_t i = 0; i < most; i++)
    memcpy(w->swap + i * w->d, theta + w->ancestor[i] * w->d, w->d * sizeof(double));
  return le_past_error(&w->past, &w->target, most, w->swap, level, w->error_work, &w->past_se);
}

/* ---- the check of a run whose rows are gone ---- */

static int is_near(walk *w, const le_mode *mode)
{
  const size_t d = w->d;
  const le_store *store = &w->machine.store;
  double *shift = w->work, *product = w->work + d;
  memcpy(shift, w->past.anchor, d * sizeof(double));
  if (w->target.ops->relabel) w->target.ops->relabel(w->target.model, mode->theta, shift);
  for (size_t j = 0; j < d; j++) shift[j] -= mode->theta[j];
  const double ratio = 1 + (double)(store->kept + store->gone) / (double)store->kept;
  return le_quadratic_form(mode->precision, d, shift, product) <
         NEAR_SDS * NEAR_SDS * ratio * (double)d;
}

static void audit_from_centre(walk *w, audit_round round)
{
  w->audit_round = round;
  le_audit_start(&w->audit, 1, w->centre);
}

static le_status begin_second_pass(walk *w, const double *anchor)
{
  memcpy(w->centre, anchor, w->d * sizeof(double));
  memset(w->again_sums, 0, w->past.size * sizeof(double));
  w->again_rows = 0;
  w->passes++;
  w->again_state = AGAIN_ASKED;
  w->machine.phase = AGAIN;
  return LE_OK;
}

static int can_pass_again(const walk *w)
{
  return w->settings.again && !w->once && w->past.order == 2 && w->check == CHECK_FINAL &&
         w->passes < PASSES_MOST;
}

/* Called when the climbs of an audit have ended: decides about the next round. */
le_status le_walk_next_round(walk *w)
{
  le_audit *a = &w->audit;
  if (!w->machine.store.gone || w->audit_round != ROUND_AROUND) return LE_OK;
  w->unreached = a->failed ? 0 : a->unreached;
  w->past.plain = 0;
  if (a->failed || is_near(w, &a->mode[0])) {
    le_walk_labelled_mean(w);
  } else {
    if (can_pass_again(w)) return begin_second_pass(w, a->mode[0].theta);
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
  if (!w->machine.store.gone || !can_pass_again(w) || (exact && a->failed)) return LE_OK;
  if (!a->failed && !(w->past_se > (exact ? fmax(THIRD_PASS, a->se) : SECOND_PASS))) return LE_OK;
  return begin_second_pass(w, a->failed ? w->past.anchor : a->mode[0].theta);
}

/* ---- the second pass ---- */

le_status le_walk_feed(void *self, const le_rows *rows, le_feed feed)
{
  walk *w = self;
  if (feed == LE_ONCE_ROWS) w->once = 1;
  if (w->machine.phase != AGAIN) return le_machine_take(&w->machine, rows, feed);
  if (feed != LE_ONCE_ROWS) w->again_state = le_feed_goes_on(feed) ? AGAIN_OPEN : AGAIN_CLOSED;
  return rows->n ? le_store_append(&w->again, rows, NULL) : LE_OK;
}

static le_status add_portion(walk *w, size_t n)
{
  const le_rows rows = le_store_rows(&w->again, 0, n);
  LE_TRY(le_past_sums(&w->past, &w->target, &rows, w->centre, w->work));
  le_add_scaled(w->past.size, 1, w->work, w->again_sums);
  w->again_rows += n;
  return LE_OK;
}

static le_status end_second_pass(walk *w)
{
  le_store_free(&w->again);
  w->again.width = w->machine.store.width;
  if (w->again_rows != w->target.seen)
    return le_fail(&w->machine.context->error, LE_BAD_ARGUMENT,
                   "The source had %.0f rows when it was read first and %.0f the second time.",
                   (double)w->target.seen, (double)w->again_rows);
  LE_TRY(le_past_replace(&w->past, &w->target, w->centre, w->again_sums));
  w->machine.phase = AUDIT;
  audit_from_centre(w, ROUND_EXACT);
  return LE_OK;
}

le_status le_walk_read_again(void *self)
{
  walk *w = self;
  if (w->again_state == AGAIN_ASKED) return le_machine_needs(&w->machine, LE_NEEDS_AGAIN);
  const int closed = w->again_state == AGAIN_CLOSED;
  if (w->again.n >= PORTION || (closed && w->again.n > 0)) {
    const size_t n = w->again.n < PORTION ? w->again.n : PORTION;
    LE_TRY(add_portion(w, n));
    w->again.n -= n;
    memmove(w->again.values, w->again.values + n * w->again.width,
            w->again.n * w->again.width * sizeof(double));
    return LE_OK;
  }
  if (closed) return end_second_pass(w);
  return le_machine_needs(&w->machine, LE_NEEDS_ROWS);
}
