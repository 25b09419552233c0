# The work of evidence(), update() and resume(): a plan of runs and all that is needed to go on with
# it, so that it can be stopped at any time, saved, and continued to the same bits.
#
# Work is an environment: what was asked for (`model`, `method`, ...), the data (`encoded`, and for
# a source a `feed`), and the `plan`. saved_work() makes a plain list of it that can be written to a
# file; work_from() is its inverse.
#
# A run whose phase is interrupted or fails cannot be saved any more, so guarded work takes a
# snapshot of its plan from time to time, with the position in the source. Rows that are pulled
# later are read again if the source can be read again. If not, they are kept until the next
# snapshot (`since` of a feed).

# A fit keeps a state for update() if it takes at most so many bytes.
STATE_MOST <- 20e6
# Time between two snapshots: so many times what a snapshot costs; and the most numbers that are
# kept between them.
SNAPSHOT_COST <- 50
SNAPSHOT_LEAST <- 0.2
SNAPSHOT_CELLS <- 5e6

# Largest size of the data (numbers) for runs at the same time. With larger data, copies need too
# much memory for the tenth of the time that they save.
SIDE_BY_SIDE <- 2e7

#' @param spec A list: `call`, `model`, `method`, `words` (the seed), `seeded` (whether the user
#'   gave one), `replicates`, `threads`, `keep`.
#' @param feeding How runs get their rows: "stream", "open", "mixed" or "last" (memory_rows()); or
#'   NULL, for rows in memory: then feeding_of() decides.
#' @param mixed Whether the rows in memory are in the random order of the run.
#' @param problem What new_problem() has made already.
#' @noRd
new_work <- function(spec, encoded, feed = NULL, feeding = NULL, mixed = FALSE,
                     problem = new_problem(spec$model, encoded, spec$method, spec$words,
                                           spec$threads)) {
  work <- list2env(spec, parent = emptyenv())
  work$encoded <- encoded
  work$feed <- feed
  if (is.null(feeding)) feeding <- feeding_of(work, mixed)
  work$feeding <- feeding
  work$elapsed <- 0
  problem <- recorded(problem, spec$method, encoded)
  # to a run that can be given further rows, the number of rows so far means nothing
  if (feeding == "open") problem$total <- 0
  if (is.null(feed) && goes_on(work))
    problem <- bounded(problem, feeding, nrow(encoded$rows))
  work$problem <- problem
  problems <- lapply(seq_len(spec$replicates),
                     function(r) replace(problem, "replicate", list(r - 1)))
  work$plan <- new_plan(problems)
  work
}

#' How runs on data in memory get their rows
#'
#' In their given order as a stream would give them, if the method can: then rows can be added
#' later. A single run that shuffles has its rows in its own random order already.
#' @noRd
feeding_of <- function(work, mixed) {
  encoded <- work$encoded
  open <- goes_on(work) && !has_setting(work$method, "shuffle") &&
    encoded$n <= condensed_rows(nrow(encoded$rows))
  if (open) "open" else if (mixed && isTRUE(encoded$own)) "mixed" else "last"
}

#' Can rows be added to a run?
#'
#' @param blocks Whether it has its rows in blocks, as those of a source: of groups in memory rows
#'   may be added to each.
#' @noRd
can_go_on <- function(model, method, blocks = FALSE)
  !is_latent(model) && !asks_r(model) && takes_blocks(method) &&
    (!needs_all(model) || blocks && takes_units(model))

# The same of a work, asked once: NULL in `goes_on` is not known yet.
goes_on <- function(work) {
  if (is.null(work$goes_on))
    work$goes_on <- can_go_on(work$model, work$method, is_stream(work))
  work$goes_on
}

#' The options of a call, apart from what decides the result
#'
#' @param begins Whether the call begins a run, and does not continue one.
#' @noRd
check_options <- function(progress, checkpoint, every, time_limit, on_chunk, keep_state,
                          begins = TRUE, cl = NULL) {
  if (!is.null(time_limit)) time_limit <- check_positive(time_limit, "time_limit")
  on_chunk <- check_on_chunk(on_chunk)
  options <- list(began = now(), progress = check_flag(progress, "progress"),
                  every = check_number(every, "every", 0), time_limit = time_limit,
                  on_chunk = on_chunk, cl = check_cluster(cl),
                  keep_state = if (!is.null(keep_state)) check_flag(keep_state, "keep_state"))
  # last, because it takes a lock, which the caller ends by close_checkpoint()
  if (!is.null(checkpoint)) options$checkpoint <- open_checkpoint(checkpoint, begins)
  options
}

