# crosscheck(): compares estimates of the same evidence by several methods.

#' Check the evidence by several methods
#'
#' Runs several methods on one model and the same data, and compares their estimates in units of the
#' joint standard error. Methods that work in different ways are rarely wrong in the same way.
#'
#' @param model,data,seed,threads,progress As for [evidence()].
#' @param cl `NULL`, or a cluster whose workers do the methods side by side, as in [evidence()].
#' @param methods A list of methods, named or not. `NULL`, the default, takes methods that fail in
#'   different ways: the default of [evidence()], an annealing method ([smc()], or [ais()] for
#'   models with latent variables), nested sampling ([nested()]), importance sampling around modes
#'   ([laplace()], not for latent variables), and for mixtures and latent variables the lower bound
#'   of [variational()].
#' @param x A crosscheck.
#' @param ... Unused.
#'
#' @details A method that stops with an error is listed with the error, and the others continue,
#' also if the error comes from a function of a [custom_model()]. The disagreement of two methods is
#' the difference of their log evidences divided by the root of the sum of their squared standard
#' errors. A value above 3 (3.5 for the largest among four methods) is more than chance. For this
#' comparison a standard error from few effective draws is increased, by quantiles of Student's t
#' distribution (`wide_se`). Methods without a standard error, and those that failed their own
#' checks, are shown but not compared.
#'
#' Errors are skewed: a method that misses a part of the posterior gives an estimate that is too
#' low, and estimates that are far too high are rare. So if methods disagree, the higher estimate is
#' more likely to be right.
#'
#' The verdict is not "agree" if one of the methods has warnings (other than a note on the method or
#' a prior that contradicts the data), if the moves of a sampler hardly renew its particles, or if
#' an estimate is below a lower bound. Agreement is no proof: all methods miss a mode of tiny prior
#' mass, such as a spike in a wide prior in ten dimensions.
#'
#' @return A data frame of class `"crosscheck"` with a row for each method: `method`,
#'   `log_evidence`, `se`, `z` (its disagreement with the mean of the others, weighted by their
#'   precision), `seconds`, `reliable` (whether it passed its own checks), `error`, `wide_se`,
#'   `bound` (a lower bound on the log evidence from the fit, or `-Inf`) and `doubt` (`"failed"`,
#'   `"warns"`, `"hardly moves"`, `"prior conflict"` or `""`). Attributes: `"disagreement"`, a
#'   matrix for all pairs, `"verdict"`, the estimates and checks of all fits (`verdict` in
#'   [evidence()]) with a column `method`, and `"fits"`.
#'
#' @examples
#' check <- crosscheck(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' check
#' plot(check)
#'
#' @seealso [compare_models()]
#' @export
crosscheck <- function(model, data, methods = NULL, seed = NULL, threads = 1,
                       progress = interactive(), cl = NULL) {
  own_names("methods")
  call <- match.call()
  check_is_model(model)
  if (missing(data)) data <- part_of(model, "no_data")(model)
  encoded <- encode(model, data) # errors in the data come before any run
  if (is.null(methods)) methods <- methods_to_check(model, encoded)
  if (is_made(methods, "evidence_method")) methods <- list(methods)
  if (!is.list(methods) || length(methods) < 2)
    fail("`methods` must be a list of at least two methods.")
  for (method in methods) check_is_method(method, "methods")
  names <- argument_names(lapply(methods, `[[`, "call"), names(methods))
  names <- make.unique(names, " ")
  n <- number_of_rows(encoded)
  words <- seed_words(seed)
  threads <- check_count(threads, "threads", 1, 1024)
  options <- check_options(progress, NULL, 60, NULL, NULL, NULL, cl = cl)
  attempt <- function(code) tryCatch(code, error = function(e) if (is_time_limit(e)) stop(e) else e)
  works <- lapply(seq_along(methods), function(i) attempt({
    seed <- method_seed(words, i)
    work_in_memory(list(call = quote(evidence(model, data, method)), model = model,
                        method = methods[[i]],
                        words = seed_words(seed), seeded = TRUE, replicates = 1,
                        threads = threads), data, alone = TRUE)
  }))
  begun <- which(vapply(works, is.environment, NA))
  if (!is.null(options$cl)) {
    for (i in begun) begin_work(works[[i]], options)
    first_jobs_elsewhere(options$cl, works[begun], names[begun],
                         function(work, e) work$failure <- e, function(done) NULL)
  }
  fits <- lapply(works, function(work) {
    if (!is.environment(work)) return(work)
    if (!is.null(work$failure)) return(work$failure)
    # the seconds of the workers' runs, to which those from here on are added
    work$elapsed <- seconds_of_jobs(work$plan$first)
    options$began <- now()
    attempt(muffled(run_work(work, options)))
  })
  ran <- vapply(fits, inherits, TRUE, "evidence")
  # if no method gave a result, an error of the user's own functions is raised
  foreign <- Filter(function(e) !inherits(e, "logevidence_error"), fits[!ran])
  if (!any(ran) && length(foreign)) stop(foreign[[1]])
  fits[!ran] <- lapply(fits[!ran], conditionMessage)
  # the call becomes one that a user would write, so that update() finds the data in it
  for (i in which(ran))
    fits[[i]]$call[c("model", "data", "method")] <- list(call$model, call$data, methods[[i]]$call)
  part <- function(f, missing = NA_real_)
    vapply(seq_along(fits), function(i) if (ran[i]) f(fits[[i]]) else missing, missing)
  table <- data.frame(
    method = names, log_evidence = part(function(f) f$log_evidence), se = part(function(f) f$se),
    z = NA_real_,
    seconds = part(function(f) f$work[["seconds"]]),
    reliable = part(function(f) length(f$failed) == 0, FALSE),
    error = vapply(fits, function(f) if (is.character(f)) f else "", ""), wide_se = part(wide_se),
    bound = part(lower_bound), doubt = part(check_doubt, "")
  )
  for (i in which(judged(table))) table$z[i] <- against_others(table, i)
  structure(table, class = c("crosscheck", "data.frame"), disagreement = disagreement(table),
            fits = stats::setNames(fits, names), verdict = all_entries(fits, names),
            model = model, n = n)
}

