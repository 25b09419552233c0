# The result of a race: a comparison of models that also knows the moments before the last row.

#' Several models on the same rows
#'
#' What [evidence()] returns for a list of models: a comparison, as from [compare_models()], that
#' also knows how the evidence went while rows arrived. `as.data.frame()` has the numbers, `plot()`
#' shows the sequential Bayes factor or the posterior probabilities, `predict()` averages over the
#' models with the weights of any moment, and [update()][update.evidence] adds rows.
#'
#' @param x,object A result of `evidence(list(...), data)`.
#' @param ... For `predict()`: `newdata` and `type` as in [compare_models()]; otherwise unused.
#' @param row.names,optional Unused.
#' @param rows For `predict()`: `NULL`, the default, for the weights after all rows, or a number of
#'   rows: the weights are then those of the last moment at or before it.
#' @param type What to plot: `"bayes factor"` (the default for two models) against rows,
#'   `"probability"` (the default for more), `"score"`, the log predictive score of each model and
#'   of the combination against that of the best model, or `"models"`, the bars of
#'   [compare_models()].
#' @param reference Name or number of the model over which, or the two models between which, the
#'   Bayes factor is shown; by default the first over the second, and with more models the two best.
#'
#' @details
#' **All models see the same rows in the same order.** A source is read once, and each block goes to
#' all models. A model that fails drops out, with its reason; the others go on. Each fit is that of
#' the model alone, to the bit, with the same seed.
#'
#' **Moments.** For the first 1,000 rows, and for data frames all rows in their given order, the
#' models are fitted to the first 1, 2, 3, ... rows, at distances that grow by 8 percent (20 percent
#' beyond 1,000 rows), when the moments are first asked for; if a model has many modes, latent
#' variables or R functions, which take longer, to 5, 10, 20, 40, ... rows. For later rows of a
#' stream the states of the runs are kept after 1,000, 2,000, 4,000, ... rows, and are then
#' continued as if the stream had ended there. They take at most 20 MB for each model. The last
#' moment has the reported estimates. On streams models with [lags()] have only moments after 1,000
#' rows. A comparison of single fits has the estimates of their traces, whose errors are larger.
#'
#' **Errors.** The standard error of a log Bayes factor is the root of the sum of the two models'
#' squared ones. Runs with the same seed have random numbers in common, so this is too large: by a
#' third in linear regressions, where the errors of two models had a correlation of 0.4.
#'
#' **Stopping.** With `stop_at = c(1/10, 10)` a stream ends when the Bayes factor of the first model
#' over the second is below 1/10 or above 10 by two standard errors; of more models, when one has a
#' Bayes factor above 10 over each other one. A Bayes factor is a martingale under the model in its
#' denominator, so whenever one looks, the chance ever to pass 10 wrongly is at most 1/10 (for data
#' that come from the model with its prior). Up to 1,000 rows the models are fitted to the first 1,
#' 2, 3, ... rows, as for the moments, and then to all rows so far, whenever their number has grown
#' by a tenth. Fewer than `from` rows decide nothing, nor do fits that are in doubt, such as one to
#' a response that is the same in all rows so far.
#'
#' @return `as.data.frame()`: a row for each moment and model, and for the combination of all models
#'   with their prior weights: `rows`, `model`, `log_evidence`, `se`, `posterior` (probability of
#'   the model at this moment), `log_score` (log predictive density of the rows since the moment
#'   before), `from` (`"fit"`, `"trace"` or `"reported"`), `doubt` (as in [compare_models()]; a fit
#'   that `"failed"` its checks is left out of probabilities and Bayes factors). `crossings()`: a
#'   data frame of Bayes factors (the thresholds of [compare_models()], 1/100 to 100) and the first
#'   number of `rows` at which the Bayes factor of the first model over the second has passed each
#'   by two standard errors, or `NA`.
#'   `predict()`: as for [compare_models()].
#'
#' @examples
#' models <- list(line = linear_regression(dist ~ speed), flat = linear_regression(dist ~ 1))
#' race <- evidence(models, cars, seed = 1)
#' race
#' plot(race)
#' crossings(race)
#' predict(race, data.frame(speed = 10))
#'
#' @seealso [compare_models()], [evidence()], [study_design()]
#' @name race
NULL

#' @param race The environment of the runs, from new_race().
#' @noRd
new_race_result <- function(race, fits) {
  left <- race$names %in% names(fits)
  comparison <- new_comparison(fits, names(fits), race$prior[left] / sum(race$prior[left]))
  kept <- list2env(list(
    names = race$names, prior = stats::setNames(race$prior, race$names),
    dropped = c(race$gone, race$dropped),
    stopped = race$stopped, stop_at = race$stop_at, from = race$from, methods = race$methods,
    opening = race$opening, past = race$past, looks = race$looks, parts = moment_parts(race),
    call = race$call),
    parent = emptyenv())
  structure(comparison, race = kept, class = c("evidence_race", class(comparison)))
}

race_in <- function(x) attr(x, "race")

is_race <- function(x)
  is.environment(race_in(x)) && is_comparison(x) && all(x$model %in% names(attr(x, "fits")))

require_race <- function(x, name = "x") {
  if (!is_race(x))
    fail("`", name, "` must be a result of evidence() with all its models and columns.")
}

# In the order of the call.
fits_in_order <- function(x) {
  fits <- attr(x, "fits")
  fits[intersect(race_in(x)$names, names(fits))]
}

race_moments <- function(x) {
  require_race(x)
  moments_of(race_in(x), fits_in_order(x))
}

