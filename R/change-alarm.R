# change_alarm(): the probability that the law of a stream has changed, while its rows arrive. The
# posterior of the start of the current segment is in C (src/core/segments.c).

#' Has a stream changed? An alarm while rows arrive
#'
#' Follows a stream of rows in bounded memory and says after each block how probable it is that the
#' parameters of the model have changed since the last alarm, and where.
#'
#' @param model A model whose segments have a closed form: see [change_points()].
#' @param data The rows in the order of time: a source of rows (see [rows_function()]), or data in
#'   memory as for [change_points()].
#' @param duration Mean number of rows of a segment: after each row the parameters change with
#'   probability `1 / duration`.
#' @param alarm Probability of a change since the last alarm at which there is an alarm.
#' @param step Rows that are added together, a whole number; changes are possible between them
#'   only. A larger step is faster.
#' @param starts Most possible starts of the current segment that are kept.
#' @param on_chunk `NULL`, or a function that is called after each block with a list: `rows`,
#'   `probability` (of a change since the last alarm), `start` (the most probable last row before
#'   the current segment), `log_evidence` (of all rows) and `alarm` (whether there is one).
#' @param object,x The result. `plot()` draws the probability of a change after each block, and
#'   `as.data.frame()` is the table of alarms.
#' @param rows Further rows, or a source of them.
#' @param ... For `plot()`: arguments of [plot.default()]; otherwise it must be empty.
#'
#' @details
#' The prior of durations is geometric, and the sum over all earlier changes is exact (Adams and
#' MacKay 2007) but for the least probable starts, which are dropped when there are more than
#' `starts` of them; `lost` is the sum of their shares. Time and memory are proportional to `starts`
#' and do not grow with the stream. For exact positions and sizes of the changes in rows that are in
#' memory use [change_points()].
#'
#' An alarm looks at the stream again and again. In a stationary stream of `n` rows the probability
#' of a false alarm is about `n / duration` times its posterior odds, so give a `duration` that is
#' long compared with the stretches in which no false alarm is wanted.
#'
#' @return An object of class `"change_alarm"`, a list: `n`, `log_evidence`, `probability`, `start`,
#' `alarms` (a data frame: `row` at which the alarm was given, `start`, `from` and `to` (its 95%
#' interval at this moment) and `probability`), `trace` (a data frame with a row for each of the
#' last blocks, at most 10,000), `lost`, and what [update()] needs.
#'
#' @references
#' Adams, R. P. and MacKay, D. J. C. (2007). Bayesian online changepoint detection. arXiv:0710.3742.
#'
#' @examples
#' set.seed(1)
#' y <- c(rnorm(300), rnorm(200, 1))
#' watch <- change_alarm(gaussian_mean(prior_sd = 3), y[1:250], duration = 1000)
#' watch
#' update(watch, y[251:500])
#'
#' @seealso [change_points()]
#' @export
change_alarm <- function(model, data, duration = 10000, alarm = 0.95, step = 1, starts = 200,
                         on_chunk = NULL) {
  call <- match.call()
  check_for_changes(model)
  if (is_lagged(model)) fail("change_alarm() needs a model without lags().")
  if (missing(data) || is.null(data)) fail("`data` must be given: rows in the order of time.")
  duration <- check_number(duration, "duration", 1, lower_open = TRUE)
  alarm <- check_number(alarm, "alarm", 0.5, 1, upper_open = TRUE)
  step <- check_count(step, "step", 1, 1e6)
  starts <- check_count(starts, "starts", 10, 1e4)
  on_chunk <- check_on_chunk(on_chunk)
  watch <- list(call = call, model = model, alarm = alarm, duration = duration,
                settings = c(1 - (1 - 1 / duration)^step, starts, step), n = 0, since = 0,
                alarms = NULL, trace = NULL)
  watch <- structure(watch, class = "change_alarm")
  watch_rows(watch, data, on_chunk)
}

#' @rdname change_alarm
#' @export
update.change_alarm <- function(object, rows, ..., on_chunk = NULL) {
  check_no_dots(...)
  if (missing(rows)) fail("`rows` must be given: the rows to add.")
  check_alarm(object)
  on_chunk <- check_on_chunk(on_chunk)
  watch_rows(object, rows, on_chunk)
}

# Rules of all parts but the call (R/base-check.R). C reads `settings`, `tables` and `state`, and
# compares the lengths of tables and blocks with those of the model (src/bridge/segments.c).
alarm_parts <- function() {
  logs <- numbers_rule(NULL)
  state <- function(x, watch) {
    names <- c("numbers", "block", "log_evidence", "log_weight", "start")
    if (!is.list(x) || !all(names %in% names(x))) return(FALSE)
    n <- length(x$start)
    n > 0 && n <= watch$settings[2] && length(x$log_evidence) == n && length(x$log_weight) == n &&
      length(x$block) %% n == 0 && length(x$block) > 0 && logs(x$block) && logs(x$log_evidence) &&
      logs(x$log_weight) && numbers_rule(NULL, 0, watch$n - 1, whole = TRUE)(x$start) &&
      !is.unsorted(x$start, strictly = TRUE) && numbers_rule(2, 0)(x$numbers) &&
      x$numbers[1] == watch$n
  }
  list(
    model = function(x) is_made(x, "evidence_model"), alarm = numbers_rule(1, 0.5, 1),
    duration = numbers_rule(1, 1), settings = numbers_rule(3, c(0, 10, 1), c(1, 1e4, 1e6),
                                                           c(FALSE, TRUE, TRUE)),
    n = numbers_rule(1, 1, whole = TRUE), since = numbers_rule(1, 0, function(x) x$n, TRUE),
    alarms = table_rule(c("row", "start", "from", "to", "probability"), TRUE),
    trace = table_rule(c("rows", "probability", "start", "log_evidence")),
    args = function(x) is.list(x) && has_names(x), design = is.list, tables = numbers_rule(NULL),
    state = state, lost = numbers_rule(1, 0), log_evidence = numbers_rule(),
    probability = numbers_rule(1, 0, 1 + 1e-9),
    start = numbers_rule(1, 0, function(x) x$n - 1, TRUE)
  )
}

