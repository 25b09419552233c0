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

#' A function of questions that answers from few rows with the same sums of products as all `n`
#'
#' A row of zeros has the part of the log-likelihood that each row has, whatever its numbers.
#' @noRd
answer_by_sums <- function(problem, rows, n) {
  problem$total <- 0
  with_products <- new_worker(problem, rows)
  blank <- new_worker(problem, rows[, 1, drop = FALSE] * 0)
  function(questions) lapply(questions, function(question)
    if (!is.null(question)) with_products(question) + (n - ncol(rows)) * blank(question))
}
