# The data of a fit, which does not keep them: found again by the call of the fit, and checked.

#' The data of a fit as the user gave them, but for rows that were left out
#'
#' @param data Data, or NULL for those in the call of the fit.
#' @param envir Where this call is evaluated.
#' @param argument Name of the data in error messages.
#' @noRd
given_data <- function(fit, data, envir, argument = "data") {
  if (is.null(data)) {
    data <- found_data(fit, envir)
    if (is_source(data))
      fail("`", argument, "` must be given: the rows of a source are not kept by the fit.")
    if (is.null(data))
      fail("`", argument, "` must be given: the data in the call of the fit were not found.")
  }
  if (is.null(fit$na.action)) data else without_incomplete(fit$model, data)
}

# Where the method was called, or else where the formula was written; a function is data() of R.
found_data <- function(fit, envir) {
  for (place in c(envir, environment(fit$model$formula))) {
    found <- or_null(eval(fit$call$data, place))
    if (!is.null(found) && !is.function(found)) return(found)
  }
}

#' The data of a fit, encoded again
#'
#' With latent variables a fit keeps its rows, because predictions need them.
#' @noRd
own_data <- function(fit, data, envir, argument = "data") {
  if (is.null(data) && is_latent(fit$model)) return(list(rows = fit$design$rows, n = fit$n))
  found <- given_data(fit, data, envir, argument)
  if (!is.null(data)) return(encoded_own(fit, found, argument))
  tryCatch(encoded_own(fit, found, argument),
           logevidence_error = function(e)
             refuse_other_data(fit, argument, or_null(rows_of(found))))
}

encoded_own <- function(fit, data, argument = "data") {
  encoded <- encode(at_units_of(fit), data)
  other <- !identical(data_id(encoded), fit$data_id) ||
    !is.null(fit$pairing) &&
      !is.null(pairings_differ(list(fit, list(pairing = encoded$pairing, n = encoded$n))))
  if (other) refuse_other_data(fit, argument, encoded$n)
  # columns that depend on the data, as those of scale(), are those of the fit's first rows
  design <- at_start(fit$design)
  if (!is.null(design$terms) || !is.null(design$scaling) || length(design$predictors)) {
    again <- encode_new(fit$model, design, data, argument = argument)
    if (is.null(again$each)) encoded[c("rows", "offset")] <- again[c("rows", "offset")]
    else encoded$each <- again$each
  }
  encoded
}

#' Rows of which each is an observation, if those for C are groups of them
#' @noRd
by_observation <- function(encoded) {
  if (!is.null(encoded$each)) encoded$rows <- encoded$each
  encoded
}

# Densities of new rows are refused with group-level terms, because only whole groups have one.
refuse_new_groups <- function(fit, newdata) {
  if (!is.null(newdata) && needs_all(fit$model))
    fail("`newdata` must be NULL: with group-level terms densities are those of all rows of a ",
         "group, and are known for the data of the fit.")
}

# The design for rows that begin a series: without the last rows of the fit as lags.
at_start <- function(design) {
  design["carry"] <- list(NULL)
  design
}

# `n`: the number of observations found, if it is known.
refuse_other_data <- function(fit, argument, n) {
  fewer <- isTRUE(n > 0 && n < fit$n)
  if (argument == "data")
    fail("`data` must be those of the fit", if (fewer) paste0(
      ", all ", fit$n, " rows with those that update() has added and not ", n),
      "; for others use predict().")
  fail("`", argument, "` must be given: ", if (fewer) paste0(
    "the data in the call of the fit have ", n, " of its ", fit$n, " rows; update() has added the ",
    "others, or the data have changed since.")
    else "the data in the call of the fit have changed since.")
}

#' The rows to predict: those of `newdata`, or of the fit if it is NULL
#' @noRd
rows_to_predict <- function(fit, newdata, envir, response) {
  if (is.null(newdata)) return(own_data(fit, NULL, envir, "newdata"))
  encode_new(fit$model, fit$design, newdata, response = response)
}

# Call a function of a fit whose data are looked for where the user calls.
in_frame <- function(f, arguments, envir) do.call(f, arguments, quote = TRUE, envir = envir)
