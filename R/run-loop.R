# The loop of every estimator: R calls C for a short time, again and again. Between two calls R
# handles interrupts and updates the progress bar.

SLICE <- 0.05 # seconds
SLICE_TOGETHER <- 0.3 # for several runs, of which those that finish early wait for the others

#' The result of a run: its figures and arrays by name, and the trace as a data frame
#' @noRd
run_result <- function(run) {
  out <- .Call(ffi_run_result, run)
  if (is.null(out$trace)) out$trace <- data.frame()
  out
}

# Called from C when a run fails: errors keep their class, an interrupt becomes an R interrupt.
raise <- function(message, class) {
  if (class == "logevidence_interrupt") {
    signalCondition(structure(list(message = "", call = NULL), class = c("interrupt", "condition")))
    invokeRestart("abort")
  }
  fail(message)
}

# Called from C when a user's function of a custom model has raised a condition, which is raised
# again.
raise_condition <- function(condition) {
  if (inherits(condition, "interrupt")) raise("", "logevidence_interrupt")
  stop(condition)
}

#' A progress bar on standard error, or nothing
#'
#' @param n Number of all rows; NA for a stream of unknown length, of which the number of rows so
#'   far is shown.
#' @noRd
progress_bar <- function(wanted, n) {
  if (!wanted) return(list(show = function(done, rows, report) NULL, close = function() NULL))
  started <- now()
  drawn <- begun <- most <- 0
  width <- 30
  show <- function(done, rows, report = NULL) {
    spent <- now() - started
    # a run that is resumed does not begin at zero
    if (most == 0 && spent < 0.5) begun <<- max(0, done)
    # the bar never goes back, whichever of several runs reports
    most <<- done <- max(most, min(done, 1))
    if (spent < 0.5) return()
    line <- if (is.na(n)) paste0(rows_so_far(rows, spent), ", ", format_seconds(spent))
    else paste0(bar_line(done, width), "  ", time_left(done - begun, 1 - done, spent))
    line <- paste0(line, per_row(report), "   ")
    # what a longer line has left is overwritten
    cat("\r", formatC(line, width = -drawn), sep = "", file = stderr())
    drawn <<- nchar(line)
  }
  close <- function() if (drawn) cat("\r", strrep(" ", drawn), "\r", sep = "", file = stderr())
  list(show = show, close = close)
}

# Seconds; only differences between two of them have a meaning.
now <- function() .Call(ffi_now)

# Seconds of processor time of this process, of all its threads.
cpu_seconds <- function() .Call(ffi_processor_time)

bar_line <- function(done, width) {
  filled <- round(width * done)
  sprintf("|%s%s| %3.0f%%", strrep("=", filled), strrep(" ", width - filled), 100 * done)
}

time_left <- function(done, left, spent)
  if (done > 0.02) paste0("ETA ", format_seconds(spent * left / done)) else "ETA ?"

rows_so_far <- function(rows, spent) paste0(count(round(rows)), " rows, ",
                                            count(round(rows / spent)), " rows/s")

# What the run has found so far, for engines that report it row by row.
per_row <- function(report) {
  if (is.null(report) || !isTRUE(report$n > 0)) return("")
  sprintf(", %.4g nats per row", report$log_evidence / report$n)
}

# Seconds between two calls of a user's function, or two reports of a run.
REPORT_EVERY <- 0.3
# A report that takes long, because the trace has many rows, is made more rarely.
REPORT_COST <- 50

#' What the user sees of a run: the bar, and calls of their own function
#'
#' @param rows Number of all rows; NA if it is not known.
#' @param streamed Whether the rows come from a source: then the share of the rows is shown, because
#'   the engine does not know how many there are.
#' @param most The share of the work that is done when the last row of a source has been added;
#'   checks may follow.
#' @param by_rows Whether the engine's estimate so far is the evidence of the rows so far.
#' @noRd
new_display <- function(progress, on_chunk, rows, streamed, by_rows, most = 1) {
  bar <- progress_bar(progress, rows)
  started <- now()
  wait <- REPORT_EVERY
  last <- -Inf
  known <- NULL
  tell <- function(done, walked, report) {
    begun <- now()
    if (by_rows || !is.null(on_chunk)) known <<- report()
    wait <<- max(REPORT_EVERY, REPORT_COST * (now() - begun))
    last <<- now()
    if (!is.null(on_chunk))
      on_chunk(c(list(rows = walked, share = done, seconds = now() - started), known))
  }
  show <- function(done, walked, report) {
    if (streamed) done <- if (is.na(rows)) NA_real_ else most * walked / rows
    if ((progress || !is.null(on_chunk)) && now() - last >= wait) tell(done, walked, report)
    bar$show(if (is.na(done)) 0 else done, walked, if (by_rows) known)
  }
  list(show = show, close = bar$close, active = progress || !is.null(on_chunk), tell = tell)
}

#' The last entry of a run's trace, or nothing before there is one
#' @noRd
report_of <- function(run) {
  trace <- run_result(run)$trace
  last <- function(name) if (length(trace[[name]])) utils::tail(trace[[name]], 1) else NA_real_
  names <- c("n", "log_evidence", "se", "ess", "lambda")
  stats::setNames(lapply(names, last), names)
}
