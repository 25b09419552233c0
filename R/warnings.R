# The warnings of a fit, as one R condition, raised when the fit is made.

#' Raise the warnings of a fit as one condition of class `logevidence_warning`
#'
#' Notes on a method, which do not depend on the data, are not raised; print() shows them.
#'
#' @param known Sentences that were raised before, for example by the fit that this one continues.
#' @return The fit.
#' @noRd
raise_warnings <- function(fit, known = NULL) {
  without_numbers <- function(sentences) gsub("[0-9]", "", sentences)
  sentences <- fit_warnings(fit)
  sentences <- sentences[!without_numbers(sentences) %in% without_numbers(known)]
  if (length(sentences)) warning(new_warning(sentences))
  fit
}

new_warning <- function(sentences) {
  structure(class = c("logevidence_warning", "warning", "condition"),
            list(message = paste(sentences, collapse = "\n"), call = NULL, sentences = sentences))
}

#' The sentences of a fit that depend on the data
#' @noRd
fit_warnings <- function(fit) fit$warnings[!fit$warnings %in% fit$method$note]

#' A fit with further sentences
#' @noRd
with_doubts <- function(fit, sentences) {
  fit$warnings <- distinct(c(fit$warnings, sentences))
  fit$failed <- distinct(c(fit$failed, at_level(sentences, "failed")))
  fit
}

#' Evaluate code without raising the warnings of fits
#' @noRd
muffled <- function(code) {
  withCallingHandlers(code, logevidence_warning = function(w) invokeRestart("muffleWarning"))
}
