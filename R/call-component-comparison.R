# The comparison of several numbers of components, and the posterior of the number of clusters.

#' @param rows All `n` rows, or a random sample of them.
#' @noRd
new_component_comparison <- function(fits, numbers, rows, n) {
  comparison <- compare_models(fits)
  occupied <- matrix(0, length(fits), max(numbers),
                     dimnames = list(components = numbers, clusters = seq_len(max(numbers))))
  for (i in seq_along(fits)) {
    own <- if (is.null(fits[[i]]$partitions)) occupied_by_draws(fits[[i]], rows, n)
    else fits[[i]]$partitions$occupied
    occupied[i, seq_along(own)] <- own
  }
  comparison$components <- numbers[match(comparison$model, names(fits))]
  attr(comparison, "occupied") <- occupied
  class(comparison) <- c("component_comparison", class(comparison))
  comparison
}

OCCUPIED_DRAWS <- 100

#' Posterior probabilities of the number of components with rows, from draws of the parameters
#'
#' Given the parameters, a component has no rows with probability \eqn{\prod_i (1 - r_{ik})}, where
#' \eqn{r_{ik}} is the probability that row \eqn{i} belongs to it. These events are taken as
#' independent.
#' @noRd
occupied_by_draws <- function(fit, rows, n) {
  k <- fit$args$components
  if (k == 1) return(c(`1` = 1))
  # in proportion to the weights
  at <- findInterval((seq_len(OCCUPIED_DRAWS) - 0.5) / OCCUPIED_DRAWS,
                     cumsum(exp(fit$log_weights))) + 1
  at <- pmin(at, nrow(fit$draws))
  share <- vapply(at, function(s) occupied_given(fit$draws[s, ], k, rows, n), numeric(k))
  stats::setNames(rowMeans(share), seq_len(k))
}

occupied_given <- function(draw, k, rows, n) {
  p <- nrow(rows)
  mean <- matrix(draw[k + seq_len(k * p)], p)
  sd <- matrix(draw[k + k * p + seq_len(k * p)], p)
  log_density <- vapply(seq_len(k), function(c)
    log(draw[c]) - sum(log(sd[, c])) - 0.5 * colSums(((rows - mean[, c]) / sd[, c])^2),
    numeric(ncol(rows)))
  log_density <- matrix(log_density, ncol(rows))
  log_share <- log_density - log_sum_rows(log_density)
  # rows of a sample stand for all
  empty <- exp(n / ncol(rows) * colSums(log1p(-pmin(exp(log_share), 1))))
  # the distribution of the number that are not empty
  number <- 1
  for (e in empty) number <- c(number * e, 0) + c(0, number * (1 - e))
  number[-1] / sum(number[-1])
}

#' Posterior probabilities of the number of clusters with rows, over all numbers of components
#' @noRd
occupied_overall <- function(x) {
  occupied <- attr(x, "occupied")
  posterior <- x$posterior[match(as.numeric(rownames(occupied)), x$components)]
  posterior[is.na(posterior)] <- 0
  drop(posterior %*% occupied) / sum(posterior)
}

#' @export
print.component_comparison <- function(x, n = 10, ...) {
  NextMethod()
  if (!is_comparison(x) || !is_plain_numeric(x$components) || nrow(x) == 0) return(invisible(x))
  share <- occupied_overall(x)
  shown <- share >= 0.0005
  cat("\nNumber of clusters that have rows, over all numbers of components:\n")
  lines <- format(rbind(c("clusters", names(share)[shown]),
                        c("posterior", show_probability(share[shown]))))
  cat(paste0(apply(lines, 1, paste, collapse = "  "), "\n"), sep = "")
  invisible(x)
}

#' @export
as.data.frame.component_comparison <- function(x, ...) {
  sorted <- order(x$components)
  occupied <- attr(x, "occupied")
  shares <- occupied[match(x$components, as.numeric(rownames(occupied))), , drop = FALSE]
  plain <- as.data.frame(unclass(x)[c("components", "log_evidence", "se", "log_bf", "posterior",
                                      "reliable", "doubt")])
  plain$all_occupied <- shares[cbind(seq_len(nrow(x)), x$components)]
  plain$occupied <- drop(shares %*% seq_len(ncol(shares)))
  plain <- plain[sorted, ]
  rownames(plain) <- NULL
  plain
}

#' @export
plot.component_comparison <- function(x, ...) {
  check_no_dots(...)
  table <- as.data.frame(x)
  table <- table[is.finite(table$log_evidence), ]
  if (nrow(table) == 0) fail("No fit has a finite log evidence: there is nothing to plot.")
  occupied <- occupied_overall(x)
  draw_panels(function(panel) {
    panel(c(0, 0.5, 0, 1), c(3.6, 4.2, 3, 1))
    draw_component_evidence(table)
    panel(c(0.5, 1, 0, 1), c(3.6, 4.2, 3, 1))
    draw_component_probabilities(table, occupied)
  }, 1, 2, mgp = c(2.6, 0.6, 0))
  invisible(x)
}

# Numbers far below the best would flatten the rest.
SHOWN_BELOW <- 40

draw_component_evidence <- function(table) {
  se <- ifelse(is.finite(table$se), table$se, 0)
  lower <- table$log_evidence - 2 * se
  upper <- table$log_evidence + 2 * se
  inside <- table$log_evidence >= max(upper) - SHOWN_BELOW
  floor <- min(lower[inside])
  graphics::plot.default(NA, NA, xlim = range(table$components), axes = FALSE,
                         ylim = range(floor, upper[inside]), xlab = "Components", ylab = "")
  graphics::title(main = "Log evidence", adj = 0, line = 1.55, font.main = 2, cex.main = 1.05)
  below <- table$components[!inside]
  graphics::mtext(paste0("bars: 2 standard errors", if (length(below)) paste0(
    "; far below: ", paste(below, collapse = ", "))), side = 3, line = 0.35, adj = 0,
    cex = 0.8 * graphics::par("cex"), col = "grey35")
  graphics::abline(h = graphics::axTicks(2), col = FAINT, lwd = 0.8)
  graphics::axis(1, table$components, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, lwd = 0)
  table <- table[inside, ]
  graphics::lines(table$components, table$log_evidence, col = BLUE)
  graphics::segments(table$components, lower[inside], table$components, upper[inside], col = BLUE,
                     lwd = 2.5)
  graphics::points(table$components, table$log_evidence, col = ORANGE, cex = 1.2,
                   pch = ifelse(table$doubt %in% c("failed", "warns"), 1, 16))
}

draw_component_probabilities <- function(table, occupied) {
  at <- seq_len(max(table$components))
  components <- rep(0, length(at))
  components[table$components] <- ifelse(is.na(table$posterior), 0, table$posterior)
  graphics::plot.default(NA, NA, xlim = range(at) + c(-0.4, 0.4), axes = FALSE,
                         ylim = c(0, max(components, occupied)), xlab = "Number", ylab = "")
  graphics::title(main = "Posterior probability", adj = 0, line = 1.55, font.main = 2,
                  cex.main = 1.05)
  graphics::abline(h = graphics::axTicks(2), col = FAINT, lwd = 0.8)
  graphics::axis(1, at, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, lwd = 0)
  bar <- function(from, height, colour)
    graphics::rect(at + from, 0, at + from + 0.36, height, col = colour, border = NA)
  bar(-0.38, components, BLUE)
  bar(0.02, occupied[at], ORANGE)
  graphics::mtext(c("components", "clusters with rows"), side = 3, line = 0.35, adj = c(0, 0.55),
                  cex = 0.8 * graphics::par("cex"), col = c(BLUE, ORANGE))
}
