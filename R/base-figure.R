# Figures: what is drawn, its axes and colours, for R's graphics and for ggplot2.

# Colours that the colour-blind can tell apart (Okabe and Ito).
BLUE <- "#0072B2"
PALE <- "#CCE3F0"
MIDDLE <- "#8FC1DE"
ORANGE <- "#D55E00"
FAINT <- "#E6E6E6"

#' A figure: points to draw as a line or as spikes, perhaps a band and one estimate apart
#' @noRd
new_figure <- function(x, y, title, note, xlab, ylab, shape = "line", lower = y, upper = y,
                       log = FALSE,
                       from_zero = FALSE, whole_numbers = FALSE, reversed = FALSE,
                       estimate = NULL) {
  use <- is.finite(x) & is.finite(y)
  data <- data.frame(x = x, y = y, lower = lower, upper = upper)[use, ]
  data$lower[!is.finite(data$lower)] <- data$y[!is.finite(data$lower)]
  data$upper[!is.finite(data$upper)] <- data$y[!is.finite(data$upper)]
  list(data = data, title = title, note = note, xlab = xlab, ylab = ylab, shape = shape, log = log,
       from_zero = from_zero, whole_numbers = whole_numbers, reversed = reversed,
       estimate = estimate)
}

figure_limits <- function(figure) {
  data <- rbind(figure$data[c("x", "y", "lower", "upper")], figure$estimate)
  limits <- function(v) if (length(v)) range(v) else c(0, 1)
  x <- limits(data$x)
  y <- if (is.null(figure$ylim)) limits(c(if (figure$from_zero) 0, data$lower, data$upper))
  else figure$ylim
  x <- if (x[1] < x[2]) x else x + if (figure$log) 0 else c(-1, 1) * max(abs(x[1]), 1) / 2
  list(x = if (figure$reversed) rev(x) else x,
       y = if (y[1] < y[2]) y else y + c(-1, 1) * max(abs(y[1]), 1) * 0.05)
}

figure_range <- function(figure) {
  limits <- range(figure$lower, figure$upper)
  if (limits[1] < limits[2]) limits else limits + c(-1, 1) * max(abs(limits[1]), 1) / 100
}

# Panels ------------------------------------------------------------------------------------------

#' Draw several panels in the next figure of the page
#'
#' par(mfrow = ) and layout() would take the page from the user, who may have divided it. So each
#' panel is a plot region of its own within one figure, and text has the size for so many panels.
#'
#' @param draw function(panel), where `panel(cell, mar)` begins a panel: the next plot is drawn in
#'   `cell`, the left, right, lower and upper end as shares of the figure, with margins of so many
#'   lines.
#' @param rows,columns Of the panels, which decide the size of the text.
#' @param foot Lines that are left free below all panels.
#' @noRd
draw_panels <- function(draw, rows, columns, foot = 0, mgp = c(2.3, 0.6, 0)) {
  old <- graphics::par("cex", "mar", "mgp", "tcl", "las")
  on.exit(graphics::par(old))
  graphics::par(mar = c(0, 0, 0, 0))
  graphics::plot.new()
  # as par(mfrow = ) has it
  size <- if (max(rows, columns) > 2) 0.66 else if (rows == 2 && columns == 2) 0.83 else 1
  graphics::par(cex = old$cex * size, mar = c(1, 1, 1, 1), mgp = mgp, tcl = -0.3, las = 1)
  lines <- graphics::par("fin") / graphics::par("mai")[1]
  draw(function(cell, mar) {
    y <- (foot + cell[3:4] * (lines[2] - foot)) / lines[2]
    plt <- c(cell[1] + mar[2] / lines[1], cell[2] - mar[4] / lines[1],
             y[1] + mar[1] / lines[2], y[2] - mar[3] / lines[2])
    if (plt[1] >= plt[2] || plt[3] >= plt[4])
      fail("There is no room for the panels of this picture: draw fewer figures on a page, or use ",
           "a larger device.")
    graphics::par(plt = plt, new = TRUE)
  })
  invisible()
}

#' The cells of panels of equal size, row by row, within a cell
#' @noRd
grid_cells <- function(rows, columns, within = c(0, 1, 0, 1)) {
  lapply(seq_len(rows * columns) - 1, function(i) {
    left <- i %% columns
    above <- i %/% columns
    c(within[1] + (within[2] - within[1]) * c(left, left + 1) / columns,
      within[4] - (within[4] - within[3]) * c(above + 1, above) / rows)
  })
}

