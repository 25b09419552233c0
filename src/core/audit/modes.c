/* The modes that climbs have found: memory, masses, and their shares of the proposal. */
#include "core/audit/parts.h"

#include "base/linalg.h"
#include "base/logsum.h"

#include <math.h>
#include <string.h>

/* As many modes are kept as fit in MODES_MEMORY numbers, at least MODES_LEAST and at most
 * MODES_MOST; beyond them the proposal would take longer than the likelihood. */
static const double MODES_MEMORY = 3e7;
enum { MODES_LEAST = 32, MODES_MOST = 4096 };
/* The share of the wide component; and the log share below which a mode gets no draws. */
static const double wide_share = 0.3, SHARE_LEAST = -9.2;

size_t le_audit_modes_most(size_t d)
{
  const double each = 2 * (double)d * (double)d + 4 * (double)d;
  return (size_t)fmin(fmax(MODES_MEMORY / each, MODES_LEAST), MODES_MOST);
}

le_status le_audit_reserve(le_audit *a, size_t n)
{
  const size_t had = a->room_of_modes, wanted = had + had / 2 < n ? n : had + had / 2,
               limit = a->most + 1 > n ? a->most + 1 : n, /* a refitted proposal may have more */
               room = wanted > limit ? limit : wanted;
  if (n <= had) return LE_OK;
  le_mode *mode = le_resize(a->mode, room * sizeof *mode);
  if (!mode) return LE_NO_MEMORY;
  a->mode = mode;
  double *share = le_resize(a->share, 3 * (room + 1) * sizeof *share);
  if (!share) return LE_NO_MEMORY;
  a->share = share;
  a->term = share + room + 1;
  const size_t logs = room * LE_AUDIT_LOGS(a->d);
  le_release(a->logs);
  a->logs = le_resize(NULL, logs * sizeof *a->logs);
  if (!a->logs) return LE_NO_MEMORY;
  memset(a->logs, 0, logs * sizeof *a->logs);
  for (; a->room_of_modes < room && !a->arena->failed; a->room_of_modes++)
    le_mode_alloc(&a->mode[a->room_of_modes], a->d, a->arena);
  return a->arena->failed ? LE_NO_MEMORY : LE_OK;
}

double le_audit_symmetry(const le_target *target)
{
  return target->ops->log_symmetry ? target->ops->log_symmetry(target->model) : 0;
}

double le_audit_orbit(const le_target *target, const le_mode *mode)
{
  return target->ops->log_orbit ? target->ops->log_orbit(target->model, mode->theta)
                                : le_audit_symmetry(target);
}

int le_audit_relabel(const le_audit *a, const le_target *target, double *theta)
{
  return target->ops->relabel &&
         target->ops->relabel(target->model, a->mode[0].theta, theta) == 1;
}

double le_audit_best_mass(const le_audit *a)
{
  double best = -INFINITY;
  for (size_t k = 0; k < a->modes; k++) best = fmax(best, le_mode_mass(&a->mode[k]));
  return best;
}

le_mode *le_audit_known(le_audit *a, const double *theta, double within)
{
  for (size_t k = 0; k < a->modes; k++) {
    le_mode *mode = &a->mode[k];
    if (le_mode_distance(mode, mode->theta, theta, a->work) < within * (double)a->d) return mode;
  }
  return NULL;
}

le_status le_audit_keep(le_audit *a, le_mode *found)
{
  size_t place = a->modes;
  if (place < a->most) {
    LE_TRY(le_audit_reserve(a, place + 1));
    a->modes++;
  } else {
    /* the first mode stays: the labels of the others refer to it */
    place = a->most > 1;
    for (size_t k = place + 1; k < a->modes; k++)
      if (le_mode_mass(&a->mode[k]) < le_mode_mass(&a->mode[place])) place = k;
    const double lightest = le_mode_mass(&a->mode[place]), mass = le_mode_mass(found);
    a->refused = fmax(a->refused, fmin(lightest, mass));
    if (mass <= lightest) return LE_OK;
  }
  le_mode_swap(found, &a->mode[place]);
  memcpy(found->scale, a->scale, a->d * sizeof(double));
  return LE_OK;
}

/* The density in the model's own coordinates has its maximum where the log determinant of the
 * transformation moves the mode: one Newton step. */