# Running -----------------------------------------------------------------------------------------

#' Work until there is a fit, or an incomplete one
#'
#' @param options From check_options().
#' @param known Warnings that were raised before.
#' @noRd
run_work <- function(work, options, known = NULL) {
  force(work)
  on.exit(if (is_stream(work)) close_feed(work$feed))
  begin_work(work, options)
  check_same_run(work)
  fit <- function() with_generator_of(work, fit_of(work, known))
  if (!work$guarded) return(fit())
  tryCatch(fit(),
           interrupt = function(cnd) stopped_by(work, cnd),
           error = function(cnd) stopped_by(work, cnd))
}

CLUSTER_IN_MEMORY <-
  "`cl` is for rows in memory: use `collect = TRUE`, and no `keep` or `stop_at`."

#' @param race NULL, or the race that the work is a part of: then that is what is saved.
#' @noRd
begin_work <- function(work, options, race = NULL) {
  if (!is.null(options$cl) && is_stream(work)) fail(CLUSTER_IN_MEMORY)
  if (isTRUE(work$goal$doubling) && work$goal$step == 0) check_doubling(work$method)
  work$options <- options
  work$race <- race
  work$started <- now()
  work$guarded <- is_stream(work) || !is.null(options$checkpoint)
  # the plan as it is now is the first snapshot
  work$taken <- now()
  work$cost <- 0
}

# Models of R functions draw from R's generator, which is as before when the code has ended.
with_generator_of <- function(work, code) {
  if (!asks_r(work$model)) return(code)
  restore <- own_generator(work$words, keep = !work$seeded)
  on.exit(restore())
  if (!is.null(work$rng)) assign(".Random.seed", work$rng, globalenv())
  code
}

fit_of <- function(work, known) {
  options <- work$options
  display <- display_of(work)
  on.exit(display$close())
  if (!is.null(options$checkpoint)) write_first(work)
  fit <- fit_of_work(work, display)
  if (is.null(fit)) return(incomplete_fit(work, "the time limit"))
  # those of the call and of the calls that it continues, not of C alone
  fit$work[["seconds"]] <- work$elapsed + now() - options$began
  if (!is.null(options$on_chunk)) report_end(fit, options$on_chunk, now() - work$started)
  raise_warnings(fit, known)
}

display_of <- function(work)
  new_display(work$options$progress, work$options$on_chunk,
              if (!is_stream(work)) work$encoded$n else work$total, is_stream(work),
              takes_blocks(work$method), first_share(work$problem))

#' The fit of one work when its runs, and those that follow from them, have ended; NULL if the time
#' is over before
#'
#' When the time is over during runs that only make the error smaller, the others are the fit.
#' @noRd
fit_of_work <- function(work, display) {
  repeat {
    advance_plan(work, display)
    if (!is.null(work$options$checkpoint) && is.null(work$race)) write_work(work)
    ended <- is_finished(work)
    if (!ended) {
      if (!isTRUE(work$goal$step > 0)) return(NULL)
      fit <- finished_fit(work, without_open_runs(work$plan))
      return(with_doubts(fit, not_in_time(work)))
    }
    fit <- finished_fit(work)
    if (!is.null(other <- other_method(fit, work))) {
      begin_again(work, other)
      next
    }
    left <- next_for_goal(work, fit)
    if (is.null(left$more)) return(if (is.null(left$doubt)) fit else with_doubts(fit, left$doubt))
    if (!add_runs(work, left$more)) return(with_doubts(fit, not_in_time(work)))
  }
}

not_in_time <- function(work)
  say("target_not_reached", work$goal$se, "further runs do not fit in `time_limit`")

# Replicates of a stream that share one pass.
TARGET_PASS <- 16

