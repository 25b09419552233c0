# Draws from the posterior predictive distribution, and intervals from them. Rows are simulated by
# the C code of the model, all rows for one draw of the parameters at a time.

# Size of a matrix of draws x rows that is made for intervals: 64 MB.
DRAWS_BLOCK <- 2^23
# Number of draws if the user gives none.
PREDICTIVE_DRAWS <- 1000

# Whether responses of single rows can be simulated.
can_simulate <- function(model) {
  !is_latent(model) && is.null(part_of(model, "simulates")(model)) &&
    is.null(part_of(model, "simulate_data"))
}

require_simulation <- function(model, verb) {
  if (can_simulate(model)) return(invisible())
  fail(verb, " needs a model that can simulate data, and a ", model$name, "() cannot.")
}

#' Points of equal weight, one in each column
#' @noRd
equal_points <- function(fit, n, words) {
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  t(unname(fit$parameters[resample(exp(fit$log_weights), n), , drop = FALSE]))
}

#' The responses of all rows, simulated at each point
#'
#' @param encoded A list of `rows` and `offset`; missing responses are replaced.
#' @param value `function(fit, rows, offset)`, from the contract: responses of simulated rows.
#' @return A list with the value for each point.
#' @noRd
simulated_responses <- function(fit, encoded, points, words, value) {
  # C copies a value that is allowed in all models
  encoded$rows[is.na(encoded$rows)] <- 1
  from <- list(args = fit$args, rows = encoded$rows, design = fit$design)
  lapply(seq_len(ncol(points)), function(s) {
    rows <- simulated_rows(fit$model, from, points[, s], next_seed(words, s))
    plain_response(value(fit, rows, encoded$offset))
  })
}

plain_response <- function(y) if (is.matrix(y) && ncol(y) == 1) y[, 1] else y

#' Draws from the posterior predictive distribution
#'
#' @return A matrix of draws x rows, with codes and attribute `levels` for classes, or an array of
#'   draws x rows x columns.
#' @noRd
predictive_draws <- function(fit, encoded, points, words) {
  drawn <- simulated_responses(fit, encoded, points, words, part_of(fit$model, "responses"))
  first <- drawn[[1]]
  if (is.matrix(first)) {
    both <- array(unlist(drawn), c(dim(first), length(drawn)))
    return(structure(aperm(both, c(3, 1, 2)), dimnames = list(NULL, NULL, fit$design$columns)))
  }
  structure(t(matrix(as.double(unlist(lapply(drawn, as.double))), length(first))),
            levels = levels(first))
}

#' Means with limits of the middle part of the predictive distribution
#'
#' @param fitted Predictive means.
#' @noRd
predictive_interval <- function(fit, encoded, fitted, level, draws, words) {
  points <- equal_points(fit, draws, words)
  at <- interval_ends(level)
  limits <- over_encoded(encoded, DRAWS_BLOCK %/% draws, function(block, k) {
    # each block has random numbers of its own
    drawn <- simulated_responses(fit, block, points, c(words[1], (words[2] + k - 1) %% WORD),
                                 part_of(fit$model, "responses"))
    drawn <- lapply(drawn, as.double)
    counts <- all(vapply(drawn, function(one) all(one == round(one), na.rm = TRUE), NA))
    .Call(ffi_row_quantiles, drawn, rep(1, draws), quantile_places(draws, at, counts), 0)
  })
  interval_table(fitted, limits)
}

#' Where quantiles are among n sorted draws, the first at 0: as quantile() has them by default; of
#' counts, the smallest that is not exceeded with probability `at`, which is a count, too
#' @noRd
quantile_places <- function(n, at, counts)
  if (counts) pmax(ceiling(n * at - 1e-9) - 1, 0) else (n - 1) * at

#' Means of the linear predictor, with limits if a level is given
#' @noRd
link_summary <- function(fit, encoded, level) {
  link <- part_of(fit$model, "link")
  weights <- exp(fit$log_weights)
  found <- over_encoded(encoded, PREDICT_BLOCK %/% length(weights), function(block, k) {
    eta <- link(fit, block$rows, block$offset)
    cbind(eta %*% weights, if (!is.null(level)) weighted_limits(eta, weights, level))
  })
  if (is.null(level)) as.vector(found) else interval_table(found[, 1], found[, -1, drop = FALSE])
}

# Means of responses given parameters -------------------------------------------------------------

#' The mean of each response at each draw of a fit: a matrix of rows x draws
#'
#' @param kind A prediction of the contract; of `"probability"` a list of the classes' matrices.
#' @noRd
mean_draws <- function(fit, encoded, kind = "response") {
  own <- part_of(fit$model, "groups")$mean_draws
  if (kind == "response" && !is.null(own)) return(own(fit, encoded))
  f <- part_of(fit$model, "predictions")[[kind]]
  parts <- list(model = fit$model, args = fit$args, design = fit$design, log_weights = 0)
  parameters <- fit$parameters
  draws <- fit$draws
  each <- lapply(seq_len(nrow(parameters)), function(s) {
    parts$parameters <- parameters[s, , drop = FALSE]
    parts$draws <- draws[s, , drop = FALSE]
    f(parts, encoded)
  })
  if (!is.matrix(each[[1]])) return(matrix(unlist(each), ncol = length(each)))
  lapply(stats::setNames(nm = colnames(each[[1]])), function(name)
    matrix(vapply(each, function(one) one[, name], numeric(nrow(each[[1]]))), ncol = length(each)))
}

#' Means of the responses, with limits of what they are given the parameters if a level is given
#' @noRd
expected_summary <- function(fit, encoded, level) {
  mean <- part_of(fit$model, "predictions")$response(fit, encoded)
  if (is.null(level)) return(mean)
  weights <- exp(fit$log_weights)
  limits <- over_encoded(encoded, DRAWS_BLOCK %/% length(weights), function(block, k)
    weighted_limits(mean_draws(fit, block), weights, level))
  interval_table(mean, limits)
}

# Quantiles of each row, as weighted_quantile() has them.
weighted_limits <- function(each, weights, level)
  .Call(ffi_row_quantiles, each, weights, sum(weights) * interval_ends(level), 0.5)

interval_ends <- function(level) if (!is.null(level)) c(1 - level, 1 + level) / 2

interval_table <- function(fitted, limits)
  cbind(fit = as.vector(fitted), lower = limits[, 1], upper = limits[, 2])

#' Apply `f(block, k)` to blocks of at most `size` rows; a row of the result for each
#' @noRd
over_encoded <- function(encoded, size, f) {
  n <- ncol(encoded$rows)
  size <- max(1, size)
  starts <- seq(1, max(n, 1), by = size)
  do.call(rbind, lapply(seq_along(starts), function(k) {
    use <- starts[k]:min(starts[k] + size - 1, n)
    f(list(rows = encoded$rows[, use, drop = FALSE], offset = encoded$offset[use],
           n = length(use)), k)
  }))
}
