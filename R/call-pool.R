# c() of fits: runs that were made apart, such as those of an array of jobs, become one fit.

#' Pool fits that were made apart
#'
#' `c()` makes one fit of several fits of the same problem with different seeds, as those of the
#' jobs of an array. The result is a fit with all their runs as replicates, as [evidence()] gives
#' with `replicates`: the estimates are averaged (see `combine` there), the standard error comes
#' from their spread, and draws are weighted by the evidence of their run. Fits by [nested()] are
#' merged instead: the result is the fit that one run with as many live points as all of them
#' together would give.
#'
#' @param ... Fits from [evidence()] of the same model, priors, data, method and settings.
#'
#' @details
#' **Seeds.** Runs with different seeds have independent random numbers, and so have the replicates
#' of a run. So fits can be pooled if all their seeds differ; two fits of the same seed have the
#' same random numbers and are refused. In an array of jobs, take the number of the job as seed:
#' `evidence(model, data, seed = task)`. The bits are not those of one call with `replicates`, whose
#' runs have the seed of the call and the number of the replicate.
#'
#' Estimates without a Monte Carlo error cannot be pooled: those of [exact()], [bic()],
#' [variational()] and of [laplace()] without importance sampling. `trace`, `sampler`, `audit` and
#' other parts of single runs are those of the first fit. Rows cannot be added by
#' [update()][update.evidence].
#'
#' @return A fit, of class `"evidence"`, with a further element `seeds`, a matrix with a row for
#'   each fit.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, prior_sd = 10)
#' fits <- lapply(1:4, function(task) evidence(model, cars, smc(), seed = task))
#' do.call(c, fits)
#'
#' @seealso [evidence()], [compare_models()]; [nested_runs] to continue nested sampling
#' @export
c.evidence <- function(...) {
  fits <- list(...)
  for (fit in fits) check_is_fit(fit, "...")
  merges <- all(vapply(fits, function(fit)
    !is.null(fit$nested) && is.null(fit$replicates) && !is_latent(fit$model), NA))
  check_one_problem(fits, merges)
  if (length(fits) == 1) return(fits[[1]])
  pooled <- if (merges) together(fits) else pool_runs(fits)
  pooled$seeds <- seeds_of(fits)
  pooled
}

seeds_of <- function(fits)
  do.call(rbind, lapply(fits, function(fit) if (is.null(fit$seeds)) fit$seed else fit$seeds))

# Estimates that have a Monte Carlo error.
POOLED <- c("sampler", "audit", "replicates", "importance")

#' Refuse fits that are not of one problem, or not independent
#'
#' @param merges Whether live points are merged, of which each fit may have another number.
#' @noRd
check_one_problem <- function(fits, merges) {
  first <- fits[[1]]
  if (length(fits) > 1) for (fit in fits) if (!fit$source %in% POOLED)
    fail("Fits can be pooled only if they have a Monte Carlo error, not those of ",
         fit$method$name, "(), unless it has importance sampling.")
  for (i in seq_along(fits)[-1]) {
    other <- difference_of(fits[[i]], first, merges)
    if (!is.null(other))
      fail("Fits can be pooled only if they are of one problem: fit ", i, " has ", other, ".")
  }
  check_same_improper(fits, paste("fit", seq_along(fits)))
  same <- duplicated(seeds_of(fits))
  if (any(same))
    fail("Fits can be pooled only if their seeds differ: two of these have the same seed, and so ",
         "the same random numbers.")
}

#' What one fit has that the first one does not have, or NULL
#' @noRd
difference_of <- function(fit, first, merges) {
  model <- function(fit) list(fit$model$name, deparse1(fit$model$formula), colnames(fit$draws))
  settings <- function(fit) fit$method[c("name", "settings", "kernels", "combine")]
  if (!identical(model(fit), model(first))) "another model"
  else if (!identical(fit$n, first$n)) "another number of observations"
  else if (!identical(fit$data_id, first$data_id)) "other data"
  else if (all(c(length(fit$rows_id), length(first$rows_id)) > 0) &&
             !identical(fit$rows_id, first$rows_id) ||
             !is.null(pairings_differ(list(first, fit)))) "other covariates"
  else if (!same_model(fit, first)) "other priors or settings of the model"
  else if (fit$method$name != first$method$name) "another method"
  else if (!merges && !identical(settings(fit), settings(first))) "other settings of its method"
}

same_model <- function(one, two) {
  if (asks_r(one$model)) same_code(one$model, two$model)
  else identical(one$args, two$args)
}

