# The data of a fit, which does not keep them: found again by the call of the fit, and checked.

#' The data of a fit as the user gave them
#'
#' @param data Data, or NULL for those in the call of the fit.
#' @param envir Where this call is evaluated.
#' @param argument Name of the data in error messages.
#' @noRd
find_data <- function(fit, data, envir, argument = "data") {
  if (!is.null(data)) return(data)
  data <- or_null(eval(fit$call$data, envir))
  if (is_source(data))
    fail("`", argument, "` must be given: the rows of a source are not kept by the fit.")
  # a name that is not found there may be that of a function, as data()
  if (is.null(data) || is.function(data))
    fail("`", argument, "` must be given: the data in the call of the fit were not found.")
  data
}

#' The data of a fit, encoded again
#'
#' With latent variables a fit keeps its rows, because predictions need them.
#' @noRd
own_data <- function(fit, data, envir, argument = "data") {
  if (is.null(data) && is_latent(fit$model)) return(list(rows = fit$design$rows, n = fit$n))
  found <- find_data(fit, data, envir, argument)
  encoded <- if (!is.null(data)) encode(fit$model, found)
  else tryCatch(encode(fit$model, found),
                logevidence_error = function(e) refuse_other_data(argument))
  other <- !identical(data_id(encoded), fit$data_id) ||
    !is.null(fit$pairing) &&
      !is.null(pairings_differ(list(fit, list(pairing = encoded$pairing, n = encoded$n))))
  if (other) refuse_other_data(argument)
  # columns that depend on the data, as those of scale(), are those of the fit's first rows
  if (!is.null(fit$design$terms) || !is.null(fit$design$scaling)) {
    design <- fit$design
    design$carry <- NULL # rows for lags of later data
    encoded[c("rows", "offset")] <-
      encode_new(fit$model, design, found, argument = argument)[c("rows", "offset")]
  }
  encoded
}

refuse_other_data <- function(argument) {
  if (argument == "data") fail("`data` must be those of the fit; for others use predict().")
  fail("`", argument, "` must be given: the data in the call of the fit have changed since.")
}

#' The rows to predict: those of `newdata`, or of the fit if it is NULL
#' @noRd
rows_to_predict <- function(fit, newdata, envir, response) {
  if (is.null(newdata)) return(own_data(fit, NULL, envir, "newdata"))
  encode_new(fit$model, fit$design, newdata, response = response)
}
