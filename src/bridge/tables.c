/* The tables of engines, kernels and models for R: settings with kinds, defaults and ranges,
 * phases, needs of kernels, traits. */
#include "bridge/bridge.h"

static SEXP names_of_flags(unsigned flags, size_t n, const unsigned *flag, const char *const *name)
{
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += (flags & flag[i]) != 0;
  SEXP names = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)count));
  R_xlen_t k = 0;
  for (size_t i = 0; i < n; i++)
    if (flags & flag[i]) SET_STRING_ELT(names, k++, Rf_mkChar(name[i]));
  UNPROTECT(1);
  return names;
}

SEXP traits_of(const le_model_ops *ops)
{
  static const unsigned flag[] = {LE_MODEL_MULTIMODAL, LE_MODEL_QUADRATIC, LE_MODEL_ONE_THREAD,
                                  LE_MODEL_NO_DATA, LE_MODEL_CHECKED, LE_MODEL_DIFFERENCES};
  static const char *const name[] = {"multimodal", "quadratic", "one_thread", "no_data", "checked",
                                     "differences"};
  return names_of_flags(ops->traits, sizeof flag / sizeof *flag, flag, name);
}

static size_t length_of(const le_setting *table)
{
  size_t n = 0;
  while (table && table[n].name) n++;
  return n;
}

/* A list of columns: name, kind, default, least, most, words. */
static SEXP settings_of(const le_setting *const *tables, size_t count)
{
  static const char *const kinds[] = {"number", "count", "flag", "word", "numbers"};
  static const char *const names[] = {"name", "kind", "default", "least", "most", "words"};
  size_t n = 0;
  for (size_t t = 0; t < count; t++) n += length_of(tables[t]);
  SEXP column[6];
  for (int c = 0; c < 6; c++)
    column[c] = PROTECT(Rf_allocVector(c == 0 || c == 1 || c == 5 ? STRSXP : REALSXP, (R_xlen_t)n));
  R_xlen_t k = 0;
  for (size_t t = 0; t < count; t++) {
    for (size_t i = 0; i < length_of(tables[t]); i++, k++) {
      const le_setting *s = &tables[t][i];
      SET_STRING_ELT(column[0], k, Rf_mkChar(s->name));
      SET_STRING_ELT(column[1], k, Rf_mkChar(kinds[s->kind]));
      SET_STRING_ELT(column[5], k, s->words ? Rf_mkChar(s->words) : NA_STRING);
      const double numbers[] = {s->kind == LE_WORD || s->kind == LE_NUMBERS ? NA_REAL : s->fallback,
                                s->least, s->most};
      for (int c = 0; c < 3; c++) REAL(column[2 + c])[k] = numbers[c];
    }
  }
  SEXP list = named_list(6, names, column);
  UNPROTECT(6);
  return list;
}

static SEXP engine_table(const le_estimator_ops *ops)
{
  static const char *const names[] = {"settings", "stage", "latent"};
  SEXP values[3] = {PROTECT(settings_of(ops->knows.table, LE_TABLES_MOST)),
                    PROTECT(settings_of(&ops->knows.stage, 1)),
                    PROTECT(Rf_ScalarLogical(ops->latent))};
  SEXP list = named_list(3, names, values);
  UNPROTECT(3);
  return list;
}

static SEXP kernel_table(const le_kernel_ops *ops)
{
  static const unsigned flag[] = {LE_NEEDS_GRADIENT, LE_NEEDS_DENSITY, LE_NEEDS_FLOOR,
                                  LE_KEEPS_FLOOR};
  static const char *const name[] = {"gradient", "density", "floor", "keeps_floor"};
  static const char *const names[] = {"settings", "needs", "fixes"};
  SEXP values[3] = {PROTECT(settings_of(&ops->settings, 1)),
                    PROTECT(names_of_flags(ops->needs, 4, flag, name)),
                    PROTECT(Rf_ScalarLogical(ops->fix != NULL))};
  SEXP list = named_list(3, names, values);
  UNPROTECT(3);
  return list;
}

static SEXP model_table(const le_model_ops *ops)
{
  static const char *const names[] = {"traits"};
  SEXP values[1] = {PROTECT(traits_of(ops))};
  SEXP list = named_list(1, names, values);
  UNPROTECT(1);
  return list;
}

/* A list of three lists, engines, kernels and models, with their names. */
SEXP ffi_tables(void)
{
  static const char *const names[] = {"engines", "kernels", "models"};
  const char *name[64];
  SEXP values[64], parts[3];
  size_t n = 0, m = 0, k = 0;
  for (; n < 64 && le_estimator_at(n); n++) {
    name[n] = le_estimator_at(n)->name;
    values[n] = PROTECT(engine_table(le_estimator_at(n)));
  }
  parts[0] = PROTECT(named_list(n, name, values));
  for (; m < 64 && le_kernel_at(m); m++) {
    name[m] = le_kernel_at(m)->name;
    values[m] = PROTECT(kernel_table(le_kernel_at(m)));
  }
  parts[1] = PROTECT(named_list(m, name, values));
  for (; k < 64 && le_model_at(k); k++) {
    name[k] = le_model_at(k)->name;
    values[k] = PROTECT(model_table(le_model_at(k)));
  }
  parts[2] = PROTECT(named_list(k, name, values));
  SEXP list = named_list(3, names, parts);
  UNPROTECT((int)(n + m + k) + 3);
  return list;
}
