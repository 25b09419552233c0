# evidence(target_se =): as many replicates as bring the standard error to a target.
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

check_target <- function(target, options, data) {
  check_positive(target, "target_se")
  if (!is.null(options$checkpoint) || !is.null(options$time_limit))
    fail("`target_se` cannot be combined with `checkpoint` or `time_limit`: give `replicates`.")
  if (is_source(data) && !data$rewinds)
    fail("`target_se` needs a source that can be read again from the start: give `replicates`, ",
         "which share one pass.")
}

#' Run replicates until the standard error should be reached, and fit all of them
#' @noRd
reach_target <- function(work, options, target, data) {
  began <- now()
  # runs are added to the plan, so the state of a stream would be one of some of them only
  options$keep_state <- FALSE
  fit <- muffled(run_work(work, options))
  if (!isTRUE(fit$se > target) && is.finite(fit$se)) return(raise_warnings(fit))
  if (nrow_of(fit) < TARGET_FIRST && can_repeat(work) && !is.na(fit$se)) {
    each <- (now() - began) / nrow_of(fit)
    tell_cost(TARGET_FIRST, each, fit$se, target, "for a forecast")
    fit <- with_more(work, options, TARGET_FIRST, data)
  }
  if (isTRUE(fit$se <= target)) return(raise_warnings(fit))
  if (is.na(fit$se)) return(raise_warnings(unreachable(fit, work, NA, target)))
  needed <- replicates_needed(fit, target)
  each <- (now() - began) / nrow_of(fit)
  if (!can_repeat(work) || is.na(needed) || needed > TARGET_MOST)
    return(raise_warnings(unreachable(fit, work, needed, target)))
  tell_cost(needed, each, fit$se, target, "in all")
  fit <- with_more(work, options, needed, data)
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
with_more <- function(work, options, n, data) {
  have <- length(work$plan$first)
  problems <- lapply(have:(n - 1), function(r) replace(work$problem, "replicate", list(r)))
  groups <- if (is_stream(work)) split(problems, (seq_along(problems) - 1) %/% TARGET_PASS)
  else list(problems)
  for (some in groups) {
    part <- new.env(parent = emptyenv())
    for (name in ls(work)) assign(name, get(name, work), part)
    part$plan <- new_plan(some)
    if (is_stream(work)) part$feed <- open_feed(work$model, data, work$keep)
    run_part(part, options)
    work$plan$first <- c(work$plan$first, part$plan$first)
    work$plan$second <- c(work$plan$second, part$plan$second)
    if (is_stream(work)) {
      check_same_rows(print_of(work$feed), print_of(part$feed))
      # the rows that were kept, for the checks of the whole fit
      work$feed <- part$feed
    }
  }
  work$replicates <- n
  with_own_generator(work, muffled(finished_fit(work)))
}

run_part <- function(part, options) {
  part$options <- options
  part$guarded <- FALSE
  part$started <- now()
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
