# Parameters of custom_model() with few values (`gibbs`), which C draws by Gibbs steps.

# More would make each step slow: the density is evaluated at each value.
MOST_VALUES <- 1000

#' The values of parameters: a list named by them, or NULL
#' @noRd
check_gibbs <- function(gibbs, parameters) {
  if (is.null(gibbs)) return(NULL)
  if (!is.list(gibbs) || is.object(gibbs) || !has_names(gibbs))
    refuse(gibbs, "gibbs", "a list of values by parameter, such as `list(z = 0:1)`")
  unknown <- setdiff(names(gibbs), parameters)
  if (length(unknown))
    fail("`gibbs` must be named by parameters (", show_names(parameters), "), not by `",
         unknown[1], "`.")
  for (name in names(gibbs)) {
    values <- gibbs[[name]]
    if (!is_plain_numeric(values) || length(values) < 2 || length(values) > MOST_VALUES ||
        !all(is.finite(values)) || anyDuplicated(values))
      refuse(values, paste0("gibbs$", name),
             paste("two to", count(MOST_VALUES), "different numbers, such as `0:1`"))
  }
  lapply(gibbs[intersect(parameters, names(gibbs))], as.double)
}

#' Refuse what gives parameters with few values a scale of their own
#' @noRd
check_gibbs_alone <- function(gibbs, prior_transform, bounds) {
  if (is.null(gibbs)) return(invisible())
  if (!is.null(prior_transform))
    fail("`prior_transform` must be NULL if there is `gibbs`: give `prior`, or `log_prior` and ",
         "`draw_prior`.")
  bounded <- intersect(names(bounds), names(gibbs))
  if (length(bounded))
    fail("`bounds` must leave out `", bounded[1], "`, whose values are in `gibbs`.")
}

#' Which of the parameters are real numbers
#' @noRd
real_parameters <- function(parameters, gibbs) which(!parameters %in% names(gibbs))

#' Probabilities of the values in `gibbs` that `prior` gives: equal ones, unless it has numbers
#' @noRd
prior_shares <- function(prior, gibbs) {
  lapply(stats::setNames(nm = names(gibbs)), function(name) {
    n <- length(gibbs[[name]])
    share <- prior[[name]]
    if (is.null(share)) return(rep(1 / n, n))
    if (!is_plain_numeric(share) || length(share) != n || anyNA(share) || any(share <= 0) ||
        abs(sum(share) - 1) > 1e-8)
      refuse(share, paste0("prior$", name), paste0(
        n, " positive numbers with the sum 1, the probabilities of ",
        shorten(paste(gibbs[[name]], collapse = ", "), 40), " (see `gibbs`)"))
    as.double(share)
  })
}

#' The functions of a prior of real parameters and of independent others with these probabilities
#'
#' @param of_real What prior_functions() gives for the real parameters.
#' @noRd
prior_with_shares <- function(of_real, parameters, gibbs, shares, vectorised) {
  force(of_real)
  real <- real_parameters(parameters, gibbs)
  at <- match(names(gibbs), parameters)
  log_shares <- function(theta) {
    sum <- 0
    for (k in seq_along(at)) {
      value <- if (vectorised) theta[, at[k]] else theta[[at[k]]]
      sum <- sum + log(shares[[k]])[match(value, gibbs[[k]])]
    }
    as.vector(sum)
  }
  reals <- function(theta) if (vectorised) theta[, real, drop = FALSE] else theta[real]
  list(
    log_prior = function(theta)
      log_shares(theta) + if (length(real)) of_real$log_prior(reals(theta)) else 0,
    prior_gradient = function(theta) if (length(real)) of_real$prior_gradient(reals(theta))
    else if (vectorised) matrix(0, nrow(theta), 0) else numeric(),
    draw_prior = function(n) {
      draws <- matrix(0, n, length(parameters))
      if (length(real)) draws[, real] <- of_real$draw_prior(n)
      for (k in seq_along(at))
        draws[, at[k]] <- gibbs[[k]][sample.int(length(gibbs[[k]]), n, TRUE, shares[[k]])]
      draws
    }
  )
}

show_shares <- function(gibbs, shares) {
  vapply(names(gibbs), function(name) {
    values <- shorten(paste(gibbs[[name]], collapse = ", "), 40)
    even <- all(shares[[name]] == shares[[name]][1])
    paste0(name, " ~ ", if (even) "equal probabilities" else
      paste0("probabilities ", shorten(paste(signif(shares[[name]], 4), collapse = ", "), 40)),
      " of ", values)
  }, "", USE.NAMES = FALSE)
}

# Draws must be among the values.
check_drawn_values <- function(draws, parameters, gibbs) {
  for (name in names(gibbs)) {
    drawn <- draws[, match(name, parameters)]
    off <- which(is.na(match(drawn, gibbs[[name]])))
    if (length(off))
      fail("`draw_prior` must return one of the values in `gibbs` for `", name, "`, not ",
           signif(drawn[off[1]], 7), ".")
  }
}

describe_gibbs <- function(gibbs) {
  if (is.null(gibbs)) return(NULL)
  values <- lengths(gibbs)
  list(gibbs = paste0(count_of(length(gibbs), "parameter"), " of ",
                      if (any(values < max(values))) "up to ", count(max(values)), " values"))
}
