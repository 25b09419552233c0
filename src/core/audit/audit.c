/* An audit from its memory to its end: climbs, plan, draws, and what follows. */
#include "core/audit/parts.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

/* Climbs end within ROUGHLY of a mode (squared Mahalanobis distance / d), but at most AT_MOST in
 * all dimensions together. This inaccuracy reduces the effective sample size by about a fiftieth;
 * the expansion corrects for the remaining gradient. */
static const double ROUGHLY = 0.002, AT_MOST = 0.02;
/* Memory of all lots of draws in numbers. */
static const double ROOM_MOST = 2e7;

void le_audit_free(le_audit *a)
{
  le_refit_free(&a->refit);
  le_release(a->mode);
  le_release(a->share);
  le_release(a->logs);
  le_release(a->listed);
}

void le_audit_alloc(le_audit *a, const le_target *target, size_t starts, size_t draws, size_t lots,
                    size_t batch, le_arena *arena)
{
  const size_t d = target->d;
  const double lots_of_room = ROOM_MOST / ((double)draws * (double)d + 1);
  memset(a, 0, sizeof *a);
  a->d = d;
  a->arena = arena;
  const double tails = target->ops->tails ? target->ops->tails(target->model) : 0;
  a->of_modes = le_component_peak_of(d, tails < LE_PEAK_FREEDOM ? tails : 0);
  a->of_wide = le_component_t_of(d, LE_REFIT_FREEDOM);
  a->density = (le_proposal){le_audit_log_proposal, a};
  a->starts_most = starts;
  a->most = starts == 1 ? 1 : le_audit_modes_most(d);
  a->draws = a->lot = a->first_lot = draws;
  a->room = draws * (size_t)fmax(1, fmin((double)lots, lots_of_room));
  a->batch = batch < 1 ? 1 : batch > target->m ? target->m : batch;
  le_mode_alloc(&a->wide, d, arena);
  le_mode_alloc(&a->trial, d, arena);
  a->start = le_arena_doubles(arena, starts * d);
  a->scale = le_arena_doubles(arena, d);
  a->image = le_arena_scratch(arena, LE_AUDIT_IMAGES_AT_ONCE * d, sizeof(double));
  a->theta = le_arena_doubles(arena, a->room * d);
  a->log_weight = le_arena_doubles(arena, a->room);
  a->value = le_arena_scratch(arena, a->batch, sizeof(double));
  a->work = le_arena_scratch(arena, le_mode_work(d) + 2 * a->room, sizeof(double));
  for (size_t j = 0; j < d && !arena->failed; j++) a->scale[j] = 1;
}

void le_audit_by_part(le_audit *a, const le_target *target, le_expansion *expansion, size_t part,
                      size_t least, double work, le_arena *arena)
{
  const int possible = le_expansion_possible(target) && target->ops->log_prior_hess &&
                       target->ops->log_prior_grad;
  a->expansion = expansion;
  a->part = possible ? part : 0;
  a->least = least;
  a->work_least = work;
  a->lik_sums = le_arena_doubles(arena, 1 + a->d + a->d * a->d);
  a->prior = le_arena_scratch(arena, a->batch, sizeof(double));
}

void le_audit_in_two_steps(le_audit *a, const le_target *target, le_arena *arena)
{
  le_twostep_alloc(&a->two, target, a->batch, arena);
}

void le_audit_start(le_audit *a, size_t starts, const double *start)
{
  a->starts = a->native = starts > a->starts_most ? a->starts_most : starts;
  a->near = LE_AUDIT_KNOWN;
  a->climbs_least = a->starts;
  a->draws = a->lot = a->first_lot;
  a->enough = fmin(ROUGHLY * (double)a->d, AT_MOST);
  if (start != a->start) memcpy(a->start, start, a->starts * a->d * sizeof(double));
  a->further = a->imaged = 0;
  a->climbed_work = 0;
  memcpy(a->trial.scale, a->scale, a->d * sizeof(double));
  a->climbed = a->modes = a->found = a->parts = a->drawn = 0;
  a->failed = a->has_wide = a->by_part = a->planned = a->anchored = 0;
  a->in_two_steps = a->refitted = 0;
  a->refit_from = 0;
  a->ideal_sum = a->ideal_squares = 0;
  a->refused = -INFINITY;
  a->phase = LE_AUDIT_CLIMB;
  a->unreached = a->log_evidence = a->se = a->laplace = a->effective_size = a->ideal_size =
    a->pareto_k = a->unseen = a->thin = NAN;
}

void le_audit_widen(le_audit *a, const double *centre, const double *factor)
{
  const size_t d = a->d;
  le_mode *wide = &a->wide;
  memcpy(wide->theta, centre, d * sizeof(double));
  memcpy(wide->factor, factor, d * d * sizeof(double));
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++)
      wide->precision[i * d + j] = le_dot(factor + i * d, factor + j * d, (i < j ? i : j) + 1);
  a->has_wide = 1;
}

void le_audit_scale(le_audit *a, const double *scale)
{
  memcpy(a->scale, scale, a->d * sizeof(double));
  memcpy(a->trial.scale, scale, a->d * sizeof(double));
}

