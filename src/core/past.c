/* The function that represents rows that are no longer in memory. */
#include "core/past.h"

#include "base/linalg.h"

#include <string.h>

enum { GROUPS = LE_PAST_GROUPS };

double le_past_weight(const le_store *store)
{
  return (double)(store->kept + store->gone) / (double)store->kept;
}

void le_past_set_polynomial(le_past *past, const le_store *store)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  const double weight = le_past_weight(store);
  past->revision++;
  past->constant = -weight * past->sample_value;
  for (size_t g = 0; g < GROUPS; g++) past->constant += past->value[g] / GROUPS;
  memset(past->slope, 0, d * sizeof(double));
  memset(past->curve, 0, square * sizeof(double));
  le_add_scaled(d, -weight, past->sample_grad, past->slope);
  le_add_scaled(square, -weight, past->sample_hess, past->curve);
  for (size_t g = 0; g < GROUPS; g++) {
    le_add_scaled(d, 1.0 / GROUPS, past->grad + g * d, past->slope);
    le_add_scaled(square, 1.0 / GROUPS, past->hess + g * square, past->curve);
  }
}

void le_past_add_slope(const le_past *past, size_t m, const double *theta, double *grad,
                       double *work)
{
  const size_t d = past->d;
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < d; j++) work[j] = theta[i * d + j] - past->anchor[j];
    if (past->order == 2) le_add_symmetric_matvec(past->curve, d, work, grad + i * d);
    le_add_scaled(d, 1, past->slope, grad + i * d);
  }
}

void le_past_complete(const le_past *past, const le_store *store, size_t m, const double *theta,
                      double *value, double *grad, double *work)
{
  const size_t d = past->d;
  const double weight = le_past_weight(store);
  double *shift = work, *product = shift + d;
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < d; j++) shift[j] = theta[i * d + j] - past->anchor[j];
    memset(product, 0, d * sizeof(double));
    if (past->order == 2 && !past->plain) le_add_symmetric_matvec(past->curve, d, shift, product);
    if (value) {
      value[i] = weight * value[i] + past->constant;
      if (!past->plain)
        value[i] += le_dot(past->slope, shift, d) + 0.5 * le_dot(product, shift, d);
    }
    if (!grad) continue;
    for (size_t j = 0; j < d; j++) grad[i * d + j] *= weight;
  }
  if (grad && !past->plain) le_past_add_slope(past, m, theta, grad, work);
}

void le_past_complete_hess(const le_past *past, const le_store *store, const double *theta,
                           double *grad, double *hess, double *work)
{
  const size_t d = past->d;
  const double weight = le_past_weight(store);
  le_past_complete(past, store, 1, theta, NULL, grad, work);
  for (size_t k = 0; k < d * d; k++) hess[k] *= weight;
  if (!past->plain && past->order == 2) le_add_scaled(d * d, 1, past->curve, hess);
}

void le_past_archive(le_past *past, le_archive *archive)
{
  const size_t d = past->d, square = past->order == 2 ? d * d : 0;
  le_archive_expect(archive, past->keep);
  if (!past->keep) return;
  le_archive_int(archive, &past->plain);
  le_archive_size(archive, &past->revision);
  le_archive_size(archive, &past->anchored_rows);
  le_archive_doubles(archive, past->anchor, d);
  le_archive_doubles(archive, past->value, GROUPS);
  le_archive_doubles(archive, past->grad, GROUPS * d);
  le_archive_doubles(archive, past->hess, GROUPS * square);
  le_archive_double(archive, &past->sample_value);
  le_archive_doubles(archive, past->sample_grad, d);
  le_archive_doubles(archive, past->sample_hess, square);
  le_archive_double(archive, &past->constant);
  le_archive_doubles(archive, past->slope, d);
  le_archive_doubles(archive, past->curve, square);
}
