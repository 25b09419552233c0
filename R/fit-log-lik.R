# Pointwise log-likelihoods of fits, for package loo.

#' Pointwise log-likelihoods
#'
#' The log-likelihood of each row at each posterior draw: what package \pkg{loo} needs for
#' leave-one-out cross-validation and WAIC.
#'
#' @param object A fit from [evidence()].
#' @param newdata Data with their response, in the form of those of the fit; `NULL`, the default,
#'   for the data of the fit, see [predict.evidence()].
#' @param type `"draws"`, the default, for the log-likelihood of each row at each draw; `"heldout"`
#'   for the log predictive density of each row of `newdata`, averaged over the posterior, with its
#'   standard error: for models with latent variables as well.
#' @param draws Number of draws of equal weight; `NULL`, the default, for as many as the fit has.
#'   Only with `weighted = FALSE`.
#' @param weighted `FALSE`, the default, for draws of equal weight, which \pkg{loo} needs; `TRUE`
#'   for all draws of the fit with their log weights, in the order of [posterior_draws()].
#' @param seed A whole number from 0 to 2^53 for the resampling to equal weights; `NULL`, the
#'   default, takes the seed from R's generator.
#' @param ... Must be empty.
#'
#' @details
#' The posterior must be that of the rows of the fit for cross-validation, so leave `newdata` out.
#' The evidence of a model and its cross-validation answer different questions: the first judges
#' predictions from the prior on, the second those of one row given all others.
#'
#' Models with latent variables have no likelihood of a row that does not depend on the others: they
#' take only type `"heldout"`. A [custom_model()] must return a value for each row. The generic
#' `log_lik()` of package \pkg{rstantools}, which other packages share, works for fits of this
#' package, too.
#'
#' **Held-out rows.** Type `"heldout"` estimates \eqn{\log p(y_{new} \mid y)}{log p(y_new | y)} for
#' each row of `newdata` by itself, as the logarithm of the weighted mean of \eqn{p(y_{new} \mid
#' \theta_i, y)}{p(y_new | theta[i], y)} over the draws; it is `predict(type = "density")` with a
#' standard error. Latent variables of the new row are summed or integrated out: the component of
#' [clustering()] and [gaussian_mixture()], all attribute vectors of [binary_attributes()], and the
#' row's factors of [low_rank()], with which it is normal. The centres and features given a draw are
#' integrated out as well, so that \eqn{p(y_{new} \mid \theta_i, y)}{p(y_new | theta[i], y)} is the
#' ratio of the densities of all rows with and without the new one.
#'
#' The standard error is that of a ratio of weighted means of independent draws or, if the fit has
#' several `replicates`, the one from the spread between these runs if it is larger. Draws of one
#' run of [smc()] have common ancestors, so its standard error can be too small: take replicates.
#' `newdata` must not be rows of the fit, whose density would be too high.
#'
#' Models with group-level terms are refused, because a new row of a known group depends on its
#' effects, which are integrated out of the fit's likelihood.
#'
#' @return A matrix of draws x rows. With `weighted = TRUE` its attribute `"log_weights"` holds the
#'   log weights, whose exponentials sum to one. With `type = "heldout"` a data frame with a row for
#'   each row of `newdata`, and the columns `log_lik` and `se`.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, prior_sd = 10), cars, seed = 1)
#' dim(log_lik(fit, draws = 200, seed = 1))
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' each <- log_lik(fit, seed = 1)
#' # the draws are no Markov chain: they are as good as independent ones
#' loo::loo(each, r_eff = rep(1, ncol(each)))
#'
#' @examples
#' fit <- evidence(clustering(components = 2), scale(faithful[1:60, ]), seed = 1)
#' log_lik(fit, scale(faithful)[61:63, ], type = "heldout")
#'
#' @concept held-out likelihood
#' @concept leave-one-out cross-validation
#' @concept WAIC
#' @seealso [model_functions()], whose `log_lik_each()` has any points; [predict.evidence()]
#' @export
log_lik <- function(object, ...) UseMethod("log_lik")

#' @rdname log_lik
#' @export
log_lik.evidence <- function(object, newdata = NULL, draws = NULL, weighted = FALSE, seed = NULL,
                             ..., type = c("draws", "heldout")) {
  check_no_dots(...)
  type <- check_choice(type, "type", c("draws", "heldout"))
  if (type == "heldout") {
    given <- c(draws = !is.null(draws), weighted = !isFALSE(weighted), seed = !is.null(seed))
    if (any(given))
      fail("`", names(given)[given][1], "` must not be given with `type = \"heldout\"`: it is for ",
           "type \"draws\".")
    return(heldout(object, newdata, parent.frame()))
  }
  weighted <- check_flag(weighted, "weighted")
  if (weighted && !is.null(draws))
    fail("`draws` must be given only with `weighted = FALSE`: weighted draws are returned as they ",
         "are.")
  if (weighted && !is.null(seed)) fail("`seed` must be given only with `weighted = FALSE`.")
  if (!is.null(draws)) draws <- check_count(draws, "draws", 1, 1e6)
  if (is_latent(object$model) || isTRUE(object$design$joined))
    fail("log_lik() has nothing to return: in a ", object$model$name, "() the density of a row ",
         "depends on the other rows.",
         if (is_latent(object$model)) " For new rows take `type = \"heldout\"`.")
  words <- if (!weighted) seed_words(seed)
  refuse_new_groups(object, newdata)
  encoded <- rows_to_predict(object, newdata, parent.frame(), TRUE)
  all <- seq_along(object$log_weights)
  if (weighted)
    return(structure(pointwise(object, encoded, all), log_weights = object$log_weights))
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  use <- resample(exp(object$log_weights), if (is.null(draws)) length(all) else draws)
  # a draw of large weight is repeated
  distinct <- unique(use)
  pointwise(object, encoded, distinct)[match(use, distinct), , drop = FALSE]
}

#' Log predictive densities of new rows, and their standard errors
#' @noRd
heldout <- function(fit, newdata, envir) {
  if (is.null(newdata))
    fail("`newdata` must be given with `type = \"heldout\"`: rows that the fit has not seen.")
  if (needs_all(fit$model))
    fail("`type` must be \"draws\" for a ", fit$model$name, "() whose rows belong together: the ",
         "density of a single new row is not known.")
  encoded <- rows_to_predict(fit, newdata, envir, TRUE)
  answer <- if (is.null(encoded$answer)) encoded$args$answer else encoded$answer
  if (!is.null(answer)) fit$args$answer <- answer
  value <- log_predictive_density(fit, encoded$rows)
  data.frame(log_lik = value, se = predictive_error(fit, encoded$rows, value))
}

#' Log-likelihoods of rows at some draws of a fit, a matrix of draws x rows
#' @noRd
pointwise <- function(fit, encoded, draws) {
  answer <- if (is.null(encoded$answer)) encoded$args$answer else encoded$answer
  if (!is.null(answer)) fit$args$answer <- answer
  theta <- t(unname(fit$parameters[draws, , drop = FALSE]))
  t(log_lik_rows(model_type(fit$model), fit$args, encoded$rows, theta))
}

# Either generic, of this package or of rstantools, works for the objects of both.
#' @exportS3Method
log_lik.default <- function(object, ...) {
  theirs <- their_generic("rstantools", "log_lik", object)
  if (is.null(theirs)) refuse(object, "object", "a fit from `evidence()`")
  theirs(object, ...)
}
