# Runs whose rows are in shards: the caller. What the workers do is in R/run-shards.R.
#
# A run is decided by its seed and by what the workers have said: the first rows, a description of
# each shard, and answers to questions. All this is in `log`, in the order in which it was asked. So
# a checkpoint is the log. A run that is resumed begins anew, takes from the log what is in it, and
# asks the workers only for what follows.

#' A run of shards that has not begun
#'
#' @param specs As for new_work(), one for each model.
#' @param several Whether the user has given a list of models, and not one.
#' @return An environment, as work (R/run-work.R) as far as checkpoints go: `log`; `partial`, the
#'   values of some shards for the next entry of the log; and what is said in SHARDS_SAVED.
#' @noRd
new_shards <- function(specs, several, prior, shards) {
  # weights by name are checked when the names are known
  if (several) prior_weights(unname(prior), specs)
  each <- function(part) lapply(specs, `[[`, part)
  work <- list2env(specs[[1]][c("call", "words", "threads")], parent = emptyenv())
  work$models <- each("model")
  work$methods <- each("method")
  work$replicates <- unlist(each("replicates"))
  work$names <- if (several) names_of_models(work$models, work$methods)
  work$prior <- prior
  work$shards <- shards
  work$log <- list()
  work$elapsed <- 0
  work
}

shards_from <- function(saved, threads = NULL) {
  work <- list2env(saved[c(SHARDS_SAVED, "elapsed")], parent = emptyenv())
  if (!is.null(threads)) work$threads <- check_count(threads, "threads", 1, 1024)
  work$origin <- saved$spec$origin
  work
}

names_of_models <- function(models, methods, columns = NULL)
  spec_names(Map(function(model, method) list(model = model, method = method), models, methods),
             columns)

named_comparison <- function(fits, names, prior) {
  fits <- stats::setNames(fits, names)
  raise_named(fits)
  new_comparison(fits, names, prior)
}

#' Work until there are fits, or an incomplete one
#'
#' @param data From rows_cluster(), or NULL for a run that needs no worker any more.
#' @param options From check_options().
#' @param target_se As in evidence().
#' @noRd
fit_shards <- function(work, data, options, target_se = NULL) {
  joined <- vapply(work$models, gathers, NA)
  work$joined <- all(joined)
  work$units <- length(work$models) == 1 && takes_units(work$models[[1]])
  if (!work$joined) for (i in seq_along(work$models))
    check_for_questions(work$models[[i]], work$methods[[i]], "rows_cluster()", work$units)
  check_shards_again(work, data)
  if (!is.null(options$cl)) fail("`cl` cannot be used for rows_cluster().")
  work$options <- options
  work$started <- now()
  work$complete <- FALSE
  work$asked <- 0
  work$data <- data
  work$bar <- progress_bar(options$progress, NA)
  on.exit(work$bar$close())
  on.exit(if (!is.null(work$crew)) leave(work$crew), add = TRUE)
  bind_models_again(work)
  check_same_run(work)
  fits <- function() {
    if (!is.null(options$checkpoint)) write_first(work)
    bind_to_units(work)
    found <- if (work$joined) fits_of_groups(work, target_se) else fits_of_shards(work, target_se)
    work$complete <- TRUE
    if (!is.null(options$on_chunk)) end_of_shards(work, found)
    if (!is.null(options$checkpoint)) write_work(work)
    if (is.null(work$names)) raise_warnings(found[[1]])
    else named_comparison(found, work$names, prior_weights(work$prior, work$names))
  }
  tryCatch(fits(), time_is_over = function(cnd) {
    if (!is.null(options$checkpoint)) write_work(work)
    incomplete_shards(work, "the time limit")
  },
  interrupt = function(cnd) stopped_by(work, cnd, incomplete_shards),
  error = function(cnd) stopped_by(work, with_file(cnd, options$checkpoint), incomplete_shards))
}

check_shards_again <- function(work, data) {
  if (is.null(data)) return(invisible())
  if (!is_sharded(data) || data$shards != work$shards)
    fail("`data` must be rows_cluster() with the ", count_of(work$shards, "shard"),
         " of the run that is resumed.")
}

# An error that stops a run names its checkpoint.
with_file <- function(cnd, checkpoint) {
  if (!is.null(checkpoint))
    cnd$message <- paste0(sub("[.]?[[:space:]]*$", ".", conditionMessage(cnd)), " The checkpoint ",
                          dQuote(checkpoint$file, FALSE), " has the run so far: see resume().")
  cnd
}