#' Methods that fail in different ways
#' @noRd
methods_to_check <- function(model, encoded) {
  if (is_latent(model))
    return(list(default_method(model, 1, encoded), ais(), nested(live = 100), variational()))
  if (is_discrete(model)) return(list(smc(), smc(kernel = slice()), ais()))
  c(if (!has_gradients(model)) list(smc(kernel = slice()))
    else if (lacks_gradients(model, encoded$args)) list(smc(), ais()) else list(sgais(), smc()),
    list(nested(), laplace(importance = 400)), if (has_variational(model)) list(variational()))
}

#' The standard error multiplied by the ratio of Student's t and normal quantiles at three standard
#' errors
#' @noRd
wide_se <- function(fit) {
  draws <- if (!is.null(fit$nested)) fit$nested$live
  else if (fit$source %in% c("audit", "importance")) 1 / sum(exp(2 * fit$log_weights))
  else min(fit$trace$ess, Inf, na.rm = TRUE)
  if (!is.finite(fit$se) || !is.finite(draws)) return(fit$se)
  fit$se * stats::qt(stats::pnorm(MANY_ERRORS), max(draws - 1, 1)) / MANY_ERRORS
}

# The best lower bound of the log evidence in a fit.
lower_bound <- function(fit)
  max(-Inf, fit$verdict$log_evidence[fit$verdict$kind == "lower bound"], na.rm = TRUE)

# The entries of all fits; their words are about the fit that they come from.
all_entries <- function(fits, names) {
  own <- lapply(seq_along(fits), function(i) {
    if (inherits(fits[[i]], "evidence")) cbind(method = names[i], fits[[i]]$verdict)
  })
  do.call(rbind, own)
}

check_doubt <- function(fit) {
  doubt <- doubt_about(fit)
  # notes on a method do not depend on the data
  if (doubt == "failed" && !length(fit_warnings(fit)) && is.finite(fit$log_evidence)) return("")
  renewal <- fit$trace$renewal
  still <- !is.null(renewal) && isTRUE(stats::median(renewal, na.rm = TRUE) < LEAST_RENEWAL)
  if (still && doubt %in% c("", "prior conflict")) "hardly moves" else doubt
}

# Only estimates that have a standard error and passed their own checks are compared.
judged <- function(table) is.finite(table$se) & is.finite(table$log_evidence) & table$reliable

