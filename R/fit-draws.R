# Weighted posterior draws: weighted, resampled to equal weights, summarised, and in the form of
# package posterior.

#' Posterior draws of a fit
#'
#' The posterior draws of a fit, weighted, or resampled to equal weights.
#'
#' @param fit A fit from [evidence()].
#' @param weighted `TRUE`, the default, for all draws with their log weights; `FALSE` for draws of
#'   equal weight, for software that does not use weights.
#' @param n Number of equally weighted draws; `NULL`, the default, for as many as the fit has. Only
#'   with `weighted = FALSE`. See Details.
#' @param ... Must be empty.
#'
#' @details
#' Resampling is systematic: a draw of weight \eqn{w} appears \eqn{nw} times, rounded up or down at
#' random by R's generator, so that [set.seed()] makes it reproducible. Draws of large weight are
#' repeated; [summary.evidence()] has the effective sample size of the weighted draws.
#'
#' `simulate(fit$model, parameters = )` takes such a matrix as it is, see
#' [simulate.evidence_model()].
#'
#' **More draws than the fit has.** A fit by [exact()] that keeps its rows (those with no more
#' numbers than its draws, and one replicate) makes `n` new draws. All other fits repeat
#' theirs, and a message says how many distinct draws there are.
#'
#' The numbering of a mixture's components is arbitrary. It is consistent among the draws of one
#' run, but not among those of several replicates.
#'
#' @return A matrix on the user's scale with a row for each draw and a named column for each
#'   parameter. With `weighted = TRUE` its attribute `"log_weights"` holds the log weights, whose
#'   exponentials sum to one.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' draws <- posterior_draws(fit)
#' colSums(exp(attr(draws, "log_weights")) * draws)
#' colMeans(posterior_draws(fit, weighted = FALSE, n = 200))
#'
#' @seealso [summary.evidence()], [predict.evidence()]; [logevidence_names] for
#'   `evidence_posterior_draws()`, the same function
#' @export
posterior_draws <- function(fit, weighted = TRUE, n = NULL, ...) {
  theirs <- masked_function("marginaleffects", "posterior_draws", fit)
  if (!is.null(theirs)) return(if (missing(weighted)) theirs(fit, ...) else theirs(fit, weighted))
  check_no_dots(...)
  check_is_fit(fit)
  if (is_one_number(weighted))
    fail("`weighted` must be TRUE or FALSE, not ", show_value(weighted), ": for a number of draws ",
         "of equal weight write `weighted = FALSE, n = ", show_value(weighted), "`.")
  weighted <- check_flag(weighted, "weighted")
  if (weighted) {
    if (!is.null(n))
      fail("`n` must be given only with `weighted = FALSE`: weighted draws are returned as they ",
           "are.")
    return(structure(fit$draws, log_weights = fit$log_weights))
  }
  if (!is.null(n)) n <- check_count(n, "n", 1, 1e8)
  parts <- with_draws(fit)
  have <- nrow(parts$draws)
  if (is.null(n)) n <- have
  if (n > have && !is.null(fit$redraw)) return(redrawn(fit, n)$draws)
  chosen <- resample(exp(parts$log_weights), n)
  if (n > have) {
    distinct <- nrow(unique(parts$draws[unique(chosen), , drop = FALSE]))
    message("The fit has fewer draws than `n` = ", count(n), ": the result repeats ",
            count_of(distinct, "distinct draw"), ". A fit with more `replicates` has more.")
  }
  parts$draws[chosen, , drop = FALSE]
}

#' @rdname posterior_draws
#' @usage NULL
#' @export
evidence_posterior_draws <- posterior_draws

#' Weighted quantiles
#'
#' Half of a draw's weight lies below it; between draws, linear. With equal weights these are the
#' quantiles of type 5.
#' @noRd
weighted_quantile <- function(x, weights, probabilities) {
  use <- weights > 0
  sorted <- order(x[use])
  x <- x[use][sorted]
  weights <- weights[use][sorted] / sum(weights)
  if (length(x) == 1) return(rep(x, length(probabilities)))
  stats::approx(cumsum(weights) - weights / 2, x, probabilities, rule = 2, ties = "ordered")$y
}

