# The conductor: a plain list that says what is to be run and how far each run is.  It can be saved
# between any two slices of work and continued from there, whatever the number of replicates, and
# whether first or second runs were under way.
#
# A job is a list: its `problem`; once it has begun, its `state`; at its end, its `result` instead.
# A plan has the `first` jobs, one for each replicate, and, once these are done, `second`: for each
# of them the job that challenge() asks for, or NULL.

#' @noRd
new_plan <- function(problems) {
  list(first = lapply(problems, function(problem) list(problem = problem)), second = NULL)
}

#' Work on jobs until all have a result, or until `stop()` says so
#'
#' @param rows A matrix with an observation in each column, or a feed (R/source.R).  All runs that
#'   are under way get the same blocks of a feed.
#' @param show A function of the share of the work that is done and the number of rows walked.
#' @param feed "last": the run copies the rows. "own": it may put them in another order instead.
#'   "mixed": they are in the random order that the run would make.
#' @param stop Called after each slice of work; when `TRUE`, unfinished jobs come back with their
#'   states.
#' @return The jobs.
#' @noRd
conduct_jobs <- function(jobs, rows, show = function(done, rows) NULL, feed = "last",
                         stop = function() FALSE) {
  open <- which(vapply(jobs, function(job) is.null(job$result), NA))
  runs <- list()
  on.exit(for (run in runs) .Call(ffi_run_free, run))
  for (k in open) runs <- c(runs, list(begin_job(jobs[[k]], rows, feed)))
  going <- rep(TRUE, length(runs))
  ready <- going
  again <- stopped <- FALSE
  while (any(going) && !stopped) {
    if (!any(ready)) {
      if (again) rewind_feed(rows)
      feed_block(runs[going], rows)
      ready <- going
      again <- FALSE
    }
    answers <- .Call(ffi_run_advance, runs[ready], if (sum(ready) > 1) SLICE_TOGETHER else SLICE)
    going[ready] <- answers != "done"
    again <- again || any(answers == "again")
    ready[ready] <- answers == "more"
    progress <- rowMeans(vapply(runs, function(run) .Call(ffi_run_progress, run), numeric(2)))
    show(progress[2], progress[1])
    stopped <- stop()
  }
  for (i in seq_along(open)) {
    job <- jobs[[open[i]]]
    jobs[[open[i]]] <- if (!going[i]) list(problem = job$problem, result = run_result(runs[[i]]))
    else list(problem = job$problem, state = .Call(ffi_run_save, runs[[i]]))
  }
  jobs
}

# When there are no more rows, an estimate from a part of them must not be reported as one from all.
feed_block <- function(runs, feed) {
  if (!is.environment(feed) || is.null(feed$waiting))
    fail("A run needs more rows than the data have.")
  block <- pull(feed)
  for (run in runs) .Call(ffi_run_feed, run, block$rows, if (block$last) "last" else "some")
}

# A state holds its rows.
begin_job <- function(job, rows, feed) {
  run <- .Call(ffi_run_new, replace(job$problem, "restore", list(!is.null(job$state))))
  if (!is.null(job$state)) .Call(ffi_run_restore, run, job$state)
  else if (!is.environment(rows)) .Call(ffi_run_feed, run, rows, feed)
  run
}

with_threads <- function(job, threads) {
  job$problem$threads <- threads
  job
}

is_open <- function(job) !is.null(job) && is.null(job$result) && is.null(job$failed)

#' Work on a plan until it is done, or until `stop()` says so
#'
#' @param together How many runs work at the same time, each with one thread; a run alone has
#'   `threads`.
#' @param feed A function of a job: how it is given its rows.
#' @return The plan; is_done() says whether anything is left.
#' @noRd
work_on <- function(plan, rows, together = 1, threads = 1, show = function(done, rows) NULL,
                    feed = function(job) "last", stop = function() FALSE) {
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
    for (group in split(open, (seq_along(open) - 1) %/% together)) {
      own <- if (length(group) > 1) 1 else threads
      plan[[round]][group] <- lapply(plan[[round]][group], with_threads, own)
      share <- share_of_plan(plan, round, group, show)
      work <- function(jobs) conduct_jobs(jobs, rows, share, feed(jobs[[1]]), ask)
      plan[[round]][group] <- if (round == "first") work(plan$first[group])
      else attempted(plan$second[group], work)
      if (stopped) return(plan)
    }
  }
  plan
}

is_done <- function(plan) {
  !is.null(plan$second) && !any(vapply(c(plan$first, plan$second), is_open, NA))
}

second_job <- function(job) {
  problem <- challenge(job$result, job$problem)
  if (!is.null(problem)) list(problem = problem)
}

# A second run that fails leaves the first as it is: of several which, only each alone can tell.
attempted <- function(jobs, work) {
  alone <- function(e) {
    if (length(jobs) > 1) lapply(jobs, function(job) attempted(list(job), work)[[1]])
    else list(list(problem = jobs[[1]]$problem, failed = conditionMessage(e)))
  }
  tryCatch(work(jobs), logevidence_error = alone)
}

# First runs are most of the work, and second ones rare.
share_of_plan <- function(plan, round, group, show) {
  all <- length(plan[[round]])
  before <- group[1] - 1
  function(done, rows) {
    show(if (round == "first") (before + length(group) * done) / all else 1, rows)
  }
}

#' What the runs of a plan have reported, or what second runs have found to be better
#' @noRd
plan_results <- function(plan) {
  better <- function(job, second) better_run(job$result, second$result, job$problem)
  Map(better, plan$first, plan$second)
}