#' Whether two objects have the same functions in them, with the same variables
#'
#' The environments of functions that were read from files are not identical.
#' @noRd
same_code <- function(one, two, depth = 8) {
  if (depth == 0 || identical(one, two)) return(TRUE)
  if (is.environment(one) || is.environment(two)) return(is.environment(one) && is.environment(two))
  if (is.list(one) && is.list(two))
    return(length(one) == length(two) && identical(names(one), names(two)) &&
             all(unlist(Map(same_code, one, two, depth - 1))))
  if (!is.function(one) || !is.function(two) || is.primitive(one) || is.primitive(two))
    return(identical(one, two, ignore.environment = TRUE))
  if (!identical(body(one), body(two)) || !identical(formals(one), formals(two))) return(FALSE)
  used <- function(f) {
    where <- environment(f)
    if (identical(where, globalenv()) || isNamespace(where)) list()
    else mget(sort(intersect(all.names(body(f)), ls(where))), envir = where)
  }
  same_code(used(one), used(two), depth - 1)
}

#' The fit of all runs of some fits, as new_evidence() makes it of several runs
#' @noRd
pool_runs <- function(fits) {
  fit <- fits[[1]]
  runs <- unlist(lapply(fits, runs_of_fit), FALSE)
  headline <- combine_runs(runs, combination_of(fit$method))
  ledger <- ledger_of(run_entries(runs, headline), bounds_of_fits(fits))
  pool <- function(part) do.call(rbind, lapply(fits, `[[`, part))
  draws <- pool("draws")
  parameters <- pool("parameters")
  levels <- lapply(fits, function(fit) {
    own <- runs_of_fit(fit)
    level <- vapply(own, function(run) run$headline$log_evidence, 0) + log(times_of(own))
    list(log_weights = fit$log_weights, log_evidence = sum_of_logs(level[is.finite(level)]))
  })
  # doubts about few of the runs are left out, as within a call
  failed <- lengths(lapply(fits, `[[`, "failed")) > 0
  heard <- if (any(failed) && mean(failed) < 0.5) fits[!failed] else fits
  sentences <- function(part) unlist(lapply(heard, `[[`, part))
  known <- unlist(lapply(fits, `[[`, "warnings"))
  fit[c("log_evidence", "se", "source")] <- headline[c("log_evidence", "se", "source")]
  fit$verdict <- verdict_of(ledger, 1)
  fit$draws <- draws
  fit$parameters <- parameters
  fit$log_weights <- pool_weights(levels)
  fit$replicates <- replicate_table(runs, fit$method)
  fit$work <- Reduce(`+`, lapply(fits, `[[`, "work"))
  fit["state"] <- list(NULL)
  fit["warnings"] <- list(distinct(sentences("warnings")))
  fit["failed"] <- list(distinct(sentences("failed")))
  doubts <- c(headline$said, contradictions(ledger, 1, advice_for(fit$model, fit$method)))
  raise_warnings(with_doubts(fit, doubts), known = known)
}

sum_of_logs <- function(x) if (length(x)) max(x) + log(sum(exp(x - max(x)))) else -Inf

#' The runs of a fit: of each the estimate and its entry
#' @noRd
runs_of_fit <- function(fit) {
  verdict <- fit$verdict
  several <- !is.null(fit$replicates)
  at <- if (several) grep("^run [0-9]+, ", verdict$entry)
  else which(startsWith(verdict$says, "reported"))
  table <- if (several) fit$replicates
  else data.frame(log_evidence = fit$log_evidence, se = fit$se, source = fit$source,
                  sampler = fit$sampler$log_evidence)
  # runs of one number of particles have no column for it
  if (!is.null(table$particles)) table$times <- table$particles / particles_of(fit$method)
  Map(function(i, j) {
    row <- entry_at(verdict, j)
    entry <- sub("^run [0-9]+, ", "", row$entry)
    own <- entry_at(table, i)
    list(headline = list(log_evidence = own$log_evidence, se = own$se, source = own$source,
                         entry = entry, times = own$times),
         sampler = list(log_evidence = own$sampler),
         ledger = new_entry(entry, row$kind, row$log_evidence, row$se, ess = row$ess,
                            cost = row$cost, stream = row$stream))
  }, seq_len(nrow(table)), at)
}

# The highest lower bound and the lowest upper bound of some fits, of each name.
bounds_of_fits <- function(fits) {
  all <- do.call(rbind, lapply(fits, function(fit)
    as.data.frame(unclass(fit$verdict))[c("entry", "kind", "log_evidence", "se", "cost",
                                          "stream")]))
  all <- all[all$kind %in% c("lower bound", "upper bound") & !grepl("^run ", all$entry), ]
  sign <- ifelse(all$kind == "upper bound", 1, -1)
  all <- all[order(sign * all$log_evidence), ]
  all <- all[!duplicated(all[c("entry", "kind")]), ]
  do.call(ledger_of, lapply(seq_len(nrow(all)), function(i) {
    one <- entry_at(all, i)
    new_entry(one$entry, one$kind, one$log_evidence, one$se, cost = one$cost, stream = one$stream)
  }))
}
