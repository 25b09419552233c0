# Methods for the generics of packages rstantools, loo and bayesplot, which other packages of
# Bayesian regressions share. R registers them when one of these packages is loaded; this package
# does not need them.

#' Predictive draws, cross-validation and checks, by the generics of other packages
#'
#' The generics of packages \pkg{rstantools} (which \pkg{rstanarm} and \pkg{brms} share), \pkg{loo}
#' and \pkg{bayesplot} work for fits of [evidence()]: `posterior_predict()`, `posterior_epred()`,
#' `posterior_linpred()`, `predictive_interval()`, `predictive_error()`, `posterior_interval()` and
#' `bayes_R2()`; `loo()` and `waic()`; and `pp_check()`. This package does not need these packages.
#'
#' @param object,x A fit from [evidence()].
#' @param newdata,draws,seed As for [predict()][predict.evidence]: other data than those of the fit,
#'   number of draws of equal weight (`NULL` for 1,000; for `loo()` and `waic()` as many as the fit
#'   has), and a whole number that makes them reproducible.
#' @param transform For `posterior_linpred()`: must be `FALSE`; `posterior_epred()` has the means.
#' @param prob Probability of the intervals.
#' @param pars Names of parameters; all by default.
#' @param type For `pp_check()`: the name of a picture of \pkg{bayesplot} without its `ppc_`, such
#'   as `"hist"` or `"stat"`; `NULL`, the default, is `"bars"` for few whole numbers, otherwise
#'   `"dens_overlay"`.
#' @param ... For `pp_check()` arguments of the picture, such as `stat = "max"`; for `loo()` and
#'   `waic()` those of their methods for matrices; otherwise empty.
#'
#' @details
#' All are computed from draws of equal weight, resampled from those of the fit, so that no chains
#' and no autocorrelation stand behind them: `r_eff` is 1. Classes have codes from 1 in draws, as
#' in [predict()][predict.evidence]; a binary response is 0 and 1. `posterior_epred()` is the mean
#' of each response given the parameters, for [softmax_regression()] an array of draws x rows x
#' classes. `bayes_R2()` is of proportions, if rows have several trials.
#'
#' The evidence of a model and its cross-validation answer different questions; see [log_lik()].
#'
#' @return A matrix of draws x rows; for intervals a matrix with a row for each row or parameter;
#'   for `bayes_R2()` a number for each draw; for `loo()` and `waic()` objects of \pkg{loo}; for
#'   `pp_check()` a ggplot.
#'
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- evidence(linear_regression(dist ~ speed, prior_sd = 10), cars, seed = 1)
#' dim(rstantools::posterior_predict(fit, draws = 100, seed = 1))
#' rstantools::predictive_interval(fit, newdata = data.frame(speed = c(5, 20)), seed = 1)
#' median(rstantools::bayes_R2(fit, seed = 1))
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' fit <- evidence(linear_regression(dist ~ speed, prior_sd = 10), cars, seed = 1)
#' loo::loo(fit, seed = 1)
#'
#' @seealso [predict.evidence()], [log_lik()], [as_draws()][as_draws.evidence]
#' @name posterior_predict.evidence
NULL

#' @rdname posterior_predict.evidence
#' @exportS3Method rstantools::posterior_predict
posterior_predict.evidence <- function(object, newdata = NULL, draws = NULL, seed = NULL, ...) {
  check_prediction_dots(...)
  in_frame(predict.evidence, list(object, newdata, "draws", draws = draws, seed = seed),
           parent.frame())
}

#' @rdname posterior_predict.evidence
#' @exportS3Method rstantools::posterior_epred
posterior_epred.evidence <- function(object, newdata = NULL, draws = NULL, seed = NULL, ...) {
  check_prediction_dots(...)
  kind <- if ("response" %in% prediction_types(object$model)) "response" else "probability"
  if (kind == "probability") require_response(object, "posterior_epred")
  found <- rows_of_fit(object, newdata, parent.frame())
  at <- some_draws(found$fit, draws, seed)
  means <- mean_draws(at$fit, found$encoded, kind)
  if (kind == "response") return(t(means)[at$of, , drop = FALSE])
  both <- array(unlist(means), c(dim(means[[1]]), length(means)),
                list(NULL, NULL, names(means)))
  aperm(both, c(2, 1, 3))[at$of, , , drop = FALSE]
}

#' @rdname posterior_predict.evidence
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.evidence <- function(object, transform = FALSE, newdata = NULL, draws = NULL,
                                       seed = NULL, ...) {
  check_prediction_dots(...)
  if (check_flag(transform, "transform"))
    fail("`transform` must be FALSE: posterior_epred() has the means of the response.")
  link <- part_of(object$model, "link")
  if (is.null(link)) no_verb(object, "posterior_linpred", "linear predictor", "predict()")
  found <- rows_of_fit(object, newdata, parent.frame())
  at <- some_draws(found$fit, draws, seed)
  t(link(at$fit, found$encoded$rows, found$encoded$offset))[at$of, , drop = FALSE]
}

#' The rows to predict, and the fit with what predictions need
#' @noRd
rows_of_fit <- function(fit, newdata, envir) {
  encoded <- by_observation(rows_to_predict(fit, newdata, envir, FALSE))
  list(fit = with_draws(prepared(fit)), encoded = encoded)
}

