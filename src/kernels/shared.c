/* Memory, step size and archive of a kernel. */
#include "kernels/shared.h"

#include <math.h>

static const double AMPLE = 0.95;

void *le_base_alloc(const le_layout *layout, size_t d, size_t m, le_arena *arena)
{
  le_base *base = le_arena_bytes(arena, 1, layout->size);
  if (!base) return NULL;
  *base = (le_base){.layout = layout, .d = d, .step = NAN, .fixed = 1, .acceptance = NAN};
  le_blocks_alloc(arena, base, layout->block, layout->blocks, m, d);
  return arena->failed ? NULL : base;
}

void le_base_adapt(le_base *base, double step, double start, double goal, double most)
{
  base->fixed = step > 0;
  base->step = step > 0 ? step : start;
  base->goal = goal;
  base->most = most;
}

void le_base_tune(void *self)
{
  le_base *base = self;
  if (base->proposed == 0) return;
  base->acceptance = base->accepted / base->proposed;
  base->accepted = base->proposed = 0;
  base->tunings++;
  if (base->fixed) return;
  /* The gain falls to a constant and not to zero, because the best step changes along the path. */
  const double gain = fmax(0.5, 2 / base->tunings);
  /* An acceptance rate near 1 does not tell how far the step is below its best value. After a hard
   * distribution the step may be a thousand times too short and must grow quickly. */
  const double surplus = fmax(0, base->acceptance - AMPLE) / (1 - AMPLE);
  base->step = fmin(base->step * exp(gain * (base->acceptance - base->goal) + surplus), base->most);
}

void le_base_fix(void *self, double step)
{
  le_base *base = self;
  base->step = step;
  base->fixed = 1;
}

le_kernel_report le_base_report(const void *self)
{
  const le_base *base = self;
  return (le_kernel_report){base->acceptance, base->step};
}

void le_base_archive(void *self, size_t m, le_archive *archive)
{
  static const le_field fields[] = {
    LE_FIELD(le_base, step), LE_FIELD(le_base, fixed), LE_FIELD(le_base, accepted),
    LE_FIELD(le_base, proposed), LE_FIELD(le_base, acceptance), LE_FIELD(le_base, tunings)};
  const le_base *base = self;
  const le_layout *layout = base->layout;
  le_archive_expect(archive, base->d);
  LE_ARCHIVE_FIELDS(archive, self, fields);
  le_archive_fields(archive, self, layout->field, layout->fields);
  le_blocks_archive(archive, self, layout->block, layout->blocks, m, base->d);
}
