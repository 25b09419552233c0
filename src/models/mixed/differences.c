/* Second derivatives as differences of gradients (models/mixed/differences.h). */
#include "models/mixed/differences.h"

#include "models/shared.h"

#include <math.h>

static const double STEP = 1e-4;

int le_mixed_read_sizes(const le_args *args, size_t n, double *size, char *message)
{
  for (size_t j = 0; j < n; j++)
    if (!le_read_number(args, "size", 0, -1, n, j, &size[j], message)) return 0;
  return 1;
}

void le_mixed_steps(size_t n, size_t d, const double *size, double unit, double *step)
{
  for (size_t j = 0; j < d; j++)
    step[j] = STEP * (j < n && size[j] > 0 ? unit / size[j] : 1);
}

size_t le_mixed_differences_room(size_t d) { return (2 * d + 1) * (2 * d + 1) + 2 * d + 1; }

/* The points theta + step, theta - step for each parameter in turn, and theta. */
static void put_points(size_t d, const double *theta, const double *step, double *point)
{
  for (size_t i = 0; i < 2 * d + 1; i++) memcpy(point + i * d, theta, d * sizeof *point);
  for (size_t j = 0; j < d; j++) {
    point[2 * j * d + j] += step[j];
    point[(2 * j + 1) * d + j] -= step[j];
  }
}

static double distance(size_t d, const double *point, size_t j)
{
  return point[2 * j * d + j] - point[(2 * j + 1) * d + j];
}

le_status le_mixed_slopes(const void *self, size_t d,
                          le_status (*log_lik)(const void *self, size_t m, const double *theta,
                                               const le_rows *rows, double *value,
                                               double *scratch),
                          size_t m, const double *theta, const le_rows *rows, const double *step,
                          double *value, double *grad, double *room, double *scratch)
{
  double *point = room, *found = point + (2 * d + 1) * d;
  for (size_t i = 0; i < m; i++, grad += d) {
    put_points(d, theta + i * d, step, point);
    memset(found, 0, (2 * d + 1) * sizeof *found);
    const le_status status = log_lik(self, 2 * d + 1, point, rows, found, scratch);
    if (status != LE_OK) return status;
    value[i] += found[2 * d];
    for (size_t j = 0; j < d; j++)
      add_finite((found[2 * j] - found[2 * j + 1]) / distance(d, point, j), &grad[j]);
  }
  return LE_OK;
}

le_status le_mixed_differences(const void *self, size_t d, mixed_gradient gradient,
                               const double *theta, const le_rows *rows, const double *step,
                               double *grad, double *hess, double *room, double *scratch)
{
  const size_t m = 2 * d + 1;
  double *point = room, *slope = point + m * d, *value = slope + m * d;
  put_points(d, theta, step, point);
  memset(slope, 0, m * (d + 1) * sizeof *slope); /* and `value` */
  const le_status status = gradient(self, m, point, rows, value, slope, scratch);
  for (size_t j = 0; j < d; j++) {
    const double *up = slope + 2 * j * d, *down = up + d, width = distance(d, point, j);
    for (size_t k = 0; k < d; k++) {
      const double half = 0.5 * (up[k] - down[k]) / width;
      add_finite(half, &hess[j * d + k]);
      add_finite(half, &hess[k * d + j]);
    }
  }
  for (size_t k = 0; k < d; k++) add_finite(slope[2 * d * d + k], &grad[k]);
  return status;
}
