# Densities of parameters for plots.

# Bandwidth by Silverman's rule, from weighted spread and effective size. Draws are reflected at a
# limit of the parameter that is near, so that no density lies beyond it. Infinite draws, of which
# the fit warns, have no place in a figure.
density_figure <- function(fit, j) {
  density_of(colnames(fit$draws)[j], fit$draws[, j], fit$log_weights,
             part_of(fit$model, "limits")(fit)[, j])
}

#' @param limits The range that the parameter may have.
#' @noRd
density_of <- function(name, x, log_weights, limits) {
  visible <- log_weights > max(log_weights) - 18 # smaller weights are not
  used <- visible & is.finite(x)
  if (!any(used)) fail("`x` has no finite draw of ", name, ", so that it has no density.")
  x <- x[used]
  weights <- exp(log_weights[used])
  weights <- weights / sum(weights)
  quantiles <- weighted_quantile(x, weights, c(0.05, 0.25, 0.5, 0.75, 0.95))
  spread <- c(weighted_sd(x, weights), (quantiles[4] - quantiles[2]) / 1.34)
  spread <- spread[is.finite(spread) & spread > 0]
  width <- if (length(spread)) 0.9 * min(spread) * sum(weights^2)^0.2
  else max(abs(x[which.max(weights)]), 1) * 1e-3
  ends <- range(x) + c(-3, 3) * width
  near <- c(if (ends[1] < limits[[1]]) limits[[1]], if (ends[2] > limits[[2]]) limits[[2]])
  copies <- c(list(x), lapply(near, function(limit) 2 * limit - x))
  grid <- stats::density(unlist(copies), bw = width, n = 512, from = max(ends[1], limits[[1]]),
                         to = min(ends[2], limits[[2]]),
                         weights = rep(weights, length(copies)) / length(copies))
  grid$y <- grid$y * length(copies)
  list(
    name = name, data = data.frame(x = grid$x, y = grid$y),
    median = quantiles[3], low = quantiles[1], high = quantiles[5]
  )
}
