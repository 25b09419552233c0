# Change points of some coefficients (`changes` of change_points()): the other coefficients and the
# noise are shared by all segments.
#
# Given the shared parameters, segments are independent, and the sums over all ways to divide the
# rows (R/change-grid.R) are those of a regression with known noise on what the shared part leaves.
# The integral over the shared parameters is by importance sampling: for each number of changes the
# mode of shared parameters is found, and all numbers of changes have the same draws, from a
# mixture of t distributions around these modes.

# Blocks of rows, between which changes are possible: of the refined grid before blocks with changes
# are divided, and of the first grid. Up to twice SHARED_BLOCKS rows each row is a position.
SHARED_BLOCKS <- 100
FIRST_BLOCKS <- 48
# The grid is made again if the modes move by more standard deviations than this.
SHARED_MOVED <- 0.5
SHARED_ROUNDS <- 4
# Degrees of freedom of the t distributions.
SHARED_TAIL <- 5
# Draws are added until the standard error of each log evidence is below the first number, or the
# second for improbable numbers of changes. There are between SHARED_DRAWS[1] and [2] of them.
SHARED_ERROR <- c(0.03, 0.06)
SHARED_DRAWS <- c(400, 4000)
# Positions are computed for so many of these draws: given the most probable number of changes,
# given the other numbers, and given those whose posterior probability is below SHARED_SHARE.
SHARED_LOOKS <- c(200, 40, 1)
SHARED_SHARE <- 1e-3
# There is a warning if draws have a smaller effective number than SHARED_LEAST, given a number of
# changes with a probability above SHARED_DOUBT.
SHARED_LEAST <- 50
SHARED_DOUBT <- 0.01

#' Which coefficients change; NULL if all parameters of a segment are its own
#'
#' @param changes A formula without a response, or NULL.
#' @return A logical vector.
#' @noRd
moving_coefficients <- function(model, data, encoded, changes) {
  if (is.null(changes)) return(NULL)
  if (!inherits(changes, "formula") || length(changes) != 2)
    refuse(changes, "changes", paste("NULL or a formula without a response, such as `~ 1` for the",
                                     "intercept"))
  if (!part_of(model, "normal"))
    fail("`changes` is for linear regressions of numbers with normal noise, ",
         "linear_regression() or regression() of the gaussian family: with other models all ",
         "parameters of a segment are its own, and `changes` must be NULL.")
  known <- encoded$design$covariates
  named <- if (is.null(model$formula)) changed_columns(changes) else {
    full <- model$formula
    full[[3]] <- changes[[2]]
    input_from_formula(full, data, lag = model_lag(model))$design$covariates
  }
  strange <- setdiff(named, known)
  if (length(strange)) {
    if (identical(strange, INTERCEPT) && length(named) > 1)
      fail("`changes` must leave out the intercept, which the model does not have: ",
           "write `~ 0 + ", deparse1(changes[[2]]), "`.")
    fail("`changes` must have terms of the model, whose coefficients are ", show_names(known),
         ", not ", show_names(strange), ".")
  }
  moving <- known %in% named
  if (!any(moving)) fail("`changes` must have at least one term.")
  priors <- encoded$design$priors[known]
  kinds <- vapply(priors[moving], .subset2, "", "kind")
  if (any(kinds != "normal"))
    fail("Coefficients that change must have normal priors, and that of `",
         known[moving][kinds != "normal"][1], "` is ", kinds[kinds != "normal"][1], ".")
  if (all(moving) && !is.null(model$family$sigma)) return(NULL)
  moving
}

shares_intercept <- function(moving, covariates) {
  at <- match(INTERCEPT, covariates)
  !is.null(moving) && !is.na(at) && !moving[at]
}

# The names of the coefficients that change, of a model without a formula.
changed_columns <- function(changes) {
  terms <- stats::terms(changes)
  c(if (attr(terms, "intercept") == 1) INTERCEPT, attr(terms, "term.labels"))
}

