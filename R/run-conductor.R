# The conductor: a plain list that says what is to be run and how far each run is.  It can be saved
# between any two slices of work and continued from there, whatever the number of replicates, and
# whether first or second runs were under way.
#
# A job is a list: its `problem`; once it has begun, its `state`; at its end, its `result` instead,
# and, if so asked, the state before its rows were declared complete (`open`), to which rows can
# be added.  A plan has the `first` jobs, one for each replicate, and, once these are done,
# `second`: for each of them the job that second_problem() asks for, or NULL.

#' Work on a plan until it is done, until `stop()` says so, or until a time
#'
#' @param together How many runs are under way at the same time, each with one thread; a run alone
#'   has `threads`.
#' @param rows A matrix with an observation in each column, or rows of R/rows-contract.R.
#' @param feed A function of a job: how it is given rows in memory (memory_rows()).
#' @param watch As in conduct_jobs(), but with functions that save the plan.
#' @param until As in conduct_teams().
#' @param cl NULL or a cluster, whose workers do the jobs if there are several.
#' @param words The seed if jobs draw from R's generator, which then begins anew for each job but
#'   the first; or NULL.
#' @return The plan; is_done() says whether anything is left.
#' @noRd
work_on <- function(plan, rows, together = 1, threads = 1, show = function(done, rows, report) NULL,
                    feed = function(job) "last", stop = function() FALSE, watch = NULL,
                    keep_open = 0, cl = NULL, words = NULL, until = Inf) {
  # a second run is not the continuation of a stream
  in_memory <- !can_give(as_rows(rows, feed(plan$first[[1]])), "blocks")
  stopped <- FALSE
  ask <- function() {
    stopped <<- stopped || now() >= until || stop()
    stopped
  }
  for (round in c("first", "second")) {
    if (round == "second" && is.null(plan$second))
      plan$second <- lapply(plan$first, second_job)
    open <- which(vapply(plan[[round]], is_open, NA))
    if (round == "second" && !is.matrix(rows)) {
      # of rows that are no longer in memory no run can start again
      rows <- rows$whole()
      if (is.null(rows)) break
    }
    if (!is.null(cl) && length(open) > 1) {
      plan <- work_elsewhere(cl, plan, round, open, rows, threads, show, feed, ask, watch,
                             if (round == "first" || in_memory) keep_open else 0, words)
      if (stopped) return(plan)
      next
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
        restore <- generator_of_job(jobs[[1]], round, words)
        on.exit(restore())
        conduct_jobs(jobs, as_rows(rows, how), if (length(jobs) == length(group)) seen,
                     if (round == "first" || in_memory) keep_open else 0, show = share, stop = ask,
                     side = max(threads, 1), until = until)
      }
      plan[[round]][group] <- if (round == "first") work(plan$first[group])
      else attempted(plan$second[group], work)
      if (stopped) return(plan)
    }
  }
  plan
}

# A job that draws from R's generator has a state of its own there, so that it does not matter which
# jobs were done before it, or where. The first one goes on with that of the call.
generator_of_job <- function(job, round, words, elsewhere = FALSE) {
  r <- job$problem$replicate
  if (is.null(words) || !is.null(job$state)) return(function() NULL)
  if (round == "first" && r == 0) return(own_generator(words, keep = !elsewhere))
  generator_after(words, 1 + 2 * r + (round == "second"))
}

# Seeds beyond those of other streams.
GENERATORS <- 1e6
generator_after <- function(words, i) own_generator(next_seed(words, GENERATORS + i), keep = FALSE)

#' The open jobs of a round on the workers of a cluster
#' @noRd
work_elsewhere <- function(cl, plan, round, open, rows, threads, show, feed, stop, watch, keep_open,
                           words) {
  tasks <- lapply(plan[[round]][open], task_of_job, round, threads, feed, keep_open, words)
  share <- share_of_plan(plan, round, open, show)
  done <- 0
  each <- function(i, value) {
    if (inherits(value, "condition")) {
      if (round == "first" || !inherits(value, "logevidence_error")) base::stop(value)
      value <- list(failed = conditionMessage(value))
    }
    job <- plan[[round]][[open[i]]]
    plan[[round]][[open[i]]] <<- c(job["problem"], value)
    done <<- done + 1
    share(done / length(open), 0, function() NULL)
    if (!is.null(watch)) watch$whole(function() plan)
  }
  on_workers(cl, "job_of_task", paste("replicate", open), function(i) tasks[[i]], each,
             is_job_done, list(rows), stop = stop)
  plan
}

