# What is averaged over the models of a comparison by their posterior probabilities: coefficients
# and posterior draws.

#' Coefficients averaged over models
#'
#' Methods for comparisons from [compare_models()]: coefficients and posterior draws, averaged over
#' the models by their posterior probabilities.
#'
#' @param object,x A comparison.
#' @param parm Names or numbers of the coefficients; all by default.
#' @param level Probability of the intervals.
#' @param ... Must be empty.
#'
#' @details
#' A coefficient is **zero in a model that does not have it**. So its average is drawn towards zero
#' by the probability of the models without it, and a credible interval may end at zero. The table
#' of `summary()` has the probability of the models with each coefficient (`inclusion`). Parameters
#' that are not coefficients of covariates, such as `sigma`, are averaged only if all models have
#' them.
#'
#' **Inclusion.** A large `inclusion` alone does not support a coefficient: if ten of eleven models
#' have it, its probability was .91 before the data. `prior_inclusion` is this probability, and
#' `log_bf` is the log of the inclusion Bayes factor, the posterior odds of the models with the
#' coefficient divided by their prior odds. It is `NA` if all models have the coefficient.
#' `log_matched_bf` is that among models which differ in one term alone: those with the term, for
#' which the same model without it is in the comparison, and those models without it. Other models
#' with and without the term also differ in other terms, which may explain the data better or worse.
#' It is `NA` if there is no such pair. Both use the models that passed their checks and have a
#' positive prior probability.
#'
#' The models must have the same link, so that coefficients of the same name mean the same;
#' otherwise there is an error. A coefficient of the same name still has another meaning in a model
#' with other covariates, as in any regression: look at the models too. Fits that failed their
#' checks are left out.
#'
#' Other methods that need one model, such as `residuals()` or `family()`, are errors:
#' `attr(x, "fits")` is the list of fits.
#'
#' @return `coef()` a named vector, `vcov()` and `confint()` matrices, `formula()` and `terms()`
#'   lists named by models, `nobs()` the number of observations. `summary()` returns an object of
#'   class `"summary.model_comparison"`, a list of the `comparison` and the averaged `coefficients`,
#'   a data frame of `prior_inclusion`, `inclusion`, `log_bf`, `log_matched_bf`, `mean`, `sd`, `q5`,
#'   `q50`, `q95`, or a sentence that says why there are none.
#'
#' @examples
#' line <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 20), cars, seed = 1)
#' curve <- evidence(linear_regression(dist ~ speed + I(speed^2), sigma = 15, prior_sd = 20), cars,
#'                   seed = 2)
#' both <- compare_models(line, curve)
#' summary(both)
#' coef(both)
#'
#' @concept model averaging
#' @concept inclusion probability
#' @concept variable selection
#' @seealso [compare_models()], [tidy.evidence]
#' @name averaged
NULL

#' @rdname averaged
#' @export
coef.model_comparison <- function(object, ...) {
  check_no_dots(...)
  averaged <- averaged_draws(object, "coef")
  drop(averaged$weights %*% averaged$draws)
}

#' @rdname averaged
#' @export
vcov.model_comparison <- function(object, ...) {
  check_no_dots(...)
  averaged <- averaged_draws(object, "vcov")
  weighted_cov(averaged$draws, averaged$weights)
}

#' @rdname averaged
#' @export
confint.model_comparison <- function(object, parm, level = 0.95, ...) {
  check_no_dots(...)
  averaged <- averaged_draws(object, "confint")
  credible_limits(averaged$draws, averaged$weights, if (!missing(parm)) parm, level)
}

#' @rdname averaged
#' @export
nobs.model_comparison <- function(object, ...) {
  check_no_dots(...)
  count_as_integer(attr(object, "n"))
}

#' @rdname averaged
#' @export
formula.model_comparison <- function(x, ...) {
  check_no_dots(...)
  lapply(compared_fits(x, "formula"), stats::formula)
}

#' @rdname averaged
#' @export
terms.model_comparison <- function(x, ...) {
  check_no_dots(...)
  lapply(compared_fits(x, "terms"), stats::terms)
}

#' @rdname averaged
#' @export
summary.model_comparison <- function(object, ...) {
  check_no_dots(...)
  require_comparison(object, "summary")
  object <- among_themselves(object)
  averaged <- tryCatch(averaged_draws(object, "summary"), logevidence_error = conditionMessage)
  structure(list(comparison = object,
                 coefficients = if (is.character(averaged)) averaged else averaged_table(averaged)),
            class = "summary.model_comparison")
}

averaged_table <- function(averaged) {
  draws <- averaged$draws
  weights <- averaged$weights
  limits <- apply(draws, 2, weighted_quantile, weights, c(0.05, 0.5, 0.95))
  data.frame(averaged$inclusion, mean = drop(weights %*% draws),
             sd = apply(draws, 2, weighted_sd, weights), q5 = limits[1, ], q50 = limits[2, ],
             q95 = limits[3, ], row.names = colnames(draws))
}

