# The loop of every estimator: R calls C for a short time, again and again. Between two calls R
# handles interrupts and updates the progress bar.

SLICE <- 0.05 # seconds
SLICE_TOGETHER <- 0.3 # for several runs, of which those that finish early wait for the others

#' Run a problem on all rows
#'
#' @param show A function of the share of the work that is done and the number of rows processed.
#' @param feed "last"; "own" if the run may change the order of the rows in memory instead of
#'   copying them, because they are not used elsewhere; or "mixed" if they are also already in the
#'   random order of the run.
#' @return What the estimator reports, a list.
#' @noRd
conduct <- function(problem, rows, show = function(done, rows) NULL) {
  conduct_together(list(problem), rows, show)[[1]]
}

#' Run several problems on the same rows at the same time, each in its own thread
#' @noRd
conduct_together <- function(problems, rows, show = function(done, rows) NULL, feed = "last") {
  lapply(conduct_jobs(new_plan(problems)$first, rows, show, feed), `[[`, "result")
}

#' The result of a run: its figures and arrays by name, and the trace as a data frame
#' @noRd
run_result <- function(run) {
  out <- .Call(ffi_run_result, run)
  c(out$figures, out$arrays, list(trace = as.data.frame(out$trace)))
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
  if (!wanted) return(list(show = function(done, rows) NULL, close = function() NULL))
  started <- proc.time()[["elapsed"]]
  drawn <- FALSE
  width <- 30
  show <- function(done, rows) {
    spent <- proc.time()[["elapsed"]] - started
    if (spent < 0.5) return()
    drawn <<- TRUE
    if (is.na(n)) {
      cat("\r", format(rows, big.mark = ",", scientific = FALSE), " rows, ", format_seconds(spent),
          "   ", sep = "", file = stderr())
      return()
    }
    filled <- round(width * min(max(done, 0), 1))
    left <- if (done > 0.02) paste0("ETA ", format_seconds(spent * (1 - done) / done)) else "ETA ?"
    cat(sprintf("\r|%s%s| %3.0f%%  %s   ", strrep("=", filled), strrep(" ", width - filled),
                100 * done, left),
        file = stderr())
  }
  close <- function() if (drawn) cat("\r", strrep(" ", width + 30), "\r", sep = "", file = stderr())
  list(show = show, close = close)
}

format_seconds <- function(seconds) {
  if (seconds < 1) return(sprintf("%.0f ms", 1000 * seconds))
  if (seconds < 10) return(sprintf("%.1f s", seconds))
  if (seconds < 100) return(sprintf("%.0f s", seconds))
  if (seconds < 5400) return(sprintf("%.0f min", seconds / 60))
  sprintf("%.1f h", seconds / 3600)
}
