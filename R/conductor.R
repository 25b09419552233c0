# The conductor: a plain list that says what is to be run and how far each run is.  It can be saved
# between any two slices of work and continued from there, whatever the number of replicates, and
# whether first or second runs were under way.
#
# A job is a list: its `problem`; once it has begun, its `state`; at its end, its `result` instead,
# and, if so asked, the state before its rows were declared complete (`open`), to which rows can
# be added.  A plan has the `first` jobs, one for each replicate, and, once these are done,
# `second`: for each of them the job that challenge() asks for, or NULL.

#' Work on a plan until it is done, or until `stop()` says so
#'
#' @param together How many runs are under way at the same time, each with one thread; a run alone
#'   has `threads`.
#' @param feed A function of a job: how it is given its rows.
#' @param watch As in conduct_jobs(), but with functions that save the plan.
#' @return The plan; is_done() says whether anything is left.
#' @noRd
work_on <- function(plan, rows, together = 1, threads = 1, show = function(done, rows, report) NULL,
                    feed = function(job) "last", stop = function() FALSE, watch = NULL,
                    keep_open = 0) {
  # a second run is not the continuation of a stream
  in_memory <- !is.environment(rows) && feed(plan$first[[1]]) != "open"
  stopped <- FALSE
  ask <- function() {
    stopped <<- stopped || stop()
    stopped
  }
  for (round in c("first", "second")) {
    if (round == "second" && is.null(plan$second))
      plan$second <- lapply(plan$first, second_job)
    open <- which(vapply(plan[[round]], is_open, NA))
    if (round == "second" && is.environment(rows)) {
      # of rows that are no longer in memory no run can start again
      rows <- kept_rows(rows)
      if (is.null(rows)) break
    }
    for (group in groups_of(open, together)) {
      own <- if (length(group) > 1) 1 else threads
      plan[[round]][group] <- lapply(plan[[round]][group], with_threads, own)
      share <- share_of_plan(plan, round, group, show)
      within <- function(save) function() {
        plan[[round]][group] <- save()
        plan
      }
      seen <- watch_plan(watch, within)
      work <- function(jobs) {
        how <- if (round == "second") "last" else feed(jobs[[1]])
        conduct_jobs(jobs, rows, how, if (length(jobs) == length(group)) seen,
                     if (round == "first" || in_memory) keep_open else 0, show = share, stop = ask,
                     side = max(threads, 1))
      }
      plan[[round]][group] <- if (round == "first") work(plan$first[group])
      else attempted(plan$second[group], work)
      if (stopped) return(plan)
    }
  }
  plan
}

watch_plan <- function(watch, within) {
  if (is.null(watch)) return(NULL)
  list(whole = function(save) watch$whole(within(save)),
       broken = function(save) watch$broken(within(save)))
}

is_done <- function(plan) {
  !is.null(plan$second) && !any(vapply(c(plan$first, plan$second), is_open, NA))
}

second_job <- function(job) {
  problem <- challenge(job$result, job$problem)
  if (!is.null(problem)) list(problem = problem)
}

# The share of all work that first runs are taken for, where second ones may follow.
FIRST_SHARE <- 0.8

first_share <- function(problem) if (has_setting(problem, "search")) FIRST_SHARE else 1

share_of_plan <- function(plan, round, group, show) {
  all <- length(plan[[round]])
  before <- group[1] - 1
  first <- min(vapply(plan$first, function(job) first_share(job$problem), 0))
  function(done, rows, report) {
    done <- (before + length(group) * done) / all
    show(if (round == "first") first * done else first + (1 - first) * done, rows, report)
  }
}

#' What the runs of a plan have reported, or what second runs have found to be better
#' @noRd
plan_results <- function(plan) {
  better <- function(job, second) better_run(job$result, second$result, job$problem)
  Map(better, plan$first, second_jobs(plan))
}

# There are none yet if the work was stopped when the first ones ended.
second_jobs <- function(plan)
  if (is.null(plan$second)) vector("list", length(plan$first)) else plan$second

#' The jobs that these results come from
#' @noRd
better_jobs <- function(plan) {
  Map(function(job, second, result) {
    its <- !is.null(second$open) && identical(result$draws, second$result$draws)
    if (its) second else job
  }, plan$first, second_jobs(plan), plan_results(plan))
}
