# print() and summary() of a fit.

#' Print or summarise a fit
#'
#' `print()` shows the log evidence with its standard error and its source, the estimates of the
#' sampler and of the importance-sampling check (`check`), the cost, and warnings. `summary()` adds
#' the posterior, a table of all estimates and checks (`verdict`, see [evidence()]; `draws` is their
#' effective number, `cost` counts evaluations) and the diagnostics of the run.
#'
#' @param object,x A fit from [evidence()], or a summary of one.
#' @param digits Significant digits of log evidences; `NULL`, the default, for those that the
#'   standard errors allow.
#' @param ... Unused.
#' @param most Largest number of parameters to print.
#'
#' @details
#' Quantiles are weighted: half of a draw's weight lies below it, with linear interpolation between
#' draws. The effective sample size is \eqn{1 / \sum_i W_i^2}{1 / sum_i W[i]^2} for weights
#' \eqn{W_i}{W[i]} that sum to one. The numbering of a mixture's components is arbitrary.
#'
#' @return `print()` returns its argument, invisibly. `summary()` returns an object of class
#'   `"summary.evidence"`, a list:
#' \describe{
#'   \item{`fit`}{The fit, without its draws.}
#'   \item{`parameters`}{A data frame with a row for each parameter on the user's scale: `mean`,
#'     `sd`, `q5`, `q50`, `q95`.}
#'   \item{`draws`, `effective`}{Number of draws, and their effective sample size.}
#'   \item{`steps`}{Annealing steps, `NULL` for nested sampling: their `total`, the number of
#'     `chunks`, the largest number in one chunk (`most`) and the number of observations at its end
#'     (`at`).}
#'   \item{`least_ess`}{The smallest effective sample size of the run: `ess`, with the number of
#'     `particles`, the number of observations (`n`) and `lambda`.}
#'   \item{`acceptance`}{Smallest and largest acceptance rate; `NA` for kernels without an accept
#'     step.}
#'   \item{`exchangeable`}{Whether parts of the model, such as mixture components, can be
#'     exchanged.}
#' }
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' fit
#' summary(fit)
#' summary(fit)$parameters["speed", c("q5", "q95")]
#'
#' @seealso [plot.evidence()], [posterior_draws()]
#' @name summary.evidence
NULL

#' @rdname summary.evidence
#' @export
print.evidence <- function(x, digits = NULL, ...) {
  if (!is.null(digits)) digits <- check_count(digits, "digits", 1, 22)
  cat_wrapped(c(headline_lines(x, digits), cost_line(x)), exdent = 4)
  cat(paste0(prior_lines(x), "\n", recycle0 = TRUE), sep = "")
  if (!is.null(x$correction)) cat_wrapped(correction_line(x$correction), exdent = 4)
  again <- restarted_at(x$trace)
  if (length(again))
    cat_wrapped(paste0("The run started again from the prior after ",
                       paste(count_each(again), collapse = ", "), " rows: the law of the rows had ",
                       "changed, or a mode had been lost."))
  for (warning in fit_warnings(x)) cat_wrapped(paste0("Warning: ", warning), exdent = 2)
  for (note in intersect(x$method$note, x$warnings)) cat_wrapped(paste0("Note: ", note), exdent = 2)
  for (note in c(power_note(x$model), x$design$hint, unused_note(x)))
    cat_wrapped(paste0("Note: ", note), exdent = 2)
  invisible(x)
}

# Smaller corrections, in nats, are not printed.
CORRECTION_SAID <- 0.005

correction_line <- function(correction) if (sum(abs(unlist(correction))) > CORRECTION_SAID)
  paste0("A finer rule of integration changes ",
         align_estimates(correction[["log_evidence"]], correction[["se"]]),
         ", which the log evidence contains.")

# The default method would write out all draws and the model, which takes many seconds.
#' @export
format.evidence <- function(x, ...) {
  paste0("log evidence ", align_estimates(x$log_evidence, x$se), " by ", x$method$name, "()")
}

#' @rdname summary.evidence
#' @export
summary.evidence <- function(object, ...) {
  check_no_dots(...)
  object <- with_draws(object)
  weights <- exp(object$log_weights)
  columns <- seq_len(ncol(object$draws))
  at <- c(0.05, 0.5, 0.95)
  quantiles <- vapply(columns, function(j) weighted_quantile(object$draws[, j], weights, at), at)
  parameters <- data.frame(
    mean = colSums(weights * object$draws),
    sd = vapply(columns, function(j) weighted_sd(object$draws[, j], weights), 0),
    q5 = quantiles[1, ], q50 = quantiles[2, ], q95 = quantiles[3, ],
    row.names = make.unique(colnames(object$draws))
  )
  draws <- nrow(object$draws)
  symmetry <- model_facts(object$model, object$args)$log_symmetry
  object[c("draws", "log_weights", "parameters")] <- NULL
  object$sampler[c("draws", "log_weights")] <- NULL
  structure(
    list(
      fit = object, parameters = parameters, draws = draws, effective = 1 / sum(weights^2),
      steps = if (!is.null(object$trace$lambda_steps)) most_steps(object$trace),
      least_ess = if (!is.null(object$trace$lambda)) least_ess(object$trace),
      acceptance = range_of(object$trace$acceptance), exchangeable = symmetry > 0
    ),
    class = "summary.evidence"
  )
}

