# Verbs on change points: print(), summary(), data frames and plots.

# Rules of the parts that verbs use (R/base-check.R).
change_points_parts <- function() {
  each <- function(x) numbers_rule(NULL)(x)
  tables <- function(columns, rows) {
    force(rows)
    right <- table_rule(columns)
    function(x, found) right(x) && nrow(x) == rows(found) && each(unlist(unclass(x)[columns]))
  }
  changes <- function(x) x$number
  # the rows at which times are known, and these times, which may be dates
  times <- function(x) is.null(x) ||
    is.list(x) && each(x$row) && !is.unsorted(x$row) && length(x$value) == length(x$row) &&
    is.atomic(x$value) && !anyNA(x$value)
  band <- function(x) is.null(x) || is_whole_table(x) && nrow(x) > 0 &&
    each(unlist(unclass(x)[c("row", "y", "mean", "lower", "upper")]))
  list(
    model = function(x) is_made(x, "evidence_model"), n = numbers_rule(1, 1, whole = TRUE),
    numbers = function(x) table_rule(c("changes", "log_evidence", "error", "log_bayes_factor",
                                       "prior", "posterior"))(x) && nrow(x) > 0,
    number = numbers_rule(1, 0, function(x) NROW(x$numbers) - 1, TRUE),
    at_name = is_one_string, least = numbers_rule(1, 1), level = numbers_rule(1, 0, 1),
    draws = numbers_rule(1, 1), duration = function(x) is.null(x) || numbers_rule(1, 1)(x),
    blocks = numbers_rule(1, 1), exact = function(x) is.logical(x) && length(x) == 1 && !is.na(x),
    kind = is_one_string, warnings = function(x) is.null(x) || is.character(x),
    note = function(x) is.null(x) || is.character(x), times = times, band = band,
    shared = function(x) is.null(x) ||
      table_rule(c("mean", "lower", "upper"))(x) && is.character(x$parameter),
    segments = function(x, found)
      table_rule(c("segment", "first", "last", "mean", "lower", "upper"))(x) &&
      is.character(x$parameter) && each(c(x$segment, x$first, x$last)) &&
      all(x$first >= 1 & x$last <= found$n),
    changes = tables(c("row", "probability", "from", "to"), changes),
    positions = function(x, found) table_rule(c("row", "rows", "probability"))(x) &&
      each(unlist(unclass(x))) &&
      all(x$row >= 1 & x$row < found$n) && nrow(x) < found$n
  )
}

check_change_points <- function(found)
  check_parts_of(found, change_points_parts(), "Change points", "change_points()",
                 "compute them again.")

#' @rdname change_points
#' @param x,object Change points.
#' @param ... Must be empty.
#' @export
print.change_points <- function(x, ...) {
  check_no_dots(...)
  check_change_points(x)
  show_numbers(x)
  show_changes(x)
  for (sentence in c(x$note, x$warnings)) cat_wrapped(paste0("\n", sentence))
  invisible(x)
}

#' @rdname change_points
#' @export
summary.change_points <- function(object, ...) {
  check_no_dots(...)
  check_change_points(object)
  structure(list(found = object), class = "summary.change_points")
}

#' @export
print.summary.change_points <- function(x, ...) {
  found <- x$found
  check_change_points(found)
  show_numbers(found)
  show_changes(found)
  cat("\nSegments between the most probable rows\n")
  table <- found$segments
  table <- table[!table$parameter %in% found$shared$parameter, ]
  shown <- data.frame(segment = table$segment, from = show_at(found, table$first),
                      to = show_at(found, table$last), parameter = table$parameter,
                      mean = format_each(signif(table$mean, 4)),
                      interval = paste(format_each(signif(table$lower, 4)), "to",
                                       format_each(signif(table$upper, 4))))
  if (all(is.na(table$parameter))) shown <- shown[1:3]
  print.data.frame(shown, row.names = FALSE, right = FALSE)
  cat("\n")
  cat_wrapped(how_summed(found))
  for (sentence in c(found$note, found$warnings)) cat_wrapped(paste0("\n", sentence))
  invisible(x)
}

# The time of a row, or its number.
show_at <- function(found, row) {
  time <- time_at(found$times, row)
  if (is_plain_numeric(time)) format_each(time) else format(time)
}