static void place_centre(le_audit *a, const le_target *target, size_t part)
{
  const size_t d = a->d;
  const le_mode *mode = &a->mode[part];
  double *centre = mode->centre, *step = a->work, *point = step + d, *out = point + d;
  const double h = 1e-4;
  memcpy(centre, mode->theta, d * sizeof(double));
  if (part >= a->modes || !target->ops->to_normal) return;
  memcpy(point, mode->theta, d * sizeof(double));
  for (size_t j = 0; j < d; j++) {
    point[j] = mode->theta[j] + h;
    step[j] = -target->ops->to_normal(target->model, mode->theta, point, out) / h;
    point[j] = mode->theta[j];
  }
  le_cholesky_solve(mode->factor, d, step);
  for (size_t j = 0; j < d; j++) centre[j] += step[j];
}

/* By mass; the first mode may have to stay the first. */
static void sort_modes(le_audit *a)
{
  const size_t first = a->anchored ? 1 : 0;
  for (size_t k = 1; k < a->modes; k++)
    for (size_t j = k;
         j > first && le_mode_mass(&a->mode[j]) > le_mode_mass(&a->mode[j - 1]); j--)
      le_mode_swap(&a->mode[j], &a->mode[j - 1]);
}

/* Laplace's approximation of the evidence: of all modes, and of those reached from particles. */
static void approximate(le_audit *a, const le_target *target)
{
  double *mass = a->term;
  size_t reached = 0;
  for (size_t k = 0; k < a->modes; k++)
    mass[k] = le_mode_mass(&a->mode[k]) + le_audit_orbit(target, &a->mode[k]);
  a->laplace = le_logsumexp(mass, a->modes);
  for (size_t k = 0; k < a->modes; k++)
    if (a->mode[k].start < a->native) mass[reached++] = mass[k];
  a->unreached = reached ? a->laplace - le_logsumexp(mass, reached) : INFINITY;
}

/* Shares of the modes, which are sorted. Returns the sum of the shares of those kept. */
static double share_out(le_audit *a)
{
  double *mass = a->term, sum = 0;
  size_t kept = 0;
  for (size_t k = 0; k < a->modes; k++) mass[k] = le_mode_mass(&a->mode[k]);
  const double total = le_logsumexp(mass, a->modes);
  for (size_t k = 0; k < a->modes; k++)
    if (mass[k] - total > SHARE_LEAST) {
      a->share[kept] = exp(mass[k] - total);
      sum += a->share[kept++];
    }
  a->modes = a->parts = kept;
  return sum;
}

/* The density can be highest at a hard edge, where no gradient is zero, and then no climb ends. The
 * particles' mean and covariance are a proposal even so, which is refitted to its draws. Modes of
 * exchangeable parts tell the labels, and draws in two steps need no mode. */
static int may_do_without_modes(const le_audit *a, const le_target *target)
{
  return a->has_wide && !target->ops->relabel && !a->two.possible && a->draws > 0;
}

le_status le_audit_weigh_modes(le_audit *a, const le_target *target)
{
  LE_TRY(le_audit_reserve(a, a->modes + 1));
  a->found = a->modes;
  sort_modes(a);
  if (a->modes > 0) approximate(a, target);
  const double sum = share_out(a);
  if (a->modes == 0) { /* or none has a finite mass */
    a->unreached = 0; /* without modes the particles can have missed none */
    a->failed = !may_do_without_modes(a, target);
    if (a->failed) {
      a->phase = LE_AUDIT_DONE;
      return LE_OK;
    }
  }
  for (size_t k = 0; k < a->modes; k++)
    a->share[k] *= (a->has_wide ? 1 - wide_share : 1) / sum;
  if (a->has_wide) {
    le_mode_swap(&a->mode[a->modes], &a->wide);
    a->share[a->parts] = a->parts > 0 ? wide_share : 1;
    a->parts++;
  }
  for (size_t k = 0; k < a->parts; k++) place_centre(a, target, k);
  return LE_OK;
}

void le_audit_unweigh_modes(le_audit *a)
{
  if (a->has_wide) le_mode_swap(&a->mode[a->modes], &a->wide);
  a->modes = a->found;
}

double le_audit_refused(const le_audit *a)
{
  if (a->parts == 0) return 0;
  /* shares are proportional to the masses */
  return exp(a->refused - le_mode_mass(&a->mode[0])) * a->share[0];
}

/* ---- level ridges ---- */