incomplete_shards <- function(work, reason) {
  # after the first rows, that of units or of all rows
  rows <- if (length(work$log) > 1) sum(vapply(work$log[[2]]$value, `[[`, 0, "n")) else 0
  state <- saved_log(work)
  parts <- Map(function(model, method)
    structure(list(log_evidence = NA_real_, se = NA_real_, n = 0, rows_read = rows,
                   reason = reason, call = work$call, model = model, method = method,
                   seed = work$words, state = state), class = "incomplete_evidence"),
    work$models, work$methods)
  if (is.null(work$names)) return(parts[[1]])
  structure(list(reason = reason, fits = stats::setNames(parts, work$names), n = 0,
                 rows_read = rows, dropped = character(), state = state, call = work$call),
            class = "incomplete_race")
}

# What is asked ------------------------------------------------------------------------------------

#' Ask the first rows, and bind the models to them
#' @noRd
bind_models <- function(work) {
  work$shared <- list(open = work$data$open, words = work$words, keep = work$data$keep,
                      used = columns_read_by(work$models))
  tell_workers(work, "heads", work$models)
  some <- ceiling(HEAD_ROWS / work$shards)
  heads <- ask_shards(work, "head_of_shard", "heads", common = list(rows = some))
  counted <- if (work$units) {
    work$groups <- ask_shards(work, "units_of_shard", "units")
    check_whole_groups(work$groups)
    counts <- lapply(work$groups, `[[`, "counted")
    part_of(work$models[[1]], "groups")$counts(counts[lengths(counts) > 0])
  }
  work$bind <- function(models) Map(function(model, method)
    model_elsewhere(model, method, work$head, work$words, work$threads, counted),
    models, work$methods)
  work$head <- joined_heads(heads)
  work$bound <- work$bind(work$models)
  first <- vapply(work$bound, function(one) fingerprint(one$first), "")
  if (is.null(work$origin))
    work$origin <- list(data = c(first, work$shards), seed = as.double(work$words), replicates = 1,
                        problem = lapply(work$bound, function(one)
                          .Call(ffi_problem_id, one$problem)))
}

#' Give the models the units of all rows, where they need them, and the workers the models
#' @noRd
bind_to_units <- function(work) {
  measured <- which(vapply(work$bound, function(one)
    needs_constants(one$model, one$encoded$design), NA))
  work$measured <- length(measured) > 0
  if (work$measured) {
    work$bound <- work$bind(models_with_units(work, measured, work$head))
    # a fit has the model as it was given
    for (m in measured) work$bound[[m]]$model <- work$models[[m]]
  }
  work$bound <- Map(function(one, method)
    if (has_trait(method, "joins")) with_tables(one) else one, work$bound, work$methods)
  if (!is.null(work$names)) {
    work$names <- names_of_models(work$models, work$methods, columns_of_designs(
      lapply(work$bound, function(one) one$encoded$design)))
    prior_weights(work$prior, work$names)
  }
  tell_workers(work, "rows", lapply(work$bound, function(one)
    one[!names(one) %in% c("first", "like")]))
}

#' What workers know from now on, and its name
#' @noRd
tell_workers <- function(work, stage, models) {
  work$stage <- stage
  work$shared$models <- models
}

#' The models, with the units of all rows where default priors ask for them
#'
#' @param measured Which models these are.
#' @noRd
models_with_units <- function(work, measured, head) {
  models <- work$models
  tell_workers(work, "constants", lapply(work$bound[measured], function(one)
    bound_for_constants(one$model, one$encoded$design, head)))
  said <- ask_shards(work, "constants_of_shard", "constants")
  for (m in seq_along(measured))
    models[[measured[m]]] <- with_units_of(models[[measured[m]]], Reduce(
      joined_constants, lapply(said, function(one) one$constants[[m]])))
  models
}

#' Refuse groups with rows in more than one shard
#' @noRd
check_whole_groups <- function(groups) {
  for (label in unique(unlist(lapply(groups, function(one) names(one$levels))))) {
    levels <- lapply(groups, function(one) one$levels[[label]])
    shard <- rep(seq_along(levels), lengths(levels))
    levels <- unlist(levels)
    again <- anyDuplicated(levels)
    if (again)
      fail("`data` must have all rows of a group in one shard. Group ", show_text(levels[again]),
           " of `", label, "` has rows in the shards ", shard[match(levels[again], levels)],
           " and ", shard[again], ".")
  }
}

#' Before shards have been described, their first rows show whether they are the same
#' @noRd
bind_models_again <- function(work) {
  partial <- work$partial
  origin <- work$origin
  if (length(work$log) <= 1 + work$units) {
    work$log <- list()
    work$origin <- NULL
  }
  bind_models(work)
  work$partial <- partial
  if (!is.null(origin) && !identical(origin, work$origin))
    fail("`data` must be the rows of the run that is resumed, in the same shards.")
}

