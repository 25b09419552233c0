# Several models on the same rows: evidence(list(...)), its runs and what stops them.
#
# A race is an environment: `works` (R/run-work.R), one for each model, their `names`, the `prior`
# weights, and reasons of models that have `dropped` out. Works of a source read their rows by
# shared sources (R/rows-shared.R), and the runs of all models get each block at the same time
# (conduct_teams()). Each work is what evidence() of its model alone would make, so its numbers are
# the same to the bit. `opening` has the first rows of each model, for estimates before the first
# chunk is complete (R/call-race-moments.R).

is_list_of_models <- function(model)
  is.list(model) && !is.object(model)

check_models <- function(models) {
  if (length(models) < 2)
    refuse(models, "model", "a model, or a list of at least two models")
  for (i in seq_along(models)) check_is_model(models[[i]], paste0("model[[", i, "]]"))
  several <- vapply(models, function(model) length(model$components) > 1, NA)
  if (any(several))
    fail("`model[[", which(several)[1], "]]` must have one number of `components`: give a list of ",
         "mixtures, or this model alone.")
  models
}

check_race <- function(models) {
  if (anyDuplicated(names(models)[nzchar(names(models))]))
    fail("`model` must hold models of distinct names, not `",
         names(models)[duplicated(names(models)) & nzchar(names(models))][1], "` twice.")
}

# Rows left out for a second model are counted among those that the first one has left.
all_omitted <- function(first, second) {
  if (is.null(first)) return(second)
  stay <- setdiff(seq_len(length(first) + max(second)), first)
  structure(sort(c(first, stay[second])), class = "omit")
}

# Beginning ---------------------------------------------------------------------------------------

#' @param specs One for each model, as for new_work().
#' @param data A source, or data in memory.
#' @noRd
new_race <- function(specs, data, chosen, prior, stop_at, from = NULL) {
  prior_weights(unname(prior), specs)
  columns <- if (!is_source(data)) columns_of_all(specs, data)
  race <- list2env(list(stop_at = check_thresholds(stop_at),
                         from = check_from(from), dropped = character(), works = list(),
                        call = specs[[1]]$call, methods = lapply(specs, `[[`, "method")),
                   parent = emptyenv())
  done <- FALSE
  on.exit(if (!done) close_feeds(race))
  pushed <- is_pushed(data)
  sources <- if (is_source(data) && !pushed) shared_sources(data, length(specs))
  for (i in seq_along(specs)) {
    work <- of_model(spec_names(specs, columns)[i], {
      if (pushed) work_on_sums(specs[[i]], data)
      else if (is.null(sources))
        work_in_memory(specs[[i]], data, has_one_run(specs[[i]]), chosen)
      else work_on_source(specs[[i]], sources[[i]], alone = FALSE)
    })
    # the source is saved once for all
    work$source <- NULL
    race$works[[i]] <- work
  }
  # the columns of a source are known when its first rows are
  if (is_source(data)) columns <- columns_of_designs(lapply(race$works, function(work)
    (if (is_stream(work)) work$feed$encoded else work$encoded)$design))
  race$names <- spec_names(specs, columns)
  race$prior <- prior_weights(prior, race$names)
  heads <- lapply(race$works, function(work)
    if (is_stream(work)) work$feed$head else stand_in(work$model, work$encoded))
  # a model with a bad row drops out later
  known <- !vapply(heads, is.null, NA)
  if (any(known)) check_same_data(heads[known], race$names[known])
  if (!is.null(sources)) {
    race$source <- source_bytes(data)
    race$opening <- lapply(race$works, opening_rows)
  } else if (!pushed) race$data <- if (utils::object.size(data) <= STATE_MOST) data
  done <- TRUE
  race
}

close_feeds <- function(race)
  for (work in race$works) if (is_stream(work)) close_feed(work$feed)

# Errors of the arguments say which model they are about.
of_model <- function(name, code) {
  withCallingHandlers(code, logevidence_error = function(e) {
    if (!startsWith(conditionMessage(e), "Model ")) {
      e$message <- paste0("Model `", name, "`: ", conditionMessage(e))
      stop(e)
    }
  })
}

columns_of_all <- function(specs, data)
  as.character(unlist(lapply(specs, function(spec) columns_named(spec$model, data))))

columns_of_designs <- function(designs) as.character(unlist(lapply(designs, `[[`, "named_columns")))

#' Names of models that have no fits yet
#'
#' @param columns Those of the data that the formulas name; NULL if they are not known.
#' @noRd
spec_names <- function(specs, columns = NULL) {
  stand_ins <- lapply(specs, function(spec)
    list(model = spec$model, method = spec$method, draws = matrix(0, 0, 0),
         design = if (!is.null(columns)) list(named_columns = columns)))
  fit_names(stand_ins, vector("list", length(specs)), names(specs))
}

