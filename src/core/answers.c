/* Sums that answer questions. */
#include "core/answers.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

static void put_impossible(size_t size, double *sums)
{
  int finite = 1;
  for (size_t k = 0; k < size; k++) finite &= isfinite(sums[k]) != 0;
  if (finite) return;
  memset(sums, 0, size * sizeof(double));
  sums[0] = -INFINITY;
}

static le_status sums_at(le_target *target, const le_rows *rows, const le_question *q, double *sums)
{
  const size_t d = q->d, size = le_wanted_size(q->what, d);
  const size_t most = q->what == LE_VALUE_WANTED ? target->m : 1;
  for (size_t from = 0; from < q->m; from += most) {
    const size_t n = q->m - from < most ? q->m - from : most;
    const double *points = q->points + from * d;
    if (q->what == LE_VALUE_WANTED)
      LE_TRY(le_target_sums(target, rows, n, points, sums + from, NULL));
    else
      LE_TRY(le_target_expand(target, rows, (int)q->what, points, sums + from * size));
  }
  for (size_t i = 0; i < q->m; i++) put_impossible(size, sums + i * size);
  return LE_OK;
}

le_status le_answer(le_target *target, const le_rows *rows, const le_question *q, double *sums)
{
  const int before = target->context->lenient;
  const double likelihoods = target->likelihoods, gradients = target->gradients;
  target->context->lenient = q->lenient;
  const le_status status = sums_at(target, rows, q, sums);
  target->context->lenient = before;
  target->likelihoods = likelihoods;
  target->gradients = gradients;
  return status;
}

le_status le_pass_step(le_asked *asked, le_target *target)
{
  const le_question q = le_asked_question(asked);
  le_store *store = &asked->rows;
  const size_t n = store->n < LE_PASS_ROWS ? store->n : LE_PASS_ROWS;
  double *portion = asked->log + asked->used;
  if (n > 0) {
    const le_rows rows = le_store_rows(store, 0, n);
    LE_TRY(le_answer(target, &rows, &q, portion));
    le_add_scaled(q.m * le_wanted_size(q.what, q.d), 1, portion, q.sums);
    asked->counted += n;
    store->n -= n;
    memmove(store->values, store->values + n * store->width,
            store->n * store->width * sizeof(double));
    return LE_OK;
  }
  const size_t width = store->width;
  le_store_free(store);
  store->width = width;
  asked->open = 0;
  if (asked->counted == target->seen) return LE_OK;
  return le_fail(&target->context->error, LE_BAD_ARGUMENT,
                 "The source had %.0f rows when it was read first and %.0f the second time.",
                 (double)target->seen, (double)asked->counted);
}
