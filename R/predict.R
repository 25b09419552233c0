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

# Size of a matrix of rows x draws: 1 MB, which fits in the cache.
PREDICT_BLOCK <- 2^17

#' Points in the form of C and their weights, without points of zero weight
#' @noRd
weighted_points <- function(fit) {
  use <- fit$log_weights > -Inf
  list(theta = unname(t(fit$parameters[use, , drop = FALSE])), log_weights = fit$log_weights[use])
}

#' Apply `f(rows)` to blocks of rows (columns of `rows`); a row of the result for each
#' @noRd
over_blocks <- function(rows, draws, f) {
  size <- max(1, PREDICT_BLOCK %/% draws)
  starts <- seq(1, ncol(rows), by = size)
  pieces <- lapply(starts,
                   function(from) f(rows[, from:min(from + size - 1, ncol(rows)), drop = FALSE]))
  if (is.matrix(pieces[[1]])) do.call(rbind, pieces) else unlist(pieces)
}

log_lik_rows <- function(name, args, rows, theta) {
  matrix(.Call(ffi_model, name, args, rows, "log_lik_each", theta, list()), ncol(rows))
}

log_predictive_density <- function(fit, rows) {
  at <- weighted_points(fit)
  weights <- exp(at$log_weights)
  over_blocks(rows, length(weights), function(block) {
    each <- if (is_latent(fit$model)) .Call(ffi_latent_density, model_type(fit$model), fit$args,
                                            fit$design$rows, at$theta, block)
    else log_lik_rows(model_type(fit$model), fit$args, block, at$theta)
    if (is_latent(fit$model)) each[is.nan(each)] <- -Inf # squares of such rows overflow
    top <- row_max(each)
    mean <- as.vector(exp(each - top) %*% weights)
    # If the draws with the highest density have almost no weight, the weights are included before
    # the maximum is taken.
    faint <- which(mean < 1e-200)
    density <- top + log(mean)
    if (length(faint))
      density[faint] <- log_sum_rows(each[faint, , drop = FALSE] +
                                     rep(at$log_weights, each = length(faint)))
    density
  })
}

# Finite, so that it can be subtracted: a row that is impossible under all draws keeps its -Inf.
row_max <- function(x) {
  top <- x[cbind(seq_len(nrow(x)), max.col(x, "first"))]
  ifelse(top > -Inf, top, 0)
}

log_sum_rows <- function(x) {
  top <- row_max(x)
  top + log(rowSums(exp(x - top)))
}

predictive_mean <- function(fit, encoded) {
  centre <- colSums(exp(fit$log_weights) * fit$parameters)
  covariates <- encoded$rows[-nrow(encoded$rows), , drop = FALSE]
  as.vector(centre %*% covariates) + if (is.null(encoded$offset)) 0 else encoded$offset
}

# The density of each class in turn: C has the formula, and the extra work is small for few classes.
class_probabilities <- function(fit, rows) {
  classes <- fit$design$levels
  each <- lapply(seq_along(classes), function(k) {
    rows[nrow(rows), ] <- k - 1
    exp(log_predictive_density(fit, rows))
  })
  probabilities <- matrix(unlist(each), ncol(rows), dimnames = list(NULL, classes))
  probabilities / rowSums(probabilities) # one but for rounding
}

most_probable <- function(probabilities) {
  classes <- colnames(probabilities)
  factor(classes[max.col(probabilities, "first")], levels = classes)
}

# Density of a component divided by that of the mixture, both from C; a component is a mixture of
# one.
memberships <- function(fit, rows) {
  # beyond this all densities are zero, and the widest component has all of the probability
  rows <- pmin(pmax(rows, -FARTHEST), FARTHEST)
  at <- weighted_points(fit)
  theta <- same_labels(fit, at)
  components <- fit$args$components
  one <- fit$args
  one$components <- 1
  log_ratio <- rbind(theta[seq_len(components - 1), , drop = FALSE], 0)
  # the components' own weights
  prior <- exp(log_ratio - rep(log_sum_rows(t(log_ratio)), each = components))
  own <- lapply(seq_len(components),
                function(k) theta[component_rows(k, components, one$dimensions), , drop = FALSE])
  share <- over_blocks(rows, ncol(theta), function(block) {
    total <- log_lik_rows("gaussian_mixture", fit$args, block, theta)
    each <- lapply(seq_len(components), function(k) {
      ratio <- exp(log_lik_rows("gaussian_mixture", one, block, own[[k]]) - total)
      as.vector(ratio %*% (prior[k, ] * exp(at$log_weights)))
    })
    matrix(unlist(each), ncol(block))
  })
  colnames(share) <- paste0("component", seq_len(components))
  share / rowSums(share) # one but for rounding
}

FARTHEST <- 1e140

#' The positions of the means and log variances of component `k` among the parameters
#' @noRd
component_rows <- function(k, components, dimensions) {
  mean <- components - 1 + (k - 1) * dimensions + seq_len(dimensions)
  c(mean, mean + components * dimensions)
}

# Draws of several runs may number the components differently.
same_labels <- function(fit, at) {
  reference <- at$theta[, which.max(at$log_weights)]
  .Call(ffi_model, model_type(fit$model), fit$args, matrix(0, fit$args$dimensions, 0), "relabel",
        at$theta, list(reference = reference))
}
