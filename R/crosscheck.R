# The same evidence by several methods: do they agree?

#' Check an evidence by several methods
#'
#' Runs several methods on one model and the same data and says how far apart they are, in units of their joint standard
#' error. Methods that share no code path rarely go wrong together.
#'
#' @param model,data,seed,threads,progress As for [evidence()].
#' @param methods A list of methods, named or not. The default takes four that have little in common, or for models
#'   with latent variables [ais()], [smc()] and [nested()].
#' @param x A crosscheck.
#' @param ... Unused.
#'
#' @details
#' A method that fails is listed with its error, and the others go on. The disagreement of two methods is the
#' difference of their log evidences over the root of the sum of their squared standard errors; beyond 3 or so it is
#' more than chance. Methods without a standard error, and those that failed their own checks, are shown but not judged.
#'
#' @return A data frame of class `"crosscheck"` with a row for each method: `method`, `log_evidence`, `se`, `z` (its
#'   disagreement with the mean of the others, weighted by their precision), `seconds`, `reliable` (whether it passed
#'   its own checks) and `error`. Attributes: `"disagreement"`, a matrix for all pairs, and `"fits"`.
#'
#' @examples
#' check <- crosscheck(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' check
#' plot(check)
#'
#' @seealso [compare_models()]
#' @export
crosscheck <- function(model, data, methods = list(sgais(), smc(), nested(), laplace(importance = 400)), seed = NULL,
                       threads = 1, progress = interactive()) {
  call <- match.call()
  check_is_model(model)
  if (missing(data)) data <- no_data(model)
  if (missing(methods) && is_latent(model)) methods <- list(ais(), smc(), nested(live = 100))
  if (inherits(methods, "evidence_method")) methods <- list(methods)
  if (!is.list(methods) || length(methods) < 2) fail("`methods` must be a list of at least two methods.")
  for (method in methods) check_is_method(method, "methods")
  names <- argument_names(lapply(methods, `[[`, "call"), names(methods))
  names <- make.unique(names, " ")
  n <- encode(model, data)$n # bad data is an error before anything runs
  words <- seed_words(seed)
  fits <- lapply(seq_along(methods), function(i) {
    tryCatch(muffled(evidence(model, data, methods[[i]], seed = method_seed(words, i), threads = threads, progress = progress)),
             logevidence_error = function(e) conditionMessage(e))
  })
  ran <- vapply(fits, inherits, TRUE, "evidence")
  # as if each had been called from outside: update() looks for the data there
  for (i in which(ran)) fits[[i]]$call[c("model", "data", "method")] <- list(call$model, call$data, methods[[i]]$call)
  part <- function(f, missing = NA_real_) vapply(seq_along(fits), function(i) if (ran[i]) f(fits[[i]]) else missing, missing)
  table <- data.frame(
    method = names, log_evidence = part(function(f) f$log_evidence), se = part(function(f) f$se), z = NA_real_,
    seconds = part(function(f) f$work[["seconds"]]), reliable = part(function(f) length(f$failed) == 0, FALSE),
    error = vapply(fits, function(f) if (is.character(f)) f else "", "")
  )
  for (i in which(judged(table))) table$z[i] <- against_others(table, i)
  structure(table, class = c("crosscheck", "data.frame"), disagreement = disagreement(table),
            fits = stats::setNames(fits, names), model = model, n = n)
}

# An estimate without an error, or with one that its own checks say is not to be believed, agrees or not with nobody.
judged <- function(table) is.finite(table$se) & is.finite(table$log_evidence) & table$reliable

disagreement <- function(table) {
  apart <- outer(table$log_evidence, table$log_evidence, `-`) / sqrt(outer(table$se^2, table$se^2, `+`))
  diag(apart) <- 0
  dimnames(apart) <- list(table$method, table$method)
  apart
}

# A seed of its own for each method, for the first the one that was given.
method_seed <- function(words, i) WORD * ((words[1] + i - 1) %% 2^21) + words[2]

against_others <- function(table, i) {
  others <- setdiff(which(judged(table)), i)
  if (!length(others)) return(NA_real_)
  se <- pmax(table$se[others], 1e-12)
  precision <- 1 / se^2
  mean <- sum(precision * table$log_evidence[others]) / sum(precision)
  (table$log_evidence[i] - mean) / sqrt(table$se[i]^2 + 1 / sum(precision))
}

MANY_ERRORS <- 3 # joint standard errors beyond which chance is no explanation

