# One rate of counts, or one probability, with its conjugate prior. Data are read as those of a
# regression without covariates.

#' Counts with one rate, successes with one probability
#'
#' The two smallest models of counts, with conjugate priors, so that evidence and posterior have
#' closed forms:
#' \deqn{y_i \sim \mathrm{Poisson}(t_i \lambda), \qquad \lambda \sim \mathrm{Gamma}(a, b);}{
#' y[i] ~ Poisson(t[i] lambda), lambda ~ Gamma(a, b);}
#' \deqn{y_i \sim \mathrm{Binomial}(n_i, p), \qquad p \sim \mathrm{Beta}(a, b).}{
#' y[i] ~ Binomial(n[i], p), p ~ Beta(a, b).}
#' They are null models in comparisons with [regression()], and models of segments for
#' [change_points()].
#'
#' @param formula `y ~ 1`, or `~ y` for short. For counts with exposures \eqn{t_i}
#'   `y ~ offset(log(t))`; for successes also `cbind(successes, failures) ~ 1`, as in
#'   [regression()].
#' @param shape,rate Prior of the rate: \eqn{a} and \eqn{b}, positive. Its mean is \eqn{a / b}.
#' @param shape1,shape2 Prior of the probability: \eqn{a} and \eqn{b}, positive. Its mean is
#'   \eqn{a / (a + b)}; 1 and 1, the default, is uniform.
#'
#' @details
#' **Data** are a data frame or a matrix with column names; the response is as for [regression()] of
#' the family [poisson()] or [binomial()].
#'
#' **Parameter**: `rate` or `probability`; in unconstrained space its logarithm or logit.
#'
#' @inherit gaussian_mean return
#'
#' @references Gelman, A. et al. (2013). *Bayesian Data Analysis*, third edition, chapter 2. Chapman
#' and Hall.
#'
#' @examples
#' evidence(poisson_rate(count ~ 1, shape = 2, rate = 0.2), InsectSprays, exact())
#' evidence(binomial_probability(~ am), mtcars, exact())
#'
#' @concept test of a proportion
#' @seealso [change_points()], [gaussian_mean()]
#' @family models
#' @export
poisson_rate <- function(formula, shape = 1, rate = 1) {
  new_conjugate("poisson_rate", formula, "poisson",
                list(shape = check_positive(shape, "shape"), rate = check_positive(rate, "rate")),
                "rate")
}

#' @rdname poisson_rate
#' @export
binomial_probability <- function(formula, shape1 = 1, shape2 = 1) {
  new_conjugate("binomial_probability", formula, "binomial",
                list(shape = check_positive(shape1, "shape1"),
                     other = check_positive(shape2, "shape2")), "probability")
}

new_conjugate <- function(name, formula, family, prior, parameter) {
  if (missing(formula)) fail("`formula` must be given, such as `y ~ 1`.")
  rule <- "a formula such as `y ~ 1` or `~ y`"
  require_value(formula, "formula", rule)
  if (!inherits(formula, "formula") || is.null(formula[[2]])) refuse(formula, "formula", rule)
  if (length(formula) == 2) {
    short <- formula
    formula <- y ~ 1
    formula[[2]] <- short[[2]]
    environment(formula) <- environment(short)
  }
  if (length(attr(formula_terms(formula, data.frame(.. = 0)), "term.labels")))
    refuse(formula, "formula", paste(rule, "without covariates"))
  as_read <- regression(formula, family)
  new_model(
    name, formula, c(prior, list(as_read = as_read, parameter = parameter)),
    encode_conjugate, encode_new_conjugate, describe_conjugate, decode = decode_conjugate,
    template = template_conjugate, from_user = from_user_conjugate,
    predictions = list(response = conjugate_mean), fitted = conjugate_mean, one_number = TRUE,
    family = function(model) glm_family(model$as_read), prior_moments = prior_moments_conjugate,
    limits = function(fit) limits_by_kind(fit, positive = "rate", shares = "probability"),
    closed = TRUE, advice = function(model) "Check the prior and the units of exposure."
  )
}

describe_conjugate <- function(model) {
  counts <- model$parameter == "rate"
  list(
    if (counts) "Counts with one rate" else "Successes with one probability",
    likelihood = paste0(deparse1(model$formula[[2]]), if (counts) " Poisson" else " binomial",
                        if (length(all.vars(model$formula[[3]])))
                          paste0(", ", deparse1(model$formula[[3]]))),
    prior = if (counts) paste0("rate gamma, shape ", show_setting(model$shape), ", rate ",
                               show_setting(model$rate))
    else paste0("probability beta, ", show_setting(model$shape), " and ",
                show_setting(model$other))
  )
}

# From the rows of a regression: an intercept, perhaps an offset, perhaps trials, the response.
conjugate_rows <- function(model, encoded, design) {
  rows <- encoded$rows
  size <- if (design$offset) exp(rows[2, ]) else if (design$extra) rows[nrow(rows) - 1, ] else 1
  rows <- rbind(rep_len(size, encoded$n), rows[nrow(rows), ])
  dimnames(rows) <- list(c(if (model$parameter == "rate") "exposure" else "trials",
                           design$response), NULL)
  encoded$rows <- rows
  encoded
}

encode_conjugate <- function(model, data, binding = AS_GIVEN) {
  encoded <- encode_regression(model$as_read, data)
  if (model$parameter == "probability" && encoded$design$offset)
    fail("`formula` must have no offset for a probability.")
  encoded <- conjugate_rows(model, encoded, encoded$design)
  encoded <- without_priors(encoded)
  names <- if (model$parameter == "rate") c("shape", "rate") else c("shape", "other")
  encoded[c("args", "theta_names", "user_names", "own", "pairing")] <-
    list(unclass(model)[names], paste0(if (model$parameter == "rate") "log_" else "logit_",
                                       model$parameter), model$parameter, NULL, NULL)
  encoded
}

encode_new_conjugate <- function(model, design, newdata, response = TRUE, argument = "newdata")
  conjugate_rows(model, encode_new_regression(model$as_read, design, newdata, response, argument),
                 design)

# Encoded rows as rows of a regression, of which only the last two are looked at.
decode_conjugate <- function(model, encoded, rows, data)
  decode_regression(model$as_read, encoded, rows, data)

template_conjugate <- function(model, data, n) {
  found <- template_regression(model$as_read, data, n)
  list(data = found$data, encoded = encode(model, found$data))
}

from_user_conjugate <- function(model, encoded, user)
  if (model$parameter == "rate") log(user) else stats::qlogis(user)

conjugate_mean <- function(fit, encoded)
  encoded$rows[1, ] * sum(exp(fit$log_weights) * fit$draws)

# The logarithm of a gamma variable has a long left tail.
prior_moments_conjugate <- function(model, encoded, words) {
  a <- model$shape
  rate <- model$parameter == "rate"
  limit <- function(tail) {
    p <- abs(tail - CONFLICT_PROBABILITY)
    if (rate) log(stats::qgamma(p, a, model$rate))
    else stats::qlogis(stats::qbeta(p, a, model$other))
  }
  mean <- digamma(a) - if (rate) log(model$rate) else digamma(model$other)
  moments_table(1, mean, sqrt(trigamma(a) + if (rate) 0 else trigamma(model$other)),
                encoded$theta_names, least = limit(0), most = limit(1))
}
