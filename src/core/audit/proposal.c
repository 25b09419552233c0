/* The proposal: a mixture of t distributions around the modes, with heavier tails if the model has
 * them, and a wide component if there is one, which without modes is all of it. Its density bounds
 * the weights where components overlap. */
#include "core/audit/parts.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

/* Squared Mahalanobis distance of a point from the centre of a component: around a mode in the
 * model's own coordinates if it has them; their log determinant is then returned in `log_det`. */
static double distance(const le_audit *a, const le_target *target, size_t part,
                       const double *theta, double *work, double *log_det)
{
  const le_mode *mode = &a->mode[part];
  const int own = part < a->modes && target->ops->to_normal;
  *log_det = own ? target->ops->to_normal(target->model, mode->theta, theta, work) : 0;
  return le_mode_distance(mode, mode->centre, own ? work : theta, work);
}

/* The log of a sum of exponentials, term by term: the number of components has no limit. */
typedef struct running_sum {
  double most, sum;
} running_sum;

static void add_term(running_sum *all, double term)
{
  if (term == -INFINITY) return;
  if (term <= all->most) {
    all->sum += exp(term - all->most);
    return;
  }
  all->sum = 1 + (all->sum > 0 ? all->sum * exp(all->most - term) : 0);
  all->most = term;
}

static double log_of(const running_sum *all) { return all->most + log(all->sum); }

/* The log of the share of a component and half the log determinant of its precision, which are the
 * same at all points. Behind them lies what they were computed from, the share and the diagonal of
 * the factor: they are computed again when one of these has changed. */
static const double *logs_of(const le_audit *a, size_t part)
{
  const size_t d = a->d;
  const double *factor = a->mode[part].factor;
  double *logs = a->logs + part * LE_AUDIT_LOGS(d), *share = logs + 2, *diagonal = share + 1;
  int same = *share == a->share[part];
  for (size_t j = 0; j < d; j++) same = same && diagonal[j] == factor[j * d + j];
  if (same) return logs;
  *share = a->share[part];
  for (size_t j = 0; j < d; j++) diagonal[j] = factor[j * d + j];
  logs[0] = log(*share);
  logs[1] = le_cholesky_half_log_det(factor, d);
  return logs;
}

double le_audit_log_densities(const le_audit *a, const le_target *target, const double *theta,
                              double *normal, double *work)
{
  running_sum all = {-INFINITY, 0}, peaks = {-INFINITY, 0};
  double of_modes = 0;
  for (size_t k = 0; k < a->parts; k++) {
    double share;
    const double q = distance(a, target, k, theta, work, &share), *logs = logs_of(a, k),
                 half_log_det = logs[1];
    share += logs[0];
    if (k >= a->modes) {
      add_term(&all, share + le_component_log_t(&a->of_wide, half_log_det, q));
      if (a->modes == 0 && k == 0)
        add_term(&peaks, share + le_component_log_normal(a->d, half_log_det, q));
      continue;
    }
    add_term(&all, share + le_component_log_peak(&a->of_modes, half_log_det, q, NULL));
    add_term(&peaks, share + le_component_log_normal(a->d, half_log_det, q));
    of_modes += a->share[k];
  }
  *normal = log_of(&peaks) - log(a->modes > 0 && a->parts > a->modes ? of_modes : 1);
  return log_of(&all);
}

double le_audit_log_proposal(const void *self, const le_target *target, const double *theta,
                             double *work)
{
  double normal;
  return le_audit_log_densities(self, target, theta, &normal, work);
}

double le_audit_freedom(const le_audit *a, size_t part, const gsl_rng *rng)
{
  return part < a->modes ? le_component_peak_freedom(&a->of_modes, rng) : LE_REFIT_FREEDOM;
}

int le_audit_draw_from(const le_audit *a, const le_target *target, size_t part, double nu,
                       const gsl_rng *rng, double *theta)
{
  const le_mode *mode = &a->mode[part];
  le_component_draw(mode, nu, rng, theta);
  if (part >= a->modes || !target->ops->from_normal ||
      target->ops->from_normal(target->model, mode->theta, theta))
    return 1;
  memcpy(theta, mode->theta, a->d * sizeof(double));
  return 0;
}

enum { DRAWS_UNWATCHED = 10 };

le_status le_audit_normal_draws(const le_audit *a, const le_target *target, const gsl_rng *rng,
                                size_t n, double *theta)
{
  for (size_t i = 0; i < n; i++, theta += a->d) {
    /* a draw takes d^2 multiplications: in high dimension the user must be able to interrupt */
    if (i % DRAWS_UNWATCHED == 0 && le_interrupted(target->context)) return LE_INTERRUPTED;
    const size_t part = le_component_stratum(a->share, a->parts, i, n);
    le_audit_draw_from(a, target, part, INFINITY, rng, theta);
    le_audit_relabel(a, target, theta);
  }
  return LE_OK;
}