#' @rdname crosscheck
#' @export
print.crosscheck <- function(x, ...) {
  if (!all(c("method", "log_evidence", "se", "error") %in% names(x))) return(print.data.frame(x, ...))
  cat(model_line(attr(x, "model")), ", n = ", count(attr(x, "n")), "\n\n", sep = "")
  ran <- x$error == ""
  if (any(ran)) {
    rows <- x[ran, ]
    shown <- cbind(
      format(c("", rows$method)),
      format(c("log evidence", align_estimates(rows$log_evidence, rows$se)), justify = "right"),
      format(c("against the others", ifelse(is.na(rows$z), "", sprintf("%+.1f se", rows$z))), justify = "right"),
      format(c("time", vapply(rows$seconds, show_time, "")), justify = "right"),
      c("", ifelse(rows$reliable, "", "failed its own checks"))
    )
    cat(paste0(sub(" +$", "", apply(shown, 1, paste, collapse = "  ")), "\n"), sep = "")
  }
  for (i in which(!ran)) cat_wrapped(paste0(x$method[i], " failed: ", x$error[i]), exdent = 2)
  cat("\n")
  cat_wrapped(verdict(x))
  invisible(x)
}

#' Do the methods agree, in one sentence
#' @noRd
verdict <- function(x) {
  x <- x[judged(x), ] # of the rows that are shown
  if (nrow(x) < 2) return("Fewer than two methods have a standard error and passed their own checks: nothing can be said.")
  apart <- abs(disagreement(x))
  at <- which(apart == max(apart), arr.ind = TRUE)[1, ]
  gap <- abs(diff(x$log_evidence[at]))
  pair <- paste0(x$method[at[1]], " and ", x$method[at[2]], " are ", format(gap, digits = 2), " nats apart, ",
                 format(max(apart), digits = 2), " joint standard errors")
  if (max(apart) <= MANY_ERRORS) return(paste0("The methods agree: at most, ", pair, "."))
  paste0("The methods do not agree: ", pair, ". At least one of them is wrong, however small its standard error.")
}

#' @rdname crosscheck
#' @export
plot.crosscheck <- function(x, ...) {
  figure <- crosscheck_figure(x)
  old <- graphics::par(mar = c(3.6, 1 + 0.55 * max(nchar(figure$method)), 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  on.exit(graphics::par(old))
  at <- rev(seq_len(nrow(figure)))
  graphics::plot.default(NA, NA, xlim = range(figure$lower, figure$upper), ylim = c(0.5, nrow(figure) + 0.5), axes = FALSE,
                         xlab = "Log evidence", ylab = "")
  graphics::title(main = "Log evidence by method", adj = 0, line = 1.55, font.main = 2, cex.main = 1.05)
  graphics::mtext("2 standard errors; hollow: no standard error, or failed its own checks", side = 3, line = 0.35, adj = 0,
                  cex = 0.8, col = "grey35")
  ticks <- graphics::axTicks(1)
  graphics::abline(v = ticks, col = FAINT, lwd = 0.8)
  graphics::axis(1, ticks, axis_labels(ticks), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, at, figure$method, lwd = 0)
  graphics::segments(figure$lower, at, figure$upper, at, col = BLUE, lwd = 2.5)
  graphics::points(figure$log_evidence, at, pch = ifelse(figure$sound, 16, 1), col = ORANGE, cex = 1.2)
  invisible(x)
}

crosscheck_figure <- function(x) {
  figure <- x[is.finite(x$log_evidence), c("method", "log_evidence", "se", "reliable")]
  if (nrow(figure) == 0) fail("No method gave an estimate: there is nothing to plot.")
  figure$sound <- is.finite(figure$se) & figure$reliable
  se <- ifelse(is.finite(figure$se), figure$se, 0)
  figure$lower <- figure$log_evidence - 2 * se
  figure$upper <- figure$log_evidence + 2 * se
  figure
}

#' @rdname crosscheck
#' @param object A crosscheck.
#' @exportS3Method ggplot2::autoplot
autoplot.crosscheck <- function(object, ...) {
  check_no_dots(...)
  figure <- crosscheck_figure(object)
  figure$method <- factor(figure$method, rev(figure$method))
  ggplot2::ggplot(figure, ggplot2::aes(x = .data$log_evidence, y = .data$method)) +
    ggplot2::geom_linerange(ggplot2::aes(xmin = .data$lower, xmax = .data$upper), colour = BLUE, linewidth = 1) +
    ggplot2::geom_point(ggplot2::aes(shape = .data$sound), colour = ORANGE, size = 2.5) +
    ggplot2::scale_shape_manual(values = c(`TRUE` = 16, `FALSE` = 1), guide = "none") +
    ggplot2::labs(title = "Log evidence by method", subtitle = "2 standard errors", x = "Log evidence", y = NULL) +
    ggplot2::theme_minimal()
}