check_thresholds <- function(stop_at) {
  if (is.null(stop_at)) return(NULL)
  if (!is_plain_numeric(stop_at) || length(stop_at) != 2 || anyNA(stop_at) ||
      !(stop_at[1] >= 0 && stop_at[1] < 1 && stop_at[2] > 1))
    refuse(stop_at, "stop_at", paste("two Bayes factors, one below and one above 1, such as",
                                     "c(1/10, 10); c(0, 10) has no threshold below 1"))
  as.double(stop_at)
}

#' The first rows of a feed that has not been used, as C gets them; NULL if they are bad
#' @noRd
opening_rows <- function(work) {
  feed <- work$feed
  block <- block_data(feed$read_ahead)
  some <- seq_len(min(OPENING_ROWS, block_rows(block)))
  or_null(encode_block(feed, block_part(block, some))$rows)
}

# Running -----------------------------------------------------------------------------------------

#' Work until there is a comparison, or an incomplete one
#' @noRd
run_race <- function(race, options, known = NULL) {
  race$options <- options
  race$started <- now()
  on.exit(close_feeds(race))
  for (work in race$works) begin_work(work, options, race)
  check_same_run(race)
  streams <- any(vapply(race$works, is_stream, NA))
  if (!streams && is.null(options$checkpoint)) return(race_of(race, known))
  tryCatch(race_of(race, known),
           interrupt = function(cnd) stopped_by(race, cnd, incomplete_race),
           error = function(cnd) stopped_by(race, cnd, incomplete_race))
}

race_of <- function(race, known) {
  options <- race$options
  if (!is.null(options$checkpoint)) write_first(race)
  fits <- race_fits(race)
  if (is.null(fits)) return(incomplete_race(race, "the time limit"))
  raise_named(fits, known)
  if (is.null(race$components)) return(new_race_result(race, fits))
  last <- race$works[[length(race$works)]]
  new_component_comparison(fits, unname(race$components[names(fits)]), rows_known(last),
                           fits[[1]]$n)
}

# Warnings with the names of their models; one of several models is said once.
raise_named <- function(fits, known = NULL) {
  each <- lapply(fits, function(fit) unname(setdiff(fit_warnings(fit), known)))
  of <- rep(names(fits), lengths(each))
  all <- unlist(each, use.names = FALSE)
  if (length(all))
    warning(new_warning(vapply(unique(all), function(one)
      paste0(paste(of[all == one], collapse = ", "), ": ", one), "", USE.NAMES = FALSE)))
}

#' The fit of each model that has not dropped out, or NULL if the time was over before
#' @noRd
race_fits <- function(race) {
  options <- race$options
  first <- race$works[[1]]
  n <- if (!is_stream(first)) first$encoded$n else first$total
  display <- new_display(options$progress, options$on_chunk, n, is_stream(first), FALSE)
  on.exit(display$close())
  if (is_stream(first)) {
    decide_at_once(race)
    advance_streams(race, display)
    open <- function(work) any(vapply(work$plan$first, is_open, NA))
    if (any(vapply(racing(race), open, NA))) return(NULL)
  }
  if (!is.null(options$cl) && !is_stream(first)) first_runs_of_race(race, display)
  fits <- list()
  for (i in which(!race$names %in% names(race$dropped))) {
    work <- race$works[[i]]
    show <- of_part(display, i, length(race$works), race)
    began <- now()
    before <- seconds_of_jobs(work$plan$first)
    fit <- guarded_by(race, work, with_generator_of(work, fit_of_work(work, show)))
    # models on one source work side by side, others one after another
    if (!is.null(fit))
      fit$work[["seconds"]] <- if (is_stream(work)) work$elapsed + now() - options$began
      else before + now() - began
    fits[[race$names[i]]] <- fit
    if (!is.null(options$checkpoint)) write_work(race)
    if (!race$names[i] %in% c(names(fits), names(race$dropped))) return(NULL)
  }
  if (!is.null(options$on_chunk)) end_of_race(race, fits)
  fits
}

first_runs_of_race <- function(race, display) {
  works <- racing(race)
  first_jobs_elsewhere(
    race$options$cl, works, paste0("model `", vapply(works, name_in, "", race = race), "`"),
    failed = function(work, e)
      if (!name_in(race, work) %in% names(race$dropped)) guarded_by(race, work, stop(e)),
    show = function(done) display$show(done, 0, function() NULL),
    stop = function() {
      if (write_is_due(race)) write_work(race)
      now() >= end_of_time(race)
    })
}

# The work of one model is a part of that of all. Of a source, only second runs are left.
of_part <- function(display, i, n, race) {
  show <- function(done, rows, report) {
    if (is_stream(race$works[[i]])) return(invisible())
    display$show((i - 1 + done) / n, rows, function()
      list(models = cbind(model = race$names[i], as.data.frame(report()))))
  }
  list(show = show)
}