/* On a ring around the centre of the prior the posterior is equally high everywhere, and each climb
 * ends at another point. Along the ridge the curvature at the top is zero, so that components of
 * such modes would be far wider than the prior: they are made at most WIDEST times as wide. Two
 * modes that are wider than the prior overlap, so those of SAME_HEIGHT, up to the inaccuracy of
 * climbs, are points of one ridge. In more than LEVEL_DIMENSIONS all this would take longer than a
 * climb. */
enum { LEVEL_DIMENSIONS = 20 };
static const double WIDEST = 2, SAME_HEIGHT = 0.1;

/* Is the mode wider than the prior in some coordinate? The climb has ended beside the top, where
 * the gradient g across a ridge of radius r leaves a curvature of g / r along it; r is of the size
 * of the prior. `inverse` has room for 2 d x d numbers. */
static int is_wide(const le_audit *a, const le_mode *mode, double *inverse)
{
  const size_t d = a->d;
  double slope = 0;
  for (size_t j = 0; j < d; j++) slope += mode->grad[j] * mode->grad[j] * a->prior_variance[j];
  memcpy(inverse, mode->precision, d * d * sizeof(double));
  if (le_invert(inverse, d, inverse + d * d) != LE_OK) return 0;
  for (size_t j = 0; j < d; j++)
    if (inverse[j * d + j] * (1 + sqrt(slope)) > a->prior_variance[j]) return 1;
  return 0;
}

static int on_one_ridge(const le_mode *mode, const le_mode *other)
{
  return mode->level && other->level && fabs(other->log_density - mode->log_density) < SAME_HEIGHT;
}

static void narrow(const le_audit *a, le_mode *mode, double *factor)
{
  const size_t d = a->d;
  if (mode->level == LE_MODE_NARROWED) return;
  memcpy(factor, mode->precision, d * d * sizeof(double));
  for (size_t j = 0; j < d; j++)
    factor[j * d + j] += 1 / (WIDEST * WIDEST * a->prior_variance[j]);
  if (le_cholesky(factor, d) != LE_OK) return;
  memcpy(mode->factor, factor, d * d * sizeof(double));
  for (size_t j = 0; j < d; j++)
    mode->precision[j * d + j] += 1 / (WIDEST * WIDEST * a->prior_variance[j]);
  mode->level = LE_MODE_NARROWED;
}

void le_audit_judge_level(le_audit *a, le_mode *mode)
{
  mode->level = a->prior_variance && a->d <= LEVEL_DIMENSIONS && is_wide(a, mode, a->work)
                  ? LE_MODE_WIDE : LE_MODE_NARROW;
  for (size_t k = 0; k < a->modes && mode->level; k++) {
    if (!on_one_ridge(mode, &a->mode[k])) continue;
    narrow(a, mode, a->work);
    narrow(a, &a->mode[k], a->work);
  }
}

/* Climbs that ended on the ridge of this mode, or at it. */
static double hits_on_ridge(const le_audit *a, const le_mode *mode)
{
  double hits = (double)mode->hits;
  for (size_t k = 0; k < a->modes && mode->level; k++)
    if (&a->mode[k] != mode && on_one_ridge(mode, &a->mode[k])) hits += (double)a->mode[k].hits;
  return hits;
}

/* Share of the mass (Laplace) of modes that few climbs have reached. Good and Turing: those that
 * only one has reached estimate the mass of the modes that none has, relative to what was found.
 * But climbs end when this share is small, and then it says nothing: so modes reached up to
 * LE_FEW_HITS times count. And if some have far smaller basins than most (RARE of their hits),
 * there may be others with still smaller ones, of which no climb knows: they count up to
 * RARE_HITS. */
enum { RARE_HITS = 10 };
static const double RARE = 0.2;

double le_audit_rarely(const le_audit *a, size_t few)
{
  const double best = le_audit_best_mass(a);
  double all = 0, hits = 0, rare = 0;
  for (size_t k = 0; k < a->modes; k++) {
    const double mass = exp(le_mode_mass(&a->mode[k]) - best);
    all += mass;
    hits += mass * hits_on_ridge(a, &a->mode[k]);
  }
  for (size_t k = 0; k < a->modes; k++) {
    const double own = hits_on_ridge(a, &a->mode[k]);
    if (own <= (double)few || (few > 1 && own <= RARE_HITS && own < RARE * hits / all))
      rare += exp(le_mode_mass(&a->mode[k]) - best);
  }
  return all > 0 ? rare / all : 0;
}
