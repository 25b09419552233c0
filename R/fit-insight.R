# Methods for the generics of packages insight, parameters, performance and bayestestR: these treat
# a fit as one of a Bayesian regression. They use posterior draws of equal weight. R registers them
# when one of these packages is loaded; this package does not need them.

#' @exportS3Method insight::find_parameters
find_parameters.evidence <- function(x, flatten = FALSE, ...) {
  parts <- parameter_parts(x)
  if (check_flag(flatten, "flatten")) unlist(parts, use.names = FALSE) else parts
}

# Coefficients, and the further parameters of a family such as `sigma`, each by its own name.
parameter_parts <- function(fit) {
  names <- colnames(coefficient_draws(fit, "find_parameters"))
  own <- zero_if_absent(fit)
  if (is.null(own)) return(list(conditional = names))
  c(list(conditional = own), as.list(stats::setNames(nm = setdiff(names, own))))
}

#' @exportS3Method insight::get_parameters
get_parameters.evidence <- function(x, ...) {
  draws <- coefficient_draws(x, "get_parameters")
  chosen <- resample(exp(x$log_weights), nrow(draws), 0.5)
  as.data.frame(draws[chosen, , drop = FALSE], optional = TRUE)
}

#' @exportS3Method insight::model_info
model_info.evidence <- function(x, ...) {
  family <- family.evidence(x)
  # package insight would take another name for a binomial family
  name <- family_facts(family)$insight
  if (!is.null(name)) family$family <- name
  x$model$contract$family <- function(model) family
  usual <- utils::getS3method("model_info", "default", envir = asNamespace("insight"))
  info <- usual(x, ...)
  info$is_bayesian <- TRUE
  info
}

#' @exportS3Method insight::find_algorithm
find_algorithm.evidence <- function(x, ...)
  list(algorithm = x$method$name, sample = nrow(x$draws))

#' @exportS3Method insight::get_data
get_data.evidence <- function(x, ...) own_frame(x, NULL, parent.frame(), "get_data")

# Their names of what is predicted; intervals are from draws.
PREDICTED <- c(expectation = "expected", expected = "expected", link = "link",
               prediction = "response", predicted = "response")

#' @exportS3Method insight::get_predicted
get_predicted.evidence <- function(x, data = NULL, predict = "expectation", ci = NULL, ...,
                                   seed = NULL) {
  predict <- check_choice(predict, "predict", names(PREDICTED))
  type <- PREDICTED[[predict]]
  # without an interval the mean of the response has one name
  if (is.null(ci) && type == "expected") type <- "response"
  found <- in_frame(predict.evidence, c(list(x, data, type, interval = ci),
                                        if (type == "response" && !is.null(ci)) list(seed = seed)),
                    parent.frame())
  limits <- if (!is.null(ci)) data.frame(CI_low = found[, "lower"], CI_high = found[, "upper"])
  structure(if (is.null(ci)) found else unname(found[, "fit"]), data = data, ci = ci,
            ci_data = limits, predict = predict, class = c("get_predicted", "numeric"))
}

#' @exportS3Method insight::get_statistic
get_statistic.evidence <- function(x, ...)
  fail("get_statistic() has nothing to return: a posterior has no test statistic. See confint().")

#' @exportS3Method bayestestR::describe_posterior
describe_posterior.evidence <- function(posterior, ...)
  of_package("bayestestR", "describe_posterior")(get_parameters.evidence(posterior), ...)

#' @exportS3Method bayestestR::ci
ci.evidence <- function(x, ...) of_package("bayestestR", "ci")(get_parameters.evidence(x), ...)

#' @exportS3Method bayestestR::eti
eti.evidence <- function(x, ...) of_package("bayestestR", "eti")(get_parameters.evidence(x), ...)

#' @exportS3Method bayestestR::hdi
hdi.evidence <- function(x, ...) of_package("bayestestR", "hdi")(get_parameters.evidence(x), ...)

#' @exportS3Method bayestestR::p_direction
p_direction.evidence <- function(x, ...)
  of_package("bayestestR", "p_direction")(get_parameters.evidence(x), ...)