#' A series whose segments share parameters
#' @noRd
shared_series <- function(model, data, encoded, moving, least, words) {
  covariates <- encoded$design$covariates
  priors <- encoded$design$priors
  rows <- encoded$rows
  offset <- if (isTRUE(encoded$design$offset)) rows[length(covariates) + 1, ] else 0
  noise <- model$family$sigma
  list2env(list(
    model = model, type = model_type(model), args = encoded$args, design = encoded$design,
    encoded = encoded, data = data, n = encoded$n, words = words, names = encoded$theta_names,
    kind = "shared", least = if (is.null(least)) 1 else least, moving = moving, noise = noise,
    priors = c(priors[covariates][!moving], if (is.null(noise)) priors["sigma"]),
    # rows of this matrix: the columns whose coefficients change, the others, and the response
    values = rbind(rows[which(moving), , drop = FALSE], rows[which(!moving), , drop = FALSE],
                   rows[nrow(rows), ] - offset),
    moving_priors = prior_args(priors[covariates][moving])
  ), parent = emptyenv())
}

is_shared <- function(series) series$kind == "shared"

# `theta` has the shared coefficients, and log(sigma) if it is not known.
shared_sigma <- function(series, theta)
  if (is.null(series$noise)) exp(theta[[length(theta)]]) else series$noise

shared_slopes <- function(series, theta) theta[seq_len(sum(!series$moving))]

log_prior_of_shared <- function(series, theta) {
  x <- theta
  last <- length(theta)
  if (is.null(series$noise)) x[last] <- exp(theta[last])
  sum(mapply(prior_log_density, series$priors, x)) + if (is.null(series$noise)) theta[last] else 0
}

# Rows without their shared part: the columns whose coefficients change, and the response minus the
# shared part of its mean.
left_of_rows <- function(series, theta, values) {
  q <- sum(series$moving)
  p <- nrow(values) - 1
  shared <- seq_len(p - q) + q
  rbind(values[seq_len(q), , drop = FALSE],
        values[p + 1, ] - shared_slopes(series, theta) %*% values[shared, , drop = FALSE])
}

#' The series of one draw of the shared parameters: a regression with known noise
#' @noRd
inner_series <- function(series, theta, values = series$values) {
  rows <- left_of_rows(series, theta, values)
  args <- c(list(covariates = as.double(sum(series$moving)), sigma = shared_sigma(series, theta)),
            series$moving_priors)
  list2env(list(model = series$model, kind = "closed", type = "linear_regression", args = args,
                tables = .Call(ffi_segment_tables, "linear_regression", args, rows),
                encoded = list(rows = rows), n = series$n, least = series$least,
                names = rownames(rows), blocks = SHARED_BLOCKS, every_row = 2 * SHARED_BLOCKS),
           parent = emptyenv())
}

#' Rows between boundaries as triangular factors, which give the same likelihoods as the rows
#'
#' @return A list: `bounds`, `values`, as of the series, `cells`, the block of each column, `lost`,
#'   how many rows fewer there are, and `log_weight` and `ways`, of boundaries and of divisions.
#' @noRd
shared_blocks <- function(series, bounds) {
  width <- nrow(series$values)
  parts <- lapply(seq_len(length(bounds) - 1), function(b) {
    own <- series$values[, seq(bounds[b] + 1, bounds[b + 1]), drop = FALSE]
    if (ncol(own) <= width) return(own)
    factor <- qr(t(own), tol = 0)
    t(qr.R(factor)[, order(factor$pivot), drop = FALSE])
  })
  sizes <- vapply(parts, ncol, 1L)
  log_weight <- boundary_rows(bounds, series$n)$log_weight
  list(bounds = bounds, values = do.call(cbind, parts), cells = rep(seq_along(parts), sizes),
       lost = series$n - sum(sizes), log_weight = log_weight,
       ways = log_ways(bounds, log_weight, min(series$most, length(parts) - 1), series$least))
}