show_numbers <- function(x) {
  ends <- show_at(x, c(1, x$n))
  cat("Change points in ", count(x$n), " rows", if (x$at_name != "row")
    paste0(", ", x$at_name, " ", ends[1], " to ", ends[2]), "\n", sep = "")
  cat("  model:  ", describe(x$model)[[1]], "\n", sep = "")
  cat("  prior:  ", positions_words(x), "\n\n", sep = "")
  table <- x$numbers
  rough <- any(table$error > 5e-5)
  shown <- cbind(
    format(c("changes", table$changes), justify = "right"),
    format(c("log evidence", if (rough) align_estimates(table$log_evidence, table$error)
             else format_number_each(table$log_evidence, 4)), justify = "right"),
    format(c("log BF", c("", format_number_each(table$log_bayes_factor[-1], 2))),
           justify = "right"),
    format(c("prior", show_probability(table$prior)), justify = "right"),
    format(c("posterior", show_probability(table$posterior)), justify = "right")
  )
  cat(paste0("  ", apply(shown, 1, paste, collapse = "  "), "\n"), sep = "")
}

positions_words <- function(x) {
  paste0(if (is.null(x$duration)) "positions uniform given the number of changes"
         else paste0("geometric durations, ", format(x$duration), " rows on average"),
         if (x$least > 1) paste0(", segments of at least ", count(x$least), " rows"))
}

show_changes <- function(x) {
  if (x$number == 0) {
    cat_wrapped("\nNo change is the most probable. Bayes factors are those against no change.")
    return(show_shared(x))
  }
  cat_wrapped(paste0("\nGiven ", count_of(x$number, "change"), ", the most probable number:"))
  for (r in seq_len(x$number)) {
    cat_indented(paste0(r, ". ", change_words(x, r)), 2)
    if (sum(x$sizes$change == r) < TABLE_FROM)
      for (size in size_words(x, r)) cat_indented(size, 5)
    else cat(paste0("     ", size_lines(x, r), "\n"), sep = "")
  }
  show_shared(x)
}

show_shared <- function(x) {
  table <- x$shared
  if (is.null(table)) return(invisible())
  cat("\nThe same in all segments\n")
  digits <- function(v) format_each(signif(v, 4))
  shown <- data.frame(parameter = table$parameter, mean = digits(table$mean),
                      interval = paste(digits(table$lower), "to", digits(table$upper)))
  print.data.frame(shown, row.names = FALSE, right = FALSE)
}

# Text such as "after year 1898 (probability 0.770), 95% interval 1896 to 1899".
change_words <- function(x, r) {
  change <- x$changes[r, ]
  paste0("after ", x$at_name, " ", show_at(x, change$row), " (probability ",
         show_probability(change$probability), "), ", percent(x$level), " interval ",
         show_at(x, change$from), " to ", show_at(x, change$to))
}

# A text for each parameter.
size_words <- function(x, r) {
  sizes <- x$sizes[x$sizes$change == r, ]
  digits <- function(v) format_each(signif(v, 4))
  vapply(seq_len(nrow(sizes)), function(i) {
    size <- sizes[i, ]
    paste0(size$parameter, " from ", digits(size$before), " to ", digits(size$after), ", by ",
           digits(size$difference), " (", digits(size$lower), " to ", digits(size$upper),
           "), larger with probability ", show_drawn(size$up, x$draws))
  }, "")
}

# So many parameters are printed as a table, fewer as sentences.
TABLE_FROM <- 4

size_lines <- function(x, r) {
  sizes <- x$sizes[x$sizes$change == r, ]
  digits <- function(v) format_each(signif(v, 4))
  right <- function(name, text) format(c(name, text), justify = "right")
  columns <- list(format(c("", sizes$parameter)), right("before", digits(sizes$before)),
                  right("after", digits(sizes$after)),
                  right("difference", digits(sizes$difference)),
                  right(paste(percent(x$level), "interval"),
                        paste(digits(sizes$lower), "to", digits(sizes$upper))),
                  right("P(larger)", vapply(sizes$up, show_drawn, "", x$draws)))
  sub(" +$", "", do.call(paste, c(columns, sep = "  ")))
}

