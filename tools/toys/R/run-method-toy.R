# Likelihood weighting, by an engine of its own.

#' A toy method
#' @noRd
toy_method <- function(draws = 1000) {
  new_method("toy", match.call(), estimator = "toy", draws = check_count(draws, "draws", 2, 1e6))
}
