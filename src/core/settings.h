/* Named settings. Each engine and kernel exports a table of name, kind, range and default of its
 * settings. An unknown name, a value of another kind, or a value out of range is an error. R reads
 * the same tables (bridge/tables.c). */
#pragma once

#include "base/status.h"

#include <math.h>
#include <stddef.h>

typedef enum le_setting_kind {
  LE_REAL,
  LE_COUNT,  /* a whole number */
  LE_FLAG,   /* 0 or 1 */
  LE_WORD,   /* one of `words` */
  LE_NUMBERS /* any number of numbers */
} le_setting_kind;

typedef struct le_setting {
  const char *name;
  le_setting_kind kind;
  double fallback;    /* the default; NaN: the engine chooses */
  double least, most; /* range, both ends included */
  const char *words;  /* for LE_WORD: the words separated by spaces; the first is the default */
  size_t place;       /* of the member that it is read into; 0 if it is not read as it is */
} le_setting;

/* A table ends with {0}. */
#define LE_FLAG_SETTING(name, fallback) {name, LE_FLAG, fallback, 0, 1, 0, 0}
#define LE_COUNT_SETTING(name, fallback, least) {name, LE_COUNT, fallback, least, 9e15, 0, 0}
#define LE_REAL_SETTING(name, fallback, least, most) {name, LE_REAL, fallback, least, most, 0, 0}
#define LE_WORD_SETTING(name, words) {name, LE_WORD, 0, 0, 0, words, 0}
#define LE_NUMBERS_SETTING(name) {name, LE_NUMBERS, 0, -HUGE_VAL, HUGE_VAL, 0, 0}
/* Settings that le_settings_read() reads into a member: a flag into an int, a whole number into a
 * size_t, a number into a double, a word into an enumeration. */
#define LE_PLACE(type, member, kind)                                                               \
  _Generic(((type *)0)->member, kind: 1 + offsetof(type, member))
#define LE_FLAG_INTO(type, member, name, fallback)                                                 \
  {name, LE_FLAG, fallback, 0, 1, 0, LE_PLACE(type, member, int)}
#define LE_COUNT_INTO(type, member, name, fallback, least)                                         \
  {name, LE_COUNT, fallback, least, 9e15, 0, LE_PLACE(type, member, size_t)}
#define LE_REAL_INTO(type, member, name, fallback, least, most)                                    \
  {name, LE_REAL, fallback, least, most, 0, LE_PLACE(type, member, double)}
#define LE_WORD_INTO(type, member, name, words)                                                    \
  {name, LE_WORD, 0, 0, 0, words, LE_PLACE(type, member, unsigned)}

/* The settings of an engine or a kernel. NULL ends the list of tables. Settings of a stage have its
 * number before their name: "1.particles". */
enum { LE_TABLES_MOST = 4, LE_STAGES_MOST = 3 };
typedef struct le_knows {
  const le_setting *table[LE_TABLES_MOST];
  const le_setting *stage; /* NULL if there are no stages */
} le_knows;

/* Index of `word` among `words`, which are separated by spaces; -1 if it is not one of them. */
int le_word_place(const char *words, const char *word);

/* `owner` is named in the error sentence. */
le_status le_settings_check(const le_args *args, const le_knows *knows, const char *owner,
                            le_error *error);

/* Reads the settings with a place into the struct; if they are those of a stage, which are numbered
 * from 0: le_stage_read(). */
void le_settings_read(const le_args *args, const le_setting *table, void *self);
void le_stage_read(const le_args *args, const le_setting *table, size_t stage, void *self);

/* The value, or the default of the table. The name must be in the table. */
double le_setting_number(const le_args *args, const le_setting *table, const char *name);
size_t le_setting_count(const le_args *args, const le_setting *table, const char *name);
int le_setting_flag(const le_args *args, const le_setting *table, const char *name);
/* The index of the word, from 0. */
int le_setting_word(const le_args *args, const le_setting *table, const char *name);
/* The same for a stage; stages are numbered from 0. */
double le_stage_number(const le_args *args, const le_setting *table, size_t stage,
                       const char *name);
int le_stage_word(const le_args *args, const le_setting *table, size_t stage, const char *name);
/* NULL if nothing is given. */
const le_arg *le_stage_numbers(const le_args *args, size_t stage, const char *name);
