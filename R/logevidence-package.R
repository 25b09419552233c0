#' logevidence: Bayesian evidence for data of any size
#'
#' Estimates the evidence (marginal likelihood) of Bayesian models, on data in memory or from a
#' stream, and checks the accuracy of the estimate. Start with [evidence()].
#'
#' @keywords internal
#' @useDynLib logevidence, .registration = TRUE
#' @importFrom stats predict
"_PACKAGE"