#' The log evidence of each number of changes given shared parameters; with `whole`, all sums
#' @noRd
shared_sums <- function(series, blocks, theta, whole = FALSE) {
  inner <- inner_series(series, theta, blocks$values)
  m <- length(blocks$bounds) - 1
  sums <- add_to_sums(inner, inner$encoded$rows, blocks$cells, NULL, m)
  value <- .Call(ffi_segments, inner$type, inner$args, inner$tables, sums,
                 as.double(blocks$bounds), series$least)
  all <- .Call(ffi_segments_sums, value, blocks$log_weight, length(blocks$ways) - 1, whole)
  total <- all$first[m + 1, ] - blocks$ways - lost_rows(series, blocks, theta)
  if (!whole) return(total)
  list(bounds = blocks$bounds, n = series$n, log_evidence = value, log_weight = blocks$log_weight,
       first = all$first, last = all$last, total = total)
}

# The constant of the log-likelihood for rows that triangular factors have replaced.
lost_rows <- function(series, blocks, theta)
  blocks$lost * (log(2 * pi) / 2 + log(shared_sigma(series, theta)))

# Modes -------------------------------------------------------------------------------------------

#' A first guess: all rows in one segment
#' @noRd
shared_start <- function(series) {
  q <- sum(series$moving)
  values <- series$values
  p <- nrow(values) - 1
  x <- t(values[seq_len(p), , drop = FALSE])
  fit <- stats::lm.fit(x, values[p + 1, ])
  slopes <- fit$coefficients[seq_len(p) > q]
  slopes[is.na(slopes)] <- 0
  spread <- sqrt(max(mean(fit$residuals^2), 1e-12 * mean(values[p + 1, ]^2), 1e-300))
  sigma <- if (is.null(series$noise)) spread else series$noise
  scales <- vapply(series$priors, .subset2, 0, "scale")[seq_len(p - q)]
  # the precision of rows and prior together, without a prior for the coefficients that change
  precision <- crossprod(x) / sigma^2 + diag(c(rep(0, q), 1 / scales^2), p)
  precision <- precision + diag(1e-12 * max(diag(precision), 1e-300), p)
  own <- seq_len(p) > q
  covariance <- chol2inv(chol(precision))[own, own, drop = FALSE]
  unknown <- is.null(series$noise)
  root <- diag(1 / sqrt(2 * series$n), p - q + unknown)
  if (p > q) root[seq_len(p - q), seq_len(p - q)] <- t(chol(covariance))
  list(centre = unname(c(slopes, if (unknown) log(sigma))), root = root)
}

#' The mode of the shared parameters given k changes, on a standardised scale
#' @noRd
shared_mode <- function(series, blocks, frame, k, starts) {
  value <- function(u) {
    theta <- theta_of(frame, u)
    found <- log_prior_of_shared(series, theta) + shared_sums(series, blocks, theta)[k + 1]
    if (is.finite(found)) found else -1e300
  }
  found <- lapply(starts, function(start)
    stats::optim(start, value, method = "BFGS",
                 control = list(fnscale = -1, maxit = 200, reltol = 1e-10)))
  found <- found[[which.max(vapply(found, .subset2, 0, "value"))]]
  d <- length(frame$centre)
  curvature <- -stats::optimHess(found$par, value, control = list(fnscale = -1,
                                                                  ndeps = rep(0.02, d)))
  parts <- eigen((curvature + t(curvature)) / 2, symmetric = TRUE)
  # along a direction that is flat or curved upwards the width is at most ten times the first guess
  size <- pmax(parts$values, 1e-2)
  list(u = found$par, root = parts$vectors %*% diag(1 / sqrt(size), d),
       mass = found$value + d / 2 * log(2 * pi) - sum(log(size)) / 2)
}

