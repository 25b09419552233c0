/* Reads settings into members of a struct. */
#include "core/members.h"

static void set(void *self, const le_member *member, double value)
{
  void *at = (char *)self + member->offset;
  if (member->kind == LE_REAL) *(double *)at = value;
  else if (member->kind == LE_COUNT) *(size_t *)at = value > 0 ? (size_t)value : 0;
  else *(int *)at = (int)value;
}

void le_members_read(const le_args *args, const le_setting *table, void *self,
                     const le_member *members, size_t n)
{
  for (const le_member *m = members; m < members + n; m++)
    set(self, m,
        m->kind == LE_WORD ? (double)le_setting_word(args, table, m->name)
                           : le_setting_number(args, table, m->name));
}

void le_members_read_stage(const le_args *args, const le_setting *table, size_t stage, void *self,
                           const le_member *members, size_t n)
{
  for (const le_member *m = members; m < members + n; m++)
    set(self, m,
        m->kind == LE_WORD ? (double)le_stage_word(args, table, stage, m->name)
                           : le_stage_number(args, table, stage, m->name));
}
