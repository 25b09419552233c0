/* Importance sampling of the posterior around its modes: climbs, proposal, draws and their weights.
 *
 * Draws are stratified over the components (draw k comes from the component whose cumulated
 * share contains (k + 1/2) / n) and weighted by the density of the whole mixture, which bounds
 * the weights where components overlap. */
#include "core/audit.h"

#include "base/linalg.h"
#include "base/logsum.h"
#include "base/pareto.h"
#include "core/images.h"
#include "core/schedule.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <string.h>

/* Two modes closer than KNOWN (squared Mahalanobis distance / d) are the same mode; climbs end
 * within ROUGHLY of a mode on that scale, but at most AT_MOST in all dimensions together. This
 * inaccuracy reduces the effective sample size by about a fiftieth; the expansion corrects for
 * the remaining gradient. */
static const double KNOWN = 0.01, ROUGHLY = 0.002, AT_MOST = 0.02;
/* Memory of all lots of draws in numbers; and the effective sample size relative to an ideal
 * proposal's below which there is another lot. */
static const double ROOM_MOST = 2e7, UNEVEN = 0.5;
/* Degrees of freedom of the components, and the share of the wide one. */
static const double peak_freedom = 20, wide_freedom = LE_REFIT_FREEDOM, wide_share = 0.3;
/* The share of draws with the tails of the model, if they are heavier than those of a peak. */
static const double tails_share = 0.3;

/* Images of a mode whose densities are computed in one call. */
enum { IMAGES_AT_ONCE = 64 };

/* ---- memory of the modes ---- */

/* As many modes are kept as fit in MODES_MEMORY numbers, at least MODES_LEAST and at most
 * MODES_MOST; beyond them the proposal would take longer than the likelihood. */
static const double MODES_MEMORY = 3e7;
enum { MODES_LEAST = 32, MODES_MOST = 4096 };

static size_t modes_most(size_t d)
{
  const double each = 2 * (double)d * (double)d + 4 * (double)d;
  return (size_t)fmin(fmax(MODES_MEMORY / each, MODES_LEAST), MODES_MOST);
}

/* Sees to it that there is memory for n modes. The number of modes is not known before the climbs,
 * so this memory grows as they are found. */
static le_status reserve(le_audit *audit, size_t n)
{
  const size_t had = audit->room_of_modes, wanted = had + had / 2 < n ? n : had + had / 2,
               most = audit->most + 1, room = wanted > most ? most : wanted;
  if (n <= had) return LE_OK;
  le_mode *mode = le_resize(audit->mode, room * sizeof *mode);
  if (!mode) return LE_NO_MEMORY;
  audit->mode = mode;
  double *term = le_resize(audit->term, 2 * (room + 1) * sizeof *term);
  if (!term) return LE_NO_MEMORY;
  audit->term = term;
  for (; audit->room_of_modes < room; audit->room_of_modes++) {
    le_mode *fresh = &audit->mode[audit->room_of_modes];
    LE_TRY(le_mode_make(fresh, audit->d));
    memcpy(fresh->scale, audit->scale, audit->d * sizeof(double));
  }
  return LE_OK;
}

void le_audit_free(le_audit *audit)
{
  for (size_t k = 0; k < audit->room_of_modes; k++) le_mode_release(&audit->mode[k]);
  /* climbs exchange modes with these two */
  le_mode_release(&audit->trial);
  le_mode_release(&audit->wide);
  le_refit_free(&audit->refit);
  le_release(audit->mode);
  le_release(audit->term);
  audit->mode = NULL;
  audit->term = NULL;
  audit->room_of_modes = 0;
}

static double log_density(const void *self, const le_target *target, const double *theta,
                          double *work);

void le_audit_alloc(le_audit *audit, const le_target *target, size_t starts, size_t draws,
                    size_t lots, size_t batch, le_arena *arena)
{
  const size_t d = target->d;
  memset(audit, 0, sizeof *audit);
  audit->d = d;
  audit->tails = target->ops->tails ? target->ops->tails(target->model) : 0;
  if (audit->tails >= peak_freedom) audit->tails = 0;
  audit->density = (le_proposal){log_density, audit};
  audit->starts_most = starts;
  audit->most = starts == 1 ? 1 : modes_most(d);
  audit->draws = audit->lot = audit->first_lot = draws;
  audit->room =
      draws * (size_t)fmax(1, fmin((double)lots, ROOM_MOST / ((double)draws * (double)d + 1)));
  audit->batch = batch < 1 ? 1 : batch > target->m ? target->m : batch;
  le_mode_alloc(&audit->wide, d, arena);
  le_mode_alloc(&audit->trial, d, arena);
  audit->start = le_arena_doubles(arena, starts * d);
  audit->scale = le_arena_doubles(arena, d);
  audit->image = le_arena_doubles(arena, IMAGES_AT_ONCE * d);
  audit->theta = le_arena_doubles(arena, audit->room * d);
  audit->log_weight = le_arena_doubles(arena, audit->room);
  audit->value = le_arena_doubles(arena, audit->batch);
  audit->work = le_arena_doubles(arena, le_mode_work(d) + audit->room);
  for (size_t j = 0; j < d && !arena->failed; j++) audit->scale[j] = 1;
}

void le_audit_by_part(le_audit *audit, const le_target *target, le_expansion *expansion,
                      size_t part, size_t least, double work, le_arena *arena)
{
  const size_t d = audit->d;
  audit->expansion = expansion;
  audit->part =
      le_expansion_possible(target) && target->ops->log_prior_hess && target->ops->log_prior_grad
          ? part
          : 0;
  audit->least = least < audit->room ? least : audit->room;
  audit->work_least = work;
  audit->lik_grad = le_arena_doubles(arena, d);
  audit->lik_hess = le_arena_doubles(arena, d * d);
  audit->prior = le_arena_doubles(arena, audit->batch);
}

void le_audit_in_two_steps(le_audit *audit, const le_target *target, le_arena *arena)
{
  le_twostep_alloc(&audit->two, target, audit->batch, arena);
}

void le_audit_start(le_audit *audit, size_t starts, const double *start)
{
  audit->starts = audit->native = starts > audit->starts_most ? audit->starts_most : starts;
  audit->near = KNOWN;
  audit->climbs_least = audit->starts;
  audit->draws = audit->lot = audit->first_lot;
  audit->enough = fmin(ROUGHLY * (double)audit->d, AT_MOST);
  if (start != audit->start) memcpy(audit->start, start, audit->starts * audit->d * sizeof(double));
  audit->further = audit->imaged = 0;
  audit->climbed_work = 0;
  memcpy(audit->trial.scale, audit->scale, audit->d * sizeof(double));
  audit->climbed = audit->modes = audit->found = audit->parts = audit->drawn = 0;
  audit->failed = audit->has_wide = audit->by_part = audit->planned = audit->anchored = 0;
  audit->in_two_steps = audit->refitted = 0;
  audit->refit_from = 0;
  audit->ideal_sum = audit->ideal_squares = 0;
  audit->refused = -INFINITY;
  audit->phase = LE_AUDIT_CLIMB;
  audit->unreached = audit->log_evidence = audit->se = audit->laplace = audit->effective_size =
      audit->ideal_size = audit->pareto_k = audit->unseen = NAN;
}

void le_audit_widen(le_audit *audit, const double *centre, const double *factor)
{
  const size_t d = audit->d;
  le_mode *wide = &audit->wide;
  memcpy(wide->theta, centre, d * sizeof(double));
  memcpy(wide->factor, factor, d * d * sizeof(double));
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++)
      wide->precision[i * d + j] = le_dot(factor + i * d, factor + j * d, (i < j ? i : j) + 1);
  audit->has_wide = 1;
}

void le_audit_scale(le_audit *audit, const double *scale)
{
  memcpy(audit->scale, scale, audit->d * sizeof(double));
  memcpy(audit->trial.scale, scale, audit->d * sizeof(double));
  for (size_t k = 0; k < audit->room_of_modes; k++)
    memcpy(audit->mode[k].scale, scale, audit->d * sizeof(double));
}