shared_modes <- function(series, blocks, frame, before = NULL) {
  modes <- list()
  for (k in seq_along(blocks$ways) - 1) {
    # climbs start from the mode of one change less, and from that on the grid before
    starts <- c(if (!is.null(before)) list(before[[k + 1]]$u), if (k > 0) list(modes[[k]]$u),
                if (is.null(before) && k == 0) list(numeric(length(frame$centre))))
    modes[[k + 1]] <- shared_mode(series, blocks, frame, k, unique(starts))
  }
  modes
}

theta_of <- function(frame, u) frame$centre + drop(frame$root %*% u)

#' The grid, and the modes on it
#' @noRd
shared_grid <- function(series, number, blocks) {
  n <- series$n
  series$most <- number$most
  prior <- number_prior(number, n, series$least)
  frame <- shared_start(series)
  every <- is.null(blocks) && n <= 2 * SHARED_BLOCKS || isTRUE(blocks >= n)
  least_blocks <- max(FIRST_BLOCKS, 3 * (number$most + 1))
  bounds <- if (every) seq(0, n)
  else unique(round(seq(0, n, length.out = min(n, least_blocks) + 1)))
  modes <- NULL
  for (round in seq_len(SHARED_ROUNDS)) {
    grid <- shared_blocks(series, bounds)
    before <- modes
    modes <- shared_modes(series, grid, frame, before)
    top <- which.max(vapply(modes, .subset2, 0, "mass") + prior[seq_along(modes)])
    best <- modes[[top]]
    moved <- if (is.null(before)) Inf else max(abs(solve(best$root, best$u - before[[top]]$u)))
    if (every && round == 1 || moved < SHARED_MOVED) break
    inner <- inner_series(series, theta_of(frame, best$u))
    # the refined grid replaces the first one; later ones get its boundaries in addition
    refined <- refined_grid(inner, number, blocks)$bounds
    if (every || identical(refined, bounds)) break
    bounds <- if (round == 1) refined else sort(unique(c(bounds, refined)))
  }
  list(blocks = grid, frame = frame, modes = modes, prior = prior[seq_along(modes)])
}

# The integral ------------------------------------------------------------------------------------

#' Log density of a t distribution around a mode, at columns of u
#' @noRd
log_t_density <- function(mode, u) {
  d <- nrow(u)
  z <- solve(mode$root, u - mode$u)
  lgamma((SHARED_TAIL + d) / 2) - lgamma(SHARED_TAIL / 2) - d / 2 * log(SHARED_TAIL * pi) -
    determinant(mode$root)$modulus - (SHARED_TAIL + d) / 2 * log1p(colSums(z^2) / SHARED_TAIL)
}

#' Draws of the shared parameters and the log weight of each, a column for each number of changes
#' @noRd
draw_shared <- function(series, found) {
  modes <- found$modes
  frame <- found$frame
  d <- length(frame$centre)
  size <- as.numeric(determinant(frame$root)$modulus)
  numbers <- length(modes)
  theta <- density <- log_prior <- totals <- from <- NULL
  needed <- rep(1, numbers)
  repeat {
    # a number of changes gets draws in proportion to what its error still needs
    new_from <- resample(needed, SHARED_DRAWS[1], 0.5)
    u <- matrix(vapply(new_from, function(k) {
      z <- stats::rnorm(d) / sqrt(stats::rchisq(1, SHARED_TAIL) / SHARED_TAIL)
      modes[[k]]$u + drop(modes[[k]]$root %*% z)
    }, numeric(d)), d)
    new <- frame$centre + frame$root %*% u
    prior <- apply(new, 2, function(x) log_prior_of_shared(series, x))
    value <- vapply(seq_along(prior), function(i) {
      if (is.finite(prior[i])) shared_sums(series, found$blocks, new[, i])
      else rep(-Inf, numbers)
    }, numeric(numbers))
    value[is.na(value)] <- -Inf
    theta <- cbind(theta, new)
    from <- c(from, new_from)
    log_prior <- c(log_prior, prior)
    density <- rbind(density, vapply(modes, log_t_density, prior, u))
    totals <- rbind(totals, t(matrix(value, numbers)))
    # all draws are weighted as draws from one mixture, in the proportions in which they were made
    parts <- sweep(density, 2, log(tabulate(from, numbers) / length(from)), `+`)
    base <- log_prior - apply(parts, 1, log_sum) + size
    log_weight <- base + totals
    total <- apply(log_weight, 2, log_sum) - log(length(from))
    share <- exp(sweep(log_weight, 2, apply(log_weight, 2, max)))
    error <- apply(share, 2, function(w) stats::sd(w) / mean(w)) / sqrt(length(from))
    log_posterior <- total + found$prior
    wanted <- SHARED_ERROR[1 + (log_posterior < max(log_posterior) + log(SHARED_SHARE))]
    needed <- pmax(0, error / wanted - 1)
    if (all(needed == 0) || length(from) >= SHARED_DRAWS[2]) break
  }
  tail <- apply(log_weight, 2, function(w) .Call(ffi_pareto_k, w)[1])
  list(theta = theta, base = base, log_weight = log_weight, total = total, error = error,
       even = colSums(share)^2 / colSums(share^2) >= SHARED_LEAST & tail < weight_limit("most_k"))
}

