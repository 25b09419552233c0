# Fits and comparisons as data frames: tidy(), glance(), augment() and as.data.frame(). The first
# three are generics of package generics, which broom and others export.

#' A fit as a data frame
#'
#' `tidy()` has a row for each coefficient, `glance()` and `as.data.frame()` one row for the fit,
#' `augment()` a row for each observation. The first three are methods for the generics of package
#' \pkg{generics}, which \pkg{broom} and other packages export: load one of these.
#'
#' @param x A fit from [evidence()], or a comparison from [compare_models()].
#' @param conf.int,conf.level Whether there are central credible intervals, and their probability.
#' @param exponentiate Whether numbers are those of `exp()` of the coefficients, for families whose
#'   link is the logarithm or the logit. A column `ratio` says of what they are ratios: `means`,
#'   `odds` or `times` (see [families]). Other parameters stay as they are.
#' @param data The data of the fit; by default the data in its call, if they still exist.
#' @param newdata Other data, for predictions; the response is not needed.
#' @param row.names,optional Unused.
#' @param ... Must be empty.
#'
#' @details
#' All numbers are computed from the weighted posterior draws: `estimate` is the posterior mean,
#' `std.error` the posterior standard deviation. `tidy()` of a comparison averages over the models,
#' see [averaged]. For the components of a mixture and for latent variables, whose numbering is
#' arbitrary, `tidy()` is an error.
#'
#' `as.data.frame()` makes it easy to collect fits: `do.call(rbind, lapply(fits, as.data.frame))`.
#' For the draws see [posterior_draws()].
#'
#' @return Data frames.
#' * `tidy()`: `term`, `estimate`, `std.error`, `conf.low`, `conf.high`; of a comparison also
#'   `prior_inclusion` and `inclusion`, the prior and posterior probability of the models that have
#'   the term, and `log_bf` and `log_matched_bf`, its inclusion Bayes factors, see [averaged].
#' * `glance()` and `as.data.frame()` of a fit: `log_evidence`, `se`, `nobs`, `method`, `reliable`
#'   (whether the fit passed its own checks), `doubt` (`"failed"`, `"warns"`, `"prior conflict"` or
#'   `""`) and `seconds`.
#' * `glance()` of a comparison, one row: the number of `models`, `nobs`, the `best` model, its
#'   `log_evidence`, `se` and `posterior`, and `certainty`, the probability that Monte Carlo error
#'   does not change which model is first. `as.data.frame()` of a comparison is its table.
#' * `augment()`: the data with `.fitted` and `.resid`, or for classes a column `.fitted_` for each
#'   class; with `newdata` these with `.fitted`.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 20), cars, seed = 1)
#' as.data.frame(fit)
#' @examplesIf requireNamespace("generics", quietly = TRUE)
#' generics::tidy(fit)
#' generics::glance(fit)
#' head(generics::augment(fit))
#'
#' @seealso [evidence_verbs], [summary.evidence()]
#' @name tidy.evidence
NULL

#' @rdname tidy.evidence
#' @exportS3Method generics::tidy
tidy.evidence <- function(x, conf.int = TRUE, conf.level = 0.95, exponentiate = FALSE, ...) {
  check_no_dots(...)
  draws <- coefficient_draws(x, "tidy")
  weights <- exp(x$log_weights)
  ratio <- if (check_flag(exponentiate, "exponentiate")) ratio_of_fit(x)
  own <- colnames(draws) %in% x$design$covariates
  if (!is.null(ratio)) draws[, own] <- exp(draws[, own])
  table <- data.frame(term = colnames(draws), estimate = drop(weights %*% draws),
                      std.error = apply(draws, 2, weighted_sd, weights), row.names = NULL)
  if (check_flag(conf.int, "conf.int")) table <- with_limits(table, draws, weights, conf.level)
  if (!is.null(ratio))
    table$ratio <- ifelse(own, ifelse(table$term == INTERCEPT, "exp() of the intercept",
                                      paste("ratio of", ratio)), "")
  table
}