static double symmetry(const le_target *target)
{
  return target->ops->log_symmetry ? target->ops->log_symmetry(target->model) : 0;
}

/* Log number of relabellings that move the mode to another point; fewer than all if some of its
 * components are equal. */
static double images(const le_target *target, const le_mode *mode)
{
  return target->ops->log_orbit ? target->ops->log_orbit(target->model, mode->theta)
                                : symmetry(target);
}

/* With MANY_ROWS rows a climb takes tens of milliseconds: starts close to a known mode are not
 * climbed from. `particle_near` is that distance for starts at particles. */
enum { MANY_ROWS = 50000 };
static const double particle_near = 2;

/* The known mode within this squared Mahalanobis distance / d of the point, or NULL. */
static le_mode *known(le_audit *audit, const le_mode *peak, double within)
{
  const size_t d = audit->d;
  double *shift = audit->work, *product = shift + d;
  for (size_t k = 0; k < audit->modes; k++) {
    for (size_t j = 0; j < d; j++) shift[j] = peak->theta[j] - audit->mode[k].theta[j];
    if (le_quadratic_form(audit->mode[k].precision, d, shift, product) < within * (double)d)
      return &audit->mode[k];
  }
  return NULL;
}

static void swap_modes(le_mode *a, le_mode *b)
{
  const le_mode kept = *a;
  *a = *b;
  *b = kept;
}

/* Adds a mode, or replaces the lightest one if there is no room. */
static le_status keep_mode(le_audit *audit, le_mode *found)
{
  const size_t d = audit->d;
  size_t place = audit->modes;
  if (place < audit->most) {
    LE_TRY(reserve(audit, place + 1));
    audit->modes++;
  } else {
    /* the first mode stays: the labels of the others refer to it */
    place = audit->most > 1;
    for (size_t k = place + 1; k < audit->modes; k++)
      if (le_mode_mass(&audit->mode[k], d) < le_mode_mass(&audit->mode[place], d)) place = k;
    const double lightest = le_mode_mass(&audit->mode[place], d), mass = le_mode_mass(found, d);
    audit->refused = fmax(audit->refused, fmin(lightest, mass));
    if (mass <= lightest) return LE_OK;
  }
  swap_modes(found, &audit->mode[place]);
  memcpy(found->scale, audit->scale, d * sizeof(double));
  return LE_OK;
}

/* The density in the model's own coordinates has its maximum where the log determinant of the
 * transformation moves the mode: one Newton step. */
static void place_centre(le_audit *audit, const le_target *target, size_t part)
{
  const size_t d = audit->d;
  const le_mode *mode = &audit->mode[part];
  double *centre = mode->centre, *step = audit->work, *point = step + d, *out = point + d;
  const double h = 1e-4;
  memcpy(centre, mode->theta, d * sizeof(double));
  if (part >= audit->modes || !target->ops->to_normal) return;
  memcpy(point, mode->theta, d * sizeof(double));
  for (size_t j = 0; j < d; j++) {
    point[j] = mode->theta[j] + h;
    step[j] = -target->ops->to_normal(target->model, mode->theta, point, out) / h;
    point[j] = mode->theta[j];
  }
  le_cholesky_solve(mode->factor, d, step);
  for (size_t j = 0; j < d; j++) centre[j] += step[j];
}

static void fail_without_modes(le_audit *audit)
{
  audit->failed = 1;
  audit->unreached = 0; /* without modes the particles can have missed none */
  audit->phase = LE_AUDIT_DONE;
}

/* After the climbs: sorts modes by mass and sets shares from the Laplace masses; modes with a
 * share below 1e-4 get no draws. */
static le_status weigh_modes(le_audit *audit, const le_target *target)
{
  const size_t d = audit->d;
  LE_TRY(reserve(audit, audit->modes + 1));
  double *mass = audit->term;
  /* images are those in the domain of the first mode */
  const size_t first = audit->anchored ? 1 : 0;
  audit->found = audit->modes;
  for (size_t k = 1; k < audit->modes; k++)
    for (size_t j = k;
         j > first && le_mode_mass(&audit->mode[j], d) > le_mode_mass(&audit->mode[j - 1], d); j--)
      swap_modes(&audit->mode[j], &audit->mode[j - 1]);
  for (size_t k = 0; k < audit->modes; k++)
    mass[k] = le_mode_mass(&audit->mode[k], d) + images(target, &audit->mode[k]);
  audit->laplace = le_logsumexp(mass, audit->modes);
  size_t reached = 0;
  for (size_t k = 0; k < audit->modes; k++)
    if (audit->mode[k].start < audit->native) mass[reached++] = mass[k];
  audit->unreached = reached ? audit->laplace - le_logsumexp(mass, reached) : INFINITY;
  for (size_t k = 0; k < audit->modes; k++) mass[k] = le_mode_mass(&audit->mode[k], d);
  const double total = le_logsumexp(mass, audit->modes);
  size_t kept = 0;
  double sum = 0;
  for (size_t k = 0; k < audit->modes; k++)
    if (mass[k] - total > -9.2) {
      audit->mode[kept].share = exp(mass[k] - total);
      sum += audit->mode[kept++].share;
    }
  audit->modes = audit->parts = kept;
  if (kept == 0) { /* no mode has a finite mass */
    fail_without_modes(audit);
    return LE_OK;
  }
  for (size_t k = 0; k < kept; k++)
    audit->mode[k].share *= (audit->has_wide ? 1 - wide_share : 1) / sum;
  if (audit->has_wide) {
    swap_modes(&audit->mode[kept], &audit->wide);
    audit->mode[kept].share = wide_share;
    audit->parts = kept + 1;
  }
  for (size_t k = 0; k < audit->parts; k++) place_centre(audit, target, k);
  return LE_OK;
}

/* Climbs to a mode with less log mass stop early. The margin is wide because the mass is
 * inaccurate until the climb is near the mode; with some of the rows it is as wide as choose()
 * of core/search.c needs. */
static double least_of_interest(const le_audit *audit, const le_target *target)
{
  double best = -INFINITY;
  for (size_t k = 0; k < audit->modes; k++)
    best = fmax(best, le_mode_mass(&audit->mode[k], audit->d));
  return best - 100 - sqrt((double)target->seen);
}

/* Whether further climbs would hardly find another mode: every mode that may matter has been
 * reached more than once, and the heaviest several times (the share of modes reached once
 * estimates the share of modes not reached, as in Good and Turing). With many heavy modes one
 * may be missed even so: the number of climbs is a multiple of theirs. */
enum { HITS_LEAST = 4, CLIMBS_EACH = 8, CLIMB_OVERHEAD = 20 };
static const double MAY_MATTER = 15, HEAVY = 5;

static int climbs_agree(const le_audit *audit)
{
  double best = -INFINITY;
  size_t hits = 0, heavy = 0;
  if (audit->climbed < audit->climbs_least) return 0;
  for (size_t k = 0; k < audit->modes; k++) {
    const double mass = le_mode_mass(&audit->mode[k], audit->d);
    if (mass > best) hits = audit->mode[k].hits;
    best = fmax(best, mass);
  }
  for (size_t k = 0; k < audit->modes; k++) {
    const double mass = le_mode_mass(&audit->mode[k], audit->d);
    if (audit->mode[k].hits == 1 && mass > best - MAY_MATTER) return 0;
    heavy += mass > best - HEAVY;
  }
  return hits >= HITS_LEAST && audit->climbed >= CLIMBS_EACH * heavy;
}

/* Multiplications of a climb, roughly. Each iteration needs the second derivatives of all rows, or
 * differences; an R function takes as long as R_CALL multiplications for each point. */
static const double R_CALL = 3e5;

static double work_of_climb(const le_audit *audit, const le_target *target, int iterations)
{
  const le_model_ops *ops = target->ops;
  const double d = (double)audit->d, rows = (double)le_store_sample(target->store, target->seen),
               points = ops->log_lik_hess ? d + 1 : ops->log_lik_grad ? 2 * d : 2 * d * d,
               call = ops->traits & LE_MODEL_ONE_THREAD ? R_CALL : 0;
  return (double)(iterations + 1) * points * ((rows + d + CLIMB_OVERHEAD) * d + call);
}