#' @rdname race
#' @export
as.data.frame.evidence_race <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_no_dots(...)
  moments <- race_moments(x)
  names <- names(fits_in_order(x))
  wide <- moments_wide(moments, names)
  prior <- race_in(x)$prior[names]
  weighed <- with_combination(wide, prior / sum(prior))
  k <- length(names)
  m <- length(wide$rows)
  since <- function(v) rbind(v[1, ], diff(v))
  from <- moments$from[match(wide$rows, moments$rows)]
  data.frame(rows = rep(wide$rows, k + 1), model = rep(c(names, "combination"), each = m),
             log_evidence = c(wide$estimate, weighed$log_evidence),
             se = c(wide$stated, weighed$se), posterior = c(weighed$posterior, rep(NA, m)),
             log_score = c(since(wide$log_evidence), since(cbind(weighed$log_evidence))),
             from = rep(from, k + 1), doubt = c(wide$doubt, rep("", m)))
}

#' The mixture of all models with their prior weights, and the posterior of each, at each moment
#'
#' Where a fit failed its checks, of the others.
#' @noRd
with_combination <- function(wide, prior) {
  use <- !is.na(wide$log_evidence)
  logs <- wide$log_evidence + rep(log(prior), each = length(wide$rows))
  logs[!use] <- -Inf
  share <- drop(use %*% prior)
  total <- log_sum_rows(logs) - log(share)
  posterior <- exp(logs - total - log(share))
  se <- sqrt(rowSums((posterior * replace(wide$se, !use, 0))^2))
  none <- share == 0
  list(log_evidence = replace(total, none, NA), posterior = replace(posterior, !use, NA),
       se = replace(se, none, NA))
}

#' The comparison with the posterior probabilities of an earlier moment
#' @noRd
at_moment <- function(x, rows) {
  wide <- moments_wide(race_moments(x), x$model)
  before <- which(wide$rows <= rows)
  if (!length(before))
    fail("`rows` must be at least ", wide$rows[1], ", the first moment that is known.")
  at <- max(before)
  use <- x$reliable & !is.na(wide$log_evidence[at, ])
  if (!any(use)) fail("No fit at ", wide$rows[at], " rows passed its own checks.")
  x$posterior[!use] <- NA
  x$posterior[use] <- posterior_weights(wide$log_evidence[at, ],
                                        unname(race_in(x)$prior[x$model]), use)[use]
  x
}

#' @rdname race
#' @export
crossings <- function(x, reference = NULL) {
  if (!inherits(x, "evidence_race")) refuse(x, "x", "a result of `evidence()` of several models")
  require_race(x)
  pair <- race_pair(x, reference)
  path <- bayes_factor_path(x, pair)
  first <- function(passed) if (any(passed, na.rm = TRUE)) path$rows[which(passed)[1]] else NA_real_
  above <- vapply(LADDER, function(b) first(path$lower >= log(b)), 0)
  below <- vapply(LADDER, function(b) first(path$upper <= -log(b)), 0)
  data.frame(bayes_factor = c(1 / rev(LADDER), LADDER), rows = c(rev(below), above),
             in_favour_of = rep(rev(pair), each = length(LADDER)))
}

#' Names of the two models between which a Bayes factor is shown
#' @noRd
race_pair <- function(x, reference) {
  names <- names(fits_in_order(x))
  if (length(names) < 2) fail("`x` must have two models that have not dropped out.")
  if (is.null(reference)) {
    if (length(names) == 2) return(names)
    best <- order(!x$reliable, -x$log_evidence)[1:2]
    return(x$model[best])
  }
  if (!(is.character(reference) || is_plain_numeric(reference)) || !length(reference) %in% 1:2)
    refuse(reference, "reference", "one or two names or numbers of models")
  at <- if (is.character(reference)) match(reference, names) else match(reference, seq_along(names))
  if (anyNA(at) || anyDuplicated(at))
    refuse(reference, "reference", paste("names or numbers of models:", show_names(names)))
  if (length(at) == 2) return(names[at])
  others <- setdiff(x$model[order(!x$reliable, -x$log_evidence)], names[at])
  c(others[1], names[at])
}

#' The log Bayes factor of the first of two models over the second at each moment, with its error
#' @noRd
bayes_factor_path <- function(x, pair) {
  wide <- moments_wide(race_moments(x), pair)
  log_bf <- wide$log_evidence[, 1] - wide$log_evidence[, 2]
  se <- sqrt(wide$se[, 1]^2 + wide$se[, 2]^2)
  se[is.na(se) & !is.na(log_bf)] <- 0
  data.frame(rows = wide$rows, log_bf = log_bf, lower = log_bf - DECIDED_BY * se,
             upper = log_bf + DECIDED_BY * se)
}

#' @rdname race
#' @export
print.evidence_race <- function(x, ...) {
  if (!is_race(x)) return(NextMethod())
  NextMethod()
  race <- race_in(x)
  if (!is.null(race$stopped))
    cat_wrapped(sentence_of_stop(race))
  else if (!is.null(race$stop_at))
    cat_wrapped(paste0("No threshold of `stop_at` was passed by two standard errors in ",
                       count_of(attr(x, "n"), "row"), "."))
  for (name in names(race$dropped))
    cat_wrapped(paste0("Dropped out: ", name, ". ", race$dropped[[name]]))
  invisible(x)
}

sentence_of_stop <- function(race) {
  others <- setdiff(race$names, c(race$stopped$model, names(race$dropped)))
  upper <- if (length(race$names) == 2 && race$stopped$model == race$names[2]) 1 / race$stop_at[1]
  else race$stop_at[2]
  paste0("Stopped after ", count(race$stopped$rows), " rows: the Bayes factor of ",
         race$stopped$model, " over ", if (length(others) > 1) "each other model" else others,
         " is above ", format(upper, digits = 4), " by two standard errors.")
}