check_alarm <- function(watch)
  check_parts_of(watch, alarm_parts(), "An alarm", "change_alarm()", "begin it again.")

# The probability is computed after so many rows of data in memory; so many rows of the trace are
# kept.
ALARM_BLOCK <- 100
ALARM_TRACE <- 10000

watch_rows <- function(watch, data, on_chunk) {
  if (!is_source(data)) data <- rows_in_memory(data)
  binding <- list2env(watch[c("model", "args", "design")], parent = emptyenv())
  read <- over_source(binding, data, function(encoded, before, data) {
    if (is.null(watch$design)) {
      watch[c("args", "design")] <<- encoded[c("args", "design")]
      watch$tables <<- closed_tables(watch$model, encoded)
      conflict <- conflict_of(watch$model, encoded, seed_words(1))
      if (!is.null(conflict)) warning(new_warning(conflict))
    }
    size <- ALARM_BLOCK * ceiling(watch$settings[3] / ALARM_BLOCK)
    size <- watch$settings[3] * ceiling(size / watch$settings[3])
    n <- ncol(encoded$rows)
    for (first in seq(1, n, by = size)) {
      use <- seq(first, min(n, first + size - 1))
      watch <<- watch_block(watch, encoded$rows[, use, drop = FALSE])
      if (!is.null(on_chunk))
        on_chunk(c(as.list(watch$trace[nrow(watch$trace), ]),
                   alarm = isTRUE(watch$alarms$row[NROW(watch$alarms)] == watch$n)))
    }
  })
  if (read == 0) fail("`data` must have at least one row, not 0.")
  watch
}

watch_block <- function(watch, rows) {
  watch$state <- .Call(ffi_runs, model_type(watch$model), watch$args, watch$tables, rows,
                       watch$state, watch$settings)
  state <- watch$state
  watch$n <- state$numbers[1]
  watch$lost <- state$numbers[2]
  watch$log_evidence <- log_sum(state$log_weight)
  share <- exp(state$log_weight - watch$log_evidence)
  changed <- state$start > watch$since
  watch$probability <- sum(share[changed])
  watch$start <- state$start[which.max(share)]
  if (anyNA(share))
    fail("The rows up to row ", plain_number(watch$n), " have a segment without a finite ",
         "evidence, because a few rows are fitted exactly: give the noise an inverse_gamma() ",
         "prior, or use a larger `step`.")
  watch$trace <- utils::tail(rbind(watch$trace, data.frame(
    rows = watch$n, probability = watch$probability, start = watch$start,
    log_evidence = watch$log_evidence
  )), ALARM_TRACE)
  if (watch$probability < watch$alarm) return(watch)
  own <- order(state$start[changed])
  start <- state$start[changed][own]
  cumulated <- cumsum(share[changed][own]) / watch$probability
  best <- start[which.max(share[changed][own])]
  watch$alarms <- rbind(watch$alarms, data.frame(
    row = watch$n, start = best, from = start[which(cumulated >= 0.025)[1]],
    to = start[which(cumulated >= 0.975)[1]], probability = watch$probability
  ))
  # a later change begins after the last row at which this one was seen
  watch$since <- watch$n
  watch
}

#' @rdname change_alarm
#' @export
print.change_alarm <- function(x, ...) {
  check_no_dots(...)
  check_alarm(x)
  cat("Alarm of changes after ", count(x$n), " rows\n", sep = "")
  cat("  model:  ", describe(x$model)[[1]], "\n", sep = "")
  cat("  prior:  geometric durations, ", format(x$duration), " rows on average\n", sep = "")
  cat("  log evidence ", format_number(x$log_evidence, 4), "; probability of a change since ",
      if (x$since) "the last alarm " else "the first row ", show_probability(x$probability), "\n",
      sep = "")
  if (is.null(x$alarms)) cat("  no alarm\n")
  for (i in seq_len(NROW(x$alarms))) with(x$alarms[i, ], cat_indented(paste0(
    "alarm at row ", count(row), ": changed after row ", count(start), " (", count(from), " to ",
    count(to), "), probability ", show_probability(probability)), 2))
  invisible(x)
}

#' @rdname change_alarm
#' @export
plot.change_alarm <- function(x, ...) {
  check_alarm(x)
  trace <- x$trace
  note <- if (is.null(x$alarms)) "no alarm" else "dotted: alarms"
  figure <- new_figure(trace$rows, trace$probability,
                       "Probability of a change since the last alarm", note, "Row", "Probability",
                       from_zero = TRUE)
  figure$ylim <- c(0, 1)
  figure$marks <- x$alarms$row
  old <- graphics::par("mar", "mgp", "tcl", "las")
  on.exit(graphics::par(old))
  graphics::par(mar = c(3.6, 5, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  draw_figure(figure, ...)
  invisible(x)
}

#' @rdname change_alarm
#' @export
as.data.frame.change_alarm <- function(x, ...) {
  check_no_dots(...)
  check_alarm(x)
  if (!is.null(x$alarms)) return(x$alarms)
  data.frame(row = numeric(), start = numeric(), from = numeric(), to = numeric(),
             probability = numeric())
}
