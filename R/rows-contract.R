# Where runs get their rows. The driver (R/run-driver.R) asks this contract, and never what kind of
# rows there are: in memory, from a source (R/rows-feed.R), or elsewhere, where workers or a
# database have them and answer questions (R/run-questions.R).

#' Rows as the driver sees them
#'
#' @param can What they can do after the first rows: "blocks" (give further ones), "answers" (to
#'   questions about all rows).
#' @param begin A function of a run and the number of its job, which gives a new run its first rows.
#' @param restored The same for a run whose state was restored. A state holds its rows, or what it
#'   needs of them.
#' @param more A function that returns a list: `rows`, the next block, and `last`, whether there are
#'   no more; then there are no rows.
#' @param again A function that goes back to the first row, for a further pass.
#' @param answer A function of a list with the question of each job, or NULL, which returns the
#'   answers of all rows.
#' @param at The number of rows given in this pass.
#' @param passed Whether all rows were given before, and this is a further pass.
#' @param whole A function that returns all rows given so far, a matrix or rows of this contract, or
#'   NULL if they are not in memory: what a second run gets.
#' @noRd
new_rows <- function(can = character(), begin = function(run, k) NULL,
                     restored = function(run) NULL,
                     more = function() fail("A run needs more rows than the data have."),
                     again = more, answer = NULL, at = function() 0, passed = function() FALSE,
                     whole = function() NULL)
  list(can = can, begin = begin, restored = restored, more = more, again = again, answer = answer,
       at = at, passed = passed, whole = whole)

can_give <- function(rows, what) what %in% rows$can

#' Rows in memory
#'
#' @param rows A matrix with an observation in each column.
#' @param how "last": a run copies the rows. "own": it may put them in another order instead,
#'   because they are not used elsewhere. "mixed": they are in the random order that the run would
#'   make. "open": all rows are there, but their end is declared only when the run asks for more, so
#'   that its state before can be kept.
#' @noRd
memory_rows <- function(rows, how = "last") {
  begin <- function(run, k) .Call(ffi_run_feed, run, rows, if (how == "open") "some" else how)
  whole <- function() rows
  if (how != "open") return(new_rows(begin = begin, whole = whole))
  new_rows("blocks", begin, more = function() list(rows = rows[, 0, drop = FALSE], last = TRUE),
           whole = whole)
}

as_rows <- function(rows, how = "last") if (is.matrix(rows)) memory_rows(rows, how) else rows

#' Rows that are elsewhere, of which a run has a random sample
#'
#' @param samples A matrix, or a list with one for each job.
#' @param answer As in new_rows().
#' @noRd
asked_rows <- function(samples, answer) {
  begin <- function(run, k)
    .Call(ffi_run_feed, run, if (is.list(samples)) samples[[k]] else samples, "sample")
  rows <- new_rows("answers", begin, answer = answer)
  rows$whole <- function() rows
  rows
}

#' No further rows: a stream ends where the state of its run is
#' @noRd
no_more_rows <- function(width) {
  none <- matrix(0, width, 0)
  # the rows so far cannot be read once more
  new_rows("blocks", restored = function(run) .Call(ffi_run_feed, run, none, "once"),
           more = function() list(rows = none, last = TRUE),
           again = function() fail("The rows of this run cannot be read again."))
}