disagreement <- function(table) {
  apart <- outer(table$log_evidence, table$log_evidence, `-`) /
    sqrt(outer(table$wide_se^2, table$wide_se^2, `+`))
  diag(apart) <- 0
  dimnames(apart) <- list(table$method, table$method)
  apart
}

against_others <- function(table, i) {
  others <- setdiff(which(judged(table)), i)
  if (!length(others)) return(NA_real_)
  se <- pmax(table$wide_se[others], 1e-12)
  precision <- 1 / se^2
  mean <- sum(precision * table$log_evidence[others]) / sum(precision)
  (table$log_evidence[i] - mean) / sqrt(table$wide_se[i]^2 + 1 / sum(precision))
}

# The same limit for the largest disagreement among all pairs of m methods.
most_apart <- function(m)
  stats::qnorm(stats::pnorm(MANY_ERRORS, lower.tail = FALSE) / choose(m, 2), lower.tail = FALSE)

MANY_ERRORS <- 3 # joint standard errors beyond which chance does not explain a difference

#' @rdname crosscheck
#' @export
print.crosscheck <- function(x, ...) {
  if (!is_crosscheck(x)) return(print.data.frame(x, ...))
  cat(model_line(attr(x, "model")), ", ", row_words(attr(x, "n")), "\n\n", sep = "")
  ran <- x$error == ""
  if (any(ran)) {
    rows <- x[ran, ]
    # a failed method has a mark in the place of its distance
    marks <- check_marks(rows, best_bound(x))
    out <- !rows$reliable
    z <- ifelse(is.na(rows$z), "", sprintf("%+.1f se", rows$z))
    shown <- cbind(
      format(c("", rows$method)),
      format(c("log evidence", align_estimates(rows$log_evidence, rows$se)), justify = "right"),
      format(c("against the others", ifelse(out, marks, z)),
             justify = "right"),
      format(c("time", vapply(rows$seconds, show_time, "")), justify = "right"),
      c("", ifelse(out, "", marks))
    )
    cat(paste0(sub(" +$", "", apply(shown, 1, paste, collapse = "  ")), "\n"), sep = "")
  }
  for (i in which(!ran)) cat_wrapped(paste0(x$method[i], " failed: ", x$error[i]), exdent = 2)
  cat("\n")
  cat_wrapped(verdict(x))
  invisible(x)
}

is_crosscheck <- function(x) {
  columns <- unclass(x)
  crosscheck_columns(x) && !anyNA(columns$seconds[columns$error == ""]) &&
    all(is.finite(columns$wide_se) | !is.finite(columns$se))
}

crosscheck_columns <- function(x)
  has_columns(x, list(method = is_full_text, log_evidence = is_plain_numeric, se = is_plain_numeric,
                      z = is_plain_numeric, seconds = is_plain_numeric, reliable = is_yes_or_no,
                      error = is_full_text, wide_se = is_plain_numeric, bound = is_plain_numeric,
                      doubt = is_full_text))

# The last column of the table.
check_marks <- function(rows, bound) {
  under <- is_under(rows, bound)
  marks <- c(failed = "failed its own checks", warns = "has warnings",
             `hardly moves` = "hardly moves", `prior conflict` = "prior conflict")[rows$doubt]
  marks[is.na(marks)] <- ""
  marks[!rows$reliable] <- "failed its own checks"
  marks[rows$reliable & rows$bound == rows$log_evidence & rows$doubt != "warns"] <- "a lower bound"
  ifelse(under, "below a lower bound", marks)
}

best_bound <- function(x) max(-Inf, x$bound, na.rm = TRUE)

# Estimates below a bound by more than chance; 0.05 nats are allowed for the tolerance of the bound.
is_under <- function(x, bound) {
  se <- ifelse(is.finite(x$wide_se), x$wide_se, Inf)
  x$reliable & is.finite(x$log_evidence) & x$log_evidence + MANY_ERRORS * se + 0.05 < bound
}