# A probability estimated by a share of draws: 0 of 1,000 is shown as "below 0.001".
show_drawn <- function(share, draws) {
  if (share == 0) paste("below", format(1 / draws))
  else if (share == 1) paste("above", format(1 - 1 / draws)) else show_probability(share)
}

cat_indented <- function(line, indent)
  cat(strwrap(line, max(60, getOption("width")), indent, indent + 3), sep = "\n")

how_summed <- function(x) {
  c(if (x$exact) "Every row is a possible position."
    else paste0("Positions on a grid of ", count(x$blocks), " blocks, refined where a change is ",
                "probable; `error` in `numbers` is what the grid leaves out."),
    if (x$kind == "closed") "Evidences of segments are in closed form."
    else if (x$kind == "shared")
      paste0("Evidences of segments are in closed form given what they share, and the integral ",
             "over that is an estimate; `error` in `numbers` holds its standard error, too.")
    else paste0("Evidences of segments are estimates; `error` in `numbers` holds their errors, ",
                "too."))
}

#' @rdname change_points
#' @param type Which table: `"changes"`, `"rows"`, `"numbers"`, `"sizes"` or `"segments"`.
#' @param row.names,optional Unused.
#' @export
as.data.frame.change_points <- function(x, row.names = NULL, optional = FALSE,
                                        type = c("changes", "rows", "numbers", "sizes",
                                                 "segments"), ...) {
  check_no_dots(...)
  check_change_points(x)
  # the call as.data.frame(x, "rows"), whose second argument is `row.names`
  if (is.character(row.names) && missing(type)) type <- row.names
  type <- check_choice(type, "type", c("changes", "rows", "numbers", "sizes", "segments"))
  if (type != "rows") return(x[[type]])
  p <- x$positions
  each <- p$probability / p$rows
  row <- seq_len(x$n - 1)
  # the rows that a position stands for end halfway to its neighbours
  edges <- c(0.5, if (nrow(p) > 1) (p$row[-1] + p$row[-nrow(p)]) / 2, x$n - 0.5)
  cumulated <- stats::approx(edges, c(0, cumsum(p$probability)), c(0.5, row + 0.5))$y
  data.frame(row = row, at = time_at(x$times, row),
             probability = if (x$exact) p$probability else pmax(0, diff(cumulated)))
}

# Pictures ----------------------------------------------------------------------------------------

