# Partial Bayes factors: the evidence of the data beyond a training part, from the trace of a fit.

#' Evidence of the data beyond a training part
#'
#' The log evidence of the rest of the data, given a part of them that trains the prior: some rows,
#' as in intrinsic and partial Bayes factors, or a fraction of the likelihood of all rows, as in
#' fractional Bayes factors. Both depend much less on the width of vague priors than the evidence
#' does. They come from the trace that a fit already has.
#'
#' @param fit A fit from [evidence()], a race of several models, or a list of fits. For a fraction
#'   they must be tempered: by [ais()], by [smc()] with `path = "thermal"`, or by
#'   [power_posterior()], whose `run` may have narrow steps. For rows they must have used rows one
#'   chunk after another: by [sgais()], `smc("data")` or [sequential()], or be a race.
#' @param training A fraction of the likelihood, above 0 and below 1; or a number of rows, the first
#'   ones in the order in which the run used them, which for most methods is random.
#'
#' @details
#' With a fraction \eqn{b}, the result is \eqn{\log Z(1) - \log Z(b)}, where \eqn{Z(b)} is the
#' integral of the prior times the likelihood to the power \eqn{b}. O'Hagan suggests the smallest
#' number of rows that make the posterior proper, divided by the number of rows. The log of
#' \eqn{Z} is a convex function of the power, so that values between two steps of the path have
#' bounds from its chords; what they leave open is part of the standard error.
#'
#' With rows, the result is \eqn{\log Z_n - \log Z_m}, the log probability of the rows after the
#' first \eqn{m}. If the trace has no entry after \eqn{m} rows, the next one before the last row is
#' taken, and `training` of the result says which; if there is none, that is an error. The default
#' method knows few places on few rows, `smc("data")` one after each row. The arithmetic intrinsic
#' Bayes factor of Berger and Pericchi is the mean of such Bayes factors over training samples: fit
#' with several seeds and average them.
#'
#' The steps of a particle estimate have nearly independent errors. So where both terms come from
#' the same particles, the square of the standard error is the difference of their squares. Where
#' the reported evidence is another estimate, such as the importance-sampling check or the mean of
#' several runs, it is the sum. A fit that failed its own checks, or a run that started again on the
#' way, has no known error here: it is not `reliable`.
#'
#' @return A data frame with a row for each fit: `model`, `training`, `log_evidence`, `se` and
#'   `reliable`. Differences between rows are log partial Bayes factors.
#'
#' @references
#' O'Hagan, A. (1995). Fractional Bayes factors for model comparison. *Journal of the Royal
#' Statistical Society B* 57, 99-138.
#'
#' Berger, J. O. and Pericchi, L. R. (1996). The intrinsic Bayes factor for model selection and
#' prediction. *Journal of the American Statistical Association* 91, 109-122.
#'
#' @examples
#' # a prior that is a hundred times as wide changes the evidence, not the fractional one
#' fits <- lapply(c(narrow = 10, wide = 1000), function(sd)
#'   evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = sd), cars,
#'            power_posterior(run = smc(ess = 0.95)), seed = 1))
#' sapply(fits, logml)
#' partial_evidence(fits, training = 2 / 50)
#'
#' @seealso [compare_models()], [race]
#' @export
partial_evidence <- function(fit, training) {
  training <- check_positive(training, "training")
  if (training >= 1) training <- check_count(training, "training", 1)
  if (inherits(fit, "evidence_race")) return(partial_of_race(fit, training))
  fits <- if (inherits(fit, "evidence")) list(fit) else fit
  if (!is.list(fits) || !length(fits) ||
      !all(vapply(fits, inherits, NA, "evidence")))
    refuse(fit, "fit", "a fit, a race or a list of fits")
  labels <- if (is.null(names(fits)))
    vapply(fits, function(one) model_line(one$model), "") else names(fits)
  rows <- lapply(fits, if (training < 1) fraction_of else rows_beyond, training)
  data.frame(model = labels, do.call(rbind, rows), row.names = NULL)
}

