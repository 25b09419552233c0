/* Settings that are read into members of the same name, by a table:
 *   static const le_member members[] = {LE_MEMBER(baoab, friction), LE_MEMBER(baoab, clip)};
 *   le_members_read(args, settings, k, LE_TABLE(members));
 * A double takes a number, a size_t a whole number, an int a flag, an enumeration a word. */
#ifndef LE_CORE_MEMBERS_H
#define LE_CORE_MEMBERS_H

#include "base/blocks.h"
#include "core/settings.h"

typedef struct le_member {
  const char *name;
  size_t offset;
  le_setting_kind kind;
} le_member;

#define LE_MEMBER(type, member)                                                                    \
  {#member, offsetof(type, member), _Generic(((type *)0)->member, double: LE_REAL,                 \
                                             size_t: LE_COUNT, int: LE_FLAG, unsigned: LE_WORD)}

void le_members_read(const le_args *args, const le_setting *table, void *self,
                     const le_member *members, size_t n);
/* The settings of a stage, numbered from 0. */
void le_members_read_stage(const le_args *args, const le_setting *table, size_t stage, void *self,
                           const le_member *members, size_t n);

#endif
