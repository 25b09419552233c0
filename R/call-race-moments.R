# The moments of a race: after how many rows the log evidence of each model is known.
#
# Up to OPENING_ROWS rows each model is fitted to the first 1, 2, 3, ... rows, and so are data in
# memory to more of them. Of a stream, states of the runs are kept on the way and continued as if
# there were no more rows. The last moment has the estimates that are reported.

# Rows before the first chunk is complete are few, so that a model can be fitted to the first 1, 2,
# 3, ... of them.
OPENING_ROWS <- 1000

# Numbers of rows grow by this factor between two moments; by the second where a fit takes longer,
# because the posterior may have many modes or calls R; by the third beyond the opening rows.
MOMENT_STEP <- 1.08
MOMENT_STEP_MODES <- 2
MOMENT_STEP_MEMORY <- 1.2

# How many standard errors of the difference a Bayes factor must be beyond a threshold.
DECIDED_BY <- 2

opening_moments <- function(n, modes = FALSE, beyond = MOMENT_STEP_MEMORY) {
  step <- if (modes) MOMENT_STEP_MODES else MOMENT_STEP
  at <- if (modes) 5 else 1
  last <- min(n, OPENING_ROWS)
  while ((largest <- at[length(at)]) < n) {
    if (largest >= last) step <- max(step, beyond)
    at <- c(at, max(largest + 1, floor(largest * step)))
  }
  at[at <= n]
}

#' The numbers of rows after which models are fitted to the first rows
#' @param most Largest number.
#' @noRd
moments_of_first <- function(parts, most) {
  slow <- function(part) may_have_modes(part$spec$model) || asks_r(part$spec$model)
  opening_moments(most, any(vapply(parts, slow, NA)))
}

#' What the moments of a race need of each model that is left
#'
#' @return A list of lists: `spec` and `method`, as they were asked for; `used`, the method of the
#'   runs; `encoded` without rows; `opening`, the first rows of a source; `data`, those in memory.
#' @noRd
moment_parts <- function(race) {
  lapply(which(!race$names %in% names(race$dropped)), function(i) {
    work <- race$works[[i]]
    asked <- if (is.null(work$method$asked)) work$method else work$method$asked
    list(spec = mget(c("call", "model", "words", "seeded", "replicates", "threads"), envir = work,
                     ifnotfound = list(NULL)),
         method = if (is_stream(work)) race$methods[[i]] else asked, used = work$method,
         encoded = without_rows(if (is_stream(work)) work$feed$encoded else work$encoded),
         opening = race$opening[[i]], data = race$data)
  })
}

#' What is known from the first row on
#'
#' @return A list of `most`, the number of rows, and `encoded`, function(n), the first `n` of them
#'   as encode() gives them; NULL if there are none.
#' @noRd
known_rows <- function(part) {
  model <- part$spec$model
  if (is.null(part$opening) && !is.null(part$data)) {
    # of these models all rows together are no matrix whose columns are rows
    if (is_latent(model) || asks_r(model) || needs_all(model))
      return(list(most = as.double(block_rows(part$data)), encoded = function(n)
        encode(model, text_as_it_is(block_part(part$data, seq_len(n))))))
    rows <- encode_new(model, at_start(part$encoded$design), part$data, TRUE, "data")$rows
  } else rows <- if (!is_lagged(model)) part$opening
  if (is.null(rows)) return(NULL)
  list(most = as.double(ncol(rows)), encoded = function(n) {
    encoded <- part$encoded
    encoded$own <- NULL
    encoded$rows <- rows[, seq_len(n), drop = FALSE]
    encoded$n <- n
    encoded$sampled <- FALSE
    encoded
  })
}

#' The fit of a model to the first `n` rows
#' @noRd
fit_of_first <- function(part, known, n) {
  spec <- part$spec
  spec$keep <- Inf
  spec$method <- part$method
  fit_of_rows(spec, known$encoded(n))
}

#' A fit to rows in memory, without a word
#'
#' @param spec `model`, `method` and what new_work() needs.
#' @noRd
fit_of_rows <- function(spec, encoded) {
  spec$method <- method_for_rows(spec$model, spec$method, encoded, spec$words)
  begun <- new_work(spec, encoded, feeding = "last")
  begin_work(begun, list(keep_state = FALSE))
  muffled(with_generator_of(begun, fit_of_work(begun, list(show = function(...) NULL))))
}

# Looks: the states of all runs of a stream after so many rows. A run that is continued from such a
# state and told that there are no more rows ends with the fit of the rows so far. The number of
# rows grows by LOOK_STEP between two looks, by less if they may end the stream.
LOOK_STEP <- 2
LOOK_STEP_STOP <- 1.1
# The states of all looks take at most so many bytes for each model; then every other one goes.
LOOK_BYTES <- 2e7

#' @param jobs For each model a list of jobs with their states.
#' @noRd
fits_of_look <- function(parts, jobs, n)
  Map(function(part, jobs) muffled(fit_of_look(part, jobs, n)), parts, jobs)

fit_of_look <- function(part, jobs, n) {
  runs <- lapply(jobs, ended_here, nrow(part$encoded$rows))
  encoded <- part$encoded
  encoded$n <- n
  encoded$sampled <- TRUE
  encoded$data_id <- ""
  encoded$rows <- if (is.null(runs[[1]]$sample)) part$opening else runs[[1]]$sample
  spec <- part$spec
  new_evidence(runs, spec$call, spec$model, part$used, encoded, spec$words, spec$threads)
}

#' The result of a job whose stream ends where its state is
#' @noRd
ended_here <- function(job, width) conduct_jobs(list(job), no_more_rows(width))[[1]]$result

