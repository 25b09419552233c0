# evidence(target_se =): as many replicates as bring the standard error to a target, or runs of
# which each doubles the number of particles.
#
# The number of further replicates is fixed once, from the error of the first ones, and the mean is
# taken over all. A rule that looks at the estimate after every replicate would stop where the
# estimates happen to agree.

# Most replicates; and how many more than the forecast are run, because the forecast is uncertain.
TARGET_MOST <- 1000
TARGET_MARGIN <- 1.3
# The spread of this many runs is a first forecast of the error of further ones.
TARGET_FIRST <- 4
# Replicates of a stream that share one pass.
TARGET_PASS <- 16

check_target <- function(target, options, data, doubling) {
  check_positive(target, "target_se")
  if (!is.null(options$checkpoint) || !doubling && !is.null(options$time_limit))
    fail("`target_se` cannot be combined with `checkpoint`", if (!doubling) " or `time_limit`",
         ": give `replicates`", if (!doubling) ", or use `doubling` with `time_limit`", ".")
  if (is_source(data) && !data$rewinds)
    fail("`target_se` needs a source that can be read again from the start: give `replicates`, ",
         "which share one pass.")
}

#' Run replicates until the standard error should be reached, and fit all of them
#'
#' @param fit The fit of the first runs, from run_work().
#' @noRd
reach_target <- function(work, options, target, data, fit = muffled(run_work(work, options))) {
  began <- now()
  # runs are added to the plan, so the state of a stream would be one of some of them only
  options$keep_state <- FALSE
  force(fit)
  if (!isTRUE(fit$se > target) && is.finite(fit$se)) return(raise_warnings(fit))
  if (nrow_of(fit) < TARGET_FIRST && can_repeat(work) && !is.na(fit$se)) {
    each <- (now() - began) / nrow_of(fit)
    tell_cost(TARGET_FIRST, each, fit$se, target, "for a forecast")
    fit <- with_replicates(work, options, TARGET_FIRST, data)
  }
  if (isTRUE(fit$se <= target)) return(raise_warnings(fit))
  if (is.na(fit$se)) return(raise_warnings(unreachable(fit, work, NA, target)))
  needed <- replicates_needed(fit, target)
  each <- (now() - began) / nrow_of(fit)
  if (!can_repeat(work) || is.na(needed) || needed > TARGET_MOST)
    return(raise_warnings(unreachable(fit, work, needed, target)))
  tell_cost(needed, each, fit$se, target, "in all")
  fit <- with_replicates(work, options, needed, data)
  if (!isTRUE(fit$se <= target)) fit <- missed(fit, target)
  raise_warnings(fit)
}

nrow_of <- function(fit) if (is.null(fit$replicates)) 1 else nrow(fit$replicates)

# exact() and its like give the same result each time.
can_repeat <- function(work) !has_trait(work$method, "repeats")

replicates_needed <- function(fit, target) {
  if (!is.finite(fit$se)) return(NA_real_)
  ceiling(TARGET_MARGIN * nrow_of(fit) * (fit$se / target)^2)
}

tell_cost <- function(runs, each, se, target, why) {
  message(sprintf("The standard error is %.2g, and %.2g is wanted: %s runs %s, about %s.", se,
                  target, count(runs), why, format_seconds(runs * each)))
}

#' The fit of the first `n` replicates, of which the work has some already
#' @noRd
with_replicates <- function(work, options, n, data) {
  more <- lapply(length(work$plan$first):(n - 1), function(r)
    replace(work$problem, "replicate", list(r)))
  with_more(work, options, more, data)
  fit_of_all(work)
}

#' Run further problems, and add them to the plan of a work
#'
#' @return Whether all of them have ended before the limit of time; if not, none is added.
#' @noRd
with_more <- function(work, options, problems, data) {
  groups <- if (is_stream(work)) split(problems, (seq_along(problems) - 1) %/% TARGET_PASS)
  else list(problems)
  for (some in groups) {
    part <- new.env(parent = emptyenv())
    for (name in ls(work)) assign(name, get(name, work), part)
    part$plan <- new_plan(some)
    if (is_stream(work)) part$feed <- open_feed(work$model, data, work$keep)
    run_part(part, options, work)
    if (!is_finished(part)) return(FALSE)
    work$plan$first <- c(work$plan$first, part$plan$first)
    work$plan$second <- c(work$plan$second, part$plan$second)
    if (is_stream(work)) {
      check_same_rows(print_of(work$feed), print_of(part$feed))
      # the rows that were kept, for the checks of the whole fit
      work$feed <- part$feed
    }
  }
  TRUE
}

