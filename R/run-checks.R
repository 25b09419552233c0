# The checks that follow a run, within one budget. Each is a row of CHECKS and a file
# R/run-check-*.R:
#
# applies    function(case): does it say something of this run?
# share      function(case): the share that it may take of the evaluations of the likelihood and the
#            gradient that the runs have made
# least      function(case): evaluations that are always allowed, because they take milliseconds
# look       function(case, most): what it finds with so many evaluations, a list, or NULL
# entry      function(found): entries of the ledger
# sentence   function(found, headline, case): what it says of the reported estimate, or NULL
#
# A case is a list of what further_checks() is given, and of what other checks have `found`.
CHECKS <- list(
  climbs = CHECK_CLIMBS,
  `short moves` = CHECK_SHORT_MOVES,
  `reverse run` = CHECK_REVERSE_RUN,
  `run by rows` = CHECK_BY_ROWS,
  `lower bound` = CHECK_BOUND
)

#' Check runs by all rows of CHECKS that apply
#'
#' @param runs The results of the runs; the path of the first is followed.
#' @return A list: `entries` of the ledger, `said`, a function of the reported estimate that gives
#'   sentences, `third`, a function that makes the entry of a third estimate, and `parts` of the
#'   fit.
#' @noRd
further_checks <- function(problem, encoded, runs, model, method, words) {
  budget <- new_budget(sum(vapply(runs, evaluations_of, 0)))
  case <- list(problem = problem, encoded = encoded, runs = runs, model = model, method = method,
               words = words, found = list())
  for (name in names(CHECKS)) {
    check <- CHECKS[[name]]
    if (!check$applies(case)) next
    most <- granted(budget, check$share(case), if (is.null(check$least)) 0 else check$least(case))
    case$found[[name]] <- or_null(check$look(case, most))
  }
  asked <- function(what, ...) unname(lapply(names(case$found), function(name) {
    ask <- CHECKS[[name]][[what]]
    if (!is.null(ask)) ask(case$found[[name]], ...)
  }))
  list(entries = do.call(ledger_of, asked("entry")), third = function() confirmation(case),
       said = function(headline) unlist(asked("sentence", headline, case)),
       parts = list(bound = case$found[["lower bound"]],
                    second_look = case$found[["run by rows"]]))
}

# Together checks take at most this share; the first are served first.
CHECKS_MOST <- 0.71

#' The budget of all checks of a fit
#'
#' @param work Evaluations that the runs have made.
#' @noRd
new_budget <- function(work) {
  budget <- new.env(parent = emptyenv())
  budget$work <- work
  budget$left <- CHECKS_MOST * work
  budget
}

#' What a check may cost; taken from the budget
#' @noRd
granted <- function(budget, share, least = 0) {
  share <- min(share * budget$work, budget$left)
  budget$left <- budget$left - share
  max(share, least)
}
