# Parameters of custom_model() on the user's scale, if they are not real numbers without bounds: by
# `bounds`, or by a `prior_transform` of the unit cube. The functions of the model become those of
# points z in unconstrained space.

#' How points in unconstrained space become parameters: a list of `to_user` and of `names`, the
#' names of the points; and for `bounds` also `from_user`, `slope` (of each parameter) and
#' `log_slope` (of all), and the slope `bend` of log_slope
#'
#' All functions take and return matrices with a point in each column.
#' @noRd
custom_scale <- function(parameters, prior_transform, bounds, vectorised) {
  if (!is.null(prior_transform)) cube_scale(parameters, prior_transform, vectorised)
  else if (!is.null(bounds)) bounded_scale(parameters, check_bounds(bounds, parameters))
}

check_prior_transform <- function(prior_transform, alone, gradient, bounds) {
  if (!is.function(prior_transform)) refuse(prior_transform, "prior_transform", "a function")
  if (!alone)
    fail("`log_prior` and `draw_prior` must be left out if there is a `prior_transform`, which is ",
         "the prior.")
  if (!is.null(gradient))
    fail("`gradient` must be NULL if there is a `prior_transform`: its derivatives are not known.")
  if (!is.null(bounds))
    fail("`bounds` must be NULL if there is a `prior_transform`, which has them.")
}

#' The functions of custom_model() that `prior` gives, and the bounds of its positive parameters
#'
#' @param alone Whether no other argument says something about the prior.
#' @param gibbs The values of parameters with few of them, or NULL: their prior is uniform, or
#'   numbers.
#' @noRd
check_custom_prior <- function(prior, parameters, alone, vectorised, gibbs = NULL) {
  if (!alone)
    fail("`log_prior`, `draw_prior`, `prior_gradient`, `prior_transform` and `bounds` must be ",
         "left out if there is a `prior`, which has them.")
  real <- parameters[real_parameters(parameters, gibbs)]
  shares <- NULL
  if (!is.null(gibbs)) {
    if (is_prior(prior)) prior <- list(prior)
    if (!is.list(prior) || is.object(prior))
      refuse(prior, "prior", "a list of priors by parameter")
    shares <- prior_shares(prior, gibbs)
    prior <- prior[setdiff(seq_along(prior), match(names(gibbs), names(prior)))]
  }
  priors <- if (length(real) || length(prior))
    match_priors(check_priors(prior, "prior", NA), "prior", real)
  positive <- vapply(priors, is_positive_prior, NA)
  functions <- prior_functions(priors, vectorised = vectorised)
  if (!is.null(gibbs))
    functions <- prior_with_shares(functions, parameters, gibbs, shares, vectorised)
  c(functions,
    list(bounds = if (any(positive)) lapply(priors[positive], function(prior) c(0, Inf)),
         shown = c(show_priors(priors), show_shares(gibbs, shares))))
}

# Uniform numbers that are as far from 0 and 1 as numbers can be tell a quantile function apart
# from an infinite quantile.
in_cube <- function(z)
  pmin(pmax(stats::pnorm(z), .Machine$double.xmin), 1 - .Machine$double.neg.eps)

cube_scale <- function(parameters, prior_transform, vectorised) {
  d <- length(parameters)
  list(names = paste0("z(", parameters, ")"), to_user = function(z) {
    u <- matrix(in_cube(z), d, dimnames = list(parameters, NULL))
    m <- ncol(u)
    values <- if (vectorised) prior_transform(t(u))
    else lapply(seq_len(m), function(i) prior_transform(stats::setNames(u[, i], parameters)))
    right <- if (vectorised) is.numeric(values) && length(values) == m * d &&
      (d == 1 || identical(dim(values), c(m, d)))
    else all(vapply(values, function(value) is.numeric(value) && length(value) == d, NA))
    if (!right)
      fail("`prior_transform` must return ", if (vectorised)
        paste0("a matrix of ", m, " x ", d, ", a row for each point") else
          paste0(count_of(d, "number"), ", one for each parameter"), ", not ",
        show_value(if (vectorised) values else Find(function(value)
          !is.numeric(value) || length(value) != d, values)), ".")
    user <- if (vectorised) t(matrix(values, m)) else matrix(unlist(values), d)
    if (!all(is.finite(user)))
      fail("`prior_transform` must return finite numbers inside the unit cube, not ",
           user[!is.finite(user)][1], ".")
    user
  })
}

