/* Checks settings against the tables of engines and kernels, and looks them up. */
#include "core/settings.h"

#include <stdio.h>
#include <string.h>

/* The name without the prefix of its stage; `staged` is whether it has one. */
static const char *bare(const char *name, int *staged)
{
  *staged = name[0] >= '1' && name[0] < '1' + LE_STAGES_MOST && name[1] == '.';
  return *staged ? name + 2 : name;
}

static const le_setting *find(const le_setting *table, const char *name)
{
  for (const le_setting *s = table; s && s->name; s++)
    if (strcmp(s->name, name) == 0) return s;
  return NULL;
}

int le_word_place(const char *words, const char *word)
{
  const size_t length = strlen(word);
  int k = 0;
  for (const char *at = words; *at; k++) {
    const size_t n = strcspn(at, " ");
    if (n == length && strncmp(at, word, n) == 0) return k;
    at += n + (at[n] == ' ');
  }
  return -1;
}

static le_status check_number(const le_setting *s, const char *name, double value,
                              const char *owner, le_error *error)
{
  const int whole = s->kind == LE_COUNT || s->kind == LE_FLAG;
  if (value >= s->least && value <= s->most && (!whole || value == floor(value))) return LE_OK;
  return le_fail(error, LE_BAD_ARGUMENT, "Setting `%s` of %s must be %s from %g to %g, not %g.",
                 name, owner, whole ? "a whole number" : "a number", s->least, s->most, value);
}

static le_status check_one(const le_setting *s, const le_arg *arg, const char *owner,
                           le_error *error)
{
  if (s->kind == LE_WORD) {
    if (arg->word && le_word_place(s->words, arg->word) >= 0) return LE_OK;
    return le_fail(error, LE_BAD_ARGUMENT, "Setting `%s` of %s must be one of %s, not %s.",
                   arg->name, owner, s->words, arg->word ? arg->word : "a number");
  }
  if (!arg->values)
    return le_fail(error, LE_BAD_ARGUMENT, "Setting `%s` of %s must be a number, not \"%s\".",
                   arg->name, owner, arg->word ? arg->word : "");
  if (s->kind == LE_NUMBERS) return LE_OK;
  if (arg->n != 1)
    return le_fail(error, LE_BAD_ARGUMENT, "Setting `%s` of %s must be one number, not %zu.",
                   arg->name, owner, arg->n);
  return check_number(s, arg->name, arg->values[0], owner, error);
}

le_status le_settings_check(const le_args *args, const le_knows *knows, const char *owner,
                            le_error *error)
{
  for (size_t i = 0; i < args->n; i++) {
    int staged;
    const char *name = bare(args->arg[i].name, &staged);
    const le_setting *s = staged ? find(knows->stage, name) : NULL;
    for (size_t t = 0; !s && !staged && t < LE_TABLES_MOST; t++) s = find(knows->table[t], name);
    if (!s)
      return le_fail(error, LE_BAD_ARGUMENT, "There is no setting `%s` of %s.", args->arg[i].name,
                     owner);
    LE_TRY(check_one(s, &args->arg[i], owner, error));
  }
  return LE_OK;
}

/* The row of the table, also for a name with the prefix of a stage. */
static const le_setting *row_of(const le_setting *table, const char *name)
{
  int staged;
  return find(table, bare(name, &staged));
}

double le_setting_number(const le_args *args, const le_setting *table, const char *name)
{
  const le_setting *s = row_of(table, name);
  return le_args_number(args, name, s ? s->fallback : NAN);
}

size_t le_setting_count(const le_args *args, const le_setting *table, const char *name)
{
  const double value = le_setting_number(args, table, name);
  return value > 0 ? (size_t)value : 0;
}

int le_setting_flag(const le_args *args, const le_setting *table, const char *name)
{
  return le_setting_number(args, table, name) != 0;
}

int le_setting_word(const le_args *args, const le_setting *table, const char *name)
{
  const le_setting *s = row_of(table, name);
  const char *word = le_args_word(args, name, NULL);
  return s && word ? le_word_place(s->words, word) : 0;
}

/* A name with the prefix of its stage; needed only during one look-up. */
typedef struct full_name {
  char text[40];
} full_name;

static full_name staged_name(size_t stage, const char *name)
{
  full_name full;
  snprintf(full.text, sizeof full.text, "%d.%s", (int)stage + 1, name);
  return full;
}

double le_stage_number(const le_args *args, const le_setting *table, size_t stage, const char *name)
{
  return le_setting_number(args, table, staged_name(stage, name).text);
}

int le_stage_word(const le_args *args, const le_setting *table, size_t stage, const char *name)
{
  return le_setting_word(args, table, staged_name(stage, name).text);
}

const le_arg *le_stage_numbers(const le_args *args, size_t stage, const char *name)
{
  return le_args_find(args, staged_name(stage, name).text);
}

/* `name` has the prefix of the stage, if there is one. */
static void read_one(const le_args *args, const le_setting *s, const char *name, void *self)
{
  void *at = (char *)self + s->place - 1;
  if (!s->place) return;
  if (s->kind == LE_REAL) *(double *)at = le_setting_number(args, s, name);
  else if (s->kind == LE_COUNT) *(size_t *)at = le_setting_count(args, s, name);
  else if (s->kind == LE_WORD) *(int *)at = le_setting_word(args, s, name);
  else *(int *)at = le_setting_flag(args, s, name);
}

void le_settings_read(const le_args *args, const le_setting *table, void *self)
{
  for (const le_setting *s = table; s->name; s++) read_one(args, s, s->name, self);
}

void le_stage_read(const le_args *args, const le_setting *table, size_t stage, void *self)
{
  for (const le_setting *s = table; s->name; s++)
    read_one(args, s, staged_name(stage, s->name).text, self);
}
