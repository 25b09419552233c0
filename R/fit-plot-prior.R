# plot(fit, "prior"): prior and posterior of each parameter over one another.

# Draws of the prior for its density.
DRAWS_OF_PRIOR <- 20000

#' Prior draws of all parameters on the user's scale, a row each
#' @noRd
prior_draws_of <- function(fit) {
  call <- prior_caller(fit, "`type` must not be \"prior\" for")
  words <- seed_words(1)
  draw <- function() call("draw_prior", extra = list(n = DRAWS_OF_PRIOR, seed = words))
  points <- if (asks_r(fit$model)) with_seed_words(words, draw()) else draw()
  user <- t(matrix(call("to_user", points), ncol = DRAWS_OF_PRIOR))
  colnames(user) <- colnames(fit$draws)
  user
}

#' The densities of a parameter, each with a height of one
#'
#' The axis shows the middle 90 percent of the prior and the whole posterior.
#' @param draws From prior_draws_of().
#' @return A list: `name`, and `posterior` and `prior`, data frames of `x` and `y`.
#' @noRd
prior_figure <- function(fit, j, draws) {
  whole <- density_figure(fit, j)
  x <- draws[is.finite(draws[, j]), j]
  ends <- range(whole$data$x, stats::quantile(x, c(0.05, 0.95)))
  pad <- diff(ends) / 4
  near <- x[x > ends[1] - pad & x < ends[2] + pad]
  if (length(near) < 2) near <- ends
  of_prior <- density_of(whole$name, near, numeric(length(near)),
                         part_of(fit$model, "limits")(fit)[, j])$data
  of_prior <- of_prior[of_prior$x >= ends[1] & of_prior$x <= ends[2], ]
  high <- function(data) transform(data, y = data$y / max(data$y))
  list(name = whole$name, posterior = high(whole$data), prior = high(of_prior))
}

prior_figures <- function(fit, chosen) {
  draws <- prior_draws_of(fit)
  lapply(chosen, function(j) prior_figure(fit, j, draws))
}

PRIOR_WORDS <- "area: posterior, line: prior; both have a height of one"

plot_priors <- function(fit, chosen, ...) {
  figures <- prior_figures(fit, chosen)
  grid <- grDevices::n2mfrow(length(chosen))
  cells <- grid_cells(grid[1], grid[2])
  draw_panels(function(panel) {
    for (i in seq_along(figures)) {
      panel(cells[[i]], c(2.4, 1, 2.8, 1))
      draw_both(figures[[i]], if (i == 1) "Prior and posterior" else "", ...)
    }
    panel(c(0, 1, 0, 1), c(0, 0, 0, 0))
    graphics::plot.new()
    graphics::mtext(PRIOR_WORDS, side = 1, adj = 0.98, line = 0.1,
                    cex = min(0.7, graphics::par("cex")), col = "grey35")
  }, grid[1], grid[2], foot = 1.4, mgp = c(2, 0.5, 0))
}

draw_both <- function(figure, heading, ...) {
  ends <- range(figure$posterior$x, figure$prior$x)
  settings <- list(x = NA, y = NA, type = "n", xlim = ends, ylim = c(0, 1.02), xlab = "",
                   ylab = "", main = heading, axes = FALSE)
  draw_frame(utils::modifyList(settings, list(...)), figure$name, 0.95)
  area <- figure$posterior
  graphics::polygon(c(area$x, rev(area$x)), c(area$y, rep(0, nrow(area))), col = MIDDLE,
                    border = BLUE)
  graphics::lines(figure$prior$x, figure$prior$y, col = ORANGE, lwd = 1.8)
  at <- pretty(ends, 3)
  graphics::axis(1, ends, labels = FALSE, lwd = 0.8, lwd.ticks = 0, col = "grey50")
  graphics::axis(1, at, axis_labels(at), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
}

gg_priors <- function(figures) {
  names <- vapply(figures, `[[`, "", "name")
  joined <- function(part) do.call(rbind, lapply(figures, function(f)
    data.frame(f[[part]], name = factor(f$name, levels = names))))
  ggplot2::ggplot(joined("posterior"), ggplot2::aes(x = .data$x, y = .data$y)) +
    ggplot2::geom_area(fill = MIDDLE, colour = BLUE, linewidth = 0.4) +
    ggplot2::geom_line(data = joined("prior"), colour = ORANGE, linewidth = 0.7) +
    ggplot2::facet_wrap("name", scales = "free") +
    ggplot2::scale_x_continuous(n.breaks = 3) +
    ggplot2::labs(title = "Prior and posterior", subtitle = PRIOR_WORDS, x = NULL, y = NULL) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.grid = ggplot2::element_blank(), axis.text.y = ggplot2::element_blank(),
                   panel.spacing.x = ggplot2::unit(1.5, "lines"),
                   axis.ticks.x = ggplot2::element_line(colour = "grey50"))
}