#' The first runs of all works of a source, which get each block at the same time
#' @noRd
advance_streams <- function(race, display) {
  works <- racing(race)
  threads <- .Call(ffi_threads, works[[1]]$threads)
  teams <- lapply(works, function(work) {
    begin_feeding(work)
    jobs <- lapply(work$plan$first, with_threads, if (length(work$plan$first) > 1) 1 else threads)
    within <- function(save) function() {
      work$plan$first <- save()
      work$plan
    }
    team <- new_team(jobs, rows_of_work(work), watch_plan(watch_of(work), within),
                     state_bytes(work))
    team$work <- work
    team
  })
  race$due <- FALSE
  stop <- function() {
    if (race$due) write_work(race)
    race$due <- write_is_due(race)
    now() >= end_of_time(race)
  }
  report <- function(going) list(models = reports_of(race, going))
  guard <- function(team, code) withCallingHandlers(
    guarded_by(race, team$work, code, team),
    # all runs wait for rows, and have used the same ones
    rows_unread = function(e) for (other in teams)
      if (!is.null(other$runs)) other$watch$broken(function() saved_jobs(other)))
  jobs <- conduct_teams(teams, display$show, stop, threads, report, guard,
                        function(teams) look_at_race(race, teams), end_of_time(race))
  for (i in seq_along(works)) {
    works[[i]]$plan$first <- jobs[[i]]
    plan_is_saved(works[[i]])
  }
}

#' Do a part of the work of one model; if it fails, the others go on
#'
#' An error of the source concerns all models, and so does one that ends the last of them.
#' @noRd
guarded_by <- function(race, work, code, team = NULL) {
  tryCatch(code, error = function(e) {
    alone <- length(racing(race)) == 1
    if (inherits(e, "rows_unread") || alone) stop(e)
    race$dropped[name_in(race, work)] <- conditionMessage(e)
    if (!is.null(team)) end_team(team)
    if (is_stream(work)) close_feed(work$feed)
    NULL
  })
}

# For a display of the user's own: the last entry of the trace of each model.
reports_of <- function(race, going) {
  each <- lapply(going, function(team) as.data.frame(report_of(team$runs[[1]])))
  names <- vapply(going, function(team) name_in(race, team$work), "")
  cbind(model = names, do.call(rbind, each))
}

end_of_race <- function(race, fits) {
  models <- data.frame(model = names(fits), n = vapply(fits, function(fit) as.double(fit$n), 0),
                       log_evidence = vapply(fits, `[[`, 0, "log_evidence"),
                       se = vapply(fits, `[[`, 0, "se"), row.names = NULL)
  race$options$on_chunk(list(rows = models$n[1], share = 1, seconds = now() - race$started,
                             models = models))
}

# Stopping ----------------------------------------------------------------------------------------

#' Has a Bayes factor passed a threshold by more than its error?
#'
#' Of two models, the Bayes factor of the first over the second. Of more, one model must be ahead of
#' each other one by the upper threshold.
#' @param log_evidence,se Of each model.
#' @return NA, or the number of the model that is ahead.
#' @noRd
decided <- function(log_evidence, se, stop_at) {
  if (any(!is.finite(log_evidence)) || any(!is.finite(se))) return(NA)
  best <- which.max(log_evidence)
  error <- sqrt(se[best]^2 + se^2)
  ahead <- (log_evidence[best] - log_evidence - DECIDED_BY * error)[-best]
  needed <- if (length(se) == 2 && best == 2) -log(stop_at[1]) else log(stop_at[2])
  if (all(ahead >= needed)) best else NA
}

# Fewer rows decide nothing, whatever their Bayes factor.
STOP_LEAST <- 20

check_from <- function(from) if (!is.null(from)) check_count(from, "from", 1, 1e15)

#' The least number of rows that decide: as many as parameters
#' @noRd
least_to_stop <- function(race, parts) {
  if (!is.null(race$from)) return(race$from)
  each <- vapply(parts, function(part)
    if (is_latent(part$spec$model)) 0L else length(part$encoded$theta_names), 0L)
  max(STOP_LEAST, each)
}

#' Does a fit decide nothing? It has failed its checks or is in doubt; but a prior that the data
#' contradict counts against its model
#' @noRd
decides_nothing <- function(fit) !doubt_about(fit) %in% c("", "prior conflict")

#' End all streams after `n` rows if the race is decided by these fits
#' @noRd
decide_by <- function(race, n, fits, parts) {
  left <- setdiff(race$names, names(race$dropped))
  race$past <- rbind(race$past, moment_of(n, left, fits))
  if (n < least_to_stop(race, parts) || any(vapply(fits, decides_nothing, NA))) return(FALSE)
  ahead <- decided(vapply(fits, `[[`, 0, "log_evidence"), vapply(fits, `[[`, 0, "se"),
                   race$stop_at)
  if (is.na(ahead)) return(FALSE)
  race$stopped <- list(rows = n, model = left[ahead])
  TRUE
}

