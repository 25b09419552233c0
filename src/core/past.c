/* The function that represents rows that are no longer in memory. */
#include "core/past.h"

#include "base/linalg.h"

#include <string.h>

enum { GROUPS = LE_PAST_GROUPS };

double le_past_weight(const le_store *store, size_t n)
{
  return (double)(store->kept + store->gone) / (double)n;
}

void le_past_set_polynomial(le_past *past, const le_store *store)
{
  const size_t last = past->size - 1;
  const double weight = le_past_weight(store, store->kept);
  double *polynomial = past->polynomial, constant = -weight * past->sample[last];
  past->revision++;
  memset(polynomial, 0, last * sizeof(double));
  le_add_scaled(last, -weight, past->sample, polynomial);
  for (size_t g = 0; g < GROUPS; g++) {
    const double *sums = past->sums + g * past->size;
    le_add_scaled(last, 1.0 / GROUPS, sums, polynomial);
    constant += sums[last] / GROUPS;
  }
  polynomial[last] = constant;
}

double le_past_expected(const le_past *past, const double *sums, const double *shift,
                        double *product)
{
  const size_t d = past->d;
  memset(product, 0, d * sizeof(double));
  if (past->order == 2) le_add_symmetric_matvec(sums, d, shift, product);
  return le_dot(sums + past->square, shift, d) + 0.5 * le_dot(product, shift, d);
}

void le_past_add_slope(const le_past *past, size_t m, const double *theta, double *grad,
                       double *work)
{
  const size_t d = past->d;
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < d; j++) work[j] = theta[i * d + j] - past->anchor[j];
    if (past->order == 2) le_add_symmetric_matvec(past->polynomial, d, work, grad + i * d);
    le_add_scaled(d, 1, past->polynomial + past->square, grad + i * d);
  }
}

void le_past_complete(const le_past *past, const le_store *store, size_t m, const double *theta,
                      double *value, double *grad, double *work)
{
  const size_t d = past->d;
  const double weight = le_past_weight(store, store->kept);
  double *shift = work, *product = shift + d;
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; grad && j < d; j++) grad[i * d + j] *= weight;
    if (!value) continue;
    value[i] = weight * value[i] + past->polynomial[past->size - 1];
    for (size_t j = 0; j < d; j++) shift[j] = theta[i * d + j] - past->anchor[j];
    if (!past->plain) value[i] += le_past_expected(past, past->polynomial, shift, product);
  }
  if (grad && !past->plain) le_past_add_slope(past, m, theta, grad, work);
}

void le_past_complete_hess(const le_past *past, const le_store *store, const double *theta,
                           double *grad, double *hess, double *work)
{
  const size_t d = past->d;
  const double weight = le_past_weight(store, store->kept);
  le_past_complete(past, store, 1, theta, NULL, grad, work);
  for (size_t k = 0; k < d * d; k++) hess[k] *= weight;
  if (!past->plain && past->order == 2) le_add_scaled(d * d, 1, past->polynomial, hess);
}

void le_past_archive(le_past *past, le_archive *archive)
{
  static const le_field fields[] = {LE_FIELD(le_past, plain), LE_FIELD(le_past, revision),
                                    LE_FIELD(le_past, anchored_rows)};
  le_archive_expect(archive, past->keep);
  if (!past->keep) return;
  LE_ARCHIVE_FIELDS(archive, past, fields);
  le_archive_doubles(archive, past->anchor, past->d);
  le_archive_doubles(archive, past->sums, GROUPS * past->size);
  le_archive_doubles(archive, past->sample, past->size);
  le_archive_doubles(archive, past->polynomial, past->size);
}