#' @rdname change_points
#' @export
plot.change_points <- function(x, ...) {
  check_no_dots(...)
  check_change_points(x)
  time_of <- function(row) time_at(x$times, row)
  time <- time_of(c(1, x$n))
  limits <- as.numeric(time)
  frame <- function(ylim, xlab, ylab, main, note) {
    draw_frame(list(x = NA, y = NA, type = "n", xlim = limits, ylim = ylim, xlab = xlab,
                    ylab = ylab, main = main, axes = FALSE), note)
    at <- if (is_plain_numeric(time)) graphics::axTicks(1)
    else as.numeric(graphics::Axis(time, side = 1, labels = FALSE, tick = FALSE))
    at_y <- graphics::axTicks(2)
    graphics::abline(h = at_y, v = at, col = FAINT, lwd = 0.8)
    graphics::axis(2, at_y, axis_labels(at_y), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
    marks <- as.numeric(x$changes$at)
    graphics::abline(v = marks, col = ORANGE, lty = 2)
  }
  bottom <- function() {
    if (is_plain_numeric(time)) {
      at <- graphics::axTicks(1)
      years <- all(abs(at) < 1e4) && x$at_name != "row"
      graphics::axis(1, at, if (years) at else axis_labels(at), lwd = 0, lwd.ticks = 0.8,
                     col.ticks = "grey50")
    } else graphics::Axis(time, side = 1, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  }
  band <- x$band
  draw_band <- function() {
    at <- as.numeric(time_of(band$row))
    frame(range(band$y, band$lower, band$upper), "", response_name(x), plot_title(x),
          band_note(x))
    graphics::points(at, band$y, pch = 16, cex = 0.6, col = "grey60")
    graphics::polygon(c(at, rev(at)), c(band$lower, rev(band$upper)), border = NA,
                      col = grDevices::adjustcolor(MIDDLE, 0.6))
    graphics::lines(at, band$mean, col = BLUE, lwd = 1.8)
    bottom()
  }
  spikes <- spike_table(x)
  draw_panels(function(panel) {
    if (is.null(band)) panel(c(0, 1, 0, 1), c(3.6, 5, 3, 1.6))
    else {
      panel(c(0, 1, 0.4, 1), c(2.2, 5, 3, 1.6))
      draw_band()
      panel(c(0, 1, 0, 0.4), c(3.6, 5, 2.4, 1.6))
    }
    frame(c(0, max(spikes$probability, 0.01)), time_name(x), "Probability",
          if (is.null(band)) plot_title(x) else "", spike_note(x))
    graphics::segments(as.numeric(spikes$at), 0, as.numeric(spikes$at), spikes$probability,
                       col = BLUE, lwd = 2, lend = "butt")
    bottom()
  }, 2, 1)
  invisible(x)
}

#' @rdname change_points
#' @exportS3Method ggplot2::autoplot
autoplot.change_points <- function(object, ...) {
  check_no_dots(...)
  x <- object
  panels <- c(response_name(x), spike_note(x))
  spikes <- spike_table(x)
  spikes$panel <- factor(panels[2], panels)
  marks <- data.frame(at = x$changes$at)
  plot <- ggplot2::ggplot()
  if (!is.null(x$band)) {
    band <- cbind(x$band, at = time_at(x$times, x$band$row), panel = factor(panels[1], panels))
    plot <- plot +
      ggplot2::geom_point(ggplot2::aes(x = .data$at, y = .data$y), band, colour = "grey60",
                          size = 0.8) +
      ggplot2::geom_ribbon(ggplot2::aes(x = .data$at, ymin = .data$lower, ymax = .data$upper),
                           band, fill = MIDDLE, alpha = 0.6) +
      ggplot2::geom_line(ggplot2::aes(x = .data$at, y = .data$mean), band, colour = BLUE,
                         linewidth = 0.7)
  }
  plot +
    ggplot2::geom_vline(ggplot2::aes(xintercept = .data$at), marks, colour = ORANGE, linetype = 2) +
    ggplot2::geom_linerange(ggplot2::aes(x = .data$at, ymin = 0, ymax = .data$probability), spikes,
                            colour = BLUE, linewidth = 0.8) +
    ggplot2::facet_wrap("panel", ncol = 1, scales = "free_y") +
    ggplot2::labs(title = plot_title(x), subtitle = if (!is.null(x$band)) band_note(x),
                  x = time_name(x), y = NULL) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.grid.minor = ggplot2::element_blank())
}

plot_title <- function(x) {
  if (x$number == 0) return("No change")
  paste0(count_of(x$number, "change"), ", probability ",
         show_probability(x$numbers$posterior[x$number + 1]))
}

band_note <- function(x) paste0("line: mean; band: ", percent(x$level), "; dashed: changes")

response_name <- function(x)
  if (is.null(x$model$formula)) "y" else deparse1(x$model$formula[[2]])

time_name <- function(x) if (x$at_name == "row") "Row" else x$at_name

# Of more than twice as many rows a picture shows the sums over so many equal parts of the time.
SHOWN_SPIKES <- 200

spike_table <- function(x) {
  p <- x$positions
  if (nrow(p) == 0) return(data.frame(at = time_at(x$times, 1)[0], probability = numeric()))
  if (x$n <= 2 * SHOWN_SPIKES)
    return(data.frame(at = time_at(x$times, p$row), probability = p$probability))
  time <- as.numeric(time_at(x$times, p$row))
  limits <- as.numeric(time_at(x$times, c(1, x$n)))
  cell <- pmin(SHOWN_SPIKES, 1 + floor(SHOWN_SPIKES * (time - limits[1]) / diff(limits)))
  sums <- tapply(p$probability, cell, sum)
  most <- tapply(seq_along(cell), cell, function(i) i[which.max(p$probability[i])])
  data.frame(at = time_at(x$times, p$row[most]), probability = as.numeric(sums))
}

spike_note <- function(x) {
  if (x$n <= 2 * SHOWN_SPIKES) return("Probability of a change after each row")
  paste0("Probability of a change in each 1/", SHOWN_SPIKES, " of the time")
}
