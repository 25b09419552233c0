#' logevidence: Bayesian evidence for data of any size
#'
#' Estimates the evidence (marginal likelihood) of Bayesian models, on data that fit in memory or
#' arrive as a stream, and says how far the number can be trusted. Start with [evidence()].
#'
#' @keywords internal
#' @useDynLib logevidence, .registration = TRUE
#' @importFrom stats predict
"_PACKAGE"
