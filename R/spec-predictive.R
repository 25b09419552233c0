# Predictive densities, means and memberships from weighted draws, for the contracts of models; and
# draws of equal weight.

# Size of a matrix of rows x draws: 1 MB, which fits in the cache.
PREDICT_BLOCK <- 2^17

#' Points in the form of C and their weights, without points of zero weight
#' @noRd
weighted_points <- function(fit) {
  use <- fit$log_weights > -Inf
  list(theta = unname(t(fit$parameters[use, , drop = FALSE])), log_weights = fit$log_weights[use])
}

# Draws with a smaller log weight are not looked at.
NO_WEIGHT <- -20

#' The mean of each row of a matrix that has a column for each draw
#'
#' Draws without weight can be so far away that their values are infinite.
#' @noRd
mean_over_draws <- function(each, log_weights) {
  mean <- as.vector(each %*% exp(log_weights))
  if (all(is.finite(mean))) return(mean)
  use <- log_weights > NO_WEIGHT
  as.vector(each[, use, drop = FALSE] %*% exp(log_weights[use]))
}

#' Apply `f(rows)` to blocks of rows (columns of `rows`); a row of the result for each
#' @noRd
over_blocks <- function(rows, draws, f) {
  size <- max(1, PREDICT_BLOCK %/% draws)
  starts <- seq(1, ncol(rows), by = size)
  pieces <- lapply(starts,
                   function(from) f(rows[, from:min(from + size - 1, ncol(rows)), drop = FALSE]))
  if (is.matrix(pieces[[1]])) do.call(rbind, pieces) else unlist(pieces)
}

log_lik_rows <- function(name, args, rows, theta) {
  matrix(.Call(ffi_model, name, args, rows, "log_lik_each", theta, list()), ncol(rows))
}

#' Of models with latent variables: log p(row | rows of the fit, draw), a row for each row
#' @noRd
latent_density <- function(fit, theta, rows)
  tryCatch(.Call(ffi_latent_density, model_type(fit$model), fit$args, fit$design$rows, theta, rows),
           error = function(e)
             fail("A fit must have the draws that evidence() has made, and those of this one are ",
                  "not. ", conditionMessage(e)))

#' log p(row | draw, rows of the fit), a row for each row and a column for each draw
#' @noRd
densities_at <- function(fit, theta, rows) {
  if (!is_latent(fit$model)) return(log_lik_rows(model_type(fit$model), fit$args, rows, theta))
  each <- latent_density(fit, theta, rows)
  each[is.nan(each)] <- -Inf # squares of such rows overflow
  each
}

#' Standard errors of the logarithm of the mean density over draws, one for each row
#'
#' From the spread of the densities of all draws, as of a ratio of weighted means; of several runs,
#' from the spread between them if that is larger.
#'
#' @param log_density What log_predictive_density() returns.
#' @noRd
predictive_error <- function(fit, rows, log_density) {
  use <- fit$log_weights > -Inf
  at <- weighted_points(fit)
  weights <- exp(at$log_weights)
  runs <- max(1, nrow(fit$replicates))
  # each run has as many draws
  run <- if (length(use) %% runs == 0) rep(seq_len(runs), each = length(use) / runs)[use]
  done <- 0
  over_blocks(rows, length(weights), function(block) {
    mean <- log_density[done + seq_len(ncol(block))]
    done <<- done + ncol(block)
    # how much each draw takes the mean away from itself
    away <- (exp(densities_at(fit, at$theta, block) - ifelse(mean > -Inf, mean, 0)) - 1) *
      rep(weights, each = ncol(block))
    variance <- rowSums(away^2)
    if (runs > 1 && !is.null(run)) {
      between <- rowSums(t(rowsum(t(away), run))^2) * runs / (runs - 1)
      variance <- pmax(variance, between)
    }
    ifelse(mean > -Inf, sqrt(variance), NA_real_)
  })
}

