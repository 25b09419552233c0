# Pictures of a race: the log Bayes factor of two models, posterior probabilities, and log scores,
# against rows.

#' @rdname race
#' @export
plot.evidence_race <- function(x, type = NULL, reference = NULL, ...) {
  check_no_dots(...)
  if (identical(type, "models")) return(plot.model_comparison(x))
  draw_race(race_figure(x, type, reference))
  invisible(x)
}

#' @rdname race
#' @exportS3Method ggplot2::autoplot
autoplot.evidence_race <- function(object, type = NULL, reference = NULL, ...) {
  check_no_dots(...)
  if (identical(type, "models")) return(autoplot.model_comparison(object))
  gg_race(race_figure(object, type, reference))
}

RACE_TYPES <- c("bayes factor", "probability", "score", "models")

# Colours for up to eight models (Okabe and Ito), in an order that keeps neighbours apart.
RACE_COLOURS <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#F0E442",
                  "#999999")
RACE_MOST <- 8

#' What is drawn, for both systems of graphics
#'
#' @return A list: `type`, `lines` (a data frame of `rows`, `model`, `value`, `lower`, `upper`),
#'   `title`, `note`, `ylab`; for Bayes factors also `pair`, `ladder` and `crossed`.
#' @noRd
race_figure <- function(x, type, reference) {
  require_race(x)
  several <- length(fits_in_order(x)) != 2
  if (is.null(type)) type <- if (several && is.null(reference)) RACE_TYPES[2] else RACE_TYPES[1]
  type <- check_choice(type, "type", RACE_TYPES)
  figure <- if (type == "bayes factor") bayes_factor_figure(x, race_pair(x, reference))
  else if (type == "probability") probability_figure(x) else score_figure(x)
  c(list(type = type, breaks = race_breaks(figure$lines$rows)), figure)
}

# Where the rows of an axis are marked; long streams have an axis of logarithms.
race_breaks <- function(rows) {
  log <- max(rows) / min(rows) > 200
  at <- if (log) 10^(0:12) else pretty(c(0, rows), 5)
  list(log = log, at = at[at >= min(rows) * (if (log) 1 else 0) & at <= max(rows)])
}

bayes_factor_figure <- function(x, pair) {
  path <- bayes_factor_path(x, pair)
  # a fit that failed its checks has no place in the line
  path <- path[!is.na(path$log_bf), ]
  if (!nrow(path)) fail("There is no moment at which both models passed their checks.")
  lines <- data.frame(rows = path$rows, model = pair[1], value = path$log_bf, lower = path$lower,
                      upper = path$upper)
  crossed <- crossings(x, pair)
  crossed <- crossed[!is.na(crossed$rows), ]
  # of several thresholds that were crossed at the same row the farthest is marked
  crossed <- crossed[order(-abs(log(crossed$bayes_factor))), ]
  crossed <- crossed[!duplicated(crossed$rows), ]
  crossed <- crossed[order(crossed$rows), ]
  last <- lines$value[nrow(lines)]
  list(lines = lines, pair = pair, crossed = crossed,
       title = paste("Bayes factor of", pair[1], "over", pair[2]),
       note = paste0("band: 2 standard errors; dots: first past a threshold; at the end ",
                     show_bayes_factor(last)), ylab = "")
}

show_bayes_factor <- function(log_bf) {
  if (abs(log_bf) > log(1e4)) return(paste0("log = ", format_number_each(log_bf, 2)))
  ratio <- format(exp(abs(log_bf)), digits = 3)
  if (log_bf >= 0) ratio else paste0("1/", ratio)
}

probability_figure <- function(x) {
  table <- as.data.frame(x)
  table <- table[table$model != "combination", ]
  lines <- data.frame(table[c("rows", "model")], value = table$posterior, lower = NA, upper = NA)
  # of fits that failed their checks
  lines$value[is.na(lines$value)] <- 0
  lines <- with_others(lines, unique(c(x$model, table$model)))
  list(lines = lines, title = "Posterior probabilities of the models",
       note = paste(count_of(max(lines$rows), "row"), "in all"), ylab = "")
}

#' The models that were the most probable ones at some moment, and the sum of all others
#'
#' @param models All, the best first.
#' @noRd
with_others <- function(lines, models) {
  if (length(models) <= RACE_MOST) return(lines)
  most <- tapply(lines$value, lines$model, max)[models]
  keep <- models[sort(order(-most)[seq_len(RACE_MOST - 1)])]
  others <- stats::aggregate(value ~ rows, lines[!lines$model %in% keep, ], sum)
  rbind(lines[lines$model %in% keep, ],
        data.frame(rows = others$rows, model = paste(length(models) - length(keep), "others"),
                   value = others$value, lower = NA, upper = NA))
}

