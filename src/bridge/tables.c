/* The tables of engines, kernels and models for R: settings with kinds, defaults and ranges,
 * phases, needs of kernels, traits; and the limits of weights. */
#include "bridge/bridge.h"
#include "core/audit.h"

/* The names of the flags that are set, from the lowest bit on. */
static SEXP names_of_flags(unsigned flags, size_t n, const char *const *name)
{
  const char *set[8];
  size_t count = 0;
  for (size_t i = 0; i < n; i++)
    if (flags >> i & 1) set[count++] = name[i];
  return string_vector(count, set);
}

SEXP traits_of(const le_model_ops *ops)
{
  static const char *const name[] = {"multimodal", "quadratic", "one_thread", "no_data", "checked",
                                     "differences"};
  return names_of_flags(ops->traits, sizeof name / sizeof *name, name);
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

static SEXP estimator_table(const le_estimator_ops *ops)
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
  static const char *const name[] = {"gradient", "density", "floor", "keeps_floor"};
  static const char *const names[] = {"settings", "needs", "fixes", "steps_most"};
  SEXP values[4] = {PROTECT(settings_of(&ops->settings, 1)),
                    PROTECT(names_of_flags(ops->needs, 4, name)),
                    PROTECT(Rf_ScalarLogical((ops->needs & LE_ANY_STEP) != 0)),
                    PROTECT(Rf_ScalarReal((double)ops->steps_most))};
  SEXP list = named_list(4, names, values);
  UNPROTECT(4);
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

/* Adds a list of the tables of one kind, with their names, to the parts of the answer. */
#define ADD_TABLES(kind, part)                                                                     \
  do {                                                                                             \
    size_t n = 0;                                                                                  \
    for (; n < 64 && le_##kind##_at(n); n++) {                                                     \
      name[n] = le_##kind##_at(n)->name;                                                           \
      values[n] = PROTECT(kind##_table(le_##kind##_at(n)));                                        \
    }                                                                                              \
    SET_VECTOR_ELT(list, part, named_list(n, name, values));                                       \
    UNPROTECT((int)n);                                                                             \
  } while (0)

static SEXP limits_table(void)
{
  const le_audit_limits l = LE_AUDIT_LIMITS;
  static const char *const names[] = {"known_ess", "uneven_ess", "one_ess", "several_ess",
                                      "most_k", "doubted", "thin_ess"};
  const double values[] = {l.known_ess, l.uneven_ess, l.one_ess, l.several_ess,
                           l.most_k, l.doubted, l.thin_ess};
  enum { LIMITS = sizeof values / sizeof *values };
  SEXP list[LIMITS];
  for (size_t i = 0; i < LIMITS; i++) list[i] = PROTECT(Rf_ScalarReal(values[i]));
  SEXP answer = named_list(LIMITS, names, list);
  UNPROTECT(LIMITS);
  return answer;
}

/* A list of lists, with their names: engines, kernels, models, and the limits of weights. */
SEXP ffi_tables(void)
{
  static const char *const names[] = {"engines", "kernels", "models", "limits"};
  const char *name[64];
  SEXP values[64], list = PROTECT(named_list(4, names, NULL));
  ADD_TABLES(estimator, 0);
  ADD_TABLES(kernel, 1);
  ADD_TABLES(model, 2);
  SET_VECTOR_ELT(list, 3, limits_table());
  UNPROTECT(1);
  return list;
}