# R2 and RMSE are only for models with a numeric response.
#' @exportS3Method performance::model_performance
model_performance.evidence <- function(model, ..., seed = NULL) {
  table <- data.frame(Log_evidence = model$log_evidence, SE = model$se)
  residuals <- if (!is.null(part_of(model$model, "fitted")))
    in_frame(residuals.evidence, list(model), parent.frame())
  if (is.numeric(residuals) && is.null(dim(residuals))) {
    explained <- in_frame(bayes_R2.evidence, list(model, seed = seed), parent.frame())
    table <- cbind(table, R2 = mean(explained), RMSE = sqrt(mean(residuals^2)))
  }
  structure(table, class = c("performance_model", "data.frame"))
}

#' @exportS3Method parameters::model_parameters
model_parameters.evidence <- function(model, ...) {
  table <- of_package("parameters", "model_parameters")(get_parameters.evidence(model),
                                                          as_draws = TRUE, ...)
  attr(table, "model_class") <- class(model)
  table
}

#' @exportS3Method bayestestR::bayesfactor_models
bayesfactor_models.evidence <- function(..., denominator = 1, verbose = TRUE) {
  fits <- list(...)
  call <- match.call(expand.dots = FALSE)
  names <- argument_names(call$..., names(fits))
  # a further model, as in that package
  if (inherits(denominator, c("evidence", "bridge")) &&
      !any(vapply(fits, identical, NA, denominator))) {
    names <- make.unique(c(names, argument_name(call$denominator, "denominator")))
    fits <- c(fits, list(denominator))
  }
  evidences <- vapply(seq_along(fits),
                      function(i) log_evidence_of(fits[[i]], names[i])[["log_evidence"]], 0)
  said_of_fits(fits, names)
  if (!is.numeric(denominator)) {
    same <- vapply(fits, identical, TRUE, denominator)
    if (!any(same)) fail("`denominator` must be the number of one of the fits, or a fit.")
    denominator <- which(same)[1]
  }
  denominator <- check_count(denominator, "denominator", 1, length(fits))
  models_of_bayestestR(fits, names, evidences, denominator)
}

# bayestestR reads the terms of a model from the text of its formula's right-hand side, and
# computes inclusion Bayes factors unless models are said to have no terms.
models_of_bayestestR <- function(fits, names, evidences, denominator) {
  sides <- vapply(fits, right_hand_side, "")
  structure(data.frame(Model = ifelse(is.na(sides), names, sides),
                       log_BF = evidences - evidences[denominator]),
            denominator = denominator,
            BF_method = "marginal likelihoods (logevidence)", unsupported_models = anyNA(sides),
            model_names = names,
            class = c("bayesfactor_models", "see_bayesfactor_models", "data.frame"))
}

# "speed + I(speed^2)"; NA of a model that is no regression of a response on terms.
right_hand_side <- function(fit) {
  formula <- if (inherits(fit, "evidence")) fit$model$formula
  if (length(formula) != 3 || is.null(fit$design$terms)) return(NA_character_)
  if ("." %in% all.vars(formula[[3]])) formula <- stats::formula(fit$design$terms)
  deparse1(formula[[3]])
}

#' @exportS3Method bayestestR::bayesfactor_models
bayesfactor_models.model_comparison <- function(..., denominator = 1, verbose = TRUE) {
  if (...length() != 1)
    fail("`...` must hold one comparison, or fits, not ", ...length(), " comparisons.")
  x <- ...elt(1)
  fits <- compared_fits(x, "bayesfactor_models")
  denominator <- check_count(denominator, "denominator", 1, length(fits))
  models_of_bayestestR(fits, x$model, ifelse(x$reliable, x$log_evidence, NA), denominator)
}

#' @exportS3Method bayestestR::bayesfactor_inclusion
bayesfactor_inclusion.model_comparison <- function(models, match_models = FALSE, prior_odds = NULL,
                                                   ...) {
  require_comparison(models, "bayesfactor_inclusion")
  use <- usable_models(models)
  table <- bayesfactor_models.model_comparison(use$x)
  # theirs are odds of each model against the first one
  if (is.null(prior_odds)) prior_odds <- exp(use$log_prior - use$log_prior[1])[-1]
  of_package("bayestestR", "bayesfactor_inclusion")(table, match_models = match_models,
                                                    prior_odds = prior_odds, ...)
}