/* Climbs from audit->trial.theta; the caller has set audit->trial.start. */
static le_status climb_from(le_audit *audit, le_target *target)
{
  le_mode *trial = &audit->trial;
  trial->converged = 0;
  const double near = trial->start < audit->native ? particle_near : audit->near;
  const double least = least_of_interest(audit, target);
  le_mode *there = NULL;
  if (le_store_sample(target->store, target->seen) > MANY_ROWS && audit->modes > 0) {
    if (target->ops->relabel)
      target->ops->relabel(target->model, audit->mode[0].theta, trial->theta);
    there = known(audit, trial, near);
  }
  if (!there) {
    LE_TRY(le_mode_climb(trial, target, audit->enough, least, audit->work));
    audit->climbed_work += work_of_climb(audit, target, trial->iterations);
  }
  if (trial->converged) {
    if (audit->modes > 0 && target->ops->relabel) {
      /* the same mode under other labels is not another mode; its curvature must be in the new
       * labels */
      if (target->ops->relabel(target->model, audit->mode[0].theta, trial->theta))
        LE_TRY(le_mode_climb(trial, target, audit->enough, least, audit->work));
    }
    there = known(audit, trial, KNOWN);
    trial->hits = 1;
    if (!there) LE_TRY(keep_mode(audit, trial));
  }
  if (there) there->hits++;
  return LE_OK;
}

/* ---- modes that climbs have not found ---- */

/* On a ridge every climb ends at another point of it, and more climbs find nothing else. So climbs
 * end, whatever they find, when they have taken CLIMBS_WORK multiplications (with calls of R
 * functions CLIMBS_CALLS) and have found more than RIDGE heavy modes. */
enum { RIDGE = 32 };
static const double CLIMBS_WORK = 3e8, CLIMBS_CALLS = 2e9;

/* The work that climbs may take: `most`, or for R functions `calls`. */
static double of_work(const le_target *target, double most, double calls)
{
  return target->ops->traits & LE_MODEL_ONE_THREAD ? calls : most;
}

static int climbs_are_spent(const le_audit *audit, const le_target *target)
{
  return audit->climbed_work > of_work(target, CLIMBS_WORK, CLIMBS_CALLS);
}

static int is_ridge(const le_audit *audit, const le_target *target)
{
  return climbs_are_spent(audit, target) && audit->modes > RIDGE &&
         audit->climbed >= audit->climbs_least;
}

/* Share of the mass (Laplace) of modes that few climbs have reached. Good and Turing: those that
 * only one has reached estimate the mass of the modes that none has, relative to what was found.
 * But climbs end when this share is small, and then it says nothing: so modes reached up to
 * LE_FEW_HITS times count. And if some have far smaller basins than most (RARE of their hits),
 * there may be others with still smaller ones, of which no climb knows: they count up to
 * RARE_HITS. */
enum { RARE_HITS = 10 };
static const double RARE = 0.2;

double le_audit_rarely(const le_audit *audit, size_t few)
{
  const size_t d = audit->d;
  double best = -INFINITY, all = 0, hits = 0, rare = 0;
  for (size_t k = 0; k < audit->modes; k++) best = fmax(best, le_mode_mass(&audit->mode[k], d));
  for (size_t k = 0; k < audit->modes; k++) {
    const double mass = exp(le_mode_mass(&audit->mode[k], d) - best);
    all += mass;
    hits += mass * (double)audit->mode[k].hits;
  }
  for (size_t k = 0; k < audit->modes; k++) {
    const double own = (double)audit->mode[k].hits;
    if (own <= (double)few || (few > 1 && own <= RARE_HITS && own < RARE * hits / all))
      rare += exp(le_mode_mass(&audit->mode[k], d) - best);
  }
  return all > 0 ? rare / all : 0;
}

/* Images of the modes found are weighed by the rows, and climbed from if the mass there may matter:
 * the density is judged with the volume of the mode that the image is made from. All images of a
 * mode cost up to IMAGES_WORK rows visited (of the only mode IMAGES_OF_ONE), those of all modes
 * IMAGES_MOST. Climbs from BARREN_MOST
 * images of different modes that lead to no other mode end this, as on a ridge, where every climb
 * ends at another point of it. */
enum { BARREN_MOST = 8 };
static const double IMAGES_WORK = 1e6, IMAGES_MOST = 5e7, IMAGES_OF_ONE = 1e5;

static double log_volume(const le_mode *mode, size_t d)
{
  return le_mode_mass(mode, d) - mode->log_density;
}

/* Climbs from those of n images in target->packed that may have mass; sets `found` if one leads to
 * another mode. */
static le_status climb_from_images(le_audit *audit, le_target *target, size_t n, double volume,
                                   double least, int *climbed, int *found)
{
  const size_t d = audit->d;
  double value[IMAGES_AT_ONCE], *copy = audit->image;
  const int before = target->context->lenient;
  memcpy(copy, target->packed, n * d * sizeof(double));
  target->context->lenient = 1;
  const le_status status = le_target_density(target, n, copy, value);
  target->context->lenient = before;
  LE_TRY(status);
  for (size_t i = 0; i < n && !climbs_are_spent(audit, target); i++) {
    if (!(value[i] + volume > least)) continue;
    memcpy(audit->trial.theta, copy + i * d, d * sizeof(double));
    le_mode *there = known(audit, &audit->trial, particle_near);
    if (there) {
      there->hits++;
      continue;
    }
    const size_t modes = audit->modes;
    audit->trial.start = audit->starts_most; /* not from a particle */
    LE_TRY(climb_from(audit, target));
    *climbed = 1;
    if (audit->modes > modes) *found = 1;
  }
  return LE_OK;
}

static int images_affordable(const le_audit *audit, const le_target *target, size_t images)
{
  const double rows = (double)le_store_sample(target->store, target->seen) + 1,
               each = (double)images * rows;
  return !target->ops->relabel && audit->most > 1 &&
         each <= (audit->modes > 1 ? IMAGES_WORK : IMAGES_OF_ONE) &&
         (double)(audit->imaged + 1) * each <= IMAGES_MOST;
}

/* The images of one mode. */
static le_status climb_images_of(le_audit *audit, le_target *target, size_t k, size_t images,
                                 double best, int *climbed, int *found)
{
  const size_t d = audit->d, known_modes = audit->modes,
               at_once = audit->batch < IMAGES_AT_ONCE ? audit->batch : IMAGES_AT_ONCE;
  const double volume = log_volume(&audit->mode[k], d);
  size_t n = 0;
  for (size_t image = 0; image < images; image++) {
    if (le_images_make(audit->mode, known_modes, d, k, image, target->packed + n * d)) n++;
    if (n == 0 || (n < at_once && image + 1 < images)) continue;
    LE_TRY(climb_from_images(audit, target, n, volume, best - MAY_MATTER, climbed, found));
    n = 0;
  }
  return LE_OK;
}

static le_status climb_images(le_audit *audit, le_target *target)
{
  size_t barren = 0;
  double best = -INFINITY;
  for (size_t k = 0; k < audit->modes; k++)
    best = fmax(best, le_mode_mass(&audit->mode[k], audit->d));
  for (; audit->imaged < audit->modes && barren < BARREN_MOST && !climbs_are_spent(audit, target);
       audit->imaged++) {
    const size_t images = le_images_count(audit->modes, audit->d);
    if (!images_affordable(audit, target, images)) return LE_OK;
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
    /* if not all heavy modes fit, there is no room for others */
    if (audit->refused > best - HEAVY) return LE_OK;
    int climbed = 0, found = 0;
    LE_TRY(climb_images_of(audit, target, audit->imaged, images, best, &climbed, &found));
    barren = found ? 0 : barren + (size_t)climbed;
  }
  audit->imaged = audit->modes;
  return LE_OK;
}

