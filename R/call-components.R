# evidence() of a mixture with several numbers of components: a comparison of their fits, most of
# them from one run of partitions(), and the posterior of the number of clusters.

#' @param spec As for new_work().
#' @param options From check_options().
#' @param given What evidence() was given and may not be used here.
#' @param evidence evidence() itself, for one number of components.
#' @noRd
evidence_of_components <- function(spec, data, options, given, evidence) {
  model <- spec$model
  given <- c(options[c("checkpoint", "time_limit", "on_chunk", "cl")], given,
             replicates = if (spec$replicates > 1) TRUE)
  given <- names(given)[lengths(given) > 0]
  if (is_source(data) || "keep" %in% given)
    fail("`data` must be in memory for several `components`: give one number at a time.")
  if (length(given))
    fail("`", given[1], "` cannot be used with several `components`: give one number at a time.")
  numbers <- model$components
  encoded <- encode(with_components(model, max(numbers)), data)
  fits <- stats::setNames(vector("list", length(numbers)), numbers)
  plans <- component_plans(model, spec$method, encoded, spec$words)
  for (plan in plans) {
    chosen <- as.character(plan$components)
    fits[chosen] <- if (is.null(plan$method))
      list(fit_alone(spec, plan$components, data, options, evidence))
    else fits_together(spec, plan, data, options)
  }
  names(fits) <- vapply(numbers, count_of, "", "component")
  for (i in seq_along(fits)) fits[[i]]$na.action <- spec$omitted
  raise_named(fits)
  new_component_comparison(fits, numbers, encoded)
}

with_components <- function(model, components) {
  model$components <- as.double(components)
  model
}

#' Which numbers of components are fitted together, and how
#'
#' @return A list of lists with `components`, and `method` if they have a run of partitions() in
#'   common.
#' @noRd
component_plans <- function(model, method, encoded, words) {
  numbers <- model$components
  alone <- lapply(numbers, function(k) list(components = k))
  wanted <- has_trait(method, "components")
  if (!wanted && (!is_default(method) || encoded$n > PARTITION_ROWS)) return(alone)
  know <- known_once(model, encoded, words)
  of_its_own <- function(k)
    !wanted && (k == 1 || suits_modes(k, know, encoded$n))
  single <- vapply(numbers, of_its_own, NA)
  together <- numbers[!single]
  if (!length(together)) return(alone[single])
  chosen <- if (wanted) method else for_several(instead_of(method), length(together))
  anchors <- lapply(together, function(k) anchor_below(chosen, k, know))
  # numbers whose ladders begin at the same one have it in common
  begins <- vapply(anchors, `[[`, 0, "components")
  c(alone[single], lapply(split(seq_along(together), begins), function(at) {
    last <- at[length(at)]
    list(components = together[at],
         method = with_anchor(chosen, anchors[[last]], together[last], together[at[1]]))
  }))
}

# One run for several numbers may take the time of so many, and then aims at a smaller error.
SEVERAL_MOST <- 4
SEVERAL_TARGET <- 0.02

for_several <- function(method, numbers) {
  if (numbers == 1) return(method)
  with_settings(method, work = method$settings$work * min(numbers, SEVERAL_MOST),
                target = SEVERAL_TARGET)
}

fit_alone <- function(spec, components, data, options, evidence) {
  fit <- muffled(evidence(with_components(spec$model, components), data, spec$method,
                          seed = method_seed(spec$words, 1), threads = spec$threads,
                          progress = options$progress, keep_state = options$keep_state))
  fit$call <- call_of(spec$call, components)
  fit
}

#' Fits of several numbers of components from one run, each made as that of a single call
#' @noRd
fits_together <- function(spec, plan, data, options) {
  encoded <- lapply(plan$components, function(k) encode(with_components(spec$model, k), data))
  last <- length(encoded)
  problem <- new_problem(with_components(spec$model, plan$components[last]), encoded[[last]],
                         plan$method, spec$words, spec$threads)
  out <- conduct(problem, encoded[[last]]$rows)
  Map(function(k, bound) {
    own <- spec
    own[c("call", "model", "method", "seeded", "keep")] <-
      list(call_of(spec$call, k), with_components(spec$model, k), plan$method, TRUE, Inf)
    work <- new_work(own, bound, feeding = "last")
    work$options <- options
    work$plan$first[[1]]$result <- out
    work$plan$second <- list(NULL)
    fit <- finished_fit(work)
    if (is.null(other <- other_method(fit, work))) return(fit)
    begin_again(work, other)
    muffled(run_work(work, options))
  }, plan$components, encoded)
}

# The call that gives one of the fits alone.
call_of <- function(call, components) {
  if (is.call(call$model) && !is.null(call$model$components)) call$model$components <- components
  call
}

# Warnings with the names of their models; one of several models is said once.
raise_named <- function(fits, known = NULL) {
  each <- lapply(fits, function(fit) unname(setdiff(fit_warnings(fit), known)))
  of <- rep(names(fits), lengths(each))
  all <- unlist(each, use.names = FALSE)
  if (length(all))
    warning(new_warning(vapply(unique(all), function(one)
      paste0(paste(of[all == one], collapse = ", "), ": ", one), "", USE.NAMES = FALSE)))
}

# The comparison ----------------------------------------------------------------------------------

new_component_comparison <- function(fits, numbers, encoded) {
  comparison <- compare_models(fits)
  occupied <- matrix(0, length(fits), max(numbers),
                     dimnames = list(components = numbers, clusters = seq_len(max(numbers))))
  for (i in seq_along(fits)) {
    own <- if (is.null(fits[[i]]$partitions)) occupied_by_draws(fits[[i]], encoded$rows)
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
occupied_by_draws <- function(fit, rows) {
  k <- fit$args$components
  if (k == 1) return(c(`1` = 1))
  # in proportion to the weights
  at <- findInterval((seq_len(OCCUPIED_DRAWS) - 0.5) / OCCUPIED_DRAWS,
                     cumsum(exp(fit$log_weights))) + 1
  at <- pmin(at, nrow(fit$draws))
  share <- vapply(at, function(s) occupied_given(fit$draws[s, ], k, rows), numeric(k))
  stats::setNames(rowMeans(share), seq_len(k))
}

occupied_given <- function(draw, k, rows) {
  p <- nrow(rows)
  mean <- matrix(draw[k + seq_len(k * p)], p)
  sd <- matrix(draw[k + k * p + seq_len(k * p)], p)
  log_density <- vapply(seq_len(k), function(c)
    log(draw[c]) - sum(log(sd[, c])) - 0.5 * colSums(((rows - mean[, c]) / sd[, c])^2),
    numeric(ncol(rows)))
  log_density <- matrix(log_density, ncol(rows))
  log_share <- log_density - log_sum_rows(log_density)
  empty <- exp(colSums(log1p(-pmin(exp(log_share), 1))))
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