# Beyond this the exponential is infinite.
LARGEST_LOG <- 700

check_bounds <- function(bounds, parameters) {
  rule <- "a list of lower and upper bounds by parameter, such as `list(sigma = c(0, Inf))`"
  if (!is.list(bounds) || !has_names(bounds)) refuse(bounds, "bounds", rule)
  unknown <- setdiff(names(bounds), parameters)
  if (length(unknown))
    fail("`bounds` must be named by parameters (", show_names(parameters), "), not by `",
         unknown[1], "`.")
  if (anyDuplicated(names(bounds)))
    fail("`bounds` must have one pair for each parameter, not several for `",
         names(bounds)[duplicated(names(bounds))][1], "`.")
  for (name in names(bounds)) {
    pair <- bounds[[name]]
    if (!is_plain_numeric(pair) || length(pair) != 2 || anyNA(pair) || pair[1] >= pair[2])
      refuse(pair, paste0("bounds$", name), "two numbers, the lower one first, such as `c(0, Inf)`")
  }
  all <- matrix(c(-Inf, Inf), 2, length(parameters), dimnames = list(NULL, parameters))
  all[, names(bounds)] <- unlist(bounds)
  all
}

bounded_scale <- function(parameters, bounds) {
  low <- bounds[1, ]
  high <- bounds[2, ]
  above <- is.finite(low) & !is.finite(high)
  below <- !is.finite(low) & is.finite(high)
  between <- is.finite(low) & is.finite(high)
  width <- high - low
  slope <- function(z) {
    found <- z * 0 + 1
    found[above, ] <- exp(z[above, ])
    found[below, ] <- -exp(z[below, ])
    found[between, ] <- width[between] * stats::dlogis(z[between, ])
    found
  }
  # "x - 2", "x + 2", or "x"
  above_low <- ifelse(low == 0, parameters, paste(parameters, ifelse(low < 0, "+", "-"), abs(low)))
  names <- parameters
  names[above] <- paste0("log(", above_low, ")")[above]
  names[below] <- paste0("log(", high, " - ", parameters, ")")[below]
  share <- ifelse(low == 0 & high == 1, parameters,
                  paste0(ifelse(low == 0, above_low, paste0("(", above_low, ")")), " / ", width))
  names[between] <- paste0("logit(", share, ")")[between]
  list(
    names = names, bounds = bounds, slope = slope,
    to_user = function(z) {
      z[above, ] <- low[above] + exp(pmin(z[above, ], LARGEST_LOG))
      z[below, ] <- high[below] - exp(pmin(z[below, ], LARGEST_LOG))
      z[between, ] <- low[between] + width[between] * stats::plogis(z[between, ])
      z
    },
    from_user = function(user) {
      user[above, ] <- log(user[above, ] - low[above])
      user[below, ] <- log(high[below] - user[below, ])
      user[between, ] <- stats::qlogis((user[between, ] - low[between]) / width[between])
      user
    },
    log_slope = function(z) {
      value <- colSums(z[above | below, , drop = FALSE])
      for (j in which(between)) value <- value + log(width[j]) + stats::dlogis(z[j, ], log = TRUE)
      value
    },
    bend = function(z) {
      found <- z * 0
      found[above | below, ] <- 1
      found[between, ] <- 1 - 2 * stats::plogis(z[between, ])
      found
    }
  )
}