#' Add runs to a work that has ended
#'
#' Runs of rows in memory are jobs of its plan. Those of a source have a pass of their own, and are
#' added if it ends in time.
#' @return Whether they were added.
#' @noRd
add_runs <- function(work, problems) {
  jobs <- new_plan(problems)$first
  if (!is_stream(work)) {
    work$plan$first <- c(work$plan$first, jobs)
    return(TRUE)
  }
  for (some in groups_of(jobs, TARGET_PASS)) {
    part <- list2env(as.list(work), parent = emptyenv())
    part$plan <- list(first = some, second = NULL)
    part$guarded <- FALSE
    part$feed <- open_feed(work$model, work$reads, work$keep)
    display <- display_of(part)
    tryCatch(advance_plan(part, display), finally = {
      display$close()
      close_feed(part$feed)
    })
    if (!is_finished(part)) return(FALSE)
    work$plan$first <- c(work$plan$first, part$plan$first)
    work$plan$second <- c(work$plan$second, part$plan$second)
    check_same_rows(print_of(work$feed), print_of(part$feed))
    # the rows that were kept, for the checks of the whole fit
    work$feed <- part$feed
  }
  TRUE
}

# The time of the jobs that are done, side by side.
seconds_of_jobs <- function(jobs)
  max(0, unlist(lapply(jobs, function(job)
    if (!is.null(job$result)) work_of(job$result)[["seconds"]])))

# What partitions() says where its chains have not mixed, so that its estimate means nothing.
NOT_MIXED <- c("no_partitions", "few_trips", "anchors_apart", "groups_apart",
               "slow_partitions")

#' The method that takes the place of that of a fit, or NULL
#'
#' It is that which was asked for, if partitions(), which the default has chosen, has not mixed; or
#' partitions(), if the default has chosen importance sampling around the modes and its weights are
#' uneven.
#' @noRd
other_method <- function(fit, work) {
  said <- names(.subset2(fit, "warnings"))
  asked <- work$method$asked
  if (!is.null(asked)) return(if (any(said %in% NOT_MIXED)) asked)
  if ("uneven" %in% said && !is_stream(work))
    method_if_uneven(work$model, work$method, work$encoded, work$words)
}

#' Work by another method, from its beginning
#' @noRd
begin_again <- function(work, method) {
  work$method <- method
  mixed <- work$replicates == 1 && has_setting(method, "shuffle")
  fresh <- new_work(as.list(work)[c("call", "model", "method", "words", "seeded", "replicates",
                                    "threads", "keep", "goal")], work$encoded, mixed = mixed)
  for (name in c("feeding", "problem", "plan", "goes_on")) assign(name, fresh[[name]], work)
}

# The hook is called at the end, too.
report_end <- function(fit, on_chunk, seconds) {
  on_chunk(list(rows = fit$n, share = 1, seconds = seconds, n = fit$n,
                log_evidence = fit$sampler$log_evidence, se = fit$sampler$se,
                ess = if (length(fit$trace$ess)) utils::tail(fit$trace$ess, 1) else NA_real_,
                lambda = 1))
}

advance_plan <- function(work, display) {
  options <- work$options
  threads <- .Call(ffi_threads, work$threads)
  # replicates of a stream share its blocks
  together <- if (is_stream(work)) length(work$plan$first)
  else if (asks_r(work$model) || length(work$encoded$rows) > SIDE_BY_SIDE) 1
  else min(threads, length(work$plan$first))
  begin_feeding(work)
  notice <- slow_rows_notice(work)
  reason <- slow_fit_notice(work)
  show <- function(done, rows, report) {
    notice(rows, now() - work$started)
    reason(done, now() - work$started)
    display$show(done, rows, report)
  }
  work$plan <- work_on(work$plan, rows_of_work(work), together,
                       threads, show, feed_of(work), watch = watch_of(work),
                       keep_open = state_bytes(work), cl = options$cl, words = words_for_r(work),
                       until = end_of_time(work))
  plan_is_saved(work)
}

rows_of_work <- function(work) {
  if (is_stream(work)) feed_rows(work$feed)
  else if (!is.null(work$sums))
    asked_rows(work$encoded$rows, answer_by_sums(work$problem, work$sums$rows, work$sums$n))
  else if (!is.null(work$ask)) asked_rows(work$encoded$rows, work$ask)
  else work$encoded$rows
}

# All rows of a work that has ended, or a sample of them.
rows_known <- function(work) {
  if (!is_stream(work)) return(work$encoded$rows)
  rows <- kept_rows(work$feed)
  if (is.null(rows)) plan_results(work$plan)[[1]]$sample else rows
}