# Before the first chunk: the first rows one by one.
decide_at_once <- function(race) {
  if (is.null(race$stop_at) || !is.null(race$stopped)) return(invisible())
  if (any(vapply(race$works, function(work) work$feed$n > 0, NA))) return(invisible())
  parts <- moment_parts(race)
  rows <- lapply(parts, known_rows)
  if (any(vapply(rows, is.null, NA))) return(invisible())
  for (n in moments_of_first(parts, min(vapply(rows, `[[`, 0, "most")))) {
    if (!decide_by(race, n, Map(fit_of_first, parts, rows, n), parts)) next
    for (work in race$works) work$feed$ends_after <- n
    return(invisible())
  }
}

#' Keep the states of all runs, which wait for rows, if enough rows have come since the last look;
#' if the race may be decided, look at once
#' @noRd
look_at_race <- function(race, teams) {
  feeds <- lapply(teams, function(team) team$work$feed)
  n <- vapply(feeds, `[[`, 0, "n")
  if (any(n != n[1]) || feeds[[1]]$is_further_pass || !is.null(race$stopped)) return(invisible())
  if (n[1] >= next_look(race)) {
    jobs <- lapply(teams, saved_jobs)
    names(jobs) <- vapply(teams, function(team) name_in(race, team$work), "")
    if (is.null(race$stop_at)) keep_look(race, n[1], jobs)
    else if (is_decided(race, n[1], jobs)) for (feed in feeds) feed$ends_after <- feed$at
  }
  for (feed in feeds) feed$block_ends_at <- next_look(race)
}

# The number of rows at which the runs are looked at next.
next_look <- function(race) {
  last <- max(0, if (length(race$looks)) race$looks[[length(race$looks)]]$n, race$past$rows)
  step <- if (!is.null(race$stop_at)) LOOK_STEP_STOP
  else if (is.null(race$look_step)) LOOK_STEP else race$look_step
  max(OPENING_ROWS, ceiling(last * step))
}

is_decided <- function(race, n, jobs) {
  parts <- moment_parts(race)
  length(parts) == length(jobs) && decide_by(race, n, fits_of_look(parts, jobs, n), parts)
}

name_in <- function(race, work) race$names[vapply(race$works, identical, NA, work)]

keep_look <- function(race, n, jobs) {
  race$looks <- c(race$looks, list(list(n = n, jobs = jobs)))
  bytes <- function(look) sum(vapply(unlist(lapply(look$jobs, lapply, `[[`, "state"), FALSE),
                                     length, 0))
  if (sum(vapply(race$looks, bytes, 0)) <= LOOK_BYTES * length(jobs)) return(invisible())
  race$looks <- race$looks[rev(seq_along(race$looks)) %% 2 == 1]
  race$look_step <- (if (is.null(race$look_step)) LOOK_STEP else race$look_step)^2
}

incomplete_race <- function(race, reason) {
  parts <- lapply(stats::setNames(racing(race), setdiff(race$names, names(race$dropped))),
                  incomplete_fit, reason)
  structure(list(reason = reason, fits = parts, n = min(vapply(parts, `[[`, 0, "n")),
                 rows_read = max(vapply(parts, function(part) as.double(part$rows_read), 0)),
                 dropped = race$dropped, state = saved_race(race), call = race$call),
            class = "incomplete_race")
}

#' @export
format.incomplete_race <- function(x, ...)
  paste0("incomplete fits of ", count_of(length(x$fits), "model"), ", ", count(x$n),
         " rows so far")

#' @export
print.incomplete_race <- function(x, ...) {
  cat_wrapped(c("Incomplete: the runs were stopped before their end. resume() continues them.",
                paste0("Stopped by: ", x$reason)), exdent = 2)
  for (name in names(x$fits)) {
    fit <- x$fits[[name]]
    cat_wrapped(if (is.na(fit$log_evidence)) paste0(name, ": no estimate yet")
                else sprintf("%s: log evidence of the first %s rows %.2f (standard error %.2g)",
                             name, count(fit$n), fit$log_evidence, fit$se), exdent = 2)
  }
  invisible(x)
}

#' A race from a saved list; its feeds are not yet open
#' @noRd
race_from <- function(saved, threads = NULL) {
  race <- list2env(saved[intersect(names(saved), RACE_SAVED)], parent = emptyenv())
  race$origin <- saved$spec$origin
  if (is.null(race$dropped)) race$dropped <- character()
  race$works <- lapply(saved$works, work_from, threads)
  race
}
