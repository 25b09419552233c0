/* The state of a run of nested sampling, for saving and restoring it. */
#include "estimators/nested/parts.h"

#include <math.h>

void le_nested_archive(void *self, le_archive *archive)
{
  nested *s = self;
  le_archive_expect(archive, s->d);
  le_archive_expect(archive, s->live);
  le_archive_expect(archive, s->kept);
  le_machine_archive(&s->machine, archive);
  if (archive->status != LE_OK) return;
  le_archive_size(archive, &s->target.seen);
  le_archive_size(archive, &s->target.chunk);
  le_archive_size(archive, &s->target.split);
  le_archive_double(archive, &s->target.likelihoods);
  le_archive_double(archive, &s->target.gradients);
  le_archive_size(archive, &s->step);
  le_archive_size(archive, &s->steps);
  le_archive_size(archive, &s->filled);
  double *const figure[] = {&s->floor.value, &s->floor.tie,       &s->log_volume,  &s->log_sum,
                            &s->banked,      &s->banked_variance, &s->information, &s->renewal,
                            &s->echo,        &s->rounds};
  for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) le_archive_double(archive, figure[i]);
  le_archive_sizes(archive, s->order, s->live);
  le_archive_sizes(archive, s->clusters.label, s->live);
  le_archive_sizes(archive, s->source, s->batch);
  le_archive_size(archive, &s->clusters.count);
  le_archive_doubles(archive, s->theta, s->most * s->d);
  le_archive_doubles(archive, s->level, s->live * LEVEL_COLUMNS);
  le_archive_doubles(archive, s->walker, s->batch * s->d);
  le_archive_doubles(archive, s->start, s->batch * s->d);
  le_archive_doubles(archive, s->labels, s->d);
  int labelled = s->target.labels != NULL, walled = s->target.floor != NULL;
  le_archive_int(archive, &labelled);
  le_archive_int(archive, &walled);
  s->target.labels = labelled ? s->labels : NULL;
  s->target.floor = walled ? &s->floor : NULL;
  for (size_t i = 0; i < s->live; i++)
    if (s->order[i] >= s->live || s->clusters.label[i] >= s->clusters.count)
      archive->status = LE_CORRUPT;
  if (s->filled > s->live) archive->status = LE_CORRUPT;
  if (archive->status != LE_OK) return;
  le_gradient_archive(&s->gradient, &s->target, archive);
  le_past_archive(&s->past, archive);
  for (int half = 0; half < 2; half++) le_metric_archive(&s->metric[half], archive);
  s->spec->ops->archive(s->kernel, s->most, archive);
  if (!s->keeps) le_varopt_archive(&s->reservoir, archive);
  le_trace_archive(&s->levels, archive);
  le_trace_archive(&s->points, archive);
  le_trace_archive(&s->trace, archive);
}