#' The sums of a series that shares parameters, as refined_grid() gives them for others
#'
#' @return A list with `chances`, the probabilities of positions, a matrix for each number of
#'   changes, `likely`, the most probable boundaries, and draws: `at`, of boundaries, and `theta`,
#'   of the shared parameters.
#' @noRd
shared_totals <- function(series, number, blocks, draws) {
  restore <- own_generator(series$words, FALSE)
  on.exit(restore())
  found <- shared_grid(series, number, blocks)
  drawn <- draw_shared(series, found)
  log_posterior <- drawn$total + found$prior
  posterior <- exp(log_posterior - log_sum(log_posterior))
  best <- which.max(posterior) - 1
  mode <- theta_of(found$frame, found$modes[[best + 1]]$u)
  # without the constant of lost_rows(), which is the same on the coarser grid of grid_errors()
  grid <- sum_segments(shared_sums(series, found$blocks, mode, TRUE), series$n, number$most,
                       series$least)
  grid$error <- sqrt(grid_errors(grid, series$n, series$least)^2 + drawn$error^2)
  grid$likely <- if (best > 0) likely_segments(grid, best)
  grid[c("total", "prior", "posterior", "exact")] <-
    list(drawn$total, exp(found$prior), posterior, all(diff(grid$bounds) == 1))
  grid$uneven <- any(!drawn$even & posterior > SHARED_DOUBT)
  series$blocks <- found$blocks
  series$drawn <- drawn
  looks <- looks_at_shared(drawn, posterior, best)
  c(grid, positions_of_shared(series, looks, best, draws))
}

#' A matrix of counts: how often the positions of each draw count, given each number of changes
#' @noRd
looks_at_shared <- function(drawn, posterior, best) {
  vapply(seq_along(posterior) - 1, function(k) {
    weight <- exp(drawn$log_weight[, k + 1] - max(drawn$log_weight[, k + 1]))
    count <- if (k == best) SHARED_LOOKS[1]
    else SHARED_LOOKS[if (posterior[k + 1] > SHARED_SHARE) 2 else 3]
    tabulate(resample(weight, count), length(weight))
  }, numeric(nrow(drawn$log_weight)))
}

positions_of_shared <- function(series, looks, best, draws) {
  m <- length(series$blocks$bounds) - 1
  chances <- lapply(seq_len(ncol(looks)) - 1, function(k) matrix(0, k, m - 1))
  # how many draws of positions each draw of the shared parameters gets
  each <- draws_of_looks(looks[, best + 1], draws)
  at <- NULL
  for (i in which(rowSums(looks) > 0)) {
    sums <- shared_sums(series, series$blocks, series$drawn$theta[, i], TRUE)
    for (k in which(looks[i, -1] > 0))
      chances[[k + 1]] <- chances[[k + 1]] + looks[i, k + 1] * position_probabilities(sums, k)
    if (each[i] > 0)
      at <- rbind(at, drawn_segments(sums, best, each[i], next_seed(series$words, i)))
  }
  theta <- series$drawn$theta[, rep(seq_along(each), each), drop = FALSE]
  list(chances = Map(`/`, chances, colSums(looks)), at = at, theta = t(theta))
}

