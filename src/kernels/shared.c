/* Memory, step size and archive of a kernel. */
#include "kernels/shared.h"

void *le_base_alloc(const le_layout *layout, size_t d, size_t m, le_arena *arena)
{
  le_base *base = le_arena_bytes(arena, 1, layout->size);
  if (!base) return NULL;
  *base = (le_base){layout, d, le_adapt_make(NAN, NAN, NAN, NAN)};
  base->adapt.fixed = 1;
  le_blocks_alloc(arena, base, layout->block, layout->blocks, m, d);
  return arena->failed ? NULL : base;
}

void le_base_tune(void *self)
{
  le_adapt_tune(&((le_base *)self)->adapt);
}

void le_base_fix(void *self, double step)
{
  le_adapt_fix(&((le_base *)self)->adapt, step);
}

le_kernel_report le_base_report(const void *self)
{
  const le_adapt *adapt = &((const le_base *)self)->adapt;
  return (le_kernel_report){adapt->acceptance, adapt->step};
}

void le_base_archive(void *self, size_t m, le_archive *archive)
{
  le_base *base = self;
  const le_layout *layout = base->layout;
  le_archive_expect(archive, base->d);
  le_adapt_archive(&base->adapt, archive);
  le_archive_fields(archive, self, layout->field, layout->fields);
  le_blocks_archive(archive, self, layout->block, layout->blocks, m, base->d);
}
