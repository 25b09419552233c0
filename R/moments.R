# The moments of a race: after how many rows the log evidence of each model is known.
#
# Up to OPENING_ROWS rows each model is fitted to the first 1, 2, 3, ... rows. After them, the trace
# of a stream has the estimate at the end of each chunk, and data in memory are fitted again. The
# last moment has the estimates that are reported.

# Rows before the first chunk is complete are few, so that a model can be fitted to the first 1, 2,
# 3, ... of them.
OPENING_ROWS <- 1000

# Numbers of rows grow by this factor between two moments; by the second where a fit takes longer,
# because the posterior may have many modes; by the third beyond the opening rows.
MOMENT_STEP <- 1.08
MOMENT_STEP_MODES <- 2
MOMENT_STEP_MEMORY <- 1.2

# How many standard errors of the difference a Bayes factor must be beyond a threshold.
DECIDED_BY <- 2

opening_moments <- function(n, modes = FALSE) {
  step <- if (modes) MOMENT_STEP_MODES else MOMENT_STEP
  at <- if (modes) 5 else 1
  last <- min(n, OPENING_ROWS)
  while ((largest <- at[length(at)]) < n) {
    if (largest >= last) step <- max(step, MOMENT_STEP_MEMORY)
    at <- c(at, max(largest + 1, floor(largest * step)))
  }
  at[at <= n]
}

#' What is needed to fit each model to the first rows of the race, or NULL if that cannot be done
#'
#' @return For each model that is left: its `work` as it was asked for, and `encoded` with all rows
#'   that are in memory, in their given order.
#' @noRd
opening_frames <- function(race) {
  left <- which(!race$names %in% names(race$dropped))
  frames <- lapply(left, function(i) {
    work <- race$works[[i]]
    if (is_latent(work$model) || asks_r(work$model) || is_lagged(work$model)) return(NULL)
    encoded <- if (is_stream(work)) work$feed$encoded else work$encoded
    rows <- if (is_stream(work)) race$opening[[i]]
    else if (!is.null(race$data)) encode_new(work$model, encoded$design, race$data, TRUE,
                                             "data")$rows
    if (is.null(rows)) return(NULL)
    encoded[c("observed", "in_order", "pairing", "offset", "own")] <- NULL
    encoded$rows <- rows
    asked <- if (is.null(work$method$asked)) work$method else work$method$asked
    list(work = work, method = if (is_stream(work)) race$methods[[i]] else asked,
         encoded = encoded)
  })
  if (!any(vapply(frames, is.null, NA))) frames
}

#' The fit of a model to the first `n` rows
#' @noRd
fit_of_first <- function(frame, n) {
  encoded <- frame$encoded
  encoded$rows <- encoded$rows[, seq_len(n), drop = FALSE]
  encoded$n <- n
  encoded$sampled <- FALSE
  work <- frame$work
  spec <- list(call = work$call, model = work$model, words = work$words, seeded = work$seeded,
               replicates = work$replicates, threads = work$threads, keep = Inf,
               method = method_for_rows(work$model, frame$method, encoded, work$words))
  begun <- new_work(spec, encoded)
  begin_work(begun, list(keep_state = FALSE))
  muffled(with_generator_of(begun, fit_of_work(begun, list(show = function(...) NULL))))
}

moment_of <- function(n, names, fits, from = "fit") {
  data.frame(rows = as.double(n), model = names,
             log_evidence = vapply(fits, `[[`, 0, "log_evidence"),
             se = vapply(fits, function(fit) as.double(fit$se), 0), from = from, row.names = NULL)
}

#' All moments, computed when they are asked for and then kept
#'
#' @param race The environment in a comparison, from new_race_result().
#' @return A data frame with a row for each moment and model: `rows`, `model`, `log_evidence`, `se`,
#'   `from` ("fit", "trace" or "reported").
#' @noRd
moments_of <- function(race, fits) {
  if (!is.null(race$moments)) return(race$moments)
  last <- moment_of(fits[[1]]$n, names(fits), fits, "reported")
  n <- last$rows[1]
  known <- race$past[race$past$model %in% names(fits), ]
  known <- rbind(known, opening_of(race, fits, n, known))
  trace <- trace_moments(race, fits)
  trace <- trace[trace$rows > max(0, known$rows) & trace$rows < n, ]
  all <- rbind(known, trace, last)
  all <- all[!duplicated(all[c("rows", "model")], fromLast = TRUE), ]
  all <- all[order(all$rows, match(all$model, names(fits))), ]
  rownames(all) <- NULL
  race$moments <- all
  all
}

opening_of <- function(race, fits, n, known) {
  frames <- race$frames
  if (is.null(frames)) return(NULL)
  modes <- any(vapply(frames, function(frame) may_have_modes(frame$work$model), NA))
  most <- min(n - 1, vapply(frames, function(frame) as.double(ncol(frame$encoded$rows)), 0))
  if (most < 1) return(NULL)
  at <- setdiff(opening_moments(most, modes), known$rows)
  bar <- progress_bar(interactive(), length(at))
  on.exit(bar$close())
  do.call(rbind, lapply(at, function(n) {
    bar$show((match(n, at) - 1) / length(at), n)
    moment_of(n, names(fits), lapply(frames, fit_of_first, n))
  }))
}

# Of data in memory that are shuffled, the trace has no order that the user knows.
trace_moments <- function(race, fits) {
  if (!race$in_order) return(NULL)
  tables <- lapply(fits, function(fit) common_trace(list(fit$trace)))
  if (any(vapply(tables, is.null, NA))) return(NULL)
  n <- Reduce(intersect, lapply(tables, `[[`, "n"))
  do.call(rbind, lapply(names(fits), function(name) {
    own <- tables[[name]][match(n, tables[[name]]$n), ]
    if (length(n)) data.frame(rows = as.double(n), model = name, log_evidence = own$log_evidence,
                              se = own$se, from = "trace")
  }))
}

#' Moments as matrices with a row for each moment and a column for each model
#' @noRd
moments_wide <- function(moments, names) {
  rows <- unique(moments$rows)
  wide <- function(column) {
    found <- moments[[column]][match(outer(rows, names, paste), paste(moments$rows, moments$model))]
    matrix(found, length(rows), dimnames = list(NULL, names))
  }
  list(rows = rows, log_evidence = wide("log_evidence"), se = wide("se"))
}

#' The fit of one work whose runs have their rows; NULL if the time is over
#' @noRd
fit_of_work <- function(work, display) {
  repeat {
    advance_plan(work, display)
    if (!is_finished(work)) return(NULL)
    fit <- finished_fit(work)
    if (!gives_way(fit)) return(fit)
    as_asked_for(work)
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
    dropped = character(), methods = lapply(fits, `[[`, "method"), in_order = TRUE),
    parent = emptyenv())
  if (NROW(trace_moments(kept, fits)) < 2 * length(fits)) return(comparison)
  structure(comparison, race = kept, class = c("evidence_race", class(comparison)))
}