#' Do the methods agree, in a few sentences
#' @noRd
verdict <- function(all_rows) {
  bound <- best_bound(all_rows)
  under <- all_rows$method[is_under(all_rows, bound)]
  if (length(under))
    return(paste0("The methods do not agree: the log evidence is at least ",
                  format_number(bound, 2), " (",
                  all_rows$method[which.max(all_rows$bound)], "), and ", show_models(under),
                  if (length(under) == 1) " lies" else " lie",
                  " below that. An estimate below the bound has missed a part of the posterior."))
  x <- all_rows[judged(all_rows), ] # of the rows that are shown
  if (nrow(x) < 2)
    return(paste("Fewer than two methods have a standard error and passed their own checks, so",
                 "there is nothing to compare."))
  apart <- abs(disagreement(x))
  at <- which(apart == max(apart), arr.ind = TRUE)[1, ]
  gap <- abs(diff(x$log_evidence[at]))
  pair <- paste0(x$method[at[1]], " and ", x$method[at[2]], " are ", format(gap, digits = 2),
                 " nats apart (", format(max(apart), digits = 2), " joint standard errors)")
  if (max(apart) > most_apart(nrow(x)))
    return(paste0("The methods do not agree: ", pair,
                  ". At least one of them is wrong, however small its standard error. A method ",
                  "that misses a part of the posterior gives an estimate that is too low, so the ",
                  "higher estimate is more likely to be right."))
  lost <- all_rows$method[all_rows$doubt == "failed" & all_rows$error == ""]
  if (length(lost) && all(all_rows$doubt %in% c("failed", "prior conflict", "")))
    return(paste0("The methods that passed their own checks agree. The largest difference: ", pair,
                  ". ", show_models(lost),
                  " failed", if (length(lost) == 1) " its own checks and is"
                  else " their own checks and are", " left out."))
  doubts <- verdict_doubts(all_rows)
  if (!length(doubts)) return(paste0("The methods agree. The largest difference: ", pair, "."))
  paste0("The estimates are close together (the largest difference: ", pair,
         "), but this does not show that they are right: ", paste(doubts, collapse = "; "),
         ". All of them may be wrong in the same way; read the warnings in `attr(x, \"fits\")`.")
}

verdict_doubts <- function(x) {
  told <- function(doubt, one, several) {
    names <- x$method[x$doubt == doubt & x$error == ""]
    if (length(names)) paste(show_models(names), if (length(names) == 1) one else several)
  }
  c(told("failed", "failed its own checks", "failed their own checks"),
    told("warns", "has warnings", "have warnings"),
    told("hardly moves", "hardly moves its particles", "hardly move their particles"))
}

#' @rdname crosscheck
#' @export
plot.crosscheck <- function(x, ...) {
  figure <- crosscheck_figure(x)
  old <- graphics::par(mar = c(3.6, 1 + 0.55 * max(nchar(figure$method)), 3, 1.6),
                       mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  on.exit(graphics::par(old))
  at <- rev(seq_len(nrow(figure)))
  graphics::plot.default(NA, NA, xlim = range(figure$lower, figure$upper),
                         ylim = c(0.5, nrow(figure) + 0.5), axes = FALSE,
                         xlab = "Log evidence", ylab = "")
  graphics::title(main = "Log evidence by method", adj = 0, line = 1.55, font.main = 2,
                  cex.main = 1.05)
  graphics::mtext("bars: 2 standard errors; hollow: no standard error, or failed its own checks",
                  side = 3, line = 0.35, adj = 0, cex = 0.8 * graphics::par("cex"),
                  col = "grey35")
  ticks <- graphics::axTicks(1)
  graphics::abline(v = ticks, col = FAINT, lwd = 0.8)
  graphics::axis(1, ticks, axis_labels(ticks), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, at, figure$method, lwd = 0)
  graphics::segments(figure$lower, at, figure$upper, at, col = BLUE, lwd = 2.5)
  graphics::points(figure$log_evidence, at, pch = ifelse(figure$sound, 16, 1), col = ORANGE,
                   cex = 1.2)
  invisible(x)
}

crosscheck_figure <- function(x) {
  if (!is_crosscheck(x)) fail("`x` must be a crosscheck with all its columns.")
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
    ggplot2::geom_linerange(ggplot2::aes(xmin = .data$lower, xmax = .data$upper), colour = BLUE,
                            linewidth = 1) +
    ggplot2::geom_point(ggplot2::aes(shape = .data$sound), colour = ORANGE, size = 2.5) +
    ggplot2::scale_shape_manual(values = c(`TRUE` = 16, `FALSE` = 1), guide = "none") +
    ggplot2::labs(title = "Log evidence by method", subtitle = "2 standard errors",
                  x = "Log evidence", y = NULL) +
    ggplot2::theme_minimal()
}