fraction_of <- function(fit, training) {
  trace <- fit$trace
  if (is.null(trace$lambda) || !is_one_chunk(trace))
    fail("`fit` must be tempered for a fraction: by ais(), smc(\"thermal\") or power_posterior(), ",
         "not ", fit$method$name, "().")
  at <- between_powers(c(0, trace$lambda), c(0, trace$log_evidence), training)
  known <- c(0, trace$se)[at$step]
  beyond(fit, training, at$value, known, sqrt(at$gap^2 / 12))
}

#' The row of a result
#' @param value,se Log evidence of the training part, from the trace, and its standard error.
#' @param more A further, independent error.
#' @noRd
beyond <- function(fit, training, value, se, more = 0) {
  own <- identical(fit$source, "sampler")
  joined <- if (own) abs(fit$se^2 - se^2) else fit$se^2 + se^2
  data.frame(training = training, log_evidence = fit$log_evidence - value,
             se = sqrt(joined + more^2),
             reliable = !length(fit$failed) && !any(fit$trace$restarts > 0))
}

#' A convex function between its known values: the middle of its bounds and their distance, and the
#' last place before
#' @noRd
between_powers <- function(x, y, at) {
  k <- findInterval(at, x)
  if (x[k] == at) return(list(value = y[k], gap = 0, step = k))
  line <- function(i) if (i >= 1 && i < length(x))
    y[i] + (y[i + 1] - y[i]) / (x[i + 1] - x[i]) * (at - x[i])
  upper <- line(k)
  lower <- max(line(k - 1), line(k + 1), -Inf)
  if (lower == -Inf) fail("The path has too few powers for `training`: take more steps.")
  # by Monte Carlo error the lower bound may be above the upper one
  gap <- max(upper - lower, 0)
  list(value = upper - gap / 2, gap = gap, step = k)
}

rows_beyond <- function(fit, training) {
  trace <- fit$trace
  if (is.null(trace$lambda_steps) || is_one_chunk(trace))
    fail("`fit` must have used its rows in chunks: by sgais(), smc(\"data\") or sequential(), not ",
         fit$method$name, "().")
  if (!identical(as.double(max(trace$n)), as.double(fit$n)))
    fail("`training` must be a fraction for a model with group-level terms: its run adds groups, ",
         "not rows, and keeps the log evidence after ", count(max(trace$n)), " groups, not after ",
         count(fit$n), " rows.")
  k <- which(trace$n == place_of_training(trace$n, training))[1]
  beyond(fit, trace$n[k], trace$log_evidence[k], trace$se[k])
}

#' The first place at which the log evidence is known after so many rows, but before the last one
#' @noRd
place_of_training <- function(n, training) {
  last <- max(n)
  if (training >= last)
    fail("`training` must be less than the number of rows, ", count(last), ", not ",
         count(training), ".")
  known <- sort(unique(n[n < last]))
  at <- known[known >= training]
  if (length(at)) return(at[1])
  remedy <- "smc(\"data\") knows it after each row."
  if (!length(known))
    fail("The run of `fit` used all ", count(last), " rows at once and knows the log evidence of ",
         "no part of them: ", remedy)
  fail("`training` must be at most ", count(max(known)), ", not ", count(training), ": beyond, ",
       "the run knows the log evidence only after all ", count(last), " rows. ", remedy)
}

# Moments of a race know the log evidence of each model after the same rows.
partial_of_race <- function(race, training) {
  if (training < 1)
    fail("`training` must be a number of rows for a race, not the fraction ", training, ".")
  table <- as.data.frame(race)
  table <- table[table$model %in% race$model, ]
  last <- max(table$rows)
  at <- place_of_training(table$rows, training)
  begun <- table[table$rows == at, ]
  ended <- table[table$rows == last, ]
  begun <- begun[match(ended$model, begun$model), ]
  data.frame(model = ended$model, training = at,
             log_evidence = ended$log_evidence - begun$log_evidence,
             se = sqrt(ended$se^2 + begun$se^2), reliable = !nzchar(begun$doubt) &
               race$reliable[match(ended$model, race$model)], row.names = NULL)
}