#' @export
print.summary.model_comparison <- function(x, ...) {
  print(x$comparison)
  if (is.character(x$coefficients)) {
    if (grepl("cannot average", x$coefficients)) cat_wrapped(c("", x$coefficients))
    return(invisible(x))
  }
  table <- x$coefficients
  cat_wrapped(c("", paste("Coefficients averaged over the models, zero where a model lacks them")))
  print(format_parameters(table[c("mean", "sd", "q5", "q50", "q95")]), quote = FALSE, right = TRUE)
  print_inclusion(table)
  invisible(x)
}

# Draws of several models --------------------------------------------------------------------------

compared_fits <- function(x, verb) {
  require_comparison(x, verb)
  attr(x, "fits")[x$model]
}

#' Draws of all models together, each model with its posterior probability as weight
#'
#' @param common Whether only parameters that all models have are wanted.
#' @return A list: `draws`, their `weights`, and the `inclusion` of each column, a data frame.
#' @noRd
averaged_draws <- function(x, verb, common = FALSE) {
  fits <- compared_fits(x, verb)
  use <- !is.na(x$posterior) & x$posterior > 0
  fits <- fits[use]
  posterior <- x$posterior[use] / sum(x$posterior[use])
  kinds <- vapply(fits, parameter_kind, "")
  if (any(kinds != kinds[1]))
    fail(verb, "() cannot average over these models: their parameters have different meanings (",
         either(vapply(unique(kinds), shorten, "", 60)), ").")
  refuse_open_names(fits, verb)
  draws <- lapply(fits, coefficient_draws, verb)
  names <- Reduce(intersect, lapply(draws, colnames))
  if (!common) names <- union(unlist(lapply(fits, zero_if_absent)), names)
  if (!length(names))
    fail(verb, "() cannot average over these models: they have no parameter in common.")
  list(draws = do.call(rbind, unname(lapply(draws, columns_or_zero, names))),
       weights = unlist(Map(function(fit, p) p * exp(fit$log_weights), fits, posterior),
                        use.names = FALSE),
       inclusion = inclusion_table(x, names, verb))
}

# Coefficients of ns(x, k), say, have the same names in fits with other values of `k`: refused.
refuse_open_names <- function(fits, verb) {
  open <- unlist(lapply(fits, function(fit) {
    terms <- fit$design$terms
    if (is.null(terms) || is.null(fit$design$covariates)) return(NULL)
    attr(terms, "term.labels")[open_terms(terms, fit$design$columns)]
  }))
  if (anyDuplicated(open))
    fail(verb, "() cannot average over these models: the coefficients of `",
         open[duplicated(open)][1], "` may have another meaning in each of them, because it has a ",
         "name that is no column of the data.")
}

columns_or_zero <- function(draws, names) {
  found <- matrix(0, nrow(draws), length(names), dimnames = list(NULL, names))
  known <- intersect(names, colnames(draws))
  found[, known] <- draws[, known]
  found
}

# Parameters of the same name mean the same in models of the same kind.
parameter_kind <- function(fit) {
  family <- part_of(fit$model, "family")(fit$model)
  if (!is.null(family)) return(paste(family$link, "link"))
  expression <- fit$model$expression
  paste0(fit$model$name, "()", if (!is.null(expression)) paste0(" of ", deparse1(expression)))
}

# The coefficients of covariates: a model without one of them is the model with a zero.
zero_if_absent <- function(fit) {
  names <- colnames(fit$draws)
  if (is.null(fit$design$terms)) return(NULL)
  own <- intersect(fit$design$covariates, names)
  if (length(own)) own else names
}

# Methods for package posterior, registered when it is loaded.

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws
as_draws.model_comparison <- function(x, ...) as_draws_matrix.model_comparison(x, ...)

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.model_comparison <- function(x, weighted = FALSE, ...) {
  averaged <- averaged_draws(x, "as_draws", common = TRUE)
  draws_for_posterior(averaged$draws, log(averaged$weights), weighted)
}

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_df
as_draws_df.model_comparison <- function(x, ...)
  posterior::as_draws_df(as_draws_matrix.model_comparison(x, ...))

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_array
as_draws_array.model_comparison <- function(x, ...)
  posterior::as_draws_array(as_draws_matrix.model_comparison(x, ...))

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_list
as_draws_list.model_comparison <- function(x, ...)
  posterior::as_draws_list(as_draws_matrix.model_comparison(x, ...))

#' @rdname as_draws.evidence
#' @exportS3Method posterior::as_draws_rvars
as_draws_rvars.model_comparison <- function(x, ...)
  posterior::as_draws_rvars(as_draws_matrix.model_comparison(x, ...))