#' @rdname summary.evidence
#' @export
print.summary.evidence <- function(x, most = 20, ...) {
  most <- check_count(most, "most")
  fit <- x$fit
  print.evidence(fit)
  cat("\nPosterior, ", if (x$effective > (1 - 1e-9) * x$draws) count_of(x$draws, "draw")
      else paste0(count_of(x$draws, "weighted draw"), ", effective sample size ",
                  count(x$effective)), ":\n", sep = "")
  print(format_parameters(utils::head(x$parameters, most)), quote = FALSE, right = TRUE)
  hidden <- nrow(x$parameters) - most
  if (hidden > 0)
    cat("... and ", hidden, " more: print(summary(fit), most = ", nrow(x$parameters), ")\n",
        sep = "")
  ratio <- ratio_sentence(ratio_of(part_of(fit$model, "family")(fit$model)))
  if (!is.null(ratio)) cat_wrapped(paste0(ratio, "."))
  if (x$exchangeable) cat_wrapped("Components are numbered arbitrarily.")
  cat("\nEstimates of the log evidence:\n")
  print(fit$verdict)
  if (ncol(fit$trace) == 0) return(invisible(x))
  cat("\nThe run", if (!is.null(fit$replicates)) " (first replicate)", ":\n", sep = "")
  cat(paste0("  ", walk_lines(x), "\n"), sep = "")
  if (!is.null(fit$audit)) cat(audit_lines(fit$audit), sep = "\n")
  invisible(x)
}

# Lines of print() and summary() ------------------------------------------------------------------

headline_lines <- function(fit, digits = NULL) {
  estimates <- list(fit)
  labels <- "log evidence"
  words <- origin_of(fit)
  if (!is.null(fit$variational)) {
    both <- variational_lines(fit)
    estimates <- both$estimates
    labels <- both$labels
    words <- both$words
  }
  if (is.null(fit$replicates) && !is.null(fit$audit)) {
    estimates <- list(fit, fit$sampler, fit$audit)
    labels <- c(labels, "  sampler", "  check")
    words <- c(words, beside(fit, 1, sampler_words(fit)),
               beside(fit, match(AUDIT_ENTRY, fit$verdict$entry), audit_words(fit$audit)))
  }
  ses <- vapply(estimates, `[[`, 0, "se")
  endless <- is.infinite(ses)
  words[endless] <- paste0("standard error not known, perhaps large",
                           ifelse(nzchar(words[endless]), "; ", ""), words[endless])
  numbers <- align_estimates(vapply(estimates, `[[`, 0, "log_evidence"), ses, digits)
  c(model_line(fit$model), sub(" +$", "", paste0(format(labels), "  ", numbers, "  ", words)))
}

# The words beside an estimate; if it contradicts the reported one, with the difference in nats.
beside <- function(fit, at, words) {
  says <- fit$verdict$says[at]
  if (!isTRUE(grepl("nats", says))) return(words)
  paste0(sub(", (error|Pareto).*", "", words), "; ", sub(",.*|:.*", "", says))
}

# The source of the reported estimate and its standard error.
origin_of <- function(fit) {
  switch(fit$source,
    audit = "from the importance-sampling check",
    replicates = if (is.null(fit$replicates$particles))
      paste0("from the spread of ", nrow(fit$replicates), " replicates, sd ",
             format(stats::sd(fit$replicates$log_evidence), digits = 2))
    else paste0("from ", nrow(fit$replicates), " runs, ", count(sum(fit$replicates$particles)),
                " particles in all"),
    laplace = paste0("Laplace approximation, ", count_of(fit$peaks$modes, "mode"),
                     ", error unknown"),
    importance = paste0("importance sampling, ", count_of(fit$peaks$modes, "mode"), ", ",
                        audit_words(fit$peaks)),
    bic = "BIC, error unknown",
    exact = "in closed form",
    partitions = partition_words(fit),
    quadrature = "by a one-dimensional integral, error below 1e-9",
    if (is.null(fit$audit)) sampler_words(fit) else "from the sampler"
  )
}