static le_status take_step(le_audit *a, le_target *target, const gsl_rng *rng)
{
  if (a->phase == LE_AUDIT_CLIMB) return le_audit_climb(a, target, rng);
  if (a->phase == LE_AUDIT_SCALES) return le_audit_fit_scales(a, target, rng);
  if (a->phase == LE_AUDIT_REFIT) return le_audit_refit(a, target, rng);
  if (a->phase != LE_AUDIT_DRAW) return LE_OK;
  if (a->in_two_steps) return le_audit_draw_in_two_steps(a, target, rng);
  return a->planned ? le_audit_draw(a, target, rng) : le_audit_plan(a, target, rng);
}

le_status le_audit_step(le_audit *a, le_target *target, const gsl_rng *rng)
{
  /* also where no mode is found there is a place for one */
  LE_TRY(le_audit_reserve(a, 1));
  LE_TRY(take_step(a, target, rng));
  const int over = a->phase == LE_AUDIT_DONE && !a->in_two_steps && a->first_lot;
  return over ? le_audit_follow_up(a, target) : LE_OK;
}

#define FIELD(member) LE_FIELD(le_audit, member)
#define UP_TO(member, limit) LE_UP_TO(le_audit, member, limit)
static const le_field fields[] = {
  UP_TO(draws, room), UP_TO(lot, room), FIELD(taken), FIELD(by_part), FIELD(planned),
  FIELD(in_two_steps), UP_TO(starts, starts_most), FIELD(native), FIELD(climbs_least), FIELD(near),
  FIELD(refused), FIELD(enough), FIELD(climbed), FIELD(further), UP_TO(modes, most),
  UP_TO(imaged, most), FIELD(climbed_work), UP_TO(found, most), FIELD(parts), FIELD(has_wide),
  FIELD(anchored), FIELD(refitted), FIELD(refit_from), UP_TO(drawn, draws),
  LE_WITHIN(le_audit, phase, 0, LE_AUDIT_REFIT), FIELD(failed), FIELD(log_evidence), FIELD(se),
  FIELD(laplace),
  FIELD(effective_size), FIELD(pareto_k), FIELD(unseen), FIELD(thin), FIELD(ideal_sum),
  FIELD(ideal_squares), FIELD(ideal_size), FIELD(unreached),
  /* `refit` saves itself if it is under way; memory for modes follows their number; `trial` is the
   * last climb */
  LE_UNSAVED(le_audit, refit), LE_UNSAVED(le_audit, room_of_modes), LE_UNSAVED(le_audit, mode),
  LE_UNSAVED(le_audit, share), LE_UNSAVED(le_audit, term), LE_UNSAVED(le_audit, logs),
  LE_UNSAVED(le_audit, trial), LE_UNSAVED(le_audit, listed)
};
#undef FIELD
#undef UP_TO

void le_audit_list_modes(le_audit *a, le_result *result)
{
  const size_t d = a->d, rows = d + 3;
  if (a->modes == 0 || a->phase != LE_AUDIT_DONE) return;
  double *listed = le_resize(a->listed, a->modes * rows * sizeof(double));
  if (!listed) {
    result->status = LE_NO_MEMORY;
    return;
  }
  a->listed = listed;
  for (size_t k = 0; k < a->modes; k++, listed += rows) {
    listed[0] = le_mode_mass(&a->mode[k]);
    listed[1] = a->mode[k].log_density;
    listed[2] = (double)a->mode[k].hits;
    memcpy(listed + 3, a->mode[k].theta, d * sizeof(double));
  }
  le_result_array(result, "mode_table", rows, a->modes, a->listed);
}

/* Modes that are in use: those found, and the components of the proposal. */
static size_t modes_used(const le_audit *a)
{
  const size_t modes = a->found > a->modes ? a->found : a->modes;
  return modes > a->parts ? modes : a->parts;
}

void le_audit_archive(le_audit *a, le_archive *archive)
{
  const size_t d = a->d;
  le_archive_expect(archive, a->room);
  LE_ARCHIVE_FIELDS(archive, a, fields);
  const size_t used = modes_used(a);
  const int draws = a->phase == LE_AUDIT_DRAW || a->phase == LE_AUDIT_REFIT;
  le_archive_require(archive, used <= a->most + 1 + LE_REFIT_PARTS_MOST &&
                                a->climbed <= a->starts + a->further);
  le_archive_require(archive, !a->by_part || a->part);
  le_archive_require(archive, a->two.possible ||
                                (!a->in_two_steps && a->phase != LE_AUDIT_SCALES));
  le_archive_require(archive, !draws || (a->lot && (a->parts || a->in_two_steps)));
  le_twostep_archive(&a->two, archive);
  le_refit_archive(&a->refit, d, a->arena, archive);
  le_archive_require(archive, a->phase != LE_AUDIT_REFIT || a->refit.theta);
  if (archive->status == LE_OK && !archive->writing)
    archive->status = le_audit_reserve(a, used > 0 ? used + 1 : 1);
  if (archive->status != LE_OK) return;
  for (size_t k = 0; k < used; k++) le_mode_archive(&a->mode[k], archive);
  le_mode_archive(&a->wide, archive);
  le_archive_doubles(archive, a->share, a->parts);
  le_archive_doubles(archive, a->scale, d);
  le_archive_doubles(archive, a->trial.scale, d);
  le_archive_doubles(archive, a->start, a->starts * d);
  le_archive_doubles(archive, a->theta, a->drawn * d);
  le_archive_doubles(archive, a->log_weight, a->drawn);
}
