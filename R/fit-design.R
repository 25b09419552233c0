# Methods for what a fit was made from: its family, terms, model frame, model matrix and names.

#' Family, terms and model matrix of a fit
#'
#' The methods that functions for [lm()] and [glm()] objects rely on: what a fit was made from.
#' If the model has no such thing there is an error.
#'
#' @param object,x,formula A fit from [evidence()].
#' @param data The data of the fit, which does not keep them; by default the data in its call, if
#'   they still exist.
#' @param ... Must be empty.
#'
#' @return
#' * `family()` a family of R, or of [families], with `family` and `link`. Models for which it is
#'   known are [linear_regression()], [regression()] and [gaussian_mean()].
#' * `terms()` the terms of the formula, with `.` and functions such as `scale()` as in the data of
#'   the fit; `labels()` their names.
#' * `model.frame()` the variables of the formula, and `model.matrix()` the covariates as given,
#'   before `scale = TRUE`.
#' * `variable.names()` the names of the columns of `model.matrix()`.
#' * `case.names()` the names of the rows of the data, and `na.action()` the numbers of the rows
#'   that [evidence()] left out as its argument `na.action` says, or `NULL`.
#'
#' @details
#' Other generics for least-squares and likelihood fits have no meaning for a posterior. `logLik()`,
#' `AIC()`, `BIC()`, `anova()`, `drop1()`, `step()`, `hatvalues()`, `df.residual()`, `weights()` and
#' others are errors that say what to use.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 20), cars, seed = 1)
#' family(fit)
#' head(model.matrix(fit))
#' try(AIC(fit))
#'
#' @seealso [evidence_verbs]
#' @importFrom stats case.names family model.frame model.matrix terms variable.names
#' @name fit_design
NULL

#' @rdname fit_design
#' @export
family.evidence <- function(object, ...) {
  check_no_dots(...)
  family <- part_of(object$model, "family")(object$model)
  if (is.null(family)) no_verb(object, "family", "family of a linear predictor", "`fit$model`")
  family
}

#' @rdname fit_design
#' @export
terms.evidence <- function(x, ...) {
  check_no_dots(...)
  design_of(x, "terms")$terms
}

#' @rdname fit_design
#' @export
labels.evidence <- function(object, ...) {
  check_no_dots(...)
  attr(design_of(object, "labels")$terms, "term.labels")
}

#' @rdname fit_design
#' @export
model.frame.evidence <- function(formula, data = NULL, ...) {
  check_no_dots(...)
  own_frame(formula, data, parent.frame(), "model.frame")
}

#' @rdname fit_design
#' @export
model.matrix.evidence <- function(object, data = NULL, ...) {
  check_no_dots(...)
  frame <- own_frame(object, data, parent.frame(), "model.matrix")
  stats::model.matrix(attr(frame, "terms"), frame, contrasts.arg = object$design$contrasts)
}

#' @rdname fit_design
#' @export
variable.names.evidence <- function(object, ...) {
  check_no_dots(...)
  design_of(object, "variable.names")$covariates
}

#' @rdname fit_design
#' @export
case.names.evidence <- function(object, data = NULL, ...) {
  check_no_dots(...)
  data <- given_data(object, data, parent.frame())
  encoded <- encoded_own(object, data)
  if (is.list(data) && !is.data.frame(data)) data <- data$x
  names <- if (is.null(dim(data))) names(data) else rownames(data)
  if (is.null(names)) names <- as.character(seq_len(NROW(data)))
  utils::tail(names, number_of_rows(encoded))
}

# Generics of package nlme, which lme4 and brms export, too.
#' @exportS3Method nlme::fixef
fixef.evidence <- function(object, ...) {
  all <- coef.evidence(object, ...)
  own <- intersect(object$design$covariates, names(all))
  if (length(own)) all[own] else all[setdiff(names(all), object$design$group_parameters)]
}

# A fit as a plain list, and in one line.
#' @export
as.list.evidence <- function(x, ...) unclass(x)

#' @export
as.character.evidence <- function(x, ...) format(x)

# Only designs of regressions have covariates.
design_of <- function(fit, verb) {
  design <- fit$design
  if (is.null(design$terms) || is.null(design$covariates))
    no_verb(fit, verb, "formula with covariates", "`fit$model`")
  design
}

own_frame <- function(fit, data, envir, verb) {
  design <- design_of(fit, verb)
  data <- given_data(fit, data, envir)
  encoded_own(fit, data)
  new_frame(at_start(design), data, TRUE, "data")
}