log_predictive_density <- function(fit, rows) {
  at <- weighted_points(fit)
  weights <- exp(at$log_weights)
  over_blocks(rows, length(weights), function(block) {
    each <- densities_at(fit, at$theta, block)
    top <- row_max(each)
    mean <- as.vector(exp(each - top) %*% weights)
    # If the draws with the highest density have almost no weight, the weights are included before
    # the maximum is taken.
    faint <- which(mean < 1e-200)
    density <- top + log(mean)
    if (length(faint))
      density[faint] <- log_sum_rows(each[faint, , drop = FALSE] +
                                     rep(at$log_weights, each = length(faint)))
    density
  })
}

# Finite, so that it can be subtracted: a row that is impossible under all draws keeps its -Inf.
row_max <- function(x) {
  top <- x[cbind(seq_len(nrow(x)), max.col(x, "first"))]
  ifelse(top > -Inf, top, 0)
}

log_sum_rows <- function(x) {
  top <- row_max(x)
  top + log(rowSums(exp(x - top)))
}

predictive_mean <- function(fit, encoded) {
  centre <- colSums(exp(fit$log_weights) * fit$parameters)
  covariates <- encoded$rows[-nrow(encoded$rows), , drop = FALSE]
  as.vector(centre %*% covariates) + if (is.null(encoded$offset)) 0 else encoded$offset
}

# The density of each class in turn: C has the formula, and the extra work is small for few classes.
class_probabilities <- function(fit, rows) {
  classes <- fit$design$levels
  each <- lapply(seq_along(classes), function(k) {
    rows[nrow(rows), ] <- k - 1
    exp(log_predictive_density(fit, rows))
  })
  probabilities <- matrix(unlist(each), ncol(rows), dimnames = list(NULL, classes))
  probabilities / rowSums(probabilities) # one but for rounding
}

most_probable <- function(probabilities) {
  classes <- colnames(probabilities)
  factor(classes[max.col(probabilities, "first")], levels = classes)
}

# Density of a component divided by that of the mixture, both from C; a component is a mixture of
# one.
memberships <- function(fit, rows) {
  # beyond this all densities are zero, and the widest component has all of the probability
  rows <- pmin(pmax(rows, -FARTHEST), FARTHEST)
  at <- weighted_points(fit)
  theta <- same_labels(fit, at)
  components <- fit$args$components
  one <- fit$args
  one$components <- 1
  log_ratio <- rbind(theta[seq_len(components - 1), , drop = FALSE], 0)
  # the components' own weights
  prior <- exp(log_ratio - rep(log_sum_rows(t(log_ratio)), each = components))
  own <- lapply(seq_len(components),
                function(k) theta[component_rows(k, components, one$dimensions), , drop = FALSE])
  share <- over_blocks(rows, ncol(theta), function(block) {
    total <- log_lik_rows("gaussian_mixture", fit$args, block, theta)
    each <- lapply(seq_len(components), function(k) {
      ratio <- exp(log_lik_rows("gaussian_mixture", one, block, own[[k]]) - total)
      as.vector(ratio %*% (prior[k, ] * exp(at$log_weights)))
    })
    matrix(unlist(each), ncol(block))
  })
  colnames(share) <- paste0("component", seq_len(components))
  share / rowSums(share) # one but for rounding
}

FARTHEST <- 1e140

#' The positions of the means and log variances of component `k` among the parameters
#' @noRd
component_rows <- function(k, components, dimensions) {
  mean <- components - 1 + (k - 1) * dimensions + seq_len(dimensions)
  c(mean, mean + components * dimensions)
}

# Draws of several runs may number the components differently.
same_labels <- function(fit, at) {
  reference <- at$theta[, which.max(at$log_weights)]
  .Call(ffi_model, model_type(fit$model), fit$args, matrix(0, fit$args$dimensions, 0), "relabel",
        at$theta, list(other = reference))$theta
}

#' Systematic resampling: `n` indices, each about in proportion to its weight
#' @param start A number between 0 and 1.
#' @noRd
resample <- function(weights, n, start = stats::runif(1)) {
  position <- (seq_len(n) - 1 + start) / n
  reached <- cumsum(weights)
  1L + findInterval(position, reached[-length(reached)] / reached[length(reached)])
}
