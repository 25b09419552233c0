# Methods of the usual generics for fits: coef(), fitted(), residuals() and others. They return
# numbers if the model has them, else an error, because the default methods of these generics would
# return NULL.

#' Coefficients, fitted values and other methods for fits
#'
#' The usual methods for [lm()] objects, for fits of [evidence()]: numbers if the model has them,
#' otherwise an error that names an alternative.
#'
#' @param object,x A fit from [evidence()].
#' @param data The data of the fit, which does not keep them; by default the data in its call, if
#'   they still exist.
#' @param parm Names or numbers of the parameters; all by default.
#' @param level Probability of the intervals.
#' @param use.fallback Unused; [step()] gives it.
#' @param ... Must be empty.
#'
#' @details `coef()` is the posterior mean and `vcov()` the posterior covariance matrix of the
#' coefficients of [linear_regression()], [regression()] (with the family's further parameters),
#' [softmax_regression()] and [gaussian_mean()], and of the parameters of a [custom_model()] or
#' [compiled_model()]; `confint()` has their central credible intervals, from weighted quantiles.
#' All are computed from the draws of the fit and have their Monte Carlo error. The components of a
#' mixture and latent variables are numbered arbitrarily, so their means have no meaning: use
#' [summary()][summary.evidence] or [predict()][predict.evidence].
#'
#' `fitted()` is the posterior mean of the response, offset included, or a matrix of class
#' probabilities, and `residuals()` the response minus that (for classes, the response is one or
#' zero). `deviance()` is minus twice the log likelihood at the posterior mean of the coefficients.
#' Unlike that of [lm()] it is not the residual sum of squares, because constants are included.
#' These three need the data of the fit; other data are an error.
#'
#' `sigma()` is the standard deviation of the noise: the known one, or its posterior mean for
#' `regression(family = gaussian())` and for models with latent variables and unknown noise.
#' `nobs()` is the number of observations, `formula()` the formula of the model.
#'
#' @return `coef()` a named vector, `vcov()` and `confint()` matrices, `fitted()` and `residuals()`
#'   a vector, or a matrix with a column for each class, `sigma()`, `nobs()` and `deviance()` a
#'   number, `formula()` a formula.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 20), cars, seed = 1)
#' coef(fit)
#' confint(fit)
#' sqrt(diag(vcov(fit)))
#' head(residuals(fit))
#' coef(lm(dist ~ speed, cars))
#'
#' @seealso [summary.evidence()], [predict.evidence()], [posterior_draws()]
#' @importFrom stats coef confint deviance fitted formula nobs residuals sigma vcov
#' @name evidence_verbs
NULL

#' @rdname evidence_verbs
#' @export
coef.evidence <- function(object, ...) {
  check_no_dots(...)
  draws <- coefficient_draws(object, "coef")
  drop(exp(object$log_weights) %*% draws)
}

#' @rdname evidence_verbs
#' @export
vcov.evidence <- function(object, ...) {
  check_no_dots(...)
  weighted_cov(coefficient_draws(object, "vcov"), exp(object$log_weights))
}

weighted_cov <- function(draws, weights) {
  centred <- sweep(draws, 2, drop(weights %*% draws))
  spare <- 1 - sum(weights^2)
  if (spare < 1e-12)
    fail("vcov() needs more than one draw of positive weight, and this fit has one.")
  crossprod(centred, weights * centred) / spare
}

#' @rdname evidence_verbs
#' @export
confint.evidence <- function(object, parm, level = 0.95, ...) {
  check_no_dots(...)
  draws <- coefficient_draws(object, "confint")
  credible_limits(draws, exp(object$log_weights), if (!missing(parm)) parm, level)
}