#' The functions of a model as functions of points in unconstrained space
#'
#' @param functions A list of the user's functions, of which some may be NULL.
#' @param real Which parameters have gradients.
#' @noRd
rescaled_functions <- function(functions, scale, parameters, vectorised,
                               real = seq_along(parameters)) {
  d <- length(parameters)
  # points as the user's functions take them, and back to columns
  columns <- function(theta) if (vectorised) unname(t(theta)) else matrix(theta, d)
  points <- function(user) {
    if (!vectorised) return(stats::setNames(as.vector(user), parameters))
    dimnames(user) <- list(parameters, NULL)
    t(user)
  }
  user_at <- function(theta) points(scale$to_user(columns(theta)))
  at_user <- function(f) if (!is.null(f)) {
    if (length(formals(args(f))) == 1 && names(formals(args(f))) != "...")
      function(theta) f(user_at(theta))
    else function(theta, data) f(user_at(theta), data)
  }
  as_given <- function(gradient) if (vectorised) t(gradient) else gradient[, 1]
  slopes <- function(values, theta) {
    at <- columns(theta)
    if (!is.numeric(values) || length(values) != length(real) * ncol(at)) return(NULL)
    values <- if (vectorised) unname(t(values)) else matrix(values, length(real))
    values * scale$slope(at)[real, , drop = FALSE]
  }
  changed <- functions
  changed$log_likelihood <- at_user(functions$log_likelihood)
  changed$simulate <- if (!is.null(functions$simulate))
    function(theta, data) functions$simulate(stats::setNames(
      scale$to_user(matrix(theta, d))[, 1], parameters), data)
  if (is.null(scale$bounds)) {
    changed$log_prior <- function(theta) colSums(stats::dnorm(columns(theta), log = TRUE))
    changed$draw_prior <- function(n) matrix(stats::rnorm(n * d), n)
    return(changed)
  }
  changed$log_prior <- function(theta) {
    value <- functions$log_prior(user_at(theta))
    if (!is.numeric(value) || vectorised && length(value) != nrow(theta)) return(value)
    sum_of <- if (vectorised) value else sum(value)
    sum_of + scale$log_slope(columns(theta))
  }
  changed$draw_prior <- function(n) draws_in_bounds(functions$draw_prior(n), scale, d, n)
  if (!is.null(functions$gradient))
    changed$gradient <- function(theta, ...) {
      values <- functions$gradient(user_at(theta), ...)
      found <- slopes(values, theta)
      if (is.null(found)) values else as_given(found)
    }
  if (!is.null(functions$prior_gradient))
    changed$prior_gradient <- function(theta) {
      values <- functions$prior_gradient(user_at(theta))
      found <- slopes(values, theta)
      if (is.null(found)) values
      else as_given(found + scale$bend(columns(theta))[real, , drop = FALSE])
    }
  changed
}

draws_in_bounds <- function(values, scale, d, n) {
  if (!is.numeric(values) || length(values) != n * d) return(values)
  user <- t(matrix(values, n))
  outside <- which(user <= scale$bounds[1, ] | user >= scale$bounds[2, ], arr.ind = TRUE)
  if (nrow(outside))
    fail("`draw_prior` must return numbers inside `bounds`, not ", signif(user[outside[1, , drop =
         FALSE]], 7), " for `", colnames(scale$bounds)[outside[1, 1]], "`.")
  t(scale$from_user(user))
}

#' Points that the user gave, in unconstrained space
#' @noRd
from_user_custom <- function(model, encoded, user) {
  outside <- which(user <= model$scale$bounds[1, ] | user >= model$scale$bounds[2, ],
                   arr.ind = TRUE)
  if (nrow(outside))
    fail("`parameters` must be inside `bounds`, not ", signif(user[outside[1, , drop = FALSE]], 7),
         " for `", model$parameters[outside[1, 1]], "`.")
  model$scale$from_user(user)
}

#' The range of each parameter on the user's scale
#' @noRd
limits_custom <- function(fit) {
  limits <- positive_limits(fit)
  bounds <- fit$model$scale$bounds
  if (is.null(bounds)) limits else bounds
}

#' The prior as a printed model has it: a list, empty if it is a function
#' @noRd
describe_custom_prior <- function(model) {
  if (!is.null(model$shown_prior))
    list(prior = shorten(paste(model$shown_prior, collapse = ", "), 200))
  else if (!is.null(model$scale$bounds)) list(prior = "of parameters with bounds")
  else if (!is.null(model$scale)) list(prior = "by a transform of the unit cube")
}
