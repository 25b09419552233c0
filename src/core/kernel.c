/* Memory, step size and archive of a kernel. */
#include "core/kernel.h"

#include "core/gibbs.h"

#include <math.h>

static const double AMPLE = 0.95;

le_status le_kernel_alloc(const le_kernel_spec *spec, size_t d, size_t m, le_arena *arena,
                          le_kernel **made)
{
  const le_layout *layout = &spec->ops->layout;
  le_kernel *kernel = *made = le_arena_bytes(arena, 1, layout->size);
  if (!kernel) return LE_NO_MEMORY;
  *kernel = (le_kernel){.ops = spec->ops, .d = d, .step = NAN, .fixed = 1, .acceptance = NAN};
  le_blocks_alloc(arena, kernel, layout->block, layout->blocks, m, d);
  if (spec->ops->set) spec->ops->set(kernel, &spec->args);
  return arena->failed ? LE_NO_MEMORY : LE_OK;
}

void le_kernel_adapt(le_kernel *kernel, double step, double start, double goal, double most)
{
  kernel->fixed = step > 0;
  kernel->step = step > 0 ? step : start;
  kernel->goal = goal;
  kernel->most = most;
}

le_status le_kernel_begin(le_kernel *kernel, le_target *target, size_t m, double *theta,
                          const le_streams *streams)
{
  return kernel->ops->begin ? kernel->ops->begin(kernel, target, m, theta, streams) : LE_OK;
}

le_status le_kernel_density(void *self, le_target *target, size_t m, double *theta,
                            const le_streams *streams)
{
  (void)streams;
  return le_target_density(target, m, theta, ((le_kernel *)self)->value);
}

le_status le_kernel_moves(le_kernel *kernel, le_target *target, size_t m, double *theta,
                          const le_streams *streams, size_t wanted, size_t *made)
{
  const le_kernel_ops *ops = kernel->ops;
  const size_t ahead = ops->moves && !target->held ? le_target_ahead(target, m) : 1;
  *made = wanted < ahead ? wanted : ahead;
  /* products with a dense mass matrix may take seconds even if there are few rows */
  if ((double)m * (double)target->d * (double)target->d > LE_UNWATCHED &&
      le_interrupted(target->context))
    return LE_INTERRUPTED;
  LE_TRY(ops->moves ? ops->moves(kernel, target, m, theta, streams, *made)
                    : ops->move(kernel, target, m, theta, streams));
  if (!target->held) return LE_OK;
  LE_TRY(le_gibbs_sweep(target, m, theta, streams));
  /* what the kernel knows of the points is that of the values before; momenta stay */
  return ops->needs & LE_NEEDS_DENSITY ? le_kernel_begin(kernel, target, m, theta, streams) : LE_OK;
}

void le_kernel_tune(le_kernel *kernel)
{
  if (kernel->proposed == 0) return;
  kernel->acceptance = kernel->accepted / kernel->proposed;
  kernel->accepted = kernel->proposed = 0;
  kernel->tunings++;
  if (kernel->fixed) return;
  /* The gain falls to a constant and not to zero, because the best step changes along the path. */
  const double gain = fmax(0.5, 2 / kernel->tunings);
  /* An acceptance rate near 1 does not tell how far the step is below its best value. After a hard
   * distribution the step may be a thousand times too short and must grow quickly. */
  const double surplus = fmax(0, kernel->acceptance - AMPLE) / (1 - AMPLE);
  kernel->step *= exp(gain * (kernel->acceptance - kernel->goal) + surplus);
  kernel->step = fmin(kernel->step, kernel->most);
}

void le_kernel_archive(le_kernel *kernel, size_t m, le_archive *archive)
{
  static const le_field fields[] = {
    LE_FIELD(le_kernel, step), LE_FIELD(le_kernel, fixed), LE_FIELD(le_kernel, accepted),
    LE_FIELD(le_kernel, proposed), LE_FIELD(le_kernel, acceptance), LE_FIELD(le_kernel, tunings)};
  const le_layout *layout = &kernel->ops->layout;
  le_archive_expect(archive, kernel->d);
  LE_ARCHIVE_FIELDS(archive, kernel, fields);
  le_archive_fields(archive, kernel, layout->size, layout->field, layout->fields,
                    kernel->ops->name);
  le_blocks_archive(archive, kernel, layout->block, layout->blocks, m, kernel->d);
}
