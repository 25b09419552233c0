/* Images of the modes at the edge of the fundamental domain.
 *
 * Only draws in the fundamental domain of the first mode have weight. If a mode is at its edge, as
 * happens with symmetric data and with empty components, part of the mode's mass is outside. The
 * same part lies inside at another place of the edge: around an image of the mode, under other
 * labels. Draws show this if their place in the domain is PROPOSED_LESS nats less probable under
 * the proposal than they are where they were drawn. Then the image is a mode of the proposal, too,
 * and each has the share of the mass that is inside (at least INSIDE_LEAST). */
#include "core/audit/parts.h"

#include <math.h>
#include <string.h>

enum { TRIED = 200, LABEL_IMAGES = 32 };
static const double PROPOSED_LESS = 2, SHARE_LEAST = 1e-3, INSIDE_LEAST = 0.02;

/* Whether a draw from this mode, `theta`, shows an image that the proposal lacks; then the image is
 * a->trial.theta. */
static int shows_image(le_audit *a, const le_target *target, size_t part, const double *theta)
{
  const size_t d = a->d;
  double *image = a->trial.theta, *place = a->theta + d;
  memcpy(place, theta, d * sizeof(double));
  if (!le_audit_relabel(a, target, place)) return 0;
  memcpy(image, a->mode[part].theta, d * sizeof(double));
  target->ops->relabel(target->model, place, image);
  return !le_audit_known(a, image, LE_AUDIT_KNOWN) &&
         le_audit_log_proposal(a, target, place, a->work) <
           le_audit_log_proposal(a, target, theta, a->work) - PROPOSED_LESS;
}

static le_status add_image(le_audit *a, le_target *target, size_t part)
{
  le_mode *trial = &a->trial, *mode = &a->mode[part];
  LE_TRY(le_mode_climb(trial, target, a->enough, -INFINITY, a->work));
  if (!trial->converged || le_audit_known(a, trial->theta, LE_AUDIT_KNOWN)) return LE_OK;
  trial->start = mode->start;
  trial->hits = mode->hits;
  trial->level = LE_MODE_NARROW;
  mode->images = trial->images = log(2); /* until the shares inside are measured */
  a->anchored = 1;
  le_audit_unweigh_modes(a);
  LE_TRY(le_audit_keep(a, trial));
  return le_audit_weigh_modes(a, target);
}

static double inside(const le_audit *a, const le_target *target, size_t part, const gsl_rng *rng)
{
  size_t n = 0;
  for (size_t i = 0; i < TRIED; i++) {
    le_audit_draw_from(a, target, part, INFINITY, rng, a->theta);
    n += !le_audit_relabel(a, target, a->theta);
  }
  return fmax((double)n / TRIED, INSIDE_LEAST);
}

static le_status find_images(le_audit *a, le_target *target, const gsl_rng *rng)
{
  size_t before = 0;
  /* with superfluous components there are thousands, and then weights are uneven in any case */
  const size_t all = a->found + LABEL_IMAGES, most = all < a->most ? all : a->most;
  /* images may have images */
  while (a->found > before) {
    before = a->found;
    for (size_t k = 0; k < a->modes; k++)
      for (size_t i = 0; i < TRIED && a->found < most; i++) {
        if (!(a->share[k] > SHARE_LEAST)) break;
        if (le_interrupted(target->context)) return LE_INTERRUPTED;
        le_audit_draw_from(a, target, k, INFINITY, rng, a->theta);
        if (shows_image(a, target, k, a->theta)) LE_TRY(add_image(a, target, k));
      }
  }
  if (!a->anchored) return LE_OK;
  for (size_t k = 0; k < a->modes; k++)
    if (a->mode[k].images > 0) a->mode[k].images = -log(inside(a, target, k, rng));
  le_audit_unweigh_modes(a);
  return le_audit_weigh_modes(a, target);
}

le_status le_audit_add_images(le_audit *a, le_target *target, const gsl_rng *rng)
{
  if (!target->ops->relabel || a->failed || a->phase != LE_AUDIT_DRAW || a->room < 2 ||
      !(le_audit_symmetry(target) > 0))
    return LE_OK;
  /* the draws are those of a copy of the generator, so that it stays as it is */
  gsl_rng *own = gsl_rng_clone(rng);
  if (!own) return LE_NO_MEMORY;
  const le_status status = find_images(a, target, own);
  gsl_rng_free(own);
  return status;
}
