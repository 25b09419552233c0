# The checks that follow a run, within one budget: entries of the ledger of the fit.

#' Check runs by optimisation, a reverse run, short moves, a lower bound and a run row by row
#'
#' @param runs The results of the runs.
#' @return A list: `entries` of the ledger, `said`, a function of the reported estimate that gives
#'   sentences, `third`, a function that makes the entry of a third estimate, and `parts` of the
#'   fit.
#' @noRd
further_checks <- function(problem, encoded, runs, model, method, words) {
  budget <- new_budget(sum(vapply(runs, evaluations_of, 0)))
  found <- reverse_checks(problem, encoded, runs, model, method, budget)
  moved <- if (!is.null(runs[[1]]$path))
    or_null(settled(problem, encoded, runs[[1]], model, budget))
  # a bound needs all rows
  bounded <- !isTRUE(encoded$sampled) && !has_trait(method, "no bound") &&
    has_bound(model, encoded$args)
  second <- if (bounded && is_latent(model)) second_look(model, method, encoded, words, budget)
  bound <- if (bounded) cheap_bound(model, encoded, words, budget)
  entries <- ledger_of(end_entries(found), second_entry(second), bound_entry(bound))
  third <- function() if (!is_latent(model) && !is_discrete(model) && !isTRUE(encoded$sampled))
    confirmation(or_null(climbed_by_engine(problem, encoded, model, CONFIRMING_CLIMBS)))
  list(entries = entries, third = third, parts = list(bound = bound, second_look = second),
       said = function(headline) c(settled_warning(moved, is_discrete(model)),
                                   mode_behind(found, headline, advice_for(model, method))))
}

# Climbs of the third estimate, if two others cannot both be right.
CONFIRMING_CLIMBS <- 48

confirmation <- function(found) {
  if (!is.null(found) && is.finite(found$log_evidence))
    new_entry(CONFIRMATION, "unbiased", found$log_evidence, found$se, ess = found$draws,
              cost = found$cost, stream = STREAMS[["climbs"]], error = Inf,
              # a heavy tail does not matter: that other modes were found would
              uneven = !isTRUE(found$share >= END_EVEN))
}

bound_entry <- function(bound) {
  if (!is.null(bound))
    new_entry("variational Bayes", "lower bound", bound$log_evidence, cost = bound$cost,
              stream = STREAMS[["lower bound"]])
}

second_entry <- function(second) {
  if (!is.null(second))
    new_entry(sprintf("smc(\"data\") with %.0f particles", second$particles),
              "unbiased", second$log_evidence, second$se, cost = second$cost,
              stream = STREAMS[["run by rows"]])
}
