# Plots of a fit. Each type is first a figure, a list of numbers and labels, which base graphics or
# ggplot2 draw.

plot_types <- function(fit) {
  # without annealing there is only the posterior
  if (ncol(fit$trace) == 0 || isTRUE(fit$audit$first)) return("posterior")
  c("evidence", if (!is.null(fit$nested)) c("climb", "weight")
    else if (!is.null(fit$trace$lambda_steps)) c("steps", "ess"), "posterior",
    if (!is.null(fit$power)) c("energy", "phase"))
}

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
#'   * `"energy"`, for [power_posterior()]: the mean log-likelihood at each power of the likelihood,
#'     which is the slope of the log evidence along the path.
#'   * `"phase"`, for [power_posterior()]: the variance of the log-likelihood times the square of
#'     the power, which physics calls heat capacity. Its height is about half the number of
#'     parameters that the data have fixed at this power. A peak is where particles pass from one
#'     part of the parameter space to another, a phase change: the schedule must be slow there.
#'   * `"posterior"`: marginal posterior densities, with the middle 90 percent shaded and the median
#'     as a line.
#'   * `"prior"`: prior and posterior of each parameter over one another, to see what the data have
#'     added. Each has a height of one.
#'   * `"pairs"`, by `plot()`: a corner plot of up to six parameters, with marginal densities on the
#'     diagonal, draws of each pair below it, and correlations above.
#'   * `"clusters"`, by `plot()` for [gaussian_mixture()] and [clustering()]: two columns of the
#'     data, coloured by the most probable component of each row, with an ellipse that holds 90
#'     percent of each component at the posterior means.
#'
#'   `plot()` without a type shows the first four on one page.
#' @param parameters Names or numbers of the parameters for `"posterior"`, `"prior"` and `"pairs"`;
#'   `NULL`, the default, for the first nine, and six of pairs.
#' @param columns Names or numbers of two columns for `"clusters"`; `NULL`, the default, for the
#'   first two.
#' @param data The data of the fit for `"clusters"`; `NULL`, the default, for those in its call, if
#'   they still exist.
#' @param changes `NULL`, or rows to mark in the plots of a stream: numbers, or a result of
#'   [change_points()]. Rows at which the run started again from the prior are always marked.
#' @param ... For `plot()` with a type: arguments of [plot.default()] such as `main`, `xlab` and
#'   `ylim`, in place of those chosen here. For `autoplot()`: must be empty.
#'
#' @details
#' If a fit has several replicates, the plots show the run of the first. The numbers are in
#' `fit$trace`.
#'
#' In a plot of clusters the numbers at the centres are those of [predict()][predict.evidence] with
#' `type = "class"`. Points are hollow if the probability of their component is below 0.9.
#' Components that are the most probable one of no row have no ellipse. At most 5,000 rows are
#' drawn.
#'
#' @return `plot()` returns `x`, invisibly; `autoplot()` a plot.
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' plot(fit)
#' plot(fit, "posterior", parameters = "speed")
#' plot(fit, "pairs")
#'
#' eruptions <- scale(faithful)
#' mixture <- evidence(gaussian_mixture(components = 2), eruptions, laplace(), seed = 1)
#' plot(mixture, "clusters")
#'
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' ggplot2::autoplot(fit, "evidence")
#'
#' @seealso [summary.evidence()]
#' @export
plot.evidence <- function(x, type = NULL, parameters = NULL, columns = NULL, data = NULL,
                          changes = NULL, ...) {
  check_parts(x)
  if (is.null(type) && length(plot_types(x)) < 4) type <- plot_types(x)[1]
  check_plot_dots(...)
  known <- c(plot_types(x), "prior", "pairs", if (has_clusters(x)) "clusters")
  type <- if (!is.null(type)) check_choice(type, "type", known)
  if (identical(type, "clusters")) {
    plot_clusters(x, columns, data, parent.frame(), ...)
    return(invisible(x))
  }
  for (name in c("columns", "data")) if (!is.null(get(name)))
    fail("`", name, "` must be NULL unless `type` is \"clusters\".")
  if (identical(type, "pairs")) {
    if (...length()) fail("`...` must be empty if `type` is \"pairs\".")
    chosen <- pick_parameters(x, parameters, PAIRS_MOST)
    plot_pairs(x, chosen, lapply(chosen, function(j) density_figure(x, j)))
    return(invisible(x))
  }
  chosen <- pick_parameters(x, parameters)
  if (is.null(type)) plot_overview(x, chosen, changes)
  else if (type == "posterior") plot_densities(x, chosen, ...)
  else if (type == "prior") plot_priors(x, chosen, ...)
  else {
    old <- graphics::par("mar", "mgp", "tcl", "las")
    on.exit(graphics::par(old))
    graphics::par(mar = c(3.6, 5, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
    draw_figure(figure_of(x, type, changes), ...)
  }
  invisible(x)
}

# graphics::par() would open a device.
check_plot_dots <- function(...) {
  known <- c(names(formals(graphics::plot.default)), "adj", "bg", "bty", "cex", "cex.axis",
             "cex.lab", "cex.main", "cex.sub", "col", "col.axis", "col.lab", "col.main", "col.sub",
             "family", "fg", "font", "font.axis", "font.lab", "font.main", "font.sub", "lab", "las",
             "lend", "lty", "lwd", "mgp", "pch", "tck", "tcl", "xaxp", "xaxs", "xaxt", "xpd",
             "yaxp", "yaxs", "yaxt")
  unknown <- setdiff(...names(), c(known, ""))
  if (length(unknown)) refuse_argument(unknown[1], plot.evidence)
}

#' @rdname plot.evidence
#' @exportS3Method ggplot2::autoplot
autoplot.evidence <- function(object, type = plot_types(object)[1], parameters = NULL,
                              changes = NULL, ...) {
  check_no_dots(...)
  type <- check_choice(type, "type", c(plot_types(object), "prior"))
  chosen <- pick_parameters(object, parameters)
  if (type == "prior") return(gg_priors(prior_figures(object, chosen)))
  if (type == "posterior")
    return(gg_densities(lapply(chosen, function(j) density_figure(object, j)),
                        ncol(object$draws)))
  gg_figure(figure_of(object, type, changes))
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

#' @param changes NULL, or rows of changes to mark, or a result of change_points().
#' @noRd
figure_of <- function(fit, type, changes = NULL) {
  figure <- figure_without_marks(fit, type)
  if (!is.null(fit$nested) || is_one_chunk(fit$trace)) return(figure)
  figure$marks <- sort(unique(c(restarted_at(fit$trace), rows_of_changes(changes))))
  figure
}

rows_of_changes <- function(changes) {
  if (is.null(changes)) return(NULL)
  rows <- if (is_plain_numeric(changes)) changes
  else if (is.list(changes) && is.data.frame(changes$changes)) changes$changes$row
  if (!is_plain_numeric(rows) || anyNA(rows))
    refuse(changes, "changes", "numbers of rows, or a result of change_points()")
  rows
}

figure_without_marks <- function(fit, type) {
  if (!is.null(fit$nested))
    return(switch(type, evidence = nested_figure(fit), climb = climb_figure(fit),
                  weight = weight_figure(fit)))
  whole <- is_one_chunk(fit$trace)
  switch(type, evidence = if (whole) path_figure(fit) else evidence_figure(fit),
         steps = if (whole) schedule_figure(fit) else steps_figure(fit), ess = ess_figure(fit),
         energy = energy_figure(fit), phase = phase_figure(fit))
}

# At the powers of the path but the first, the prior, which a logarithmic axis does not have.
power_figure <- function(fit, height, title, ylab) {
  path <- fit$power$path[fit$power$path$lambda > 0, ]
  new_figure(path$lambda, height(path), title, "", POWER, ylab, log = TRUE)
}

energy_figure <- function(fit)
  power_figure(fit, function(path) path$mean, "Mean log-likelihood", "Nats")

phase_figure <- function(fit)
  power_figure(fit, function(path) path$lambda^2 * path$variance, "Heat capacity",
               "Power squared x variance of the log-likelihood")

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

# The trace of the first replicate, its prior volume shrinking from left to right; at most 2,000
# points, because of the resolution of a plot.
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

# Base graphics -----------------------------------------------------------------------------------

# Three figures, and in the fourth quarter up to four parameters.
plot_overview <- function(fit, chosen, changes) {
  figures <- lapply(plot_types(fit)[1:3], function(type) figure_of(fit, type, changes))
  chosen <- utils::head(chosen, 4)
  quarters <- grid_cells(2, 2)
  small <- grid_cells(if (length(chosen) > 2) 2 else 1, min(2, length(chosen)), quarters[[4]])
  draw_panels(function(panel) {
    for (i in 1:3) {
      panel(quarters[[i]], c(3.4, 5, 2.8, 1.6))
      draw_figure(figures[[i]])
    }
    graphics::par(mgp = c(2, 0.4, 0))
    draw_densities(fit, chosen, function(i) panel(small[[i]], c(2, 1, 2.8, 0.8)))
    densities_note(panel, fit, chosen, "posterior, ")
  }, 2, 2, foot = 1.2, mgp = c(2.2, 0.6, 0))
}

plot_densities <- function(fit, chosen, ...) {
  grid <- grDevices::n2mfrow(length(chosen))
  cells <- grid_cells(grid[1], grid[2])
  draw_panels(function(panel) {
    draw_densities(fit, chosen, function(i) panel(cells[[i]], c(2.4, 1, 2.8, 1)), ...)
    densities_note(panel, fit, chosen)
  }, grid[1], grid[2], foot = 1.4, mgp = c(2, 0.5, 0))
}

# At the foot of all panels, as the titles of small ones have no room for it.
densities_note <- function(panel, fit, chosen, start = "") {
  panel(c(0, 1, 0, 1), c(0, 0, 0, 0))
  graphics::plot.new()
  graphics::mtext(paste0(start, densities_words(length(chosen), ncol(fit$draws))), side = 1,
                  adj = 0.98, line = 0.1, cex = min(0.7, graphics::par("cex")),
                  col = "grey35")
}

# One heading, over the first of them.
draw_densities <- function(fit, chosen, begin, ...) {
  for (i in seq_along(chosen)) {
    figure <- density_figure(fit, chosen[i])
    begin(i)
    draw_density(figure, if (i == 1) "Posterior" else "", ...)
  }
}