#' Run each problem on all rows, here or on the workers of a cluster
#'
#' @param words As for work_on(): here also the first one has a state of R's generator of its own.
#' @param show A function of the share that is done.
#' @return The results.
#' @noRd
conduct_each <- function(problems, rows, cl, words, show) {
  n <- length(problems)
  make <- function(i) list(problem = problems[[i]], words = words, i = i)
  if (!is.null(cl))
    return(each_task(cl, "result_of_task", paste("run", seq_len(n)), make, rows, show,
                     function(value, task) is_run_report(value)))
  lapply(seq_len(n), function(i)
    result_of_task(make(i), rows, function(done, rows, report) show((i - 1 + done) / n)))
}

result_of_task <- function(task, rows, show = function(done, rows, report) NULL) {
  if (!is.null(task$words)) {
    restore <- generator_after(task$words, task$i)
    on.exit(restore())
  }
  began <- cpu_seconds()
  c(conduct(task$problem, rows, show), list(cpu = cpu_seconds() - began))
}

task_of_job <- function(job, round, threads, feed, keep_open, words)
  list(job = with_threads(job, threads), round = round, keep_open = keep_open, words = words,
       feed = if (round == "second") "last" else feed(job))

# Runs on a worker.
job_of_task <- function(task, rows) {
  restore <- generator_of_job(task$job, task$round, task$words, TRUE)
  on.exit(restore())
  job <- conduct_jobs(list(task$job), as_rows(rows, task$feed), keep_open = task$keep_open)[[1]]
  job[intersect(names(job), c("result", "open"))]
}

#' Is this what job_of_task() returns?
#' @noRd
is_job_done <- function(value, task)
  is.list(value) && !is.object(value) && is_run_report(value[["result"]]) &&
    length(setdiff(names(value), c("result", "open"))) == 0 &&
    (is.null(value[["open"]]) || is.raw(value[["open"]]))

watch_plan <- function(watch, within) {
  if (is.null(watch)) return(NULL)
  list(whole = function(save) watch$whole(within(save)),
       broken = function(save) watch$broken(within(save)))
}

is_done <- function(plan) {
  !is.null(plan$second) && !any(vapply(c(plan$first, plan$second), is_open, NA))
}

second_job <- function(job) {
  problem <- second_problem(job$result, job$problem)
  if (!is.null(problem)) list(problem = problem)
}

# The share of all work that first runs are taken for, where second ones may follow.
FIRST_SHARE <- 0.8
SECOND_BEGUN <- 0.01 # of the share of the second run

first_share <- function(problem) if (has_setting(problem, "search")) FIRST_SHARE else 1

share_of_plan <- function(plan, round, group, show) {
  all <- length(plan[[round]])
  before <- group[1] - 1
  first <- min(vapply(plan$first, function(job) first_share(job$problem), 0))
  function(done, rows, report) {
    done <- (before + length(group) * done) / all
    show(if (round == "first") first * done else first + (1 - first) * max(done, SECOND_BEGUN),
         rows, report)
  }
}

#' What the runs of a plan have reported, or what second runs have found to be better
#' @noRd
plan_results <- function(plan) {
  second <- second_jobs(plan)
  lapply(seq_along(plan$first), function(i) {
    job <- plan$first[[i]]
    better_run(job$result, second[[i]]$result, job$problem)
  })
}

# There are none yet if the work was stopped when the first ones ended.
second_jobs <- function(plan)
  if (is.null(plan$second)) vector("list", length(plan$first)) else plan$second

#' The jobs that these results come from
#' @noRd
better_jobs <- function(plan) {
  if (!any(lengths(plan$second))) return(plan$first)
  Map(function(job, second, result) {
    its <- !is.null(second$open) && identical(result$draws, second$result$draws)
    if (its) second else job
  }, plan$first, second_jobs(plan), plan_results(plan))
}
