/* Settings by name, as a table that each engine and kernel exports: what there is, of which kind,
 * within which range, and what holds where nothing is given.  A name that no table has, a value of
 * another kind or out of range is an error.  R reads the same tables (bridge/tables.c). */
#ifndef LE_CORE_SETTINGS_H
#define LE_CORE_SETTINGS_H

#include "base/status.h"

#include <math.h>

typedef enum le_setting_kind {
  LE_REAL,
  LE_COUNT,  /* a whole number */
  LE_FLAG,   /* 0 or 1 */
  LE_WORD,   /* one of `words` */
  LE_NUMBERS /* any number of them */
} le_setting_kind;

typedef struct le_setting {
  const char *name;
  le_setting_kind kind;
  double fallback;    /* NaN: the engine chooses */
  double least, most; /* both included */
  const char *words;  /* LE_WORD: separated by spaces, the first is the default */
} le_setting;

/* A table ends with {0}. */
#define LE_FLAG_SETTING(name, fallback) {name, LE_FLAG, fallback, 0, 1, 0}
#define LE_COUNT_SETTING(name, fallback, least) {name, LE_COUNT, fallback, least, 9e15, 0}
#define LE_REAL_SETTING(name, fallback, least, most) {name, LE_REAL, fallback, least, most, 0}
#define LE_WORD_SETTING(name, words) {name, LE_WORD, 0, 0, 0, words}
#define LE_NUMBERS_SETTING(name) {name, LE_NUMBERS, 0, -HUGE_VAL, HUGE_VAL, 0}

/* What an engine or a kernel knows.  NULL ends the list of tables.  Settings of a stage have its
 * number before their name: "1.particles". */
enum { LE_TABLES_MOST = 4, LE_STAGES_MOST = 3 };
typedef struct le_knows {
  const le_setting *table[LE_TABLES_MOST];
  const le_setting *stage; /* NULL: there are no stages */
} le_knows;

/* Which of the words between spaces it is; -1 for none of them. */
int le_word_place(const char *words, const char *word);

/* `owner`: for the sentence. */
le_status le_settings_check(const le_args *args, const le_knows *knows, const char *owner,
                            le_error *error);

/* The value, or the table's fallback.  The name must be in the table. */
double le_setting_number(const le_args *args, const le_setting *table, const char *name);
size_t le_setting_count(const le_args *args, const le_setting *table, const char *name);
int le_setting_flag(const le_args *args, const le_setting *table, const char *name);
/* Which of the words it is, counted from 0. */
int le_setting_word(const le_args *args, const le_setting *table, const char *name);
/* The same of a stage, counted from 0. */
double le_stage_number(const le_args *args, const le_setting *table, size_t stage,
                       const char *name);
int le_stage_word(const le_args *args, const le_setting *table, size_t stage, const char *name);
/* NULL when nothing is given. */
const le_arg *le_stage_numbers(const le_args *args, size_t stage, const char *name);

#endif