ratio_of_fit <- function(fit) {
  ratio <- ratio_of(part_of(fit$model, "family")(fit$model))
  if (is.null(ratio))
    fail("`exponentiate` must be FALSE for this ", fit$model$name, "(): exp() of its coefficients ",
         "is no ratio of means, rates, odds or times.")
  sub("[ ,].*", "", ratio)
}

with_limits <- function(table, draws, weights, conf.level) {
  limits <- credible_limits(draws, weights, NULL, conf.level, "conf.level")
  cbind(table, data.frame(conf.low = limits[, 1], conf.high = limits[, 2], row.names = NULL))
}

#' @rdname tidy.evidence
#' @exportS3Method generics::glance
glance.evidence <- function(x, ...) {
  check_no_dots(...)
  data.frame(log_evidence = x$log_evidence, se = x$se, nobs = count_as_integer(x$n),
             method = x$method$name, reliable = passed_checks(x), doubt = doubt_about(x),
             seconds = x$work[["seconds"]])
}

#' @rdname tidy.evidence
#' @export
as.data.frame.evidence <- function(x, row.names = NULL, optional = FALSE, ...) glance.evidence(x)

#' @rdname tidy.evidence
#' @exportS3Method generics::augment
augment.evidence <- function(x, data = NULL, newdata = NULL, ...) {
  check_no_dots(...)
  require_response(x, "augment")
  if (!is.null(newdata)) {
    encoded <- encode_new(x$model, x$design, newdata, FALSE)
    return(with_columns(newdata, fitted_to(x, encoded), ".fitted"))
  }
  data <- given_data(x, data, parent.frame())
  encoded <- encoded_own(x, data)
  fitted <- fitted_to(x, encoded)
  table <- with_columns(data, fitted, ".fitted")
  if (!is.matrix(fitted)) table$.resid <- residuals_of(encoded, fitted)
  table
}

# Data of a model without a formula are put side by side; lagged rows have no values.
with_columns <- function(data, values, name) {
  if (is.list(data) && !is.data.frame(data)) data <- do.call(data.frame, data)
  data <- if (is.null(dim(data))) data.frame(y = data) else as.data.frame(data)
  data <- utils::tail(data, NROW(values))
  if (is.matrix(values)) colnames(values) <- paste0(name, "_", colnames(values))
  data[if (is.matrix(values)) colnames(values) else name] <- values
  data
}

# Comparisons -------------------------------------------------------------------------------------

#' @rdname tidy.evidence
#' @exportS3Method generics::tidy
tidy.model_comparison <- function(x, conf.int = TRUE, conf.level = 0.95, ...) {
  check_no_dots(...)
  averaged <- averaged_draws(x, "tidy")
  weights <- averaged$weights
  table <- data.frame(term = colnames(averaged$draws),
                      estimate = drop(weights %*% averaged$draws),
                      std.error = apply(averaged$draws, 2, weighted_sd, weights),
                      averaged$inclusion, row.names = NULL)
  if (!check_flag(conf.int, "conf.int")) return(table)
  with_limits(table, averaged$draws, weights, conf.level)
}

#' @rdname tidy.evidence
#' @exportS3Method generics::glance
glance.model_comparison <- function(x, ...) {
  check_no_dots(...)
  require_comparison(x, "glance")
  x <- x[order(!x$reliable, -x$log_evidence), ]
  data.frame(models = nrow(x), nobs = count_as_integer(attr(x, "n")), best = x$model[1],
             log_evidence = x$log_evidence[1], se = x$se[1], posterior = x$posterior[1],
             certainty = certainty(x)[["best"]])
}

#' @rdname tidy.evidence
#' @export
as.data.frame.model_comparison <- function(x, row.names = NULL, optional = FALSE, ...)
  plain_table(x)

# Incomplete fits ---------------------------------------------------------------------------------

#' @exportS3Method generics::tidy
tidy.incomplete_evidence <- function(x, ...) whole_fit("tidy")
#' @exportS3Method generics::glance
glance.incomplete_evidence <- function(x, ...) whole_fit("glance")
#' @exportS3Method generics::augment
augment.incomplete_evidence <- function(x, ...) whole_fit("augment")
