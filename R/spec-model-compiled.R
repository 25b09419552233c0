# A model of the user's own C functions, found by a symbol in a library that R has loaded.

#' A model of your own, in C
#'
#' A likelihood and a prior as compiled code: as fast as the models of the package, with the same
#' methods. For R functions see [custom_model()].
#'
#' @param symbol Name of a C function without arguments that returns a pointer to the model's table
#'   of functions (`const le_model_ops *`), see Details.
#' @param parameters Names of the parameters, on the scale of the draws that users see.
#' @param ... Named settings for the model's `create` function: numeric vectors, or one string each.
#'   If its table has a list of the names of its `settings`, others are refused.
#' @param PACKAGE Name of the library that has the symbol, as in [dyn.load()] (the file name without
#'   its extension).
#'
#' @details
#' The functions are declared in a header of this package, `logevidence.h`, in the folder
#' `system.file("include", package = "logevidence")`; a package of your own lists logevidence under
#' `LinkingTo`. The header needs the headers of GSL and documents every function. Required are
#' `create`, `destroy`, `dim`, `width`, `log_prior`, `draw_prior`, `log_lik` and `log_lik_each`;
#' each further function makes more methods available, gradients above all. Without gradients the
#' default method is [smc()], and [smc()], [ais()] and [bridge()] move their particles by [slice()]
#' or [rwm()] unless you name a kernel. The functions must not call R, because several threads may
#' call them.
#'
#' Parameters with few values (`discrete` in the table) are drawn by Gibbs steps, as those of
#' [custom_model()] with `gibbs`.
#'
#' Data are a numeric matrix, data frame or vector of as many columns as the model's `width`. A
#' model of width zero is an integral without data: leave `data` out of [evidence()]. Likelihoods in
#' which a row depends on earlier rows are found before the run as those of [custom_model()], and
#' then get all rows at once.
#'
#' Fits store the names of the symbol and of its library. Load the library before you use a saved
#' fit.
#'
#' @return An object of class `"evidence_model"`.
#'
#' @examples
#' \donttest{
#' # a normal mean, compiled here: the file is part of the package
#' folder <- setwd(tempdir())
#' file.copy(system.file("examples", "normal_mean.c", package = "logevidence"), ".")
#' writeLines(readLines("normal_mean.c")[1:8])
#' flags <- paste0("PKG_CPPFLAGS=-I", system.file("include", package = "logevidence"))
#' if (tools::Rcmd("SHLIB normal_mean.c", stdout = FALSE, env = flags) == 0) {
#'   dyn.load(paste0("normal_mean", .Platform$dynlib.ext))
#'   model <- compiled_model("normal_mean_table", "mean", sigma = 2, PACKAGE = "normal_mean")
#'   print(evidence(model, c(1.2, 0.4, 2.1), seed = 1))
#' }
#' setwd(folder)
#' }
#'
#' @family models
#' @export
compiled_model <- function(symbol, parameters, ..., PACKAGE = "") {
  symbol <- check_word(symbol, "symbol", "the name of a C function")
  package <- if (identical(PACKAGE, "")) ""
  else check_word(PACKAGE, "PACKAGE", "the name of a loaded library")
  check_parameter_names(parameters)
  settings <- list(...)
  if (length(settings) &&
      (is.null(names(settings)) || !all(nzchar(names(settings))) || anyDuplicated(names(settings))))
    fail("Settings of a compiled model must have names, each its own.")
  for (name in names(settings)) {
    value <- settings[[name]]
    if (!is_plain_numeric(value) && !is_one_string(value))
      refuse(value, name, "numeric or one string")
    if (is_plain_numeric(value)) settings[[name]] <- as.double(value)
  }
  model <- new_model("compiled_model", NULL, list(
    parameters = parameters, args = c(list(.symbol = symbol, .library = package), settings),
    modes = "one"
  ), encode_compiled, encode_new_compiled, describe_compiled, decode = decode_compiled,
  template = template_compiled,
  modes = function(model) model$modes, no_data = NOTHING,
  derivatives = function(model) 1, starts = 0,
  simulates = function(model) if (!"simulate" %in% compiled_says(model)$offered)
    paste0("and `", model$args$.symbol, "` has no `simulate`"),
  prior_moments = prior_moments_compiled)
  says <- compiled_says(model)
  if (says$user_dim != length(parameters))
    fail("`parameters` must name the ", says$user_dim, " parameters of `", symbol, "`, not ",
         length(parameters), ".")
  model$modes <- if ("multimodal" %in% says$traits) "several" else "one"
  few <- lengths(says$discrete) > 0
  if (any(few))
    model$contract$discrete <- stats::setNames(says$discrete[few], compiled_names(model, says)[few])
  model
}