#' Draws of equal weight: a fit with the distinct ones, and which of them each draw is
#' @noRd
some_draws <- function(fit, draws, seed) {
  draws <- check_number_of_draws(draws, TRUE)
  restore <- own_generator(seed_words(seed), keep = FALSE)
  on.exit(restore())
  use <- resample(exp(fit$log_weights), draws)
  distinct <- unique(use)
  effects <- lapply(fit$effects, function(all) all[, , distinct, drop = FALSE])
  list(fit = list(model = fit$model, args = fit$args, design = fit$design,
                  effects = if (length(effects)) effects,
                  parameters = fit$parameters[distinct, , drop = FALSE],
                  draws = fit$draws[distinct, , drop = FALSE],
                  log_weights = rep(-log(length(distinct)), length(distinct))),
       of = match(use, distinct))
}

#' @rdname posterior_predict.evidence
#' @exportS3Method rstantools::predictive_interval
predictive_interval.evidence <- function(object, prob = 0.9, newdata = NULL, draws = NULL,
                                         seed = NULL, ...) {
  check_prediction_dots(...)
  of_package("rstantools", "predictive_interval")(
    plain_draws(object, newdata, draws, seed, parent.frame()), prob = prob)
}

# Draws of one number for each row.
plain_draws <- function(fit, newdata, draws, seed, envir) {
  drawn <- in_frame(posterior_predict.evidence, list(fit, newdata, draws, seed), envir)
  if (length(dim(drawn)) > 2)
    fail("The responses must be one number for each row, not ", dim(drawn)[3], ".")
  structure(drawn, levels = NULL)
}

#' @rdname posterior_predict.evidence
#' @exportS3Method rstantools::predictive_error
predictive_error.evidence <- function(object, newdata = NULL, draws = NULL, seed = NULL, ...) {
  check_prediction_dots(...)
  response <- response_of_rows(object, newdata, parent.frame(), "predictive_error")
  of_package("rstantools", "predictive_error")(
    plain_draws(object, newdata, draws, seed, parent.frame()), y = response)
}

#' The responses of rows as numbers, in the form of their draws
#' @noRd
response_of_rows <- function(fit, newdata, envir, verb) {
  if (is_latent(fit$model)) no_verb(fit, verb, "single response", "predict()")
  encoded <- by_observation(rows_to_predict(fit, newdata, envir, TRUE))
  y <- plain_response(part_of(fit$model, "responses")(fit, encoded$rows, encoded$offset))
  as.double(y)
}

#' @rdname posterior_predict.evidence
#' @exportS3Method rstantools::posterior_interval
posterior_interval.evidence <- function(object, prob = 0.9, pars = NULL, ...) {
  check_no_dots(...)
  draws <- coefficient_draws(object, "posterior_interval")
  credible_limits(draws, exp(object$log_weights), pars, prob, "prob")
}

#' @rdname posterior_predict.evidence
#' @exportS3Method rstantools::bayes_R2
bayes_R2.evidence <- function(object, newdata = NULL, draws = NULL, seed = NULL, ...) {
  check_prediction_dots(...)
  require_response(object, "bayes_R2")
  means <- in_frame(posterior_epred.evidence, list(object, newdata, draws, seed), parent.frame())
  if (length(dim(means)) > 2)
    no_verb(object, "bayes_R2", "response that is a number", "predict()")
  y <- response_of_rows(object, newdata, parent.frame(), "bayes_R2")
  trials <- trials_of_rows(object, newdata, parent.frame())
  means <- sweep(means, 2, trials, `/`)
  explained <- apply(means, 1, stats::var)
  explained / (explained + apply(sweep(means, 2, y / trials), 1, stats::var))
}

trials_of_rows <- function(fit, newdata, envir) {
  if (!isTRUE(fit$design$extra) || !counts_trials(part_of(fit$model, "family")(fit$model)))
    return(1)
  rows <- by_observation(rows_to_predict(fit, newdata, envir, TRUE))$rows
  rows[nrow(rows) - 1, ]
}

#' @rdname posterior_predict.evidence
#' @exportS3Method loo::loo
loo.evidence <- function(x, ..., draws = NULL, seed = NULL) {
  each <- several_parts(in_frame(log_lik.evidence, list(x, draws = draws, seed = seed),
                                 parent.frame()), "loo")
  of_package("loo", "loo")(each, r_eff = rep(1, ncol(each)), ...)
}

#' @rdname posterior_predict.evidence
#' @exportS3Method loo::waic
waic.evidence <- function(x, ..., draws = NULL, seed = NULL) {
  each <- several_parts(in_frame(log_lik.evidence, list(x, draws = draws, seed = seed),
                                 parent.frame()), "waic")
  of_package("loo", "waic")(each, ...)
}

# Crossed groups have one density of all rows, which nothing can be left out of.
several_parts <- function(each, verb) {
  if (ncol(each) < 2)
    fail(verb, "() needs several rows or groups that are independent given the parameters. In a ",
         "fit of crossed groups all rows are one.")
  each
}

# Whole numbers of at most so many values are shown as bars.
MOST_BARS <- 20

#' @rdname posterior_predict.evidence
#' @exportS3Method bayesplot::pp_check
pp_check.evidence <- function(object, type = NULL, ..., newdata = NULL, draws = 50, seed = NULL) {
  y <- response_of_rows(object, newdata, parent.frame(), "pp_check")
  replicated <- plain_draws(object, newdata, draws, seed, parent.frame())
  values <- unique(y)
  if (is.null(type))
    type <- if (all(y == round(y)) && length(values) <= MOST_BARS) "bars" else "dens_overlay"
  picture <- paste0("ppc_", if (is_one_string(type)) sub("^ppc_", "", type))
  if (!picture %in% getNamespaceExports("bayesplot"))
    refuse(type, "type",
           "the name of a picture of bayesplot without its `ppc_`, such as \"hist\" or \"stat\"")
  of_package("bayesplot", picture)(y, replicated, ...)
}