#' Fits of models whose groups are joined from all shards: they are few numbers, and the run is here
#' @noRd
fits_of_groups <- function(work, target_se) {
  said <- ask_shards(work, "groups_of_shard", "groups")
  n <- vapply(said, `[[`, 0, "n")
  if (!sum(n)) fail("`data` must have at least one row, not 0.")
  options <- list(began = now(), progress = FALSE, every = 60)
  lapply(seq_along(work$models), function(m) {
    model <- work$models[[m]]
    encoded <- work$bound[[m]]$encoded
    for (one in said[n > 0]) encoded <- join_rows(model, encoded, one$parts[[m]])
    begun <- work_on_encoded(spec_of_shards(work, m), encoded)
    # its warnings are raised with the fits
    fit <- muffled(if (is.null(target_se)) run_work(begun, options)
                   else reach_target(begun, options, target_se, NULL))
    fit$shards <- list(rows = n, passes = 1 + work$measured)
    fit
  })
}

spec_of_shards <- function(work, m)
  list(call = work$call, model = work$models[[m]], method = work$methods[[m]], words = work$words,
       seeded = TRUE, replicates = work$replicates[m], threads = work$threads, keep = Inf)

#' Fits of models whose runs ask the shards, all together
#' @noRd
fits_of_shards <- function(work, target_se) {
  described <- ask_shards(work, "open_shard", "rows", trim = without_large_keys)
  n <- vapply(described, `[[`, 0, "n")
  if (!sum(n)) fail("`data` must have at least one row, not 0.")
  work$known <- lapply(described, `[`, c("n", "ids", "prints"))
  works <- lapply(seq_along(work$models), work_of_shards, work, described, n)
  passes <- 0
  answer <- function(questions, of) {
    passes <<- passes + 1
    ask_shards(work, "answer_of_shard", key_of(questions), function(i)
      list(known = work$known[[i]]), list(questions = questions, of = of), end = function(answers)
        lapply(seq_along(questions), function(k)
          if (!is.null(questions[[k]])) add_answers(lapply(answers[n > 0], `[[`, k))))
  }
  jobs <- lapply(works, function(one) one$plan$first)
  of <- rep(seq_along(works), lengths(jobs))
  samples <- lapply(works[of], function(one) one$encoded$rows)
  work$bar$close()
  display <- new_display(work$options$progress, work$options$on_chunk, sum(n), FALSE, FALSE)
  on.exit(display$close())
  jobs <- conduct_jobs(unlist(jobs, FALSE),
                       asked_rows(samples, function(questions) answer(questions, of)),
                       show = display$show, stop = function() check_time(work))
  began <- work$started - work$elapsed
  lapply(seq_along(works), function(m) {
    one <- works[[m]]
    one$ask <- function(questions) answer(questions, rep(m, length(questions)))
    one$plan <- list(first = jobs[of == m], second = vector("list", sum(of == m)))
    begin_work(one, list(keep_state = FALSE, progress = work$options$progress))
    fit <- finished_fit(one)
    if (!is.null(target_se))
      fit <- muffled(reach_target(one, one$options, target_se, NULL, fit))
    fit$work[["seconds"]] <- now() - began
    rows <- if (work$units) vapply(work$groups, `[[`, 0, "n") else n
    fit$shards <- list(rows = rows, passes = passes + 1 + work$units + work$measured)
    fit
  })
}

#' The work of one model, with a sample of all rows
#'
#' @param described What open_shard() has said of each shard.
#' @noRd
work_of_shards <- function(m, work, described, n) {
  bound <- work$shared$models[[m]]
  some <- described[n > 0]
  id <- join_all(unlist(lapply(some, function(one) one$ids[[m]])))
  encoded <- encoded_elsewhere(bound, sum(n), merged_sample(described, m), id, work$groups)
  one <- new_work(spec_of_shards(work, m), encoded, feeding = "last",
                  problem = with_rows_elsewhere(bound$problem, sum(n)))
  if (is.null(bound$tables)) return(one)
  blocks <- do.call(cbind, lapply(some, function(one) one$blocks[[m]]))
  result <- exact_of_rows(work$bound[[m]], joined_blocks(bound, blocks), sum(n), work$words)
  for (r in seq_along(one$plan$first)) one$plan$first[[r]]$result <- result
  one
}

# The hook is called at the end, too.
end_of_shards <- function(work, fits) {
  if (is.null(work$names)) report_end(fits[[1]], work$options$on_chunk, now() - work$started)
  else end_of_race(work, stats::setNames(fits, work$names))
}