# 1,000 and 100,000, not 1e+05.
axis_labels <- function(at) {
  text <- format(at, big.mark = ",", decimal.mark = ".", trim = TRUE, scientific = FALSE)
  ifelse(abs(at) >= 1e6, sub("e\\+0*", "e", format(at, trim = TRUE, digits = 3, scientific = TRUE)),
         text)
}

draw_figure <- function(figure, ...) {
  limits <- figure_limits(figure)
  settings <- list(x = NA, y = NA, type = "n", log = if (figure$log) "x" else "", xlim = limits$x,
                   ylim = limits$y,
                   xlab = figure$xlab, ylab = figure$ylab, main = figure$title, axes = FALSE)
  draw_frame(utils::modifyList(settings, list(...)), figure$note)
  draw_axes(figure)
  data <- figure$data
  if (figure$shape == "spikes") {
    graphics::segments(data$x, 0 * data$x, data$x, data$y, col = BLUE, lwd = 2, lend = "butt")
  } else {
    if (any(data$lower < data$upper) && nrow(data) > 1)
      graphics::polygon(c(data$x, rev(data$x)), c(data$lower, rev(data$upper)), col = PALE,
                        border = NA)
    else if (nrow(data) == 1)
      graphics::segments(data$x, data$lower, data$x, data$upper, col = MIDDLE, lwd = 5,
                         lend = "butt")
    graphics::lines(data$x, data$y, col = BLUE, lwd = 1.8)
    if (nrow(data) <= 60)
      graphics::points(data$x, data$y, col = BLUE, pch = 16, cex = if (nrow(data) > 1) 0.6 else 1.2)
  }
  marks <- figure$marks
  if (length(marks)) {
    graphics::abline(v = marks, col = ORANGE, lty = 3)
    graphics::mtext(count_each(marks), side = 3, at = marks, line = -0.9,
                    cex = 0.7 * graphics::par("cex"), col = ORANGE)
  }
  estimate <- figure$estimate
  if (!is.null(estimate)) {
    graphics::segments(estimate$x, estimate$lower, estimate$x, estimate$upper, col = ORANGE,
                       lwd = 2)
    graphics::points(estimate$x, estimate$y, col = ORANGE, pch = 18, cex = 1.5, xpd = NA)
  }
}

# Titles on the left, a note under them; room for long numbers on the y axis.
draw_frame <- function(settings, note, size = 0.8) {
  shown <- settings[c("main", "ylab")]
  settings[c("main", "ylab")] <- ""
  do.call(graphics::plot.default, settings)
  graphics::title(ylab = shown$ylab, line = 3.5)
  graphics::title(main = shown$main, adj = 0, line = 1.55, font.main = 2, cex.main = 1.05)
  graphics::mtext(note, side = 3, line = 0.35, adj = 0, cex = size * graphics::par("cex"),
                  col = "grey35")
}

draw_axes <- function(figure) {
  at_x <- if (nrow(figure$data) == 1) figure$data$x else graphics::axTicks(1)
  at_y <- graphics::axTicks(2)
  if (figure$whole_numbers) at_y <- unique(round(at_y))
  if (figure$log && length(at_x) > 4) at_x <- unique(10^round(log10(at_x)))
  graphics::abline(h = at_y, v = at_x, col = FAINT, lwd = 0.8)
  graphics::axis(1, at_x, axis_labels(at_x), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, at_y, axis_labels(at_y), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
}

gg_figure <- function(figure) {
  limits <- figure_limits(figure)
  plot <- ggplot2::ggplot(figure$data, ggplot2::aes(x = .data$x, y = .data$y))
  if (figure$shape == "spikes") {
    plot <- plot + ggplot2::geom_segment(ggplot2::aes(xend = .data$x, yend = 0), colour = BLUE,
                                         linewidth = 0.9)
  } else if (nrow(figure$data) > 1) {
    plot <- plot +
      ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$lower, ymax = .data$upper), fill = PALE) +
      ggplot2::geom_line(colour = BLUE, linewidth = 0.7)
  } else {
    plot <- plot + ggplot2::geom_linerange(ggplot2::aes(ymin = .data$lower, ymax = .data$upper),
                                           colour = MIDDLE, linewidth = 1.5)
  }
  if (figure$shape != "spikes" && nrow(figure$data) <= 60)
    plot <- plot + ggplot2::geom_point(colour = BLUE, size = 1)
  if (length(figure$marks))
    plot <- plot + ggplot2::geom_vline(xintercept = figure$marks, colour = ORANGE,
                                       linetype = "dotted")
  if (!is.null(figure$estimate)) {
    plot <- plot + ggplot2::geom_pointrange(
      ggplot2::aes(ymin = .data$lower, ymax = .data$upper), data = figure$estimate, colour = ORANGE,
      shape = 18, size = 0.7
    )
  }
  plot +
    gg_axis(figure) +
    ggplot2::coord_cartesian(ylim = limits$y) +
    ggplot2::labs(title = figure$title, subtitle = if (nzchar(figure$note)) figure$note,
                  x = figure$xlab, y = figure$ylab) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.grid.minor = ggplot2::element_blank())
}

