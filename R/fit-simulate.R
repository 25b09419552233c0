# simulate() of fits: replicated responses from the posterior predictive distribution.

#' Replicated data from a fit
#'
#' Simulates responses for the rows of a fit, or for other rows, each set of responses with
#' parameters drawn from the posterior: for posterior predictive checks.
#'
#' @param object A fit from [evidence()], or a comparison from [compare_models()].
#' @param nsim Number of replicated data sets, a whole number of at least 1.
#' @param seed A whole number from 0 to 2^53 that makes the result reproducible without using R's
#'   generator; `NULL`, the default, takes the seed from R's generator, so that [set.seed()] works.
#' @param newdata As for [predict()][predict.evidence].
#' @param ... Must be empty.
#'
#' @details
#' Parameters are drawn from the fit's draws in proportion to their weights, by systematic
#' resampling. If a formula transforms the response, as in `log(y) ~ x`, the transformed response is
#' simulated, as [simulate()][stats::simulate] of [lm()] does. Censored times are simulated as times
#' of events.
#'
#' With [lags()] of the response each replicate is a new series: its first rows, as many as the
#' longest lag, are those of the data and are left out, and each later row follows from the
#' simulated rows before it.
#'
#' Replicates of a comparison are from each model as often as its posterior probability says, in
#' random order.
#'
#' Models with latent variables and [custom_model()] cannot; [density()] can if it has `simulate`.
#' For data of a model without a fit see [simulate.evidence_model()].
#'
#' @return As the generic [simulate()][stats::simulate] prescribes, a data frame with a row for each
#'   row of the data and a column for each replicate, `sim_1`, `sim_2` and so on; classes are
#'   factors. If a row has several numbers, as with `cbind(successes, failures)` or in a mixture of
#'   several columns, a list of matrices of these names. The attribute `"seed"` is the seed, with
#'   which the same call gives the same result.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, prior_sd = 10), cars, seed = 1)
#' replicated <- simulate(fit, nsim = 100, seed = 1)
#' # is the largest distance as the model says?
#' mean(sapply(replicated, max) >= max(cars$dist))
#'
#' @seealso [predict.evidence()] for draws of single rows, [simulate.evidence_model()]
#' @export
simulate.evidence <- function(object, nsim = 1, seed = NULL, newdata = NULL, ...) {
  check_no_dots(...)
  nsim <- check_count(nsim, "nsim", max = 1e6)
  if (is.null(seed)) seed <- floor(stats::runif(1) * 2^31)
  as_simulated(simulate_fit(object, nsim, seed_words(seed), newdata, parent.frame()), seed)
}

simulate_fit <- function(object, nsim, words, newdata, envir) {
  require_simulation(object$model, "simulate()")
  series <- is_lagged(object$model) && is.finite(response_lag(object$model))
  replicate <- if (series) replicated_series else replicated_rows
  points <- equal_points(object, nsim, words)
  replicate(object, newdata, envir, points, words)
}

# Simulated responses in the form that simulate() prescribes.
as_simulated <- function(drawn, seed) {
  names(drawn) <- paste0("sim_", seq_along(drawn))
  if (!is.matrix(drawn[[1]]))
    drawn <- structure(drawn, class = "data.frame", row.names = seq_along(drawn[[1]]))
  structure(drawn, seed = seed)
}

replicated_rows <- function(fit, newdata, envir, points, words) {
  value <- part_of(fit$model, "replicated")
  if (is.null(value)) value <- part_of(fit$model, "responses")
  encoded <- by_observation(rows_to_predict(fit, newdata, envir, FALSE))
  simulated_responses(fit, encoded, points, words, value)
}

#' Series that follow from their first rows
#' @noRd
replicated_series <- function(fit, newdata, envir, points, words) {
  model <- fit$model
  if (is.null(newdata)) own_data(fit, NULL, envir, "newdata") # an error if they are others
  data <- as_frame(given_data(fit, newdata, envir, "newdata"), "newdata")
  data <- begun_series(model, data, "newdata")
  later <- -seq_len(fit$design$lag)
  blank <- list(data = data, encoded = list(design = fit$design, args = fit$args))
  lapply(seq_len(ncol(points)), function(s) {
    drawn <- simulated_forward(model, blank, points[, s], next_seed(words, s))
    eval(model$formula[[2]], drawn[later, , drop = FALSE], environment(model$formula))
  })
}
