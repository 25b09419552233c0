# Predictions, averaged over the posterior. The C code of the model computes all densities, for a
# block of rows and all draws together, so that memory does not grow with the number of rows.

#' Predictions from a fit
#'
#' Predicts observations, averaged over the posterior draws of a fit: means with intervals, draws
#' from the posterior predictive distribution, classes, memberships of components, and densities.
#'
#' @param object A fit from [evidence()].
#' @param newdata New data in the form of those of the fit. The response is needed only for
#'   `"density"`. `NULL`, the default, for the data of the fit: those in its call, if they still
#'   exist, because a fit does not keep them (except with latent variables).
#' @param type What to predict; `NULL`, the default, is the first type of the model:
#'   * [linear_regression()], [gaussian_mean()]: `"response"`, the predictive mean of the response,
#'     offset included; `"expected"`, the same number, but with `interval` the limits of this mean;
#'     `"link"`, the posterior mean of the linear predictor (of a regression); `"draws"`; or
#'     `"density"`.
#'   * [regression()]: `"response"`, the predictive mean of the response; `"expected"`; `"link"`;
#'     `"draws"`; or `"density"`. For a binomial response of two classes also `"probability"` of
#'     each class, and `"class"`, the most probable class.
#'   * [softmax_regression()]: `"probability"`, the probability of each class; `"class"`, the most
#'     probable class; `"draws"`; or `"density"`.
#'   * [gaussian_mixture()]: `"density"`; `"probability"`, the probability that a row belongs to
#'     each component (its membership); `"class"`, the most probable component; or `"draws"`.
#'   * [clustering()]: `"density"`, `"probability"` or `"class"`, as for a mixture.
#'   * any other model: `"density"`; also `"draws"` if the model can simulate data, and `"response"`
#'     if it has a mean.
#' @param ... Must be empty; the arguments after it must be named in full.
#' @param interval A level, such as 0.9, for intervals of equal tails; `NULL`, the default, for
#'   none. With `"response"` they are those of a new response (0 and 1 for most binary ones), with
#'   `"expected"` those of its mean given the parameters, such as the probability of a binary
#'   response, with `"link"` those of the linear predictor.
#' @param draws Number of draws for `"draws"` and for the interval of a response; `NULL`, the
#'   default, for 1,000.
#' @param groups Of a model with group-level terms: `TRUE`, the default, for predictions with the
#'   effects of the groups, and for groups that the fit has not seen averages over the distribution
#'   of effects; `FALSE` for predictions with effects of zero, which need no columns of groups.
#' @param seed A whole number from 0 to 2^53 that makes draws reproducible without using R's
#'   generator; `NULL`, the default, takes the seed from R's generator, so that [set.seed()] works.
#'
#' @details
#' `"draws"` are responses simulated by the model, each row for parameters that are drawn from the
#' posterior in proportion to the weights of the fit's draws (by systematic resampling, so that all
#' draws of the result have equal weight). They are what `posterior_predict()` of other packages
#' gives. The limits of a response's interval are quantiles of such draws (counts, where all draws
#' are counts), those of the linear predictor are weighted quantiles of the fit's draws.
#'
#' `"density"` is the natural logarithm of each row's predictive density (for classes, of the
#' probability of the observed class): \eqn{\log \sum_i W_i\, p(y \mid x, \theta_i)}{log sum_i W[i]
#' p(y | x, theta[i])} over draws \eqn{\theta_i}{theta[i]} of weight \eqn{W_i}{W[i]}.
#'
#' If a formula transforms the response, as in `log(y) ~ x`, means, draws and densities are those of
#' the transformed response. For `cbind(successes, failures)` they are those of the number of
#' successes; rows without these columns have one trial. Draws of censored times are times of
#' events, without censoring. With [lags()] of the response each row is predicted from the rows
#' before it in the data.
#'
#' In models with latent variables ([clustering()], [low_rank()], [binary_attributes()]) \eqn{p(y
#' \mid \theta_i)}{p(y | theta[i])} is the density of a new row given draw \eqn{i} and the rows of
#' the fit: the latent variable of the row, the centres and the features are summed or integrated
#' out. Each row is predicted separately, not given the other rows of `newdata`, and rows of the fit
#' are predicted as if they were new rows.
#'
#' The numbering of a mixture's components is arbitrary: only the grouping of rows has a meaning.
#' Before draws are averaged their components are numbered alike.
#'
#' @section Files of others:
#' A fit may contain R functions, in its model and its formulas, and `predict()` runs them. They can
#' do whatever you can do: if you read a fit by [readRDS()] or [load()], use only files that you
#' trust.
#'
#' @return For `"probability"` a matrix with a row for each row of the data and a named column for
#'   each class or component; for `"class"` a factor; for `"draws"` a matrix of draws x rows, of
#'   numbers, or of codes whose classes are its attribute `"levels"`, or an array of draws x rows x
#'   columns for a mixture of several columns; with `interval` a matrix of the columns `fit`,
#'   `lower` and `upper`; else a numeric vector.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' new <- data.frame(speed = c(10, 20))
#' predict(fit, new)
#' predict(fit, new, interval = 0.9, seed = 1)
#' predict(fit, new, type = "expected", interval = 0.9)
#' dim(predict(fit, new, type = "draws", draws = 200, seed = 1))
#' predict(fit, data.frame(speed = c(10, 20), dist = c(25, 60)), type = "density")
#'
#' @seealso [simulate()][simulate.evidence] for replicated data, [log_lik()], [posterior_draws()]
#' @export
predict.evidence <- function(object, newdata = NULL, type = NULL, ..., interval = NULL,
                             draws = NULL, seed = NULL, groups = TRUE) {
  check_prediction_dots(...)
  model <- object$model
  population <- !check_flag(groups, "groups")
  if (population && is.null(model$group_terms))
    fail("`groups` must be TRUE for a model without group-level terms.")
  types <- prediction_types(model)
  type <- if (is.null(type)) types[1] else check_choice(type, "type", types)
  interval <- check_interval(interval, type, types)
  simulates <- type == "draws" || type == "response" && !is.null(interval)
  draws <- check_number_of_draws(draws, simulates)
  if (simulates) require_simulation(model, "`interval`")
  words <- if (simulates) seed_words(seed) else if (!is.null(seed)) refuse_without_draws("seed")
  if (population) {
    if (type == "density") fail("`groups` must be TRUE for type \"density\".")
    if (is.null(newdata)) {
      own_data(object, NULL, parent.frame(), "newdata") # an error if they are others
      newdata <- given_data(object, NULL, parent.frame(), "newdata")
    }
    object <- population_fit(object)
    model <- object$model
  }
  encoded <- rows_to_predict(object, newdata, parent.frame(), type == "density")
  answer <- if (is.null(encoded$answer)) encoded$args$answer else encoded$answer
  if (!is.null(answer)) object$args$answer <- answer
  if (type == "density") {
    refuse_new_groups(object, newdata)
    return(log_predictive_density(object, encoded$rows))
  }
  encoded <- by_observation(encoded)
  object <- prepared(object)
  if (type == "link") return(link_summary(object, encoded, interval))
  if (type == "expected") return(expected_summary(object, encoded, interval))
  if (type == "draws")
    return(predictive_draws(object, encoded, equal_points(object, draws, words), words))
  found <- part_of(model, "predictions")[[type]](object, encoded)
  if (is.null(interval)) found
  else predictive_interval(object, encoded, found, interval, draws, words)
}

