# Rows that are elsewhere, on other machines or in parts: here is only a random sample of them. The
# run asks for sums over all rows (src/core/question.h), and workers answer, each from its part.
#
# A question is a list: `what` ("value", "gradient" or "curvature" of the log-likelihood), `points`
# (a column each), and `lenient` (whether the run expects impossible points). An answer is a matrix
# with a column for each point: the value, behind it the gradient, behind it the second derivatives,
# as far as they are wanted. Answers of parts add up.

#' The problem of a run whose rows are elsewhere
#'
#' @param n The number of all rows.
#' @noRd
with_rows_elsewhere <- function(problem, n) {
  problem$total <- as.double(n)
  own <- of_engine(problem, "elsewhere")
  problem$settings[names(own)] <- own
  problem
}

#' A worker: a function of a question that answers from its rows, with a run of its own
#'
#' @param rows A matrix with an observation in each column.
#' @noRd
new_worker <- function(problem, rows) {
  run <- .Call(ffi_run_new, problem)
  .Call(ffi_run_feed, run, rows, "last")
  function(question) .Call(ffi_run_sums, run, question)
}

#' The answer for all rows from those of their parts, added in this order
#' @noRd
add_answers <- function(answers) Reduce(`+`, answers)