fit_of_all <- function(work) {
  work$replicates <- length(work$plan$first)
  with_own_generator(work, muffled(finished_fit(work)))
}

run_part <- function(part, options, work) {
  part$options <- options
  part$guarded <- FALSE
  # a limit of time is that of the whole call
  part$started <- work$started
  on.exit(if (is_stream(part)) close_feed(part$feed))
  n <- if (is_stream(part)) part$total else part$encoded$n
  display <- new_display(options$progress, options$on_chunk, n, is_stream(part),
                         takes_blocks(part$method), first_share(part$problem))
  on.exit(display$close(), add = TRUE)
  with_own_generator(part, advance_plan(part, display))
}

# Models of R functions draw from R's generator: other numbers for the further replicates.
with_own_generator <- function(work, code) {
  if (!asks_r(work$model)) return(code)
  restore <- own_generator(next_seed(work$words, length(work$plan$first)), keep = !work$seeded)
  on.exit(restore())
  code
}

unreachable <- function(fit, work, needed, target) {
  why <- if (is.na(fit$se)) paste0(work$method$name, "() states no standard error")
  else if (!can_repeat(work)) paste0(work$method$name, "() gives the same result each time")
  else if (is.na(needed)) "the error of the first runs is not known"
  else paste0("about ", count(needed), " runs would be needed, more than ", count(TARGET_MOST))
  with_doubts(fit, say("target_not_reached", target, why))
}

missed <- function(fit, target) with_doubts(fit, say("target_missed", fit$se, target))

# Doubling ----------------------------------------------------------------------------------------

# Most doublings, and most particles of all runs; and how far the first forecast of their number may
# be off.
DOUBLINGS_MOST <- 10
DOUBLED_MOST <- 1e6
ROUGHLY <- 4

check_doubling <- function(method, options) {
  if (!is.null(options$cl)) fail("`cl` cannot be used with `doubling`: leave `doubling` out.")
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

#' Add runs with as many particles as all before have together, until the standard error is reached
#'
#' The estimate is the mean of those of the runs, weighted by their numbers of particles.
#' @noRd
reach_by_doubling <- function(work, options, target, data) {
  began <- now()
  check_doubling(work$method, options)
  options$keep_state <- FALSE
  fit <- muffled(run_work(work, options))
  if (inherits(fit, "incomplete_evidence")) return(fit)
  first <- length(work$plan$first)
  times <- first
  said <- FALSE
  for (doubled in 0:DOUBLINGS_MOST) {
    if (isTRUE(fit$se <= target)) return(raise_warnings(fit))
    if (!has_trait(work$method, "any particles")) # what the default has chosen in the end
      return(raise_warnings(with_doubts(fit, say("target_not_reached", fit$se, paste0(
        work$method$name, "() has no particles to double")))))
    all <- times * particles_of(work$problem)
    needed <- all * (fit$se / target)^2
    most <- min(DOUBLED_MOST, first * particles_of(work$problem) * 2^DOUBLINGS_MOST)
    stopped <- if (is.na(fit$se)) paste0(work$method$name, "() states no standard error")
    else if (!is.finite(fit$se)) "the error of the first runs is not known"
    else if (2 * all > most || needed > ROUGHLY * most)
      paste0("about ", count(signif(needed, 2)), " particles would be needed, more than ",
             count(most))
    spent <- now() - began
    if (is.null(stopped)) {
      # the next run takes as long as all before
      in_time <- is.null(options$time_limit) || 2 * spent <= options$time_limit
      if (!said) tell_doublings(fit$se, target, all, needed, spent)
      said <- TRUE
      more <- list(grown(replace(work$problem, "replicate", list(length(work$plan$first))), times))
      if (in_time && with_more(work, options, more, data)) fit <- fit_of_all(work)
      else stopped <- paste("the next run of", count(all), "particles does not fit in `time_limit`")
    }
    if (!is.null(stopped))
      return(raise_warnings(with_doubts(fit, say("target_not_reached", fit$se, stopped))))
    times <- 2 * times
  }
}

tell_doublings <- function(se, target, all, needed, spent) {
  doublings <- ceiling(log2(needed / all))
  message(sprintf(paste("The standard error is %.2g, and %.2g is wanted: about %s of %s particles,",
                        "%s in all."), se, target, count_of(doublings, "doubling"), count(all),
                  format_seconds(spent * 2^doublings)))
}