#' What C says of a compiled model
#' @noRd
compiled_says <- function(model) model_facts(model, model$args)

#' The address of a C function, for C; NULL if it does not exist and is not required
#' @noRd
find_symbol <- function(symbol, library, must = TRUE) {
  found <- tryCatch(getNativeSymbolInfo(symbol, library), error = function(e) NULL)
  if (is.null(found) && must)
    fail("There is no C function `", symbol, "`",
         if (nzchar(library)) paste0(" in the library `", library, "`"),
         " in the libraries that R has loaded: use dyn.load() first.")
  found$address
}

describe_compiled <- function(model) {
  settings <- model$args[-(1:2)]
  list(
    paste0("Compiled model of ", count_of(length(model$parameters), "parameter")),
    symbol = paste0(model$args$.symbol,
                    if (nzchar(model$args$.library)) paste0(" in ", model$args$.library)),
    parameters = shorten(paste(model$parameters, collapse = ", "), 60),
    settings = if (length(settings))
      shorten(paste0(names(settings), " = ", vapply(settings, show_setting, ""), collapse = ", "),
              60) else "none"
  )
}

# Names of the points in C.
compiled_names <- function(model, says) {
  if (says$dim == length(model$parameters)) model$parameters
  else paste0("theta", seq_len(says$dim))
}

encode_compiled <- function(model, data, binding = AS_GIVEN) {
  says <- compiled_says(model)
  rows <- compiled_rows(model, data, "data")
  list(
    rows = rows, n = ncol(rows), without_rows = is.null(data), args = model$args,
    theta_names = compiled_names(model, says),
    user_names = model$parameters, offset = NULL, design = list()
  )
}

encode_new_compiled <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  rows <- compiled_rows(model, newdata, argument)
  list(rows = rows, n = ncol(rows), offset = NULL)
}

compiled_rows <- function(model, data, argument) {
  says <- compiled_says(model)
  width <- says$width
  if ("no_data" %in% says$traits) {
    if (!is.null(data))
      fail("`", argument, "` must be left out: `", model$args$.symbol, "` is a model without data.")
    return(matrix(0, 1, 1))
  }
  if (is.null(data))
    fail("`", argument, "` must be given: `", model$args$.symbol, "` reads ",
         count_of(width, "column"), ".")
  if (!is_plain_numeric(data) && !is.data.frame(data))
    refuse(data, argument, "a numeric matrix, data frame or vector")
  if (is.data.frame(data)) {
    numeric <- vapply(data, is_plain_numeric, TRUE)
    if (!all(numeric))
      fail("`", argument, "` must have numeric columns only, not `", names(data)[!numeric][1], "`.")
    data <- as.matrix(data)
  }
  x <- as_numeric_matrix(data, argument)
  if (ncol(x) != width)
    fail("`", argument, "` must have ", count_of(width, "column"), ", not ", ncol(x), ".")
  t(x)
}

decode_compiled <- function(model, encoded, rows, data) {
  if (is.null(dim(data))) return(drop(rows))
  data[] <- t(rows)
  data
}

template_compiled <- function(model, data, n) {
  if (is.null(data)) data <- matrix(0, n, compiled_says(model)$width)
  list(data = data, encoded = encode(model, data))
}