# How a job gets its rows: they are in the random order of the first replicate.
feed_of <- function(work) function(job)
  if (work$feeding != "mixed" || job$problem$replicate == 0) work$feeding else "last"

# The seed of jobs that draw from R's generator.
words_for_r <- function(work) if (asks_r(work$model)) work$words

#' The first runs of several works in memory on the workers of a cluster
#'
#' @param names Of the works, for messages.
#' @param failed Called with a work and the error of one of its runs.
#' @noRd
first_jobs_elsewhere <- function(cl, works, names, failed, show, stop = function() FALSE) {
  open <- lapply(works, function(work) which(vapply(work$plan$first, is_open, NA)))
  of <- rep(seq_along(works), lengths(open))
  at <- unlist(open)
  done <- 0
  make <- function(i) {
    work <- works[[of[i]]]
    task_of_job(work$plan$first[[at[i]]], "first", .Call(ffi_threads, work$threads),
                feed_of(work), state_bytes(work), words_for_r(work))
  }
  each <- function(i, value) {
    work <- works[[of[i]]]
    done <<- done + 1
    if (inherits(value, "condition")) failed(work, value)
    else work$plan$first[[at[i]]] <- c(work$plan$first[[at[i]]]["problem"], value)
    show(done / length(of))
  }
  several <- lengths(open)[of] > 1
  on_workers(cl, "job_of_task", paste0(names[of], ifelse(several, paste(", replicate", at), "")),
             make, each, is_job_done, lapply(works, function(work) work$encoded$rows), of, stop)
}

begin_feeding <- function(work) {
  if (!is_stream(work)) return(invisible())
  work$feed$keeps_given <- !isTRUE(work$feed$source$rewinds)
  work$position <- feed_position(work$feed)
}

# Seconds after which a run that adds row by row is looked at, and the shortest rest that is said.
SLOW_AFTER <- 20
SLOW_REST <- 120

#' A function of the rows added and the seconds so far, which says once that a run will take long
#'
#' Rows in an order, such as that of the clusters of a mixture, make the posterior of the first rows
#' wide in some directions and narrow in others, and moves are then hundreds of times as expensive.
#' @noRd
slow_rows_notice <- function(work) {
  said <- is_stream(work) || !identical(work$method$path, "data") ||
    has_setting(work$method, "shuffle")
  function(rows, seconds) {
    if (said || seconds < SLOW_AFTER || rows < 1) return(invisible())
    # a move costs as much as there are rows: the time grows with their square
    rest <- seconds * ((work$encoded$n / rows)^2 - 1)
    said <<- TRUE
    if (rest < SLOW_REST) return(invisible())
    message(work$method$name, "(\"data\") has added ", count(rows), " of ", count(work$encoded$n),
            " rows in ", format_seconds(seconds), ", and may need ", format_seconds(rest),
            " for the others. If the rows are sorted, use `order = \"shuffled\"`, which can be ",
            "many times as fast, or another method; `time_limit` stops a run.")
  }
}

# Seconds after which a default fit of few rows says why it is slow.
SLOW_FIT <- 5
SLOW_FIT_ROWS <- 10000

#' A function of the share of the work that is done and the seconds so far, which says once why a
#' fit by the default method takes long
#' @noRd
slow_fit_notice <- function(work) {
  said <- is_stream(work) || !has_trait(work$method, "default") || work$encoded$n > SLOW_FIT_ROWS
  function(done, seconds) {
    if (said || seconds < SLOW_FIT) return(invisible())
    said <<- TRUE
    second <- done > FIRST_SHARE && done < 1
    message(work$method$name, "() has worked for ", format_seconds(seconds), ". ",
            if (asks_r(work$model)) slow_functions(work$model),
            if (second) paste("A second run with more effort is under way, because importance",
                              "sampling could not confirm the first one. ")
            else if (done == FIRST_SHARE)
              "The search for modes and importance sampling around them are under way. "
            else if (!asks_r(work$model))
              "The posterior is far from normal, so that its particles need many moves. ",
            "`time_limit` stops a run.")
  }
}

