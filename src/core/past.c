/* The function that represents rows that are no longer in memory. */
#include "core/past.h"

#include "base/linalg.h"

#include <string.h>

enum { GROUPS = LE_PAST_GROUPS };

double le_past_weight(const le_store *store, size_t n)
{
  return (double)le_store_represented(store) / (double)n;
}

void le_past_set_polynomial(le_past *past, const le_store *store)
{
  past->revision++;
  memset(past->polynomial, 0, past->size * sizeof(double));
  le_add_scaled(past->size, -le_past_weight(store, store->kept), past->sample, past->polynomial);
  for (size_t g = 0; g < GROUPS; g++)
    le_add_scaled(past->size, 1.0 / GROUPS, past->sums + g * past->size, past->polynomial);
}

/* Adds the change of the gradient from the anchor to theta by these sums; `shift` receives the
 * distance. */
static void add_change(const le_past *past, const double *sums, const double *theta, double *grad,
                       double *shift)
{
  const size_t d = past->d;
  for (size_t j = 0; j < d; j++) shift[j] = theta[j] - past->anchor[j];
  if (past->order == 2) le_add_symmetric_matvec(sums + 1 + d, d, shift, grad);
}

double le_past_expected(const le_past *past, const double *sums, const double *theta, double *work)
{
  const size_t d = past->d;
  memset(work + d, 0, d * sizeof(double));
  add_change(past, sums, theta, work + d, work);
  return le_dot(sums + 1, work, d) + 0.5 * le_dot(work + d, work, d);
}

void le_past_add_slope(const le_past *past, size_t m, const double *theta, double *grad,
                       double *work)
{
  const size_t d = past->d;
  for (size_t i = 0; i < m; i++) {
    add_change(past, past->polynomial, theta + i * d, grad + i * d, work);
    le_add_scaled(d, 1, past->polynomial + 1, grad + i * d);
  }
}

void le_past_complete(const le_past *past, const le_store *store, size_t m, const double *theta,
                      double *value, double *grad, double *hess, double *work)
{
  const size_t d = past->d;
  const double weight = le_past_weight(store, store->kept);
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; grad && j < d; j++) grad[i * d + j] *= weight;
    if (!value) continue;
    value[i] = weight * value[i] + past->polynomial[0];
    if (!past->plain) value[i] += le_past_expected(past, past->polynomial, theta + i * d, work);
  }
  if (grad && !past->plain) le_past_add_slope(past, m, theta, grad, work);
  for (size_t k = 0; hess && k < d * d; k++) hess[k] *= weight;
  if (hess && !past->plain && past->order == 2)
    le_add_scaled(d * d, 1, past->polynomial + 1 + d, hess);
}

void le_past_archive(le_past *past, le_archive *archive)
{
  static const le_field fields[] = {LE_FIELD(le_past, plain), LE_FIELD(le_past, revision),
                                    LE_FIELD(le_past, anchored_rows),
                                    LE_UP_TO(le_past, keep, most)};
  le_archive_expect(archive, past->most);
  if (!past->most) return;
  LE_ARCHIVE_FIELDS(archive, past, fields);
  le_archive_doubles(archive, past->anchor, past->d);
  le_archive_doubles(archive, past->sums, GROUPS * past->size);
  le_archive_doubles(archive, past->sample, past->size);
  le_archive_doubles(archive, past->polynomial, past->size);
}
