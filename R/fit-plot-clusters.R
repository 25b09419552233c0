# The plot of clusters: two columns of the data, coloured by the most probable component of each
# row, and ellipses of the components.

has_clusters <- function(fit) !is.null(part_of(fit$model, "clusters"))

# Rows that are drawn.
CLUSTER_ROWS <- 5000
# Probability of a component from which a point is filled, and share of a component in its ellipse.
CLEAR_MEMBER <- 0.9
ELLIPSE_SHARE <- 0.9

plot_clusters <- function(fit, columns, data, envir, ...) {
  columns <- pick_columns(fit, columns)
  rows <- own_data(fit, data, envir)$rows
  figure <- cluster_figure(fit, rows[, evenly(ncol(rows), CLUSTER_ROWS), drop = FALSE], columns)
  old <- graphics::par("mar", "mgp", "tcl", "las")
  on.exit(graphics::par(old))
  graphics::par(mar = c(3.6, 5, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  draw_clusters(figure, ...)
}

#' The numbers of two columns
#' @noRd
pick_columns <- function(fit, columns) {
  names <- fit$design$columns
  if (length(names) < 2)
    fail("`type` must not be \"clusters\" for data of one column: the plot needs two.")
  if (is.null(columns)) return(1:2)
  at <- if (is.character(columns)) match(columns, names) else match(columns, seq_along(names))
  if (length(at) != 2 || anyNA(at) || at[1] == at[2])
    refuse(columns, "columns", paste0("two different columns of ", show_names(names)))
  at
}

#' @return A list: `points` (x, y, component, and whether it is `clear`), `ellipses` (a list with x
#'   and y by component), `centres` and `names` of the two columns.
#' @noRd
cluster_figure <- function(fit, rows, columns) {
  share <- part_of(fit$model, "predictions")$probability(fit, list(rows = rows))
  component <- max.col(share, "first")
  at <- part_of(fit$model, "clusters")(fit)
  shown <- sort(unique(component))
  ellipses <- lapply(shown, function(k)
    ellipse(at$mean[k, columns], at$sd[k, columns], ELLIPSE_SHARE))
  list(
    points = data.frame(x = rows[columns[1], ], y = rows[columns[2], ], component = component,
                        clear = share[cbind(seq_along(component), component)] >= CLEAR_MEMBER),
    ellipses = ellipses, centres = at$mean[shown, columns, drop = FALSE], shown = shown,
    names = fit$design$columns[columns], components = ncol(share)
  )
}

#' The line around a share of a normal distribution of two independent columns
#' @noRd
ellipse <- function(mean, sd, share) {
  angle <- seq(0, 2 * pi, length.out = 181)
  radius <- sqrt(stats::qchisq(share, 2))
  data.frame(x = mean[1] + radius * sd[1] * cos(angle), y = mean[2] + radius * sd[2] * sin(angle))
}

draw_clusters <- function(figure, ...) {
  points <- figure$points
  around <- do.call(rbind, figure$ellipses)
  settings <- list(x = NA, y = NA, type = "n", xlim = range(points$x, around$x),
                   ylim = range(points$y, around$y), xlab = figure$names[1],
                   ylab = figure$names[2], main = "Clusters", axes = FALSE)
  note <- paste0("most probable component (hollow: below ", 100 * CLEAR_MEMBER,
                 "%); ellipse: ", 100 * ELLIPSE_SHARE, "% of a component")
  draw_frame(utils::modifyList(settings, list(...)), note)
  draw_grid()
  colours <- component_colours(figure$components)
  own <- colours[points$component]
  graphics::points(points$x, points$y, pch = ifelse(points$clear, 16, 1),
                   cex = ifelse(points$clear, 0.9, 0.75),
                   col = grDevices::adjustcolor(own, 0.7))
  for (i in seq_along(figure$ellipses))
    graphics::lines(figure$ellipses[[i]], col = colours[figure$shown[i]], lwd = 2)
  draw_numbers(figure$centres, figure$shown, colours[figure$shown])
}

draw_grid <- function() {
  graphics::abline(h = graphics::axTicks(2), v = graphics::axTicks(1), col = FAINT, lwd = 0.8)
  for (side in 1:2) {
    at <- graphics::axTicks(side)
    graphics::axis(side, at, axis_labels(at), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  }
}

# White discs keep the numbers legible among the points.
draw_numbers <- function(centres, numbers, colours) {
  graphics::points(centres, pch = 21, bg = "white", col = colours, cex = 2.4, lwd = 1.5)
  graphics::text(centres, labels = numbers, col = colours, cex = 0.8, font = 2)
}

# Colours of Okabe and Ito that are visible on white; others if there are more components.
component_colours <- function(k) {
  distinct <- c(BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
  if (k <= length(distinct)) distinct[seq_len(k)] else grDevices::hcl.colors(k, "Dark 3")
}