# What would make the functions of a custom model faster.
slow_functions <- function(model) {
  # an object of another package has no functions that the user could write in another way
  if (part_of(model, "asks_r") != "user")
    return("Most of this time goes to functions of the object that the model was made from. ")
  cures <- c(if (!isTRUE(model$vectorised)) "take many points in a call (`vectorised = TRUE`)",
             if (!has_gradients(model)) "have a `gradient`",
             if (!is_discrete(model)) "are written as density()")
  if (!length(cures)) return("Most of this time goes to R functions of the model. ")
  paste0("Most of this time goes to R functions of the model, which are faster if they ",
         paste(cures, collapse = ", or "), ". ")
}

#' The most bytes that the state of each run may take for update()
#' @noRd
state_bytes <- function(work) {
  wanted <- work$options$keep_state
  # runs that are added later have no state of the same rows
  if (!is.null(work$goal) || isFALSE(wanted) || !goes_on(work)) return(0)
  if (isTRUE(wanted)) Inf else STATE_MOST / length(work$plan$first)
}

#' @param plan The runs that have ended.
#' @noRd
finished_fit <- function(work, plan = work$plan) {
  runs <- plan_results(plan)
  encoded <- if (is_stream(work)) encoded_by(work$feed, runs[[1]]$sample) else work$encoded
  if (asks_r(work$model)) {
    restore <- generator_after(work$words, 0)
    on.exit(restore())
  }
  checks <- further_checks(work$problem, encoded, runs, work$model, work$method, work$words)
  times <- lapply(plan$first, function(job) job$problem$times)
  # the first ones have the particles of the method
  times <- if (any(lengths(times))) vapply(times, function(own) if (is.null(own)) 1 else own, 0)
  fit <- new_evidence(runs, work$call, work$model, work$method, encoded, work$words, work$threads,
                      checks, times)
  fit <- unclass(fit)
  id <- fit$data_id
  order <- if (is_stream(work)) join_all(work$feed$order)
  else if (work$feeding == "open") ordered_id(encoded, identified_by(encoded, id, work$threads))
  fit$order_id <- order
  fit$state <- if (is.null(work$goal)) open_state(work_asked_for(work, encoded), encoded, id, order)
  fit$na.action <- work$omitted
  class(fit) <- "evidence"
  # draws can be made again from all rows alone
  if (isTRUE(encoded$sampled) || is_stream(work)) fit
  else without_draws(fit, encoded, length(runs))
}

#' What update() needs to add rows, or NULL if the states were not kept
#' @noRd
open_state <- function(work, encoded, id, order) {
  jobs <- lapply(better_jobs(work$plan),
                 function(job) list(problem = job$problem, state = job$open))
  if (any(vapply(jobs, function(job) is.null(job$state), NA))) return(NULL)
  if (!is_stream(work)) work$keep <- condensed_rows(nrow(encoded$rows))
  kept <- if (is_stream(work)) kept_rows(work$feed)
  else if (encoded$n <= work$keep) encoded$rows
  if (8 * length(kept) > state_bytes(work)) return(NULL)
  # the rows of the source are not needed any more
  work$source <- NULL
  saved_work(work, list(first = jobs, second = NULL),
             stream = position_to_go_on(
               n = encoded$n, id = id, order = order, kept = list(kept),
               identified = identified_in(work, id), carry = encoded$design$carry,
               places = work$feed$places, observations = sum(work$feed$observations),
               units = sum(work$feed$units)))
}

identified_in <- function(work, id) {
  if (is_stream(work)) work$feed$identified
  else identified_by(work$encoded, id, work$threads)
}

# Snapshots ---------------------------------------------------------------------------------------

watch_of <- function(work) {
  if (!work$guarded) return(NULL)
  list(
    whole = function(save) {
      due <- write_is_due(work)
      if (due || snapshot_is_due(work)) take_snapshot(work, save)
      # a race is saved when all its runs have a snapshot
      if (due && is.null(work$race)) write_work(work)
    },
    broken = function(save) take_snapshot(work, save)
  )
}

snapshot_is_due <- function(work) {
  full <- is_stream(work) && work$feed$numbers_since_saved > SNAPSHOT_CELLS
  full || now() - work$taken > max(SNAPSHOT_LEAST, SNAPSHOT_COST * work$cost)
}

