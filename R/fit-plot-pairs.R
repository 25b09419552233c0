# The plot of pairs of parameters ("corner plot"): marginal densities on the diagonal, draws of each
# pair below it, and correlations above.

# Parameters and draws that are drawn at most.
PAIRS_MOST <- 6
PAIRS_DRAWS <- 1000

#' @param chosen Numbers of the parameters.
#' @param densities Of each, from density_figure().
#' @noRd
plot_pairs <- function(fit, chosen, densities) {
  if (length(chosen) < 2)
    fail("`type` must not be \"pairs\" for one parameter: the plot needs two.")
  figure <- pairs_figure(fit, chosen, densities)
  old <- graphics::par("mfrow", "mar", "mgp", "tcl", "las", "oma", "cex")
  on.exit(graphics::par(old))
  k <- length(chosen)
  graphics::par(mfrow = c(k, k), mar = c(0.4, 0.4, 0.4, 0.4), oma = c(4.6, 4.6, 2.6, 0.8), las = 1,
                mgp = c(2, 0.5, 0), tcl = -0.25, cex = 0.8)
  for (i in seq_len(k)) for (j in seq_len(k)) {
    if (i == j) draw_marginal(figure, i)
    else if (i > j) draw_pair(figure, i, j)
    else draw_correlation(figure, i, j)
    if (i == k) outer_axis(figure, j, 1)
    if (j == 1 && i > 1) outer_axis(figure, i, 2)
  }
  graphics::mtext("Posterior", side = 3, outer = TRUE, adj = 0, line = 0.7, font = 2)
  graphics::mtext(pairs_note(k, ncol(fit$draws)), side = 3, outer = TRUE, adj = 1, line = 0.7,
                  cex = 0.7, col = "grey35")
}

pairs_note <- function(shown, all)
  paste0("draws of equal weight, densities, correlations",
         if (shown < all) paste0("; ", shown, " of ", count_of(all, "parameter")))

#' @return A list: `points`, draws of equal weight; `densities`; `ranges`, by parameter, and
#'   `correlations` of all weighted draws.
#' @noRd
pairs_figure <- function(fit, chosen, densities) {
  weights <- exp(fit$log_weights)
  all <- fit$draws[, chosen, drop = FALSE]
  finite <- rowSums(!is.finite(all)) == 0 & weights > 0
  all <- all[finite, , drop = FALSE]
  weights <- weights[finite] / sum(weights[finite])
  covariance <- weighted_cov(all, weights)
  sd <- sqrt(diag(covariance))
  points <- all[resample(weights, min(PAIRS_DRAWS, nrow(all)), 0.5), , drop = FALSE]
  ranges <- lapply(seq_along(chosen), function(i) {
    found <- range(points[, i])
    if (diff(found) > 0) found else found + c(-1, 1) * max(abs(found[1]), 1) * 1e-3
  })
  list(names = shorten_apart(colnames(fit$draws)[chosen], 24), points = points,
       densities = densities, ranges = ranges, correlations = covariance / outer(sd, sd))
}

pair_frame <- function(xlim, ylim) {
  graphics::plot.default(NA, NA, xlim = xlim, ylim = ylim, axes = FALSE, xlab = "", ylab = "")
  graphics::box(col = "grey80")
}

draw_marginal <- function(figure, i) {
  curve <- figure$densities[[i]]
  pair_frame(figure$ranges[[i]], c(0, 1.05 * max(curve$data$y)))
  inside <- curve$data$x >= curve$low & curve$data$x <= curve$high
  x <- curve$data$x[inside]
  if (length(x))
    graphics::polygon(c(x[1], x, x[length(x)]), c(0, curve$data$y[inside], 0), border = NA,
                      col = grDevices::adjustcolor(MIDDLE, 0.6))
  graphics::lines(curve$data, col = BLUE, lwd = 1.6)
  graphics::abline(v = curve$median, col = ORANGE, lwd = 1.4)
}

draw_pair <- function(figure, i, j) {
  pair_frame(figure$ranges[[j]], figure$ranges[[i]])
  graphics::points(figure$points[, j], figure$points[, i], pch = 16, cex = 0.45,
                   col = grDevices::adjustcolor(BLUE, 0.3))
}

draw_correlation <- function(figure, i, j) {
  graphics::plot.default(NA, NA, xlim = 0:1, ylim = 0:1, axes = FALSE, xlab = "", ylab = "")
  r <- figure$correlations[i, j]
  graphics::text(0.5, 0.5, if (is.finite(r)) format_number(r, 2) else "", cex = 1.1, col = "grey25")
}

# Ticks and names stand at the left and at the bottom of the page alone.
outer_axis <- function(figure, i, side) {
  ends <- figure$ranges[[i]]
  at <- pretty(ends, 3)
  at <- at[at >= ends[1] & at <= ends[2]]
  graphics::axis(side, at, axis_labels(at), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50",
                 cex.axis = 0.9)
  graphics::mtext(figure$names[i], side = side, line = if (side == 1) 2.1 else 3.1, las = 0,
                  cex = 0.75)
}