#' Central credible intervals, as confint() returns them
#' @noRd
credible_limits <- function(draws, weights, parm, level, name = "level") {
  level <- check_number(level, name, 0, 1, TRUE, TRUE)
  if (!is.null(parm)) {
    if (!is.character(parm) && !is_plain_numeric(parm) || length(parm) == 0)
      refuse(parm, "parm", "names or numbers of parameters")
    known <- if (is.character(parm)) parm %in% colnames(draws) else parm %in% seq_len(ncol(draws))
    if (!all(known))
      fail("`parm` must be among ", show_names(colnames(draws)), ", not ",
           show_value(parm[!known][1]), ".")
    draws <- draws[, parm, drop = FALSE]
  }
  at <- c(1 - level, 1 + level) / 2
  limits <- vapply(seq_len(ncol(draws)), function(j) weighted_quantile(draws[, j], weights, at), at)
  matrix(t(limits), ncol(draws),
         dimnames = list(colnames(draws), paste(format(100 * at, digits = 3, trim = TRUE), "%")))
}

#' @rdname evidence_verbs
#' @export
fitted.evidence <- function(object, data = NULL, ...) {
  check_no_dots(...)
  require_response(object, "fitted")
  fitted_to(object, own_data(object, data, parent.frame()))
}

#' @rdname evidence_verbs
#' @export
residuals.evidence <- function(object, data = NULL, ...) {
  check_no_dots(...)
  require_response(object, "residuals")
  encoded <- own_data(object, data, parent.frame())
  residuals_of(encoded, fitted_to(object, encoded))
}

residuals_of <- function(encoded, fitted) {
  encoded <- by_observation(encoded)
  response <- encoded$rows[nrow(encoded$rows), ]
  if (is.matrix(fitted)) return(outer(response, seq_len(ncol(fitted)) - 1, `==`) - fitted)
  response + (if (is.null(encoded$offset)) 0 else encoded$offset) - fitted
}

#' @rdname evidence_verbs
#' @export
deviance.evidence <- function(object, data = NULL, ...) {
  check_no_dots(...)
  require_response(object, "deviance")
  encoded <- own_data(object, data, parent.frame())
  centre <- colSums(exp(object$log_weights) * object$parameters)
  -2 * as.vector(model_caller(object$model, encoded)("log_lik", matrix(centre, ncol = 1)))
}

#' @rdname evidence_verbs
#' @export
sigma.evidence <- function(object, ...) {
  check_no_dots(...)
  noise_sd <- part_of(object$model, "noise_sd")
  if (is.null(noise_sd)) no_verb(object, "sigma", "single standard deviation of noise", "summary()")
  noise_sd(object)
}

#' @rdname evidence_verbs
#' @export
nobs.evidence <- function(object, use.fallback = FALSE, ...) {
  check_no_dots(...)
  count_as_integer(object$n)
}

#' @rdname evidence_verbs
#' @export
formula.evidence <- function(x, ...) {
  check_no_dots(...)
  if (is.null(x$model$formula)) no_verb(x, "formula", "formula", "`fit$model`")
  x$model$formula
}

# Helpers of these methods ------------------------------------------------------------------------

no_verb <- function(fit, verb, what, instead) {
  fail(verb, "() has nothing to return: this ", fit$model$name, "() has no ", what, ". See ",
       instead, ".")
}

coefficient_draws <- function(fit, verb) {
  check_not_integrated(fit$model, verb)
  if (!part_of(fit$model, "coefficients"))
    no_verb(fit, verb,
            "coefficients, and its components and latent variables are numbered arbitrarily",
            "summary() or predict()")
  fit$draws
}

require_response <- function(fit, verb) {
  if (is.null(part_of(fit$model, "fitted")))
    no_verb(fit, verb, "response whose mean is known", "predict()")
}

# Effects of factors under jzs() are no parameters of C, and the fit has no draws of them.
check_not_integrated <- function(model, verb) {
  if (is_integrated(model))
    fail(verb, "() has nothing to return: this ", model$name, "() is for comparisons. ",
         INTEGRATED_OUT)
}

fitted_to <- function(fit, encoded) part_of(fit$model, "fitted")(fit, by_observation(encoded))