take_snapshot <- function(work, save) {
  begun <- now()
  plan <- save()
  suspendInterrupts({
    work$plan <- plan
    plan_is_saved(work)
    if (asks_r(work$model)) work$rng <- get0(".Random.seed", globalenv(), inherits = FALSE)
  })
  work$taken <- now()
  work$cost <- work$taken - begun
}

# The states of the plan have all rows pulled so far.
plan_is_saved <- function(work) {
  if (!is_stream(work)) return(invisible())
  work$feed$given_since_saved <- list()
  work$feed$numbers_since_saved <- 0
  work$position <- feed_position(work$feed)
}

# Saving ------------------------------------------------------------------------------------------

#' Work from a saved list; for a stream with a feed that is not yet open
#' @noRd
work_from <- function(saved, threads = NULL) {
  work <- list2env(saved$spec, parent = emptyenv())
  if (!is.null(threads)) work$threads <- check_count(threads, "threads", 1, 1024)
  work$encoded <- saved$encoded
  work$problem <- saved$problem
  second <- saved$plan$second
  work$plan <- list(first = unpacked(saved$plan$first, saved$problem),
                    second = if (!is.null(second)) unpacked(second, saved$problem))
  work$feeding <- saved$feeding
  work$elapsed <- saved$elapsed
  work$rng <- saved$rng
  if (!is.null(saved$stream))
    work$feed <- feed_at(saved$stream, work$model, work$encoded, work$keep)
  work
}

# Stopping ----------------------------------------------------------------------------------------

#' Raise the condition again that has stopped the work, with what there is in `fit`
#'
#' @param incomplete What makes an incomplete fit of the work and the reason.
#' @noRd
stopped_by <- function(work, cnd, incomplete = incomplete_fit) {
  if (is.null(cnd$fit)) {
    reason <- if (inherits(cnd, "interrupt")) "an interrupt" else conditionMessage(cnd)
    cnd$fit <- tryCatch(incomplete(work, reason), error = function(e) NULL)
    if (!is.null(work$options$checkpoint)) write_work(work)
  }
  if (!inherits(cnd, "interrupt")) stop(cnd)
  signalCondition(cnd)
  invokeRestart("abort")
}

#' A fit whose run has not reached its end
#' @noRd
incomplete_fit <- function(work, reason) {
  so_far <- if (takes_blocks(work$method)) results_so_far(work$plan)
  n <- if (is_stream(work)) rows_read(work, plan_position(work)$n) else work$encoded$n
  structure(
    list(log_evidence = if (is.null(so_far)) NA_real_ else so_far$log_evidence,
         se = if (is.null(so_far)) NA_real_ else so_far$se,
         n = if (is.null(so_far)) 0 else so_far$n, rows_read = n, reason = reason,
         trace = so_far$trace, call = work$call, model = work$model, method = work$method,
         seed = work$words, state = saved_work(work)),
    class = "incomplete_evidence"
  )
}

# Lagged columns need rows before the first one that counts.
rows_read <- function(work, n) {
  lag <- work$encoded$design$lag
  if (n > 0 && !is.null(lag)) n + lag else n
}

#' The estimate from the rows that all first runs have passed, or NULL
#' @noRd
results_so_far <- function(plan) {
  traces <- lapply(plan$first, function(job) if (!is.null(job$result)) job$result$trace
                   else if (!is.null(job$state)) trace_of_state(job))
  common <- common_trace(traces)
  if (!NROW(common)) return(NULL)
  c(as.list(common[nrow(common), ]), list(trace = traces[[1]]))
}

#' The estimates of several runs together, at the numbers of rows that all have passed
#'
#' @return A data frame of `n`, `log_evidence`, `se`, or NULL if a run has no trace by rows.
#' @noRd
common_trace <- function(traces) {
  if (any(vapply(traces, function(trace) is.null(trace$n) || nrow(trace) == 0, NA))) return(NULL)
  traces <- lapply(traces, function(trace) {
    trace <- trace[complete_rows(trace), ]
    trace[!duplicated(trace$n, fromLast = TRUE), ]
  })
  n <- Reduce(intersect, lapply(traces, `[[`, "n"))
  at <- lapply(traces, function(trace) trace[match(n, trace$n), c("n", "log_evidence", "se")])
  if (length(at) == 1 || !length(n)) return(at[[1]])
  estimate <- vapply(at, `[[`, n, "log_evidence")
  errors <- vapply(at, `[[`, n, "se")
  dim(estimate) <- dim(errors) <- c(length(n), length(at))
  highest <- do.call(pmax, at_columns(estimate))
  ratio <- exp(estimate - highest)
  mean <- rowMeans(ratio)
  spread <- apply(ratio, 1, stats::sd) / mean / sqrt(length(at))
  data.frame(n = n, log_evidence = highest + log(mean),
             se = pmax(sqrt(rowSums((ratio * errors)^2)) / rowSums(ratio), spread))
}

