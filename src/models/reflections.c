/* Householder reflections of blocks of rows. */
#include "models/reflections.h"

#include "models/shared.h"

#include <stdlib.h>

le_status le_reflections_alloc(le_reflections *s, size_t p)
{
  *s = (le_reflections){.p = p};
  s->factor = calloc(p * (p + 1) + 1, sizeof *s->factor);
  s->columns = malloc((p + 1) * LE_REFLECTED * sizeof *s->columns);
  if (s->factor && s->columns) return LE_OK;
  le_reflections_free(s);
  return LE_NO_MEMORY;
}

void le_reflections_free(le_reflections *s)
{
  free(s->factor);
  free(s->columns);
  s->factor = s->columns = NULL;
}

static double dot(size_t n, const double *a, const double *b)
{
  double lanes[LANES] = {0};
  size_t r = 0;
  for (; r + LANES <= n; r += LANES)
    for (size_t l = 0; l < LANES; l++) lanes[l] += a[r + l] * b[r + l];
  for (size_t l = 0; r < n; r++, l++) lanes[l] += a[r] * b[r];
  return sum_lanes(lanes);
}

/* Kahan's summation, because a stream may have very many blocks. */
static void add_to(double *sum, double *lost, double term)
{
  const double rest = term - *lost, next = *sum + rest;
  *lost = (next - *sum) - rest;
  *sum = next;
}

/* One reflection per covariate, which uses row j of the factor and the whole block. factor[j * (p +
 * 1) + k] is row j; its last entry belongs to the response. The rest of the response column is the
 * part that no coefficients explain: a sum of squares without cancellation. */
void le_reflect(le_reflections *s, size_t n)
{
  const size_t p = s->p;
  double *columns = s->columns, *response = columns + p * n;
  add_to(&s->total, &s->lost_total, dot(n, response, response));
  for (size_t j = 0; j < p; j++) {
    double *row = s->factor + j * (p + 1), *pivot = columns + j * n;
    double length = sqrt(dot(n, pivot, pivot));
    if (length == 0) continue; /* the block has no component in this direction */
    double norm = hypot(row[j], length);
    double diagonal = row[j] > 0 ? -norm : norm, head = row[j] - diagonal;
    for (size_t k = j + 1; k <= p; k++) {
      double *column = columns + k * n;
      double along = -(head * row[k] + dot(n, pivot, column)) / diagonal; /* times head */
      row[k] -= along;
      double step = along / head;
      for (size_t r = 0; r < n; r++) column[r] -= step * pivot[r];
    }
    row[j] = diagonal;
  }
  add_to(&s->squares, &s->lost, dot(n, response, response));
}
