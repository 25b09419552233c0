/* Models of other libraries: a C function with the given name returns the table of the model.
 * Tables made with an earlier header may be shorter; the missing members are treated as absent. */
#include "bridge/bridge.h"
#include "core/target.h"

/* The address of the function now; NULL if it does not exist, which is an error if `must`. */
static DL_FUNC find(SEXP args, int must)
{
  SEXP symbol = list_element(args, ".symbol"), library = list_element(args, ".library");
  SEXP required = PROTECT(Rf_ScalarLogical(must));
  SEXP address = call_package(Rf_lang4(Rf_install("find_symbol"), symbol, library, required));
  UNPROTECT(1);
  return TYPEOF(address) == EXTPTRSXP ? R_ExternalPtrAddrFn(address) : NULL;
}

int compiled_model_lives(const model_handle *handle, SEXP args)
{
  return find(args, 0) == handle->table;
}

#define MEMBER(name) {offsetof(le_model_ops, name), #name}
static const struct {
  size_t offset;
  const char *name;
} required[] = {MEMBER(create),    MEMBER(destroy),    MEMBER(dim),     MEMBER(width),
                MEMBER(log_prior), MEMBER(draw_prior), MEMBER(log_lik), MEMBER(log_lik_each)};

/* Whether the list of names that ends in NULL has this one, or is no list. */
static int is_listed(const char *const *names, const char *name)
{
  if (!names) return 1;
  for (; *names; names++)
    if (strcmp(*names, name) == 0) return 1;
  return 0;
}

/* The settings that the model reads, for a message. */
static void list_settings(const char *const *names, char *text, size_t room)
{
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; names[i] && used < room; i++)
    used += (size_t)snprintf(text + used, room - used, "%s`%s`", i ? ", " : "", names[i]);
}

/* Settings whose names begin with a dot are those of this package. */
static void check_setting_names(const model_handle *handle, SEXP args)
{
  SEXP names = Rf_getAttrib(args, R_NamesSymbol);
  const char *const *known = handle->own.settings;
  for (R_xlen_t i = 0; i < XLENGTH(names); i++) {
    const char *name = CHAR(STRING_ELT(names, i));
    if (name[0] == '.' || is_listed(known, name)) continue;
    char text[LE_MESSAGE_SIZE / 2];
    le_error error = {""};
    list_settings(known, text, sizeof text);
    if (text[0])
      snprintf(error.message, sizeof error.message,
               "The model in C has no setting `%.60s`: its settings are %s.", name, text);
    else
      snprintf(error.message, sizeof error.message,
               "The model in C has no settings, and so not `%.60s`.", name);
    raise_status(LE_BAD_ARGUMENT, &error);
  }
}

void compiled_model_find(model_handle *handle, SEXP args)
{
  handle->table = find(args, 1);
  const le_model_ops *(*table)(void) = (const le_model_ops *(*)(void))handle->table;
  const le_model_ops *ops = table();
  le_error error = {""};
  const size_t least = offsetof(le_model_ops, simulate);
  if (!ops || ops->version != LE_CONTRACT_VERSION || ops->size < least || ops->size > sizeof *ops)
    snprintf(error.message, sizeof error.message,
             "The model in C was made with another version of logevidence.h: compile it again.");
  else
    memcpy(&handle->own, ops, ops->size);
  handle->own.name = "compiled_model";
  handle->own.traits |= LE_MODEL_CHECKED;
  for (size_t i = 0; !error.message[0] && i < sizeof required / sizeof *required; i++)
    if (!has_member(&handle->own, required[i].offset))
      snprintf(error.message, sizeof error.message, "The model in C must have `%s`.",
               required[i].name);
  if (error.message[0]) raise_status(LE_BAD_ARGUMENT, &error);
  check_setting_names(handle, args);
  handle->ops = &handle->own;
}

/* Checks the values that a new instance returns. */
void compiled_model_check(model_handle *handle)
{
  if (handle->ops->dim(handle->self) == 0) {
    const le_error error = {"The model in C must have at least one parameter, not 0."};
    raise_status(LE_BAD_ARGUMENT, &error);
  }
  if (handle->ops->width(handle->self) == 0) {
    handle->own.width = one_wide;
    handle->own.traits |= LE_MODEL_NO_DATA;
  }
}