at_columns <- function(x) lapply(seq_len(ncol(x)), function(j) x[, j])

# Entries of the trace at which a chunk was complete.
complete_rows <- function(trace) {
  if (is.null(trace$lambda)) rep(TRUE, nrow(trace)) else trace$lambda >= 1
}

trace_of_state <- function(job) {
  run <- begin_job(job, NULL)
  on.exit(.Call(ffi_run_free, run))
  run_result(run)$trace
}

#' @export
format.incomplete_evidence <- function(x, ...) {
  paste0("incomplete fit by ", x$method$name, "(), ", count(x$n), " rows so far")
}

#' @export
print.incomplete_evidence <- function(x, ...) {
  estimate <- if (is.na(x$log_evidence)) "No estimate yet."
  else sprintf("Log evidence of the first %s rows: %.2f (standard error %.2g)", count(x$n),
               x$log_evidence, x$se)
  cat_wrapped(c("Incomplete: the run was stopped before its end. resume() continues it.",
                paste0("Stopped by: ", x$reason), estimate), exdent = 2)
  invisible(x)
}

# What the default methods of these generics would give for an incomplete fit has no meaning.
whole_fit <- function(verb) {
  fail("The fit is incomplete: continue it by resume() before ", verb, "(), or read ",
       "`log_evidence` for its first `n` rows.")
}

#' @export
logml.incomplete_evidence <- function(x, ...) whole_fit("logml")
#' @export
plot.incomplete_evidence <- function(x, ...) whole_fit("plot")
#' @export
simulate.incomplete_evidence <- function(object, nsim = 1, seed = NULL, ...) whole_fit("simulate")
#' @export
log_lik.incomplete_evidence <- function(object, ...) whole_fit("log_lik")
#' @export
predict.incomplete_evidence <- function(object, ...) whole_fit("predict")
#' @export
summary.incomplete_evidence <- function(object, ...) whole_fit("summary")
#' @export
coef.incomplete_evidence <- function(object, ...) whole_fit("coef")
#' @export
vcov.incomplete_evidence <- function(object, ...) whole_fit("vcov")
#' @export
confint.incomplete_evidence <- function(object, ...) whole_fit("confint")
#' @export
fitted.incomplete_evidence <- function(object, ...) whole_fit("fitted")
#' @export
residuals.incomplete_evidence <- function(object, ...) whole_fit("residuals")
#' @export
deviance.incomplete_evidence <- function(object, ...) whole_fit("deviance")
#' @export
sigma.incomplete_evidence <- function(object, ...) whole_fit("sigma")
#' @export
nobs.incomplete_evidence <- function(object, ...) whole_fit("nobs")
#' @export
formula.incomplete_evidence <- function(x, ...) whole_fit("formula")

#' The work of a walk that has its rows and has not begun: with it, rows can be added to a fit by
#' partitions() that took its place
#' @noRd
work_asked_for <- function(work, encoded) {
  asked <- work$method$asked
  if (is.null(asked)) return(work)
  other <- list2env(as.list(work), parent = emptyenv())
  other$method <- asked
  other$goes_on <- NULL
  problem <- new_problem(work$model, encoded, asked, work$words, work$threads)
  problem$total <- 0
  problem <- bounded(problem, "open", nrow(encoded$rows))
  other$problem <- problem
  job <- list(problem = problem, result = list())
  if (state_bytes(other) > 0) {
    run <- begin_job(list(problem = problem), memory_rows(encoded$rows, "open"))
    on.exit(.Call(ffi_run_free, run))
    job$open <- .Call(ffi_run_save, run)
    if (length(job$open) > state_bytes(other)) job$open <- NULL
  }
  other$plan <- list(first = list(job), second = list(NULL))
  other
}
