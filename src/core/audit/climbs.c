/* Climbs to the modes: from the starts given, from images of the modes found, from further starts,
 * and from particles that the proposal does not cover. */
#include "core/audit/parts.h"

#include <math.h>
#include <string.h>

/* With MANY_ROWS rows a climb takes tens of milliseconds: starts close to a known mode are not
 * climbed from. `particle_near` is that distance for starts at particles. */
enum { MANY_ROWS = 50000 };
static const double particle_near = 2;

/* Climbs to a mode with less log mass stop early. The margin is wide because the mass is
 * inaccurate until the climb is near the mode; with some of the rows it is as wide as choose()
 * of core/search.c needs. */
static double least_of_interest(const le_audit *a, const le_target *target)
{
  return le_audit_best_mass(a) - 100 - sqrt((double)target->seen);
}

/* Whether further climbs would hardly find another mode: every mode that may matter has been
 * reached more than once, and the heaviest several times (the share of modes reached once
 * estimates the share of modes not reached, as in Good and Turing). With many heavy modes one
 * may be missed even so: the number of climbs is a multiple of theirs. */
enum { HITS_LEAST = 4, CLIMBS_EACH = 8, CLIMB_OVERHEAD = 20 };
static const double MAY_MATTER = 15, HEAVY = 5;

static int climbs_agree(const le_audit *a)
{
  const double best = le_audit_best_mass(a);
  size_t hits = 0, heavy = 0;
  if (a->climbed < a->climbs_least) return 0;
  for (size_t k = a->modes; k-- > 0;) {
    const double mass = le_mode_mass(&a->mode[k]);
    if (a->mode[k].hits == 1 && mass > best - MAY_MATTER) return 0;
    if (mass == best) hits = a->mode[k].hits;
    heavy += mass > best - HEAVY;
  }
  return hits >= HITS_LEAST && a->climbed >= CLIMBS_EACH * heavy;
}

/* Rows of a regression that take as long as those seen. */
static double rows_of_work(const le_target *target)
{
  return (double)le_store_sample(target->store, target->seen) * le_row_work(target->context);
}

/* Multiplications of a climb, roughly. Each iteration needs the second derivatives of all rows, or
 * differences; an R function takes as long as R_CALL multiplications for each point. */
static const double R_CALL = 3e5;

static double work_of_climb(const le_audit *a, const le_target *target, int iterations)
{
  const le_model_ops *ops = target->ops;
  const double d = (double)a->d, rows = rows_of_work(target),
               points = ops->log_lik_hess ? d + 1 : ops->log_lik_grad ? 2 * d : 2 * d * d,
               call = ops->traits & LE_MODEL_ONE_THREAD ? R_CALL : 0;
  return (double)(iterations + 1) * points * ((rows + d + CLIMB_OVERHEAD) * d + call);
}

/* Climbs from theta, the start with this number. Starts that are none of those given have the
 * number `starts_most`. */
