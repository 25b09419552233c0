# The warnings of a fit, as one R condition, raised when the fit is made.

#' @param of The model that the sentences are about, if they do not say it.
#' @noRd
new_warning <- function(sentences, of = NULL) {
  structure(class = c("logevidence_warning", "warning", "condition"),
            list(message = paste(c(of, sentences), collapse = "\n"), call = NULL,
                 sentences = sentences))
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

passed_checks <- function(fit) length(fit$failed) == 0 && is.finite(fit$log_evidence)

#' Whether a fit has failed or has warnings, in a word or two for a table
#' @noRd
doubt_about <- function(fit) {
  doubted <- setdiff(fit_warnings(fit), fit$prior_conflict)
  if (length(fit$failed) || !is.finite(fit$log_evidence)) "failed"
  else if (length(doubted)) "warns"
  else if (length(fit$prior_conflict)) "prior conflict"
  else ""
}