sampler_words <- function(fit) {
  if (!is.null(fit$nested))
    return(paste0(count(fit$nested$live), " live points, error from simulated volumes"))
  particles <- utils::tail(fit$trace$particles, 1)
  if (isTRUE(fit$audit$first))
    return(paste(count(particles), "particles, drawn by importance sampling"))
  if (length(particles) == 1 && is.finite(particles))
    if (particles == 1) "1 particle, no standard error"
    else paste0(count(particles), " particles, error from ", fit$method$error_from) else ""
}

audit_words <- function(audit) {
  if (!audit$draws) return("no peak found")
  paste0(count(audit$draws), " draws, ", percent(audit$ess), " effective",
         if (!is.na(audit$pareto_k)) sprintf(", Pareto k %.2f", audit$pareto_k))
}

cost_line <- function(fit) {
  work <- fit$work
  evaluations <- sum(work[intersect(names(work), c("likelihoods", "gradients"))])
  pieces <- c(
    show_time(work[["seconds"]]),
    if (!is.null(fit$nested)) count_of(nrow(fit$nested$points), "point")
    else if (isTRUE(work["lambda_steps"] > 0)) count_of(work[["lambda_steps"]], "annealing step"),
    if (evaluations > 0) paste(large(evaluations), "evaluations")
  )
  gone <- length(fit$na.action)
  rows <- paste0(row_words(fit$n), if (gone) paste0(" (", count_of(gone, "row"), " left out)"),
                 "; ")
  paste0(if (!has_no_data(fit)) rows, shorten(deparse1(fit$method$call), 50), "; ",
         paste(pieces, collapse = ", "))
}

walk_lines <- function(x) {
  if (!is.null(x$fit$nested)) return(climb_lines(x))
  if (isTRUE(x$fit$audit$first))
    return("no annealing: the particles were drawn by importance sampling")
  if (is.null(x$steps)) return(latent_lines(x$fit$trace))
  steps <- x$steps
  ess <- x$least_ess
  rate <- x$acceptance
  c(
    if (steps$chunks > 1)
      paste0(count_of(steps$total, "annealing step"), " in ", count(steps$chunks),
             " chunks, at most ", count(steps$most), " in one (up to n = ", count(steps$at), ")")
    else count_of(steps$total, "annealing step"),
    if (!is.null(ess))
      paste0("effective sample size at least ", count(ess$ess), " of ", count(ess$particles),
             " particles (at ",
             if (ess$lambda < 1) paste("lambda =", format(ess$lambda, digits = 2))
             else paste("n =", count(ess$n)), ")"),
    if (!anyNA(rate)) paste("moves accepted", paste(unique(percent(rate)), collapse = " to "))
  )
}

latent_lines <- function(trace) {
  if (is.null(trace$lambda)) return(paste(count_of(nrow(trace), "chunk"), "of rows"))
  if (trace$n[1] < trace$n[nrow(trace)])
    return(paste("added", count_of(nrow(trace), "row"), "one at a time"))
  count_of(nrow(trace), "annealing step")
}

climb_lines <- function(x) {
  nested <- x$fit$nested
  sums <- nested$sums
  c(
    sprintf("information %.2f nats, prior volume shrunk to a share of exp(%.1f)",
            nested$information, min(nested$points$log_volume)),
    sprintf(paste("sums: lower %.3f, trapezoid %.3f, upper %.3f, as published %.3f; mean over",
                  "volumes %.3f"), sums[["lower"]],
            sums[["trapezoid"]], sums[["upper"]], sums[["published"]], sums[["simulated"]]),
    if (!is.na(nested$renewal))
      sprintf("renewal of copied points %.0f%% (independent draws: 100%%)", 100 * nested$renewal),
    if (!is.na(nested$rank_p))
      sprintf("ranks of new points: largest deviation from uniform %.3f, p = %.2g", nested$rank_gap,
              nested$rank_p),
    if (!anyNA(x$acceptance)) paste("proposals accepted",
                                    paste(unique(percent(x$acceptance)), collapse = " to "))
  )
}

audit_lines <- function(audit) {
  c("The importance-sampling check:",
    paste0("  ", audit_words(audit), ", ", count_of(audit$modes, "mode")))
}

# Numbers as text --------------------------------------------------------------------------------

# Each parameter to two digits of its standard deviation.
format_parameters <- function(parameters) {
  text <- t(apply(as.matrix(parameters), 1, function(row) {
    sd <- row[["sd"]]
    if (is.na(sd) || sd <= 0) return(format(row, digits = 4, trim = TRUE))
    decimals <- min(max(0, 1 - floor(log10(sd))), 12)
    sub("^-(0\\.?0*)$", "\\1", formatC(row, digits = decimals, format = "f"))
  }))
  dimnames(text) <- list(rownames(parameters), c("mean", "sd", "5%", "50%", "95%"))
  text
}
