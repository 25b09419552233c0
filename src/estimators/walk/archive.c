/* Saves and restores the state of a run. */
#include "estimators/walk/parts.h"

#define FIELD(member) LE_FIELD(walk, member)
static const le_field fields[] = {
  FIELD(target.seen), FIELD(target.chunk), FIELD(target.lambda), FIELD(target.likelihoods),
  FIELD(target.gradients), FIELD(target.noise), FIELD(check_cost), FIELD(skip_moves), FIELD(check),
  FIELD(first_checked), FIELD(from_importance), FIELD(uneven), FIELD(skip_remeasure),
  FIELD(skip_measure), FIELD(step), FIELD(chunk_steps), FIELD(fixed), FIELD(at),
  FIELD(restart_rows), FIELD(retry_control_at), FIELD(noise_measured_at), FIELD(rows_at_check),
  FIELD(moves), FIELD(tried), FIELD(chunk_ess), FIELD(log_z_before), FIELD(variance_before),
  FIELD(lambda_steps), FIELD(restarts), FIELD(drift), FIELD(shortest), FIELD(tried_renewal),
  FIELD(renewed), FIELD(step_bias), FIELD(bias_rate), FIELD(bias_rate_variance),
  FIELD(bias_total), FIELD(bias_total_variance), FIELD(temperature)
};
#undef FIELD

void le_walk_archive(void *self, le_archive *archive)
{
  walk *w = self;
  size_t stage = w->stage, m = w->m;
  le_archive_expect(archive, w->d);
  le_archive_expect(archive, w->most);
  le_archive_expect(archive, w->path.points);
  le_archive_expect(archive, (uint64_t)w->settings.reverse);
  le_machine_archive(&w->machine, archive);
  le_archive_size(archive, &stage);
  le_archive_size(archive, &m);
  if (archive->status != LE_OK) return;
  if (stage >= w->settings.stages || m > w->most) {
    archive->status = LE_CORRUPT;
    return;
  }
  if (!archive->writing) le_walk_enter_stage(w, stage);
  w->m = m;
  LE_ARCHIVE_FIELDS(archive, w, fields);
  le_archive_doubles(archive, w->theta, m * w->d);
  le_archive_doubles(archive, w->log_weight, m);
  le_archive_doubles(archive, w->chunk_value, m);
  le_archive_doubles(archive, w->weight, m);
  le_archive_doubles(archive, w->prior_variance, w->d);
  le_archive_doubles(archive, w->anchor_info, w->d * w->d);
  le_archive_doubles(archive, w->chunk_info, w->d * w->d);
  le_archive_doubles(archive, w->precision, w->d * w->d);
  le_archive_doubles(archive, w->centre, w->d);
  le_archive_doubles(archive, w->labels, w->d);
  int labelled = w->target.labels != NULL;
  le_archive_int(archive, &labelled);
  w->target.labels = labelled ? w->labels : NULL;
  int proposed = w->target.proposal != NULL;
  le_archive_int(archive, &proposed);
  w->target.proposal = proposed && le_walk_samples_importance(w) ? &w->audit.density : NULL;
  for (size_t s = 0; s < w->settings.stages; s++) {
    const le_stage *settings = &w->settings.stage[s];
    le_gradient_archive(&w->gradient[s], &w->target, archive);
    for (size_t half = 0; half < 2; half++) le_metric_archive(&w->metric[s][half], archive);
    if (settings->kernel)
      settings->kernel->ops->archive(w->kernel[s], settings->particles, archive);
  }
  le_walk_past_archive(w, archive);
  le_genealogy_archive(&w->genealogy, archive);
  if (le_walk_renews(w)) le_renewal_archive(&w->renewal, m, archive);
  if (w->settings.search) le_search_archive(&w->search, archive);
  if (le_walk_samples_importance(w)) le_audit_archive(&w->audit, archive);
  if (w->settings.rounds) {
    const size_t kept = w->settings.stage[w->settings.stages - 1].particles * w->settings.rounds;
    le_archive_doubles(archive, w->draw_theta, kept * w->d);
    le_archive_doubles(archive, w->draw_value, kept);
    if (w->settings.bridge) le_bridging_archive(&w->bridging, archive);
  }
  le_trace_archive(&w->trace, archive);
  le_trace_archive(&w->moments, archive);
  le_trace_archive(&w->recorded, archive);
  const walk_phase phase = (walk_phase)w->machine.phase;
  const int between = phase == REWEIGHT || phase == MOVE || phase == STEP_BACK;
  const size_t end = w->settings.reverse ? 0 : w->path.points;
  if (w->at > w->path.points || (follows(w) && between && w->at == end))
    archive->status = LE_CORRUPT;
}