/* After the starts given, climbs from further ones go on while modes that few climbs have reached
 * have a share of the mass above UNSEEN, up to the work of climbs and MODE_CLIMBS for each mode,
 * and only on few rows: with many rows the modes come from climbs on few. A mode can have a tenth
 * of the mass and a basin that one climb in fifty finds: so there are AGREED climbs, also if they
 * agree, as long as they cost little. */
enum { FURTHER_ROWS = 2000, FURTHER_EACH = 8, AGREED = 1000, MODE_CLIMBS = 20 };
static const double UNSEEN = 0.002, AGREED_WORK = 2e5, AGREED_CALLS = 1e9;

static int agreed_too_early(const le_audit *audit, const le_target *target)
{
  return audit->climbed < AGREED &&
         audit->climbed_work < of_work(target, AGREED_WORK, AGREED_CALLS);
}

static int wants_further(const le_audit *audit, const le_target *target)
{
  if (!audit->another || audit->most == 1 || audit->modes == 0) return 0;
  if (le_store_sample(target->store, target->seen) > FURTHER_ROWS || target->store->gone) return 0;
  if (audit->modes == audit->most) return 0;
  if (agreed_too_early(audit, target)) return 1;
  if (audit->climbed > AGREED + MODE_CLIMBS * audit->modes) return 0;
  return !climbs_are_spent(audit, target) && le_audit_rarely(audit, LE_FEW_HITS) > UNSEEN;
}

static le_status climb_further(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  for (size_t i = 0; i < FURTHER_EACH; i++) {
    LE_TRY(audit->another(audit->source, target, rng, audit->trial.theta));
    audit->trial.start = audit->starts_most;
    audit->climbed++;
    audit->further++;
    LE_TRY(climb_from(audit, target));
  }
  return LE_OK;
}

double le_audit_refused(const le_audit *audit)
{
  if (audit->modes == 0) return 0;
  /* shares are proportional to the masses */
  return exp(audit->refused - le_mode_mass(&audit->mode[0], audit->d)) * audit->mode[0].share;
}

static double freedom(const le_audit *audit, size_t part)
{
  return part < audit->modes ? peak_freedom : wide_freedom;
}

static double freedom_of_draw(const le_audit *audit, size_t part, const gsl_rng *rng)
{
  const int heavy = audit->tails > 0 && part < audit->modes && gsl_rng_uniform(rng) < tails_share;
  return heavy ? audit->tails : freedom(audit, part);
}

/* Squared Mahalanobis distance of a point from the centre of a component: around a mode in the
 * model's own coordinates if it has them; their log determinant is then returned in `log_det`. */
static double distance(const le_audit *audit, const le_target *target, size_t part,
                       const double *theta, double *work, double *log_det)
{
  const size_t d = audit->d;
  const le_mode *mode = &audit->mode[part];
  double *shift = work, *product = work + d;
  *log_det = 0;
  if (part < audit->modes && target->ops->to_normal)
    *log_det = target->ops->to_normal(target->model, mode->theta, theta, shift);
  else
    memcpy(shift, theta, d * sizeof(double));
  for (size_t j = 0; j < d; j++) shift[j] -= mode->centre[j];
  return le_quadratic_form(mode->precision, d, shift, product);
}

