# The driver: all runs of C go on here, one slice of work at a time, alone or several on the same
# rows. What a job and a plan are is said in R/run-conductor.R.

new_plan <- function(problems) {
  list(first = lapply(problems, function(problem) list(problem = problem)), second = NULL)
}

#' Run a problem on all rows
#'
#' @param rows A matrix with an observation in each column, or rows of R/rows-contract.R.
#' @param show A function of the share of the work that is done and the number of rows processed.
#' @return What the estimator reports, a list.
#' @noRd
conduct <- function(problem, rows, show = function(done, rows, report) NULL) {
  conduct_together(list(problem), rows, show)[[1]]
}

#' Run several problems on the same rows at the same time, each in its own thread
#' @noRd
conduct_together <- function(problems, rows, show = function(done, rows, report) NULL,
                             feed = "last") {
  lapply(conduct_jobs(new_plan(problems)$first, as_rows(rows, feed), show = show), `[[`, "result")
}

#' Work on jobs until all have a result, or until `stop()` says so
#'
#' @param ... `rows`, `watch` and `keep_open` of new_team().
#' @param show Called after each slice of work with the share of the work that is done, the number
#'   of rows walked, and a function that reports on the first run.
#' @param stop Called after each slice of work; when `TRUE`, unfinished jobs come back with their
#'   states.
#' @param side How many runs may work at the same time.
#' @param until As in conduct_teams().
#' @return The jobs.
#' @noRd
conduct_jobs <- function(jobs, ..., show = function(done, rows, report) NULL,
                         stop = function() FALSE, side = Inf, until = Inf) {
  conduct_teams(list(new_team(jobs, ...)), show, stop, side, until = until)[[1]]
}

#' Jobs on the same rows
#'
#' @param rows Rows of R/rows-contract.R. All runs that are under way get the same blocks.
#' @param watch NULL, or a list of functions that are called with a function that saves the jobs:
#'   `whole` after each slice, and `broken` if the next rows cannot be read.
#' @param keep_open Most bytes of the `open` state of a job; 0 for none.
#' @noRd
new_team <- function(jobs, rows, watch = NULL, keep_open = 0) {
  team <- list2env(list(jobs = jobs, rows = rows, watch = watch, keep_open = keep_open),
                   parent = emptyenv())
  team$at <- which(vapply(jobs, function(job) is.null(job$result), NA))
  team$going <- team$ready <- team$asks <- rep(FALSE, length(team$at))
  team
}

# Has any run of these teams this state?
any_of <- function(teams, what) {
  for (team in teams) if (any(team[[what]])) return(TRUE)
  FALSE
}

#' Work on several teams, whose feeds give blocks at the same time
#'
#' @param report What `show` gets as a report, a function of the teams.
#' @param guard A function of a team and of what is done for it. It may catch an error and end the
#'   team; without it, an error ends all.
#' @param look Called when all teams wait for rows, before they are given some.
#' @param until The time, by now(), from which on `stop()` is `TRUE`. A phase that is under way then
#'   is undone, but not the first one of a run, so that a run that is resumed often comes to its
#'   end, too.
#' @return For each team, its jobs.
#' @noRd
conduct_teams <- function(teams, show = function(done, rows, report) NULL,
                          stop = function() FALSE, side = Inf, report = report_of_first,
                          guard = function(team, work) work, look = function(teams) NULL,
                          until = Inf) {
  on.exit(for (team in teams) end_team(team))
  for (team in teams) guard(team, begin_team(team))
  moved <- stopped <- FALSE
  repeat {
    going <- teams[vapply(teams, function(team) any(team$going), NA)]
    if (!length(going) || stopped) break
    if (!any_of(going, "ready")) {
      if (!any_of(going, "asks")) look(going)
      for (team in going) if (any(team$asks)) guard(team, answer_questions(team))
      for (team in last_of(going)) guard(team, give_rows(team))
      moved <- TRUE
    }
    for (team in going)
      if (any(team$ready))
        moved <- isTRUE(guard(team, advance_team(team, side, until))) || moved
    show_teams(going, show, report)
    stopped <- moved && stop()
  }
  lapply(teams, saved_jobs)
}

# The teams that wait for rows and have read the fewest: all, unless a resumed race has states of
# other times.
last_of <- function(teams) {
  teams <- Filter(function(team) any(team$going) && !any(team$ready), teams)
  at <- vapply(teams, function(team) team$rows$at(), 0)
  teams[at == min(at, Inf)]
}

begin_team <- function(team) {
  for (k in team$at)
    team$runs <- c(team$runs, list(begin_job(team$jobs[[k]], team$rows, k)))
  team$going <- team$ready <- rep(TRUE, length(team$runs))
}

end_team <- function(team) {
  for (run in team$runs) .Call(ffi_run_free, run)
  team$runs <- NULL
  team$going <- team$ready <- team$asks <- rep(FALSE, length(team$at))
}

#' One slice of work of the runs that do not wait for rows
#' @return Whether any has worked: one that was restored may only have said that it waits for rows.
#' @noRd
advance_team <- function(team, side, until) {
  ready <- team$ready
  answers <- advance_runs(team$runs[ready], side, until)
  team$going[ready] <- answers != "done"
  team$asks[ready] <- answers == "question"
  team$ready[ready] <- answers == "more"
  collect_results(team, if (length(team$rows$can)) 0 else team$keep_open)
  if (!is.null(team$watch)) team$watch$whole(function() saved_jobs(team))
  any(answers != "rows")
}