gg_axis <- function(figure) {
  if (figure$reversed) return(ggplot2::scale_x_reverse(labels = axis_labels))
  if (figure$log) return(ggplot2::scale_x_log10(labels = axis_labels))
  if (nrow(figure$data) == 1) return(ggplot2::scale_x_continuous(breaks = figure$data$x))
  ggplot2::scale_x_continuous(labels = axis_labels)
}

MIDDLE_SHADED <- "shaded: middle 90 percent; line: median"

# With how many of all parameters are shown, if not all.
densities_words <- function(shown, all)
  paste0(if (shown < all) paste0(shown, " of ", all, " parameters; "), MIDDLE_SHADED)

gg_densities <- function(figures, all) {
  names <- vapply(figures, `[[`, "", "name")
  data <- do.call(rbind, lapply(figures, function(f) {
    height <- stats::approx(f$data$x, f$data$y, f$median)$y
    data.frame(f$data, name = factor(f$name, levels = names),
               inside = f$data$x >= f$low & f$data$x <= f$high, median = f$median, height = height)
  }))
  medians <- data[!duplicated(data$name), ]
  ggplot2::ggplot(data, ggplot2::aes(x = .data$x, y = .data$y)) +
    ggplot2::geom_area(fill = PALE) +
    ggplot2::geom_area(data = data[data$inside, ], fill = MIDDLE) +
    ggplot2::geom_line(colour = BLUE, linewidth = 0.5) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$median, xend = .data$median, y = 0,
                                       yend = .data$height),
                          data = medians, colour = BLUE, linewidth = 0.7) +
    ggplot2::facet_wrap("name", scales = "free") +
    ggplot2::scale_x_continuous(n.breaks = 3) +
    ggplot2::labs(title = "Posterior", subtitle = densities_words(length(figures), all),
                  x = NULL, y = NULL) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.grid = ggplot2::element_blank(), axis.text.y = ggplot2::element_blank(),
                   panel.spacing.x = ggplot2::unit(1.5, "lines"),
                   axis.ticks.x = ggplot2::element_line(colour = "grey50"))
}

draw_density <- function(figure, heading, ...) {
  data <- figure$data
  # not finite if draws were altered, or differ by rounding errors only
  if (!all(is.finite(unlist(data[c("x", "y")]))))
    fail("The draws of `", figure$name, "` have no density that can be drawn.")
  settings <- list(x = NA, y = NA, type = "n", xlim = range(data$x),
                   ylim = c(0, max(data$y) * 1.02), xlab = "",
                   ylab = "", main = heading, axes = FALSE)
  draw_frame(utils::modifyList(settings, list(...)), figure$name, 0.95)
  fill <- function(part, col) {
    if (nrow(part) > 1)
      graphics::polygon(c(part$x, rev(part$x)), c(part$y, rep(0, nrow(part))), col = col,
                        border = NA)
  }
  fill(data, PALE)
  fill(data[data$x >= figure$low & data$x <= figure$high, ], MIDDLE)
  graphics::lines(data$x, data$y, col = BLUE, lwd = 1.2)
  height <- stats::approx(data$x, data$y, figure$median)$y
  graphics::segments(figure$median, 0, figure$median, height, col = BLUE, lwd = 1.8)
  at <- pretty(range(data$x), 3)
  graphics::axis(1, range(data$x), labels = FALSE, lwd = 0.8, lwd.ticks = 0, col = "grey50")
  graphics::axis(1, at, axis_labels(at), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
}