static le_status climb_from(le_audit *a, le_target *target, const double *theta, size_t start)
{
  le_mode *trial = &a->trial, *there = NULL;
  const int labels = a->modes > 0 && target->ops->relabel;
  const double near = start < a->native ? particle_near : a->near,
               least = least_of_interest(a, target);
  memcpy(trial->theta, theta, a->d * sizeof(double));
  trial->start = start;
  trial->converged = 0;
  if (le_store_sample(target->store, target->seen) > MANY_ROWS) {
    if (labels) target->ops->relabel(target->model, a->mode[0].theta, trial->theta);
    there = le_audit_known(a, trial->theta, near);
  }
  if (!there) {
    LE_TRY(le_mode_climb(trial, target, a->enough, least, a->work));
    a->climbed_work += work_of_climb(a, target, trial->iterations);
  }
  if (trial->converged) {
    /* the same mode under other labels is not another mode; its curvature must be in the new
     * labels */
    if (labels && target->ops->relabel(target->model, a->mode[0].theta, trial->theta))
      LE_TRY(le_mode_climb(trial, target, a->enough, least, a->work));
    there = le_audit_known(a, trial->theta, LE_AUDIT_KNOWN);
    trial->hits = 1;
    if (!there) {
      le_audit_judge_level(a, trial);
      return le_audit_keep(a, trial);
    }
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

static int climbs_are_spent(const le_audit *a, const le_target *target)
{
  return a->climbed_work > of_work(target, CLIMBS_WORK, CLIMBS_CALLS);
}

/* Images of the modes found are weighed by the rows, and climbed from if the mass there may matter:
 * the density is judged with the volume of the mode that the image is made from. All images of a
 * mode cost up to IMAGES_WORK rows visited (of the only mode IMAGES_OF_ONE), those of all modes
 * IMAGES_MOST. Climbs from BARREN_MOST images of different modes that lead to no other mode end
 * this, as on a ridge, where every climb ends at another point of it. */
enum { BARREN_MOST = 8 };
static const double IMAGES_WORK = 1e6, IMAGES_MOST = 5e7, IMAGES_OF_ONE = 1e5;

/* Climbs from those of n images in a->image whose log density may be above `least`. */
static le_status climb_from_images(le_audit *a, le_target *target, size_t n, double least,
                                   int *climbed)
{
  const size_t d = a->d;
  double value[LE_AUDIT_IMAGES_AT_ONCE], *image = a->image;
  const int before = target->context->lenient;
  target->context->lenient = 1;
  const le_status status = le_target_density(target, n, image, value);
  target->context->lenient = before;
  LE_TRY(status);
  for (size_t i = 0; i < n && !climbs_are_spent(a, target); i++, image += d) {
    if (!(value[i] > least)) continue;
    le_mode *there = le_audit_known(a, image, particle_near);
    if (there) {
      there->hits++;
      continue;
    }
    LE_TRY(climb_from(a, target, image, a->starts_most));
    *climbed = 1;
  }
  return LE_OK;
}

static int images_affordable(const le_audit *a, const le_target *target, size_t images)
{
  const double each = (double)images * (rows_of_work(target) + 1);
  return !target->ops->relabel && a->most > 1 &&
         each <= (a->modes > 1 ? IMAGES_WORK : IMAGES_OF_ONE) &&
         (double)(a->imaged + 1) * each <= IMAGES_MOST;
}

/* The images of one mode, if their mass may be above `least`. */
static le_status climb_images_of(le_audit *a, le_target *target, size_t k, size_t images,
                                 double least, int *climbed)
{
  const size_t d = a->d, known = a->modes,
               at_once = a->batch < LE_AUDIT_IMAGES_AT_ONCE ? a->batch : LE_AUDIT_IMAGES_AT_ONCE;
  const double volume = le_mode_mass(&a->mode[k]) - a->mode[k].log_density;
  for (size_t image = 0; image < images;) {
    size_t n = 0;
    for (; n < at_once && image < images; image++)
      n += (size_t)le_audit_make_image(a->mode, known, d, k, image, a->image + n * d);
    if (n > 0) LE_TRY(climb_from_images(a, target, n, least - volume, climbed));
  }
  return LE_OK;
}

static le_status climb_images(le_audit *a, le_target *target)
{
  size_t barren = 0;
  const double best = le_audit_best_mass(a);
  for (; a->imaged < a->modes && barren < BARREN_MOST && !climbs_are_spent(a, target);
       a->imaged++) {
    const size_t before = a->modes, images = le_audit_images_count(before, a->d);
    if (!images_affordable(a, target, images)) return LE_OK;
    if (le_interrupted(target->context)) return LE_INTERRUPTED;
    /* if not all heavy modes fit, there is no room for others */
    if (a->refused > best - HEAVY) return LE_OK;
    int climbed = 0;
    LE_TRY(climb_images_of(a, target, a->imaged, images, best - MAY_MATTER, &climbed));
    barren = a->modes > before ? 0 : barren + (size_t)climbed;
  }
  a->imaged = a->modes;
  return LE_OK;
}

/* After the starts given, climbs from further ones go on while modes that few climbs have reached
 * have a share of the mass above UNSEEN, up to the work of climbs and MODE_CLIMBS for each mode,
 * and only on few rows: with many rows the modes come from climbs on few. A mode can have a tenth
 * of the mass and a basin that one climb in fifty finds: so there are AGREED climbs, also if they
 * agree, as long as they cost little. */
enum { FURTHER_ROWS = 2000, FURTHER_EACH = 8, AGREED = 1000, MODE_CLIMBS = 20 };
static const double UNSEEN = 0.002, AGREED_WORK = 2e5, AGREED_CALLS = 1e9;

static int wants_further(const le_audit *a, const le_target *target)
{
  if (!a->another || a->most == 1 || a->modes == 0) return 0;
  if (target->seen > FURTHER_ROWS || !le_rows_of(target)->readable) return 0;
  if (a->modes == a->most) return 0;
  if (a->climbed < AGREED && a->climbed_work < of_work(target, AGREED_WORK, AGREED_CALLS)) return 1;
  if (a->climbed > AGREED + MODE_CLIMBS * a->modes) return 0;
  return !climbs_are_spent(a, target) && le_audit_rarely(a, LE_FEW_HITS) > UNSEEN;
}

static le_status climb_further(le_audit *a, le_target *target, const gsl_rng *rng)
{
  for (size_t i = 0; i < FURTHER_EACH; i++) {
    LE_TRY(a->another(a->source, target, rng, a->image));
    a->climbed++;
    a->further++;
    LE_TRY(climb_from(a, target, a->image, a->starts_most));
  }
  return LE_OK;
}

le_status le_audit_climb(le_audit *a, le_target *target, const gsl_rng *rng)
{
  if (a->climbed < a->starts) {
    const size_t start = a->climbed++;
    LE_TRY(climb_from(a, target, a->start + start * a->d, start));
    const int ridge = climbs_are_spent(a, target) && a->modes > RIDGE &&
                      a->climbed >= a->climbs_least;
    if (a->climbed < a->starts && !climbs_agree(a) && !ridge) return LE_OK;
    a->starts = a->climbed;
  }
  LE_TRY(climb_images(a, target));
  if (wants_further(a, target)) return climb_further(a, target, rng);
  a->phase = a->draws ? LE_AUDIT_DRAW : LE_AUDIT_DONE;
  LE_TRY(le_audit_weigh_modes(a, target));
  return le_audit_add_images(a, target, rng);
}

/* ---- particles that the proposal does not cover ---- */

/* Largest log weight of a particle, in nats above the average weight of draws, that counts as
 * covered. */
static const double COVERED_MOST = 3;
enum { COVERS_MOST = 64 };

/* The particle with the largest importance weight; `most` is its log weight minus Laplace log Z. */
static le_status worst_covered(le_audit *a, le_target *target, size_t n, const double *theta,
                               size_t *worst, double *most)
{
  *most = -INFINITY;
  for (size_t from = 0; from < n; from += a->batch) {
    const size_t some = n - from < a->batch ? n - from : a->batch;
    const double *point = theta + from * a->d;
    LE_TRY(le_target_density(target, some, point, a->value));
    for (size_t i = 0; i < some; i++, point += a->d) {
      const double weight = a->value[i] - le_audit_log_proposal(a, target, point, a->work) -
                            a->laplace;
      if (!(weight > *most)) continue;
      *most = weight;
      *worst = from + i;
    }
  }
  return LE_OK;
}

le_status le_audit_cover(le_audit *a, le_target *target, size_t n, double *theta)
{
  const size_t d = a->d;
  le_audit_unweigh_modes(a);
  /* modes that have particles nearby are reached from particles, also if only the search climbed
   * to them */
  for (size_t i = 0; i < n; i++) {
    le_mode *there = le_audit_known(a, theta + i * d, particle_near);
    if (there) there->start = 0;
  }
  LE_TRY(le_audit_weigh_modes(a, target));
  for (size_t round = 0; round < COVERS_MOST && n > 0 && !a->failed; round++) {
    size_t worst = 0;
    double most;
    LE_TRY(worst_covered(a, target, n, theta, &worst, &most));
    if (!(most > COVERED_MOST)) return LE_OK;
    le_audit_unweigh_modes(a);
    LE_TRY(climb_from(a, target, theta + worst * d, 0));
    LE_TRY(le_audit_weigh_modes(a, target));
    /* each particle is used once */
    memmove(theta + worst * d, theta + --n * d, d * sizeof(double));
  }
  return LE_OK;
}