static double log_component(const le_audit *audit, size_t part, double q)
{
  const le_mode *mode = &audit->mode[part];
  const double value = le_component_log_t(mode, audit->d, freedom(audit, part), q);
  if (audit->tails == 0 || part >= audit->modes) return value;
  const double both[2] = {log(1 - tails_share) + value,
                          log(tails_share) + le_component_log_t(mode, audit->d, audit->tails, q)};
  return le_logsumexp(both, 2);
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

/* Log density of the proposal; and in `normal`, that of the posterior if it were normal around
 * its modes. */
static double log_proposal(const le_audit *audit, const le_target *target, const double *theta,
                           double *normal, double *work)
{
  running_sum all = {-INFINITY, 0}, peaks = {-INFINITY, 0};
  const size_t d = audit->d, modes = audit->modes;
  double of_modes = 0;
  for (size_t k = 0; k < audit->parts; k++) {
    double share;
    const double q = distance(audit, target, k, theta, work, &share);
    share += log(audit->mode[k].share);
    add_term(&all, share + log_component(audit, k, q));
    if (k >= modes) continue;
    add_term(&peaks, share + le_component_log_normal(&audit->mode[k], d, q));
    of_modes += audit->mode[k].share;
  }
  *normal = log_of(&peaks) - log(audit->parts > modes ? of_modes : 1);
  return log_of(&all);
}

static double log_density(const void *self, const le_target *target, const double *theta,
                          double *work)
{
  double normal;
  return log_proposal(self, target, theta, &normal, work);
}

/* Returns 0 and the mode itself if the draw has coordinates that belong to no theta: the
 * posterior is zero there. */
static int draw_from(const le_audit *audit, const le_target *target, size_t part, double nu,
                     const gsl_rng *rng, double *theta)
{
  const size_t d = audit->d;
  const le_mode *mode = &audit->mode[part];
  le_component_draw(mode, d, nu, rng, theta);
  if (part >= audit->modes || !target->ops->from_normal ||
      target->ops->from_normal(target->model, mode->theta, theta))
    return 1;
  memcpy(theta, mode->theta, d * sizeof(double));
  return 0;
}

static size_t stratum(const le_audit *audit, size_t draw, size_t draws)
{
  const double point = ((double)draw + 0.5) / (double)draws;
  double sum = 0;
  for (size_t k = 0; k + 1 < audit->parts; k++)
    if ((sum += audit->mode[k].share) > point) return k;
  return audit->parts - 1;
}

/* The component of a draw: all lots have the same strata. Draws in two steps have none. */
static size_t part_of_draw(const le_audit *audit, size_t draw)
{
  return audit->in_two_steps ? 0 : stratum(audit, draw % audit->lot, audit->lot);
}

/* Largest log weight of a particle, in nats above the average weight of draws, that counts as
 * covered. */
static const double COVERED_MOST = 3;
enum { COVERS_MOST = 64 };

/* The particle with the largest importance weight; `most` is its log weight minus Laplace log Z. */
static le_status worst_covered(le_audit *audit, le_target *target, size_t n, const double *theta,
                               size_t *worst, double *most)
{
  const size_t d = audit->d;
  double normal;
  *most = -INFINITY;
  for (size_t from = 0; from < n; from += audit->batch) {
    const size_t some = n - from < audit->batch ? n - from : audit->batch;
    LE_TRY(le_target_density(target, some, theta + from * d, audit->value));
    for (size_t i = 0; i < some; i++) {
      const double *point = theta + (from + i) * d;
      const double weight = audit->value[i] -
                            log_proposal(audit, target, point, &normal, audit->work) -
                            audit->laplace;
      if (!(weight > *most)) continue;
      *most = weight;
      *worst = from + i;
    }
  }
  return LE_OK;
}

/* Undoes weigh_modes() so that more modes can be added. */
static void unweigh_modes(le_audit *audit)
{
  if (audit->has_wide) swap_modes(&audit->mode[audit->modes], &audit->wide);
  audit->modes = audit->found;
}

/* Marks modes that have particles nearby as reached from particles, also if only the search
 * climbed to them. */
static void mark_reached(le_audit *audit, size_t n, const double *theta)
{
  for (size_t i = 0; i < n; i++) {
    memcpy(audit->trial.theta, theta + i * audit->d, audit->d * sizeof(double));
    le_mode *there = known(audit, &audit->trial, particle_near);
    if (there) there->start = 0;
  }
}

le_status le_audit_cover(le_audit *audit, le_target *target, size_t n, double *theta)
{
  const size_t d = audit->d;
  unweigh_modes(audit);
  mark_reached(audit, n, theta);
  LE_TRY(weigh_modes(audit, target));
  for (size_t round = 0; round < COVERS_MOST && n > 0 && !audit->failed; round++) {
    size_t worst = 0;
    double most;
    LE_TRY(worst_covered(audit, target, n, theta, &worst, &most));
    if (!(most > COVERED_MOST)) return LE_OK;
    memcpy(audit->trial.theta, theta + worst * d, d * sizeof(double));
    /* each particle is used once */
    memmove(theta + worst * d, theta + --n * d, d * sizeof(double));
    unweigh_modes(audit);
    audit->trial.start = 0;
    LE_TRY(climb_from(audit, target));
    LE_TRY(weigh_modes(audit, target));
  }
  return LE_OK;
}

enum { DRAWS_UNWATCHED = 10 };

le_status le_audit_normal_draws(const le_audit *audit, const le_target *target, const gsl_rng *rng,
                                size_t n, double *theta)
{
  const size_t d = audit->d;
  for (size_t i = 0; i < n; i++) {
    /* a draw takes d^2 multiplications: in high dimension the user must be able to interrupt */
    if (i % DRAWS_UNWATCHED == 0 && le_interrupted(target->context)) return LE_INTERRUPTED;
    draw_from(audit, target, stratum(audit, i, n), INFINITY, rng, theta + i * d);
    if (target->ops->relabel)
      target->ops->relabel(target->model, audit->mode[0].theta, theta + i * d);
  }
  return LE_OK;
}

/* Relative variance of the mean of normalised weights. Draws are stratified over the components, so
 * only differences within a component count: with a wide component the variance of all weights
 * together is up to eight times as large. A component with one draw is compared with all draws. */
static double variance_of_mean(const le_audit *audit, const double *weight)
{
  const size_t n = audit->draws;
  const size_t parts = audit->parts > 0 ? audit->parts : 1;
  double *sum = audit->term, *size = sum + parts, variance = 0;
  memset(sum, 0, 2 * parts * sizeof(double));
  for (size_t i = 0; i < n; i++) {
    const size_t k = part_of_draw(audit, i);
    size[k]++;
    sum[k] += weight[i];
  }
  for (size_t i = 0; i < n; i++) {
    const size_t k = part_of_draw(audit, i);
    const double m = size[k], away = weight[i] - (m > 1 ? sum[k] / m : 1 / (double)n);
    variance += away * away * (m > 1 ? m / (m - 1) : 1);
  }
  return variance;
}

static const double REFIT_IDEAL = 0.5;

static void finish(le_audit *audit, const le_target *target)
{
  const size_t n = audit->draws;
  double *weight = audit->work;
  const double total = le_normalise(audit->log_weight, n, weight);
  audit->phase = LE_AUDIT_DONE;
  audit->failed = !isfinite(total);
  if (audit->failed) return;
  audit->log_evidence = total - log((double)n) + images(target, &audit->mode[0]);
  double square = 0;
  for (size_t i = 0; i < n; i++) square += weight[i] * weight[i];
  audit->effective_size = 1 / square;
  /* what a refitted proposal of t distributions reaches on posteriors that are not normal */
  audit->ideal_size = audit->refitted ? REFIT_IDEAL * (double)n
                                      : audit->ideal_sum * audit->ideal_sum / audit->ideal_squares;
  /* half of the relative variance of the mean weight is the mean error of its logarithm */
  const double relative = variance_of_mean(audit, weight);
  audit->log_evidence += 0.5 * relative;
  const le_pareto tail = le_pareto_tail(audit->log_weight, n, audit->work);
  audit->pareto_k = tail.k;
  audit->unseen = tail.unseen;
  audit->se = hypot(sqrt(relative), tail.unseen);
}

/* Largest power of the weights, so that some annealing remains if weights are even but for a
 * tail. */
static const double TEMPERED_MOST = 0.5;

int le_audit_temper(le_audit *audit, const le_target *target, double *lambda, double *log_integral,
                    double *variance)
{
  const size_t n = audit->draws;
  double *weight = audit->work;
  /* if some components of the mode are equal, relabelled draws have other densities under the
   * proposal */
  if (audit->failed || audit->in_two_steps || audit->modes > 1 ||
      images(target, &audit->mode[0]) != symmetry(target))
    return 0;
  if (le_schedule_adaptive(audit->log_weight, NULL, n, UNEVEN * audit->ideal_size, 0, lambda) !=
      LE_OK)
    return 0;
  *lambda = fmin(*lambda, TEMPERED_MOST);
  for (size_t i = 0; i < n; i++) weight[i] = *lambda * audit->log_weight[i];
  *log_integral = le_normalise(weight, n, weight) - log((double)n) + symmetry(target);
  *variance = variance_of_mean(audit, weight);
  return isfinite(*log_integral);
}

/* ---- weights from part of the rows ---- */

/* A draw is weighed by part of the rows if the remainder of the second-order expansion is below
 * REST_MOST, or if it is so light (log weight below LIGHT, relative to the mean weight by
 * Laplace) that its weight does not matter; otherwise all rows are used. In a trial, COMPARED
 * draws of each component are compared with all rows, and may differ by MISSED_MOST. The number
 * of rows may grow to PART_MOST times `part`. The total work may be BY_PART times that of draws
 * weighed by all rows. */
static const double REST_MOST = 0.3, LIGHT = -12, MISSED_MOST = 0.1, BY_PART = 2;
enum { COMPARED = 16, PART_MOST = 16 };

/* Sets the expansion at the mode of this component (the first mode for the wide one) and returns
 * the log-likelihood there. */
static double expand(le_audit *audit, const le_target *target, size_t part)
{
  const size_t d = audit->d;
  const le_mode *mode = &audit->mode[part < audit->modes ? part : 0];
  const le_model_ops *ops = target->ops;
  double prior;
  ops->log_prior(target->model, 1, mode->theta, &prior);
  ops->log_prior_grad(target->model, 1, mode->theta, audit->lik_grad);
  memset(audit->lik_hess, 0, d * d * sizeof(double));
  ops->log_prior_hess(target->model, mode->theta, audit->lik_hess);
  for (size_t j = 0; j < d; j++) audit->lik_grad[j] = mode->grad[j] - audit->lik_grad[j];
  for (size_t k = 0; k < d * d; k++) audit->lik_hess[k] = -mode->precision[k] - audit->lik_hess[k];
  audit->expansion->anchor = mode->theta;
  audit->expansion->grad = audit->lik_grad;
  audit->expansion->hess = audit->lik_hess;
  return mode->log_density - prior;
}

double le_audit_sums(le_audit *audit, const le_target *target, double **grad, double **hess)
{
  const double value = expand(audit, target, 0);
  *grad = audit->lik_grad;
  *hess = audit->lik_hess;
  return value;
}

/* Log-likelihoods of draws from one component, minus `level`; sets rest = NaN for draws that
 * need all rows. */
static le_status weigh_by_part(le_audit *audit, le_target *target, size_t part, size_t n,
                               const double *theta, double *value, double *level)
{
  const double light = audit->laplace - images(target, &audit->mode[0]) + LIGHT;
  double *rest = audit->expansion->rest, normal;
  *level = expand(audit, target, part);
  LE_TRY(le_expansion_values(audit->expansion, target, 0, target->seen, audit->taken, n, theta,
                             value));
  le_target_prior(target, n, theta, audit->prior, NULL);
  for (size_t i = 0; i < n; i++) {
    if (fabs(rest[i]) <= REST_MOST) continue;
    const double most = *level + value[i] + audit->prior[i] + fabs(rest[i]);
    if (!(most - log_proposal(audit, target, theta + i * audit->d, &normal, audit->work) < light))
      rest[i] = NAN;
  }
  return LE_OK;
}

/* Log densities of draws from one component, by part of the rows, or by all rows where needed. */
static le_status densities_by_part(le_audit *audit, le_target *target, size_t part, size_t n,
                                   const double *theta, double *value)
{
  const size_t d = audit->d;
  const double *rest = audit->expansion->rest;
  double level;
  size_t all = 0;
  LE_TRY(weigh_by_part(audit, target, part, n, theta, value, &level));
  for (size_t i = 0; i < n; i++) value[i] += level + audit->prior[i];
  for (size_t i = 0; i < n; i++)
    if (isnan(rest[i])) memcpy(target->packed + all++ * d, theta + i * d, d * sizeof(double));
  if (all == 0) return LE_OK;
  LE_TRY(le_target_density(target, all, target->packed, audit->prior));
  for (size_t i = n; i-- > 0;)
    if (isnan(rest[i])) value[i] = audit->prior[--all];
  return LE_OK;
}

/* Tests whether `taken` rows, or 4, 16, ... times as many, can weigh draws from this component:
 * some draws are compared with all rows, and more give the share of draws that need all rows,
 * which is added to `all`. */
static le_status try_part(le_audit *audit, le_target *target, size_t part, const gsl_rng *rng,
                          int *possible, double *all)
{
  const size_t d = audit->d, trial = audit->batch < audit->room ? audit->batch : audit->room;
  le_expansion *expansion = audit->expansion;
  for (size_t i = 0; i < trial; i++)
    draw_from(audit, target, part, freedom_of_draw(audit, part, rng), rng, audit->theta + i * d);
  const size_t all_rows = le_store_sample(target->store, target->seen);
  for (; audit->taken <= PART_MOST * audit->part && 4 * audit->taken <= all_rows;
       audit->taken *= 4) {
    double level, missed, farthest;
    size_t need_all = 0;
    LE_TRY(weigh_by_part(audit, target, part, trial, audit->theta, audit->value, &level));
    for (size_t i = 0; i < trial; i++) {
      need_all += isnan(expansion->rest[i]);
      if (i >= COMPARED || !(fabs(expansion->rest[i]) <= REST_MOST))
        expansion->distance[i] = -INFINITY;
    }
    LE_TRY(le_expansion_missed(expansion, target, 0, target->seen, trial, audit->theta,
                               audit->value, &level, &missed, &farthest));
    if (missed > MISSED_MOST) continue;
    *all += audit->mode[part].share * (double)need_all / (double)trial;
    *possible = 1;
    return LE_OK;
  }
  *possible = 0;
  return LE_OK;
}

/* Chooses the number of draws. If part of the rows can weigh them, as many as cost a moderate
 * amount of work; otherwise as few as all rows can weigh. */
static le_status plan_lot(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  const double n = (double)le_store_sample(target->store, target->seen),
               room = (double)audit->lot;
  /* an update with few rows must not weigh every draw by the whole sample of the stream */
  const int cheap = !target->store->gone && room * n <= audit->work_least;
  double all = 0;
  int possible = 1;
  audit->planned = 1;
  if (audit->least > 0)
    audit->draws =
        (size_t)fmin((double)audit->lot, fmax((double)audit->least, ceil(audit->work_least / n)));
  if (audit->part == 0 || cheap || target->chunk > 0 || audit->room < COMPARED) return LE_OK;
  audit->taken = audit->part;
  for (size_t k = 0; k < audit->parts && possible; k++)
    LE_TRY(try_part(audit, target, k, rng, &possible, &all));
  audit->by_part = possible && all < 0.5;
  if (audit->by_part)
    audit->draws =
        (size_t)fmin(room, fmax((double)audit->least,
                                BY_PART * audit->work_least / ((double)audit->taken + all * n)));
  return LE_OK;
}

static le_status plan(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  LE_TRY(plan_lot(audit, target, rng));
  audit->lot = audit->draws;
  return LE_OK;
}

/* Another lot is drawn if weights are uneven and its cost is small. */
static int wants_more(const le_audit *audit, const le_target *target)
{
  return !audit->failed && !audit->by_part && audit->draws + audit->lot <= audit->room &&
         (double)(audit->draws + audit->lot) *
             (double)le_store_sample(target->store, target->seen) <= audit->work_least &&
         !(audit->effective_size >= UNEVEN * audit->ideal_size);
}

static le_status draw(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  const size_t d = audit->d, from = audit->drawn,
               most = from + audit->batch < audit->draws ? from + audit->batch : audit->draws;
  const size_t first = part_of_draw(audit, from);
  size_t to = from;
  for (; to < most; to++) {
    const size_t part = part_of_draw(audit, to);
    if (audit->by_part && part != first) break;
    audit->log_weight[to] =
        draw_from(audit, target, part, freedom_of_draw(audit, part, rng), rng,
                  audit->theta + to * d)
            ? 0
            : -INFINITY;
  }
  LE_TRY(audit->by_part
             ? densities_by_part(audit, target, first, to - from, audit->theta + from * d,
                                 audit->value)
             : le_target_density(target, to - from, audit->theta + from * d, audit->value));
  for (size_t i = from; i < to; i++) {
    double *theta = audit->theta + i * d;
    double normal;
    const double proposal = log_proposal(audit, target, theta, &normal, audit->work),
                 ideal = exp(normal - proposal);
    audit->log_weight[i] += audit->value[i - from] - proposal;
    audit->ideal_sum += ideal;
    audit->ideal_squares += ideal * ideal;
    if (target->ops->relabel &&
        target->ops->relabel(target->model, audit->mode[0].theta, theta) == 1)
      audit->log_weight[i] = -INFINITY;
    if (isnan(audit->log_weight[i])) audit->log_weight[i] = -INFINITY;
  }
  audit->drawn = to;
  if (to < audit->draws) return LE_OK;
  finish(audit, target);
  if (wants_more(audit, target)) {
    audit->draws += audit->lot;
    audit->phase = LE_AUDIT_DRAW;
  }
  return LE_OK;
}

/* ---- draws in two steps ---- */

/* Numbers of annealing steps, each STEPS_MORE times the one before, until the effective sample size
 * is ANNEALED of the draws, or ENOUGH and more steps hardly help. Weights with a Pareto tail above
 * TAIL are uneven, too: with 20 rows, estimates of t regressions were too low by more than twice
 * their errors in a quarter of runs. This choice is made with one PILOT-th of the draws, and the
 * estimate with others: if draws with a heavy tail were always made again, it would be too low on
 * average. Only draws with a Pareto tail above USELESS are made again. */
enum { STEPS_MORE = 4, STEPS_MOST = 256, PILOT = 4 };
static const double ANNEALED = 0.6, ENOUGH = 0.25, HELPS = 1.2, TAIL = 0.4, USELESS = 0.7;

static int is_uneven(const le_audit *audit, double share)
{
  return audit->failed || !(audit->effective_size >= share * audit->ideal_size) ||
         audit->pareto_k > TAIL;
}

static size_t draws_in_two_steps(const le_audit *audit)
{
  return audit->first_lot < audit->room ? audit->first_lot : audit->room;
}

static void start_two_steps(le_audit *audit, const le_target *target)
{
  const size_t draws = draws_in_two_steps(audit);
  /* given the scales there is one mode, and the others would be lost */
  if (audit->modes > 1) return;
  if (draws == 0 || !le_twostep_affordable(&audit->two, target, draws, 1)) return;
  audit->draws = draws > PILOT ? draws / PILOT : draws;
  audit->drawn = 0;
  audit->by_part = 0;
  audit->in_two_steps = 1;
  audit->phase = LE_AUDIT_SCALES;
  le_twostep_start(&audit->two, audit->modes ? audit->mode[0].theta : audit->start, 1);
}

static le_status fit_scales(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  LE_TRY(le_twostep_fit(&audit->two, target, audit->enough, rng));
  if (!audit->two.fitted) return LE_OK;
  audit->phase = audit->two.failed ? LE_AUDIT_DONE : LE_AUDIT_DRAW;
  audit->failed = audit->two.failed;
  audit->ideal_sum = audit->ideal_squares = 0;
  return LE_OK;
}

static le_status draw_in_two_steps(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  const size_t from = audit->drawn, rest = audit->draws - from,
               n = rest < audit->batch ? rest : audit->batch;
  LE_TRY(le_twostep_draw(&audit->two, target, audit->enough, rng, n, audit->theta + from * audit->d,
                         audit->log_weight + from));
  for (size_t i = from; i < from + n; i++)
    if (isnan(audit->log_weight[i])) audit->log_weight[i] = -INFINITY;
  audit->drawn += n;
  if (audit->drawn < audit->draws) return LE_OK;
  audit->ideal_sum = audit->ideal_squares = (double)audit->draws;
  const double before = audit->two.steps > 1 ? audit->effective_size / audit->ideal_size : 0;
  finish(audit, target);
  const size_t all = draws_in_two_steps(audit), steps = STEPS_MORE * audit->two.steps;
  const int pilot = audit->draws < all,
            helps = is_uneven(audit, ENOUGH) ||
                    audit->effective_size > HELPS * before * audit->ideal_size,
            uneven = pilot ? is_uneven(audit, ANNEALED)
                           : audit->failed || audit->pareto_k > USELESS,
            more = uneven && helps && steps <= STEPS_MOST &&
                   le_twostep_affordable(&audit->two, target, all, steps);
  if (!pilot && !more) return LE_OK;
  if (more) {
    if (!audit->failed) {
      le_normalise(audit->log_weight, audit->draws, audit->work);
      if (!le_twostep_refit(&audit->two, audit->draws, audit->theta, audit->work)) {
        audit->failed = pilot; /* other draws are an estimate */
        return LE_OK;
      }
    }
    audit->two.steps = steps;
  }
  audit->draws = more && all > PILOT ? all / PILOT : all;
  audit->drawn = 0;
  audit->phase = LE_AUDIT_DRAW;
  return LE_OK;
}

/* ---- a refitted proposal ---- */

/* In few dimensions the proposal is refitted to its draws if their weights are uneven, with up to
 * REFIT_WORK rows visited. Draws that will be used anyway are refitted if that is cheap
 * (REFIT_CHEAP) and they are less than EVEN: with 16 to 52 rows and half of the draws
 * effective, estimates were 0.2 to 0.3 nats too low at four to seven stated errors. */
enum { REFIT_DIMENSIONS = 20, REFIT_DRAWS = 1000 };
static const double REFIT_WORK = 2e7, REFIT_CHEAP = 2e6, EVEN = 0.7;

static int wants_refit(const le_audit *audit, const le_target *target)
{
  const double rows = (double)le_store_sample(target->store, target->seen),
               work = (double)audit->first_lot * (LE_REFIT_PARTS_MOST + 1) * (rows + 1);
  if (audit->refitted || audit->in_two_steps || audit->failed ||
      audit->modes == 0 || audit->d > REFIT_DIMENSIONS || target->chunk > 0 ||
      !(audit->effective_size > audit->refit_from * audit->ideal_size))
    return 0;
  return (work <= REFIT_CHEAP && is_uneven(audit, EVEN)) ||
         (audit->refit_from == 0 && work <= REFIT_WORK && is_uneven(audit, UNEVEN));
}

static le_status start_refit(le_audit *audit)
{
  const size_t lot = audit->first_lot < REFIT_DRAWS ? audit->first_lot : REFIT_DRAWS;
  audit->refitted = 1;
  audit->by_part = 0;
  audit->phase = LE_AUDIT_REFIT;
  return le_refit_start(&audit->refit, audit->d, lot);
}

/* Log densities of draws, -Inf outside the fundamental domain. */
static le_status value_of(const le_audit *audit, le_target *target, size_t n, double *theta,
                          double *value)
{
  LE_TRY(le_target_density(target, n, theta, value));
  for (size_t i = 0; i < n && target->ops->relabel; i++) {
    double *copy = audit->image;
    memcpy(copy, theta + i * audit->d, audit->d * sizeof(double));
    if (target->ops->relabel(target->model, audit->mode[0].theta, copy) == 1)
      value[i] = -INFINITY;
  }
  return LE_OK;
}

/* The refitted mixture becomes the proposal, and fresh draws of it give the estimate. */
static le_status use_refitted(le_audit *audit)
{
  const le_refit *r = &audit->refit;
  const size_t first = audit->parts, d = audit->d;
  audit->phase = LE_AUDIT_DONE;
  if (r->parts > 0 && r->best * (double)audit->draws > audit->effective_size) {
    LE_TRY(reserve(audit, first + r->parts + 1));
    for (size_t k = 0; k < first; k++) audit->mode[k].share *= r->share[0];
    for (size_t j = 0; j < r->parts; j++) {
      le_mode *part = &audit->mode[first + j];
      memcpy(part->theta, r->part[j].centre, d * sizeof(double));
      memcpy(part->centre, r->part[j].centre, d * sizeof(double));
      memcpy(part->precision, r->part[j].precision, d * d * sizeof(double));
      memcpy(part->factor, r->part[j].factor, d * d * sizeof(double));
      part->share = r->share[j + 1];
    }
    audit->parts = first + r->parts;
    audit->draws = audit->lot = audit->first_lot;
    audit->drawn = 0;
    audit->planned = 1;
    audit->ideal_sum = audit->ideal_squares = 0;
    audit->phase = LE_AUDIT_DRAW;
  }
  le_refit_free(&audit->refit);
  return LE_OK;
}

/* One round: a lot of draws, weights, a further component. */
static le_status refit(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  le_refit *r = &audit->refit;
  const size_t d = audit->d;
  double *theta = le_refit_lot(r), *value = r->value + r->n, normal;
  for (size_t k = 0; k < r->lot; k++) {
    const size_t part = le_refit_component(r, k);
    if (part > 0) {
      le_component_draw(&r->part[part - 1], d, LE_REFIT_FREEDOM, rng, theta + k * d);
      continue;
    }
    /* the first proposal is a mixture itself */
    const size_t own = stratum(audit, (size_t)(gsl_rng_uniform(rng) * 1e6), 1000000);
    draw_from(audit, target, own, freedom_of_draw(audit, own, rng), rng, theta + k * d);
  }
  for (size_t from = 0; from < r->lot; from += audit->batch) {
    const size_t n = r->lot - from < audit->batch ? r->lot - from : audit->batch;
    LE_TRY(value_of(audit, target, n, theta + from * d, value + from));
  }
  for (size_t k = 0; k < r->lot; k++)
    le_refit_column(r, r->n + k)[0] =
        log_proposal(audit, target, theta + k * d, &normal, audit->work);
  LE_TRY(le_refit_round(r));
  return r->done ? use_refitted(audit) : LE_OK;
}

/* ---- images at the edge of the fundamental domain ---- */

/* Only draws in the fundamental domain of the first mode have weight. If a mode is at its edge, as
 * happens with symmetric data and with empty components, part of the mode's mass is outside. The
 * same part lies inside at another place of the edge: around an image of the mode, under other
 * labels. Draws show this if their place in the domain is PROPOSED_LESS nats less probable under
 * the proposal than they are where they were drawn. Then the image is a mode of the proposal, too,
 * and each has the share of the mass that is inside (at least INSIDE_LEAST). */
enum { TRIED = 200, LABEL_IMAGES = 32 };
static const double PROPOSED_LESS = 2, SHARE_LEAST = 1e-3, INSIDE_LEAST = 0.02;

static double proposed(const le_audit *audit, const le_target *target, const double *theta)
{
  double normal;
  return log_proposal(audit, target, theta, &normal, audit->work);
}

/* Whether a draw from this mode, `theta`, shows an image that the proposal lacks; then the image is
 * audit->trial.theta. */
static int shows_image(le_audit *audit, const le_target *target, size_t part, const double *theta)
{
  const size_t d = audit->d;
  double *image = audit->trial.theta, *place = audit->theta + d;
  memcpy(place, theta, d * sizeof(double));
  if (target->ops->relabel(target->model, audit->mode[0].theta, place) != 1) return 0;
  if (!(proposed(audit, target, place) < proposed(audit, target, theta) - PROPOSED_LESS)) return 0;
  memcpy(image, audit->mode[part].theta, d * sizeof(double));
  target->ops->relabel(target->model, place, image);
  return !known(audit, &audit->trial, KNOWN);
}

static le_status add_image(le_audit *audit, le_target *target, size_t part)
{
  le_mode *trial = &audit->trial, *mode = &audit->mode[part];
  LE_TRY(le_mode_climb(trial, target, audit->enough, -INFINITY, audit->work));
  if (!trial->converged || known(audit, trial, KNOWN)) return LE_OK;
  trial->start = mode->start;
  trial->hits = mode->hits;
  mode->images = trial->images = log(2); /* until the shares inside are measured */
  audit->anchored = 1;
  unweigh_modes(audit);
  LE_TRY(keep_mode(audit, trial));
  return weigh_modes(audit, target);
}

static double inside(const le_audit *audit, const le_target *target, size_t part,
                     const gsl_rng *rng)
{
  size_t n = 0;
  for (size_t i = 0; i < TRIED; i++) {
    draw_from(audit, target, part, INFINITY, rng, audit->theta);
    n += target->ops->relabel(target->model, audit->mode[0].theta, audit->theta) != 1;
  }
  return fmax((double)n / TRIED, INSIDE_LEAST);
}

static le_status find_images(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  size_t before = 0;
  /* with superfluous components there are thousands, and then weights are uneven in any case */
  const size_t all = audit->found + LABEL_IMAGES, most = all < audit->most ? all : audit->most;
  /* images may have images */
  while (audit->found > before) {
    before = audit->found;
    for (size_t k = 0; k < audit->modes; k++)
      for (size_t i = 0; i < TRIED && audit->found < most; i++) {
        if (!(audit->mode[k].share > SHARE_LEAST)) break;
        if (le_interrupted(target->context)) return LE_INTERRUPTED;
        draw_from(audit, target, k, INFINITY, rng, audit->theta);
        if (shows_image(audit, target, k, audit->theta)) LE_TRY(add_image(audit, target, k));
      }
  }
  if (!audit->anchored) return LE_OK;
  for (size_t k = 0; k < audit->modes; k++)
    if (audit->mode[k].images > 0) audit->mode[k].images = -log(inside(audit, target, k, rng));
  unweigh_modes(audit);
  return weigh_modes(audit, target);
}

static le_status add_images(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  if (!target->ops->relabel || audit->failed || audit->phase != LE_AUDIT_DRAW ||
      audit->room < 2 || !(symmetry(target) > 0))
    return LE_OK;
  /* the draws are those of a copy of the generator, so that it stays as it is */
  gsl_rng *own = gsl_rng_clone(rng);
  if (!own) return LE_NO_MEMORY;
  const le_status status = find_images(audit, target, own);
  gsl_rng_free(own);
  return status;
}

static le_status climb(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  const size_t d = audit->d;
  if (audit->climbed < audit->starts) {
    memcpy(audit->trial.theta, audit->start + audit->climbed * d, d * sizeof(double));
    audit->trial.start = audit->climbed++;
    LE_TRY(climb_from(audit, target));
    if (audit->climbed < audit->starts && !climbs_agree(audit) && !is_ridge(audit, target))
      return LE_OK;
    audit->starts = audit->climbed;
  }
  LE_TRY(climb_images(audit, target));
  if (wants_further(audit, target)) return climb_further(audit, target, rng);
  if (audit->modes == 0) {
    fail_without_modes(audit);
    return LE_OK;
  }
  audit->phase = audit->draws ? LE_AUDIT_DRAW : LE_AUDIT_DONE;
  LE_TRY(weigh_modes(audit, target));
  return add_images(audit, target, rng);
}

static le_status take_step(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  if (audit->phase == LE_AUDIT_CLIMB) return climb(audit, target, rng);
  if (audit->phase == LE_AUDIT_SCALES) return fit_scales(audit, target, rng);
  if (audit->phase == LE_AUDIT_REFIT) return refit(audit, target, rng);
  if (audit->phase != LE_AUDIT_DRAW) return LE_OK;
  if (audit->in_two_steps) return draw_in_two_steps(audit, target, rng);
  return audit->planned ? draw(audit, target, rng) : plan(audit, target, rng);
}

le_status le_audit_step(le_audit *audit, le_target *target, const gsl_rng *rng)
{
  /* also where no mode is found there is a place for one */
  LE_TRY(reserve(audit, 1));
  LE_TRY(take_step(audit, target, rng));
  if (audit->phase == LE_AUDIT_DONE && !audit->in_two_steps && audit->first_lot) {
    if (is_uneven(audit, UNEVEN)) start_two_steps(audit, target);
    if (wants_refit(audit, target)) return start_refit(audit);
  }
  return LE_OK;
}

void le_audit_archive(le_audit *audit, le_archive *archive)
{
  const size_t d = audit->d;
  int phase = (int)audit->phase;
  le_archive_expect(archive, audit->room);
  le_archive_size(archive, &audit->draws);
  le_archive_size(archive, &audit->lot);
  le_archive_size(archive, &audit->taken);
  le_archive_int(archive, &audit->by_part);
  le_archive_int(archive, &audit->planned);
  le_archive_int(archive, &audit->in_two_steps);
  le_twostep_archive(&audit->two, archive);
  if (audit->draws > audit->room || audit->lot > audit->room) archive->status = LE_CORRUPT;
  if (archive->status != LE_OK) return;
  le_archive_size(archive, &audit->starts);
  le_archive_size(archive, &audit->native);
  le_archive_size(archive, &audit->climbs_least);
  le_archive_double(archive, &audit->near);
  le_archive_double(archive, &audit->refused);
  le_archive_double(archive, &audit->enough);
  le_archive_size(archive, &audit->climbed);
  le_archive_size(archive, &audit->further);
  le_archive_size(archive, &audit->imaged);
  le_archive_double(archive, &audit->climbed_work);
  le_archive_size(archive, &audit->modes);
  le_archive_size(archive, &audit->found);
  le_archive_size(archive, &audit->parts);
  le_archive_int(archive, &audit->has_wide);
  le_archive_int(archive, &audit->anchored);
  le_archive_int(archive, &audit->refitted);
  le_archive_double(archive, &audit->refit_from);
  le_refit_archive(&audit->refit, archive);
  if (archive->status != LE_OK) return;
  le_archive_size(archive, &audit->drawn);
  le_archive_int(archive, &phase);
  audit->phase = (le_audit_phase)phase;
  le_archive_int(archive, &audit->failed);
  size_t used = audit->found > audit->modes ? audit->found : audit->modes;
  if (audit->parts > used) used = audit->parts;
  if (used > audit->most + 1 || audit->starts > audit->starts_most ||
      audit->climbed > audit->starts + audit->further || audit->drawn > audit->draws ||
      phase < 0 || phase > LE_AUDIT_REFIT)
    archive->status = LE_CORRUPT;
  if (archive->status != LE_OK) return;
  le_archive_doubles(archive, audit->scale, d);
  const le_status room = archive->writing ? LE_OK : reserve(audit, used > 0 ? used + 1 : 1);
  if (room != LE_OK) archive->status = room;
  if (archive->status != LE_OK) return;
  for (size_t k = 0; k <= used; k++) {
    le_mode *mode = k < used ? &audit->mode[k] : &audit->wide;
    le_archive_doubles(archive, mode->theta, d);
    le_archive_doubles(archive, mode->grad, d);
    le_archive_doubles(archive, mode->precision, d * d);
    le_archive_doubles(archive, mode->factor, d * d);
    le_archive_doubles(archive, mode->scale, d);
    le_archive_doubles(archive, mode->centre, d);
    le_archive_double(archive, &mode->log_density);
    le_archive_double(archive, &mode->rise);
    le_archive_double(archive, &mode->images);
    le_archive_double(archive, &mode->share);
    le_archive_size(archive, &mode->start);
    le_archive_size(archive, &mode->hits);
  }
  le_archive_doubles(archive, audit->trial.scale, d);
  le_archive_doubles(archive, audit->start, audit->starts * d);
  le_archive_doubles(archive, audit->theta, audit->draws * d);
  le_archive_doubles(archive, audit->log_weight, audit->draws);
  double *const figure[] = {&audit->log_evidence, &audit->se,
                            &audit->laplace, &audit->effective_size,
                            &audit->pareto_k, &audit->unseen, &audit->ideal_sum,
                            &audit->ideal_squares, &audit->ideal_size,
                            &audit->unreached};
  for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) le_archive_double(archive, figure[i]);
}
