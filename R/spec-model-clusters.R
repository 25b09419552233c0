# clustering(): to which component a row belongs. Draws are labels of the fit's rows; the centres,
# which are integrated out of them, have normal distributions given the labels.

# Draws of a smaller weight are left out.
LEAST_WEIGHT <- 1e-9

#' Probabilities that rows belong to each component, averaged over the draws
#'
#' Each row is taken for a new one: its label given a draw, whose clusters are the rows of the fit.
#' @noRd
label_probabilities <- function(fit, encoded) {
  at <- labelled_draws(fit)
  weights <- exp(fit$log_weights[at$use])
  total <- 0
  for (i in seq_along(weights)) {
    log_density <- label_densities(cluster_state(fit, at, i), encoded$rows)
    total <- total + weights[i] * exp(log_density - log_sum_rows(log_density))
  }
  colnames(total) <- paste0("component", seq_len(fit$args$components))
  total / rowSums(total)
}

#' Log densities of rows in each component, with its probability: a matrix of rows x components
#' @noRd
label_densities <- function(state, rows) {
  each <- lapply(seq_along(state$proportion), function(k) {
    variance <- state$noise + state$variance[k]
    log(state$proportion[k]) - colSums((rows - state$centre[k, ])^2) / (2 * variance) -
      nrow(rows) / 2 * log(2 * pi * variance)
  })
  matrix(unlist(each), ncol(rows))
}

#' The clusters of a draw: proportions, and means and variances of the centres given its labels
#' @noRd
cluster_state <- function(fit, at, i) {
  draw <- fit$parameters[at$use[i], ]
  k <- fit$args$components
  size <- tabulate(at$labels[, i], k)
  variance <- 1 / (1 / draw[["prior_sd"]] + size / draw[["noise_sd"]])
  sums <- rowsum(rbind(t(fit$design$rows), matrix(0, k, nrow(fit$design$rows))),
                 c(at$labels[, i], seq_len(k)))
  list(proportion = draw[numbered("proportion", k)][at$order[, i]], noise = draw[["noise_sd"]],
       variance = variance, centre = sums * variance / draw[["noise_sd"]])
}

#' The labels of all draws with weight, components numbered as in the draw of the largest weight
#'
#' @return A list: `use`, which draws; `labels`, rows x draws; `order`, for each draw the components
#'   of the fit in this numbering.
#' @noRd
labelled_draws <- function(fit) {
  use <- which(exp(fit$log_weights) > LEAST_WEIGHT)
  k <- fit$args$components
  labels <- t(fit$parameters[use, startsWith(colnames(fit$parameters), "label["), drop = FALSE]) + 1
  reference <- labels[, which.max(fit$log_weights[use])]
  order <- vapply(seq_along(use), function(i)
    if (exchangeable(fit)) nearest_labels(labels[, i], reference, k) else seq_len(k), integer(k))
  order <- matrix(order, k)
  for (i in seq_along(use)) labels[, i] <- match(labels[, i], order[, i])
  list(use = use, labels = labels, order = order)
}

# Known proportions that differ tell the components apart.
exchangeable <- function(fit)
  fit$args$infer != 0 || length(unique(fit$args$proportions)) == 1

#' For each component of `reference` the label of `own` that shares most rows with it
#'
#' The largest number of shared rows is matched first, then the largest of those left.
#' @noRd
nearest_labels <- function(own, reference, k) {
  shared <- matrix(tabulate(own + k * (reference - 1), k^2), k)
  order <- integer(k)
  for (step in seq_len(k)) {
    best <- arrayInd(which.max(shared), dim(shared))
    order[best[2]] <- best[1]
    shared[best[1], ] <- shared[, best[2]] <- -1
  }
  order
}

#' Posterior means of the centres, and standard deviations of rows around them
#' @noRd
cluster_centres <- function(fit) {
  at <- labelled_draws(fit)
  weights <- exp(fit$log_weights[at$use])
  weights <- weights / sum(weights)
  mean <- noise <- 0
  for (i in seq_along(weights)) {
    state <- cluster_state(fit, at, i)
    mean <- mean + weights[i] * state$centre
    noise <- noise + weights[i] * sqrt(state$noise)
  }
  dimnames(mean) <- list(NULL, fit$design$columns)
  list(mean = mean, sd = matrix(noise, nrow(mean), ncol(mean)))
}

CLUSTER_PREDICTIONS <- list(
  density = NULL, probability = label_probabilities,
  class = function(fit, encoded) most_probable(label_probabilities(fit, encoded))
)
