# Plots of a fit. Each type is first a figure, a list of numbers and labels, which base graphics or
# ggplot2 draw.

plot_types <- function(fit) {
  # without annealing there is only the posterior
  if (ncol(fit$trace) == 0 || isTRUE(fit$audit$first)) return("posterior")
  c("evidence", if (!is.null(fit$nested)) c("climb", "weight")
    else if (!is.null(fit$trace$lambda_steps)) c("steps", "ess"), "posterior")
}

# Colours that the colour-blind can tell apart (Okabe and Ito).
BLUE <- "#0072B2"
PALE <- "#CCE3F0"
MIDDLE <- "#8FC1DE"
ORANGE <- "#D55E00"
FAINT <- "#E6E6E6"

#' Plot a fit
#'
#' Plots of the log evidence during the run, the annealing steps of each chunk, the effective sample
#' size, and the posterior. `plot()` uses base graphics, `autoplot()` returns a \pkg{ggplot2}
#' object.
#'
#' @param x,object A fit from [evidence()].
#' @param type What to plot:
#'   * `"evidence"`: log evidence per observation against the number of observations, with a band of
#'     two standard errors of the sampler. The point is the reported estimate. Methods that anneal
#'     all data at once have the log evidence against the power of the likelihood instead; nested
#'     sampling, against the log of the prior volume left.
#'   * `"steps"`: annealing steps in each chunk; a large number means that the data changed at this
#'     place. For methods that anneal all data at once, the power of the likelihood at each step.
#'   * `"ess"`: effective sample size, in percent of the particles, after each chunk or step.
#'   * `"climb"`, for nested sampling: log likelihood of the points against the log of the prior
#'     volume that is left.
#'   * `"weight"`, for nested sampling: weight of the points against the log of the prior volume
#'     that is left.
#'   * `"posterior"`: marginal posterior densities, with the middle 90 percent shaded and the median
#'     as a line.
#'
#'   `plot()` without a type shows all four on one page.
#' @param parameters Names or numbers of the parameters for `"posterior"`; `NULL`, the default, for
#'   the first nine.
#' @param ... For `plot()` with a type: arguments of [plot.default()] such as `main`, `xlab` and
#'   `ylim`, in place of those chosen here. For `autoplot()`: must be empty.
#'
#' @details
#' If a fit has several replicates, the plots show the run of the first. The numbers are in
#' `fit$trace`.
#'
#' @return `plot()` returns `x`, invisibly; `autoplot()` a plot.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' plot(fit)
#' plot(fit, "posterior", parameters = "speed")
#'
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' ggplot2::autoplot(fit, "evidence")
#'
#' @seealso [summary.evidence()]
#' @export
plot.evidence <- function(x, type = NULL, parameters = NULL, ...) {
  if (is.null(type) && length(plot_types(x)) < 4) type <- plot_types(x)[1]
  type <- if (!is.null(type)) check_choice(type, "type", plot_types(x))
  chosen <- pick_parameters(x, parameters)
  old <- graphics::par("mfrow", "mar", "mgp", "tcl", "las", "oma", "cex")
  alone <- !is.null(type) && type != "posterior"
  on.exit(graphics::par(if (alone) old[c("mar", "mgp", "tcl", "las")] else old))
  if (is.null(type)) {
    plot_overview(x, chosen)
  } else if (alone) {
    graphics::par(mar = c(3.6, 5, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
    draw_figure(figure_of(x, type), ...)
  } else {
    graphics::par(mfrow = grDevices::n2mfrow(length(chosen)), mar = c(2.4, 1, 2.8, 1),
                  mgp = c(2, 0.5, 0), tcl = -0.3, las = 1)
    draw_densities(x, chosen, ...)
  }
  invisible(x)
}

#' @rdname plot.evidence
#' @exportS3Method ggplot2::autoplot
autoplot.evidence <- function(object, type = plot_types(object)[1], parameters = NULL, ...) {
  check_no_dots(...)
  type <- check_choice(type, "type", plot_types(object))
  chosen <- pick_parameters(object, parameters)
  if (type == "posterior")
    return(gg_densities(lapply(chosen, function(j) density_figure(object, j))))
  gg_figure(figure_of(object, type))
}

#' The columns of the draws to show
#' @noRd
pick_parameters <- function(fit, parameters, most = 9) {
  names <- colnames(fit$draws)
  if (is.null(parameters)) return(seq_len(min(most, length(names))))
  if (!is.character(parameters) && !is_plain_numeric(parameters) || length(parameters) == 0)
    refuse(parameters, "parameters", "names or numbers of parameters")
  if (length(parameters) > most)
    fail("`parameters` must be at most ", most, ", not ", length(parameters), ".")
  known <- if (is.character(parameters)) parameters %in% names else parameters %in% seq_along(names)
  if (!all(known))
    fail("`parameters` must be among ",
         if (is.character(parameters)) show_names(names) else paste0("1 to ", length(names)),
         ", not ", show_value(parameters[!known][1]), ".")
  if (is.character(parameters)) match(parameters, names) else parameters
}

# Figures -----------------------------------------------------------------------------------------

figure_of <- function(fit, type) {
  if (!is.null(fit$nested))
    return(switch(type, evidence = nested_figure(fit), climb = climb_figure(fit),
                  weight = weight_figure(fit)))
  whole <- is_one_chunk(fit$trace)
  switch(type, evidence = if (whole) path_figure(fit) else evidence_figure(fit),
         steps = if (whole) schedule_figure(fit) else steps_figure(fit), ess = ess_figure(fit))
}

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

POWER <- "Power of the likelihood"

# A point for the reported estimate; the line ends at the sampler's estimate.
reported <- function(fit, x, divisor = 1) {
  if (!is.finite(fit$log_evidence)) return(NULL)
  se <- if (is.finite(fit$se)) fit$se else 0
  data.frame(x = x, y = fit$log_evidence / divisor, lower = (fit$log_evidence - 2 * se) / divisor,
             upper = (fit$log_evidence + 2 * se) / divisor)
}

note_of <- function(fit) {
  paste0("band: sampler, 2 standard errors; point: reported",
         switch(fit$source, audit = " (importance-sampling check)",
                replicates = " (all replicates)", ""))
}

is_wide <- function(n) length(n) > 1 && max(n) >= 50 * min(n)

evidence_figure <- function(fit) {
  trace <- fit$trace
  n <- trace$n
  new_figure(
    n, trace$log_evidence / n, "Log evidence per observation", note_of(fit), "Observations",
    "Nats per observation",
    lower = (trace$log_evidence - 2 * trace$se) / n,
    upper = (trace$log_evidence + 2 * trace$se) / n, log = is_wide(n),
    estimate = reported(fit, fit$n, fit$n)
  )
}

# Starts at the prior, with log evidence 0.
path_figure <- function(fit) {
  trace <- fit$trace
  new_figure(
    c(0, trace$lambda), c(0, trace$log_evidence), "Log evidence along the path", note_of(fit),
    POWER, "Nats",
    lower = c(0, trace$log_evidence - 2 * trace$se),
    upper = c(0, trace$log_evidence + 2 * trace$se), estimate = reported(fit, 1)
  )
}

VOLUME <- "Log of the prior volume left"

# Of the first replicate, with the prior volume shrinking from left to right; at most 2,000 points,
# because of the resolution of a plot.
climb_points <- function(fit) {
  points <- fit$nested$points
  points$weight <- exp(points$log_weight)
  points$sum <- fit$sampler$log_evidence + log(cumsum(points$weight))
  points$shrunk <- -points$log_volume
  points[unique(round(seq(1, nrow(points), length.out = 2000))), ]
}

nested_figure <- function(fit) {
  points <- climb_points(fit)
  shown <- points$sum > fit$sampler$log_evidence - 20
  new_figure(-points$shrunk[shown], points$sum[shown], "Log evidence so far", "point: reported",
             VOLUME, "Nats", reversed = TRUE, estimate = reported(fit, -max(points$shrunk)))
}

climb_figure <- function(fit) {
  points <- climb_points(fit)
  shown <- points$log_lik >= min(points$log_lik[points$weight > 1e-30 * max(points$weight)])
  new_figure(-points$shrunk[shown], points$log_lik[shown], "Likelihood of the points", "", VOLUME,
             "Nats", reversed = TRUE)
}

# Weight of each point per unit of log volume.
weight_figure <- function(fit) {
  points <- fit$nested$points
  weight <- exp(points$log_weight) * fit$nested$levels$live
  bins <- cut(points$log_volume, 120)
  height <- tapply(weight, bins, mean)
  at <- tapply(points$log_volume, bins, mean)
  new_figure(rev(at), rev(height / max(height, na.rm = TRUE)), "Where the posterior lies", "",
             VOLUME, "Relative weight", reversed = TRUE, from_zero = TRUE)
}

steps_figure <- function(fit) {
  trace <- fit$trace
  new_figure(trace$n, trace$lambda_steps, "Annealing steps of each chunk", "", "Observations",
             "Steps",
             shape = "spikes", log = is_wide(trace$n), from_zero = TRUE, whole_numbers = TRUE)
}

schedule_figure <- function(fit) {
  new_figure(c(0, cumsum(fit$trace$lambda_steps)), c(0, fit$trace$lambda), "Annealing schedule", "",
             "Step", POWER, from_zero = TRUE)
}

ess_figure <- function(fit) {
  trace <- fit$trace
  share <- 100 * trace$ess / trace$particles
  title <- "Effective sample size"
  figure <- if (is_one_chunk(trace)) {
    new_figure(cumsum(trace$lambda_steps), share, title, "", "Step", "Percent of particles")
  } else {
    new_figure(trace$n, share, title, "", "Observations", "Percent of particles",
               log = is_wide(trace$n))
  }
  figure$ylim <- c(0, 100)
  figure
}

# Bandwidth by Silverman's rule, from weighted spread and effective size.
density_figure <- function(fit, j) {
  used <- fit$log_weights > max(fit$log_weights) - 18 # smaller weights are invisible
  x <- fit$draws[used, j]
  weights <- exp(fit$log_weights[used])
  weights <- weights / sum(weights)
  quantiles <- weighted_quantile(x, weights, c(0.05, 0.25, 0.5, 0.75, 0.95))
  spread <- c(weighted_sd(x, weights), (quantiles[4] - quantiles[2]) / 1.34)
  spread <- spread[is.finite(spread) & spread > 0]
  width <- if (length(spread)) 0.9 * min(spread) * sum(weights^2)^0.2
  else max(abs(x[which.max(weights)]), 1) * 1e-3
  grid <- stats::density(x, bw = width, weights = weights, n = 512)
  list(
    name = colnames(fit$draws)[j], data = data.frame(x = grid$x, y = grid$y),
    median = quantiles[3], low = quantiles[1], high = quantiles[5]
  )
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

# 1,000 and 100,000, not 1e+05.
axis_labels <- function(at) {
  text <- format(at, big.mark = ",", decimal.mark = ".", trim = TRUE, scientific = FALSE)
  ifelse(abs(at) >= 1e6, sub("e\\+0*", "e", format(at, trim = TRUE, digits = 3, scientific = TRUE)),
         text)
}

# Base graphics -----------------------------------------------------------------------------------

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

draw_density <- function(figure, heading, ...) {
  data <- figure$data
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

# Three figures, and in the fourth quarter up to four parameters.
plot_overview <- function(fit, chosen) {
  chosen <- utils::head(chosen, 4)
  few <- length(chosen)
  quarter <- if (few == 1) matrix(4, 2, 2) else if (few == 2) matrix(c(4, 5, 4, 5), 2)
  else matrix(c(4, 6, 5, if (few == 4) 7 else 0), 2)
  graphics::layout(rbind(cbind(matrix(1, 2, 2), matrix(2, 2, 2)), cbind(matrix(3, 2, 2), quarter)))
  # layout() makes text smaller as mfrow does for so many panels; here they are larger
  graphics::par(cex = 0.83, mar = c(3.4, 5, 2.8, 1.6), mgp = c(2.2, 0.6, 0), tcl = -0.3, las = 1,
                oma = rep(0, 4))
  for (type in plot_types(fit)[1:3]) draw_figure(figure_of(fit, type))
  graphics::par(mar = c(2, 1, 2.8, 0.8), mgp = c(2, 0.4, 0))
  draw_densities(fit, chosen)
}

# One heading, over the first of them.
draw_densities <- function(fit, chosen, ...) {
  for (i in seq_along(chosen))
    draw_density(density_figure(fit, chosen[i]), if (i == 1) "Posterior" else "", ...)
}

# ggplot2 -----------------------------------------------------------------------------------------

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

gg_densities <- function(figures) {
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
    ggplot2::labs(title = "Posterior", subtitle = "shaded: middle 90 percent; line: median",
                  x = NULL, y = NULL) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.grid = ggplot2::element_blank(), axis.text.y = ggplot2::element_blank(),
                   panel.spacing.x = ggplot2::unit(1.5, "lines"),
                   axis.ticks.x = ggplot2::element_line(colour = "grey50"))
}