report_of_first <- function(teams) report_of(teams[[1]]$runs[[1]])

show_teams <- function(teams, show, report) {
  sum <- n <- 0
  for (team in teams) for (run in team$runs) {
    sum <- sum + .Call(ffi_run_progress, run)
    n <- n + 1
  }
  if (n > 0) {
    begun <- function() report(Filter(function(team) length(team$runs) > 0, teams))
    show(sum[2] / n, sum[1] / n, begun)
  }
}

# What split() would return, which is slow for a few elements.
groups_of <- function(x, most) {
  if (length(x) <= most) return(if (length(x)) list(x))
  lapply(seq(1, length(x), by = most), function(from) x[from:min(from + most - 1, length(x))])
}

# Not more runs at the same time than there are threads.
advance_runs <- function(runs, side, until) {
  answers <- lapply(groups_of(runs, side), function(some)
    .Call(ffi_run_advance, some, if (length(some) > 1) SLICE_TOGETHER else SLICE, until - now()))
  unlist(answers, use.names = FALSE)
}

# Runs that have ended report at once: a saved plan then need not ask them again. Runs that had all
# their rows from the start are made ready for further ones, if their states are wanted.
collect_results <- function(team, keep_open) {
  for (i in which(!team$going)) {
    k <- team$at[i]
    if (!is.null(team$jobs[[k]]$result)) next
    team$jobs[[k]]$state <- NULL
    team$jobs[[k]]$result <- run_result(team$runs[[i]])
    if (keep_open > 0) team$jobs[[k]]$open <- reopened_state(team$runs[[i]], keep_open)
  }
}

saved_jobs <- function(team) {
  jobs <- team$jobs
  for (i in which(team$going)) jobs[[team$at[i]]]$state <- .Call(ffi_run_save, team$runs[[i]])
  jobs
}

# When there are no more rows, an estimate from a part of them must not be reported as one from all.
give_rows <- function(team) {
  first_pass <- !team$rows$passed()
  block <- block_or_save(team)
  if (block$last && first_pass && team$keep_open > 0) keep_open_states(team)
  for (run in team$runs[team$going])
    .Call(ffi_run_feed, run, block$rows, if (block$last) "last" else "some")
  team$ready <- team$going
}

#' All questions of a moment together; where the rows have no answers, a further pass through them
#' gives these
#' @noRd
answer_questions <- function(team) {
  if (!can_give(team$rows, "answers")) return(begin_pass(team))
  questions <- vector("list", length(team$jobs))
  for (i in which(team$asks)) questions[[team$at[i]]] <- .Call(ffi_run_question, team$runs[[i]])
  answers <- team$rows$answer(questions)
  for (i in which(team$asks)) {
    k <- team$at[i]
    .Call(ffi_run_answer, team$runs[[i]], questions[[k]]$what, answers[[k]])
  }
  team$ready <- team$asks
  team$asks[] <- FALSE
}

# A pass through the rows answers the question of a run. The rows of the pass before are forgotten,
# so the states must be newer than these.
begin_pass <- function(team) {
  if (!is.null(team$watch)) team$watch$broken(function() saved_jobs(team))
  team$rows$again()
  team$asks[] <- FALSE
}

# All runs wait for rows, so their states are whole if reading fails.
block_or_save <- function(team) {
  good <- FALSE
  on.exit(if (!good && !is.null(team$watch)) team$watch$broken(function() saved_jobs(team)))
  block <- team$rows$more()
  good <- TRUE
  block
}

# Either all runs keep their states or none does.
keep_open_states <- function(team) {
  if (!all(team$going)) return(invisible())
  states <- list()
  for (run in team$runs) {
    states <- c(states, list(.Call(ffi_run_save, run)))
    if (length(states[[1]]) > team$keep_open) return(invisible())
  }
  for (i in seq_along(states)) team$jobs[[team$at[i]]]$open <- states[[i]]
}

# Methods that cannot go on have no such state.
reopened_state <- function(run, most) {
  state <- or_null({
    .Call(ffi_run_reopen, run)
    .Call(ffi_run_save, run)
  })
  if (length(state) <= most) state
}

#' @param rows Rows of R/rows-contract.R, or NULL for a state that is only looked at.
#' @param k The number of the job among those on these rows.
#' @noRd
begin_job <- function(job, rows, k = 1) {
  run <- .Call(ffi_run_new, replace(job$problem, "restore", list(!is.null(job$state))))
  if (is.null(job$state)) rows$begin(run, k)
  else {
    .Call(ffi_run_restore, run, job$state)
    if (!is.null(rows)) rows$restored(run)
  }
  run
}

with_threads <- function(job, threads) {
  job$problem$threads <- threads
  job
}

is_open <- function(job) !is.null(job) && is.null(job$result) && is.null(job$failed)

# A second run that fails leaves the first as it is: of several which, only each alone can tell.
attempted <- function(jobs, work) {
  alone <- function(e) {
    if (length(jobs) > 1) lapply(jobs, function(job) attempted(list(job), work)[[1]])
    else list(list(problem = jobs[[1]]$problem, failed = conditionMessage(e)))
  }
  tryCatch(work(jobs), logevidence_error = alone)
}
