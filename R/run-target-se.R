# evidence(target_se =): as many replicates as bring the standard error to a target, or runs of
# which each doubles the number of particles. Further runs are jobs that are added to the plan of a
# work when the fit of those before is known.
#
# The number of further replicates is fixed once, from the error of the first ones, and the mean is
# taken over all. A rule that looks at the estimate after every replicate would stop where the
# estimates happen to agree.
#
# A work has a `goal`: `se`, the target; `doubling`; `step`, how often runs were added; and for
# doubling `first`, the number of runs of the plan that it began with.

# Most replicates; and how many more than the forecast are run, because the forecast is uncertain.
TARGET_MOST <- 1000
TARGET_MARGIN <- 1.3
# The spread of this many runs is a first forecast of the error of further ones.
TARGET_FIRST <- 4

new_goal <- function(target, doubling) {
  if (!is.null(target)) list(se = target, doubling = doubling, step = 0)
}

check_target <- function(target, options, data) {
  check_positive(target, "target_se")
  if (!is_source(data) || is_pushed(data)) return(invisible())
  if (!is.null(options$checkpoint))
    fail("`target_se` cannot be combined with `checkpoint` for rows of a source: use ",
         "`collect = TRUE`, or give `replicates`.")
  if (!data$rewinds)
    fail("`target_se` needs a source that can be read again from the start: give `replicates`, ",
         "which share one pass.")
}

#' What a fit needs to come nearer to the goal of its work
#'
#' @return A list: `more`, problems of further runs; or `doubt`, why there are none; or nothing.
#' @noRd
next_for_goal <- function(work, fit) {
  if (is.null(work$goal) || isTRUE(fit$se <= work$goal$se)) list()
  else if (work$goal$doubling) next_doubling(work, fit)
  else next_replicates(work, fit)
}

next_replicates <- function(work, fit) {
  target <- work$goal$se
  runs <- length(work$plan$first)
  each <- seconds_spent(work) / runs
  to <- function(n, why) {
    tell_cost(n, each, fit$se, target, why)
    list(more = lapply(runs:(n - 1), function(r) replace(work$problem, "replicate", list(r))))
  }
  # exact() and its like give the same result each time
  repeats <- has_trait(work$method, "repeats")
  if (work$goal$step == 0 && runs < TARGET_FIRST && !repeats && !is.na(fit$se)) {
    work$goal$step <- 1
    return(to(TARGET_FIRST, "for a forecast"))
  }
  if (work$goal$step == 2) return(list(doubt = say("target_missed", fit$se, target)))
  work$goal$step <- 2
  needed <- if (is.finite(fit$se)) ceiling(TARGET_MARGIN * runs * (fit$se / target)^2) else NA
  stopped <- if (is.na(fit$se)) paste0(work$method$name, "() states no standard error")
  else if (repeats) paste0(work$method$name, "() gives the same result each time")
  else if (is.na(needed)) "the error of the first runs is not known"
  else if (needed > TARGET_MOST)
    paste0("about ", count(needed), " runs would be needed, more than ", count(TARGET_MOST))
  if (is.null(stopped)) to(needed, "in all")
  else list(doubt = say("target_not_reached", target, stopped))
}

tell_cost <- function(runs, each, se, target, why) {
  message(sprintf("The standard error is %.2g, and %.2g is wanted: %s runs %s, about %s.", se,
                  target, count(runs), why, format_seconds(runs * each)))
}

#' The plan without the runs that were added and have not ended
#' @noRd
without_open_runs <- function(plan) {
  second <- second_jobs(plan)
  open <- vapply(plan$first, is_open, NA) | vapply(second, is_open, NA) |
    seq_along(plan$first) > length(plan$second)
  list(first = plan$first[!open], second = second[!open])
}

# Doubling ----------------------------------------------------------------------------------------

# Most doublings, and most particles of all runs; and how far the first forecast of their number may
# be off.
DOUBLINGS_MOST <- 10
DOUBLED_MOST <- 1e6
ROUGHLY <- 4

check_doubling <- function(method) {
  if (!has_trait(method, "any particles"))
    fail("`doubling` is for methods whose estimate of the evidence is unbiased with any number of ",
         "particles, ais(), smc() and likelihood_weighting(), not ", method$name,
         "(): leave it out for further replicates.")
  if (combination_of(method) != "arithmetic")
    fail("`combine` must be \"arithmetic\" with `doubling`, not \"", method$combine, "\".")
  if (is_lone(method))
    fail("`particles` must be at least 2 with `doubling`, because one particle states no standard ",
         "error.")
}

#' A run with as many particles as all before have together, if the target is not reached
#'
#' The estimate is the mean of those of the runs, weighted by their numbers of particles.
#' @noRd
next_doubling <- function(work, fit) {
  target <- work$goal$se
  if (work$goal$step == 0) work$goal$first <- length(work$plan$first)
  first <- work$goal$first
  times <- first * 2^work$goal$step
  doubt <- function(why) list(doubt = say("target_not_reached", fit$se, why))
  if (!has_trait(work$method, "any particles")) # what the default has chosen in the end
    return(doubt(paste0(work$method$name, "() has no particles to double")))
  all <- times * particles_of(work$problem)
  needed <- all * (fit$se / target)^2
  most <- min(DOUBLED_MOST, first * particles_of(work$problem) * 2^DOUBLINGS_MOST)
  if (is.na(fit$se)) return(doubt(paste0(work$method$name, "() states no standard error")))
  if (!is.finite(fit$se)) return(doubt("the error of the first runs is not known"))
  if (2 * all > most || needed > ROUGHLY * most)
    return(doubt(paste0("about ", count(signif(needed, 2)), " particles would be needed, more ",
                        "than ", count(most))))
  spent <- seconds_spent(work)
  if (work$goal$step == 0) tell_doublings(fit$se, target, all, needed, spent)
  # the next run takes as long as all before
  if (now() + spent > end_of_time(work))
    return(doubt(paste("the next run of", count(all), "particles does not fit in `time_limit`")))
  work$goal$step <- work$goal$step + 1
  list(more = list(grown(replace(work$problem, "replicate", list(length(work$plan$first))), times)))
}

tell_doublings <- function(se, target, all, needed, spent) {
  doublings <- ceiling(log2(needed / all))
  message(sprintf(paste("The standard error is %.2g, and %.2g is wanted: about %s of %s particles,",
                        "%s in all."), se, target, count_of(doublings, "doubling"), count(all),
                  format_seconds(spent * 2^doublings)))
}