moment_of <- function(n, names, fits, from = "fit") {
  data.frame(rows = as.double(n), model = names,
             log_evidence = vapply(fits, `[[`, 0, "log_evidence"),
             se = vapply(fits, function(fit) as.double(fit$se), 0), from = from,
             doubt = vapply(fits, doubt_about, ""), row.names = NULL)
}

#' All moments, computed when they are asked for and then kept
#'
#' @param race The environment in a comparison, from new_race_result().
#' @return A data frame with a row for each moment and model: `rows`, `model`, `log_evidence`, `se`,
#'   `from` ("fit", "trace" or "reported"), `doubt`, as in a comparison.
#' @noRd
moments_of <- function(race, fits) {
  if (!is.null(race$moments)) return(race$moments)
  last <- moment_of(fits[[1]]$n, names(fits), fits, "reported")
  n <- last$rows[1]
  known <- race$past[race$past$model %in% names(fits), ]
  known <- rbind(known, opening_of(race, fits, n, known), looks_of(race, fits, n, known))
  # single fits have only their traces
  if (is.null(race$parts)) {
    trace <- trace_moments(fits)
    known <- rbind(known, trace[trace$rows < n, ])
  }
  all <- rbind(known, last)
  all <- all[!duplicated(all[c("rows", "model")], fromLast = TRUE), ]
  all <- all[order(all$rows, match(all$model, names(fits))), ]
  rownames(all) <- NULL
  race$moments <- all
  race$looks <- race$data <- NULL
  race$parts <- lapply(race$parts, replace, "data", list(NULL))
  all
}

opening_of <- function(race, fits, n, known) {
  parts <- race$parts
  if (is.null(parts)) return(NULL)
  rows <- lapply(parts, function(part) or_null(known_rows(part)))
  if (any(vapply(rows, is.null, NA))) return(NULL)
  most <- min(n - 1, vapply(rows, `[[`, 0, "most"))
  if (most < 1) return(NULL)
  at <- setdiff(moments_of_first(parts, most), known$rows)
  moments_at(at, fits, function(n) Map(fit_of_first, parts, rows, n))
}

looks_of <- function(race, fits, n, known) {
  looks <- Filter(function(look) look$n < n && !look$n %in% known$rows &&
                    all(names(fits) %in% names(look$jobs)), race$looks)
  moments_at(seq_along(looks), fits, rows = vapply(looks, `[[`, 0, "n"), function(i)
    fits_of_look(race$parts, looks[[i]]$jobs[names(fits)], looks[[i]]$n))
}

#' @param at Passed to `fit`, which returns the fits of all models at a moment.
#' @noRd
moments_at <- function(at, fits, fit, rows = at) {
  bar <- progress_bar(interactive(), length(at))
  on.exit(bar$close())
  do.call(rbind, lapply(seq_along(at), function(i) {
    bar$show((i - 1) / length(at), rows[i])
    moment_of(rows[i], names(fits), fit(at[i]))
  }))
}

# The estimates of the runs themselves at the ends of chunks, whose errors are larger.
trace_moments <- function(fits) {
  tables <- lapply(fits, function(fit) common_trace(list(fit$trace)))
  if (any(vapply(tables, is.null, NA))) return(NULL)
  n <- Reduce(intersect, lapply(tables, `[[`, "n"))
  do.call(rbind, lapply(names(fits), function(name) {
    own <- tables[[name]][match(n, tables[[name]]$n), ]
    if (length(n)) data.frame(rows = as.double(n), model = name, log_evidence = own$log_evidence,
                              se = own$se, from = "trace", doubt = "")
  }))
}

#' Moments as matrices with a row for each moment and a column for each model
#'
#' @return A list of `rows`, `log_evidence` and `se`, which are `NA` where a fit failed its checks;
#'   `estimate` and `stated`, the same whatever the checks say; `doubt`.
#' @noRd
moments_wide <- function(moments, names) {
  rows <- unique(moments$rows)
  wide <- function(column) {
    found <- moments[[column]][match(outer(rows, names, paste), paste(moments$rows, moments$model))]
    matrix(found, length(rows), dimnames = list(NULL, names))
  }
  estimate <- wide("log_evidence")
  se <- wide("se")
  failed <- wide("doubt") %in% "failed"
  list(rows = rows, estimate = estimate, log_evidence = replace(estimate, failed, NA),
       se = replace(se, failed, NA), stated = se, doubt = wide("doubt"))
}

#' The fit of one work whose runs have their rows; NULL if the time is over
#' @noRd
fit_of_work <- function(work, display) {
  repeat {
    advance_plan(work, display)
    if (!is_finished(work)) return(NULL)
    fit <- finished_fit(work)
    if (is.null(other <- other_method(fit, work))) return(fit)
    begin_again(work, other)
  }
}

#' A comparison of single fits as a race, if they have seen the same rows in the same order
#' @noRd
as_race <- function(comparison, fits, names) {
  orders <- lapply(fits, `[[`, "order_id")
  alike <- !is.null(orders[[1]]) && all(vapply(orders, identical, NA, orders[[1]]))
  if (!alike) return(comparison)
  fits <- stats::setNames(fits, names)
  kept <- list2env(list(
    names = names, prior = stats::setNames(attr(comparison, "prior"), comparison$model)[names],
    dropped = character(), methods = lapply(fits, `[[`, "method")),
    parent = emptyenv())
  if (NROW(trace_moments(fits)) < 2 * length(fits)) return(comparison)
  structure(comparison, race = kept, class = c("evidence_race", class(comparison)))
}