# With the correction of sd() for one degree of freedom, generalised to weights.
weighted_sd <- function(x, weights) {
  used <- x[weights > 0]
  if (length(used) > 1 && isTRUE(all(used == used[1]))) return(0)
  spare <- 1 - sum(weights^2)
  if (spare < 1e-12) return(NA_real_)
  sqrt(sum(weights * (x - sum(weights * x))^2) / spare)
}

# Methods for package posterior, registered when it is loaded.

#' Posterior draws for package posterior
#'
#' Methods for the generics of package \pkg{posterior}, and for `as.mcmc()` of package \pkg{coda}:
#' posterior draws of equal weight, so that summaries are those of the posterior. The package must
#' be loaded, but not attached.
#'
#' @param x A fit from [evidence()], or a comparison from [compare_models()], of which these are
#'   draws of the parameters that all models have, averaged over the models by their posterior
#'   probabilities.
#' @param weighted `TRUE` for all draws with their log weights in the variable `.log_weight`, which
#'   `posterior::resample_draws()` and `weights()` use, but summaries ignore.
#' @param ... Passed to the method for `as_draws_matrix()`.
#'
#' @details
#' Draws of unequal weight are resampled systematically to as many as are effective (the square of
#' the sum of the weights over the sum of their squares), in an order that looks random and is
#' always the same. So the result may have fewer rows than the fit has draws, and
#' `posterior::ess_bulk()` is about their number. No chain has made these draws: `rhat` is near one
#' and says nothing about a fit, whose checks are in its [print()] and [summary.evidence()].
#' [posterior_draws()] resamples to any number of draws.
#'
#' @return Draws of the class of the generic, `draws_matrix` for `as_draws()`, `mcmc` for
#'   `as.mcmc()`.
#'
#' @examplesIf requireNamespace("posterior", quietly = TRUE)
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' posterior::summarise_draws(posterior::as_draws_df(fit), "mean", "sd")
#' weights(posterior::as_draws_df(fit, weighted = TRUE))[1:3]
#'
#' @seealso [posterior_draws()]
#' @name as_draws.evidence
#' @exportS3Method posterior::as_draws
as_draws.evidence <- function(x, ...) as_draws_matrix.evidence(x, ...)

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.evidence <- function(x, weighted = FALSE, ...)
  draws_for_posterior(x$draws, x$log_weights, weighted)

#' As many draws as are effective, in random order
#'
#' Diagnostics of package posterior take the order of draws for that of a Markov chain, and repeated
#' draws for its correlation.
#' @noRd
draws_for_posterior <- function(draws, log_weights, weighted) {
  if (check_flag(weighted, "weighted"))
    return(posterior::weight_draws(posterior::as_draws_matrix(draws), log_weights, log = TRUE))
  posterior::as_draws_matrix(equal_draws(draws, log_weights))
}

equal_draws <- function(draws, log_weights) {
  weights <- exp(log_weights)
  # with equal weights a rounding error must not lose a draw
  effective <- max(1, floor(sum(weights)^2 / sum(weights^2) * (1 + 1e-9)))
  chosen <- resample(weights, effective, 0.5)
  # shuffled, in the same way each time
  chosen <- chosen[with_seed_words(seed_words(0), sample.int(effective))]
  draws[chosen, , drop = FALSE]
}

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_df
as_draws_df.evidence <- function(x, ...) posterior::as_draws_df(as_draws_matrix.evidence(x, ...))

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_array
as_draws_array.evidence <- function(x, ...)
  posterior::as_draws_array(as_draws_matrix.evidence(x, ...))

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_list
as_draws_list.evidence <- function(x, ...)
  posterior::as_draws_list(as_draws_matrix.evidence(x, ...))

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_rvars
as_draws_rvars.evidence <- function(x, ...)
  posterior::as_draws_rvars(as_draws_matrix.evidence(x, ...))

#' @rdname as_draws.evidence
#' @exportS3Method coda::as.mcmc
as.mcmc.evidence <- function(x, ...) {
  check_no_dots(...)
  draws <- equal_draws(x$draws, x$log_weights)
  of_package("coda", "mcmc")(draws)
}

# Incomplete fits have no draws; package posterior would take their parts for variables.
#' @exportS3Method posterior::as_draws
as_draws.incomplete_evidence <- function(x, ...) whole_fit("as_draws")
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.incomplete_evidence <- function(x, ...) whole_fit("as_draws_matrix")
#' @exportS3Method posterior::as_draws_df
as_draws_df.incomplete_evidence <- function(x, ...) whole_fit("as_draws_df")