# The first is the default; all models have the density.
prediction_types <- function(model) {
  own <- names(part_of(model, "predictions"))
  more <- c(if (!is.null(part_of(model, "link"))) "link", if ("response" %in% own) "expected",
            if (can_simulate(model)) "draws")
  if (length(own)) unique(c(own, more, "density")) else c("density", more)
}

# Arguments of other packages whose meaning an argument here has.
check_prediction_dots <- function(...) {
  known <- c(level = "interval = 0.9", probs = "interval = 0.9", ndraws = "draws = 500",
             nsamples = "draws = 500", re.form = "groups = FALSE", re_formula = "groups = FALSE",
             ReForm = "groups = FALSE")
  if ("allow.new.levels" %in% ...names())
    fail("`allow.new.levels` is not an argument: effects of groups that the fit has not seen are ",
         "drawn from their distribution.")
  other <- intersect(...names(), names(known))
  if (length(other)) {
    use <- known[[other[1]]]
    fail("`", other[1], "` is not an argument: use `", sub(" .*", "", use), "`, as in `", use,
         "`.")
  }
  check_no_dots(...)
}

check_interval <- function(interval, type, types) {
  if (is.null(interval)) return(NULL)
  if (!is_one_number(interval) || interval <= 0 || interval >= 1)
    refuse(interval, "interval",
           paste("a level between 0 and 1, such as 0.9 (of a new response with `type =",
                 "\"response\"`, of its mean with `type = \"expected\"`, of the linear predictor",
                 "with `type = \"link\"`)"))
  with_interval <- intersect(c("response", "expected", "link"), types)
  if (!length(with_interval))
    fail("`interval` must be NULL for this model, whose predictions have no intervals.")
  if (!type %in% with_interval)
    fail("`interval` must be NULL for type ", dQuote(type, FALSE), ": it is for ",
         either(dQuote(with_interval, FALSE)), if (type %in% c("probability", "class") &&
           "expected" %in% types) ", of which \"expected\" has that of the probability", ".")
  as.double(interval)
}

check_number_of_draws <- function(draws, simulates) {
  if (is.null(draws)) return(PREDICTIVE_DRAWS)
  if (!simulates) refuse_without_draws("draws")
  check_count(draws, "draws", 1, 1e6)
}

refuse_without_draws <- function(argument) {
  fail("`", argument, "` must be NULL unless `type` is \"draws\", or \"response\" with an ",
       "`interval`.")
}