# A fingerprint of questions, by which an answer in a log is recognised.
key_of <- function(questions)
  paste(vapply(questions, function(one)
    if (is.null(one)) "none"
    else paste(one$what, one$lenient, fingerprint(matrix(one$points, ncol = 1))), ""),
    collapse = " ")

check_time <- function(work) {
  if (time_is_over(work))
    stop(structure(list(message = "The time is over.", call = NULL),
                   class = c("time_is_over", "error", "condition")))
  FALSE
}

time_is_over <- function(work) now() >= end_of_time(work)

#' The values of a function of R/run-shards.R of each shard, from the log or from the workers
#'
#' @param key What is asked, as text: an entry of a log with another one is of no use. That can be
#'   where the run is continued on a machine that rounds otherwise.
#' @param make A function of the number of a shard that makes its task.
#' @param common What is a part of each task, and sent once to each worker.
#' @param trim What makes values smaller before all are known.
#' @param end What makes of the values of all shards what is kept.
#' @noRd
ask_shards <- function(work, f, key, make = function(i) list(), common = list(), trim = identity,
                       end = identity) {
  work$asked <- work$asked + 1
  if (work$asked <= length(work$log)) {
    entry <- work$log[[work$asked]]
    if (identical(entry$key, key)) return(entry$value)
    message("The saved answers are to other questions: the workers are asked again.")
    work$log <- work$log[seq_len(work$asked - 1)]
  }
  if (!identical(work$partial$key, key)) work$partial <- NULL
  # the first rows are known when a run begins
  guarded <- !is.null(work$origin)
  if (guarded) check_time(work)
  values <- end(asked_of_workers(work, f, key, make, common, trim, guarded))
  work$log <- c(work$log, list(list(key = key, value = values)))
  work$partial <- NULL
  if (guarded && write_is_due(work)) write_work(work)
  values
}

asked_of_workers <- function(work, f, key, make, common, trim, guarded) {
  shards <- seq_len(work$shards)
  if (is.null(work$partial))
    work$partial <- list(key = key, values = vector("list", work$shards),
                         known = rep(FALSE, work$shards))
  begin_crew(work)
  # a message for each worker: on a network each takes some time, however small it is
  bundles <- lapply(work$bundles, function(some) some[!work$partial$known[some]])
  asked <- which(lengths(bundles) > 0)
  bundles <- bundles[asked]
  names <- vapply(bundles, function(some) paste0("shard", if (length(some) > 1) "s", " ",
                                                 paste(some, collapse = ", ")), "")
  crew <- work$crew
  crew$home <- work$home[asked]
  each <- function(b, value) {
    if (inherits(value, "condition")) {
      at <- paste0("\\1 on ", worker_name(crew, crew$answered), ":")
      value$message <- sub("^(Shard [0-9]+):", at, conditionMessage(value))
      stop(value)
    }
    partial <- work$partial
    partial$values[bundles[[b]]] <- value
    partial$known[bundles[[b]]] <- TRUE
    partial$values <- trim(partial$values)
    work$partial <- partial
    if (guarded && write_is_due(work)) write_work(work)
  }
  over <- function() guarded && time_is_over(work)
  on_workers(crew, "do_for_shards", names, function(b)
    list(f = f, shards = bundles[[b]], tasks = lapply(bundles[[b]], make), common = common), each,
    fits_shards(length(work$shared$models)), list(work$shared), stop = over,
    id = work$stage)
  work$home[asked] <- crew$home
  if (!all(work$partial$known)) check_time(work)
  work$partial$values
}

# Is a value the answer to a task about shards?
fits_shards <- function(models) function(value, task) {
  asked <- lapply(task$tasks, c, task$common)
  is.list(value) && length(value) == length(task$shards) &&
    all(mapply(SHARD_ANSWERS[[task$f]], value, asked, MoreArgs = list(models))) &&
    (task$f != "open_shard" || is_whole_sample(value))
}

# Are there as many rows of the sample as the shards together must have?
is_whole_sample <- function(described)
  sum(lengths(lapply(described, `[[`, "keys"))) >=
    min(sum(vapply(described, `[[`, 0, "n")), SHARD_SAMPLE)

# The workers are needed only where the log ends.
begin_crew <- function(work) {
  if (!is.null(work$crew)) return(invisible())
  if (is.null(work$data))
    fail("`data` must be given again: rows_cluster() with the ", count_of(work$shards, "shard"),
         " of this run, and a cluster.")
  work$crew <- new_crew(work$data$cl)
  shards <- seq_len(work$shards)
  work$bundles <- unname(split(shards, (shards - 1) %% length(work$data$cl)))
  work$home <- seq_along(work$bundles)
}