score_figure <- function(x) {
  table <- as.data.frame(x)
  table <- table[table$doubt != "failed", ]
  own <- table[table$model != "combination", ]
  best <- tapply(own$log_evidence, own$rows, max)
  table <- table[as.character(table$rows) %in% names(best), ]
  keep <- c(utils::head(x$model, RACE_MOST - 1), "combination")
  table <- table[table$model %in% keep, ]
  lines <- data.frame(table[c("rows", "model")],
                      value = table$log_evidence - best[as.character(table$rows)], lower = NA,
                      upper = NA)
  lost <- sum(lines$value[lines$rows == max(lines$rows)] < -SHOWN_BELOW)
  models <- length(unique(own$model))
  list(lines = lines, title = "Log predictive score against that of the best model",
       note = paste0("sum over all rows so far; the combination has the prior weights",
                     if (models >= RACE_MOST) paste0("; the best ", RACE_MOST - 1, " of ",
                                                     count_of(models, "model")),
                     if (lost) paste0("; ", lost, " end below the picture")), ylab = "nats")
}

# R's graphics ------------------------------------------------------------------------------------

draw_race <- function(figure) {
  old <- graphics::par("mar", "mgp", "tcl", "las")
  on.exit(graphics::par(old))
  letters <- max(nchar(figure$lines$model)) + 7 * (figure$type == "probability")
  right <- if (figure$type == "bayes factor") 9 else 2 + 0.55 * letters
  graphics::par(mar = c(3.6, 4.4, 3, min(right, 14)), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  lines <- figure$lines
  limits <- race_limits(figure)
  graphics::plot.default(NA, NA, xlim = range(lines$rows), ylim = limits, axes = FALSE,
                         log = if (figure$breaks$log) "x" else "", xlab = "Rows",
                         ylab = figure$ylab, yaxs = if (figure$type == "probability") "i" else "r")
  graphics::title(main = figure$title, adj = 0, line = 1.55, font.main = 2, cex.main = 1.05)
  graphics::mtext(figure$note, side = 3, line = 0.35, adj = 0,
                  cex = 0.8 * graphics::par("cex"), col = "grey35")
  graphics::axis(1, figure$breaks$at, axis_labels(figure$breaks$at), lwd = 0, lwd.ticks = 0.8,
                 col.ticks = "grey50")
  switch(figure$type, "bayes factor" = draw_bayes_factor(figure), probability =
           draw_stack(figure), score = draw_scores(figure))
}

race_limits <- function(figure) {
  if (figure$type == "probability") return(c(0, 1))
  lines <- figure$lines
  v <- range(lines$value, lines$lower, lines$upper, 0, na.rm = TRUE)
  if (figure$type == "bayes factor") v <- c(min(v[1], -log(4)), max(v[2], log(4)))
  # without the lowest scores, beside which differences of the others could not be seen
  if (figure$type == "score") v <- c(max(v[1], -SHOWN_BELOW), v[2])
  v + c(-0.04, 0.04) * diff(v)
}

# Bands between the thresholds of the ladder, for and against; those of the smallest Bayes factors
# have no words.
ladder_bands <- function(limits) {
  at <- c(0, log(LADDER), Inf)
  bands <- data.frame(from = c(at[1:4], -at[2:5]), to = c(at[2:5], -at[1:4]),
                      word = c("", STRENGTHS[-1]), side = rep(c(1, -1), each = 4),
                      shade = rep(c("grey98", "grey95", "grey91", "grey86"), 2))
  bands$from <- pmax(bands$from, limits[1])
  bands$to <- pmin(bands$to, limits[2])
  bands[bands$from < bands$to, ]
}

ladder_labels <- function() {
  at <- c(-log(rev(LADDER)), 0, log(LADDER))
  labels <- format_each(signif(LADDER, 2))
  list(at = at, labels = c(paste0("1/", rev(labels)), 1, labels))
}

draw_bayes_factor <- function(figure) {
  box <- graphics::par("usr")
  x <- if (figure$breaks$log) 10^box[1:2] else box[1:2]
  bands <- ladder_bands(box[3:4])
  graphics::rect(x[1], bands$from, x[2], bands$to, col = bands$shade, border = NA)
  ladder <- ladder_labels()
  graphics::abline(h = 0, col = "grey60", lwd = 0.8)
  high <- max(abs(box[3:4])) > 2 * log(100)
  own <- if (high) powers_of_ten(box[3:4]) else ladder
  graphics::axis(2, own$at, own$labels, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  tall <- (bands$to - bands$from) / diff(box[3:4]) > 0.045 & nzchar(bands$word)
  graphics::mtext(paste(bands$word, "for", figure$pair[ifelse(bands$side > 0, 1, 2)])[tall],
                  side = 4, line = 0.4, at = ((bands$from + bands$to) / 2)[tall],
                  cex = 0.7 * graphics::par("cex"), col = "grey30")
  lines <- figure$lines
  if (nrow(lines) > 1)
    graphics::polygon(c(lines$rows, rev(lines$rows)), c(lines$lower, rev(lines$upper)),
                      col = grDevices::adjustcolor(BLUE, 0.25), border = NA)
  graphics::lines(lines$rows, lines$value, col = BLUE, lwd = 1.8)
  if (nrow(lines) == 1) graphics::points(lines$rows, lines$value, col = BLUE, pch = 16)
  crossed <- figure$crossed
  if (nrow(crossed)) {
    at <- lines$value[match(crossed$rows, lines$rows)]
    graphics::points(crossed$rows, at, col = ORANGE, pch = 16, cex = 1.1)
    graphics::text(crossed$rows, at, count_each(crossed$rows), pos = ifelse(at > 0, 2, 1),
                   cex = 0.75, col = ORANGE)
  }
}

# For Bayes factors far beyond the ladder.
powers_of_ten <- function(limits) {
  at <- pretty(limits / log(10), 6)
  at <- unique(round(at))
  list(at = at * log(10), labels = parse(text = paste0("10^", at)))
}

draw_stack <- function(figure) {
  lines <- figure$lines
  models <- unique(lines$model)
  rows <- unique(lines$rows)
  below <- rep(0, length(rows))
  graphics::axis(2, c(0, 0.25, 0.5, 0.75, 1), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  for (i in seq_along(models)) {
    own <- lines$value[lines$model == models[i]]
    if (length(rows) > 1)
      graphics::polygon(c(rows, rev(rows)), c(below, rev(below + own)), border = "white",
                        col = RACE_COLOURS[i], lwd = 0.5)
    below <- below + own
  }
  last <- vapply(models, function(name) {
    own <- lines$value[lines$model == name]
    own[length(own)]
  }, 0)
  label_lines(cumsum(last) - last / 2, paste(models, show_probability(last)),
              RACE_COLOURS[seq_along(models)])
}

draw_scores <- function(figure) {
  lines <- figure$lines
  ticks <- graphics::axTicks(2)
  graphics::abline(h = ticks, col = FAINT, lwd = 0.8)
  graphics::axis(2, ticks, lwd = 0)
  models <- unique(lines$model)
  colours <- stats::setNames(score_colours(models), models)
  for (name in models) {
    own <- lines[lines$model == name, ]
    graphics::lines(own$rows, own$value, col = colours[[name]],
                    lwd = if (name == "combination") 2.5 else 1.6,
                    lty = if (name == "combination") 2 else 1)
  }
  last <- vapply(models, function(name) {
    own <- lines$value[lines$model == name]
    own[length(own)]
  }, 0)
  label_lines(pmax(last, graphics::par("usr")[3]), models, colours)
}

score_colours <- function(models)
  ifelse(models == "combination", "black", RACE_COLOURS[seq_along(models)])

# Names at the right end of lines, moved apart where they would be one over the other.
label_lines <- function(at, labels, colours) {
  least <- 1.7 * graphics::strheight("M", cex = 0.75)
  order <- order(at)
  placed <- at[order]
  for (i in seq_along(placed)[-1]) placed[i] <- max(placed[i], placed[i - 1] + least)
  over <- placed[length(placed)] - graphics::par("usr")[4]
  if (over > 0) placed <- placed - over
  graphics::mtext(labels[order], side = 4, line = 0.4, at = placed,
                  cex = 0.75 * graphics::par("cex"), col = colours[order])
}

# ggplot2 -----------------------------------------------------------------------------------------

gg_race <- function(figure) {
  lines <- figure$lines
  lines$model <- factor(lines$model, unique(lines$model))
  plot <- switch(figure$type, "bayes factor" = gg_bayes_factor(lines, figure), probability = {
    ggplot2::ggplot(lines, ggplot2::aes(.data$rows, .data$value, fill = .data$model)) +
      ggplot2::geom_area(position = ggplot2::position_stack(reverse = TRUE)) +
      ggplot2::scale_fill_manual(values = RACE_COLOURS)
  }, score = {
    ggplot2::ggplot(lines, ggplot2::aes(.data$rows, .data$value, colour = .data$model)) +
      ggplot2::geom_line() +
      ggplot2::scale_colour_manual(values = score_colours(levels(lines$model))) +
      ggplot2::coord_cartesian(ylim = race_limits(figure))
  })
  if (figure$breaks$log) plot <- plot + ggplot2::scale_x_log10(labels = axis_labels)
  plot + ggplot2::labs(title = figure$title, subtitle = figure$note, x = "Rows",
                       y = if (nzchar(figure$ylab)) figure$ylab) +
    ggplot2::theme_minimal()
}

gg_bayes_factor <- function(lines, figure) {
  ladder <- ladder_labels()
  limits <- race_limits(figure)
  if (max(abs(limits)) > 2 * log(100)) ladder <- powers_of_ten(limits)
  bands <- ladder_bands(limits)
  crossed <- figure$crossed
  crossed$value <- lines$value[match(crossed$rows, lines$rows)]
  ggplot2::ggplot(lines, ggplot2::aes(.data$rows, .data$value)) +
    ggplot2::geom_rect(ggplot2::aes(ymin = .data$from, ymax = .data$to), bands, xmin = -Inf,
                       xmax = Inf, fill = bands$shade, inherit.aes = FALSE) +
    ggplot2::geom_hline(yintercept = 0, colour = "grey60") +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$lower, ymax = .data$upper), fill = BLUE,
                         alpha = 0.25) +
    ggplot2::geom_line(colour = BLUE) +
    ggplot2::geom_point(data = crossed, colour = ORANGE) +
    ggplot2::scale_y_continuous(breaks = ladder$at, labels = ladder$labels)
}
