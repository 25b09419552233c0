# Predictions, averaged over the posterior. The C code of the model computes all densities, for a
# block of rows and all draws together, so that memory does not grow with the number of rows.

#' Predictions from a fit
#'
#' Predicts new observations, averaged over the posterior draws of a fit.
#'
#' @param object A fit from [evidence()].
#' @param newdata New data in the form of those of the fit, which does not keep its own. The
#'   response is needed only for `"density"`.
#' @param type What to predict; `NULL`, the default, is the first type of the model:
#'   * [linear_regression()], [gaussian_mean()]: `"response"`, the predictive mean of the response,
#'     offset included; or `"density"`.
#'   * [regression()]: `"response"`, the predictive mean of the response; or `"density"`.
#'   * [softmax_regression()]: `"probability"`, the probability of each class; `"class"`, the most
#'     probable class; or `"density"`.
#'   * [gaussian_mixture()]: `"density"`; or `"probability"`, the probability that a row belongs to
#'     each component.
#'   * any other model, those with latent variables included: `"density"`.
#' @param ... Must be empty.
#'
#' @details
#' `"density"` is the natural logarithm of each row's predictive density (for classes, of the
#' probability of the observed class): \eqn{\log \sum_i W_i\, p(y \mid x, \theta_i)}{log sum_i W[i]
#' p(y | x, theta[i])} over draws \eqn{\theta_i}{theta[i]} of weight \eqn{W_i}{W[i]}. If a formula
#' transforms the response, as in `log(y) ~ x`, means and densities are those of the transformed
#' response.
#'
#' In models with latent variables ([clustering()], [low_rank()], [binary_attributes()]) \eqn{p(y
#' \mid \theta_i)}{p(y | theta[i])} is the density of a new row given draw \eqn{i} and the rows of
#' the fit: the latent variable of the row, the centres and the features are summed or integrated
#' out. Each row is predicted separately, not given the other rows of `newdata`.
#'
#' The numbering of a mixture's components is arbitrary: only the grouping of rows has a meaning.
#'
#' @section Files of others:
#' A fit may contain R functions, in its model and its formulas, and `predict()` runs them. They can
#' do whatever you can do: if you read a fit by [readRDS()] or [load()], use only files that you
#' trust.
#'
#' @return For `"probability"` a matrix with a row for each row of `newdata` and a named column for
#'   each class or component; for `"class"` a factor; else a numeric vector.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' predict(fit, data.frame(speed = c(10, 20)))
#' predict(fit, data.frame(speed = c(10, 20), dist = c(25, 60)), type = "density")
#'
#' @seealso [posterior_draws()]
#' @export
predict.evidence <- function(object, newdata, type = NULL, ...) {
  check_no_dots(...)
  model <- object$model
  types <- prediction_types(model)
  type <- if (is.null(type)) types[1] else check_choice(type, "type", types)
  if (missing(newdata) || is.null(newdata))
    fail("`newdata` must be given: a fit does not keep its data.")
  needs_response <- type == "density" || part_of(model, "needs_response")
  encoded <- encode_new(model, object$design, newdata, response = needs_response)
  if (!is.null(encoded$answer)) object$args$answer <- encoded$answer
  if (type == "density") return(log_predictive_density(object, encoded$rows))
  part_of(model, "predictions")[[type]](object, encoded)
}

# The first is the default; all models have the density.
prediction_types <- function(model) unique(c(names(part_of(model, "predictions")), "density"))
