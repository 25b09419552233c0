# Prior objects as R functions of an unconstrained parameter: log density, its slope, draws. A prior
# of a positive number is one of exp(parameter), with the Jacobian.

#' Log density of a prior at a value of its own number
#' @noRd
prior_log_density <- function(prior, x) {
  z <- (x - prior$location) / prior$scale
  switch(prior$kind,
    normal = stats::dnorm(z, log = TRUE) - log(prior$scale),
    student_t = stats::dt(z, prior$shape, log = TRUE) - log(prior$scale),
    half_normal = log(2) + stats::dnorm(z, log = TRUE) - log(prior$scale),
    half_student = log(2) + stats::dt(z, prior$shape, log = TRUE) - log(prior$scale),
    # exp() of a parameter far below zero is zero
    inverse_gamma = ifelse(x == 0, -Inf, prior$shape * log(prior$scale) - lgamma(prior$shape) -
                             (prior$shape + 1) * log(x) - prior$scale / x),
    exponential = -z - log(prior$scale)
  )
}

#' Derivative of prior_log_density() by x
#' @noRd
prior_slope <- function(prior, x) {
  z <- (x - prior$location) / prior$scale
  switch(prior$kind,
    normal = , half_normal = -z / prior$scale,
    student_t = , half_student =
      -(prior$shape + 1) / (prior$shape / z + z) / prior$scale,
    inverse_gamma = (prior$scale / x - prior$shape - 1) / x,
    exponential = rep(-1 / prior$scale, length(x))
  )
}

#' Draws of the prior's own number, those beyond the range of numbers at its ends
#' @noRd
draws_of_prior <- function(prior, n) {
  draws <- switch(prior$kind,
    normal = stats::rnorm(n, prior$location, prior$scale),
    student_t = prior$location + prior$scale * stats::rt(n, prior$shape),
    half_normal = abs(stats::rnorm(n, 0, prior$scale)),
    half_student = abs(prior$scale * stats::rt(n, prior$shape)),
    inverse_gamma = prior$scale / stats::rgamma(n, prior$shape),
    exponential = stats::rexp(n, 1 / prior$scale)
  )
  if (prior$kind %in% REAL_PRIORS) draws
  else pmin(pmax(draws, .Machine$double.xmin), .Machine$double.xmax)
}

#' Independent priors of several parameters as the functions of custom_model()
#'
#' @param priors A list of priors, one for each parameter.
#' @param logs For each parameter whether it is the log of the number that has the prior.
#' @param vectorised Whether the functions take a matrix with a point in each row.
#' @return A list: `log_prior`, `prior_gradient`, `draw_prior`.
#' @noRd
prior_functions <- function(priors, logs = rep(FALSE, length(priors)), vectorised = FALSE) {
  parameter <- function(theta, j) if (vectorised) theta[, j] else theta[[j]]
  number <- function(theta, j) if (logs[j]) exp(parameter(theta, j)) else parameter(theta, j)
  each <- function(f) lapply(seq_along(priors), f)
  list(
    log_prior = function(theta) Reduce(`+`, each(function(j)
      prior_log_density(priors[[j]], number(theta, j)) + if (logs[j]) parameter(theta, j) else 0)),
    prior_gradient = function(theta) {
      slopes <- each(function(j) {
        x <- number(theta, j)
        if (logs[j]) 1 + x * prior_slope(priors[[j]], x) else prior_slope(priors[[j]], x)
      })
      if (vectorised) do.call(cbind, slopes) else unlist(slopes)
    },
    draw_prior = function(n) {
      draws <- vapply(priors, draws_of_prior, numeric(n), n = n)
      draws <- matrix(draws, n)
      draws[, logs] <- log(draws[, logs])
      draws
    }
  )
}