draws_of_looks <- function(looks, draws)
  tabulate(rep(seq_along(looks), looks)[ceiling(seq_len(draws) / draws * sum(looks))],
           length(looks))

# Draws -------------------------------------------------------------------------------------------

#' The sums of blocks between fewer boundaries, given shared parameters
#' @noRd
shared_blocks_between <- function(series, inner, bounds) {
  blocks <- series$blocks
  cells <- block_of(blocks$bounds[blocks$cells + 1], bounds)
  add_to_sums(inner, inner$encoded$rows, cells, NULL, length(bounds) - 1)
}

#' Draws of the shared parameters given the boundaries of segments, a row for each
#' @noRd
shared_given <- function(series, bounds, draws) {
  k <- length(bounds) - 1
  own <- segment_at(k, seq_len(k), seq_len(k) + 1)
  drawn <- series$drawn
  weight <- vapply(seq_along(drawn$base), function(i) {
    if (!is.finite(drawn$base[i])) return(-Inf)
    theta <- drawn$theta[, i]
    inner <- inner_series(series, theta, series$blocks$values)
    value <- .Call(ffi_segments, inner$type, inner$args, inner$tables,
                   shared_blocks_between(series, inner, bounds), as.double(bounds), 1)
    drawn$base[i] + sum(value[own]) - lost_rows(series, series$blocks, theta)
  }, 0)
  t(drawn$theta[, resample(exp(weight - max(weight)), draws, 0.5), drop = FALSE])
}

#' Draws of all parameters of segments, a column for each draw and segment
#'
#' @param grid A list: `bounds`, and `theta`, the shared parameters of each draw.
#' @param at Numbers of boundaries, a row for each draw.
#' @noRd
drawn_with_shared <- function(series, grid, at, words) {
  p <- length(series$moving)
  rest <- c(which(!series$moving), if (is.null(series$noise)) p + 1)
  full <- array(0, c(p + is.null(series$noise), nrow(at), ncol(at) - 1))
  key <- do.call(paste, as.data.frame(grid$theta))
  for (first in which(!duplicated(key))) {
    own <- which(key == key[first])
    theta <- grid$theta[first, ]
    inner <- inner_series(series, theta, series$blocks$values)
    closed <- list(tables = inner$tables, sums = shared_blocks_between(series, inner, grid$bounds))
    ends <- cbind(c(at[own, -ncol(at)]), c(at[own, -1])) - 1
    full[which(series$moving), own, ] <-
      .Call(ffi_segments_draw, inner$type, inner$args, inner$encoded$rows, closed,
            as.double(grid$bounds), ends, next_seed(words, first))
    full[rest, own, ] <- theta
  }
  matrix(full, dim(full)[1])
}

#' Draws of the parameters of segments of any series, as drawn_parameters()
#' @noRd
segment_parameters <- function(series, grid, at, words) {
  if (!is_shared(series)) return(drawn_parameters(series, grid, at, words))
  user_draws(series, drawn_with_shared(series, grid, at, words), at)
}

#' The grid of fewer boundaries
#' @noRd
coarser_grid <- function(series, grid, bounds, draws) {
  if (is_shared(series))
    return(list(bounds = bounds, theta = shared_given(series, bounds, draws)))
  if (!is_closed(series)) return(list(bounds = bounds))
  m <- length(bounds) - 1
  list(bounds = bounds, sums = join_sums(series, grid$sums, block_of(grid$bounds[-1], bounds), m))
}
