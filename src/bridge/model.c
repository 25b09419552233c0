/* Creates instances of models: of the package, of R functions, or of another library. */
#include "bridge/bridge.h"

static void model_finalize(SEXP pointer)
{
  model_handle *handle = R_ExternalPtrAddr(pointer);
  if (!handle) return;
  if (handle->self &&
      (!handle->table || compiled_model_lives(handle, CAR(R_ExternalPtrProtected(pointer)))))
    handle->ops->destroy(handle->self);
  le_arena_free(&handle->arena);
  le_release(handle);
  R_ClearExternalPtr(pointer);
}

model_handle *model_get(SEXP pointer)
{
  return R_ExternalPtrAddr(pointer);
}

SEXP model_new(SEXP type, SEXP args)
{
  const char *name = one_string(type, "type");
  /* R functions, or the symbol of another library's table */
  const int users = !Rf_isNull(maybe_element(args, "answer")),
            compiled = !Rf_isNull(maybe_element(args, ".symbol"));
  const le_model_ops *ops = users || compiled ? NULL : le_find_model(name);
  if (!ops && !users && !compiled) Rf_error("There is no model called \"%s\".", name);
  SEXP kept = PROTECT(Rf_allocVector(VECSXP, 1)), alive = PROTECT(Rf_list2(args, kept));
  SEXP pointer = PROTECT(new_object(sizeof(model_handle), model_finalize, alive));
  model_handle *handle = model_get(pointer);
  handle->ops = ops;
  if (users) {
    user_model_create(handle, args, kept);
    UNPROTECT(3);
    return pointer;
  }
  if (compiled) compiled_model_find(handle, args);
  const le_args settings = args_from_list(args, &handle->arena);
  le_error error = {""};
  const le_status status = handle->ops->create(&settings, &handle->self, error.message);
  if (status != LE_OK) raise_status(status, &error);
  if (compiled) {
    compiled_model_check(handle);
    join_rows(handle, args);
  }
  UNPROTECT(3);
  return pointer;
}
